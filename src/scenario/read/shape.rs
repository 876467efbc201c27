//! Descriptions of the parts of a file. One description gives both the reader (with all problems
//! and their positions) and the JSON schema, so the two cannot disagree. The macros `record!` and
//! `words!` write tables and words.

use serde_json::{Map, Value, json};

use super::ReadContext;
use super::prompts::FILE_SUFFIX;
use super::tree::{TextSpan, TomlNode, TomlTable, TomlValue};

/// A part of the file: its JSON schema and its reader.
pub(crate) trait FormatShape: Sized {
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

/// Maps words of the file to the variants of an enum.
macro_rules! words {
    ($name:ty: $($word:literal $(| $old:literal)* => $variant:expr, $about:literal;)+) => {
        impl FormatShape for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({
                    "oneOf": [$({ "const": $word, "description": $about }),+]
                })
            }
            fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
                let known = [$($word),+];
                let TomlValue::Text(text) = &node.value else {
                    cx.wrong_type(node, &format!("one of {}", known.join(", ")));
                    return None;
                };
                match text.as_str() {
                    $($word $(| $old)* => Some($variant),)+
                    _ => {
                        let help = $crate::scenario::read::suggest_name(text, known);
                        cx.error(node.at, format!("`{text}` is not allowed here"), help);
                        None
                    }
                }
            }
            fn default_json(&self) -> serde_json::Value {
                // Compared with `==`: all variants are plain.
                $(if *self == $variant { return $word.into(); })+
                serde_json::Value::Null
            }
        }
    };
}

