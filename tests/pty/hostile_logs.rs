//! Logs from elsewhere, opened in the dashboard.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::binary::Home;
use crate::support::hostile_logs::{HostileLog, hostile_logs};
use crate::support::pty::{Start, Terminal};

/// So long after a key nothing new comes on the screen.
const QUIET: Duration = Duration::from_millis(100);

/// Opens a log, looks at all of it, and leaves.
fn look_at(log: &HostileLog) {
    let home = Arc::new(Home::new());
    std::fs::write(home.path().join("log.jsonl"), &log.bytes).expect("written");
    let args = &["open", "./log.jsonl"];
    let mut terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("5 Events");
    // Each pane: its first and last row, their details and prompts, and earlier times.
    for pane in ["1", "2", "3", "4", "5"] {
        for keys in ["g\r", "gp", "G\r", "Gp", ",,"] {
            terminal.press(pane);
            terminal.press(keys);
            // A key right after Esc would be another key.
            terminal.quiet_for(QUIET);
            terminal.press("\u{1b}");
            terminal.quiet_for(QUIET);
        }
    }
    assert_eq!(terminal.ends_on("q"), 0, "{}", log.name);
}

#[test]
fn a_hostile_log_breaks_no_pane() {
    let logs = hostile_logs(2_000, 500_000);
    let taken: Vec<&HostileLog> = logs.iter().filter(|log| !log.resume.is_empty()).collect();
    for some in taken.chunks(4) {
        thread::scope(|scope| {
            for log in some {
                scope.spawn(|| look_at(log));
            }
        });
    }
}
