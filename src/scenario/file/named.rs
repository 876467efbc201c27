//! Tables under names from the file: inputs, flags, roles, workers, tools, sources.

use serde_json::{Map, Value, json};

use super::reader::ReadContext;
use super::shape::FormatShape;
use super::tree::{TextSpan, TomlNode, TomlValue};

/// The rule for one kind of name.
pub(crate) trait NameRule {
    /// The rule as a regular expression.
    const PATTERN: &'static str;
    /// The rule in words, for help texts.
    const WORDS: &'static str;
    /// Whether a text follows the rule.
    fn fits(text: &str) -> bool;
    /// The problem and the help for a text that does not.
    fn name_error(text: &str) -> (String, String) {
        (format!("`{text}` is not a valid name"), Self::WORDS.to_owned())
    }
}

/// A name that can be used in a condition: `facts.x`, `{{x}}`.
#[derive(Debug, Clone)]
pub(crate) struct IdentName;

impl NameRule for IdentName {
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
    const WORDS: &'static str = "use letters, digits and _, no digit first, at most 64";
    fn fits(text: &str) -> bool {
        text.len() <= 64
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

/// The name of a role, a worker, an agent or a tool.
#[derive(Debug, Clone)]
pub(crate) struct ActorName;

impl NameRule for ActorName {
    const PATTERN: &'static str = "^[A-Za-z0-9_-]{1,64}$";
    const WORDS: &'static str = "use letters, digits, _ and -, at most 64";
    fn fits(text: &str) -> bool {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }
}

/// A key of a tool's result.
#[derive(Debug, Clone)]
pub(crate) struct ResultKey;

impl NameRule for ResultKey {
    const PATTERN: &'static str = "^.{1,128}$";
    const WORDS: &'static str = "use 1 to 128 characters";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.chars().count()) && !text.contains('\n')
    }
}

/// The name of an HTTP header.
#[derive(Debug, Clone)]
pub(crate) struct HeaderName;

impl NameRule for HeaderName {
    const PATTERN: &'static str = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$";
    const WORDS: &'static str = "write a header such as Authorization or X-Api-Key";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte))
    }
}

/// The name of an environment variable.
#[derive(Debug, Clone)]
pub(crate) struct EnvName;

impl NameRule for EnvName {
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";
    const WORDS: &'static str = "use letters, digits and _, no digit first, at most 128";
    fn fits(text: &str) -> bool {
        (1..=128).contains(&text.len())
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

/// Maximum number of names of one kind: they are compared with one another.
pub(crate) const MAX_NAMES: usize = 2_000;

/// Tables under names from the file, in its order.
#[derive(Debug, Clone)]
pub(crate) struct NamedEntries<T, R> {
    pub entries: Vec<NamedEntry<T>>,
    /// The value is not a table, so its names are not known.
    broken: bool,
    rule: std::marker::PhantomData<R>,
}

/// One entry of [`NamedEntries`].
#[derive(Debug, Clone)]
pub(crate) struct NamedEntry<T> {
    pub name: String,
    pub at: TextSpan,
    /// `None`: the name exists, but its value is invalid.
    pub value: Option<T>,
}

impl<T, R> NamedEntries<T, R> {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
    /// Whether it has this name; true if the names are not known.
    pub fn has(&self, name: &str) -> bool {
        self.broken || self.names().any(|known| known == name)
    }
}

impl<T, R> Default for NamedEntries<T, R> {
    fn default() -> Self {
        Self { entries: Vec::new(), broken: false, rule: std::marker::PhantomData }
    }
}

impl<T: FormatShape, R: NameRule> FormatShape for NamedEntries<T, R> {
    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "pattern": R::PATTERN },
            "additionalProperties": T::schema(),
            "maxProperties": MAX_NAMES,
        })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return Some(Self { broken: true, ..Self::default() });
        };
        let count = table.entries.len();
        if count > MAX_NAMES {
            let help = format!("at most {MAX_NAMES}");
            cx.error(node.at, format!("{count} names are too many"), help);
            return Some(Self { broken: true, ..Self::default() });
        }
        let mut named = Self::default();
        for (key, node) in &table.entries {
            cx.at_key(&key.text, |cx| {
                if !R::fits(&key.text) {
                    let (what, help) = R::name_error(&key.text);
                    cx.error(key.at, what, help);
                }
                let value = T::read(node, cx);
                named.entries.push(NamedEntry { name: key.text.clone(), at: key.at, value });
            });
        }
        Some(named)
    }
    fn default_json(&self) -> Value {
        Value::Object(Map::new())
    }
}
