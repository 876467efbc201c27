//! The fields that a pattern adds to an outcome, and the results that were replaced.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::base::name::{TaskId, ToolName};
use crate::event::StopReason;
use crate::event::kind::FallbackKind;

/// Fields of an outcome in order, each as its JSON text.
#[derive(Clone, Debug, Default)]
pub struct OutcomeFields(Vec<(&'static str, Box<RawValue>)>);

impl OutcomeFields {
    /// Adds a field. It is `null` if it cannot be written as JSON, which does not happen for our
    /// values.
    pub(crate) fn add(&mut self, name: &'static str, value: &impl Serialize) {
        self.0.push((name, to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())));
    }

    /// Value of a field, parsed from its JSON.
    pub fn get(&self, name: &str) -> Option<Value> {
        let (_, raw) = self.0.iter().find(|(field, _)| *field == name)?;
        serde_json::from_str(raw.get()).ok()
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
        to.collect_map(self.0.iter().map(|(name, raw)| (name, raw)))
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
