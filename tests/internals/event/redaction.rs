//! A redacted log has no texts in it, and says the same in numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::log::event::redact::{TextRedactor, is_marker};
use crate::log::event::{Event, EventKind, World};
use crate::support::table;

const KEY: [u8; 32] = [7; 32];
const LINES: &str = include_str!("../../golden/v2/facts.jsonl");

fn redacted<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<Event> {
    let mut redactor = TextRedactor::new(KEY);
    events.into_iter().map(|event| redactor.redact(event.clone())).collect()
}

/// The texts in a value.
fn leaves<'v>(value: &'v Value, into: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|it| leaves(it, into)),
        Value::Object(fields) => fields.values().for_each(|it| leaves(it, into)),
        _ => {}
    }
}

/// The texts that are neither a marker nor a name.
fn texts_left(event: &Event) -> Vec<String> {
    let line: Value = serde_json::from_str(&event.to_line().expect("a line")).expect("json");
    let mut found = Vec::new();
    leaves(&line, &mut found);
    let is_name = |text: &str| {
        let stays = |c: char| c.is_ascii_alphanumeric() || "_-.:/#[]@".contains(c);
        text.chars().all(stays) && text.len() <= 64
    };
    // A boundary or a stop reason, with a name that a model gave.
    let ends_with_marker = |text: &str| {
        let parts = text.find('‹').map(|at| text.split_at(at));
        parts.is_some_and(|(before, marker)| is_name(before) && is_marker(marker))
    };
    let wrong =
        found.into_iter().filter(|it| !(is_marker(it) || is_name(it) || ends_with_marker(it)));
    wrong.map(str::to_owned).collect()
}

/// The log of each shipped scenario that needs neither a folder nor a network.
fn each_log(mut check: impl FnMut(&str, &[Arc<Event>])) {
    table::offline_scenarios().for_each(|name| check(name, &table::shipped_log(name)));
}

