//! An MCP server at an address: the HTTP client of rmcp's transport, over our own [`Http`] with its address
//! rules, limits and decompression. Redirects are not followed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::results::{Asked, no_discovery, read_message};
use crate::base::time::millis;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::sse::{SseError as EventError, SseEvent, SseParser};
use crate::net::{Http, HttpResponse, NetError, Redactor, RequestTarget, read_prefix};
use crate::scenario::tools::mcp::{McpServerSpec, McpUrl};
use crate::tool::link::{LinkFailures, ProgramLink};
use crate::tool::server_address;
use crate::tool::{Environment, NotReady, ToolSettings, sendable_headers};

/// An address as the scenario writes it.
const EXAMPLE: &str = "https://tools.example/mcp";
/// Most bytes that are read of the body of an error response.
const REFUSAL_BYTES: usize = 16 << 10;
/// Most requests of the server that may wait for an answer.
const MAX_UNANSWERED: usize = 100;
/// Most times that a broken stream is resumed.
const MAX_RESUMED: usize = 3;

/// Codes of the JSON-RPC errors with which SDKs refuse the session of an HTTP request.
const SESSION_ERRORS: [i32; 2] = [-32_000, -32_001];
/// Waits before a stream is resumed, as far as the server may choose them, in milliseconds.
const RESUME_MS: (u64, u64) = (100, 60_000);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Response of the transport's interface.
type HttpResult<T> = Result<T, StreamableHttpError<HttpFailure>>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// The address of a server, with the values of its headers.
#[derive(Debug)]
pub(super) struct HttpAddress {
    http: Http,
    target: RequestTarget,
    /// Names of the headers that the scenario sets.
    header_names: Vec<String>,
    /// Redacts the values that came from the environment.
    pub(super) redactor: Redactor,
    /// Maximum size of a message in bytes.
    cap: usize,
    /// The server's name in the scenario.
    name: String,
}

impl HttpAddress {
    /// The address of this server, its variables looked up in `env`.
    pub(super) fn new(
        spec: &McpServerSpec,
        url: &McpUrl,
        http: Http,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let mut wrong = Vec::new();
        let address = server_address(&format!("the MCP server {}", spec.name), &url.url, EXAMPLE)
            .map_err(|why| wrong.push(why))
            .ok();
        let settings =
            ToolSettings::look_up(&url.headers, env).map_err(|more| wrong.extend(more)).ok();
        let headers = match settings.as_ref().map(sendable_headers) {
            Some(Ok(headers)) => headers,
            Some(Err(unsendable)) => {
                wrong.extend(unsendable);
                HeaderMap::new()
            }
            None => HeaderMap::new(),
        };
        match (address, settings) {
            (Some(address), Some(settings)) if wrong.is_empty() => Ok(Self {
                http,
                target: with_headers(RequestTarget::new(address), &headers),
                header_names: settings.values.keys().cloned().collect(),
                redactor: settings.redactor,
                cap: usize::try_from(spec.max_bytes).unwrap_or(usize::MAX),
                name: spec.name.clone(),
            }),
            _ => Err(wrong),
        }
    }

    /// The transport of a new connection. Nothing is sent yet.
    pub(super) fn connect(
        &self,
        link: &Arc<ProgramLink>,
        failures: &Arc<LinkFailures>,
    ) -> StreamableHttpClientTransport<McpHttpClient> {
        let client = McpHttpClient {
            http: self.http.clone(),
            target: self.target.clone(),
            link: Arc::clone(link),
            failures: Arc::clone(failures),
            auth_advice: self.auth_advice().into(),
            cap: self.cap,
            unanswered: Arc::default(),
        };
        let mut resume = ExponentialBackoff::default();
        resume.max_times = Some(MAX_RESUMED);
        // The client knows the address and the limits.
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.target.host())
            // An attempt is made once; the next one opens a new session.
            .reinit_on_expired_session(false);
        config.retry_config = Arc::new(resume);
        StreamableHttpClientTransport::with_client(client, config)
    }

    /// What to do if the server refuses the credentials.
    fn auth_advice(&self) -> String {
        let table = &self.name;
        match self.header_names.as_slice() {
            [] => format!(
                "roundtable does not log in (OAuth): get a token and set it in [mcp.{table}], such as \
                 headers = {{ Authorization = {{ env = \"TOKEN\" }} }}."
            ),
            names => format!("Check {} in headers of [mcp.{table}].", names.join(", ")),
        }
    }
}

