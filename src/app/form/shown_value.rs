//! Values of scenarios as text.

/// A value as text, strings without quotes.
pub(crate) fn shown_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
