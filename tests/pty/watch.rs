//! A program that is watched in the real dashboard.

use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};
use crate::support::senders::SENDER;

#[test]
fn program_is_shown_while_it_runs() {
    let home = Arc::new(Home::new());
    home.write("desk.py", SENDER);
    let args = &["watch", "python3", "desk.py", "waits"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    // It has begun and not ended: its tool is open.
    terminal.sees("refund()");
    terminal.sees("LIVE");
    terminal.press(" ");
    terminal.sees("it is only watched");
    terminal.press("i");
    terminal.sees("Line for the program");
    terminal.press("re_77");
    terminal.sees("re_77");
    terminal.press("\x13");
    terminal.sees("DONE");
    terminal.sees("Refunded.");
    // Its output is on the terminal after the dashboard.
    assert_eq!(terminal.ends_on("qq"), 0);
    assert!(terminal.text().contains("got re_77"), "{}", terminal.text());
}

#[test]
fn quitting_ends_the_program() {
    let home = Arc::new(Home::new());
    let args = &["watch", "--name", "sleeper", "sh", "-c", "echo begun; sleep 1000"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("begun");
    terminal.sees("waits for the first span");
    terminal.press("q");
    terminal.sees("1 live");
    terminal.press("q");
    terminal.sees("Quit and end it?");
    // SIGINT ends it.
    assert_eq!(terminal.ends_on("y"), 130);
}
