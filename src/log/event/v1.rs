//! Version 1 of the event schema: what version 2 calls otherwise. A line of version 1 is turned
//! into one of version 2 before it is read, so the rest of the program knows the newest version
//! only.

use serde_json::{Map, Value};

/// The number of this version in a line (`"v"`).
pub(crate) const VERSION: u64 = 1;

/// Kinds of events: the name in version 1, and the name in version 2.
const KINDS: [(&str, &str); 6] = [
    ("facts.dropped", "events.dropped"),
    ("fault.healed", "fault.removed"),
    ("notes.cut", "notes.truncated"),
    ("parallel.changed", "concurrency.changed"),
    ("result.stale", "result.ignored"),
    ("session.run_forgotten", "session.run_dropped"),
];

/// Fields: the kind in version 1, the objects that have the field (empty: the event itself; lists
/// are passed through), the name in version 1, and the name in version 2.
const FIELDS: [(&str, &str, &str, &str); 34] = [
    ("answer.incomplete", "missing", "of", "name"),
    ("breaker.changed", "", "why", "cause"),
    ("call.degraded", "", "stand_in", "fallback"),
    ("call.retried", "", "after", "cause"),
    ("call.started", "", "again", "repeat"),
    ("call.started", "purpose", "again", "repeat"),
    ("call.started", "purpose", "inner", "member_output"),
    ("call.started", "purpose", "said", "requested_by"),
    ("client.retried", "", "after", "cause"),
    ("facts.dropped", "", "facts", "events"),
    ("handoff.made", "", "said", "requested_by"),
    ("handoff.made", "guard", "distinct", "distinct_agents"),
    ("handoff.refused", "", "said", "requested_by"),
    ("handoff.refused", "", "why", "reason"),
    ("handoff.refused", "guard", "distinct", "distinct_agents"),
    ("notes.compared", "conflicts", "left_says", "left_figure"),
    ("notes.compared", "conflicts", "right_says", "right_figure"),
    ("reading.closed", "", "why", "reason"),
    ("reply.refused", "", "again", "repeat"),
    ("reply.refused", "", "asked_again", "repeats"),
    ("reply.refused", "", "begins", "preview"),
    ("reply.repaired", "", "what", "changed"),
    ("result.stale", "", "ok", "success"),
    ("retry.refused", "", "asked", "requested"),
    ("round.started", "seats", "asked", "status"),
    ("run.started", "plan", "behind", "role_flags"),
    ("run.started", "plan.session", "after", "previous_run"),
    ("run.started", "plan.session", "starts", "first_agent"),
    ("session.run_forgotten", "", "facts", "events"),
    ("source.closed", "", "came", "result"),
    ("sources.deduped", "dropped", "of", "duplicate_of"),
    ("sources.found", "", "left_out", "unsearched"),
    ("tool_call.refused", "", "why", "reason"),
    // A field of every event.
    ("", "", "at", "at_us"),
];

/// Words: the kind in version 1, the objects that have the field, the name of the field in version
/// 2, the word in version 1, and the word in version 2.
const WORDS: [(&str, &str, &str, &str, &str); 16] = [
    ("breaker.changed", "", "cause", "by_hand", "manual"),
    ("breaker.changed", "", "cause", "cooled", "cooldown_over"),
    ("breaker.changed", "", "cause", "late_answer", "late_success"),
    ("call.degraded", "", "fallback", "fallback", "default"),
    ("call.degraded", "", "fallback", "left_out", "omitted"),
    ("call.started", "purpose", "purpose", "hop", "swarm_turn"),
    ("call.started", "purpose", "purpose", "say", "model_call"),
    ("call.started", "purpose", "purpose", "step", "agent_step"),
    ("limits.changed", "change", "value", "source", "two_state"),
    ("limits.changed", "limits.breaker", "mode", "source", "two_state"),
    ("round.started", "seats", "status", "off", "skipped"),
    ("round.started", "seats", "status", "unaffordable", "over_budget"),
    ("round.started", "seats", "status", "yes", "asked"),
    ("run.started", "plan.session.history", "entry", "said", "reply"),
    ("run.started", "tools.limits.breaker", "mode", "source", "two_state"),
    ("tool_call.refused", "", "reason", "to_itself", "handoff_to_self"),
];

/// Turns an event of version 1 into one of version 2. The order of its fields stays.
pub(crate) fn upgrade(event: &mut Value) {
    let kind = event.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_own = |of: &str| of.is_empty() || of == kind;
    for (_, within, old, new) in FIELDS.into_iter().filter(|(of, ..)| is_own(of)) {
        each_object(event, within, &|object| rename(object, old, new));
    }
    for (_, within, field, old, new) in WORDS.into_iter().filter(|(of, ..)| is_own(of)) {
        each_object(event, within, &|object| replace(object, field, old, new));
    }
    for (old, new) in KINDS {
        each_object(event, "", &|object| replace(object, "kind", old, new));
    }
}

/// Calls `change` with each object at this path (names with dots between them) from `value`.
fn each_object(value: &mut Value, path: &str, change: &impl Fn(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => {
            for item in items {
                each_object(item, path, change);
            }
        }
        Value::Object(object) if path.is_empty() => change(object),
        Value::Object(object) => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(inner) = object.get_mut(name) {
                each_object(inner, rest, change);
            }
        }
        _ => {}
    }
}

