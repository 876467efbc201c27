//! Arguments and results of tools as readable text: `key: value` instead of JSON.

use std::borrow::Cow;

use serde_json::Value;

use crate::base::big_integer::first_changed_integer;
use crate::event::kind::ToolCall;

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
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{name}: {}", value_text(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The fields of an object, each with its value as text. Any other value is one field without a name;
/// an empty object, list or `null` is none.
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
    fn fields_are_named_and_lists_have_no_brackets() {
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
    fn json_is_shown_as_keys_and_values() {
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
