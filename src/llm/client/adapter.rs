//! The adapter of every API: makes one attempt, from request to reply. The differences between the
//! APIs are in [`ModelApi`]; each adapter is compiled for its own API, without dynamic dispatch.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::probe::ProbeResult;
use super::refusal::Requested;
use super::stream::{ReplyAssembler, read_stream};
use super::{ANSWER_CAP, ApiWords, Client};
#[cfg(doc)]
use crate::event::kind::FailureClass;
use crate::event::kind::{ModelLabel, Reply};
use crate::llm::adaptation::OptionalParts;
use crate::llm::endpoint::Endpoint;
use crate::llm::{Adaptations, ChatModel, ChatRequest, Failure, Listener, Tuning};
use crate::net::{Http, RequestTarget};

/// The body of a request.
pub(in crate::llm) struct ApiRequest {
    /// The bytes that are sent.
    pub(in crate::llm) body: Vec<u8>,
    /// The optional parts in it, which a retry can omit.
    pub(in crate::llm) sent: OptionalParts,
}

/// The part of an adapter that is specific to its API.
pub(in crate::llm) trait ModelApi: Send + Sync + 'static {
    /// The API's terms for messages.
    const WORDS: ApiWords;
    /// The path of requests, below the base URL.
    const PATH: &'static [&'static str];
    /// Whether to look up a model by its name if the list of models does not have it.
    const LOOKS_UP_BY_NAME: bool;

    /// A reply that is streamed.
    type PartialReply<'a>: ReplyAssembler + Send;

    /// The body for this request.
    ///
    /// # Errors
    /// Our own requests cause none; the signature is serde_json's.
    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error>;

    /// An empty reply to this request, which was sent at `asked` with these optional parts.
    fn partial_reply<'a>(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: OptionalParts,
    ) -> Self::PartialReply<'a>;

    /// The reply in an answer that is not streamed, with this status and body.
    ///
    /// # Errors
    /// The answer is not one of this API, reports an error or is too large.
    fn reply(
        client: &Client,
        request: &ChatRequest,
        sent: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>>;
}

/// A chat model at an [`Endpoint`] with the API `A`.
pub struct Adapter<A> {
    client: Client,
    target: RequestTarget,
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

#[expect(private_bounds, reason = "all APIs are in this module")]
impl<A: ModelApi> Adapter<A> {
    /// The model of this endpoint, called through this HTTP client. `stream`: whether to request
    /// streamed replies; a server that answers without streaming is understood too.
    pub fn new(http: Http, endpoint: Endpoint, tuning: Tuning, stream: bool) -> Self {
        let target = endpoint.target(A::PATH);
        let client = Client::new(http, endpoint, tuning, A::WORDS);
        Self { client, target, stream, api: PhantomData }
    }

    /// The same adapter, which shares the refused parameters with every adapter of the same
    /// endpoint and model. By default, an adapter remembers them for itself.
    pub fn sharing_adaptations(mut self, adaptations: &Adaptations) -> Self {
        self.client.share_adaptations(adaptations);
        self
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.client.endpoint
    }

    /// Requests the list of models, which is free of charge. For an API that may shorten the list,
    /// also looks up a missing model by its name.
    ///
    /// # Errors
    /// The failures of a call, and [`FailureClass::Timeout`] if there is no answer in time.
    pub async fn probe(&self, within: Duration) -> Result<ProbeResult, Box<Failure>> {
        self.client.probe(within, A::LOOKS_UP_BY_NAME).await
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
            // Boxed because it is rare: otherwise the future of every attempt would be as large.
            return Err(Box::pin(client.refusal(answer, Requested::Reply(&sent))).await);
        }
        if client.is_event_stream(&mut answer, self.stream).await? {
            let reply = A::partial_reply(client, request, asked, sent);
            return Box::pin(read_stream(client, answer, reply, listener)).await;
        }
        let body =
            answer.collect(ANSWER_CAP).await.map_err(|e| client.incomplete_answer(&e, None))?;
        A::reply(client, request, &sent, status, &body)
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
