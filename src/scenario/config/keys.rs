//! The keys that the configuration gives to actions. Which actions and keys there are is known to
//! the dashboard, which checks them.

use serde_json::{Value, json};

use crate::scenario::file::named::NameRule;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FormatShape, StringField};
use crate::scenario::file::tree::{TomlNode, TomlValue};

/// Most keys of one action.
const MAX_KEYS: usize = 9;

/// The keys of one action, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredKeys {
    /// Name of the action.
    pub action: String,
    /// Position of the name in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
    /// Its line.
    pub line: usize,
    /// The keys; none: the action has no key.
    pub keys: Vec<ConfiguredKey>,
}

/// One key of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredKey {
    /// The key as it is written.
    pub text: String,
    /// Its position in the configuration file: `FILE:LINE:COLUMN`.
    pub place: String,
}

/// A key, or a list of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyList(pub Vec<StringField>);

impl FormatShape for KeyList {
    fn schema() -> Value {
        let list = json!({ "type": "array", "items": StringField::schema(), "maxItems": MAX_KEYS });
        json!({ "oneOf": [StringField::schema(), list] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(_) => StringField::read(node, cx).map(|key| Self(vec![key])),
            TomlValue::List(items) if items.len() > MAX_KEYS => {
                let what = format!("{} keys are too many", items.len());
                cx.error(node.at, what, format!("at most {MAX_KEYS}"));
                None
            }
            TomlValue::List(items) => {
                let read = |(index, item)| cx.at_index(index, |cx| StringField::read(item, cx));
                items.iter().enumerate().map(read).collect::<Option<_>>().map(Self)
            }
            _ => {
                cx.wrong_type(node, "a key (\"x\") or a list of keys ([\"x\", \"ctrl-x\"])");
                None
            }
        }
    }
}

/// Name of an action.
#[derive(Debug, Clone)]
pub(crate) struct ActionName;

impl NameRule for ActionName {
    const PATTERN: &'static str = "^[a-z]+(-[a-z]+)*$";
    const WORDS: &'static str =
        "the name of an action, as docs/keys.md and the list of commands have it";
    /// Every text: the dashboard tells an unknown name, with a suggestion.
    fn fits(_: &str) -> bool {
        true
    }
}
