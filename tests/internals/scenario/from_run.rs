//! `new --from-run`: what was said in a run as a scenario, which plays to the same outcome.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use roundtable::engine::Launch;
use roundtable::log::event::{Event, World};
use roundtable::scenario;
use roundtable::scenario::{Scenario, ScenarioOrigin, ShippedScenario};
use serde_json::Value;

use crate::host::from_run::scenario_of_run;
use crate::log::event::redact::TextRedactor;
use crate::log::event::{EventKind, Reply};
use crate::support::table;

/// The events of a run of this scenario with its latencies, in simulated time.
fn played(scenario: Scenario) -> Vec<Arc<Event>> {
    let launch = Launch::scripted(Arc::new(scenario), false);
    table::paused_runtime().block_on(async { table::facts(&table::engine().start(launch)).await })
}

/// Every field of the outcome but the id of the run.
fn outcome(events: &[Arc<Event>]) -> Value {
    let world = World::from_events(events.iter().map(|event| &**event));
    let outcome = world.outcome().expect("an outcome");
    let mut outcome = serde_json::to_value(outcome).expect("JSON");
    outcome.as_object_mut().expect("fields").remove("run_id");
    outcome
}

fn from_run(events: &[Arc<Event>]) -> (String, Scenario) {
    let text = scenario_of_run(events).expect("a scenario");
    let origin = ScenarioOrigin::File("from-run.toml".into());
    match scenario::load(&text, origin, &[]) {
        Ok(scenario) => (text, scenario),
        Err(problems) => panic!("{}\n{text}", problems.pretty(false)),
    }
}

/// Ids of runs differ, and some results name them.
fn without_ids(text: String, events: &[Arc<Event>]) -> String {
    let world = World::from_events(events.iter().map(|event| &**event));
    text.replace(world.head.as_ref().expect("a head").run.as_str(), "RUN")
}

/// The text of the scenario of a run, if it plays to the same outcome; else the first differences.
fn same_outcome(scenario: Scenario) -> Result<String, String> {
    let first = played(scenario);
    let (text, again) = from_run(&first);
    let second = played(again);
    let [first, second] = [&first, &second].map(|events| {
        without_ids(serde_json::to_string_pretty(&outcome(events)).expect("JSON"), events)
    });
    let other = first.lines().zip(second.lines()).filter(|(a, b)| a != b).take(12);
    let lines: Vec<String> = other.map(|(a, b)| format!("- {a}\n+ {b}\n")).collect();
    if first == second { Ok(text) } else { Err(lines.concat()) }
}

fn loaded(shipped: &ShippedScenario, sets: &[&str]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    scenario::load(shipped.text, shipped.origin(), &sets).expect("a good scenario")
}

#[test]
fn shipped_scenarios_play_to_same_outcome() {
    let named = |name| scenario::shipped().iter().find(|it| it.name == name).expect("shipped");
    let other = table::offline_scenarios().filter_map(|name| {
        let other = same_outcome(loaded(named(name), &[])).err()?;
        Some(format!("{name}:\n{other}"))
    });
    let other: Vec<String> = other.collect();
    assert!(other.is_empty(), "{}", other.join("\n"));
}

/// What a run was started with and its overrides are in the file, as is what its tools gave.
#[test]
fn overrides_and_start_are_kept() {
    let named = |name| scenario::shipped().iter().find(|it| it.name == name).expect("shipped");
    for (name, sets) in [
        ("support-swarm", &["inputs.device=known", "title=A \"quoted\" {{customer}}"][..]),
        ("refund-desk", &["inputs.amount_usd=700"]),
        ("slow-specialist", &["agents.night_shift.node_timeout_s=12"]),
        ("vendor-brownout", &["resilience.turns=3", "budget.max_seconds=60", "seed=7"]),
        ("fraud-check", &["tools.llm.retries.max_attempts=3", "script[0].latency=\"3s\""]),
        ("dev-team", &["tools.find_tickets.fixture.rows[0].latency=\"2s\""]),
    ] {
        let text = same_outcome(loaded(named(name), sets)).expect(name);
        assert!(text.starts_with("# What was said in r-"), "{text}");
    }
}

proptest! {
    /// Any text of a model comes back as it was, and so do any arguments.
    #[test]
    fn any_text_is_read_back(
        text in r"(\PC|[\{\}\\'\x00-\x1f\x7f]|\{\{|[\u{80}-\u{a0}\u{2028}\u{feff}])*",
        arguments in r"(\PC|[\{\}\\'\x00-\x1f]|\{\{)*",
    ) {
        let mut events = swarm_log().to_vec();
        let changed = events.iter_mut().find_map(|event| {
            let EventKind::AttemptAnswered(reply) = &event.kind else { return None };
            let mut reply = Reply::clone(reply);
            let mut call = reply.tool_calls.first()?.clone();
            (reply.text, call.arguments) = (text.as_str().into(), arguments.as_str().into());
            reply.tool_calls = [call].into();
            *event = Arc::new(Event { kind: EventKind::AttemptAnswered(Arc::new(reply)), ..Event::clone(event) });
            Some(())
        });
        prop_assert!(changed.is_some());
        let (written, scenario) = from_run(&events);
        let row = scenario.script.rows.first().expect("a row");
        prop_assert_eq!(&*row.reply_text, &text, "{}", written);
        prop_assert_eq!(&*row.calls[0].arguments, &arguments, "{}", written);
    }
}

/// A log of the swarm, played once.
fn swarm_log() -> &'static [Arc<Event>] {
    static LOG: LazyLock<Vec<Arc<Event>>> = LazyLock::new(|| table::shipped_log("support-swarm"));
    &LOG
}

#[test]
fn damaged_logs_are_refused() {
    let whole = swarm_log().to_vec();
    let refused =
        |events: &[Arc<Event>]| format!("{:#}", scenario_of_run(events).expect_err("refused"));
    let mut hole = whole.clone();
    hole.remove(5);
    assert!(refused(&hole).contains("events are missing"), "{}", refused(&hole));
    assert!(refused(&whole[1..]).contains("no head"), "{}", refused(&whole[1..]));
    let mut redaction = TextRedactor::new([7; 32]);
    let redacted: Vec<_> =
        whole.iter().map(|event| Arc::new(redaction.redact(Event::clone(event)))).collect();
    assert!(refused(&redacted).contains("redacted"), "{}", refused(&redacted));
    // Without its end it says so.
    let (text, _) = from_run(&whole[..whole.len() - 1]);
    assert!(text.contains("# TODO: the log has no end"), "{text}");
}
