//! Plain mode in a terminal that only prints.

use crate::support::pty::{Start, Terminal};

const DUMB: &[(&str, &str)] = &[("TERM", "dumb"), ("COLORTERM", "")];

#[test]
fn dumb_terminal_gets_no_escape() {
    let mut terminal = Terminal::start(Start { env: DUMB, ..Start::default() });
    terminal.sees("plain mode");
    terminal.press("new checkout-launch\rset Replies 2\rstart\rwait\r");
    terminal.sees("ended: completed");
    terminal.press("quit\r");
    assert_eq!(terminal.ends(), 0);
    let bytes = terminal.bytes();
    assert!(!bytes.contains(&0x1b), "{}", String::from_utf8_lossy(&bytes));
    terminal.is_as_it_was();
}

#[test]
fn end_of_file_asks_and_leaves() {
    let mut terminal = Terminal::start(Start {
        args: &["run", "checkout-launch", "--instant", "--pause-at", "round:1", "--plain"],
        ..Start::default()
    });
    terminal.sees("paused before round 1");
    terminal.press("\u{4}");
    terminal.sees("One run is live. Quit and end it?");
    terminal.press("\u{4}");
    assert_eq!(terminal.ends(), 0);
    assert!(!terminal.bytes().contains(&0x1b));
    terminal.is_as_it_was();
}

#[test]
fn interrupt_asks_then_leaves() {
    let mut terminal = Terminal::start(Start {
        args: &["run", "checkout-launch", "--pause-at", "round:1", "--plain"],
        ..Start::default()
    });
    terminal.sees("pause");
    terminal.press("\u{3}");
    terminal.sees("End run r-");
    terminal.sees("Ctrl-C again leaves and ends 1 live run");
    terminal.press("\u{3}");
    assert_eq!(terminal.ends(), 130);
    terminal.is_as_it_was();
}
