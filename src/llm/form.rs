//! The form that a reply must have.

use std::sync::Arc;

use serde_json::Value;

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

impl Form {
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
