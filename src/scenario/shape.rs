//! How a part of the file is described. One description gives both what is read (with every problem
//! and its place) and the JSON schema, so the two cannot disagree.

use serde_json::{Map, Value, json};

use super::literal;
use super::problem::{Problems, Severity};
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

/// Takes note of what is wrong while a file is read.
pub(super) struct Reader {
    texts: Vec<String>,
    problems: Problems,
    path: String,
}

impl Reader {
    /// A reader of a file and the overrides laid over it.
    pub fn new(name: String, text: &str, overrides: Vec<String>) -> Self {
        let mut texts = vec![text.to_owned()];
        texts.extend(overrides.iter().cloned());
        let problems = Problems::new(name, text.to_owned(), overrides);
        Self { texts, problems, path: String::new() }
    }

    /// Everything that was found.
    pub fn finish(mut self) -> Problems {
        self.problems.sort();
        self.problems
    }

    /// Whether something keeps the scenario from being run.
    pub fn failed(&self) -> bool {
        self.problems.errors() > 0
    }

    /// Something is wrong here; `help` says what would be right.
    pub fn error(&mut self, at: Span, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Error, at, what.into(), help.into());
    }

    /// Something is odd here.
    pub fn warn(&mut self, at: Span, what: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Warning, at, what.into(), help.into());
    }

    fn note(&mut self, severity: Severity, at: Span, what: String, help: String) {
        let help = Some(help).filter(|help| !help.is_empty());
        self.problems.add(severity, at.text, at.start..at.end, self.path.clone(), what, help);
    }

    /// Another type of value than the one here is wanted.
    pub fn wrong_type(&mut self, node: &Node, wanted: &str) {
        self.error(node.at, format!("expected {wanted}, found {}", node.what()), "");
    }

    /// Reads what stands under a key: problems in it are told with its path.
    pub fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// Reads an item of a list, counted from 0.
    pub fn item<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// The stretch of a text node that holds the bytes `from..to` of the text it stands for.
    pub fn inside(&self, at: Span, from: usize, to: usize) -> Span {
        let raw = self.raw(at);
        let start = at.start + literal::offset(raw, from);
        let end = at.start + literal::offset(raw, to);
        Span { text: at.text, start, end: end.max(start) }
    }

    /// The text that a node was written as.
    pub fn raw(&self, at: Span) -> &str {
        self.texts.get(at.text).and_then(|text| text.get(at.start..at.end)).unwrap_or_default()
    }

    /// The table of a node, with its keys checked against those there are.
    pub fn table<'n>(&mut self, node: &'n Node, known: &[&str]) -> Option<&'n Table> {
        let Tree::Table(table) = &node.value else {
            self.wrong_type(node, "a table");
            return None;
        };
        for (key, _) in &table.entries {
            if !known.contains(&key.text.as_str()) {
                let what = format!("unknown key `{}`", key.text);
                let help = did_you_mean(&key.text, known.iter().copied())
                    .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
                self.within(&key.text, |cx| cx.error(key.at, what, help));
            }
        }
        Some(table)
    }
}

/// `did you mean …?`, where one of the names there are is close.
pub(super) fn did_you_mean<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    if given.chars().count() > 64 {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| format!("did you mean `{name}`?"))
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub at: Span,
    pub value: T,
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

/// What a name may look like.
pub(super) trait NameRule {
    /// As a regular expression.
    const PATTERN: &'static str;
    /// In words.
    const WORDS: &'static str;
    /// Whether a text keeps to it.
    fn fits(text: &str) -> bool;
}

/// A name that can stand in a condition: `facts.x`, `{{x}}`.
#[derive(Debug, Clone)]
pub(super) struct Ident;

impl NameRule for Ident {
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
    const WORDS: &'static str = "letters, digits and _, not a digit first, at most 64";
    fn fits(text: &str) -> bool {
        text.len() <= 64
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }
}

/// The name of someone who acts: a role.
#[derive(Debug, Clone)]
pub(super) struct Actor;

impl NameRule for Actor {
    const PATTERN: &'static str = "^[A-Za-z0-9_-]{1,64}$";
    const WORDS: &'static str = "letters, digits, _ and -, at most 64";
    fn fits(text: &str) -> bool {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }
}

/// Tables under names that the file gives, in its order.
#[derive(Debug, Clone)]
pub(super) struct Named<T, R> {
    pub entries: Vec<Entry<T>>,
    rule: std::marker::PhantomData<R>,
}

