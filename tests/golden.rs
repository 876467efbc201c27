//! The log's form, held. `golden/v1/facts.jsonl` has a line for each kind of event and each of its
//! shapes, as version 1 of the schema wrote them. `golden/logs.txt` has the digests of whole logs and
//! outcomes of the shipped scenarios: a change of structure leaves them as they are.
//! `ROUNDTABLE_BLESS=1` writes the digests anew.

mod table;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use roundtable::base::digest::sha256_of_text;
use roundtable::engine::Launch;
use roundtable::event::{Event, EventKind, RunId, World};
use roundtable::scenario::load;
use roundtable::scenario::shipped;

const V1: &str = include_str!("golden/v1/facts.jsonl");

#[test]
fn each_line_is_read_and_written_back_as_it_was() {
    let mut wrong = Vec::new();
    for line in V1.lines() {
        let event = Event::from_line(line).expect("an event");
        let value: serde_json::Value = serde_json::from_str(line).expect("json");
        let kind = value["kind"].as_str().expect("a kind");
        if matches!(event.kind, EventKind::Unknown { .. }) && kind != "invented.later" {
            wrong.push(format!("not read: {line}"));
            continue;
        }
        if event.kind.name() != kind {
            wrong.push(format!("read as {}: {line}", event.kind.name()));
        }
        let written = event.to_line().expect("a line");
        if written != line {
            wrong.push(format!("written otherwise:\n  {line}\n  {written}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

type Flags = Vec<(String, bool)>;

/// Each shipped scenario that needs neither a folder nor a network, with the positions of its flags.
fn endings() -> Vec<(&'static str, Flags, bool)> {
    let mut endings = Vec::new();
    for shipped in shipped() {
        if ["real-services", "own-notes", "web-status"].contains(&shipped.name) {
            continue;
        }
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        for instant in [true, false] {
            endings.push((shipped.name, Vec::new(), instant));
            for flag in &scenario.flags {
                endings.push((shipped.name, vec![(flag.name.to_string(), !flag.default)], instant));
            }
        }
    }
    endings
}

/// The digests of a run's log and of its outcome. The id of the run and the time of day are left out.
async fn digests(name: &str, flags: &[(String, bool)], instant: bool) -> (String, String) {
    let found = shipped().iter().find(|shipped| shipped.name == name).expect("a shipped scenario");
    let scenario = load(found.text, found.origin(), &[]).expect("a good scenario");
    let mut launch = Launch::scripted(Arc::new(scenario), instant);
    launch.seed = Some(7);
    launch.flags = flags.iter().map(|(flag, on)| (flag.as_str().into(), *on)).collect();
    let run = table::engine().start(launch);
    let facts = table::facts(&run).await;
    let mut log = String::new();
    let mut replaced: Vec<Event> = Vec::new();
    for fact in &facts {
        let mut fact = Event::clone(fact);
        if let EventKind::RunStarted(started) = &mut fact.kind {
            let started = Arc::make_mut(started);
            started.run = RunId::new("golden");
            started.wall_ms = 0;
        }
        let _ = writeln!(log, "{}", fact.to_line().expect("a line"));
        replaced.push(fact);
    }
    let world = World::from_events(replaced.iter());
    let outcome = serde_json::to_string(&world.outcome().expect("an outcome")).expect("json");
    (sha256_of_text(&log), sha256_of_text(&outcome))
}

#[test]
fn whole_logs_and_outcomes_are_what_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/logs.txt");
    let mut found = String::new();
    for (name, flags, instant) in endings() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let (log, outcome) = runtime.block_on(digests(name, &flags, instant));
        let flags: String = flags
            .iter()
            .map(|(flag, on)| format!(" {flag}={}", if *on { "on" } else { "off" }))
            .collect();
        let time = if instant { "instant" } else { "in-time" };
        let _ = writeln!(found, "{name}{flags} {time} log={log} outcome={outcome}");
    }
    if std::env::var_os("ROUNDTABLE_BLESS").is_some() {
        std::fs::write(&path, &found).expect("the digests");
    }
    let held = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<_> =
        found.lines().filter(|line| !held.lines().any(|it| it == *line)).collect();
    assert!(changed.is_empty() && held.lines().count() == found.lines().count(), "{changed:#?}");
}

/// A log in memory counts its weight by this; a kind that makes all others larger belongs in a box.
#[test]
fn an_event_stays_small() {
    assert!(size_of::<EventKind>() <= 88, "{} bytes", size_of::<EventKind>());
}
