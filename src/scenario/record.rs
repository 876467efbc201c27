//! Macros that describe tables and words of the file; they generate both the reader and the JSON
//! schema.

use serde_json::{Map, Value};

/// Maps words of the file to the variants of an enum.
macro_rules! words {
    ($name:ty: $($word:literal => $variant:expr, $about:literal;)+) => {
        impl Shape for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({
                    "oneOf": [$({ "const": $word, "description": $about }),+]
                })
            }
            fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
                let known = [$($word),+];
                let Tree::Text(text) = &node.value else {
                    cx.wrong_type(node, &format!("one of {}", known.join(", ")));
                    return None;
                };
                match text.as_str() {
                    $($word => Some($variant),)+
                    _ => {
                        let help = among(text, known);
                        cx.error(node.at, format!("`{text}` is not allowed here"), help);
                        None
                    }
                }
            }
            fn plain(&self) -> serde_json::Value {
                // Compared with `==`: all variants are plain.
                $(if *self == $variant { return $word.into(); })+
                serde_json::Value::Null
            }
        }
    };
}

/// A table and the keys that it may have. A `needed` or `optional` field is `None` if it is missing
/// or invalid; a field with a `default` then has its default; a missing `table` is read as an empty
/// one. `rule` adds rules to the JSON schema that no single field can state.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        struct $name:ident $(rule $rule:expr)? => {
            $($(#[doc = $doc:literal])+ $field:ident: $ty:ty = $how:ident $(($default:expr))?,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        pub(super) struct $name {
            $($(#[doc = $doc])+ pub $field: record!(@type $how $ty),)+
        }

        impl Shape for $name {
            fn schema() -> serde_json::Value {
                #[allow(unused_mut)]
                let mut object = ObjectSchema::new(&[$($about),+]);
                $(object.field(
                    stringify!($field),
                    &[$($doc),+],
                    <$ty as Shape>::schema(),
                    record!(@need $how $ty $(, $default)?),
                );)+
                $(object.rule($rule);)?
                object.finish()
            }
            fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
                let table = cx.table(node, &[$(stringify!($field)),+])?;
                Some(Self {
                    $($field: cx.within(stringify!($field), |cx| {
                        record!(@read $how $ty, table.get(stringify!($field)), node, cx, sentence(&[$($doc),+]) $(, $default)?)
                    }),)+
                })
            }
        }
    };
    (@type needed $ty:ty) => { Option<$ty> };
    (@type optional $ty:ty) => { Option<$ty> };
    (@type default $ty:ty) => { $ty };
    (@type table $ty:ty) => { Option<$ty> };
    (@need needed $ty:ty) => { Need::Always };
    (@need optional $ty:ty) => { Need::Never };
    (@need table $ty:ty) => { Need::IfItNeeds };
    (@need default $ty:ty, $default:expr) => { Need::Default(<$ty as Shape>::plain(&$default)) };
    (@read needed $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        match $found {
            Some(found) => <$ty as Shape>::read(found, $cx),
            None => {
                $cx.missing($node, $about);
                None
            }
        }
    };
    (@read optional $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        $found.and_then(|found| <$ty as Shape>::read(found, $cx))
    };
    (@read default $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr, $default:expr) => {
        $found.and_then(|found| <$ty as Shape>::read(found, $cx)).unwrap_or_else(|| $default)
    };
    (@read table $ty:ty, $found:expr, $node:expr, $cx:expr, $about:expr) => {
        match $found {
            Some(found) => <$ty as Shape>::read(found, $cx),
            None => <$ty as Shape>::read(&Node::empty_table($node.at), $cx),
        }
    };
}

pub(super) use {record, words};

/// Whether a key is required.
pub(super) enum Need {
    Always,
    Never,
    /// Required if the table under it has required keys.
    IfItNeeds,
    Default(Value),
}

/// Builds the JSON schema of a table.
pub(super) struct ObjectSchema {
    about: String,
    properties: Map<String, Value>,
    required: Vec<Value>,
    rules: Map<String, Value>,
}

impl ObjectSchema {
    pub fn new(about: &[&str]) -> Self {
        Self {
            about: sentence(about),
            properties: Map::new(),
            required: Vec::new(),
            rules: Map::new(),
        }
    }

    pub fn field(&mut self, name: &str, about: &[&str], mut schema: Value, need: Need) {
        let needs = schema.get("required").is_some();
        if let Value::Object(fields) = &mut schema {
            fields.insert("description".to_owned(), sentence(about).into());
            if let Need::Default(default) = &need
                && !default.is_null()
            {
                fields.insert("default".to_owned(), default.clone());
            }
        }
        if matches!(need, Need::Always) || (matches!(need, Need::IfItNeeds) && needs) {
            self.required.push(name.into());
        }
        self.properties.insert(name.to_owned(), schema);
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
        Value::Object(schema)
    }
}

/// Joins the lines of a doc comment.
pub(super) fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
