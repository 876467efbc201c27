//! The file format of a setting: a string, or the environment variable that holds it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::named::NamedEntries;
use super::reader::ReadContext;
use super::record::{ObjectSchema, Requirement, join_doc_lines, record};
use super::shape::{FormatShape, NonBlankString, Positioned, StringField};
use super::tree::{TomlNode, TomlValue};
use crate::scenario::spec::http::Setting;

record! {
    /// A string that is read from an environment variable.
    struct EnvTable => {
        /// The name of the variable.
        env: NonBlankString = needed,
    }
}

impl FormatShape for Setting {
    fn schema() -> Value {
        json!({ "oneOf": [StringField::schema(), EnvTable::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(text) => Some(Self::Text(text.clone())),
            TomlValue::Table(_) => EnvTable::read(node, cx)?.env.map(|env| Self::Env(env.text)),
            _ => {
                cx.wrong_type(node, "a string, or { env = \"NAME\" }");
                None
            }
        }
    }
}

/// The valid settings by name.
pub(crate) fn settings<R>(
    named: &NamedEntries<Positioned<Setting>, R>,
) -> BTreeMap<String, Setting> {
    let good = named.entries.iter().filter_map(|entry| {
        entry.value.as_ref().map(|value| (entry.name.clone(), value.value.clone()))
    });
    good.collect()
}
