//! However the dashboard ends, and whenever it is sent away: the terminal is as it was.
#![cfg(unix)]

mod binary;
mod pty;

use pty::{Start, Terminal};

fn live() -> Terminal {
    let args = &["run", "checkout-launch"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("speaking");
    terminal
}

#[test]
fn signals_end_it_with_their_own_code() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let terminal = live();
        terminal.signal(signal);
        assert_eq!(terminal.ends(), code, "{signal}");
        // What it leaves behind may still be on its way when it has ended.
        let left = terminal.sees("CANCELLED");
        assert!(left.contains("checkout-launch"), "{left}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_gives_the_terminal_back_and_says_what_happened() {
    for (place, says) in [("loop", "in the loop"), ("task", "in a task")] {
        let args = &["panic-test", place];
        let terminal = Terminal::start(Start { args, ..Start::default() });
        assert_eq!(terminal.ends(), 101, "{place}");
        let text = terminal.sees(says);
        assert!(text.contains("bug"), "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let mut terminal = live();
    terminal.press("\u{1a}");
    terminal.waits_for_state('T');
    terminal.is_as_it_was();
    terminal.signal("CONT");
    terminal.sees_that("the dashboard again", |screen| {
        screen.alternate_screen() && screen.contents().contains("Round table")
    });
    terminal.sees("DONE");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[cfg(target_os = "linux")]
#[test]
fn stopped_from_outside_it_comes_back_as_well() {
    let terminal = live();
    terminal.signal("STOP");
    terminal.waits_for_state('T');
    terminal.signal("CONT");
    terminal.sees("DONE");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn an_argument_that_is_wrong_touches_no_screen() {
    let args = &["run", "checkout-lunch"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("checkout-launch");
    assert!(!terminal.text().is_empty());
    let bytes = terminal.bytes();
    assert!(!String::from_utf8_lossy(&bytes).contains("\u{1b}[?1049h"));
}
