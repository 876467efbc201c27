//! The reference of `docs/events.md`, made from the schemas of events and outcomes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::log::event::schema::{event_schema, outcome_schema};

/// Every kind of event, the outcomes, and the types of their fields.
pub(super) fn markdown() -> String {
    let (events, outcomes) = (&event_schema(), &outcome_schema());
    let mut out = "## Fields of every event\n\n".to_owned();
    let kinds = events["oneOf"].as_array().expect("kinds");
    let envelope = ["v", "run", "seq", "at_us", "span", "kind"];
    let first = kinds[0]["properties"].as_object().expect("fields");
    let required = required(&kinds[0]);
    let mut rows = Map::new();
    for name in envelope {
        let mut field = first[name].clone();
        if name == "kind" {
            field = serde_json::json!({ "type": "string", "description": "The kind of the event, below." });
        }
        rows.insert(name.to_owned(), field);
    }
    table(&mut out, &rows, &required);
    out.push_str("\n## Kinds\n");
    for kind in kinds {
        let fields = kind["properties"].as_object().expect("fields");
        let name = fields["kind"]["const"].as_str().expect("a kind");
        let _ = writeln!(out, "\n### `{name}`\n\n{}\n", description(kind));
        let mut own: Map<String, Value> = fields.clone();
        own.retain(|field, _| !envelope.contains(&field.as_str()));
        let base = reference(kind);
        match (&base, own.is_empty()) {
            (Some(base), _) => {
                let _ = writeln!(out, "Its fields are those of {}.", link(base));
            }
            (None, true) => out.push_str("It has no fields of its own.\n"),
            (None, false) => table(&mut out, &own, &self::required(kind)),
        }
    }
    out.push_str(
        "\n## Outcomes\n\nThe outcome of a run has these fields, and those of its pattern.\n",
    );
    let forms = outcomes["oneOf"].as_array().expect("forms");
    let session = forms.last().expect("the session");
    let patterns = &forms[..forms.len() - 1];
    let shared: Map<String, Value> = patterns[0]["properties"]
        .as_object()
        .expect("fields")
        .iter()
        .filter(|(name, _)| patterns.iter().all(|it| it["properties"].get(*name).is_some()))
        .map(|(name, field)| (name.clone(), field.clone()))
        .map(|(name, field)| match name.as_str() {
            "pattern" => {
                (name, serde_json::json!({ "type": "string", "description": "The pattern." }))
            }
            _ => (name, field),
        })
        .collect();
    out.push('\n');
    table(&mut out, &shared, &self::required(&patterns[0]));
    for form in patterns {
        let mut own = form["properties"].as_object().expect("fields").clone();
        let pattern = own["pattern"]["const"].as_str().expect("a pattern").to_owned();
        own.retain(|name, _| !shared.contains_key(name));
        let _ = writeln!(out, "\n### Pattern {pattern}\n");
        table(&mut out, &own, &[]);
    }
    out.push_str("\n### Several messages\n\n");
    let _ = writeln!(out, "{}\n", description(session));
    table(&mut out, session["properties"].as_object().expect("fields"), &self::required(session));

    out.push_str("\n## Types\n");
    let mut types = Map::new();
    for of in [events, outcomes] {
        types.extend(of["definitions"].as_object().expect("types").clone());
    }
    let mut names: Vec<&String> = types.keys().collect();
    names.sort();
    for name in names {
        definition(&mut out, name, &types[name]);
    }
    out
}

fn definition(out: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(out, "\n### {name}\n\n{}", description(schema));
    let forms = ["oneOf", "anyOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(forms) = forms {
        out.push('\n');
        for form in forms {
            form_line(out, form);
        }
    } else if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", plain(word))).collect();
        let _ = writeln!(out, "\nOne of {}.", words.join(", "));
    } else if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        out.push('\n');
        table(out, fields, &required(schema));
    } else {
        let _ = writeln!(out, "\nJSON: {}.", type_of(schema));
    }
}

/// A form of a type: a word, or an object with its fields.
fn form_line(out: &mut String, form: &Value) {
    let about = description(form);
    let about = if about.is_empty() { String::new() } else { format!(": {about}") };
    if let Some(word) = form.get("const") {
        let _ = writeln!(out, "- `{}`{about}", plain(word));
        return;
    }
    if let Some(words) = form.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", plain(word))).collect();
        let _ = writeln!(out, "- {}{about}", words.join(", "));
        return;
    }
    let Some(fields) = form.get("properties").and_then(Value::as_object) else {
        let _ = writeln!(out, "- {}{about}", type_of(form));
        return;
    };
    let tag = fields
        .iter()
        .find_map(|(name, field)| Some(format!("`{name}`: `{}`", plain(field.get("const")?))));
    let _ = writeln!(out, "- {}{about}", tag.unwrap_or_else(|| "an object".to_owned()));
    if let Some(base) = reference(form) {
        let _ = writeln!(out, "  - and the fields of {}", link(&base));
    }
    for (name, field) in fields.iter().filter(|(_, field)| field.get("const").is_none()) {
        let _ = writeln!(out, "  - `{name}` ({}): {}", type_of(field), description(field));
    }
}

/// A table of fields.
fn table(out: &mut String, fields: &Map<String, Value>, required: &[String]) {
    out.push_str("| field | type | always | |\n| --- | --- | --- | --- |\n");
    for (name, field) in fields {
        let always = if required.contains(name) { "yes" } else { "" };
        let about = description(field).replace('|', "\\|");
        let _ = writeln!(out, "| `{name}` | {} | {always} | {about} |", type_of(field));
    }
}

/// The type of a field in words, with links.
fn type_of(schema: &Value) -> String {
    if let Some(base) = reference(schema) {
        return link(&base);
    }
    if let Some(word) = schema.get("const") {
        return format!("`{}`", plain(word));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(forms) = schema.get(key).and_then(Value::as_array) {
            let forms: Vec<String> = forms.iter().map(type_of).collect();
            return forms.join(" or ");
        }
    }
    let types: Vec<String> = match schema.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().map(plain).collect(),
        _ => return "any".to_owned(),
    };
    let word = |name: &String| match (
        name.as_str(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ) {
        ("array", Some(items @ Value::Object(_)), _) => format!("list of {}", type_of(items)),
        ("array", ..) => "list".to_owned(),
        ("object", _, Some(values @ Value::Object(_))) => format!("object of {}", type_of(values)),
        _ => name.clone(),
    };
    types.iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// The name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<String> {
    let of = |it: &Value| {
        Some(it.get("$ref")?.as_str()?.trim_start_matches("#/definitions/").to_owned())
    };
    of(schema).or_else(|| of(schema.get("allOf")?.get(0)?))
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

fn required(schema: &Value) -> Vec<String> {
    let all = schema.get("required").and_then(Value::as_array);
    all.into_iter().flatten().map(plain).collect()
}

fn description(schema: &Value) -> String {
    schema.get("description").map(plain).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