/// The key of a field: without the mark of a raw identifier.
pub(crate) const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// A table and the keys that it may have. A `needed` or `optional` field is `None` if it is missing
/// or invalid; a field with a `default` then has its default; a missing `table` is read as an empty
/// one. `needed_or_file` and `optional_or_file` are strings that may be in a file, which the key
/// `FIELD_file` names; `needed_or_file_unless_person` is not needed in a table with `person`. `rule` adds rules to the JSON schema that no single field can state.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        struct $name:ident $(rule $rule:expr)? => {
            $($(#[doc = $doc:literal])+ $field:ident: $ty:ty = $how:ident $(($default:expr))?,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        pub(crate) struct $name {
            $($(#[doc = $doc])+ pub $field: record!(@type $how $ty),)+
        }

        impl FormatShape for $name {
            fn schema() -> serde_json::Value {
                #[allow(unused_mut)]
                let mut object = ObjectSchema::new(&[$($about),+]);
                $(object.field(
                    $crate::scenario::read::shape::key_name(stringify!($field)),
                    &[$($doc),+],
                    <$ty as FormatShape>::schema(),
                    record!(@need $how $ty $(, $default)?),
                );
                record!(@file $how object, $field);)+
                $(object.rule($rule);)?
                object.finish()
            }
            fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
                let known: &[&[&str]] = &[$(record!(@keys $how $field)),+];
                let needed: &[&[&str]] = &[$(record!(@needed $how $field)),+];
                let table = cx.table(node, &known.concat(), &needed.concat())?;
                Some(Self {
                    $($field: cx.at_key($crate::scenario::read::shape::key_name(stringify!($field)), |cx| {
                        record!(@field $how $field $ty, table, node, cx, join_doc_lines(&[$($doc),+]) $(, $default)?)
                    }),)+
                })
            }
        }
    };
    (@type needed $ty:ty) => { Option<$ty> };
    (@type optional $ty:ty) => { Option<$ty> };
    (@type needed_or_file $ty:ty) => { Option<$ty> };
    (@type optional_or_file $ty:ty) => { Option<$ty> };
    (@type needed_or_file_unless_person $ty:ty) => { Option<$ty> };
    (@type default $ty:ty) => { $ty };
    (@type table $ty:ty) => { Option<$ty> };
    (@need needed $ty:ty) => { Requirement::Always };
    (@need optional $ty:ty) => { Requirement::Never };
    (@need table $ty:ty) => { Requirement::IfItNeeds };
    (@need needed_or_file $ty:ty) => { Requirement::Never };
    (@need optional_or_file $ty:ty) => { Requirement::Never };
    (@need needed_or_file_unless_person $ty:ty) => { Requirement::Never };
    (@need default $ty:ty, $default:expr) => { Requirement::Default(<$ty as FormatShape>::default_json(&$default)) };
    (@file needed_or_file $object:ident, $field:ident) => {
        $object.file_of($crate::scenario::read::shape::key_name(stringify!($field)), true);
    };
    (@file needed_or_file_unless_person $object:ident, $field:ident) => {
        record!(@file optional_or_file $object, $field);
    };
    (@file optional_or_file $object:ident, $field:ident) => {
        $object.file_of($crate::scenario::read::shape::key_name(stringify!($field)), false);
    };
    (@file $how:ident $object:ident, $field:ident) => {};
    (@keys needed_or_file $field:ident) => { record!(@keys optional_or_file $field) };
    (@keys needed_or_file_unless_person $field:ident) => { record!(@keys optional_or_file $field) };
    (@keys optional_or_file $field:ident) => {
        &[$crate::scenario::read::shape::key_name(stringify!($field)), concat!(stringify!($field), "_file")]
    };
    (@keys $how:ident $field:ident) => { &[$crate::scenario::read::shape::key_name(stringify!($field))] };
    (@needed needed $field:ident) => { &[$crate::scenario::read::shape::key_name(stringify!($field))] };
    (@needed needed_or_file $field:ident) => { &[$crate::scenario::read::shape::key_name(stringify!($field))] };
    (@needed $how:ident $field:ident) => { &[] };
    (@field needed_or_file $field:ident $ty:ty, $table:expr, $node:expr, $cx:expr, $about:expr) => {
        $crate::scenario::read::shape::read_text_or_file(
            $node, $crate::scenario::read::shape::key_name(stringify!($field)), Some($about), $cx,
        )
    };
    (@field needed_or_file_unless_person $field:ident $ty:ty, $table:expr, $node:expr, $cx:expr, $about:expr) => {
        $crate::scenario::read::shape::read_text_or_file(
            $node,
            $crate::scenario::read::shape::key_name(stringify!($field)),
            $table.get("person").is_none().then(|| $about),
            $cx,
        )
    };
    (@field optional_or_file $field:ident $ty:ty, $table:expr, $node:expr, $cx:expr, $about:expr) => {
        $crate::scenario::read::shape::read_text_or_file(
            $node, $crate::scenario::read::shape::key_name(stringify!($field)), None, $cx,
        )
    };
    (@field $how:ident $field:ident $ty:ty, $table:expr, $($rest:expr),+) => {
        record!(@read $how $ty, $table.get($crate::scenario::read::shape::key_name(stringify!($field))), $($rest),+)
    };
    (@read needed $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        match $found {
            Some(found) => <$ty as FormatShape>::read(found, $cx),
            None => {
                $cx.report_missing_key($node, $about);
                None
            }
        }
    };
    (@read optional $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        $found.and_then(|found| <$ty as FormatShape>::read(found, $cx))
    };
    (@read default $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr, $default:expr) => {
        $found.and_then(|found| <$ty as FormatShape>::read(found, $cx)).unwrap_or_else(|| $default)
    };
    (@read table $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        match $found {
            Some(found) => <$ty as FormatShape>::read(found, $cx),
            None => <$ty as FormatShape>::read(&TomlNode::empty_table($node.at), $cx),
        }
    };
}

pub(crate) use {record, words};

/// Whether a key is required.
pub(crate) enum Requirement {
    Always,
    Never,
    /// Required if the table under it has required keys.
    IfItNeeds,
    Default(Value),
}

/// Builds the JSON schema of a table.
pub(crate) struct ObjectSchema {
    about: String,
    properties: Map<String, Value>,
    required: Vec<Value>,
    rules: Map<String, Value>,
    /// The rules that hold together with all others.
    all_of: Vec<Value>,
}

impl ObjectSchema {
    pub fn new(about: &[&str]) -> Self {
        Self {
            about: join_doc_lines(about),
            properties: Map::new(),
            required: Vec::new(),
            rules: Map::new(),
            all_of: Vec::new(),
        }
    }

