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
    press_until(&mut second, "y", "waits for manager");
    // The card moves on by itself if the next question comes at once.
    press_until(&mut second, "a", "q2 turn for manager");
    second.press("We are.");
    second.sees("We are.");
    press_until(&mut second, "\x13", "DONE");
    let log = home.run(&["export", "last"]).lines();
    let answers: Vec<_> = log.iter().filter(|line| line["kind"] == "question.answered").collect();
    assert!(answers.len() == 2 && answers.iter().all(|line| line["by"] == "person"), "{answers:?}");
}

/// A key has no effect until the card has been there for a moment: presses it until it has one.
fn press_until(terminal: &mut Terminal, key: &str, text: &str) {
    for _ in 0..20 {
        if terminal.text().contains(text) {
            return;
        }
        terminal.press(key);
        terminal.quiet_for(Duration::from_millis(500));
    }
    panic!("never on the screen: {text}\n{}", terminal.text());
}