fn rename(object: &mut Map<String, Value>, old: &str, new: &str) {
    if object.contains_key(old) {
        let fields = std::mem::take(object).into_iter();
        object.extend(
            fields.map(|(name, value)| (if name == old { new.to_owned() } else { name }, value)),
        );
    }
}

fn replace(object: &mut Map<String, Value>, field: &str, old: &str, new: &str) {
    if let Some(Value::String(word)) = object.get_mut(field)
        && word == old
    {
        new.clone_into(word);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::log::event::{Event, EventKind};

    const FILE: &str = include_str!("../../../tests/golden/v1/facts.jsonl");

    /// The lines of the golden file, and those lines with what is rare in them.
    fn lines() -> Vec<String> {
        let rare = FILE.lines().map(|line| {
            line.replace(r#""mode":"half_open""#, r#""mode":"source""#)
                .replace(r#""breaker_mode","value":"half_open""#, r#""breaker_mode","value":"source""#)
                .replace(
                    r#""session":{"message":1,"#,
                    r#""session":{"message":2,"after":"r-1","history":[{"entry":"said","by":"a","text":"t"}],"#,
                )
        });
        FILE.lines().map(str::to_owned).chain(rare).collect()
    }

    fn upgraded(line: &str) -> Value {
        let mut event = serde_json::from_str(line).expect("json");
        upgrade(&mut event);
        event
    }

    fn any(event: &mut Value, path: &str, is_wanted: impl Fn(&Map<String, Value>) -> bool) -> bool {
        let found = Cell::new(false);
        each_object(event, path, &|object| found.set(found.get() || is_wanted(object)));
        found.get()
    }

    #[test]
    fn every_row_of_the_tables_is_used() {
        let mut events: Vec<Value> = lines().iter().map(|line| upgraded(line)).collect();
        let newest = |old: &str| {
            KINDS.iter().find(|kind| kind.0 == old).map_or(old.to_owned(), |kind| kind.1.to_owned())
        };
        let mut is_used = |of: &str, path: &str, is_new: &dyn Fn(&Map<String, Value>) -> bool| {
            let mut own = events.iter_mut().filter(|it| of.is_empty() || it["kind"] == newest(of));
            own.any(|event| any(event, path, is_new))
        };
        for (of, path, old, new) in FIELDS {
            assert!(is_used(of, path, &|it| it.contains_key(new)), "{of} {path} {new}");
            assert!(!is_used(of, path, &|it| it.contains_key(old)), "{of} {path} {old}");
        }
        for (of, path, field, old, new) in WORDS {
            assert!(
                is_used(of, path, &|it| it.get(field) == Some(&new.into())),
                "{of} {path} {new}"
            );
            assert!(
                !is_used(of, path, &|it| it.get(field) == Some(&old.into())),
                "{of} {path} {old}"
            );
        }
        for (old, new) in KINDS {
            assert!(is_used("", "", &|it| it.get("kind") == Some(&new.into())), "{new}");
            assert!(!is_used("", "", &|it| it.get("kind") == Some(&old.into())), "{old}");
        }
    }

    #[test]
    fn an_event_of_version_1_is_the_same_once_it_is_written_as_version_2() {
        for line in lines() {
            let event = Event::from_line(&line).expect("an event");
            let is_unknown = matches!(event.kind, EventKind::Unknown { .. });
            assert_eq!(is_unknown, line.contains("invented.later"), "{line}");
            let newest = event.to_line().expect("a line");
            assert!(newest.starts_with(r#"{"v":2,"#), "{newest}");
            assert_eq!(Event::from_line(&newest).expect("an event"), event, "{line}");
        }
    }

    #[test]
    fn a_kind_that_no_version_has_keeps_its_fields_in_their_order() {
        for (v, at) in [(1, "at"), (2, "at_us"), (9, "at_us")] {
            let line = format!(
                r#"{{"v":{v},"seq":3,"{at}":5,"span":1,"kind":"table.flipped","why":"x","after":1,"b":{{"said":2,"a":1}}}}"#
            );
            let written = Event::from_line(&line).expect("an event").to_line().expect("a line");
            let fields = r#""kind":"table.flipped","why":"x","after":1,"b":{"said":2,"a":1}}"#;
            assert!(written.ends_with(fields), "{written}");
        }
    }

    #[test]
    fn a_line_without_a_version_is_read_as_one_of_the_newest() {
        let newest = r#"{"seq":0,"at_us":7,"span":0,"kind":"events.dropped","events":2}"#;
        let event = Event::from_line(newest).expect("an event");
        assert_eq!(event.kind, EventKind::EventsDropped { events: 2 });
        let older = r#"{"seq":0,"at":7,"span":0,"kind":"facts.dropped","facts":2}"#;
        assert!(Event::from_line(older).is_err());
        let older = format!(r#"{{"v":1,{}"#, &older[1..]);
        assert_eq!(Event::from_line(&older).expect("an event"), event);
    }
}
