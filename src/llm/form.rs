//! The form that a reply must have.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The form of a reply. Policy stays the only judge of it: what is said here is how the model is
/// asked.
#[derive(Clone, Debug, Default)]
pub enum Form {
    /// Any text.
    #[default]
    Text,
    /// One JSON object.
    Object,
    /// One JSON object of this contract.
    Contract(Arc<Contract>),
}

/// The contract of a reply, as a JSON schema.
pub struct Contract {
    /// What providers want a schema to be called: letters, digits and `_`.
    pub name: &'static str,
    /// Whether it may be sent as a strict one: every object in it says all of its keys.
    pub strict: bool,
    /// Its text, made when an endpoint is first sent it: a script needs none.
    schema: LazyLock<Box<RawValue>, Box<dyn FnOnce() -> Box<RawValue> + Send>>,
    /// The same for an API that takes no bounds, once such an endpoint is sent it; `None`: there are
    /// none in it.
    without_bounds: OnceLock<Option<Box<RawValue>>>,
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Contract {
    /// The schema, as the JSON that is sent.
    pub fn schema(&self) -> &RawValue {
        &self.schema
    }

    /// The schema for an API that takes no bounds: what `change` makes of it the first time, `None` where
    /// it stays as it is.
    pub(super) fn schema_without_bounds(
        &self,
        change: impl FnOnce(&RawValue) -> Option<Box<RawValue>>,
    ) -> &RawValue {
        let changed = self.without_bounds.get_or_init(|| change(self.schema()));
        changed.as_deref().unwrap_or_else(|| self.schema())
    }

    /// An object of exactly these keys, which a schema says of each. Providers take the subset of JSON
    /// Schema that says shapes and words, so bounds of numbers and lengths stand in the prompt alone.
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

    /// A text that is one of these words.
    pub fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> Value {
        json!({ "type": "string", "enum": words.into_iter().collect::<Vec<_>>() })
    }
}

impl Form {
    /// The form of a reply of this contract.
    pub fn of(
        name: &'static str,
        strict: bool,
        schema: impl FnOnce() -> Value + Send + 'static,
    ) -> Self {
        // A schema of ours can always be written.
        let text = || to_raw_value(&schema()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let schema = LazyLock::new(Box::new(text) as Box<dyn FnOnce() -> Box<RawValue> + Send>);
        let without_bounds = OnceLock::new();
        Self::Contract(Arc::new(Contract { name, strict, schema, without_bounds }))
    }

    /// Whether the reply must be JSON.
    pub fn is_json(&self) -> bool {
        !matches!(self, Self::Text)
    }

    /// The contract, where there is one.
    pub fn contract(&self) -> Option<&Contract> {
        match self {
            Self::Contract(contract) => Some(contract),
            Self::Text | Self::Object => None,
        }
    }
}
