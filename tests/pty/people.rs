//! Questions in the real dashboard: a run that was killed while it waited, continued and answered.

use std::sync::Arc;
use std::time::Duration;

use crate::support::binary::Home;
use crate::support::people::DESK;
use crate::support::pty::{Start, Terminal};

#[test]
fn killed_question_is_answered_after_restart() {
    for opened in [false, true] {
        answer_after_restart(opened, true);
    }
}

#[test]
fn run_left_for_later_continues() {
    answer_after_restart(true, false);
}

/// From home, or `opened` by its name; after it was `killed`, or left for later.
fn answer_after_restart(opened: bool, killed: bool) {
    let home = Arc::new(Home::new());
    home.write("desk.toml", DESK);
    let args = &["run", "desk.toml"];
    let mut first = Terminal::start_in(&home, Start { args, ..Start::default() });
    first.sees("WAITS");
    while home.run(&["export", "last"]).out.matches("question.asked").count() == 0 {}
    if killed {
        first.signal("KILL");
    } else {
        first.press("q");
        first.sees("runs of this session");
        first.press("q");
        first.sees("[ l later ]");
        first.press("l");
        assert_eq!(first.ends(), 0);
        first.sees("roundtable resume r-");
    }

    let args: &[&str] = if opened { &["open", "last"] } else { &[] };
    let mut second = Terminal::start_in(&home, Start { args, ..Start::default() });
    if opened {
        second.sees("INTERRUPTED");
        second.press(" ");
    } else {
        second.sees("checkout-launch");
        second.press("2");
        second.sees("interrupted");
        second.press("j ");
    }
    second.sees("WAITS");
    second.press("a");
    second.sees("Inbox");
    second.press("a");
    second.sees("q1 approval: you answer as operator");
    second.press("G");
    press_until(&mut second, "y", "waits for manager");
    // The card moves on by itself if the next question comes at once.
    press_until(&mut second, "a", "q2 turn: you answer as manager");
    second.press("We are.");
    second.sees("We are.");
    press_until(&mut second, "\x13", "DONE");
    let log = home.run(&["export", "last"]).lines();
    let answers: Vec<_> = log.iter().filter(|line| line["kind"] == "question.answered").collect();
    assert!(answers.len() == 2 && answers.iter().all(|line| line["by"] == "person"), "{answers:?}");
}

/// An editor that fails has shown nothing; one that succeeds counts as reading.
#[test]
fn failed_editor_is_no_reading() {
    for (editor, prompt) in [("false", "read to the end first"), ("true", "press y again")] {
        let home = Arc::new(Home::new());
        home.write("desk.toml", DESK);
        let (args, env) = (&["run", "desk.toml"], &[("EDITOR", editor)]);
        let start = Start { args, env, cols: 80, rows: 24, ..Start::default() };
        let mut terminal = Terminal::start_in(&home, start);
        terminal.sees("WAITS");
        terminal.press("a");
        terminal.sees("Inbox");
        terminal.press("a");
        terminal.sees("q1 approval: you answer as operator");
        press_until(&mut terminal, "y", "read to the end first");
        terminal.press("E");
        terminal.loses("read to the end first");
        terminal.quiet_for(Duration::from_millis(500));
        press_until(&mut terminal, "y", prompt);
        terminal.signal("TERM");
        assert_eq!(terminal.ends(), 143);
    }
}

/// What a question is about stays inside the dashboard.
#[test]
fn notification_has_only_the_number() {
    for notify in ["osc9", "bell"] {
        let home = Arc::new(Home::new());
        home.write("desk.toml", &DESK.replace("ch_2", "SECRET-IBAN"));
        home.write("config/roundtable/config.toml", &format!("[ui]\nnotify = {notify:?}\n"));
        let args = &["run", "desk.toml"];
        let terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
        terminal.sees("WAITS");
        terminal.quiet_for(Duration::from_millis(700));
        terminal.signal("TERM");
        assert_eq!(terminal.ends(), 143);
        let bytes = terminal.bytes();
        let text = String::from_utf8_lossy(&bytes);
        let told: Vec<&str> = text.split("\u{1b}]9;").skip(1).collect();
        match notify {
            "osc9" => {
                let told = told[0].split('\u{1b}').next().expect("a text");
                assert_eq!(told, "roundtable: desk waits: 1 open question");
            }
            _ => assert!(text.contains('\u{7}') && told.is_empty()),
        }
        for title in text.split("\u{1b}]2;").skip(1) {
            let title = title.split(['\u{7}', '\u{1b}']).next().expect("a title");
            assert!(!title.contains("SECRET"), "{title}");
        }
    }
}

/// A key has no effect until the card has been there for a moment: presses it until it has one.
pub fn press_until(terminal: &mut Terminal, key: &str, text: &str) {
    for _ in 0..20 {
        if terminal.text().contains(text) {
            return;
        }
        terminal.press(key);
        terminal.quiet_for(Duration::from_millis(1_100));
    }
    panic!("never on the screen: {text}\n{}", terminal.text());
}
