//! The dashboard in a real terminal: what a person does from the first screen to the last.
use std::time::Duration;

use crate::support::pty::{Start, Terminal};

/// On the first screen, with the scenarios listed.
fn home() -> Terminal {
    let terminal = Terminal::open();
    terminal.sees("checkout-launch");
    terminal
}

/// In a run of the scenario that is selected at first, resting before its first round.
fn resting() -> Terminal {
    let args = &["run", "checkout-launch", "--instant", "--pause-at", "round:1"];
    let terminal = Terminal::start(Start { args, ..Start::default() });
    terminal.sees("PAUSED");
    terminal
}

#[test]
fn enter_starts_scenario_q_leaves_summary() {
    let mut terminal = home();
    terminal.press("\r");
    terminal.sees("round 1 of 3");
    terminal.sees("speaking");
    terminal.press("K");
    terminal.sees("End run");
    terminal.press("y");
    terminal.sees("CANCELLED");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let left = terminal.sees("CANCELLED");
    assert!(left.contains("checkout-launch"), "{left}");
}

#[test]
fn pauses_steps_and_seats_lawyer() {
    let mut terminal = resting();
    terminal.sees("paused before round 1");
    // Past one boundary: the round opens, and its seats stand at theirs.
    terminal.press("s");
    terminal.sees_that("the seats at their boundaries", |screen| {
        let text = screen.contents();
        text.contains("round.started") && text.contains("PAUSED")
    });
    // To the next round.
    terminal.press("S");
    terminal.sees("paused before round 2");
    terminal.press("f");
    terminal.sees("joins at round 2");
    terminal.press(" ");
    terminal.sees("on (pending)");
    // A key that follows Escape at once is a key with Alt.
    terminal.press("\u{1b}");
    terminal.loses("on (pending)");
    terminal.press("S");
    terminal.sees("paused before round 3");
    let text = terminal.sees("joined in R2");
    let lawyer = text.lines().find(|line| line.contains("✓ legal_analyst")).unwrap_or_default();
    assert!(lawyer.contains("◇ .55"), "it spoke in round 2 and not before:\n{text}");
    terminal.press(" ");
    terminal.sees("DONE");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let left = terminal.sees("go with caution");
    assert!(left.contains("3 rounds"), "{left}");
}

/// The same on a run that is going, as a person in a hurry does it.
#[test]
fn pauses_running_run_and_seats_lawyer() {
    let mut terminal = home();
    terminal.press("\r");
    terminal.sees("speaking");
    terminal.press(" ");
    terminal.sees("PAUSED");
    terminal.press(" ");
    terminal.sees("LIVE");
    terminal.press("f");
    terminal.sees("If it is switched");
    terminal.press(" ");
    terminal.sees("on (pending)");
    terminal.press("\x1b");
    terminal.sees("of 4 accepted");
}

#[test]
fn help_opens_over_everything_and_closes() {
    let mut terminal = home();
    terminal.press("?");
    terminal.sees("Help");
    terminal.press("\u{1b}");
    terminal.loses("Help");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn ctrl_c_asks_and_twice_quits() {
    let mut terminal = resting();
    terminal.press("\u{3}");
    terminal.sees("End run");
    terminal.press("n");
    terminal.loses("End run");
    terminal.sees("PAUSED");
    terminal.press("\u{3}");
    terminal.sees("End run");
    terminal.press("\u{3}");
    assert_eq!(terminal.ends(), 130);
    terminal.sees("CANCELLED");
}

#[test]
fn survives_extreme_resizing() {
    let terminal = resting();
    for (cols, rows) in [(1, 1), (200, 2), (3, 50), (59, 16), (60, 15)] {
        terminal.resize(cols, rows);
    }
    terminal.sees("60x15");
    terminal.resize(80, 24);
    terminal.sees("PAUSED");
    terminal.resize(200, 50);
    terminal.sees("Round table");
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn idle_dashboard_writes_nothing() {
    let mut terminal = resting();
    terminal.press("q");
    // The scenarios are read in the background: the list may come after the page is drawn.
    terminal.sees("checkout-launch");
    let before = terminal.quiet_for(Duration::from_secs(1));
    let after = terminal.quiet_for(Duration::from_secs(3));
    assert_eq!(after, before, "{:?}", String::from_utf8_lossy(&terminal.bytes()[before..]));
}

#[test]
fn pasted_lines_start_nothing() {
    let mut terminal = home();
    terminal.press("n");
    let text = terminal.sees("roundtable run");
    let row = text.lines().position(|line| line.contains(" Goal ")).expect("a row");
    terminal.click(40, u16::try_from(row).expect("on the screen"));
    terminal.press("\u{1b}[200~first line\rsecond line\u{1b}[201~");
    let text = terminal.sees("second line");
    assert!(!text.contains("first linesecond"), "two lines:\n{text}");
    assert!(text.contains("roundtable run"), "a line end starts nothing");
    // Out of the text first, then out of the form.
    terminal.press("\u{1b}");
    terminal.sees("y copies the command line");
    terminal.press("\u{1b}");
    terminal.sees("Discard your changes?");
    terminal.press("y");
    terminal.loses("roundtable run");
}

#[test]
fn a_click_selects() {
    let mut terminal = home();
    let text = terminal.text();
    let row = text.lines().position(|line| line.contains("checkout-deadlock")).expect("a row");
    terminal.click(10, u16::try_from(row).expect("on the screen"));
    terminal.sees("3 checkout-deadlock");
}
