//! Canonical JSON text: equal values have the same text. Arguments are hashed and looked up by it
//! (orchestrator source document, `args_hash`).

use serde_json::Value;

/// The value as JSON with sorted keys, no spaces after `,` and `:`, and non-ASCII characters as
/// `\uXXXX`. Numbers have JSON's shortest form.
pub fn to_canonical_json(value: &Value) -> String {
    let mut out = String::new();
    put(value, &mut out);
    out
}

fn put(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => put_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                put(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            // Python sorts by code points, as `str` compares here.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (place, (key, value)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                put_text(key, out);
                out.push(':');
                put(value, out);
            }
            out.push('}');
        }
    }
}

fn put_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `json.dumps` writes these numbers with the texts on the right.
    #[test]
    fn most_numbers_have_pythons_text() {
        for (number, python) in [
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e22, "1e+22"),
            (0.0001, "0.0001"),
            (0.1, "0.1"),
        ] {
            assert_eq!(to_canonical_json(&number.into()), python);
        }
        assert_ne!(
            to_canonical_json(&0.00001.into()),
            "1e-05",
            "the difference that is documented"
        );
    }
}
