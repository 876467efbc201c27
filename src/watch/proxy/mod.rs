//! The model proxy: it passes the requests of a guarded program on to its models, byte by byte. It reads a copy, so that
//! the run has each call with its attempts.

mod formats;
mod made;
mod reply;
pub mod variables;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::StreamExt as _;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use url::Url;

use self::formats::Api;
use self::made::{Asked, StreamForm};
use self::reply::PassingReply;
use self::variables::{Upstream, Upstreams};
use super::callers::{Caller, Callers};
use super::hub::HubInput;
use super::{messages, texts};
use crate::base::visible::visible_within;
use crate::log::event::{AttemptFailed, FailureClass, Usage};
use crate::net::error::NetError;
use crate::net::{Http, Redactor, Secret, host_of};
use crate::pattern::observed::{
    AttemptReporter, Decision, GuardedRequest, Observation, RequestAbout, RequestRefusal,
};
use crate::scenario::spec::REPLY_TOKENS;
use crate::scenario::spec::tool::{FaultKind, ToolCall, ToolOffer};

/// The body of a response of the receiver or the proxy.
pub(super) type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// Longest request that is read, in bytes. The rest of a longer one passes unread.
const MAX_READ: usize = 32 << 20;

/// Longest request that is shown to people, in bytes.
const MAX_SHOWN: usize = 200 << 10;

/// The header by which the tap says in which span a request was sent.
const SPAN_HEADER: &str = "x-roundtable-span";

/// Headers that belong to one connection.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Sends what comes for a variable to its upstream.
pub struct ModelProxy {
    pub upstreams: Upstreams,
    http: Http,
    hub: mpsc::Sender<HubInput>,
    /// The programs that it serves; `None`: there is one.
    callers: Option<Arc<Callers>>,
    /// The pages in a browser that may use it, by their origins.
    origins: Vec<String>,
}

impl ModelProxy {
    /// A proxy for one program.
    pub fn new(upstreams: Upstreams, http: Http, hub: mpsc::Sender<HubInput>) -> Self {
        Self { upstreams, http, hub, callers: None, origins: Vec::new() }
    }

    /// The same for any programs, and for pages of these origins.
    pub fn for_many(self, origins: Vec<String>) -> Self {
        Self { callers: Some(Arc::default()), origins, ..self }
    }

