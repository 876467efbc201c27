//! The log's form, held. `golden/v2/facts.jsonl` has a line for each kind of event and each of its
//! shapes.
//! `golden/logs.txt` has the digests of whole logs and outcomes of the shipped scenarios: a change of
//! structure leaves them as they are. `ROUNDTABLE_BLESS=1` writes the digests anew.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::base::sha256_of_text;
use crate::engine::Launch;
use crate::log::event::{Event, EventKind, RunId, World};
use crate::log::facts::{PatternFact, PatternPlan};
use crate::scenario::patterns::research::SamePage;
use crate::scenario::{load, shipped};
use crate::support::table;

const V2: &str = include_str!("../../golden/v2/facts.jsonl");

/// The event of a line, and its fault; none if its kind is known. The file ends with a kind that no
/// version has.
fn read(line: &str) -> (Event, Option<String>) {
    let event = Event::from_line(line).expect("an event");
    let is_known = !matches!(event.kind, EventKind::Unknown { .. });
    let wrong = is_known == (event.kind.name() == "invented.later");
    (event, wrong.then(|| format!("not read: {line}")))
}

#[test]
fn version_2_lines_round_trip() {
    let mut wrong = Vec::new();
    for line in V2.lines() {
        let (event, unread) = read(line);
        wrong.extend(unread);
        let value: serde_json::Value = serde_json::from_str(line).expect("json");
        if value["kind"] != event.kind.name() {
            wrong.push(format!("read as {}: {line}", event.kind.name()));
        }
        let written = event.to_line().expect("a line");
        if written != line {
            wrong.push(format!("written otherwise:\n  {line}\n  {written}"));
        }
        // Total: an event without the others changes something or nothing, and never fails.
        World::new().apply(&event);
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn other_versions_are_refused() {
    for line in V2.lines() {
        for (version, advice) in [
            (0, "move the file aside"),
            (1, "move the file aside"),
            (3, "use a newer roundtable"),
            (99, "use a newer roundtable"),
        ] {
            let old = line.replacen("\"v\":2", &format!("\"v\":{version}"), 1);
            let error = Event::from_line(&old).expect_err("refused").to_string();
            let why = format!(
                "it has version {version} of the events, and this program reads version 2; {advice}"
            );
            assert_eq!(error, why);
        }
    }
}

#[test]
fn accepts_missing_version() {
    for version in ["", "\"v\":2,"] {
        let fields = r#""kind":"table.flipped","why":"x","after":1,"b":{"said":2,"a":1}}"#;
        let line = format!("{{{version}\"seq\":3,\"at_us\":5,\"span\":1,{fields}");
        let written = Event::from_line(&line).expect("an event").to_line().expect("a line");
        assert_eq!(written, format!("{{\"v\":2,\"seq\":3,\"at_us\":5,\"span\":1,{fields}"));
    }
}

#[test]
fn every_kind_stands_in_the_file() {
    let mut names = EventKind::NAMES.to_vec();
    names.extend(PatternFact::NAMES.into_iter().flatten());
    let missing: Vec<_> =
        names.iter().filter(|name| !V2.contains(&format!(r#""kind":"{name}""#))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name belongs to one enum");
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
    let scenario =
        load(found.text, found.origin(), &table::shortened(name)).expect("a good scenario");
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
            // The text of the scenario changes with each comment in its file.
            started.launch = None;
            // Earlier heads do not have these rules; the rest of the log is as it was.
            if let PatternPlan::Research(plan) = &mut started.plan {
                let plan = Arc::make_mut(plan);
                (plan.same_page, plan.folds_signs) = (SamePage::Path, false);
            }
        }
        // A deadline is a time of the wall, and so is that of its answer.
        if let EventKind::QuestionAsked(asked) = &mut fact.kind {
            let asked = Arc::make_mut(asked);
            asked.due_ms = asked.due_ms.map(|_| 0);
        }
        if let EventKind::QuestionAnswered(answered) = &mut fact.kind {
            Arc::make_mut(answered).at_ms = None;
        }
        let _ = writeln!(log, "{}", fact.to_line().expect("a line"));
        replaced.push(fact);
    }
    let world = World::from_events(replaced.iter());
    let outcome = serde_json::to_string(&world.outcome().expect("an outcome")).expect("json");
    (sha256_of_text(&log), sha256_of_text(&outcome))
}

#[test]
fn logs_and_outcomes_match_golden() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/logs.txt");
    let mut found = String::new();
    let new_runtime = crate::support::table::paused_runtime;
    // The first search of a process fills the index of the shipped documents, and says so.
    new_runtime().block_on(digests("rumour-mill", &[], true));
    for (name, flags, instant) in endings() {
        let runtime = new_runtime();
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