fn with_headers(target: RequestTarget, headers: &HeaderMap) -> RequestTarget {
    headers.iter().fold(target, |target, (name, value)| target.header(name.clone(), value.clone()))
}

/// The HTTP client of one connection.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    http: Http,
    target: RequestTarget,
    link: Arc<ProgramLink>,
    failures: Arc<LinkFailures>,
    /// What to do if the server refuses the credentials.
    auth_advice: Arc<str>,
    cap: usize,
    /// Number of requests of the server that were not answered yet.
    unanswered: Arc<AtomicUsize>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.text)]
pub(super) struct HttpFailure(Box<AttemptFailed>);

/// The failure that a transport error carries; `None`: it is none of this client.
pub(super) fn failure_of(
    error: &DynamicTransportError,
    failures: &LinkFailures,
) -> Option<Box<AttemptFailed>> {
    let bad =
        |what: &str| failures.failure(FailureClass::BadResponse, what, "Is it an MCP server?");
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>()? {
        StreamableHttpError::Client(HttpFailure(failed)) => Some(failed.clone()),
        StreamableHttpError::SessionExpired => Some(session_expired(failures)),
        StreamableHttpError::TransportChannelClosed => None,
        _ => Some(bad("does not answer over HTTP as MCP says")),
    }
}

fn session_expired(failures: &LinkFailures) -> Box<AttemptFailed> {
    let what = "does not know the session any more";
    failures.failure(FailureClass::Reset, what, "The next attempt opens a new one.")
}

impl McpHttpClient {
    fn target(
        &self,
        session: Option<&str>,
        protocol: &HashMap<HeaderName, HeaderValue>,
        accept: &'static str,
    ) -> HttpResult<RequestTarget> {
        let mut target = self.target.clone().header(ACCEPT, HeaderValue::from_static(accept));
        for (name, value) in protocol {
            target = target.header(name.clone(), value.clone());
        }
        if let Some(session) = session {
            let value = HeaderValue::from_str(session)
                .map_err(|_| self.bad("gave a session id that is no header value"))?;
            target = target.header(SESSION_ID, value);
        }
        Ok(target)
    }

