//! How a part of the file is described. One description gives both what is read (with every problem
//! and its place) and the JSON schema, so the two cannot disagree.

use serde_json::{Map, Value, json};

use super::reader::Reader;
use super::tree::{Node, Span, Table, Tree};

/// A part of the file: what it looks like, and how it is read.
pub(super) trait Shape: Sized {
    /// Its JSON schema.
    fn schema() -> Value;
    /// Reads it. `None`: it is not as it should be, and `cx` has been told.
    fn read(node: &Node, cx: &mut Reader) -> Option<Self>;
    /// As JSON, for the schema's `default`.
    fn plain(&self) -> Value {
        Value::Null
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub at: Span,
    pub value: T,
}

impl<T> At<T> {
    /// A value that is not in the file.
    pub fn nowhere(value: T) -> Self {
        Self { at: Span::new(0, 0..0), value }
    }

    /// Whether it is one of those: nobody wrote it.
    pub fn is_nowhere(&self) -> bool {
        self.at == Span::new(0, 0..0)
    }
}

impl<T: Shape> Shape for At<T> {
    fn schema() -> Value {
        T::schema()
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        T::read(node, cx).map(|value| Self { at: node.at, value })
    }
    fn plain(&self) -> Value {
        self.value.plain()
    }
}

impl Shape for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match node.value {
            Tree::Truth(truth) => Some(truth),
            _ => {
                cx.wrong_type(node, "true or false");
                None
            }
        }
    }
    fn plain(&self) -> Value {
        Value::Bool(*self)
    }
}

/// A whole number between two bounds, both included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Shape for Whole<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Whole(number) = node.value else {
            cx.wrong_type(node, &format!("a whole number from {MIN} to {MAX}"));
            return None;
        };
        let fits = number.and_then(|number| u32::try_from(number).ok());
        match fits.filter(|number| (MIN..=MAX).contains(number)) {
            Some(number) => Some(Self(number)),
            None => {
                let found = number.map_or_else(|| node.what(), |number| number.to_string());
                cx.error(node.at, format!("{found} is out of range"), format!("{MIN} to {MAX}"));
                None
            }
        }
    }
    fn plain(&self) -> Value {
        self.0.into()
    }
}

/// A text, one line or many, empty or not.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub at: Span,
    pub text: String,
}

impl Shape for Text {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        read_text(node, cx).map(|text| Self { at: node.at, text })
    }
}

/// A text that says something.
#[derive(Debug, Clone)]
pub(super) struct Prose {
    pub at: Span,
    pub text: String,
}

impl Shape for Prose {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "pattern": r"\S" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let text = read_text(node, cx)?;
        if text.trim().is_empty() {
            cx.error(node.at, "the text is empty", "say something here, or leave the key out");
            return None;
        }
        Some(Self { at: node.at, text })
    }
}

/// The text of a node. The value of an override is a text where one is wanted, even if it could be
/// a number: `--set inputs.campaign=2026`.
fn read_text(node: &Node, cx: &mut Reader) -> Option<String> {
    match &node.value {
        Tree::Text(text) => Some(text.clone()),
        Tree::Whole(_) | Tree::Number(_) | Tree::Truth(_) | Tree::Date(_) if node.at.text > 0 => {
            Some(cx.raw(node.at).to_owned())
        }
        _ => {
            cx.wrong_type(node, "a text");
            None
        }
    }
}

/// A list of at least `MIN` and at most `MAX` items.
#[derive(Debug, Clone)]
pub(super) struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: Shape, const MIN: usize, const MAX: usize> Shape for List<T, MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema(), "minItems": MIN, "maxItems": MAX })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::List(items) = &node.value else {
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
        let read = |(index, item)| cx.item(index, |cx| T::read(item, cx));
        Some(Self(items.iter().enumerate().filter_map(read).collect()))
    }
    fn plain(&self) -> Value {
        Value::Array(self.0.iter().map(Shape::plain).collect())
    }
}

/// A table whose keys and values are the author's own.
#[derive(Debug, Clone, Default)]
pub(super) struct Free {
    pub table: Table,
    /// It is not as it should be: nothing can be said of what is in it.
    pub broken: bool,
}

impl Shape for Free {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return Some(Self { broken: true, ..Self::default() });
        };
        let bad = table.json(&mut |_, _| Value::Null).err();
        if let Some(at) = bad {
            cx.error(at, "this number cannot be shown to a model", "a finite number of 64 bits");
        }
        Some(Self { table: table.clone(), broken: bad.is_some() })
    }
    fn plain(&self) -> Value {
        Value::Object(Map::new())
    }
}

/// A text that says something, or a table whose keys and values are the author's own.
#[derive(Debug, Clone)]
pub(super) enum TextOrTable {
    Text(Prose),
    Table(Free),
}

impl Shape for TextOrTable {
    fn schema() -> Value {
        json!({ "oneOf": [Prose::schema(), Free::schema()] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Text(_) => Prose::read(node, cx).map(Self::Text),
            Tree::Table(_) => Free::read(node, cx).map(Self::Table),
            _ => {
                cx.wrong_type(node, "a text or a table");
                None
            }
        }
    }
}
