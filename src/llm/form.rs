//! The required form of a reply.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The required form of a reply. It only shapes the request; policy alone judges the reply.
#[derive(Clone, Debug, Default)]
pub enum ReplyForm {
    /// Any text.
    #[default]
    Text,
    /// One JSON object.
    Object,
    /// One JSON object that follows this contract.
    Contract(Arc<ReplyContract>),
}

/// The contract of a reply, as a JSON schema.
pub struct ReplyContract {
    /// The name of the schema for the provider: letters, digits and `_`.
    pub name: &'static str,
    /// Whether strict mode is possible: every object in the schema lists all of its keys.
    pub strict: bool,
    /// The schema as JSON, built when it is first sent; a script never needs it.
    schema: LazyLock<Box<RawValue>, Box<dyn FnOnce() -> Box<RawValue> + Send>>,
    /// The schema without bounds, for an API that does not support them; built when it is first
    /// sent. `None` if the schema has no bounds.
    without_bounds: OnceLock<Option<Box<RawValue>>>,
    /// What chat completions call the format of the reply, with the schema in it; built when it is first
    /// sent.
    chat_format: OnceLock<Box<RawValue>>,
}

impl fmt::Debug for ReplyContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ReplyContract {
    /// The schema, as the JSON that is sent.
    pub fn schema(&self) -> &RawValue {
        &self.schema
    }

    /// The schema for an API that does not support bounds. `change` is called once; it returns
    /// `None` if the schema can stay as it is.
    pub(super) fn schema_without_bounds(
        &self,
        change: impl FnOnce(&RawValue) -> Option<Box<RawValue>>,
    ) -> &RawValue {
        let changed = self.without_bounds.get_or_init(|| change(self.schema()));
        changed.as_deref().unwrap_or_else(|| self.schema())
    }

    /// The format of the reply for chat completions. `make` is called once.
    pub(super) fn chat_format(&self, make: impl FnOnce() -> Box<RawValue>) -> &RawValue {
        self.chat_format.get_or_init(make)
    }

    /// The schema of an object with exactly these keys. Providers support a subset of JSON Schema
    /// with shapes and enumerated words, so bounds of numbers and lengths are stated in the prompt
    /// only.
    pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let properties: Map<String, Value> =
            fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        })
    }

    /// The schema of a text that is one of these words.
    pub fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> Value {
        json!({ "type": "string", "enum": words.into_iter().collect::<Vec<_>>() })
    }
}

impl ReplyForm {
    /// The form of a reply that follows this contract.
    pub fn with_contract(
        name: &'static str,
        strict: bool,
        schema: impl FnOnce() -> Value + Send + 'static,
    ) -> Self {
        // Our own schemas serialize without errors.
        let text = || to_raw_value(&schema()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let schema = LazyLock::new(Box::new(text) as Box<dyn FnOnce() -> Box<RawValue> + Send>);
        let (without_bounds, chat_format) = (OnceLock::new(), OnceLock::new());
        let contract = ReplyContract { name, strict, schema, without_bounds, chat_format };
        Self::Contract(Arc::new(contract))
    }

    /// Whether the reply must be JSON.
    pub fn is_json(&self) -> bool {
        !matches!(self, Self::Text)
    }

    /// The contract, if there is one.
    pub fn contract(&self) -> Option<&ReplyContract> {
        match self {
            Self::Contract(contract) => Some(contract),
            Self::Text | Self::Object => None,
        }
    }
}
