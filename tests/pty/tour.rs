//! The first minute of a new user: what the first screen says, and the tour.

use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};

const TOLD: &str = "t starts the tour: six keys in a running scenario.";

#[test]
fn first_start_tells_once() {
    let home = Arc::new(Home::new());
    let (cols, rows) = (80, 24);
    let mut first = Terminal::start_in(&home, Start { cols, rows, ..Start::default() });
    first.sees("checkout-launch");
    first.sees(TOLD);
    first.press("q");
    assert_eq!(first.ends(), 0);
    let mut second = Terminal::start_in(&home, Start { cols, rows, ..Start::default() });
    second.sees("checkout-launch");
    // The kept runs are read: nothing else comes.
    second.press("2");
    let screen = second.sees("No runs yet");
    assert!(!screen.contains(TOLD), "{screen}");
    second.press("q");
    assert_eq!(second.ends(), 0);
}

#[test]
fn unwritable_state_breaks_nothing() {
    let home = Arc::new(Home::new());
    home.write("file", "no folder");
    let state = home.path().join("file").display().to_string();
    let env = [("XDG_STATE_HOME", state.as_str())];
    for _ in 0..2 {
        let mut terminal = Terminal::start_in(&home, Start { env: &env, ..Start::default() });
        let screen = terminal.sees("checkout-launch");
        assert!(!screen.contains(TOLD), "{screen}");
        terminal.press("q");
        assert_eq!(terminal.ends(), 0);
    }
}

#[test]
fn tour_goes_through_six_steps() {
    let mut terminal = Terminal::start(Start { args: &["tour"], ..Start::default() });
    terminal.sees("Tour 1/6");
    terminal.sees("speaking");
    terminal.press(" ");
    terminal.sees("Tour 2/6");
    terminal.press("s");
    terminal.sees("Tour 3/6");
    terminal.press("f");
    terminal.sees("and what it changes then.");
    terminal.press(" ");
    terminal.sees("Tour 4/6");
    terminal.press("\u{1b}");
    terminal.sees("inspects it: its prompt");
    terminal.press("\r");
    terminal.sees("Tour 5/6");
    terminal.press("\u{1b}");
    terminal.sees("press it three times");
    terminal.press(",,,");
    terminal.sees("Tour 6/6");
    terminal.press("F");
    terminal.sees("Tour done");
    let form = terminal.sees("Fork of r-");
    assert!(form.contains("The run of the tour is not kept"), "{form}");
    terminal.press("\u{1b}");
    terminal.sees("That was the tour.");
    terminal.press("q");
    terminal.sees("That was the tour: ? lists all keys.");
    terminal.press("q");
    terminal.sees("live");
    terminal.press("y");
    assert_eq!(terminal.ends(), 0);
    let kept = terminal.home.run(&["runs", "--json"]).json();
    assert_eq!(kept.as_array().map(Vec::len), Some(0), "its run is not kept: {kept}");
}

#[test]
fn fork_of_tour_is_kept() {
    let mut terminal = Terminal::start(Start { args: &["tour"], ..Start::default() });
    terminal.sees("speaking");
    terminal.press(" ");
    terminal.sees("Tour 2/6");
    terminal.press("F");
    terminal.sees("Fork of r-");
    terminal.press("\u{13}");
    terminal.sees("You left the tour at step 2/6");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("\u{3}\u{3}");
    assert_eq!(terminal.ends(), 130);
    let kept = terminal.home.run(&["runs", "--json"]).json();
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{kept}");
}

#[test]
fn tour_needs_a_terminal() {
    let home = Home::new();
    let refused = home.run(&["tour"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("the tour needs a terminal"), "{refused:?}");
    assert!(refused.err.contains("--headless"), "{refused:?}");
}