/// One of [`Named`].
#[derive(Debug, Clone)]
pub(super) struct Entry<T> {
    pub name: String,
    pub at: Span,
    /// `None`: the name is there, but what it names is not as it should be.
    pub value: Option<T>,
}

impl<T, R> Named<T, R> {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }
}

impl<T, R> Default for Named<T, R> {
    fn default() -> Self {
        Self { entries: Vec::new(), rule: std::marker::PhantomData }
    }
}

impl<T: Shape, R: NameRule> Shape for Named<T, R> {
    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "pattern": R::PATTERN },
            "additionalProperties": T::schema(),
        })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return None;
        };
        let mut named = Self::default();
        for (key, node) in &table.entries {
            cx.within(&key.text, |cx| {
                if !R::fits(&key.text) {
                    cx.error(key.at, format!("`{}` is no name", key.text), R::WORDS);
                }
                let value = T::read(node, cx);
                named.entries.push(Entry { name: key.text.clone(), at: key.at, value });
            });
        }
        Some(named)
    }
    fn plain(&self) -> Value {
        Value::Object(Map::new())
    }
}

/// A table whose keys and values are the author's own.
#[derive(Debug, Clone, Default)]
pub(super) struct Free(pub Table);

impl Shape for Free {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Table(table) = &node.value else {
            cx.wrong_type(node, "a table");
            return None;
        };
        if let Err(at) = table.json(&mut |_, _| Value::Null) {
            cx.error(at, "this number cannot be shown to a model", "a finite number of 64 bits");
            return None;
        }
        Some(Self(table.clone()))
    }
    fn plain(&self) -> Value {
        Value::Object(Map::new())
    }
}

/// Words that stand for the variants of an enum.
macro_rules! words {
    ($name:ty, $wanted:literal: $($word:literal => $variant:expr, $about:literal;)+) => {
        impl Shape for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({
                    "oneOf": [$({ "const": $word, "description": $about }),+]
                })
            }
            fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
                let Tree::Text(text) = &node.value else {
                    cx.wrong_type(node, $wanted);
                    return None;
                };
                match text.as_str() {
                    $($word => Some($variant),)+
                    _ => {
                        let known = [$($word),+];
                        let help = did_you_mean(text, known)
                            .unwrap_or_else(|| format!("one of {}", known.join(", ")));
                        cx.error(node.at, format!("`{text}` is not {}", $wanted), help);
                        None
                    }
                }
            }
            fn plain(&self) -> serde_json::Value {
                // Compared by discriminant: the words stand for plain variants.
                $(if *self == $variant { return $word.into(); })+
                serde_json::Value::Null
            }
        }
    };
}

/// A table with the keys it may have. `needed` and `optional` fields are `None` where they are
/// missing or wrong, a field with a `default` has it then; a `table` is read as if it were there
/// and empty. `rule` adds what the schema cannot say field by field.
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
                        record!(@read $how $ty, table.get(stringify!($field)), node, cx $(, $default)?)
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
    (@read needed $ty:ty, $found:expr, $node:expr, $cx:expr) => {
        match $found {
            Some(found) => <$ty as Shape>::read(found, $cx),
            None => {
                $cx.missing($node);
                None
            }
        }
    };
    (@read optional $ty:ty, $found:expr, $node:expr, $cx:expr) => {
        $found.and_then(|found| <$ty as Shape>::read(found, $cx))
    };
    (@read default $ty:ty, $found:expr, $node:expr, $cx:expr, $default:expr) => {
        $found.and_then(|found| <$ty as Shape>::read(found, $cx)).unwrap_or_else(|| $default)
    };
    (@read table $ty:ty, $found:expr, $node:expr, $cx:expr) => {
        match $found {
            Some(found) => <$ty as Shape>::read(found, $cx),
            None => <$ty as Shape>::read(&Node::empty_table($node.at), $cx),
        }
    };
}

pub(super) use {record, words};

impl Reader {
    /// A key must be there and is not; the path says which.
    pub fn missing(&mut self, node: &Node) {
        let key = self.path.rsplit('.').next().unwrap_or_default().to_owned();
        self.error(node.at, format!("`{key}` is missing"), "");
    }
}

/// Whether a key must be there.
pub(super) enum Need {
    Always,
    Never,
    /// When the table it stands for has keys that must be there.
    IfItNeeds,
    Default(Value),
}

/// Puts the schema of a table together.
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

/// The lines of a doc comment as running text.
fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
