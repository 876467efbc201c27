//! What the adapters of all APIs share: makes one attempt over HTTP, from request to reply, removes
//! the key from all texts, and describes failures. The differences between the APIs are in
//! [`ModelApi`]; each adapter is compiled for its own API, without dynamic dispatch.
//!
//! Also checks whether an endpoint is reachable and which models it lists, for `roundtable doctor`
//! and the launch form.

mod failures;
pub mod fields;
pub mod kept_fields;
mod refusal;
pub mod stream;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use self::fields::{BadAnswer, Fields, read_answer};
use self::refusal::{Requested, error_text};
use self::stream::{PartialReply, StreamedContent, read_stream};
use super::adaptation::{OptionalParts, RefusedParameters};
use super::endpoint::{Endpoint, Provider, Wire};
use super::{Adaptations, ChatModel, ChatRequest, Failure, Listener, failure};
use crate::base::visible::{visible_within, without_byte_order_mark};
use crate::log::event::{FailureClass, ModelLabel, Reply};
use crate::net::{Http, HttpResponse, Redactor, RequestTarget};
use crate::scenario::spec::Tuning;

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
pub(crate) struct ApiWords {
    /// The term for a reply of the model.
    pub(crate) reply: &'static str,
    /// Text that only answers of this API have: an invalid answer with it comes from the right address.
    pub(crate) marks: &'static [&'static str],
}

/// An endpoint as an adapter calls it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) http: Http,
    pub(crate) endpoint: Endpoint,
    pub(crate) redactor: Redactor,
    pub(crate) tuning: Tuning,
    /// The parameters that requests omit.
    pub(crate) refused: RefusedParameters,
    api: ApiWords,
}

impl Client {
    pub(crate) fn new(http: Http, endpoint: Endpoint, tuning: Tuning, api: ApiWords) -> Self {
        let (redactor, refused) = (endpoint.redactor(), RefusedParameters::default());
        Self { http, endpoint, redactor, tuning, refused, api }
    }

    /// Shares the refused parameters with other adapters of the same endpoint and model.
    fn share_adaptations(&mut self, adaptations: &Adaptations) {
        self.refused = adaptations.for_endpoint(&self.endpoint);
    }

    /// Name and host of the model, for the screen and the log.
    pub(crate) fn label(&self) -> ModelLabel {
        ModelLabel::Live {
            name: self.endpoint.model().value.clone(),
            host: self.endpoint.host().to_owned(),
        }
    }

    /// Whether the body is an event stream. If a stream was requested, the first character decides, because
    /// some proxies name the type of the request; otherwise the content type does.
    async fn is_event_stream(
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
    fn word(&self, text: &str) -> Arc<str> {
        visible_within(&self.redactor.redact(text), WORD_CHARS).into()
    }

    /// The name of the model that answered, according to the endpoint.
    pub(super) fn model_name(&self, name: &str) -> Arc<str> {
        self.word(name)
    }

    /// The finish reason: the endpoint's word, or the text of the model's refusal. A refusal is not
    /// a reply text, because the model did not do what was requested.
    pub(crate) fn finish(&self, reason: Option<&str>, refusal: Option<&str>) -> Option<Arc<str>> {
        match refusal {
            Some(refusal) if !refusal.is_empty() => Some(self.word(&format!("refusal: {refusal}"))),
            _ => reason.map(|reason| self.word(reason)),
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

/// The body of a request.
pub(crate) struct ApiRequest {
    /// The bytes that are sent.
    pub(crate) body: Vec<u8>,
    /// The optional parts in it, which a retry can omit.
    pub(crate) sent: OptionalParts,
}

/// The part of an adapter that is specific to its API.
pub(crate) trait ModelApi: Send + Sync + 'static {
    /// The API's terms for messages.
    const WORDS: ApiWords;
    /// The path of requests, below the base URL.
    const PATH: &'static [&'static str];
    /// Whether to look up a model by its name if the list of models does not have it.
    const LOOKS_UP_BY_NAME: bool;

    /// The content of its replies.
    type Content: StreamedContent;

    /// The body for this request.
    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error>;

    /// The reply in an answer that is not streamed, with this status and body.
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
            let reply = PartialReply::<A::Content>::new(client, request, asked, sent);
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

/// The most bytes of a list of models.
const LIST_CAP: usize = 4 << 20;
/// The most names kept from a list of models.
const MAX_NAMES: usize = 2_000;
/// The most characters of a model's name. Longer names are dropped, because a shortened name could
/// be another model's.
const MAX_NAME_CHARS: usize = 200;

/// The result for an endpoint that answers and accepts the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// It lists its models.
    Lists {
        models: usize,
        /// Whether the configured model is among them.
        has_model: bool,
        /// Their names as requests use them, sorted: at most 2,000, and only those with at most 200
        /// characters and without control characters.
        names: Arc<[String]>,
    },
    /// It has no such list, like some endpoints; only the first call shows whether the model
    /// exists.
    NoList {
        /// The HTTP status of the answer.
        status: u16,
        /// The error text of the answer, which may be about more than the missing list.
        said: Option<String>,
    },
}

/// The models of a list, with or without the envelope `{"data": […]}`, which Together leaves out; `None` if
/// it is another object.
fn listed_models(body: &str) -> Result<Option<Vec<Fields<'_>>>, BadAnswer> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let models = match serde_json::from_str::<Vec<Option<Fields<'_>>>>(body) {
        Ok(models) => models,
        Err(_) => {
            let data = read_answer(body)?.raw("data");
            match data.and_then(|data| serde_json::from_str(data.get()).ok()) {
                Some(models) => models,
                None => return Ok(None),
            }
        }
    };
    let models: Vec<Fields<'_>> = models.into_iter().flatten().collect();
    if let Some(error) = models.first().and_then(Fields::error) {
        return Err(BadAnswer::Reported(error));
    }
    Ok(Some(models))
}

impl Client {
    /// Requests the list of models, which is free of charge. `by_name`: a model that is not on the
    /// list is looked up by its name too, because a list may be shortened and omits aliases.
    pub(crate) async fn probe(
        &self,
        within: Duration,
        by_name: bool,
    ) -> Result<ProbeResult, Box<Failure>> {
        let asked = tokio::time::timeout(within, self.list(by_name));
        asked.await.unwrap_or_else(|_| {
            let host = self.endpoint.host();
            let waited = within.as_secs_f32();
            let text = format!("{host} did not answer within {waited} s. Check the network.");
            Err(failure(FailureClass::Timeout, text))
        })
    }

