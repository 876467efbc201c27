//! Arguments and results of tools as readable text: `key: value` instead of JSON.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::base::json_text::first_changed_integer;
use crate::scenario::spec::tool::ToolCall;

/// Longest JSON that is made readable, in bytes; rows show less of it.
const LONGEST: usize = 16 * 1024;

/// A tool call as readable text: its name and its arguments.
pub(crate) fn call_text(call: &ToolCall) -> String {
    match parsed(&call.arguments) {
        Some(Value::Object(args)) if args.len() == 1 && args.get("request").is_some() => {
            format!("{}: {}", call.name, value_text(&args["request"]))
        }
        Some(value @ Value::Object(_)) => format!("{}({})", call.name, top_text(&value)),
        _ => format!("{}({})", call.name, call.arguments),
    }
}

/// A result as readable text; a text that is not JSON as it is.
pub(crate) fn readable_result(text: &str) -> Cow<'_, str> {
    match parsed(text) {
        Some(value @ (Value::Object(_) | Value::Array(_))) => top_text(&value).into(),
        _ => text.into(),
    }
}

/// The value of a JSON text. `None` if it is not JSON, too long, or has a number that would change.
fn parsed(text: &str) -> Option<Value> {
    if text.len() > LONGEST {
        return None;
    }
    let value = serde_json::from_str(text).ok()?;
    first_changed_integer(text, &value).is_none().then_some(value)
}

/// A value without brackets around it.
pub(crate) fn top_text(value: &Value) -> String {
    match value {
        Value::Object(fields) => fields_text(fields),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The fields of an object in one line.
pub(crate) fn fields_text(fields: &Map<String, Value>) -> String {
    let fields = fields.iter().map(|(name, value)| format!("{name}: {}", value_text(value)));
    fields.collect::<Vec<_>>().join(", ")
}

/// The end of a JSON text that is still being written, as far as it is there: a line for each value, with
/// its name. A text that is not JSON, or is long, is left as it is.
pub(crate) fn partial_json(text: &str) -> Cow<'_, str> {
    if text.len() > LONGEST || !text.trim_start().starts_with(['{', '[']) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut name = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => string_end(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ if first.is_whitespace() => first.len_utf8(),
            _ => rest
                .find(|c: char| "{}[],:\"".contains(c) || c.is_whitespace())
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        let value = match first {
            '"' => partial_string(token),
            '{' | '[' => {
                name = None;
                continue;
            }
            '}' | ']' | ',' | ':' => continue,
            _ if first.is_whitespace() => continue,
            _ => token.to_owned(),
        };
        if first == '"' && after.trim_start().starts_with(':') {
            name = Some(value);
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        if let Some(name) = name.take() {
            out.push_str(&name);
            out.push_str(": ");
        }
        out.push_str(&value);
    }
    out.into()
}

/// The length of the string that a text begins with, quotes included; of all of it if it is not closed.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string of JSON; its closing quote and the end of an escape may be missing.
fn partial_string(token: &str) -> String {
    if let Ok(text) = serde_json::from_str(token) {
        return text;
    }
    let open = token.trim_start_matches('"');
    // The escape that is not complete yet has at most six characters, and so has the one before it.
    (0..=12)
        .filter_map(|cut| open.len().checked_sub(cut).and_then(|end| open.get(..end)))
        .find_map(|part| serde_json::from_str(&format!("\"{part}\"")).ok())
        .unwrap_or_else(|| open.to_owned())
}

/// The fields of an object, each with its value as text. Any other value is one field without a name;
/// an empty object, an empty list and `null` have no fields.
pub(crate) fn fields(value: &Value) -> Vec<(&str, String)> {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.as_str(), top_text(value))).collect()
        }
        Value::Null => Vec::new(),
        other => {
            Some(("", top_text(other))).filter(|(_, text)| !text.is_empty()).into_iter().collect()
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Object(_) => format!("{{{}}}", top_text(value)),
        Value::Array(_) => format!("[{}]", top_text(value)),
        _ => top_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fields_and_lists_without_brackets() {
        let value =
            serde_json::json!({"orders": 4820, "low": ["a", "b"], "at": {"h": 1}, "none": []});
        let shown = fields(&value);
        let expected = [("orders", "4820"), ("low", "a, b"), ("at", "h: 1"), ("none", "")];
        assert_eq!(shown, expected.map(|(name, text)| (name, text.to_owned())));
        assert_eq!(fields(&serde_json::json!("text")), [("", "text".to_owned())]);
        assert_eq!(fields(&serde_json::json!({})), []);
        assert_eq!(fields(&serde_json::json!([])), []);
        assert_eq!(fields(&Value::Null), []);
    }

    #[test]
    fn any_partial_text_is_readable() {
        let whole =
            r#"{"notes":[{"claim":"It \"works\": 3.4 %","quote":"é\nyes"},{"ok":true,"n":12}]}"#;
        let shown = "claim: It \"works\": 3.4 %\nquote: é\nyes\nok: true\nn: 12";
        assert_eq!(partial_json(whole), shown);
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let part = partial_json(&whole[..end]);
            // A name without its value may stand at the end.
            let known = part.lines().rev().skip(1).all(|line| shown.contains(line));
            assert!(known && !part.contains('{'), "{end}: {part}");
        }
        assert_eq!(partial_json(r#"["a", "b\u00"#), "a\nb");
        assert_eq!(partial_json("no {json}"), "no {json}");
        assert_eq!(partial_json("{"), "");
    }

    #[test]
    fn shows_json_as_keys_and_values() {
        let table = [
            (r#"{"hits":12,"in":"src"}"#, "hits: 12, in: src"),
            (
                r#"{"charges":[{"id":"ch_1","usd":49.9},{"id":"ch_2"}]}"#,
                "charges: [{id: ch_1, usd: 49.9}, {id: ch_2}]",
            ),
            (r#"["a",1,null,true]"#, "a, 1, null, true"),
            ("{}", ""),
            // A number that JSON would change, and what is not JSON, stay as they are.
            (r#"{"n":123456789012345678901234567890}"#, r#"{"n":123456789012345678901234567890}"#),
            ("not {json}", "not {json}"),
            ("12", "12"),
        ];
        for (text, expected) in table {
            assert_eq!(readable_result(text), expected);
        }
        let long = format!("[\"{}\"]", "x".repeat(LONGEST));
        assert_eq!(readable_result(&long), long);
    }
}
