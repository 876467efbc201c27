//! Macros that describe tables and words of the file; they generate both the reader and the JSON
//! schema.

use serde_json::{Map, Value, json};

use super::text_or_file::{file_key, file_schema};

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
                        let help = suggest_name(text, known);
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

/// A table and the keys that it may have. A `needed` or `optional` field is `None` if it is missing
/// or invalid; a field with a `default` then has its default; a missing `table` is read as an empty
/// one. `needed_or_file` and `optional_or_file` are strings that may be in a file, which the key
/// `FIELD_file` names. `rule` adds rules to the JSON schema that no single field can state.
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
                    stringify!($field),
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
                    $($field: cx.at_key(stringify!($field), |cx| {
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
    (@type default $ty:ty) => { $ty };
    (@type table $ty:ty) => { Option<$ty> };
    (@need needed $ty:ty) => { Requirement::Always };
    (@need optional $ty:ty) => { Requirement::Never };
    (@need table $ty:ty) => { Requirement::IfItNeeds };
    (@need needed_or_file $ty:ty) => { Requirement::Never };
    (@need optional_or_file $ty:ty) => { Requirement::Never };
    (@need default $ty:ty, $default:expr) => { Requirement::Default(<$ty as FormatShape>::default_json(&$default)) };
    (@file needed_or_file $object:ident, $field:ident) => {
        $object.file_of(stringify!($field), true);
    };
    (@file optional_or_file $object:ident, $field:ident) => {
        $object.file_of(stringify!($field), false);
    };
    (@file $how:ident $object:ident, $field:ident) => {};
    (@keys needed_or_file $field:ident) => { record!(@keys optional_or_file $field) };
    (@keys optional_or_file $field:ident) => {
        &[stringify!($field), concat!(stringify!($field), "_file")]
    };
    (@keys $how:ident $field:ident) => { &[stringify!($field)] };
    (@needed needed $field:ident) => { &[stringify!($field)] };
    (@needed needed_or_file $field:ident) => { &[stringify!($field)] };
    (@needed $how:ident $field:ident) => { &[] };
    (@field needed_or_file $field:ident $ty:ty, $table:expr, $node:expr, $cx:expr, $about:expr) => {
        $crate::scenario::file::text_or_file::read_text_or_file(
            $node, stringify!($field), Some($about), $cx,
        )
    };
    (@field optional_or_file $field:ident $ty:ty, $table:expr, $node:expr, $cx:expr, $about:expr) => {
        $crate::scenario::file::text_or_file::read_text_or_file(
            $node, stringify!($field), None, $cx,
        )
    };
    (@field $how:ident $field:ident $ty:ty, $table:expr, $($rest:expr),+) => {
        record!(@read $how $ty, $table.get(stringify!($field)), $($rest),+)
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

/// Joins the lines of a doc comment.
pub(crate) fn join_doc_lines(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