    pub fn field(&mut self, name: &str, about: &[&str], mut schema: Value, need: Requirement) {
        let needs = schema.get("required").is_some();
        if let Value::Object(fields) = &mut schema {
            fields.insert("description".to_owned(), join_doc_lines(about).into());
            if let Requirement::Default(default) = &need
                && !default.is_null()
            {
                fields.insert("default".to_owned(), default.clone());
            }
        }
        if matches!(need, Requirement::Always) || (matches!(need, Requirement::IfItNeeds) && needs)
        {
            self.required.push(name.into());
        }
        self.properties.insert(name.to_owned(), schema);
    }

    /// Adds the key that names the file of a text, and that only one of the two is set.
    pub fn file_of(&mut self, key: &str, is_needed: bool) {
        let file = file_key(key);
        let one_of = json!({ "oneOf": [{ "required": [key] }, { "required": [&file] }] });
        self.all_of.push(match is_needed {
            true => one_of,
            false => json!({ "not": { "required": [key, &file] } }),
        });
        self.properties.insert(file, file_schema(key));
    }

    pub fn rule(&mut self, rule: Value) {
        if let Value::Object(rule) = rule {
            self.rules.extend(rule);
        }
    }

    pub fn finish(self) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("description".to_owned(), self.about.into());
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        schema.insert("additionalProperties".to_owned(), false.into());
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        schema.extend(self.rules);
        if !self.all_of.is_empty() {
            schema.insert("allOf".to_owned(), Value::Array(self.all_of));
        }
        Value::Object(schema)
    }
}

pub(crate) fn join_doc_lines(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The key that names the file of a text.
pub(crate) fn file_key(key: &str) -> String {
    format!("{key}{FILE_SUFFIX}")
}

/// Which of two keys of a table holds the text.
#[derive(Clone, Copy)]
pub(crate) enum GivenText<'t> {
    Text(&'t TomlNode),
    /// The path of a file with the text.
    File(&'t TomlNode),
    /// Both are set in the same place; the path.
    Both(&'t TomlNode),
}

impl<'t> GivenText<'t> {
    /// Which key of a table is in force: a later override replaces the one that came before it.
    pub fn of(table: &'t TomlTable, key: &str) -> Option<Self> {
        match (table.get(key), table.get(&file_key(key))) {
            (None, None) => None,
            (Some(text), None) => Some(Self::Text(text)),
            (None, Some(file)) => Some(Self::File(file)),
            (Some(text), Some(file)) if text.at.text > file.at.text => Some(Self::Text(text)),
            (Some(text), Some(file)) if text.at.text < file.at.text => Some(Self::File(file)),
            (Some(_), Some(file)) => Some(Self::Both(file)),
        }
    }
}

/// Reads the text under a key of a table, or in the file that its other key names. `about` is the
/// help for a text that is required and missing.
pub(crate) fn read_text_or_file(
    node: &TomlNode,
    key: &str,
    about: Option<String>,
    cx: &mut ReadContext,
) -> Option<NonBlankString> {
    let TomlValue::Table(table) = &node.value else { return None };
    match GivenText::of(table, key) {
        None => {
            if let Some(about) = about {
                cx.report_missing_key(node, about);
            }
            None
        }
        Some(GivenText::Text(node)) => NonBlankString::read(node, cx),
        Some(GivenText::File(node)) => cx.at_key_suffix(FILE_SUFFIX, |cx| {
            let path = NonBlankString::read(node, cx)?;
            match cx.prompt_files().text(&path.text) {
                Ok(text) => {
                    let at = cx.include_text(path.at, path.text, &text);
                    Some(NonBlankString { at, text: text.to_string() })
                }
                Err(wrong) => {
                    cx.error(path.at, wrong.what, wrong.help);
                    None
                }
            }
        }),
        Some(GivenText::Both(node)) => {
            let what = format!("`{key}` and `{}` are both set", file_key(key));
            cx.at_key_suffix(FILE_SUFFIX, |cx| cx.error(node.at, what, "remove one of them"));
            None
        }
    }
}

/// The JSON schema of a key that names the file of a text: what the path alone decides.
pub(crate) fn file_schema(key: &str) -> Value {
    json!({
        "type": "string",
        "pattern": r"^[^/\\:][^\\:]*$",
        "not": { "pattern": r"(^|/)\.\.(/|$)" },
        "description": format!(
            "A text file with `{key}`, in place of it: its path from the folder of the scenario, \
             in that folder or below it."
        ),
    })
}
