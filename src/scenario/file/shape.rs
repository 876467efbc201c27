//! Descriptions of the parts of a file. One description gives both the reader (with all problems
//! and their positions) and the JSON schema, so the two cannot disagree.

use serde_json::{Map, Value, json};

use super::reader::ReadContext;
use super::tree::{TextSpan, TomlNode, TomlTable, TomlValue};

/// A part of the file: its JSON schema and its reader.
pub(crate) trait FormatShape: Sized {
    /// Its JSON schema.
    fn schema() -> Value;
    /// Reads it. `None` if it is invalid; `cx` then has the problem.
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self>;
    /// The value as JSON, for the schema's `default`.
    fn default_json(&self) -> Value {
        Value::Null
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct Positioned<T> {
    pub at: TextSpan,
    pub value: T,
}

impl<T> Positioned<T> {
    /// A value that is not in the file, such as a default.
    pub fn not_in_file(value: T) -> Self {
        Self { at: TextSpan::new(0, 0..0), value }
    }

    /// Whether the value is not in the file.
    pub fn is_not_in_file(&self) -> bool {
        self.at == TextSpan::new(0, 0..0)
    }
}

impl<T: FormatShape> FormatShape for Positioned<T> {
    fn schema() -> Value {
        T::schema()
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        T::read(node, cx).map(|value| Self { at: node.at, value })
    }
    fn default_json(&self) -> Value {
        self.value.default_json()
    }
}

impl FormatShape for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match node.value {
            TomlValue::Boolean(truth) => Some(truth),
            _ => {
                cx.wrong_type(node, "true or false");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        Value::Bool(*self)
    }
}

/// An integer between two bounds, both included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntegerField<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> FormatShape for IntegerField<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Integer(number) = node.value else {
            cx.wrong_type(node, &format!("a whole number from {MIN} to {MAX}"));
            return None;
        };
        let fits = number.and_then(|number| u32::try_from(number).ok());
        match fits.filter(|number| (MIN..=MAX).contains(number)) {
            Some(number) => Some(Self(number)),
            None => {
                let found = number.map_or_else(|| node.describe(), |number| number.to_string());
                cx.error(node.at, format!("{found} is out of range"), format!("{MIN} to {MAX}"));
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        self.0.into()
    }
}

/// A string, one line or many; may be empty.
#[derive(Debug, Clone)]
pub(crate) struct StringField {
    pub at: TextSpan,
    pub text: String,
}

impl FormatShape for StringField {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_text(node, cx).map(|text| Self { at: node.at, text })
    }
}

/// A string that is not blank.
#[derive(Debug, Clone)]
pub(crate) struct NonBlankString {
    pub at: TextSpan,
    pub text: String,
}

impl FormatShape for NonBlankString {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "pattern": r"\S" })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let text = read_text(node, cx)?;
        if text.trim().is_empty() {
            cx.error(node.at, "the string is empty", "write something, or remove the key");
            return None;
        }
        Some(Self { at: node.at, text })
    }
}

/// The string of a node. The value of an override counts as a string where one is expected, even if
/// it could be a number: `--set inputs.campaign=2026`.
fn read_text(node: &TomlNode, cx: &mut ReadContext) -> Option<String> {
    match &node.value {
        TomlValue::Text(text) => Some(text.clone()),
        TomlValue::Integer(_)
        | TomlValue::Number(_)
        | TomlValue::Boolean(_)
        | TomlValue::Date(_)
            if node.at.text > 0 =>
        {
            Some(cx.raw(node.at).to_owned())
        }
        _ => {
            cx.wrong_type(node, "a string");
            None
        }
    }
}

/// A list with `MIN` to `MAX` items.
#[derive(Debug, Clone)]
pub(crate) struct BoundedList<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: FormatShape, const MIN: usize, const MAX: usize> FormatShape for BoundedList<T, MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema(), "minItems": MIN, "maxItems": MAX })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::List(items) = &node.value else {
            cx.wrong_type(node, "a list");
            return None;
        };
        if items.len() < MIN {
            let what = if items.is_empty() { "the list is empty" } else { "too few items" };
            cx.error(node.at, what, format!("at least {MIN}"));
            return None;
        }
        if items.len() > MAX {
            cx.error(
                node.at,
                format!("{} items are too many", items.len()),
                format!("at most {MAX}"),
            );
            return None;
        }
        let read = |(index, item)| cx.at_index(index, |cx| T::read(item, cx));
        Some(Self(items.iter().enumerate().filter_map(read).collect()))
    }
    fn default_json(&self) -> Value {
        Value::Array(self.0.iter().map(FormatShape::default_json).collect())
    }
}

/// A table with any keys and values.
#[derive(Debug, Clone, Default)]
pub(crate) struct FreeTable {
    pub table: TomlTable,
    /// It is invalid, so its contents are not known.
    pub broken: bool,
}

impl FormatShape for FreeTable {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return Some(Self { broken: true, ..Self::default() });
        };
        let bad = table.json(&mut |_, _| Value::Null).err();
        if let Some(at) = bad {
            cx.error(
                at,
                "this number cannot be sent to a model",
                "use a finite number of at most 64 bits",
            );
        }
        Some(Self { table: table.clone(), broken: bad.is_some() })
    }
    fn default_json(&self) -> Value {
        Value::Object(Map::new())
    }
}

/// A string that is not blank, or a table with any keys and values.
#[derive(Debug, Clone)]
pub(crate) enum TextOrTable {
    Text(NonBlankString),
    Table(FreeTable),
}

impl FormatShape for TextOrTable {
    fn schema() -> Value {
        json!({ "oneOf": [NonBlankString::schema(), FreeTable::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(_) => NonBlankString::read(node, cx).map(Self::Text),
            TomlValue::Table(_) => FreeTable::read(node, cx).map(Self::Table),
            _ => {
                cx.wrong_type(node, "a string or a table");
                None
            }
        }
    }
}
