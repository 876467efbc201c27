//! Chat models behind an HTTP endpoint that speaks OpenAI's chat completions, streamed or not.
//!
//! A call is one attempt: one request, no retry, no bound on its time. Whoever drops its future
//! ends it, and the endpoint sees the connection close.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use self::calls::Calls;
use self::trouble::Requested;
use super::endpoint::Endpoint;
use super::{ChatModel, ChatRequest, Failure, Listener};
use crate::event::kind::{ModelLabel, Reply};
use crate::event::visible::visible_within;
use crate::net::{Answer, Http, NetError, Redactor, Target};

mod calls;
mod probe;
mod stream;
mod trouble;
mod wire;

pub use probe::Reach;

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

/// A chat model at an [`Endpoint`].
#[derive(Debug)]
pub struct OpenAi {
    http: Http,
    endpoint: Endpoint,
    chat: Target,
    redactor: Redactor,
    stream: bool,
    /// The model's name in the last answer, where it is kept as it came: the next answer has the
    /// same, and nothing needs to be looked for in it again.
    named: LastWord,
    /// Why the last reply ended, likewise.
    ended: LastWord,
}

impl OpenAi {
    /// The model of this endpoint, asked through this client. `stream`: whether its replies are
    /// asked for piece by piece; a server that answers in one piece all the same is understood.
    pub fn new(http: Http, endpoint: Endpoint, stream: bool) -> Self {
        let chat = endpoint.target(&["chat", "completions"]);
        let redactor = endpoint.redactor();
        Self {
            http,
            endpoint,
            chat,
            redactor,
            stream,
            named: LastWord::default(),
            ended: LastWord::default(),
        }
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let asked = Instant::now();
        let body = wire::body(&self.endpoint.model().value, request, self.stream)
            .map_err(|error| self.unsendable(&error))?;
        let mut answer = self.http.post(&self.chat, body).await.map_err(|e| self.unanswered(&e))?;
        if !(200..300).contains(&answer.status()) {
            // What seldom happens is in a box of its own, so that no other attempt is as large.
            return Err(Box::pin(self.refused(answer, Requested::Reply)).await);
        }
        if self.comes_in_events(&mut answer).await? {
            Box::pin(stream::read(self, request, answer, asked, listener)).await
        } else {
            self.read_whole(request, answer).await
        }
    }

    /// Whether the body is an event stream. What a server says of its body counts; where it says
    /// nothing useful and a stream was asked for, the first character does.
    async fn comes_in_events(&self, answer: &mut Answer) -> Result<bool, Box<Failure>> {
        if answer.is_of_type("text/event-stream") {
            return Ok(true);
        }
        if !self.stream || answer.is_of_type("application/json") || answer.is_of_type("text/html") {
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
    fn model_name(&self, name: &str) -> Arc<str> {
        self.named.get(name, |name| self.word(name))
    }

    /// Why a reply ended: the endpoint's word, or the words in which the model refused. A refusal
    /// is no text: what the model was asked for, it has not given.
    fn finish(&self, reason: Option<&str>, refusal: Option<&str>) -> Option<Arc<str>> {
        match refusal {
            Some(refusal) if !refusal.is_empty() => {
                Some(self.word(&format!("refusal: {refusal}")).into())
            }
            _ => reason.map(|reason| self.ended.get(reason, |reason| self.word(reason))),
        }
    }

    /// A reply's text as it is kept: whatever an endpoint says, the key in use does not stand in
    /// it, where that is a secret.
    fn without_the_key(&self, text: &str) -> Arc<str> {
        self.redactor.redact_whole(text).into()
    }

    async fn read_whole(
        &self,
        request: &ChatRequest,
        answer: Answer,
    ) -> Result<Reply, Box<Failure>> {
        let status = answer.status();
        let body = answer.collect(ANSWER_CAP).await.map_err(|e| self.broke_off(&e, None))?;
        let completion: wire::Completion<'_> = match serde_json::from_slice(&body) {
            Ok(completion) => completion,
            Err(error) => return Err(self.unreadable(status, &body, &error.to_string())),
        };
        if let Some(error) = &completion.error {
            return Err(self.complained(error, "instead of a chat completion", None));
        }
        let Some(choice) = completion.choices.and_then(|choices| choices.into_iter().next()) else {
            return Err(self.unreadable(status, &body, "it has no `choices`"));
        };
        let Some(message) = choice.message else {
            return Err(self.unreadable(status, &body, "its first choice has no `message`"));
        };
        let text = message.content.map(|text| text.0).unwrap_or_default();
        let mut calls = Calls::default();
        for called in message.tool_calls.into_iter().flatten() {
            calls.whole(called).map_err(|why| self.miscalled(why, None))?;
        }
        if text.len() + calls.bytes() > TEXT_CAP {
            return Err(self.broke_off(&NetError::TooLarge { cap: TEXT_CAP }, None));
        }
        let calls = calls.done(self, &request.messages);
        Ok(Reply {
            tool_calls: calls.map_err(|why| self.miscalled(why, None))?,
            result: None,
            text: self.without_the_key(&text),
            usage: completion.usage.and_then(wire::Counted::usage),
            first_token_ms: None,
            model: completion.model.map(|model| self.model_name(&model.0)),
            finish: self.finish(
                choice.finish_reason.as_ref().map(|text| &*text.0),
                message.refusal.as_ref().map(|text| &*text.0),
            ),
            blocks: None,
        })
    }
}

impl ChatModel for OpenAi {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live {
            name: self.endpoint.model().value.clone(),
            host: self.endpoint.host().to_owned(),
        }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        self.attempt(request, listener).boxed()
    }
}
