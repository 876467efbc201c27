//! The model proxy: it passes the requests of a guarded program on to its models, byte by byte. It reads a copy, so that
//! the run has each call with its attempts.

mod formats;
mod reply;
pub mod variables;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, UPGRADE};
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use self::formats::Api;
use self::reply::PassingReply;
use self::variables::{Upstream, Upstreams};
use super::hub::HubInput;
use super::{messages, texts};
use crate::base::visible::visible_within;
use crate::log::event::{AttemptFailed, FailureClass, Usage};
use crate::net::error::NetError;
use crate::net::{Http, Redactor, Secret, host_of};
use crate::pattern::observed::{
    AttemptReporter, Decision, GuardedRequest, RequestAbout, RequestRefusal,
};
use crate::scenario::spec::REPLY_TOKENS;
use crate::scenario::spec::tool::{FaultKind, ToolCall};

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
    /// Whether what is not read is refused, because something has to be counted.
    refuses_unread: bool,
}

impl ModelProxy {
    /// A proxy for these upstreams. `refuses_unread`: something has to be counted.
    pub fn new(
        upstreams: Upstreams,
        http: Http,
        hub: mpsc::Sender<HubInput>,
        refuses_unread: bool,
    ) -> Self {
        Self { upstreams, http, hub, refuses_unread }
    }

    /// Answers a request with the response of its upstream. `rest`: what the client has appended to the address in the
    /// variable, with its query.
    pub(super) async fn forward(
        &self,
        upstream: &Upstream,
        rest: &str,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let path = rest.split('?').next().unwrap_or_default();
        let refused = |status: u16, text: &str| {
            refusal(Api::of_path(path), &RequestRefusal::final_one(status, text))
        };
        let Some(url) = upstream.url(rest) else {
            return refused(400, "the path is not valid");
        };
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
            digest: digest(upstream.variable.name, rest, &read),
            ..RequestAbout::default()
        };
        let api = Api::of_path(path).filter(|_| is_whole && parts.method == hyper::Method::POST);
        let api =
            api.filter(|api| read_request(*api, path, &parts.headers, &read, &secrets, &mut about));
        if api.is_none() {
            let path = visible_within(&secrets.redact(path), 120);
            about.unread = Some(format!("{} {path}", parts.method).into());
            if self.refuses_unread {
                return refused(
                    402,
                    "what this request costs cannot be counted, so it is refused under a limit (--unread pass sends it)",
                );
            }
        }
        let estimate = about.estimate;
        let is_head = parts.method == hyper::Method::HEAD;
        let (decided, decision) = oneshot::channel();
        let (shown, hidden) = (read.clone(), Arc::clone(&secrets));
        let for_people = Box::new(move || {
            let text = std::str::from_utf8(&shown).ok().filter(|text| text.len() <= MAX_SHOWN)?;
            serde_json::from_str(&hidden.redact(text)).ok()
        });
        let request = GuardedRequest { about: Box::new(about), body: for_people, decided };
        let _ = self.hub.send(HubInput::Request(request)).await;
        let reporter = match decision.await {
            Ok(Decision::Send(reporter)) => reporter,
            Ok(Decision::Refuse(why)) => return refusal(api, &why),
            Err(_) => return refused(503, "the run has ended, so no call is sent"),
        };
        let mut to_upstream = reqwest::Request::new(parts.method, url.clone());
        *to_upstream.headers_mut() = passing(&parts.headers);
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
                let why = RequestRefusal::final_one(502, &failed.text);
                reporter.end(Err(failed));
                return refusal(api, &RequestRefusal { may_retry: true, ..why });
            }
        };
        let status = response.status();
        let headers = passing(response.headers());
        let mut passing = Passing {
            reply: PassingReply::new(api, &response, sent, (estimate, secrets)),
            host: host_of(&url),
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
            (true, failed) => reporter.end(self.reply.finish(failed)),
            (false, Some(failed)) => reporter.end(Err(failed)),
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
        let is_secret = |name: &str| {
            ["auth", "key", "token", "cookie", "secret"].iter().any(|part| name.contains(part))
        };
        let of_headers = headers.iter().filter(|(name, _)| is_secret(name.as_str()));
        let values = of_headers.filter_map(|(_, value)| value.to_str().ok());
        // `Bearer KEY`
        let words = values.flat_map(|value| value.split([' ', ';', ',']));
        let of_query = query.unwrap_or_default().split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            is_secret(&name.to_ascii_lowercase()).then_some(value)
        });
        let secrets = words.chain(of_query).map(Secret::new);
        Self(Redactor::with_secrets(secrets))
    }

    fn redact(&self, text: &str) -> String {
        self.0.redact_known(text).into_owned()
    }

    /// Redacts the arguments of tool calls.
    fn redact_calls(&self, calls: &mut Arc<[ToolCall]>) {
        let redacted = calls.iter().map(|call| ToolCall {
            arguments: self.redact(&call.arguments).into(),
            ..call.clone()
        });
        *calls = redacted.collect();
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

fn digest(variable: &str, rest: &str, body: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [variable.as_bytes(), rest.as_bytes(), body] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Reads a request. `false`: it cannot be read.
fn read_request(
    api: Api,
    path: &str,
    headers: &HeaderMap,
    body: &Bytes,
    secrets: &Secrets,
    about: &mut RequestAbout,
) -> bool {
    let encoding = text_of(headers, CONTENT_ENCODING.as_str());
    let Ok(body) = super::server::decoded(body.clone(), &encoding.to_ascii_lowercase()) else {
        return false;
    };
    let bytes = body.len() as u64;
    let Ok(body) = serde_json::from_slice::<Value>(&body) else { return false };
    about.model = texts::name(&secrets.redact(&Api::model(path, &body)));
    about.call = messages::call_of(Some(&body), None);
    for message in &mut about.call.messages {
        message.content = secrets.redact(&message.content).into();
        secrets.redact_calls(&mut message.tool_calls);
    }
    if api == Api::Embeddings {
        about.call.messages.truncate(16);
    }
    let reply = match api {
        Api::Embeddings => 0,
        _ => u64::from(formats::max_tokens(&body).unwrap_or(REPLY_TOKENS)),
    };
    about.estimate = Usage::new(bytes.div_ceil(4), reply);
    true
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
            json!({ "error": { "code": why.status, "message": text, "status": "RESOURCE_EXHAUSTED" } })
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
        headers.insert(RETRY_AFTER, wait.max(Duration::from_secs(1)).as_secs().into());
    }
    response
}
