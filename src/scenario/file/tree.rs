//! The file as a tree of values with positions. Overrides are applied to it before it is read, so
//! each value also knows the override that it came from.

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// A byte range of the file or of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextSpan {
    /// 0 is the file; from 1 on, the override with that number.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl TextSpan {
    /// A byte range of the text with this number.
    pub fn new(text: usize, range: std::ops::Range<usize>) -> Self {
        Self { text, start: range.start, end: range.end }
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct TomlNode {
    /// Its position. For a table with a header that is the header.
    pub at: TextSpan,
    /// The value.
    pub value: TomlValue,
}

/// A value of a file.
#[derive(Debug, Clone)]
pub(crate) enum TomlValue {
    Text(String),
    /// `None`: it does not fit into 64 bits.
    Integer(Option<i64>),
    Number(f64),
    Boolean(bool),
    Date(String),
    List(Vec<TomlNode>),
    Table(TomlTable),
}

/// Keys and values in the file's order.
#[derive(Debug, Clone, Default)]
pub(crate) struct TomlTable {
    pub entries: Vec<(TomlKey, TomlNode)>,
}

/// A key and its position.
#[derive(Debug, Clone)]
pub(crate) struct TomlKey {
    pub at: TextSpan,
    pub text: String,
}

impl TomlTable {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&TomlNode> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    /// The value under a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut TomlNode> {
        self.entries.iter_mut().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    pub(crate) fn from_toml(table: &DeTable<'_>, text: usize) -> Self {
        let entries = table
            .iter()
            .map(|(key, value)| {
                let at = TextSpan::new(text, key.span());
                let node = TomlNode::from_value(value.get_ref(), TextSpan::new(text, value.span()));
                (TomlKey { at, text: key.get_ref().to_string() }, node)
            })
            .collect();
        Self { entries }
    }
}

impl TomlNode {
    /// Converts a value of the TOML parser.
    pub fn from_value(value: &DeValue<'_>, at: TextSpan) -> Self {
        let value = match value {
            DeValue::String(text) => TomlValue::Text(text.to_string()),
            DeValue::Integer(digits) => {
                TomlValue::Integer(i64::from_str_radix(digits.as_str(), digits.radix()).ok())
            }
            DeValue::Float(digits) => {
                TomlValue::Number(digits.as_str().parse().unwrap_or(f64::NAN))
            }
            DeValue::Boolean(truth) => TomlValue::Boolean(*truth),
            DeValue::Datetime(date) => TomlValue::Date(date.to_string()),
            DeValue::Array(items) => TomlValue::List(
                items
                    .iter()
                    .map(|item| {
                        Self::from_value(item.get_ref(), TextSpan::new(at.text, item.span()))
                    })
                    .collect(),
            ),
            DeValue::Table(table) => TomlValue::Table(TomlTable::from_toml(table, at.text)),
        };
        Self { at, value }
    }

    /// A short description for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            TomlValue::Text(text) if text.chars().count() <= 24 && !text.contains('\n') => {
                format!("the string {text:?}")
            }
            TomlValue::Text(_) => "a string".to_owned(),
            TomlValue::Integer(Some(number)) => format!("the number {number}"),
            TomlValue::Integer(None) => "a number beyond 64 bits".to_owned(),
            TomlValue::Number(number) => format!("the number {number}"),
            TomlValue::Boolean(truth) => truth.to_string(),
            TomlValue::Date(date) => format!("the date {date}"),
            TomlValue::List(_) => "a list".to_owned(),
            TomlValue::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as JSON; dates become strings. `each` converts the strings.
    ///
    /// # Errors
    /// The position of a number that JSON cannot represent.
    pub fn json(&self, each: &mut impl FnMut(&str, TextSpan) -> Value) -> Result<Value, TextSpan> {
        Ok(match &self.value {
            TomlValue::Text(text) => each(text, self.at),
            TomlValue::Integer(number) => Value::from(number.ok_or(self.at)?),
            TomlValue::Number(number) => Value::Number(Number::from_f64(*number).ok_or(self.at)?),
            TomlValue::Boolean(truth) => Value::Bool(*truth),
            TomlValue::Date(date) => Value::String(date.clone()),
            TomlValue::List(items) => {
                Value::Array(items.iter().map(|item| item.json(each)).collect::<Result<_, _>>()?)
            }
            TomlValue::Table(table) => Value::Object(table.json(each)?),
        })
    }
}

impl TomlTable {
    /// The table as JSON: see [`TomlNode::json`].
    pub fn json(
        &self,
        each: &mut impl FnMut(&str, TextSpan) -> Value,
    ) -> Result<Map<String, Value>, TextSpan> {
        self.entries.iter().map(|(key, node)| Ok((key.text.clone(), node.json(each)?))).collect()
    }
}

impl TomlNode {
    /// A table that is not in the file.
    pub fn empty_table(at: TextSpan) -> Self {
        Self { at, value: TomlValue::Table(TomlTable::default()) }
    }
}

impl TomlNode {
    /// Moves all positions by an offset: the value was parsed from a part of its text.
    pub fn shift(&mut self, by: usize) {
        self.at.shift(by);
        match &mut self.value {
            TomlValue::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            TomlValue::Table(table) => {
                for (key, node) in &mut table.entries {
                    key.at.shift(by);
                    node.shift(by);
                }
            }
            _ => {}
        }
    }
}

impl TextSpan {
    fn shift(&mut self, by: usize) {
        self.start += by;
        self.end += by;
    }
}
