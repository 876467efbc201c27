//! The texts that spans carry: bounded, without keys of the known forms, and the plain text of messages where a
//! framework wraps it in JSON.

use std::sync::Arc;

use serde_json::Value;

use crate::log::facts::observed::MAX_TEXT;
use crate::net::redact::redact_forms;

/// Longest name, in bytes.
const MAX_NAME: usize = 256;

/// A text of at most 32 KiB, without keys.
pub(super) fn text(text: &str) -> Arc<str> {
    without_keys(text, MAX_TEXT)
}

/// A name of at most 256 bytes, without keys.
pub(super) fn name(text: &str) -> Arc<str> {
    without_keys(text, MAX_NAME)
}

/// Redacted first and cut afterwards, because half a key may not be known as one.
fn without_keys(text: &str, most: usize) -> Arc<str> {
    let redacted = redact_forms(beginning(text, 2 * most));
    if redacted.len() <= most {
        return (&*redacted).into();
    }
    format!("{}…", beginning(&redacted, most.saturating_sub(3))).into()
}

/// The beginning of a text, of at most so many bytes.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

/// The value as a text: a string as it is, messages as their text, anything else as JSON. `None`: it is empty.
pub(super) fn value_text(value: &Value) -> Option<Arc<str>> {
    if let Some(message) = message_text(value, 0) {
        return Some(text(&message));
    }
    match value {
        Value::Null => None,
        Value::String(string) if string.is_empty() => None,
        Value::String(string) => Some(text(string)),
        Value::Object(fields) if fields.is_empty() => None,
        Value::Array(items) if items.is_empty() => None,
        other => Some(text(&other.to_string())),
    }
}

/// A text that may be the JSON of messages.
pub(super) fn json_text(string: &str) -> Option<Arc<str>> {
    let is_json = string.starts_with(['[', '{']) && string.len() <= MAX_JSON;
    let parsed = is_json.then(|| serde_json::from_str::<Value>(string).ok()).flatten();
    match parsed.and_then(|value| message_text(&value, 0)) {
        Some(message) => Some(text(&message)),
        None => (!string.is_empty()).then(|| text(string)),
    }
}

/// Longest JSON that is searched for the text of messages, in bytes.
const MAX_JSON: usize = 1 << 20;

/// Deepest messages that are looked for.
const MAX_DEPTH: u8 = 6;

/// The text of the last message of a value, in the forms of the usual frameworks; `None`: it is no message.
fn message_text(value: &Value, depth: u8) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let deeper = |value: &Value| message_text(value, depth + 1);
    match value {
        // A list of messages: the last one with a text.
        Value::Array(items) => items.iter().rev().find_map(deeper),
        Value::Object(fields) => {
            let get = |name: &str| fields.get(name);
            // LangChain's form of an object, and wrappers of one.
            if let Some(inner) = get("kwargs").filter(|it| it.get("content").is_some()) {
                return deeper(inner);
            }
            if let (Some(Value::String(name)), Some(arguments)) = (get("name"), get("arguments")) {
                let arguments =
                    arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                return Some(format!("{name}({arguments})"));
            }
            let is_message =
                get("role").is_some() || get("type").is_some() || get("content").is_some();
            for name in ["content", "parts", "text"] {
                match get(name).filter(|_| is_message) {
                    Some(Value::String(text)) if !text.is_empty() => return Some(text.clone()),
                    Some(parts @ Value::Array(_)) => {
                        if let Some(text) = parts_text(parts) {
                            return Some(text);
                        }
                    }
                    _ => {}
                }
            }
            ["messages", "message", "generations", "output", "choices"]
                .iter()
                .find_map(|name| deeper(get(name)?))
        }
        _ => None,
    }
}

/// The texts of the parts of a message; `None`: it has none.
fn parts_text(parts: &Value) -> Option<String> {
    let parts = parts.as_array()?.iter();
    let texts: Vec<String> = parts
        .filter_map(|part| match part {
            Value::String(text) => Some(text.clone()),
            part => {
                let text = ["text", "content"].iter().find_map(|name| part.get(name)?.as_str());
                text.map(str::to_owned).or_else(|| message_text(part, MAX_DEPTH))
            }
        })
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_plain_text() {
        for (value, expected) in [
            (json!("hello"), Some("hello")),
            (json!({}), None),
            (
                json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]),
                Some("b"),
            ),
            (
                json!([{"role": "assistant", "parts": [{"type": "text", "content": "c"}]}]),
                Some("c"),
            ),
            (json!({"messages": [{"kwargs": {"content": "d", "type": "ai"}}]}), Some("d")),
            (json!({"generations": [[{"text": "e", "type": "ChatGeneration"}]]}), Some("e")),
            (json!([{"type": "function_call", "name": "pay", "arguments": "{}"}]), Some("pay({})")),
            (
                json!([{"role": "assistant", "parts": [{"type": "tool_call", "name": "pay", "arguments": {"usd": 2}}]}]),
                Some("pay({\"usd\":2})"),
            ),
            (json!({"n": 1}), Some("{\"n\":1}")),
        ] {
            assert_eq!(value_text(&value).as_deref(), expected, "{value}");
            let string = value.to_string();
            assert!(json_text(&string).is_some(), "{value}");
        }
        assert_eq!(json_text("[{\"role\":\"user\",\"content\":\"x\"}]").as_deref(), Some("x"));
        assert_eq!(json_text("[broken").as_deref(), Some("[broken"));
        assert!(text(&"ä".repeat(40_000)).len() <= MAX_TEXT);
        assert_eq!(
            &*text("{\"env\": {\"SHOP_TOKEN\": \"k1\"}}"),
            "{\"env\": {\"SHOP_TOKEN\": \"***\"}}"
        );
        assert_eq!(value_text(&json!({"api_key": "k1"})).as_deref(), Some("{\"api_key\":\"***\"}"));
        assert_eq!(&*name("GET v1?key=k1"), "GET v1?key=***");
    }
}