    /// Sends a request, unless the connection is closed meanwhile.
    async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        body: Option<Vec<u8>>,
    ) -> HttpResult<HttpResponse> {
        tokio::select! {
            biased;
            failed = self.link.closed() => Err(client_error(failed)),
            sent = self.http.send(method, target, body) => {
                sent.map_err(|error| client_error(self.unanswered(&error)))
            }
        }
    }

    /// The whole body, unless the connection is closed meanwhile.
    async fn collect(&self, response: HttpResponse) -> HttpResult<Vec<u8>> {
        tokio::select! {
            biased;
            failed = self.link.closed() => Err(client_error(failed)),
            body = response.collect(self.cap) => match body {
                Ok(body) => Ok(body.into()),
                Err(error) => Err(client_error(self.unanswered(&error))),
            },
        }
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        protocol: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let target = self
            .target(session.as_deref(), &protocol, "application/json, text/event-stream")?
            .header(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let body = serde_json::to_vec(&message)?;
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        let asked = request.map_or(Asked::Other, |request| Asked::by(&request.request));
        let id = request.map(|request| request.id.clone());
        let answered = self.answered(target, body, id.clone(), asked, session.is_some()).await;
        if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            let less = |count: usize| Some(count.saturating_sub(1));
            let _ = self.unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        match id.filter(|_| asked == Asked::Discovery) {
            Some(id) => self.discovered(answered, id).await,
            None => answered,
        }
    }

    /// The answer to `server/discover`. A server that refuses it in whatever way, or answers something else,
    /// is older and does not know the request, unless it cannot be reached or refuses the credentials.
    async fn discovered(
        &self,
        answered: HttpResult<StreamableHttpPostResponse>,
        id: RequestId,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let message = match answered {
            Ok(StreamableHttpPostResponse::Json(message, _)) => Some(message),
            Ok(StreamableHttpPostResponse::Sse(mut events, _)) => loop {
                match events.next().await {
                    Some(Ok(event)) => {
                        let data = event.data.unwrap_or_default();
                        let message = read_message(data.as_bytes(), |_| Asked::Discovery).ok();
                        let is_answer = |message: &ServerJsonRpcMessage| {
                            matches!(
                                message,
                                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
                            )
                        };
                        if message.as_ref().is_some_and(is_answer) {
                            break message;
                        }
                    }
                    Some(Err(_)) | None => break None,
                }
            },
            Err(StreamableHttpError::Client(HttpFailure(failed))) if is_final(failed.class) => {
                return Err(client_error(failed));
            }
            _ => None,
        };
        if let Some(failed) = self.link.failure() {
            return Err(client_error(failed));
        }
        let message = match message {
            // Some have no id, because the server has not read the request.
            Some(JsonRpcMessage::Error(error)) => {
                ServerJsonRpcMessage::error(error.error, Some(id))
            }
            Some(message @ JsonRpcMessage::Response(_)) => message,
            _ => no_discovery(id, "no answer to server/discover"),
        };
        Ok(StreamableHttpPostResponse::Json(message, None))
    }

    /// Sends a request and reads its answer.
    async fn answered(
        &self,
        target: RequestTarget,
        body: Vec<u8>,
        id: Option<RequestId>,
        asked: Asked,
        has_session: bool,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let response = self.send(Method::POST, &target, Some(body)).await?;
        if !(200..300).contains(&response.status()) {
            return self.refused(response, id, has_session).await;
        }
        if id.is_none() || matches!(response.status(), 202 | 204) {
            response.release().await;
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.header(SESSION_ID.as_str()).map(str::to_owned);
        if response.has_media_type(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response, asked), session));
        }
        if !response.has_media_type(JSON) {
            let kind = response.header(CONTENT_TYPE.as_str()).unwrap_or("nothing");
            let what = format!("answers with {}, not with JSON", self.failures.quoted(kind));
            return Err(self.bad(&what));
        }
        let body = self.collect(response).await?;
        let message = read_message(&body, |_| asked).map_err(|error| {
            let said = self.failures.quoted(&String::from_utf8_lossy(&body));
            self.bad(&format!("answers with JSON that is no MCP message ({error}): {said}"))
        })?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    /// A response whose status is no success: a failure, or the JSON-RPC error that it carries.
    async fn refused(
        &self,
        response: HttpResponse,
        id: Option<RequestId>,
        has_session: bool,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let refusal = Refusal::read(response).await;
        let error = match read_message(&refusal.body, |_| Asked::Other) {
            Ok(JsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        };
        if has_session && refusal.is_about_session(error.as_ref()) {
            return Err(self.session_lost());
        }
        // It may carry no id, because the server has not read the request.
        if let (Some(error), Some(id), 400 | 402 | 404..=428 | 430..=499) =
            (error, id, refusal.status)
        {
            let message = ServerJsonRpcMessage::error(error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        Err(client_error(self.refusal(refusal)))
    }

    /// The server does not know the session: the next attempt opens another connection.
    fn session_lost(&self) -> StreamableHttpError<HttpFailure> {
        self.link.close(session_expired(&self.failures));
        StreamableHttpError::SessionExpired
    }

    fn refusal(&self, refusal: Refusal) -> Box<AttemptFailed> {
        let Refusal { status, location, body, retry_after_ms, should_retry, page } = refusal;
        let text = String::from_utf8_lossy(&body);
        let said = match (&location, text.trim_start().starts_with('<')) {
            (Some(to), _) => self.failures.quoted(to),
            (None, true) => "an HTML page".to_owned(),
            (None, false) => self.failures.quoted(&text),
        };
        let advice = match status {
            300..=399 => "Redirects are not followed: set url to where it leads.",
            401 | 403 => &self.auth_advice,
            404 | 405 => "Check the server's url: is it the one of its MCP endpoint?",
            429 => "Wait, or call it less often.",
            500..=599 => "Try again later.",
            _ => "Check the server's url.",
        };
        let colon = if said.is_empty() { "" } else { ": " };
        let what = format!("returned HTTP {status}{colon}{said}");
        let page = page.filter(|_| matches!(status, 401 | 403));
        let page =
            page.map(|page| format!(" Its page about access: {}", self.failures.quoted(&page)));
        let advice = format!("{advice}{}", page.unwrap_or_default());
        let mut failed = AttemptFailed::from_status(status, "");
        failed.text = self.failures.failure(failed.class, &what, &advice).text;
        failed.retry_after_ms = retry_after_ms;
        failed.should_retry = should_retry;
        failed
    }

    /// The failure of a request without a complete response.
    fn unanswered(&self, error: &NetError) -> Box<AttemptFailed> {
        let advice = match error {
            NetError::Resolve { .. } => "Check the host in the server's url and the network.",
            NetError::Connect { .. } => "Is the server running? Check its url.",
            NetError::Proxy { .. } | NetError::UnusableProxy { .. } => "Check the proxy.",
            NetError::OutOfReach { .. } => "If you mean this host, set allow_private = true.",
            NetError::Tls { .. } => "Does the server use https, and is its certificate valid?",
            NetError::Client { .. } => "Install the system's CA certificates.",
            NetError::Broken { .. } => "Try again.",
            NetError::NotHttp { .. } => "Check the server's url.",
            NetError::Encoding { .. } => "Turn compression off in the server.",
            NetError::TooLarge { .. } => "Ask for less, or raise max_bytes.",
        };
        let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
        self.failures.failure(class, &format!("cannot be used: {error}"), advice)
    }

    /// The failure of calls that were sent before the server closed the connection.
    fn gone(&self, error: &NetError) -> Box<AttemptFailed> {
        let what = format!("closed the connection: {error}");
        self.failures.failure(FailureClass::Reset, &what, "Is the server running?")
    }

    fn bad(&self, what: &str) -> StreamableHttpError<HttpFailure> {
        let advice = "Check the server's url: is it the one of its MCP endpoint?";
        client_error(self.failures.failure(FailureClass::BadResponse, what, advice))
    }

    /// The events of a response. `asked`: the kind of the request.
    fn events(&self, response: HttpResponse, asked: Asked) -> EventStream {
        let events = EventReader {
            asked,
            response,
            parser: SseParser::new(self.cap),
            bytes: Vec::new(),
            at: 0,
            is_over: false,
            client: self.clone(),
        };
        stream::unfold(events, |mut events| async move {
            let event = events.next().await?;
            Some((event, events))
        })
        .boxed()
    }
}

fn client_error(failed: Box<AttemptFailed>) -> StreamableHttpError<HttpFailure> {
    StreamableHttpError::Client(HttpFailure(failed))
}

/// A response whose status is no success.
struct Refusal {
    status: u16,
    location: Option<String>,
    body: Vec<u8>,
    retry_after_ms: Option<u64>,
    should_retry: Option<bool>,
    /// The address that says how to get access (`resource_metadata` of `WWW-Authenticate`).
    page: Option<String>,
}

impl Refusal {
    async fn read(response: HttpResponse) -> Self {
        let status = response.status();
        let is_redirect = matches!(status, 300..=399);
        let location = response.location().filter(|_| is_redirect).map(str::to_owned);
        let retry_after_ms = response.retry_after().map(millis);
        let should_retry = response.should_retry();
        let page = response.header(WWW_AUTHENTICATE.as_str()).and_then(access_page);
        let (body, _) = read_prefix(response, REFUSAL_BYTES).await;
        Self { status, location, body, retry_after_ms, should_retry, page }
    }

    /// Whether the server says that it does not know the session. It should do so with 404; SDKs also say it
    /// with 400 or 401, in the error or in words.
    fn is_about_session(&self, error: Option<&ErrorData>) -> bool {
        let has_code = |error: &ErrorData| SESSION_ERRORS.contains(&error.code.0);
        let text = String::from_utf8_lossy(&self.body).to_ascii_lowercase();
        match self.status {
            404 => true,
            400 => error.is_some_and(has_code) || text.contains("session"),
            401 | 403 | 410 => text.contains("session"),
            _ => false,
        }
    }
}

/// The address in a header `WWW-Authenticate` that says how to get access to the server.
fn access_page(challenge: &str) -> Option<String> {
    let (_, after) = challenge.split_once("resource_metadata=")?;
    let page = match after.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => after.split([',', ' ']).next()?,
    };
    url::Url::parse(page).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(page.to_owned())
}

/// Whether a failure shows nothing of the versions that the server speaks: it was not reached, or it refuses
/// the credentials.
fn is_final(class: FailureClass) -> bool {
    use FailureClass::{Auth, Cancelled, Connect, Denied, Resolve, Tls, TooLarge};
    matches!(class, Auth | Cancelled | Connect | Denied | Resolve | Tls | TooLarge)
}

/// Reads the events of a response.
struct EventReader {
    response: HttpResponse,
    parser: SseParser,
    /// A piece of the body, and how much of it was read.
    bytes: Vec<u8>,
    at: usize,
    is_over: bool,
    asked: Asked,
    client: McpHttpClient,
}

/// Whether an event has a message. Those of other names keep the connection open, or are extensions.
fn is_message(event: &SseEvent<'_>) -> bool {
    matches!(event.name, "" | "message")
}

impl EventReader {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if self.is_over {
                return None;
            }
            let mut rest = self.bytes.get(self.at..).unwrap_or_default();
            let found = self
                .parser
                .next(&mut rest)
                .map(|event| event.map(|event| is_message(&event).then(|| event.data.to_owned())));
            self.at = self.bytes.len() - rest.len();
            match found {
                Ok(Some(Some(data))) => return Some(self.passed_on(data)),
                Ok(Some(None)) => continue,
                Ok(None) => {}
                Err(error) => return Some(Err(self.broken(&error))),
            }
            let chunk = tokio::select! {
                biased;
                _ = self.client.link.closed() => return None,
                chunk = self.response.chunk() => chunk,
            };
            match chunk {
                Ok(Some(bytes)) => {
                    self.bytes = bytes.into();
                    self.at = 0;
                }
                Ok(None) => {
                    self.is_over = true;
                    // The event at the end may lack its empty line.
                    let last = self.parser.finish().ok().flatten().filter(is_message);
                    let last = last.map(|event| event.data.to_owned());
                    return Some(self.passed_on(last.unwrap_or_default()));
                }
                Err(error) => {
                    self.is_over = true;
                    let failed = self.client.unanswered(&error);
                    let text = failed.text.clone();
                    self.client.link.note(failed);
                    return Some(Err(SseError::Body(text.into())));
                }
            }
        }
    }

    /// The event, unless it is no message, or the server asks more than it lets this program answer.
    fn passed_on(&mut self, data: String) -> Result<Sse, SseError> {
        let mut sse = Sse { data: Some(data), ..Sse::default() };
        self.set_resume(&mut sse);
        let data = sse.data.as_deref().unwrap_or_default();
        // Such an event only has an id, from which the stream can be resumed.
        if data.trim().is_empty() {
            return Ok(sse);
        }
        let message = match read_message(data.as_bytes(), |_| self.asked) {
            Ok(message) => message,
            Err(_) => {
                let said = self.client.failures.quoted(data);
                let what = format!("sent an event that is no MCP message: {said}");
                let class = FailureClass::BadResponse;
                let failed = self.client.failures.failure(class, &what, "Fix the server.");
                // A message is lost; anything else keeps the connection open.
                if data.contains("\"jsonrpc\"") && self.asked != Asked::Discovery {
                    return Err(self.close(failed));
                }
                self.client.link.note(failed);
                sse.data = None;
                return Ok(sse);
            }
        };
        if matches!(message, JsonRpcMessage::Request(_))
            && self.client.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED
        {
            let what = format!("sent {MAX_UNANSWERED} requests and reads no answers");
            let failed = self.client.failures.failure(FailureClass::Tool, &what, "Fix the server.");
            return Err(self.close(failed));
        }
        // As rmcp reads it: the event itself may be odd.
        sse.data = serde_json::to_string(&message).ok();
        Ok(sse)
    }

    fn set_resume(&self, sse: &mut Sse) {
        let resume = self.parser.resume();
        sse.id.clone_from(&resume.id);
        sse.retry = resume.retry_ms.map(|ms| ms.clamp(RESUME_MS.0, RESUME_MS.1));
    }

    /// An event that cannot be read ends the connection: the message in it is lost.
    fn broken(&mut self, error: &EventError) -> SseError {
        let (class, advice) = match error {
            EventError::TooLarge { .. } => {
                (FailureClass::TooLarge, "Ask for less, or raise max_bytes.")
            }
            EventError::NotUtf8(_) => (FailureClass::BadResponse, "Fix the server."),
        };
        let failed =
            self.client.failures.failure(class, &format!("cannot be read: {error}"), advice);
        self.close(failed)
    }

    fn close(&mut self, failed: Box<AttemptFailed>) -> SseError {
        self.is_over = true;
        let text = failed.text.clone();
        self.client.link.close(failed);
        SseError::Body(text.into())
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.post(message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        // The connection is closed already, so that is not checked here.
        let target = self.target(Some(&session_id), &custom_headers, JSON)?;
        let response = self.http.send(Method::DELETE, &target, None).await;
        let response = response.map_err(|error| client_error(self.unanswered(&error)))?;
        match response.status() {
            405 => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            200..=299 => Ok(()),
            _ => Err(client_error(self.refusal(Refusal::read(response).await))),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<EventStream> {
        let mut target = self.target(session_id.as_deref(), &custom_headers, EVENTS)?;
        if let Some(id) = last_event_id {
            let value = HeaderValue::from_str(&id)
                .map_err(|_| self.bad("gave an event id that is no header value"))?;
            target = target.header(LAST_EVENT_ID, value);
        }
        let response = tokio::select! {
            biased;
            failed = self.link.closed() => return Err(client_error(failed)),
            sent = self.http.send(Method::GET, &target, None) => sent,
        };
        let response = response.map_err(|error| {
            let failed = self.unanswered(&error);
            // Calls that wait for a stream to be resumed fail now, and the next attempt opens a new connection.
            if matches!(error, NetError::Connect { .. }) {
                self.link.close(self.gone(&error));
            }
            client_error(failed)
        })?;
        match response.status() {
            404 | 405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            200..=299 if response.has_media_type(EVENTS) => Ok(self.events(response, Asked::Other)),
            200..=299 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(client_error(self.refusal(Refusal::read(response).await))),
        }
    }
}
