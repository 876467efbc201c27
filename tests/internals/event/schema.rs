//! The schemas of events and outcomes: the output matches them, and later versions keep their promises.
//! `golden/v2/*.schema.json` are the schemas as they were first written; `ROUNDTABLE_BLESS=1` writes
//! them again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::engine::{Engine, EngineSettings, Launch};
use crate::log::event::schema::{event_schema, outcome_schema};
use crate::log::event::{Event, EventKind, World};
use crate::scenario::check::condition::{OF_ALL, OF_SESSION};
use crate::scenario::patterns::ROWS;
use crate::scenario::{load, shipped};

/// A schema to check values with.
struct Checker {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Checker {
    fn new(schema: Value) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("it.json", schema).expect("a schema");
        let root = compiler.compile("it.json", &mut schemas).expect("a schema of draft 7");
        Self { schemas, root }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas
            .validate(value, self.root)
            .map_err(|error| format!("{value}\n{error:#}").chars().take(4_000).collect())
    }
}

/// Files of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn is_blessing() -> bool {
    std::env::var_os("ROUNDTABLE_BLESS").is_some()
}

#[test]
fn every_event_matches_schema() {
    let checker = Checker::new(event_schema());
    for line in include_str!("../../golden/v2/facts.jsonl").lines() {
        let event = Event::from_line(line).expect("an event");
        let value: Value = serde_json::from_str(&event.to_line().expect("a line")).expect("JSON");
        match event.kind {
            EventKind::Unknown { .. } => assert!(checker.check(&value).is_err(), "{value}"),
            _ => checker.check(&value).unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn shipped_runs_match_schemas() {
    let (events, outcomes) = (Checker::new(event_schema()), Checker::new(outcome_schema()));
    let of_outcome = outcome_schema();
    let engine = Engine::new(EngineSettings::default());
    for one in shipped() {
        if ["vendor-brownout", "web-status", "real-services"].contains(&one.name) {
            continue;
        }
        let scenario = Arc::new(load(one.text, one.origin(), &[]).expect("valid"));
        let run = engine.start(Launch::scripted(scenario, false));
        let (mut world, mut reader, mut batch) = (World::new(), run.first_reader(), Vec::new());
        while reader.next_batch(&mut batch, 64).await > 0 {
            for event in batch.drain(..) {
                world.apply(&event);
                let mut line = Vec::new();
                event.append_line(Some(run.id()), &mut line).expect("a line");
                let value = serde_json::from_slice(&line).expect("JSON");
                events.check(&value).unwrap_or_else(|error| panic!("{}: {error}", one.name));
            }
        }
        let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
        outcomes.check(&outcome).unwrap_or_else(|error| panic!("{}: {error}", one.name));
        let forms = of_outcome["oneOf"].as_array().expect("forms");
        let own =
            forms.iter().find(|it| it["properties"]["pattern"]["const"] == outcome["pattern"]);
        let own = own.expect("the form of the pattern")["properties"].as_object().expect("fields");
        for field in outcome.as_object().expect("an object").keys() {
            assert!(own.contains_key(field), "{}: `{field}` is not in the schema", one.name);
        }
    }
}

/// The check of expectations knows the fields that the schema has.
#[test]
fn outcome_fields_match_schema() {
    let schema = outcome_schema();
    let forms = schema["oneOf"].as_array().expect("forms");
    let (session, patterns) = forms.split_last().expect("forms");
    assert_eq!(patterns.len(), ROWS.len());
    let names = |form: &Value| -> BTreeSet<String> {
        form["properties"].as_object().expect("fields").keys().cloned().collect()
    };
    for (row, form) in ROWS.iter().zip(patterns) {
        let own = row.outcome.iter().map(|field| field.name).chain(OF_ALL).map(str::to_owned);
        assert_eq!(names(form), own.collect(), "{}", row.name);
    }
    let of_session = names(session).into_iter().filter(|name| !OF_ALL.contains(&name.as_str()));
    assert_eq!(of_session.collect::<BTreeSet<_>>(), OF_SESSION.map(str::to_owned).into());
}

#[test]
fn later_schemas_only_add() {
    for (name, now) in [("events", event_schema()), ("outcome", outcome_schema())] {
        let path = file(&format!("tests/golden/v2/{name}.schema.json"));
        if is_blessing() {
            let text = serde_json::to_string_pretty(&now).expect("JSON") + "\n";
            std::fs::write(&path, text).expect("written");
        }
        let text = std::fs::read_to_string(&path).expect("the schema of version 2");
        let then: Value = serde_json::from_str(&text).expect("JSON");
        let mut lost = Vec::new();
        compare(&then, &now, name, &mut lost);
        assert!(lost.is_empty(), "not only added to:\n{}", lost.join("\n"));
    }
}

/// Collects what a schema promised and a later one does not: forms, fields, words, types, and fields
/// that were always there.
fn compare(then: &Value, now: &Value, place: &str, lost: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, before) in then {
                let place = format!("{place}/{key}");
                match (key.as_str(), now.get(key)) {
                    ("description" | "title" | "$schema", _) => {}
                    // A field that later versions leave out less often is no loss.
                    (_, None) => lost.push(place),
                    (_, Some(after)) => compare(before, after, &place, lost),
                }
            }
        }
        (Value::Array(then), Value::Array(now)) => {
            for before in then {
                let same = now.iter().find(|after| key_of(after) == key_of(before));
                match same {
                    Some(after) => {
                        compare(before, after, &format!("{place}/{}", key_of(before)), lost)
                    }
                    None => lost.push(format!("{place}/{}", key_of(before))),
                }
            }
        }
        (then, now) if then != now => lost.push(format!("{place}: {then} is {now}")),
        _ => {}
    }
}

/// What tells an item of a list from the others: the word of its kind, else all of it.
fn key_of(item: &Value) -> String {
    let properties = item.get("properties").and_then(Value::as_object);
    let word = properties.and_then(|fields| {
        fields.iter().find_map(|(name, field)| {
            let word = field.get("const")?.as_str()?;
            Some(format!("{name}={word}"))
        })
    });
    word.or_else(|| item.get("const").map(Value::to_string)).unwrap_or_else(|| {
        let mut item = item.clone();
        if let Some(fields) = item.as_object_mut() {
            fields.remove("description");
        }
        item.to_string()
    })
}

#[test]
fn detects_schema_removal() {
    let then = event_schema();
    let change = |how: &dyn Fn(&mut Value)| {
        let mut now = then.clone();
        how(&mut now);
        let mut lost = Vec::new();
        compare(&then, &now, "it", &mut lost);
        lost
    };
    let list = |value: &mut Value| std::mem::take(value.as_array_mut().expect("a list"));
    // A kind, a field, an always present field, a type, a word.
    assert!(!change(&|it| drop(list(&mut it["oneOf"]).pop())).is_empty());
    let kind = |it: &mut Value, key: &str| {
        it["oneOf"][2]["properties"].as_object_mut().expect("fields").remove(key);
    };
    assert!(!change(&|it| kind(it, "at_round")).is_empty());
    assert!(!change(&|it| it["oneOf"][2]["required"] = serde_json::json!(["v"])).is_empty());
    assert!(
        !change(&|it| it["oneOf"][2]["properties"]["at_round"]["type"] = "text".into()).is_empty()
    );
    // An addition is no loss.
    let added = |it: &mut Value| it["oneOf"][2]["properties"]["later"] = serde_json::json!({});
    assert_eq!(change(&added), Vec::<String>::new());
}