    /// Whether a page of this origin may use it.
    pub(super) fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known == origin)
    }

    /// The program at the other end of a connection, where there are several.
    pub(super) async fn caller(&self, remote: SocketAddr, own: SocketAddr) -> Option<Arc<Caller>> {
        let callers = Arc::clone(self.callers.as_ref()?);
        spawn_blocking(move || callers.of(remote, own)).await.ok()
    }

    /// Answers a request with the response of its upstream. `rest`: what the client has appended to the address in the
    /// variable, with its query; `caller`: the program that has sent it, where there are several.
    pub(super) async fn forward(
        &self,
        upstream: &Upstream,
        rest: &str,
        caller: Option<&Arc<Caller>>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let url = upstream.url(rest);
        // A client may append nothing: its address names the API.
        let path = url.as_ref().map_or("", |url| url.path());
        let form = Api::of_path(path).or(Api::of_provider(upstream.variable.provider));
        let refused =
            |status: u16, text: &str| refusal(form, &RequestRefusal::without_retry(status, text));
        let Some(url) = &url else { return refused(400, "the path is not valid") };
        let headers = request.headers();
        if let Some(name) = upstream.foreign_key(|name| headers.contains_key(name)) {
            let variable = upstream.variable.name;
            return refused(
                400,
                &format!(
                    "the header {name} has a key of another vendor, so the request is not sent: set {variable} to its address"
                ),
            );
        }
        if headers.contains_key(UPGRADE) {
            return refused(
                426,
                "upgrades of a connection, such as WebSocket, do not pass: use HTTP",
            );
        }
        let (parts, mut body) = request.into_parts();
        let mut read = Vec::new();
        while read.len() <= MAX_READ {
            match body.frame().await {
                None => break,
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        read.extend_from_slice(&bytes);
                    }
                }
                Some(Err(_)) => return refused(400, "the body broke off"),
            }
        }
        let is_whole = read.len() <= MAX_READ;
        let read = Bytes::from(read);
        let secrets = Arc::new(Secrets::of(&parts.headers, url.query()));
        let mut about = RequestAbout {
            provider: upstream.variable.provider.into(),
            span: texts::name(text_of(&parts.headers, SPAN_HEADER)),
            retry: text_of(&parts.headers, "x-stainless-retry-count").parse().ok(),
            digest: digest(upstream.variable.name, path, &read),
            ..RequestAbout::default()
        };
        let api = Api::of_path(path).filter(|_| is_whole && parts.method == Method::POST);
        let mut stream = None;
        let api = api.filter(|api| {
            let request = (url, &parts.headers, &read);
            let form = read_request(*api, request, &secrets, &mut about);
            stream = form.flatten();
            form.is_some()
        });
        if api.is_none() {
            let path = visible_within(&secrets.redact(path), 120);
            about.unread = Some(format!("{} {path}", parts.method).into());
            about.is_free = is_free(&parts.method, &path);
        }
        let (model, digest) = (Arc::clone(&about.model), about.digest);
        let estimate = about.estimate;
        let is_head = parts.method == Method::HEAD;
        let (decided, decision) = oneshot::channel();
        let (shown, hidden) = (read.clone(), Arc::clone(&secrets));
        let for_people = Box::new(move || {
            let text = std::str::from_utf8(&shown).ok().filter(|text| text.len() <= MAX_SHOWN)?;
            serde_json::from_str(&hidden.redact(text)).ok()
        });
        let request = GuardedRequest { about: Box::new(about), body: for_people, decided };
        let asked = HubInput::Guarded(caller.cloned(), Box::new(Observation::Request(request)));
        let _ = self.hub.send(asked).await;
        let reporter = match decision.await {
            Ok(Decision::Send(reporter)) => reporter,
            Ok(Decision::Answer(made)) => {
                let asked = api.map(|api| Asked { api, model: &model, stream });
                let response = asked.and_then(|asked| made::response(&asked, &made));
                return response.unwrap_or_else(|| refused(502, "this API has no replies"));
            }
            Ok(Decision::Refuse(why)) => {
                // Codex sends a request that gets 402 five times more.
                let is_codex = text_of(&parts.headers, "user-agent").starts_with("codex");
                let status = if is_codex && why.status == 402 { 400 } else { why.status };
                return refusal(form, &RequestRefusal { status, ..why });
            }
            Err(_) => return refused(503, "the run has ended, so no call is sent"),
        };
        let mut to_upstream = reqwest::Request::new(parts.method, url.clone());
        *to_upstream.headers_mut() = passing(&parts.headers);
        if let Some(login) = upstream.login().filter(|_| !parts.headers.contains_key(AUTHORIZATION))
        {
            to_upstream.headers_mut().insert(AUTHORIZATION, login);
        }
        to_upstream.headers_mut().remove(HOST);
        to_upstream.headers_mut().remove(SPAN_HEADER);
        let changed = reporter.body.as_ref().map(|body| body.to_string());
        if changed.is_some() {
            to_upstream.headers_mut().remove(CONTENT_ENCODING);
            to_upstream.headers_mut().remove(CONTENT_LENGTH);
        }
        *to_upstream.body_mut() = match is_whole {
            _ if changed.is_some() => changed.map(Into::into),
            true => (!read.is_empty() || parts.headers.contains_key("content-length"))
                .then(|| read.into()),
            false => Some(reqwest::Body::wrap(joined(read, body))),
        };
        let sent = tokio::time::Instant::now();
        let response = match self.http.forward(to_upstream).await {
            Ok(response) => response,
            Err(error) => {
                let failed = failure_of(&error);
                // As after an error of the connection, the client may retry.
                let why = RequestRefusal::without_retry(502, &failed.text);
                reporter.end(Err(failed), None);
                return refusal(form, &RequestRefusal { may_retry: true, ..why });
            }
        };
        let status = response.status();
        let headers = passing(response.headers());
        let mut passing = Passing {
            reply: PassingReply::new(api, &response, sent, (estimate, secrets)),
            digest,
            host: host_of(url),
            length: response.content_length(),
            response,
            fault: reporter.fault,
            reporter: Some(reporter),
            is_over: false,
            is_broken: false,
        };
        if passing.length == Some(0) || is_head || matches!(status.as_u16(), 204 | 304) {
            passing.end_whole();
        }
        let mut answer = Response::new(passing.into_body());
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        answer
    }
}

