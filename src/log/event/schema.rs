//! The JSON schemas of events and outcomes, derived from their types, for `roundtable schema` and
//! `docs/events.md`.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::EventKind;
use super::kind::SCHEMA_VERSION;
use crate::log::facts::agents::AgentFact;
use crate::log::facts::collaboration::CollaborationFact;
use crate::log::facts::observed::ObservedFact;
use crate::log::facts::orchestrator::OrchestratorFact;
use crate::log::facts::research::ResearchFact;
use crate::log::facts::router::RouterFact;
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::patterns::ROWS;
use crate::scenario::patterns::row::PatternRow;

/// What every event has besides the fields of its kind.
const ENVELOPE: [(&str, &str, &str, bool); 5] = [
    ("v", "integer", "Version of this schema.", true),
    (
        "run",
        "string",
        "Id of the run. Not in logs that the dashboard exported before version 2.",
        false,
    ),
    ("seq", "integer", "Number of the event in the log of its run, from 0, without gaps.", true),
    ("at_us", "integer", "Time since the start of the run, in microseconds.", true),
    (
        "span",
        "integer",
        "The span that the event belongs to: 0 is the run; calls, attempts, tasks and turns open others.",
        true,
    ),
];

/// The JSON schema of an event. It is of draft 7, as that of scenarios is.
pub fn event_schema() -> Value {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    let mut kinds = Vec::new();
    for of_enum in [
        variants::<EventKind>,
        variants::<CollaborationFact>,
        variants::<OrchestratorFact>,
        variants::<AgentFact>,
        variants::<ResearchFact>,
        variants::<RouterFact>,
        variants::<ObservedFact>,
    ] {
        kinds.extend(of_enum(&mut generator));
    }
    for kind in &mut kinds {
        add_envelope(kind);
    }
    finish(
        "roundtable event",
        "An event of a run: one line of `run --format jsonl`, apart from the last one. Within a \
         version of the schema, later programs only add: new kinds, new fields, new words. Readers \
         ignore what they do not know.",
        kinds,
        &mut generator,
    )
}

/// The JSON schema of the outcome that `run --format json` prints: of each pattern, and of a session of
/// several messages.
pub fn outcome_schema() -> Value {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    let shared = Outcome::json_schema(&mut generator).to_value();
    let mut forms: Vec<Value> = ROWS.iter().map(|row| outcome_of(&shared, row)).collect();
    let mut session = SessionOutcome::json_schema(&mut generator).to_value();
    session["properties"]["session"]["items"] = json!({ "type": "object" });
    forms.push(session);
    finish(
        "roundtable outcome",
        "The outcome of a run, as `run --format json` prints it; the last line of `jsonl` has the same \
         fields, and `v`, `run` and `kind`. Within a version of the schema, later programs only add \
         fields. The last form is that of a session of several messages.",
        forms,
        &mut generator,
    )
}

fn outcome_of(shared: &Value, row: &PatternRow) -> Value {
    let mut whole = shared.clone();
    whole["description"] = format!("The outcome of the pattern {}.", row.name).into();
    let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) else {
        return whole;
    };
    properties.insert("pattern".to_owned(), json!({ "const": row.name }));
    for field in row.outcome {
        let mut of_field = json!({ "description": field.about });
        if field.types != "any" {
            let types: Vec<&str> = field.types.split('|').collect();
            of_field["type"] = match types[..] {
                [one] => one.into(),
                _ => types.into(),
            };
        }
        properties.insert(field.name.to_owned(), of_field);
    }
    whole
}

/// The whole schema. Definitions that nothing uses are left out.
fn finish(title: &str, about: &str, forms: Vec<Value>, generator: &mut SchemaGenerator) -> Value {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "description": about,
        "oneOf": forms,
        "definitions": generator.take_definitions(true),
    });
    tidy(&mut schema);
    remove_unused(&mut schema);
    schema
}

/// Writes descriptions for readers who do not know the types, and moves references to where draft 7
/// allows other keys next to them.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            if let Some(Value::String(about)) = fields.get_mut("description") {
                *about = in_words(about);
            }
            if fields.len() > 1
                && let Some(reference) = fields.remove("$ref")
            {
                fields.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A doc comment as a sentence: in one line, without links, and with the words of JSON.
fn in_words(about: &str) -> String {
    let line: Vec<&str> = about.split_whitespace().collect();
    let line = line.join(" ").replace("[`", "`").replace("`]", "`");
    line.replace("`None`:", "null:").replace("`None`", "null")
}

/// Removes definitions until each of them is used.
fn remove_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(definitions) = schema.get_mut("definitions").and_then(Value::as_object_mut) else {
            return;
        };
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/definitions/{name}\"")));
        if definitions.len() == before {
            return;
        }
    }
}

/// The schemas of the variants of an enum.
fn variants<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Value> {
    let schema = T::json_schema(generator).to_value();
    match schema.get("oneOf").and_then(Value::as_array) {
        Some(variants) => variants.clone(),
        None => vec![schema],
    }
}

/// Adds the fields that every event has to the schema of a kind.
fn add_envelope(kind: &mut Value) {
    let Some(kind) = kind.as_object_mut() else { return };
    let own = kind.remove("properties").unwrap_or_default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, type_, about, always) in ENVELOPE {
        let field = match name {
            "v" => json!({ "const": SCHEMA_VERSION, "description": about }),
            _ => json!({ "type": type_, "description": about }),
        };
        properties.insert(name.to_owned(), field);
        if always {
            required.push(Value::from(name));
        }
    }
    if let Value::Object(own) = own {
        properties.extend(own);
    }
    if let Some(Value::Array(own)) = kind.remove("required") {
        required.extend(own);
    }
    kind.insert("properties".to_owned(), properties.into());
    kind.insert("required".to_owned(), required.into());
}
