//! Chat models behind an HTTP endpoint that speaks OpenAI's chat completions, streamed or not.
//!
//! A call is one attempt: one request, no retry, no bound on its time. Whoever drops its future
//! ends it, and the endpoint sees the connection close.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use self::calls::Calls;
use self::parameters::ChatParameters;
use self::stream::Gathered;
use super::adaptation::ParameterSet;
use super::client::refusal::Requested;
use super::client::reported::bare_error;
use super::client::stream::read;
use super::client::surrogates::read_body;
use super::client::{ApiWords, Client};
use super::endpoint::Endpoint;
use super::{Adaptations, ChatModel, ChatRequest, Failure, Listener, Tuning};
#[cfg(doc)]
use crate::event::kind::FailureClass;
use crate::event::kind::{ModelLabel, Reply};
use crate::net::{Answer, Http, NetError, Target};

mod calls;
mod parameters;
mod stream;
mod wire;

pub use super::client::probe::Reach;
pub use super::client::{ANSWER_CAP, EVENT_CAP, STREAM_CAP, TEXT_CAP};

/// What the API calls things.
const WORDS: ApiWords = ApiWords { reply: "chat completion" };

/// A chat model at an [`Endpoint`].
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    chat: Target,
    stream: bool,
}

impl OpenAi {
    /// The model of this endpoint, asked through this client. `stream`: whether its replies are
    /// asked for piece by piece; a server that answers in one piece all the same is understood.
    pub fn new(http: Http, endpoint: Endpoint, tuning: Tuning, stream: bool) -> Self {
        let chat = endpoint.target(&["chat", "completions"]);
        Self { client: Client::new(http, endpoint, tuning, WORDS), chat, stream }
    }

    /// The same, with what its endpoint refuses remembered here, for every adapter of the endpoint
    /// and the model that has a clone. Without it, the adapter remembers it by itself.
    pub fn remembering(mut self, adaptations: &Adaptations) -> Self {
        self.client.remember_in(adaptations);
        self
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.client.endpoint
    }

    /// Asks for the list of models, which costs nothing.
    ///
    /// # Errors
    /// As a call fails, and [`FailureClass::Timeout`] when the answer is not there in time.
    pub async fn probe(&self, within: Duration) -> Result<Reach, Box<Failure>> {
        self.client.probe(within, false).await
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let client = &self.client;
        let asked = Instant::now();
        let refused = client.refused.now();
        let parameters = ChatParameters::of(&client.tuning, &request.form, self.stream, refused);
        let body = wire::body(&client.endpoint.model().value, request, &parameters)
            .map_err(|error| client.unsendable(&error))?;
        let mut answer =
            client.http.post(&self.chat, body).await.map_err(|e| client.unanswered(&e))?;
        if !(200..300).contains(&answer.status()) {
            // What seldom happens is in a box of its own, so that no other attempt is as large.
            return Err(Box::pin(client.refusal(answer, Requested::Reply(parameters.sent))).await);
        }
        if client.comes_in_events(&mut answer, self.stream).await? {
            let reply = Gathered::of(client, request, asked, parameters.sent);
            Box::pin(read(client, answer, reply, listener)).await
        } else {
            self.read_whole(request, answer, parameters.sent).await
        }
    }

    async fn read_whole(
        &self,
        request: &ChatRequest,
        answer: Answer,
        sent: ParameterSet,
    ) -> Result<Reply, Box<Failure>> {
        let client = &self.client;
        let status = answer.status();
        let body = answer.collect(ANSWER_CAP).await.map_err(|e| client.broke_off(&e, None))?;
        let mut room = String::new();
        let completion: wire::Completion<'_> = match read_body(&body, &mut room) {
            Ok(completion) => completion,
            Err(error) => return Err(client.unreadable(status, &body, &error.to_string())),
        };
        let complained = |error: &Value| {
            Err(client.complained(error, "instead of a chat completion", sent, None))
        };
        if let Some(error) = &completion.error {
            return complained(error);
        }
        let Some(choice) = completion.choices.and_then(|choices| choices.into_iter().next()) else {
            return match bare_error(&body) {
                Some(error) => complained(&error),
                None => Err(client.unreadable(status, &body, "it has no `choices`")),
            };
        };
        if let Some(error) = &choice.error {
            return complained(error);
        }
        let Some(message) = choice.message else {
            return Err(client.unreadable(status, &body, "its first choice has no `message`"));
        };
        let text = message.content.map(|text| text.0).unwrap_or_default();
        let mut calls = Calls::default();
        for called in message.tool_calls.into_iter().flatten() {
            calls.whole(called).map_err(|why| client.miscalled(why, None))?;
        }
        if text.len() + calls.bytes() > TEXT_CAP {
            return Err(client.broke_off(&NetError::TooLarge { cap: TEXT_CAP }, None));
        }
        let calls = calls.done(client, &request.messages);
        Ok(Reply {
            tool_calls: calls.map_err(|why| client.miscalled(why, None))?,
            result: None,
            text: client.without_the_key(&text),
            usage: completion.usage.and_then(wire::Counted::usage),
            estimated: false,
            first_token_ms: None,
            model: completion.model.map(|model| client.model_name(&model.0)),
            finish: client.finish(
                choice.finish_reason.as_ref().map(|text| &*text.0),
                message.refusal.as_ref().map(|text| &*text.0),
            ),
            blocks: None,
        })
    }
}

impl ChatModel for OpenAi {
    fn label(&self) -> ModelLabel {
        self.client.label()
    }

    fn max_tokens(&self) -> Option<u32> {
        self.client.tuning.max_tokens
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        self.attempt(request, listener).boxed()
    }
}
