//! Kept runs in the dashboard: those of an earlier start, and a disk that is full for a while.

use std::sync::Arc;

use crate::support::binary::Home;
use crate::support::pty::{Start, Terminal};

#[test]
fn earlier_run_opens_read_only() {
    let home = Arc::new(Home::new());
    let args = &["run", "checkout-unanimous", "--instant"];
    let mut first = Terminal::start_in(&home, Start { args, ..Start::default() });
    first.sees("DONE");
    first.press("q");
    first.sees("1 Scenarios");
    first.press("q");
    assert_eq!(first.ends(), 0);

    let mut second = Terminal::start_in(&home, Start::default());
    second.sees("checkout-launch");
    second.press("2");
    let listed = second.sees_that("the run", |screen| {
        screen.contents().lines().any(|line| line.contains("r-") && line.contains("DONE"))
    });
    assert!(listed.contains("checkout-unanimous"), "{listed}");
    second.press("\r");
    second.sees("kept, ");
    second.press("q");
    second.sees("1 Scenarios");
    second.press("q");
    assert_eq!(second.ends(), 0);
    let rows = home.run(&["runs", "--json"]).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "opening a run keeps no other: {rows}");
}

/// The disk is full when the second reply comes.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_pauses_live_run() {
    use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts};
    use crate::support::full_disk::{UNDER, set_full};

    let endpoint = CountingEndpoint::of("front-desk");
    endpoint.hold(2, false);
    let env = endpoint.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, &**value)).collect();
    let args = &["run", "front-desk", "--live"];
    let start = Start { args, under: &UNDER, env: &env, ..Start::default() };
    let mut terminal = Terminal::start(start);
    endpoint.wait_until_held();
    set_full(terminal.pid(), true);
    endpoint.release();
    terminal.sees("paused, because the run cannot be stored");
    terminal.sees("by the store");
    terminal.sees("PAUSED");
    terminal.sees("no call starts until the run can be stored");
    assert_eq!(endpoint.prompts().len(), 2, "a run that cannot be stored asks no more");
    set_full(terminal.pid(), false);
    terminal.sees("DONE");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let log = terminal.home.run(&["export", "last"]).lines();
    assert_eq!(log.last().map(|line| &line["kind"]), Some(&"run.closed".into()));
    assert_eq!(endpoint.prompts().len(), ModelAttempts::of(&log).len());
}

#[cfg(target_os = "linux")]
#[test]
fn names_unkept_run_at_end() {
    use crate::support::full_disk::{UNDER, set_full};

    let args = &["run", "checkout-launch"];
    let mut terminal = Terminal::start(Start { args, under: &UNDER, ..Start::default() });
    terminal.sees("LIVE");
    set_full(terminal.pid(), true);
    terminal.sees("not kept");
    terminal.sees("DONE");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    let end = terminal.text();
    let named = end.lines().filter(|line| line.contains("this run is not kept"));
    assert_eq!(named.count(), 1, "{end}");
}

/// Another program holds the lock of the store when a live run starts, and for longer than it waits.
#[test]
fn locked_store_pauses_live_run() {
    use crate::support::counting_endpoint::CountingEndpoint;
    use crate::support::locked_store::StoreLock;

    let endpoint = CountingEndpoint::of("front-desk");
    let env = endpoint.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, &**value)).collect();
    let home = Arc::new(Home::new());
    assert_eq!(home.run(&["run", "checkout-unanimous", "--instant"]).code, Some(0));
    let lock = StoreLock::of(&home);
    let args = &["run", "front-desk", "--live"];
    let mut terminal = Terminal::start_in(&home, Start { args, env: &env, ..Start::default() });
    terminal.sees("another program holds the lock of the store");
    terminal.sees("paused, because the run cannot be stored");
    terminal.sees("PAUSED");
    assert_eq!(endpoint.prompts().len(), 0, "nothing is paid that cannot be stored");
    lock.release();
    terminal.sees("DONE");
    terminal.press("q");
    terminal.sees("1 Scenarios");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(terminal.home.run(&["runs", "--json"]).json()[0]["status"], "ended");
}

#[test]
fn signal_ends_dashboard_with_locked_store() {
    use crate::support::locked_store::StoreLock;
    use std::time::{Duration, Instant};

    let home = Arc::new(Home::new());
    assert_eq!(home.run(&["run", "checkout-unanimous", "--instant"]).code, Some(0));
    let _lock = StoreLock::of(&home);
    let args = &["run", "checkout-unanimous", "--instant"];
    let terminal = Terminal::start_in(&home, Start { args, ..Start::default() });
    terminal.sees("another program holds the lock of the store");
    let asked = Instant::now();
    terminal.signal("TERM");
    assert_eq!(terminal.ends(), 143);
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
}
