//! The file as a tree of values with positions. Overrides are applied to it before it is read, so
//! each value also knows the override that it came from.

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// A byte range of the file or of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// 0 is the file; from 1 on, the override with that number.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// A byte range of the text with this number.
    pub fn new(text: usize, range: std::ops::Range<usize>) -> Self {
        Self { text, start: range.start, end: range.end }
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Its position. For a table with a header that is the header.
    pub at: Span,
    /// The value.
    pub value: Tree,
}

/// A value of a file.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    Text(String),
    /// `None`: it does not fit into 64 bits.
    Whole(Option<i64>),
    Number(f64),
    Truth(bool),
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys and values in the file's order.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub entries: Vec<(Key, Node)>,
}

/// A key and its position.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub at: Span,
    pub text: String,
}

impl Table {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    /// The value under a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    pub(super) fn of(table: &DeTable<'_>, text: usize) -> Self {
        let entries = table
            .iter()
            .map(|(key, value)| {
                let at = Span::new(text, key.span());
                let node = Node::of(value.get_ref(), Span::new(text, value.span()));
                (Key { at, text: key.get_ref().to_string() }, node)
            })
            .collect();
        Self { entries }
    }
}

impl Node {
    /// Converts a value of the TOML parser.
    pub fn of(value: &DeValue<'_>, at: Span) -> Self {
        let value = match value {
            DeValue::String(text) => Tree::Text(text.to_string()),
            DeValue::Integer(digits) => {
                Tree::Whole(i64::from_str_radix(digits.as_str(), digits.radix()).ok())
            }
            DeValue::Float(digits) => Tree::Number(digits.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(truth) => Tree::Truth(*truth),
            DeValue::Datetime(date) => Tree::Date(date.to_string()),
            DeValue::Array(items) => Tree::List(
                items
                    .iter()
                    .map(|item| Self::of(item.get_ref(), Span::new(at.text, item.span())))
                    .collect(),
            ),
            DeValue::Table(table) => Tree::Table(Table::of(table, at.text)),
        };
        Self { at, value }
    }

    /// A short description for messages.
    pub fn what(&self) -> String {
        match &self.value {
            Tree::Text(text) if text.chars().count() <= 24 && !text.contains('\n') => {
                format!("the string {text:?}")
            }
            Tree::Text(_) => "a string".to_owned(),
            Tree::Whole(Some(number)) => format!("the number {number}"),
            Tree::Whole(None) => "a number beyond 64 bits".to_owned(),
            Tree::Number(number) => format!("the number {number}"),
            Tree::Truth(truth) => truth.to_string(),
            Tree::Date(date) => format!("the date {date}"),
            Tree::List(_) => "a list".to_owned(),
            Tree::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as JSON; dates become strings. `each` converts the strings.
    ///
    /// # Errors
    /// The position of a number that JSON cannot represent.
    pub fn json(&self, each: &mut impl FnMut(&str, Span) -> Value) -> Result<Value, Span> {
        Ok(match &self.value {
            Tree::Text(text) => each(text, self.at),
            Tree::Whole(number) => Value::from(number.ok_or(self.at)?),
            Tree::Number(number) => Value::Number(Number::from_f64(*number).ok_or(self.at)?),
            Tree::Truth(truth) => Value::Bool(*truth),
            Tree::Date(date) => Value::String(date.clone()),
            Tree::List(items) => {
                Value::Array(items.iter().map(|item| item.json(each)).collect::<Result<_, _>>()?)
            }
            Tree::Table(table) => Value::Object(table.json(each)?),
        })
    }
}

impl Table {
    /// The table as JSON: see [`Node::json`].
    pub fn json(
        &self,
        each: &mut impl FnMut(&str, Span) -> Value,
    ) -> Result<Map<String, Value>, Span> {
        self.entries.iter().map(|(key, node)| Ok((key.text.clone(), node.json(each)?))).collect()
    }
}

impl Node {
    /// A table that is not in the file.
    pub fn empty_table(at: Span) -> Self {
        Self { at, value: Tree::Table(Table::default()) }
    }
}

impl Node {
    /// Moves all positions by an offset: the value was parsed from a part of its text.
    pub fn shift(&mut self, by: usize) {
        self.at.shift(by);
        match &mut self.value {
            Tree::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            Tree::Table(table) => {
                for (key, node) in &mut table.entries {
                    key.at.shift(by);
                    node.shift(by);
                }
            }
            _ => {}
        }
    }
}

impl Span {
    fn shift(&mut self, by: usize) {
        self.start += by;
        self.end += by;
    }
}
