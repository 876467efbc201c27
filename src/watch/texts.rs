//! The texts that spans carry: bounded, without keys of the known forms, and the plain text of messages where a
//! framework wraps it in JSON.

use std::sync::Arc;

use serde_json::Value;

use super::messages;
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

/// The value as a text: a string as it is, of messages the last one, anything else as JSON. `None`: it is empty.
pub(super) fn value_text(value: &Value) -> Option<Arc<str>> {
    if let Some(message) =
        messages::said(value).iter().rev().map(messages::text_of).find(|it| !it.is_empty())
    {
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
    let said = json(string).map(|value| messages::said(&value)).unwrap_or_default();
    match said.iter().rev().map(messages::text_of).find(|it| !it.is_empty()) {
        Some(message) => Some(text(&message)),
        None => (!string.is_empty()).then(|| text(string)),
    }
}

/// Longest JSON in a text that is read, in bytes.
const MAX_JSON: usize = 8 << 20;

/// The object or list in a text, if it is JSON.
pub(super) fn json(text: &str) -> Option<Value> {
    let is_json = text.trim_start().starts_with(['[', '{']) && text.len() <= MAX_JSON;
    is_json.then(|| serde_json::from_str(text).ok()).flatten()
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
            (
                json!({"content": "no message", "path": "a"}),
                Some("{\"content\":\"no message\",\"path\":\"a\"}"),
            ),
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
