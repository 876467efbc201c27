//! The form that a reply must have.

use std::sync::Arc;

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
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// What providers want a schema to be called: letters, digits and `_`.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
    /// Whether it may be sent as a strict one: every object in it says all of its keys.
    pub strict: bool,
}

impl Contract {
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
    pub fn of(name: &'static str, schema: Value, strict: bool) -> Self {
        Self::Contract(Arc::new(Contract { name, schema, strict }))
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
