//! The keys of scenarios and of the configuration, from their JSON schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::cell_with_code;
use crate::scenario::config::config_schema;
use crate::scenario::schema;

pub fn scenarios() -> String {
    Tables::default().page(&schema())
}

pub fn configuration() -> String {
    Tables::default().page(&config_schema())
}

#[derive(Default)]
struct Tables {
    out: String,
    /// The tables that have been listed: their keys, and their names.
    listed: BTreeMap<String, String>,
}

impl Tables {
    fn page(mut self, schema: &Value) -> String {
        let top = properties(schema);
        if top.values().any(|it| below(it).is_none()) {
            self.out += "## At the top\n\n";
            self.keys(schema);
        }
        self.below("", schema);
        self.out
    }

    /// The tables in a table.
    fn below(&mut self, path: &str, schema: &Value) {
        for (key, schema) in properties(schema) {
            let Some((form, inner)) = below(&schema) else { continue };
            let name = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            if matches!(form, Form::Named) {
                // One of the names may be special, as `llm` in `tools`.
                self.below(&name, &schema);
            }
            let name = match form {
                Form::Table => name,
                Form::Named => format!("{name}.NAME"),
                Form::List => format!("[{name}]"),
            };
            self.table(&name, inner["description"].as_str().unwrap_or_default(), inner);
        }
    }

    fn table(&mut self, name: &str, about: &str, schema: &Value) {
        self.out += &format!("\n## [{name}]\n\n{}\n", super::cell(about).replace("\\|", "|"));
        let same = serde_json::to_string(&schema["properties"]).expect("JSON");
        if let Some(other) = self.listed.get(&same) {
            self.out += &format!("\nThe same keys as `[{other}]`.\n");
            return;
        }
        self.listed.insert(same, name.to_owned());
        self.out += "\n";
        self.keys(schema);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        self.below(name, schema);
    }

    fn keys(&mut self, schema: &Value) {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        self.out += "| key | value | default | what it is |\n| --- | --- | --- | --- |\n";
        for (key, of_key) in properties(schema) {
            let value = value(&of_key);
            let default = match of_key.get("default") {
                None if needs_text_or_file(schema, &key) => format!("required, or `{key}_file`"),
                _ if required.contains(&Value::from(key.clone())) => "required".to_owned(),
                Some(default) => format!("`{default}`"),
                None => String::new(),
            };
            let about = of_key["description"].as_str().unwrap_or_default();
            self.out += &format!("| `{key}` | {value} | {default} | {} |\n", cell_with_code(about));
        }
    }
}

/// Whether a table needs this key or the one of a file with its text.
fn needs_text_or_file(table: &Value, key: &str) -> bool {
    let rules = table["allOf"].as_array().into_iter().flatten();
    rules.into_iter().any(|rule| rule["oneOf"][0]["required"][0] == key)
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

enum Form {
    Table,
    Named,
    List,
}

/// The table that a key holds, if its keys are listed.
fn below(schema: &Value) -> Option<(Form, &Value)> {
    let has_keys = |it: &Value| it["properties"].is_object();
    match schema {
        it if has_keys(&it["additionalProperties"]) => {
            Some((Form::Named, &it["additionalProperties"]))
        }
        it if has_keys(it) => Some((Form::Table, it)),
        it if has_keys(&it["items"]) => Some((Form::List, &it["items"])),
        _ => None,
    }
}

/// What a key may hold.
fn value(schema: &Value) -> String {
    match below(schema) {
        Some((Form::Table, _)) => return "table".to_owned(),
        Some((Form::Named, _)) => return "tables by name".to_owned(),
        Some((Form::List, _)) => return "list of tables".to_owned(),
        None => {}
    }
    if let Some(word) = schema.get("const") {
        return format!(
            "`{}`",
            word.as_str().map_or_else(|| word.to_string(), |it| format!("\"{it}\""))
        );
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        let words = |it: &Value| {
            let about = it["description"].as_str().unwrap_or_default().trim_end_matches('.');
            match about {
                "" => value(it),
                about => format!("{} ({})", value(it), cell_with_code(about)),
            }
        };
        let mut forms: Vec<String> = forms.iter().map(words).collect();
        forms.dedup();
        let between = if forms.iter().any(|it| it.contains('(')) { "; " } else { " or " };
        return forms.join(between);
    }
    match schema["type"].as_str() {
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => within("whole number", schema),
        Some("number") => within("number", schema),
        Some("string") => string(schema),
        Some("array") => format!("list of: {}", value(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("table; each value: {}", value(&schema["additionalProperties"]))
        }
        Some("object") => "table of any keys".to_owned(),
        _ => "text, number or truth value".to_owned(),
    }
}

/// A text; durations have a pattern of their own.
fn string(schema: &Value) -> String {
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    match pattern {
        _ if pattern.contains(r"(\.\.") => "duration, or a range (`\"1s..2s\"`)".to_owned(),
        _ if pattern.contains("(ms|s|m") => "duration (`\"2s\"`)".to_owned(),
        _ if pattern.starts_with("^\\{\\{") => "`\"{{input}}\"`".to_owned(),
        _ => "text".to_owned(),
    }
}

fn within(what: &str, schema: &Value) -> String {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!("{what}, {} to {}", plain(least), plain(most)),
        (Some(least), None) => format!("{what} from {}", plain(least)),
        (None, Some(most)) => format!("{what} up to {}", plain(most)),
        (None, None) => what.to_owned(),
    }
}

/// `86400` for `86400.0`.
fn plain(number: &Value) -> String {
    number.to_string().trim_end_matches(".0").to_owned()
}
