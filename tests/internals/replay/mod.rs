//! Runs that are continued from their log: wherever the log ends, the run comes to the same outcome,
//! keeps every stored event as it was, and asks nothing again that has a stored answer.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::{Launch, Resumption};
use crate::log::bus::{Recording, ReplayError};
use crate::log::event::{Event, EventKind, Initiator, World};
use crate::log::facts::PatternPlan;
use crate::scenario::spec::InDoubt;
use crate::scenario::{Scenario, load, shipped};
use crate::support::table::{engine, facts, shortened};

mod commands;
mod fork;
mod in_doubt;
mod same_moment;
mod scenarios;

/// A shipped scenario.
fn scenario(name: &str) -> Arc<Scenario> {
    let shipped = shipped().iter().find(|it| it.name == name).expect("a shipped scenario");
    Arc::new(load(shipped.text, shipped.origin(), &shortened(name)).expect("a good scenario"))
}

/// The first events of a log, as a store gives them back.
fn stored(events: &[Arc<Event>]) -> Recording {
    let lines = events.iter().map(|event| {
        let line = event.to_line().expect("JSON");
        Arc::new(Event::from_line(&line).expect("an event"))
    });
    Recording::new(lines.collect::<Vec<_>>()).expect("a recording")
}

/// Continues a run from these events; all events that its log has in the end.
async fn resume(launch: Launch, recording: Recording) -> Result<Vec<Arc<Event>>, ReplayError> {
    let engine = engine();
    let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Retry };
    let run = engine.resume(launch, resumption).expect("a run that has not ended");
    run.wait_until_live().await?;
    Ok(facts(&run).await)
}

/// The outcome without ids and times. An attempt that is made again takes its time again, so what
/// calls at the same time say may come in another order; how many calls a resilience run makes until
/// its end depends on time.
fn outcome(events: &[Arc<Event>]) -> Value {
    let world = World::from_events(events.iter().map(|event| &**event));
    let mut outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    let fields = outcome.as_object_mut().expect("an object");
    for name in ["run_id", "tools", "alerts", "usage"] {
        fields.remove(name);
    }
    if let PatternPlan::Resilience(_) = &world.head.as_ref().expect("a head").plan {
        fields.retain(|name, _| ["status", "stop_reason", "phase", "error"].contains(&&**name));
    }
    without_times(&mut outcome);
    outcome
}

/// Removes times, and sorts lists.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("_ms"));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(rows) => {
            rows.iter_mut().for_each(without_times);
            rows.sort_by_cached_key(Value::to_string);
        }
        _ => {}
    }
}

/// What differs between two values, one line for each.
fn differences(place: &str, left: &Value, right: &Value) -> Vec<String> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            let fields = left.iter().zip(right.values());
            let differ =
                |((name, left), right)| differences(&format!("{place}.{name}"), left, right);
            fields.flat_map(differ).collect()
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let rows = left.iter().zip(right).enumerate();
            let differ =
                |(row, (left, right))| differences(&format!("{place}[{row}]"), left, right);
            rows.flat_map(differ).collect()
        }
        _ if left == right => Vec::new(),
        _ => vec![format!("{place}: {left} and {right}")],
    }
}

/// The faults of a run that was continued after `cut` events of `full`.
fn faults(full: &[Arc<Event>], cut: usize, continued: &[Arc<Event>]) -> Vec<String> {
    let mut faults = Vec::new();
    for (before, after) in full[..cut].iter().zip(continued) {
        if before != after {
            faults.push(format!("the stored event {} was changed", before.seq.0));
        }
    }
    let numbered = (0..).zip(continued).all(|(place, event)| event.seq.0 == place);
    let resumed = continued.get(cut).map(|event| &event.kind);
    if !numbered || !matches!(resumed, Some(EventKind::RunResumed { .. })) {
        faults.push(format!("after the stored events comes {resumed:?}"));
    }
    faults.extend(differences("outcome", &outcome(full), &outcome(continued)));
    faults
}
