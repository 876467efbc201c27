//! The part that the adapters of all APIs share: calls an endpoint over HTTP, removes its key from
//! everything that it says, and describes failures.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::adaptation::{Adaptations, RefusedParameters};
use super::endpoint::Endpoint;
use super::{Failure, Tuning};
use crate::base::visible::{visible_within, without_byte_order_mark};
use crate::event::kind::ModelLabel;
use crate::net::{Http, HttpResponse, Redactor};

pub(super) mod adapter;
#[cfg(test)]
pub(super) mod arbitrary;
mod failures;
pub(super) mod fields;
pub(super) mod json;
pub(super) mod kept_fields;
pub(super) mod probe;
pub(super) mod refusal;
pub(super) mod reply_end;
pub(super) mod reported;
pub(super) mod stream;
pub(super) mod surrogates;
pub(super) mod tool_calls;

/// The most bytes of an answer that is not streamed.
pub const ANSWER_CAP: usize = 8 << 20;
/// The most bytes of one event of a stream.
pub const EVENT_CAP: usize = 1 << 20;
/// The most bytes of a whole stream; the event of a token is some hundred times longer than the
/// token.
pub const STREAM_CAP: usize = 64 << 20;
/// The most bytes of a reply's text and tool calls, streamed or not: they are kept in the log and
/// shown.
pub const TEXT_CAP: usize = 256 << 10;

/// The most characters kept of a model's name or a finish reason.
const WORD_CHARS: usize = 200;

/// The API's terms, for the texts of failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApiWords {
    /// The term for a reply of the model.
    pub(super) reply: &'static str,
    /// Text that only answers of this API have: an invalid answer with it comes from the right address.
    pub(super) marks: &'static [&'static str],
}

/// Interns the last word: answers often repeat the same one, and then share it.
#[derive(Debug, Default)]
struct InternedWord(Mutex<Arc<str>>);

impl InternedWord {
    /// Returns `word` after `kept` has cleaned it; the last word is reused if it is the same.
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

/// An endpoint as an adapter calls it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) endpoint: Endpoint,
    pub(super) redactor: Redactor,
    pub(super) tuning: Tuning,
    /// The parameters that requests omit.
    pub(super) refused: RefusedParameters,
    api: ApiWords,
    /// The model's name in the last answer, if it needed no cleaning: the next answer mostly has
    /// the same name, which then needs no check.
    named: InternedWord,
    /// The finish reason of the last reply, likewise.
    ended: InternedWord,
}

impl Client {
    pub(super) fn new(http: Http, endpoint: Endpoint, tuning: Tuning, api: ApiWords) -> Self {
        let (redactor, refused) = (endpoint.redactor(), RefusedParameters::default());
        let (named, ended) = (InternedWord::default(), InternedWord::default());
        Self { http, endpoint, redactor, tuning, refused, api, named, ended }
    }

    /// Shares the refused parameters with other adapters of the same endpoint and model.
    pub(super) fn share_adaptations(&mut self, adaptations: &Adaptations) {
        self.refused = adaptations.for_endpoint(&self.endpoint);
    }

    /// Name and host of the model, for the screen and the log.
    pub(super) fn label(&self) -> ModelLabel {
        ModelLabel::Live {
            name: self.endpoint.model().value.clone(),
            host: self.endpoint.host().to_owned(),
        }
    }

    /// Whether the body is an event stream. If a stream was requested, the first character decides, because
    /// some proxies name the type of the request; otherwise the content type does.
    pub(super) async fn is_event_stream(
        &self,
        answer: &mut HttpResponse,
        requested: bool,
    ) -> Result<bool, Box<Failure>> {
        let named = answer.has_media_type("text/event-stream");
        if !requested {
            return Ok(named);
        }
        let first = answer.peek().await.map_err(|error| self.incomplete_answer(&error, None))?;
        let first = without_byte_order_mark(first).iter().find(|byte| !byte.is_ascii_whitespace());
        Ok(first.map_or(named, |byte| !matches!(byte, b'{' | b'<' | b'[')))
    }

    /// A word from the endpoint, without the key, shortened and with control characters made
    /// visible.
    fn word(&self, text: &str) -> String {
        visible_within(&self.redactor.redact(text), WORD_CHARS)
    }

    /// The name of the model that answered, according to the endpoint.
    pub(super) fn model_name(&self, name: &str) -> Arc<str> {
        self.named.get(name, |name| self.word(name))
    }

    /// The finish reason: the endpoint's word, or the text of the model's refusal. A refusal is not
    /// a reply text, because the model did not do what was requested.
    pub(super) fn finish(&self, reason: Option<&str>, refusal: Option<&str>) -> Option<Arc<str>> {
        match refusal {
            Some(refusal) if !refusal.is_empty() => {
                Some(self.word(&format!("refusal: {refusal}")).into())
            }
            _ => reason.map(|reason| self.ended.get(reason, |reason| self.word(reason))),
        }
    }

    /// A reply's text without the key, which an endpoint could repeat in it.
    pub(super) fn without_the_key(&self, text: &str) -> Arc<str> {
        self.redactor.redact_whole(text).into()
    }

    /// Like [`without_the_key`](Self::without_the_key), for data: every text in it, field names
    /// included.
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
