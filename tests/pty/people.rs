//! Questions in the real dashboard: a run that was killed while it waited, continued and answered.

use std::sync::Arc;
use std::time::Duration;

use crate::support::binary::Home;
use crate::support::people::DESK;
use crate::support::pty::{Start, Terminal};

#[test]
fn killed_question_is_answered_after_restart() {
    let home = Arc::new(Home::new());
    home.write("desk.toml", DESK);
    let args = &["run", "desk.toml"];
    let first = Terminal::start_in(&home, Start { args, ..Start::default() });
    first.sees("WAITS");
    while home.run(&["export", "last"]).out.matches("question.asked").count() == 0 {}
    first.signal("KILL");

    let mut second = Terminal::start_in(&home, Start::default());
    second.sees("checkout-launch");
    second.press("2");
    second.sees("interrupted");
    second.press("j ");
    second.sees("WAITS");
    second.press("a");
    second.sees("Inbox");
    second.press("a");
    second.sees("q1 approval for operator");
    second.press("G");
    press_until(&mut second, "y", "y once more approves it");
    press_until(&mut second, "y", "q2 turn for manager");
    second.press("We are.");
    second.sees("We are.");
    press_until(&mut second, "\x13", "DONE");
    let log = home.run(&["export", "last"]).lines();
    let answers: Vec<_> = log.iter().filter(|line| line["kind"] == "question.answered").collect();
    assert!(answers.len() == 2 && answers.iter().all(|line| line["by"] == "person"), "{answers:?}");
}

/// A key right after a card has changed has no effect: presses it until it has.
fn press_until(terminal: &mut Terminal, key: &str, text: &str) {
    while !terminal.text().contains(text) {
        terminal.press(key);
        terminal.quiet_for(Duration::from_millis(100));
    }
}
