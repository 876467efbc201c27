//! Removes bounds on numbers, texts and lists from a contract's schema, because the API rejects
//! them. Policy still judges every reply.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The keywords that the API rejects.
const REFUSED: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Fields of a schema that map names to schemas.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// The schema without bounds; `None` if it has none and can be sent as it is.
pub(super) fn without_bounds(schema: &RawValue) -> Option<Box<RawValue>> {
    let read: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    if has_no_bounds(&read) {
        return None;
    }
    to_raw_value(&unbounded(&read)).ok()
}

fn has_no_bounds(schema: &Value) -> bool {
    match schema {
        Value::Array(schemas) => schemas.iter().all(has_no_bounds),
        Value::Object(fields) => fields.iter().all(|(name, value)| match value {
            Value::Object(named) if NAMED.contains(&&**name) => named.values().all(has_no_bounds),
            _ => is_schema_value(name) || (!REFUSED.contains(&&**name) && has_no_bounds(value)),
        }),
        _ => true,
    }
}

fn unbounded(schema: &Value) -> Value {
    match schema {
        Value::Array(schemas) => schemas.iter().map(unbounded).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !REFUSED.contains(&&***name));
            let kept = kept.map(|(name, value)| {
                let value = match value {
                    Value::Object(named) if NAMED.contains(&&**name) => {
                        let each = named.iter();
                        let each = each.map(|(name, one)| (name.clone(), unbounded(one)));
                        Value::Object(each.collect::<Map<_, _>>())
                    }
                    _ if is_schema_value(name) => value.clone(),
                    _ => unbounded(value),
                };
                (name.clone(), value)
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// Whether the value of this field is data, not a schema.
fn is_schema_value(name: &str) -> bool {
    matches!(name, "enum" | "const" | "default" | "examples")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_are_left_out_and_fields_of_their_names_are_not() {
        let plain = json!({ "type": "object", "properties": { "minimum": { "type": "string" } } });
        let plain = to_raw_value(&plain).expect("JSON");
        assert!(without_bounds(&plain).is_none());
        let bounded = json!({
            "type": "object",
            "properties": {
                "maximum": { "type": "integer", "minimum": 0, "maximum": 10 },
                "list": { "type": "array", "maxItems": 3, "items": { "type": "string", "maxLength": 9 } },
            },
            "anyOf": [{ "const": { "minimum": 1 } }],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "maximum": { "type": "integer" },
                "list": { "type": "array", "items": { "type": "string" } },
            },
            "anyOf": [{ "const": { "minimum": 1 } }],
        });
        let sent = without_bounds(&to_raw_value(&bounded).expect("JSON")).expect("another one");
        assert_eq!(serde_json::from_str::<Value>(sent.get()).expect("JSON"), expected);
    }
}
