//! The adapter of every API: one attempt, from what is asked to the reply. What the APIs differ in
//! is a [`ModelApi`]; each adapter is compiled for its own, so an attempt calls it directly.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::probe::Reach;
use super::refusal::Requested;
use super::stream::{Gathers, read};
use super::{ANSWER_CAP, ApiWords, Client};
#[cfg(doc)]
use crate::event::kind::FailureClass;
use crate::event::kind::{ModelLabel, Reply};
use crate::llm::adaptation::ParameterSet;
use crate::llm::endpoint::Endpoint;
use crate::llm::{Adaptations, ChatModel, ChatRequest, Failure, Listener, Tuning};
use crate::net::{Http, Target};

/// The body of a request.
pub(in crate::llm) struct ApiRequest {
    /// As it is sent.
    pub(in crate::llm) body: Vec<u8>,
    /// The parameters in it that it can do without.
    pub(in crate::llm) sent: ParameterSet,
}

/// What an API has of its own.
pub(in crate::llm) trait ModelApi: Send + Sync + 'static {
    /// What it calls things.
    const WORDS: ApiWords;
    /// Where requests go, below the base URL.
    const PATH: &'static [&'static str];
    /// A model that is not on its list of models is asked for by its name too.
    const ASKS_BY_NAME: bool;

    /// A reply that comes piece by piece.
    type Gathered<'a>: Gathers + Send;

    /// What is sent for this request.
    ///
    /// # Errors
    /// None that a request of ours can cause; serde_json's signature has one.
    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error>;

    /// Nothing has come yet of the reply to this request, which was sent at `asked` with these
    /// parameters.
    fn gathered<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: ParameterSet,
    ) -> Self::Gathered<'a>;

    /// The reply of an answer that came in one piece, with this status and body.
    ///
    /// # Errors
    /// An answer that is none of the API, reports an error or is too large.
    fn reply(
        client: &Client,
        request: &ChatRequest,
        sent: ParameterSet,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>>;
}

/// A chat model at an [`Endpoint`] that speaks the API `A`.
pub struct Adapter<A> {
    client: Client,
    target: Target,
    stream: bool,
    api: PhantomData<A>,
}

impl<A> fmt::Debug for Adapter<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Adapter");
        shown.field("client", &self.client).field("target", &self.target);
        shown.field("stream", &self.stream).finish()
    }
}

#[expect(private_bounds, reason = "the APIs that there are stand in this room")]
impl<A: ModelApi> Adapter<A> {
    /// The model of this endpoint, asked through this client. `stream`: whether its replies are
    /// requested piece by piece; a server that answers in one piece all the same is understood.
    pub fn new(http: Http, endpoint: Endpoint, tuning: Tuning, stream: bool) -> Self {
        let target = endpoint.target(A::PATH);
        let client = Client::new(http, endpoint, tuning, A::WORDS);
        Self { client, target, stream, api: PhantomData }
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

    /// Asks for the list of models, which costs nothing; of an API whose list may be cut off, also
    /// for the model by its name where the list does not have it.
    ///
    /// # Errors
    /// As a call fails, and [`FailureClass::Timeout`] when the answer is not there in time.
    pub async fn probe(&self, within: Duration) -> Result<Reach, Box<Failure>> {
        self.client.probe(within, A::ASKS_BY_NAME).await
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let client = &self.client;
        let asked = Instant::now();
        let ApiRequest { body, sent } =
            A::request(client, request, self.stream).map_err(|e| client.unsendable(&e))?;
        let answer = client.http.post(&self.target, body).await;
        let mut answer = answer.map_err(|error| client.unanswered(&error))?;
        let status = answer.status();
        if !(200..300).contains(&status) {
            // What seldom happens is in a box of its own, so that no other attempt is as large.
            return Err(Box::pin(client.refusal(answer, Requested::Reply(sent))).await);
        }
        if client.comes_in_events(&mut answer, self.stream).await? {
            let reply = A::gathered(client, request, asked, sent);
            return Box::pin(read(client, answer, reply, listener)).await;
        }
        let body = answer.collect(ANSWER_CAP).await.map_err(|e| client.broke_off(&e, None))?;
        A::reply(client, request, sent, status, &body)
    }
}

impl<A: ModelApi> ChatModel for Adapter<A> {
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
