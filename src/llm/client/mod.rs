//! What the adapters of all APIs do alike: they ask an endpoint over HTTP, keep its key out of
//! everything that it says, and put what goes wrong into words.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::adaptation::{Adaptations, RefusedParameters};
use super::endpoint::Endpoint;
use super::{Failure, Tuning};
use crate::event::kind::ModelLabel;
use crate::event::visible::visible_within;
use crate::net::{Answer, Http, Redactor};

pub(super) mod adapter;
#[cfg(test)]
pub(super) mod arbitrary;
pub(super) mod json;
pub(super) mod probe;
pub(super) mod refusal;
pub(super) mod reported;
pub(super) mod stream;
pub(super) mod surrogates;
pub(super) mod tool_calls;
mod trouble;

/// The most bytes of an answer that is not streamed.
pub const ANSWER_CAP: usize = 8 << 20;
/// The most bytes of one event of a stream.
pub const EVENT_CAP: usize = 1 << 20;
/// The most bytes of a whole stream: a token's event is some hundred times as long as the token.
pub const STREAM_CAP: usize = 64 << 20;
/// The most bytes of a reply's text and the tools that it calls, streamed or not: they are kept in
/// the log and shown.
pub const TEXT_CAP: usize = 256 << 10;

/// The most characters that are kept of a model's name and of why it ended.
const WORD_CHARS: usize = 200;

/// What an API calls things, for the texts of failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApiWords {
    /// A reply of the model.
    pub(super) reply: &'static str,
}

/// A word that answers mostly have in common: one that is kept as it came is shared by those that
/// have it next.
#[derive(Debug, Default)]
struct LastWord(Mutex<Arc<str>>);

impl LastWord {
    /// A word as it is kept: what `kept` makes of it, which the same word before has shown.
    fn get(&self, word: &str, kept: impl FnOnce(&str) -> String) -> Arc<str> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if **last == *word {
            return Arc::clone(&last);
        }
        let kept: Arc<str> = kept(word).into();
        if *kept == *word {
            *last = Arc::clone(&kept);
        }
        kept
    }
}

/// One endpoint, as an adapter asks it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) endpoint: Endpoint,
    pub(super) redactor: Redactor,
    pub(super) tuning: Tuning,
    /// What requests go without.
    pub(super) refused: RefusedParameters,
    api: ApiWords,
    /// The model's name in the last answer, where it is kept as it came: the next answer has the
    /// same, and nothing needs to be looked for in it again.
    named: LastWord,
    /// Why the last reply ended, likewise.
    ended: LastWord,
}

impl Client {
    pub(super) fn new(http: Http, endpoint: Endpoint, tuning: Tuning, api: ApiWords) -> Self {
        let (redactor, refused) = (endpoint.redactor(), RefusedParameters::default());
        let (named, ended) = (LastWord::default(), LastWord::default());
        Self { http, endpoint, redactor, tuning, refused, api, named, ended }
    }

    /// Remembers what is refused where other adapters of the same endpoint and model do.
    pub(super) fn remember_in(&mut self, adaptations: &Adaptations) {
        self.refused = adaptations.of(&self.endpoint);
    }

    /// What the screen and the log call the model.
    pub(super) fn label(&self) -> ModelLabel {
        ModelLabel::Live {
            name: self.endpoint.model().value.clone(),
            host: self.endpoint.host().to_owned(),
        }
    }

    /// Whether the body is an event stream. What a server says of its body counts; where it says
    /// nothing useful and a stream was requested, the first character does.
    pub(super) async fn comes_in_events(
        &self,
        answer: &mut Answer,
        requested: bool,
    ) -> Result<bool, Box<Failure>> {
        if answer.is_of_type("text/event-stream") {
            return Ok(true);
        }
        if !requested || answer.is_of_type("application/json") || answer.is_of_type("text/html") {
            return Ok(false);
        }
        let first = answer.peek().await.map_err(|error| self.broke_off(&error, None))?;
        let first = first.iter().find(|byte| !byte.is_ascii_whitespace());
        Ok(first.is_some_and(|byte| !matches!(byte, b'{' | b'<' | b'[')))
    }

    /// A word of the endpoint's, as it is kept.
    fn word(&self, text: &str) -> String {
        visible_within(&self.redactor.redact(text), WORD_CHARS)
    }

    /// The model that says it answered, as it is kept.
    pub(super) fn model_name(&self, name: &str) -> Arc<str> {
        self.named.get(name, |name| self.word(name))
    }

    /// Why a reply ended: the endpoint's word, or the words in which the model refused. A refusal
    /// is no text: what the model was asked for, it has not given.
    pub(super) fn finish(&self, reason: Option<&str>, refusal: Option<&str>) -> Option<Arc<str>> {
        match refusal {
            Some(refusal) if !refusal.is_empty() => {
                Some(self.word(&format!("refusal: {refusal}")).into())
            }
            _ => reason.map(|reason| self.ended.get(reason, |reason| self.word(reason))),
        }
    }

    /// A reply's text without the key, which an endpoint may repeat in it.
    pub(super) fn without_the_key(&self, text: &str) -> Arc<str> {
        self.redactor.redact_whole(text).into()
    }

    /// The same for data: every text in it, names of fields as well.
    pub(super) fn data_without_the_key(&self, data: &mut Value) {
        match data {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redactor.redact_whole(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.data_without_the_key(item));
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.data_without_the_key(value));
                if fields.keys().any(|name| *self.redactor.redact_whole(name) != **name) {
                    let renamed = std::mem::take(fields).into_iter();
                    let renamed = renamed.map(|(name, value)| {
                        (self.redactor.redact_whole(&name).into_owned(), value)
                    });
                    *fields = renamed.collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