#[test]
fn redaction_removes_every_text() {
    let events: Vec<Event> =
        LINES.lines().map(|line| Event::from_line(line).expect("an event")).collect();
    let mut wrong = Vec::new();
    for event in redacted(&events) {
        let left = texts_left(&event);
        wrong.extend((!left.is_empty()).then(|| format!("{}: {left:?}", event.kind.name())));
        if let EventKind::Unknown { fields, .. } = &event.kind {
            assert!(fields.is_empty(), "nobody knows which of them are texts");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let once = redacted(&events);
    assert_eq!(redacted(&once), once, "a redacted log stays as it is");
}

/// The places of all texts in a value, such as `messages.content`.
fn text_places(value: &Value, place: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(into.insert(place.to_owned())),
        Value::Array(items) => items.iter().for_each(|it| text_places(it, place, into)),
        Value::Object(fields) => fields.iter().for_each(|(name, it)| {
            let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            text_places(it, &below, into);
        }),
        _ => {}
    }
}

/// Puts this text in each place of this name.
fn replace(value: &mut Value, place: &[&str], text: &str) {
    match (value, place) {
        (value @ Value::String(_), []) => *value = text.into(),
        (Value::Array(items), _) => items.iter_mut().for_each(|it| replace(it, place, text)),
        (Value::Object(fields), [first, rest @ ..]) => {
            // A name may have a dot in it.
            for (name, it) in fields.iter_mut() {
                match place.join(".").strip_prefix(name.as_str()) {
                    Some("") => replace(it, &[], text),
                    Some(_) if name == first => replace(it, rest, text),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Fields that stay as they are, wherever they stand: ids, names that a scenario declares, and words of the
/// program. Every other field is a text.
const KEPT: &[&str] = &[
    "run",
    "parent",
    "first_run",
    "previous_run",
    "scenario",
    "agent",
    "role",
    "flag",
    "worker",
    "name",
    "tool",
    "tools",
    "model",
    "from",
    "to",
    "by",
    "owner",
    "first_agent",
    "root",
    "entry",
    "members",
    "swarm",
    "route",
    "fallback",
    "steps",
    "sequence",
    "veto",
    "vetoes",
    "sections",
    "summary_inputs",
    "phase",
    "action",
    "kind",
    "place",
    "adapted",
    "parameter",
    // Numbers of notes and a date.
    "id",
    "note",
    "citations",
    "left",
    "right",
    "as_of",
];

/// A field that is new is redacted, or this test fails.
#[test]
fn every_field_is_redacted_unless_listed() {
    const TEXT: &str = "Ann's secret, 4 words";
    let mut lines: Vec<Value> =
        LINES.lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    each_log(|_, events| {
        for event in events {
            lines.push(serde_json::from_str(&event.to_line().expect("a line")).expect("json"));
        }
    });
    let (mut seen, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for line in &lines {
        let mut places = BTreeSet::new();
        text_places(line, "", &mut places);
        for place in places {
            let kind = line["kind"].as_str().expect("a kind");
            let pattern = line["plan"]["pattern"].as_str().or(line["pattern"].as_str());
            if place == "kind" || !seen.insert(format!("{kind} {pattern:?} {place}")) {
                continue;
            }
            let mut changed = line.clone();
            replace(&mut changed, &place.split('.').collect::<Vec<_>>(), TEXT);
            let event = Event::from_line(&changed.to_string()).expect("an event");
            // Not a word of the program: the line is of no known kind then, and nothing of it stays.
            if matches!(event.kind, EventKind::Unknown { .. }) {
                continue;
            }
            let line = redacted([&event])[0].to_line().expect("a line");
            let name = place.rsplit('.').next().unwrap_or_default();
            if line.contains(TEXT) && !KEPT.contains(&name) {
                kept.insert(format!("{kind}: {place}"));
            }
        }
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

/// What models, tools and people said in this event, with the texts inside JSON.
fn said(event: &Event, into: &mut BTreeSet<String>) {
    let mut texts: Vec<String> = Vec::new();
    match &event.kind {
        EventKind::RunStarted(head) => texts.extend([head.title.clone(), head.goal.clone()]),
        EventKind::CallStarted(call) => {
            texts.extend(call.prompt.messages.iter().map(|it| it.content.to_string()));
            texts.extend(call.args.as_ref().map(ToString::to_string));
        }
        EventKind::AttemptAnswered(reply) => {
            texts.push(reply.text.to_string());
            texts.extend(reply.tool_calls.iter().map(|it| it.arguments.to_string()));
            texts.extend(reply.result.as_ref().map(ToString::to_string));
        }
        EventKind::AttemptFailed(failed) => texts.push(failed.text.clone()),
        EventKind::AnswerComposed { text, .. } => texts.push(text.to_string()),
        _ => {}
    }
    for text in texts {
        let mut inside = Vec::new();
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        leaves(&value, &mut inside);
        // Names of the structure are in replies too; a text has several words.
        let inside = inside.into_iter().filter(|it| it.contains(' ')).map(str::to_owned);
        into.extend(inside.chain(text.lines().map(str::to_owned)));
    }
    into.retain(|text| text.chars().count() > 3 && text.contains([' ', '{', '"']));
}

#[test]
fn redaction_strips_text_keeps_numbers() {
    each_log(|name, events| {
        let plain: Vec<&Event> = events.iter().map(|event| &**event).collect();
        let without = redacted(plain.iter().copied());
        let lines: String =
            without.iter().map(|event| event.to_line().expect("a line") + "\n").collect();
        let mut texts = BTreeSet::new();
        plain.iter().for_each(|event| said(event, &mut texts));
        let kept: Vec<_> = texts.iter().filter(|text| lines.contains(text.as_str())).collect();
        assert!(!texts.is_empty() && kept.is_empty(), "{name}: {kept:#?}");
        let left: Vec<_> = without.iter().flat_map(texts_left).collect();
        assert!(left.is_empty(), "{name}: {left:#?}");

        let (before, after) = (World::from_events(plain), World::from_events(&without));
        assert_eq!(after.cost_usd(), before.cost_usd(), "{name}");
        let outcome = |world: &World| {
            serde_json::to_value(world.outcome().expect("an outcome")).expect("json")
        };
        let (before, after) = (outcome(&before), outcome(&after));
        for key in ["stop_reason", "phase", "usage", "tools", "elapsed_ms", "status", "rounds"] {
            assert_eq!(after.get(key), before.get(key), "{name}: {key}");
        }
        let keys = |value: &Value| {
            value.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(keys(&after), keys(&before), "{name}");
    });
}

#[test]
fn markers_depend_on_text_and_key() {
    let event = |text: &str| Event {
        seq: crate::log::event::Seq(1),
        at: crate::log::event::Elapsed(0),
        span: crate::log::event::SpanId::RUN,
        kind: EventKind::Warning { text: text.to_owned() },
    };
    let marker = |key: u8, text: &str| match TextRedactor::new([key; 32]).redact(event(text)).kind {
        EventKind::Warning { text } => text,
        _ => String::new(),
    };
    let one = marker(1, "a text");
    assert!(one.starts_with("‹6 chars digest:") && is_marker(&one), "{one}");
    assert_eq!(one, marker(1, "a text"));
    assert_ne!(one, marker(1, "b text"));
    assert_ne!(one, marker(2, "a text"), "a digest cannot be found without the key");
    assert_eq!(marker(1, ""), "");
    for no in [
        "‹6 chars›",
        "‹ chars digest:00000000›",
        "‹6 chars digest:0000000g›",
        "‹6 chars digest:00000000› no",
    ] {
        assert!(!is_marker(no) && is_marker(&marker(1, no)), "{no}");
    }
}
