//! Chat models behind an endpoint that speaks Anthropic's Messages API, streamed or not.
//!
//! As with `openai`, a call is one attempt: one request, no retry, no bound on its time.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use self::parameters::MessageParameters;
use self::stream::GatheredMessage;
use super::adaptation::ParameterSet;
use super::client::refusal::Requested;
use super::client::stream::read;
use super::client::surrogates::read_body;
use super::client::{ApiWords, Client};
use super::endpoint::Endpoint;
use super::{Adaptations, ChatModel, ChatRequest, Failure, Listener, Tuning};
#[cfg(doc)]
use crate::event::kind::FailureClass;
use crate::event::kind::{ModelLabel, Reply};
use crate::net::{Answer, Http, Target};

mod blocks;
mod conversation;
mod parameters;
mod schema;
mod stream;
mod wire;

pub use super::client::probe::Reach;
pub use super::client::{ANSWER_CAP, EVENT_CAP, STREAM_CAP, TEXT_CAP};
pub use blocks::BLOCKS_CAP;
pub use parameters::DEFAULT_MAX_TOKENS;

/// What the API calls things.
const WORDS: ApiWords = ApiWords { reply: "message" };

/// A chat model at an [`Endpoint`] of the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    client: Client,
    messages: Target,
    stream: bool,
}

impl Anthropic {
    /// The model of this endpoint, asked through this client. `stream`: whether its replies are
    /// requested piece by piece; a server that answers in one piece all the same is understood.
    pub fn new(http: Http, endpoint: Endpoint, tuning: Tuning, stream: bool) -> Self {
        let messages = endpoint.target(&["messages"]);
        Self { client: Client::new(http, endpoint, tuning, WORDS), messages, stream }
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

    /// Asks for the list of models, which costs nothing, and for the model by its name where the
    /// list does not have it.
    ///
    /// # Errors
    /// As a call fails, and [`FailureClass::Timeout`] when the answer is not there in time.
    pub async fn probe(&self, within: Duration) -> Result<Reach, Box<Failure>> {
        self.client.probe(within, true).await
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let client = &self.client;
        let asked = Instant::now();
        let refused = client.refused.now();
        let parameters = MessageParameters::of(&client.tuning, &request.form, self.stream, refused);
        let body = wire::body(&client.endpoint.model().value, request, &parameters)
            .map_err(|error| client.unsendable(&error))?;
        let mut answer =
            client.http.post(&self.messages, body).await.map_err(|e| client.unanswered(&e))?;
        if !(200..300).contains(&answer.status()) {
            return Err(Box::pin(client.refusal(answer, Requested::Reply(parameters.sent))).await);
        }
        if client.comes_in_events(&mut answer, self.stream).await? {
            let reply = GatheredMessage::of(client, request, asked);
            Box::pin(read(client, answer, reply, listener)).await
        } else {
            self.read_whole(request, answer).await
        }
    }

    async fn read_whole(
        &self,
        request: &ChatRequest,
        answer: Answer,
    ) -> Result<Reply, Box<Failure>> {
        let client = &self.client;
        let status = answer.status();
        let body = answer.collect(ANSWER_CAP).await.map_err(|e| client.broke_off(&e, None))?;
        let mut room = String::new();
        let message: wire::MessageBody<'_> = match read_body(&body, &mut room) {
            Ok(message) => message,
            Err(error) => return Err(client.unreadable(status, &body, &error.to_string())),
        };
        if let Some(error) = &message.error {
            return Err(client.complained(
                error,
                "instead of a message",
                ParameterSet::default(),
                None,
            ));
        }
        let Some(content) = message.content else {
            return Err(client.unreadable(status, &body, "it has no `content`"));
        };
        let mut blocks = blocks::ReplyBlocks::default();
        for (index, block) in (0..).zip(content) {
            blocks.start(index, block);
        }
        if let Some(cap) = blocks.beyond() {
            return Err(client.broke_off(&crate::net::NetError::TooLarge { cap }, None));
        }
        let said = blocks.done(client, &request.messages);
        let said = said.map_err(|why| client.miscalled(why, None))?;
        Ok(Reply {
            text: client.without_the_key(&said.text),
            tool_calls: said.calls,
            result: None,
            usage: message.usage.and_then(wire::MessageUsage::usage),
            estimated: false,
            first_token_ms: None,
            model: message.model.map(|model| client.model_name(&model.0)),
            finish: wire::finish(client, message.stop_reason, message.stop_details),
            blocks: said.kept,
        })
    }
}

impl ChatModel for Anthropic {
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