    async fn list(&self, by_name: bool) -> Result<ProbeResult, Box<Failure>> {
        let mut target = self.endpoint.target(&["models"]);
        if self.endpoint.provider().wire() == Wire::Messages {
            // The default limit is 20.
            target = target.query("limit", "1000");
        }
        let answer = self.http.get(&target).await.map_err(|error| self.unanswered(&error))?;
        let status = answer.status();
        match status {
            200..=299 => {}
            400 => {
                let said =
                    Some(self.read_refusal(answer).await.text).filter(|said| !said.is_empty());
                return Ok(ProbeResult::NoList { status, said });
            }
            404 | 405 | 501 => return Ok(ProbeResult::NoList { status, said: None }),
            _ => return Err(self.refusal(answer, Requested::Models).await),
        }
        let body =
            answer.collect(LIST_CAP).await.map_err(|error| self.incomplete_answer(&error, None))?;
        let read = std::str::from_utf8(&body)
            .map_err(|error| BadAnswer::Unreadable(error.to_string()))
            .and_then(listed_models);
        match read {
            Ok(Some(models)) => {
                let ids = models.iter().filter_map(|model| model.word("id"));
                let ids: Vec<Cow<'_, str>> = ids.collect();
                let wanted = &self.endpoint.model().value;
                let provider = self.endpoint.provider();
                let listed = ids.iter().any(|id| plain(provider, id) == wanted);
                let has_model = listed || (by_name && self.has(wanted).await);
                let names = self.names(&ids);
                Ok(ProbeResult::Lists { models: models.len(), has_model, names })
            }
            Ok(None) => Ok(ProbeResult::NoList { status, said: None }),
            Err(BadAnswer::Reported(error)) => {
                let said = error_text(&error).map(|said| self.quotable(&said));
                Ok(ProbeResult::NoList { status, said })
            }
            Err(BadAnswer::Unreadable(why)) => {
                Err(self.unreadable(status, &body, "list of models", &why))
            }
        }
    }

    /// The names on a list that can be offered as a choice.
    fn names(&self, ids: &[Cow<'_, str>]) -> Arc<[String]> {
        let provider = self.endpoint.provider();
        let names = ids.iter().map(|id| plain(provider, id));
        let good = |name: &&str| {
            let shown = !name.is_empty() && visible_within(name, MAX_NAME_CHARS) == **name;
            shown && *self.without_the_key(name) == **name
        };
        let mut names: Vec<String> = names.filter(good).map(str::to_owned).collect();
        names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
        names.dedup();
        names.truncate(MAX_NAMES);
        names.into()
    }

    /// Whether the endpoint has a model of this name.
    async fn has(&self, name: &str) -> bool {
        let answer = self.http.get(&self.endpoint.target(&["models", name])).await;
        answer.is_ok_and(|answer| (200..300).contains(&answer.status()))
    }
}

/// A model's name as requests use it: Gemini's list puts `models/` before each.
fn plain(provider: Provider, id: &str) -> &str {
    let id = id.trim();
    match provider {
        Provider::Gemini => id.strip_prefix("models/").unwrap_or(id),
        _ => id,
    }
}
