//! The fields that a pattern adds to an outcome, and the results that were replaced.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::name::{TaskId, ToolName};
use crate::event::StopReason;
use crate::event::kind::FallbackKind;

/// Bytes that the values of most outcomes take.
const ROOM: usize = 2_048;
/// Fields of most outcomes.
const FIELDS: usize = 8;

/// Fields of an outcome in order, each as JSON.
#[derive(Clone, Default)]
pub struct OutcomeFields {
    /// The values, one after another.
    json: Vec<u8>,
    /// Each field, and the end of its value in `json`.
    ends: Vec<(&'static str, usize)>,
}

impl OutcomeFields {
    /// Adds a field. It is `null` if it cannot be written as JSON, which does not happen for our
    /// values.
    pub(crate) fn add(&mut self, name: &'static str, value: &impl Serialize) {
        if self.ends.is_empty() {
            self.json.reserve(ROOM);
            self.ends.reserve(FIELDS);
        }
        let begins = self.json.len();
        if serde_json::to_writer(&mut self.json, value).is_err() {
            self.json.truncate(begins);
            self.json.extend_from_slice(b"null");
        }
        self.ends.push((name, self.json.len()));
    }

    /// Value of a field, parsed from its JSON.
    pub fn get(&self, name: &str) -> Option<Value> {
        let (_, json) = self.iter().find(|(field, _)| *field == name)?;
        serde_json::from_slice(json).ok()
    }

    /// Each field and its JSON.
    fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.ends.iter().scan(0, |begins, (name, end)| {
            let json = self.json.get(std::mem::replace(begins, *end)..*end);
            Some((*name, json.unwrap_or_default()))
        })
    }
}

impl fmt::Debug for OutcomeFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.iter().map(|(name, json)| (name, String::from_utf8_lossy(json)));
        f.debug_map().entries(fields).finish()
    }
}

#[cfg(feature = "tui")]
impl schemars::JsonSchema for OutcomeFields {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OutcomeFields".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

impl Serialize for OutcomeFields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let raw = |json| serde_json::from_slice::<&RawValue>(json).unwrap_or(RawValue::NULL);
        to.collect_map(self.iter().map(|(name, json)| (name, raw(json))))
    }
}

/// A result that was replaced by a fallback or omitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct Replaced {
    /// Name of the tool.
    pub tool: ToolName,
    /// Id of the task, if the tool was a task's worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The kind of fallback.
    #[serde(flatten)]
    pub by: FallbackKind,
    /// How often it was used, if not for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Why it was used, if for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
}

/// A value as JSON; our values can always be written.
pub(crate) fn to_value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// A number rounded to three decimals, as files show it.
pub(crate) fn thousandths(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use serde::ser::Error;
    use serde_json::json;

    use super::*;

    /// Begins a list and fails.
    struct Broken;

    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq([1, 2]).and(Err(S::Error::custom("broken")))
        }
    }

    #[test]
    fn fields_keep_their_order_and_a_broken_one_is_null() {
        let mut fields = OutcomeFields::default();
        assert_eq!(json!(fields), json!({}));
        fields.add("b", &"text");
        fields.add("a", &Broken);
        fields.add("c", &json!({ "d": [] }));
        let text = serde_json::to_string(&fields).expect("JSON");
        assert_eq!(text, r#"{"b":"text","a":null,"c":{"d":[]}}"#);
        assert_eq!(
            (fields.get("a"), fields.get("c")),
            (Some(Value::Null), Some(json!({ "d": [] })))
        );
        assert_eq!(fields.get("d"), None);
        assert_eq!(format!("{fields:?}"), r#"{"b": "\"text\"", "a": "null", "c": "{\"d\":[]}"}"#);
    }
}
