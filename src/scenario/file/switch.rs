//! The file format of a switch: a boolean, or the boolean input that it takes its value from.

use serde_json::{Value, json};

use super::reader::ReadContext;
use super::shape::{FormatShape, NonBlankString};
use super::tree::{TomlNode, TomlValue};

/// `true`, `false`, or a string that names a boolean input.
#[derive(Debug, Clone)]
pub(crate) enum BoolOrInput {
    Set(bool),
    Named(NonBlankString),
}

impl FormatShape for BoolOrInput {
    fn schema() -> Value {
        json!({ "oneOf": [
            { "type": "boolean" },
            { "type": "string", "pattern": r"^\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}$" },
        ] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Set(*truth)),
            TomlValue::Text(text) => {
                Some(Self::Named(NonBlankString { at: node.at, text: text.clone() }))
            }
            _ => {
                cx.wrong_type(node, "true, false, or \"{{input}}\"");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        match self {
            Self::Set(truth) => Value::Bool(*truth),
            Self::Named(text) => text.text.as_str().into(),
        }
    }
}