/// The rest of a request that is too long to be read whole.
fn joined(
    read: Bytes,
    body: Incoming,
) -> impl hyper::body::Body<Data = Bytes, Error = hyper::Error> + Send + Sync + 'static {
    let first = stream::once(async { Ok(Frame::data(read)) });
    let rest = stream::unfold(body, |mut body| async {
        let frame = body.frame().await?;
        Some((frame, body))
    });
    StreamBody::new(first.chain(rest))
}

/// A response that passes to the program while a copy is read.
struct Passing {
    response: reqwest::Response,
    host: String,
    reply: PassingReply,
    /// The digest of the request.
    digest: [u8; 32],
    /// The length that the header says.
    length: Option<u64>,
    /// `None`: the end is reported.
    reporter: Option<AttemptReporter>,
    fault: Option<FaultKind>,
    is_over: bool,
    /// Whether nothing follows, because of a fault.
    is_broken: bool,
}

impl Passing {
    fn into_body(self) -> ResponseBody {
        let frames = stream::unfold(self, |mut passing| async {
            let bytes = passing.next().await?;
            Some((bytes.map(Frame::data), passing))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// The next bytes for the program.
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        if self.is_over {
            return None;
        }
        if self.is_broken {
            self.is_over = true;
            // What came before is sent first.
            tokio::task::yield_now().await;
            return Some(Err(io::Error::other("injected")));
        }
        match self.response.chunk().await {
            Ok(Some(bytes)) => {
                self.reply.add(&bytes, self.reporter.as_ref().and_then(|it| it.live.as_ref()));
                if self.fault == Some(FaultKind::Reset) {
                    return Some(Ok(self.break_off(&bytes)));
                }
                // The server does not ask for more than the length that the header says.
                if self.length == Some(self.reply.bytes()) {
                    self.end_whole();
                }
                Some(Ok(match self.fault {
                    Some(FaultKind::Malformed) => malformed(&bytes),
                    _ => bytes,
                }))
            }
            Ok(None) => {
                self.end_whole();
                None
            }
            Err(error) => {
                let error = NetError::from_reqwest(&error, &self.host);
                self.is_over = true;
                let failed = failure_of(&error);
                self.end(Some(failed));
                tokio::task::yield_now().await;
                Some(Err(io::Error::other("the upstream broke off")))
            }
        }
    }

    /// The program gets the first half of these bytes, and then no more.
    fn break_off(&mut self, bytes: &Bytes) -> Bytes {
        let why = "the connection broke in the middle of the body (injected)";
        self.end(Some(AttemptFailed::new(FailureClass::Reset, why)));
        self.is_broken = true;
        bytes.slice(..bytes.len() / 2)
    }

    /// All of the response has passed.
    fn end_whole(&mut self) {
        self.is_over = true;
        let is_malformed = self.fault == Some(FaultKind::Malformed);
        let text = "the reply is not JSON (injected)";
        self.end(is_malformed.then(|| AttemptFailed::new(FailureClass::BadResponse, text)));
    }

    fn end(&mut self, failed: Option<Box<AttemptFailed>>) {
        let Some(reporter) = self.reporter.take() else { return };
        match (reporter.live.is_some(), failed) {
            (true, failed) => {
                let result = self.reply.finish(failed);
                reporter.end(result, self.reply.recorded(&self.digest));
            }
            (false, Some(failed)) => reporter.end(Err(failed), None),
            (false, None) => {
                reporter.end_unread(self.response.status().as_u16(), self.reply.bytes())
            }
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if !self.is_over {
            let why = "the client closed the connection";
            self.end(Some(AttemptFailed::new(FailureClass::Cancelled, why)));
        }
    }
}

/// The same bytes, but no JSON.
fn malformed(bytes: &Bytes) -> Bytes {
    let changed = bytes.iter().map(|byte| if matches!(byte, b'{' | b'}') { b'!' } else { *byte });
    changed.collect::<Vec<u8>>().into()
}

/// A body that is in memory.
pub(super) fn whole(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// The secrets of a request: what its texts must not show.
pub(super) struct Secrets(Redactor);

impl Secrets {
    fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        const NAMES: [&str; 10] = [
            "auth",
            "key",
            "token",
            "cookie",
            "secret",
            "credential",
            "password",
            "pwd",
            "sig",
            "code",
        ];
        let is_secret = |name: &str| NAMES.iter().any(|part| name.contains(part));
        let of_headers = headers.iter().filter(|(name, _)| is_secret(name.as_str()));
        let values = of_headers.filter_map(|(_, value)| value.to_str().ok());
        // `Bearer KEY`, `Basic BASE64`, and `name=value; other=value` of cookies.
        let words = values.flat_map(|value| {
            let words = value.split([' ', ';', ',']).filter(|word| !word.is_empty());
            words.flat_map(|word| {
                let of_cookie = word.split_once('=').map(|(_, value)| value.to_owned());
                let decoded = BASE64.decode(word).ok().and_then(|it| String::from_utf8(it).ok());
                let password = decoded.and_then(|it| Some(it.split_once(':')?.1.to_owned()));
                [Some(word.to_owned()), of_cookie, password].into_iter().flatten()
            })
        });
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let of_query = pairs.filter(|(name, _)| is_secret(&name.to_ascii_lowercase()));
        let secrets = words.chain(of_query.map(|(_, value)| value.into_owned()));
        Self(Redactor::with_secrets(secrets.map(Secret::new)))
    }

    fn redact(&self, text: &str) -> String {
        self.0.redact_known(text).into_owned()
    }

    /// The same, but not the beginning of a secret at the end.
    fn redact_whole(&self, text: &str) -> String {
        self.0.redact_whole(text).into_owned()
    }

    /// Splits off what may be the beginning of a secret.
    fn split_begun<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        self.0.split_begun(text)
    }

    /// Redacts tool calls.
    fn redact_calls(&self, calls: &mut Arc<[ToolCall]>) {
        let redacted = calls.iter().map(|call| ToolCall {
            id: self.redact(&call.id).into(),
            name: self.redact(&call.name).into(),
            arguments: self.redact(&call.arguments).into(),
        });
        *calls = redacted.collect();
    }

    /// Redacts the tools that a request offers.
    fn redact_tools(&self, tools: &mut [ToolOffer]) {
        for tool in tools {
            tool.name = self.redact(&tool.name).into();
            tool.description = self.redact(&tool.description).into();
            let parameters = tool.parameters.to_string();
            let redacted = self.redact(&parameters);
            if redacted != parameters {
                tool.parameters = serde_json::from_str(&redacted).unwrap_or_default();
            }
        }
    }
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
}

/// The headers that pass.
fn passing(headers: &HeaderMap) -> HeaderMap {
    let mut passing = headers.clone();
    let named =
        text_of(headers, "connection").split(',').map(str::trim).filter(|it| !it.is_empty());
    for name in HOP_BY_HOP.into_iter().chain(named) {
        passing.remove(name);
    }
    passing
}

fn digest(variable: &str, path: &str, body: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [variable.as_bytes(), path.as_bytes(), body] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Reads a request. Returns the form of the stream, if one is requested; `None`: it cannot be read.
fn read_request(
    api: Api,
    (url, headers, body): (&Url, &HeaderMap, &Bytes),
    secrets: &Secrets,
    about: &mut RequestAbout,
) -> Option<Option<StreamForm>> {
    let path = url.path();
    let encoding = text_of(headers, CONTENT_ENCODING.as_str());
    let body = super::server::decoded(body.clone(), encoding).ok()?;
    let bytes = body.len() as u64;
    let body = reply::read_json(&body)?;
    about.model = texts::name(&secrets.redact(&Api::model(path, &body)));
    about.call = messages::call_of(Some(&body), None);
    for message in &mut about.call.messages {
        message.content = secrets.redact(&message.content).into();
        secrets.redact_calls(&mut message.tool_calls);
    }
    secrets.redact_tools(&mut about.call.tools);
    if api == Api::Embeddings {
        about.call.messages.truncate(16);
    }
    let reply = match api {
        Api::Embeddings => 0,
        _ => formats::max_tokens(&body).unwrap_or(u64::from(REPLY_TOKENS)),
    };
    about.estimate = Usage::new(bytes.div_ceil(4), reply);
    about.has_reply = api != Api::Embeddings;
    let by_default = matches!(api, Api::OllamaChat | Api::OllamaGenerate);
    let streams = body.get("stream").and_then(Value::as_bool).unwrap_or(by_default);
    let usage = body.pointer("/stream_options/include_usage").and_then(Value::as_bool);
    let is_list = api == Api::Contents && !url.query().unwrap_or_default().contains("alt=sse");
    let form = StreamForm { is_events: !is_list, has_usage: usage == Some(true) };
    Some((streams || path.ends_with(":streamGenerateContent")).then_some(form))
}

/// Whether a request that is not read costs nothing: lists of models, and counts of tokens.
fn is_free(method: &Method, path: &str) -> bool {
    const ENDS: [&str; 4] = ["/count_tokens", ":countTokens", "/input_tokens", "/api/show"];
    *method == Method::GET || *method == Method::HEAD || ENDS.iter().any(|end| path.ends_with(end))
}

fn failure_of(error: &NetError) -> Box<AttemptFailed> {
    let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
    AttemptFailed::new(class, error.to_string())
}

/// A response of our own, in the form of the vendor's errors. Stainless clients read `x-should-retry`.
pub(super) fn refusal(api: Option<Api>, why: &RequestRefusal) -> Response<ResponseBody> {
    let kind = match why.status {
        402 => "budget_exceeded",
        503 => "overloaded_error",
        _ => "roundtable_error",
    };
    let text = &why.text;
    let body = match api {
        Some(Api::Messages) => {
            json!({ "type": "error", "error": { "type": kind, "message": text } })
        }
        Some(Api::Contents) => {
            let status = match why.status {
                400 | 426 => "INVALID_ARGUMENT",
                502 | 503 => "UNAVAILABLE",
                _ => "RESOURCE_EXHAUSTED",
            };
            json!({ "error": { "code": why.status, "message": text, "status": status } })
        }
        Some(Api::OllamaChat | Api::OllamaGenerate) => json!({ "error": text }),
        Some(Api::CohereChat) => json!({ "message": text }),
        _ => json!({ "error": { "message": text, "type": kind, "param": null, "code": kind } }),
    };
    let mut response = Response::new(whole(Bytes::from(body.to_string())));
    *response.status_mut() = StatusCode::from_u16(why.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    if !why.may_retry {
        headers.insert("x-should-retry", hyper::header::HeaderValue::from_static("false"));
    }
    if let Some(wait) = why.retry_after {
        headers.insert(RETRY_AFTER, (wait.as_secs_f64().ceil().max(1.0) as u64).into());
    }
    response
}
