//! Runs that were started while the clock was wrong: their logs say so.

use serde_json::Value;

use crate::support::binary::{Ended, Home, without_times};

/// Imports the first events of a log as if the run had started at this time.
fn import_as_started_at(home: &Home, log: &[Value], wall_ms: u64) -> Ended {
    let mut log = log.to_vec();
    log[0]["wall_ms"] = wall_ms.into();
    let text: String = log.iter().map(|line| format!("{line}\n")).collect();
    home.write("log.jsonl", &text);
    let path = home.path().join("log.jsonl").display().to_string();
    home.run(&["import", &path])
}

fn a_run(home: &Home) -> Vec<Value> {
    let ran = home.run(&["run", "checkout-launch", "--instant", "--format", "jsonl"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.lines()
}

#[test]
fn ages_and_last_ignore_wrong_clock() {
    let home = Home::new();
    let log = a_run(&home);
    let now = log[0]["wall_ms"].as_u64().expect("a time");
    let year = 365 * 86_400_000;
    let events = &log[..log.len() - 1];
    for wall_ms in [now + year, 0, u64::MAX] {
        let imported = import_as_started_at(&home, events, wall_ms);
        assert_eq!((imported.code, imported.err.as_str()), (Some(0), ""), "{wall_ms}");
    }
    let last = a_run(&home);
    let shown = home.run(&["show", "last", "--format", "jsonl"]).lines();
    assert_eq!(shown[0]["run"], last[0]["run"]);
    let table = home.run(&["runs"]).out;
    let ages: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(ages.len(), 5, "{table}");
    assert_eq!(ages[..2], ["0s", "0s"], "what starts in the future has just started: {table}");
    assert!(!table.contains(" -"), "{table}");
    assert_eq!(home.run(&["runs"]).out.lines().count(), 5, "none of them is removed");
}

#[test]
fn resumes_run_despite_wrong_clock() {
    let home = Home::new();
    let log = a_run(&home);
    let now = log[0]["wall_ms"].as_u64().expect("a time");
    let outcome = without_times(&home.run(&["show", "last"]).json());
    for wall_ms in [0, now + 365 * 86_400_000, u64::MAX] {
        import_as_started_at(&home, &log[..20], wall_ms);
        let resumed = home.run(&["resume", "last", "--format", "json"]);
        assert_eq!(without_times(&resumed.json()), outcome, "{wall_ms}: {}", resumed.err);
        let again = home.run(&["export", "last"]).lines();
        let resumed = again.iter().find(|line| line["kind"] == "run.resumed").expect("an event");
        let downtime = resumed["downtime_ms"].as_u64().expect("a time");
        assert_eq!(downtime > 0, wall_ms == 0, "{wall_ms}: {downtime}");
    }
}
