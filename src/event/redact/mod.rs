//! A log whose texts are replaced by their lengths and digests, so that it can be shown to somebody
//! who may not read them. Names of the structure, numbers and times stay, so it folds as before.
//!
//! Each kind of event says which of its fields are texts (`kinds.rs`, [`Fact::redact`], [`Plan::redact`]) with every field named, so the compiler asks about a field that is added.
//!
//! [`Fact::redact`]: super::fact::Fact::redact
//! [`Plan::redact`]: super::plan::Plan::redact

mod head;
mod kinds;
mod parts;

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Event;
use super::id::BoundaryId;
use crate::base::digest::keyed;
use crate::base::name::TaskId;
use crate::scenario::spec::script::ScriptStep;

/// Hexadecimal digits of a digest in a marker.
const DIGITS: usize = 8;

/// Longest word of the program or an endpoint that stays as it is, in bytes.
const MAX_WORD: usize = 32;

/// Replaces the texts of events. Equal texts get equal markers under one key. Without the key a short
/// text cannot be found by trying texts.
pub struct TextRedactor {
    key: [u8; 32],
    /// Names that the run's setup declares. A model's reply may contain others.
    names: HashSet<Box<str>>,
}

impl TextRedactor {
    /// A redactor with this key.
    pub fn new(key: [u8; 32]) -> Self {
        let steps = [
            ScriptStep::Plan,
            ScriptStep::Notes,
            ScriptStep::Synthesize,
            ScriptStep::Classify,
            ScriptStep::Finalize,
        ];
        let names = steps.iter().map(|step| step.word().into()).chain(["llm".into()]).collect();
        Self { key, names }
    }

    /// The event without its texts. Events have to be passed in the order of the log, because the
    /// first ones declare the names that stay.
    pub fn redact(&mut self, mut event: Event) -> Event {
        event.kind.redact(self);
        event
    }

    /// Keeps this name wherever it occurs as a name.
    pub(crate) fn declare(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    /// Replaces a text. An empty text and a marker stay, so a redacted log stays as it is.
    pub(crate) fn text<T: Borrow<str> + From<String>>(&self, text: &mut T) {
        let plain: &str = (*text).borrow();
        if !plain.is_empty() && !is_marker(plain) {
            *text = self.marker(plain).into();
        }
    }

    /// Replaces a text, if there is one.
    pub(crate) fn some<T: Borrow<str> + From<String>>(&self, text: &mut Option<T>) {
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Replaces a name that is not declared: a model wrote it.
    pub(crate) fn name<T: Borrow<str> + From<String>>(&self, name: &mut T) {
        if !self.names.contains((*name).borrow()) {
            self.text(name);
        }
    }

    /// Replaces what is not a short identifier. For words that an endpoint or tool may have given.
    pub(crate) fn word<T: Borrow<str> + From<String>>(&self, word: &mut T) {
        let plain: &str = (*word).borrow();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if plain.len() > MAX_WORD || !plain.bytes().all(is_word) {
            self.text(word);
        }
    }

    /// Replaces a value of any shape by one marker; its numbers are content too.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.text(text),
            other => *other = Value::String(self.marker(&other.to_string())),
        }
    }

    /// Replaces a value that is shared, if there is one.
    pub(crate) fn some_value(&self, value: &mut Option<Arc<Value>>) {
        if let Some(value) = value {
            self.value(Arc::make_mut(value));
        }
    }

    /// Replaces the values of a map, and keys that are not declared names.
    pub(crate) fn fields(&self, fields: &mut Map<String, Value>) {
        let entries = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
            self.name(&mut name);
            self.value(&mut value);
            (name, value)
        });
        *fields = entries.collect();
    }

    /// Replaces the id of a task, which the planner wrote.
    pub(crate) fn task(&self, task: &mut TaskId) {
        self.text(task);
    }

    /// Replaces the id of a task in a boundary; nothing else in it is a text.
    pub(crate) fn boundary(&self, boundary: &mut BoundaryId) {
        let mut parts = boundary.as_str().splitn(3, ':');
        if let (Some("dispatch"), Some(attempt), Some(task)) =
            (parts.next(), parts.next(), parts.next())
        {
            let (attempt, mut task) = (attempt.to_owned(), task.to_owned());
            self.text(&mut task);
            *boundary = BoundaryId::new(format!("dispatch:{attempt}:{task}"));
            return;
        }
        // All others consist of words and names of the setup.
        let in_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/#[]@".contains(c);
        if !boundary.as_str().chars().all(in_name) && !is_marker(boundary.as_str()) {
            *boundary = BoundaryId::new(self.marker(boundary.as_str()));
        }
    }

    fn marker(&self, text: &str) -> String {
        let digest = keyed(&self.key, text);
        let digest = digest.get(..DIGITS).unwrap_or_default();
        format!("‹{} chars digest:{digest}›", text.chars().count())
    }
}

/// Whether a text is exactly a marker.
pub(crate) fn is_marker(text: &str) -> bool {
    let parts = text
        .strip_prefix('‹')
        .and_then(|rest| rest.strip_suffix('›'))
        .and_then(|rest| rest.split_once(" chars digest:"));
    parts.is_some_and(|(chars, digest)| {
        (1..=20).contains(&chars.len())
            && chars.bytes().all(|byte| byte.is_ascii_digit())
            && digest.len() == DIGITS
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
