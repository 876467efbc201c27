//! The receiver: an HTTP server for programs. On this machine the token is in the path, and a request for another
//! host is refused; at another address the token is in a header. A request from a page in a browser is refused.
//! What is received is bounded.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, ORIGIN,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::timeout;

use super::callers::Caller;
use super::hook::ExecutedTools;
use super::hub::HubInput;
use super::langsmith::OpenRuns;
use super::proxy::variables::Upstream;
use super::proxy::{ModelProxy, ResponseBody, whole};
use super::{PartMessage, TraceMessage, langsmith, otlp, tap};
use crate::base::refused::Refused;
use crate::base::sha256_of_text;
use crate::base::visible::visible_within;
use crate::net::decoding::BodyDecoder;

/// Longest body, in bytes; also announced to LangSmith's tracer.
const MAX_BODY: usize = 20 << 20;

/// Longest body after it is decompressed, in bytes.
const MAX_DECODED: usize = 64 << 20;

/// Most connections that have shown the token.
const MAX_CONNECTIONS: usize = 128;

/// The same where requests to models pass: each has a connection of its own.
const MAX_GUARDED: usize = 4_096;

/// Most connections that have not. The oldest makes room for a new one, so that those of a hostile program do
/// not keep a sender out.
const MAX_PENDING: usize = 128;

/// Most bytes of bodies that are held at the same time, before they are decompressed.
const MAX_HELD: usize = 128 << 20;

/// Most bodies that are decompressed and read at the same time.
const MAX_READING: usize = 2;

/// Timeout of the head of a request, also of the next one on a connection.
const HEAD: Duration = Duration::from_secs(10);

/// The same where requests to models pass: a client that keeps its connection expects it to stay open.
const IDLE: Duration = Duration::from_secs(3_600);

/// Timeout of the body of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of the first bytes of a connection.
const FIRST_BYTES: Duration = Duration::from_secs(5);

/// Where a program finds the receiver.
#[derive(Clone, Debug)]
pub struct ReceiverAddress {
    pub addr: SocketAddr,
    /// On this machine the first part of each path, else the header [`TOKEN_HEADER`].
    pub token: String,
}

/// The header with the token at an address of another machine: LangSmith's tracer sends its key in it.
pub const TOKEN_HEADER: &str = "x-api-key";

impl ReceiverAddress {
    /// The base of all paths.
    pub fn url(&self) -> String {
        match self.is_local() {
            true => format!("http://{}/{}", self.addr, self.token),
            false => format!("http://{}", self.addr),
        }
    }

    /// Whether only programs of this machine reach it.
    pub fn is_local(&self) -> bool {
        self.addr.ip().is_loopback()
    }
}

/// Receives until it is dropped; its messages go to the hub. `proxy`: requests to models pass.
pub async fn serve(
    listener: TcpListener,
    address: ReceiverAddress,
    hub: mpsc::Sender<HubInput>,
    proxy: Option<ModelProxy>,
) {
    let most = if proxy.is_some() { MAX_GUARDED } else { MAX_CONNECTIONS };
    // A guarded program may begin all its calls at once.
    let most_pending = if proxy.is_some() { MAX_GUARDED } else { MAX_PENDING };
    let receiver = Arc::new(Receiver {
        address,
        hub,
        proxy,
        open_runs: Arc::default(),
        held: Semaphore::new(MAX_HELD),
        reading: Arc::new(Semaphore::new(MAX_READING)),
        warned: Mutex::default(),
    });
    let slots = Arc::new(Semaphore::new(most));
    let mut pending: VecDeque<(AbortHandle, ConnectionSlot)> = VecDeque::new();
    loop {
        let (stream, remote) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("no connection is accepted: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Otherwise the parts of a stream wait for each other.
        let _ = stream.set_nodelay(true);
        pending.retain(|(task, slot)| !task.is_finished() && !slot.is_taken());
        if pending.len() >= most_pending {
            pending.pop_front().inspect(|(task, _)| task.abort());
        }
        let receiver = Arc::clone(&receiver);
        let slot = ConnectionSlot { slots: Arc::clone(&slots), own: Arc::default() };
        let task = tokio::spawn(serve_connection(receiver, (stream, remote), slot.clone()));
        pending.push_back((task.abort_handle(), slot));
    }
}

/// The place of a connection among those that have shown the token.
#[derive(Clone)]
struct ConnectionSlot {
    slots: Arc<Semaphore>,
    own: Arc<OnceLock<OwnedSemaphorePermit>>,
}

impl ConnectionSlot {
    fn is_taken(&self) -> bool {
        self.own.get().is_some()
    }

    /// Takes it; whether the connection has one now.
    fn take(&self) -> bool {
        self.is_taken()
            || Arc::clone(&self.slots)
                .try_acquire_owned()
                .is_ok_and(|permit| self.own.set(permit).is_ok() || self.is_taken())
    }
}

/// A connection of a program.
struct Connection {
    slot: ConnectionSlot,
    remote: SocketAddr,
    own: SocketAddr,
    /// The program, once a request has shown the token.
    caller: OnceCell<Option<Arc<Caller>>>,
    /// The tools that it executes.
    tools: ExecutedTools,
}

impl Connection {
    /// The program at the other end, where a proxy serves several.
    async fn caller(&self, proxy: Option<&ModelProxy>) -> Option<&Arc<Caller>> {
        let proxy = proxy?;
        let find = || proxy.caller(self.remote, self.own);
        self.caller.get_or_init(find).await.as_ref()
    }
}

/// How a connection over HTTP/2 begins, as of gRPC.
const HTTP2: &[u8] = b"PRI * HTTP/2";

async fn serve_connection(
    receiver: Arc<Receiver>,
    (stream, remote): (TcpStream, SocketAddr),
    slot: ConnectionSlot,
) {
    let mut first = [0; HTTP2.len()];
    let peeked = timeout(FIRST_BYTES, stream.peek(&mut first)).await;
    if peeked.is_err() {
        return;
    }
    if matches!(peeked, Ok(Ok(count)) if first.get(..count) == Some(HTTP2)) {
        let why = "an exporter speaks gRPC, which is not received: set \
                   OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and use the exporter for HTTP";
        receiver.missing(why.to_owned()).await;
        return;
    }
    let head = if receiver.proxy.is_some() { IDLE } else { HEAD };
    let Ok(own) = stream.local_addr() else { return };
    let tools = ExecutedTools::default();
    let connection = Arc::new(Connection { slot, remote, own, caller: OnceCell::new(), tools });
    let service = service_fn(move |request| {
        let (receiver, connection) = (Arc::clone(&receiver), Arc::clone(&connection));
        async move { Ok::<_, Infallible>(receiver.answer(request, &connection).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(64 << 10);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!("a connection ended: {error}");
    }
}

struct Receiver {
    address: ReceiverAddress,
    hub: mpsc::Sender<HubInput>,
    proxy: Option<ModelProxy>,
    open_runs: Arc<AsyncMutex<OpenRuns>>,
    /// A permit for each byte of a body.
    held: Semaphore,
    /// A permit for each body that is read.
    reading: Arc<Semaphore>,
    /// The warnings that the operator has.
    warned: Mutex<BTreeSet<String>>,
}

type Answer = Response<ResponseBody>;

/// Longest reason of a refusal, in characters.
const MAX_WHY: usize = 200;

/// Most different warnings of the receiver.
const MAX_WARNINGS: usize = 20;

impl Receiver {
    /// Warns the operator once.
    async fn warn_once(&self, text: String) {
        let is_new = {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            warned.len() < MAX_WARNINGS && warned.insert(text.clone())
        };
        if is_new {
            let _ = self.hub.send(HubInput::Warning(text)).await;
        }
    }

    /// Tells the runs why spans are missing.
    async fn missing(&self, why: String) {
        let _ = self.hub.send(HubInput::Missing(why)).await;
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Answer {
        let header = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
        let is_local = self.address.is_local();
        let mut hosts = request.headers().get_all(HOST).iter();
        let is_own = |host: &HeaderValue| host.to_str().is_ok_and(|it| self.is_own_host(it));
        let is_host = !is_local || hosts.next().is_some_and(is_own) && hosts.next().is_none();
        let origin = header(ORIGIN.as_str()).map(str::to_owned);
        let may_come = |origin: &str| self.proxy.as_ref().is_some_and(|it| it.allows(origin));
        let is_page = request.headers().contains_key(ORIGIN);
        if !is_host || is_page && !origin.as_deref().is_some_and(may_come) {
            return refused(StatusCode::FORBIDDEN, "this Host or Origin is refused");
        }
        if *request.method() == Method::CONNECT {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy for other hosts");
        }
        let wanted = header("access-control-request-headers").unwrap_or("*").to_owned();
        let is_preflight = *request.method() == Method::OPTIONS && is_page;
        let mut answer = match is_preflight {
            true => with_type(StatusCode::NO_CONTENT, "text/plain", Bytes::new()),
            false => self.answer_program(request, connection).await,
        };
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_ORIGIN, origin.as_deref()),
            (ACCESS_CONTROL_ALLOW_HEADERS, is_preflight.then_some(&*wanted)),
            (ACCESS_CONTROL_ALLOW_METHODS, is_preflight.then_some("GET, POST")),
        ] {
            if let Some(value) = value.and_then(|it| HeaderValue::from_str(it).ok()) {
                answer.headers_mut().insert(name, value);
            }
        }
        answer
    }

    async fn answer_program(&self, request: Request<Incoming>, connection: &Connection) -> Answer {
        let header = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
        let is_local = self.address.is_local();
        if let Some((proxy, upstream, rest)) = self.upstream_of(request.uri()) {
            if !connection.slot.take() {
                return refused(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open");
            }
            let caller = connection.caller(Some(proxy)).await;
            let rest = rest.to_owned();
            return proxy.forward(upstream, &rest, caller, request).await;
        }
        // `http://…/TOKEN/` and `/v1/traces` make two slashes.
        let mut parts = request.uri().path().split('/').filter(|part| !part.is_empty());
        let token = match is_local {
            true => parts.next(),
            false => header(TOKEN_HEADER),
        };
        let path = format!("/{}", parts.collect::<Vec<_>>().join("/"));
        // Digests take the same time to compare, wherever they differ.
        if sha256_of_text(token.unwrap_or_default()) != sha256_of_text(&self.address.token) {
            let how = match is_local {
                true => "with the token in its path",
                false => "and send the token in the header x-api-key",
            };
            self.missing(format!(
                "a request without the token was refused: use the receiver's address {how}"
            ))
            .await;
            return refused(StatusCode::FORBIDDEN, "wrong token");
        }
        if !connection.slot.take() {
            let why = format!("too many connections: {MAX_CONNECTIONS} are open");
            self.warn_once(format!("a request was refused: {why}")).await;
            return refused(StatusCode::SERVICE_UNAVAILABLE, &why);
        }
        match (request.method().clone(), &*path) {
            (Method::GET, "/info") => json(StatusCode::OK, &langsmith::info(MAX_BODY).to_string()),
            (Method::POST, "/tool") if self.proxy.is_some() => {
                match self.decide(connection, request).await {
                    Ok(answer) => json(StatusCode::OK, &answer),
                    Err((status, why)) => refused(status, &why),
                }
            }
            (Method::POST | Method::PATCH, _) => {
                match self.receive(&path, connection, request).await {
                    Ok(answer) => answer,
                    Err((status, why)) => {
                        // What is sent there is dropped anyway.
                        if path != "/v1/metrics" {
                            let why = visible_within(&why, MAX_WHY);
                            self.missing(format!("a request was not read: {why}")).await;
                        }
                        refused(status, &why)
                    }
                }
            }
            _ => self.unknown(&path).await,
        }
    }

    /// The upstream of a request to `/TOKEN/VARIABLE/…`, and what follows there. The token is in the path also where other
    /// machines reach it: the headers are the client's.
    fn upstream_of<'u>(&self, uri: &'u hyper::Uri) -> Option<(&ModelProxy, &Upstream, &'u str)> {
        let proxy = self.proxy.as_ref()?;
        let path = uri.path_and_query()?.as_str().trim_start_matches('/');
        let (token, path) = path.split_once('/')?;
        if sha256_of_text(token) != sha256_of_text(&self.address.token) {
            return None;
        }
        let end = path.find(['/', '?', ':']).unwrap_or(path.len());
        let (name, rest) = path.split_at(end);
        Some((proxy, proxy.upstreams.named(name)?, rest))
    }

    async fn unknown(&self, path: &str) -> Answer {
        let path: String = path.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
        self.warn_once(format!(
            "a request for {path} is not answered: the receiver has no such path"
        ))
        .await;
        refused(StatusCode::NOT_FOUND, "no such path")
    }

    /// Answers the tap about a call of a tool.
    async fn decide(
        &self,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> Result<String, (StatusCode, String)> {
        let body = self.body(request.into_body()).await?;
        let failed = |error: serde_json::Error| (StatusCode::BAD_REQUEST, error.to_string());
        let line = serde_json::from_slice(&body).map_err(failed)?;
        let caller = connection.caller(self.proxy.as_ref()).await.cloned();
        let answer = connection.tools.answer(line, caller, &self.hub).await;
        serde_json::to_string(&answer).map_err(failed)
    }

    /// A body that may be as long as [`MAX_BODY`].
    async fn body(&self, body: Incoming) -> Result<Bytes, (StatusCode, String)> {
        match timeout(TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(_)) => {
                let why = format!("more than {MAX_BODY} bytes");
                Err((StatusCode::PAYLOAD_TOO_LARGE, why))
            }
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come".to_owned())),
        }
    }

    fn is_own_host(&self, host: &str) -> bool {
        let port = self.address.addr.port();
        let own = self.address.addr.to_string();
        host == own || host.eq_ignore_ascii_case(&format!("localhost:{port}"))
    }

    async fn receive(
        &self,
        path: &str,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> Result<Answer, (StatusCode, String)> {
        let header = |name| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().trim().to_owned()
        };
        let (content_type, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
        let encoding = encoding.to_ascii_lowercase();
        let is_json = content_type.to_ascii_lowercase().starts_with("application/json");
        let is_post = request.method() == Method::POST;
        let length = header(CONTENT_LENGTH).parse().unwrap_or(MAX_BODY).min(MAX_BODY);
        let closed = |_| (StatusCode::SERVICE_UNAVAILABLE, "the receiver has ended".to_owned());
        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
        let _held = self.held.acquire_many(bytes).await.map_err(closed)?;
        let body = self.body(request.into_body()).await?;
        let Some(format) = BodyFormat::of_path(path, is_post, is_json) else {
            return Ok(self.unknown(path).await);
        };
        let is_otlp = format.is_otlp();
        let token = self.address.token.clone();
        let reading = Arc::clone(&self.reading).acquire_owned().await.map_err(closed)?;
        // Held until its messages are passed on: a patch comes after its post.
        let mut open_runs = match format.is_langsmith() {
            true => Some(Arc::clone(&self.open_runs).lock_owned().await),
            false => None,
        };
        // It may take seconds, in which other requests are answered.
        let read = spawn_blocking(move || {
            let body = without_token(decoded(body, &encoding)?, token.as_bytes());
            let read = format.read(body, &content_type, open_runs.as_deref_mut());
            drop(reading);
            let read = read.map_err(|why| (StatusCode::BAD_REQUEST, format!("{why:#}")))?;
            Ok::<_, (StatusCode, String)>((read, open_runs))
        });
        let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "it cannot be read".to_owned());
        let (read, _open_runs) = read.await.map_err(failed)??;
        if let Some(why) = read.missing {
            self.missing(why.to_owned()).await;
        }
        for text in read.warnings {
            self.warn_once(text).await;
        }
        for part in read.parts {
            let _ = self.hub.send(HubInput::Part(part)).await;
        }
        if !read.messages.is_empty() {
            let caller = connection.caller(self.proxy.as_ref()).await.cloned();
            let _ = self.hub.send(HubInput::Messages(caller, read.messages)).await;
        }
        Ok(match (is_otlp, is_json) {
            (true, true) => json(StatusCode::OK, "{}"),
            (true, false) => with_type(StatusCode::OK, "application/x-protobuf", Bytes::new()),
            (false, _) => json(StatusCode::ACCEPTED, "{\"message\":\"ok\"}"),
        })
    }
}

/// The content of a request.
#[derive(Default)]
struct ReadBody {
    messages: Vec<TraceMessage>,
    parts: Vec<PartMessage>,
    /// Why a part of it is missing.
    missing: Option<&'static str>,
    /// What the operator should know.
    warnings: Vec<String>,
}

/// What a body is, by the path of its request.
enum BodyFormat {
    Traces {
        is_json: bool,
    },
    Logs {
        is_json: bool,
    },
    /// They are accepted, so that their sender does not report errors, and dropped.
    Metrics,
    Tap,
    Multipart,
    Batch,
    /// One run; a patch has its id in the path.
    Single(Option<String>),
}

impl BodyFormat {
    fn of_path(path: &str, is_post: bool, is_json: bool) -> Option<Self> {
        Some(match path {
            "/v1/traces" => Self::Traces { is_json },
            "/v1/logs" => Self::Logs { is_json },
            "/v1/metrics" => Self::Metrics,
            "/tap" => Self::Tap,
            "/runs/multipart" => Self::Multipart,
            "/runs/batch" => Self::Batch,
            "/runs" => Self::Single(None),
            _ => {
                let id = path.strip_prefix("/runs/").filter(|id| !is_post && !id.contains('/'));
                Self::Single(Some(id?.to_owned()))
            }
        })
    }

    fn is_langsmith(&self) -> bool {
        matches!(self, Self::Multipart | Self::Batch | Self::Single(_))
    }

    fn is_otlp(&self) -> bool {
        matches!(self, Self::Traces { .. } | Self::Logs { .. } | Self::Metrics)
    }

    /// Reads a body. Blocks.
    fn read(
        &self,
        body: Bytes,
        content_type: &str,
        open_runs: Option<&mut OpenRuns>,
    ) -> Result<ReadBody, Refused> {
        let mut none = OpenRuns::default();
        let open_runs = open_runs.unwrap_or(&mut none);
        let messages = match self {
            Self::Traces { is_json } => {
                let (messages, unread) = otlp::traces(&body, *is_json)?;
                let why = "spans have no id, or no trace id";
                let missing = (unread > 0).then_some(why);
                return Ok(ReadBody { messages, missing, ..ReadBody::default() });
            }
            Self::Logs { is_json } => otlp::logs(&body, *is_json),
            Self::Metrics => Ok(Vec::new()),
            Self::Tap => {
                let tap::TapMessages { messages, parts, lost, warnings } = tap::read(&body);
                let missing = (lost > 0).then_some("the tap could not send everything");
                return Ok(ReadBody { messages, parts, missing, warnings });
            }
            Self::Multipart => {
                let read = langsmith::multipart(body, content_type, open_runs);
                // All of it is here: nothing is waited for.
                Handle::current().block_on(read)
            }
            Self::Batch => langsmith::batch(&body, open_runs),
            Self::Single(id) => langsmith::single(&body, id.as_deref(), open_runs),
        };
        Ok(ReadBody { messages: messages?, ..ReadBody::default() })
    }
}

/// The body with stars in place of the token, which is in the addresses that programs report. Its length stays: it may be
/// in protobuf.
fn without_token(body: Bytes, token: &[u8]) -> Bytes {
    let mut hidden = None::<Vec<u8>>;
    for (at, _) in body.windows(token.len()).enumerate().filter(|(_, text)| *text == token) {
        let hidden = hidden.get_or_insert_with(|| body.to_vec());
        hidden.get_mut(at..at + token.len()).into_iter().for_each(|text| text.fill(b'*'));
    }
    hidden.map_or(body, Bytes::from)
}

/// The body without its compression.
pub(super) fn decoded(body: Bytes, encoding: &str) -> Result<Bytes, (StatusCode, String)> {
    let Some(mut decoder) = BodyDecoder::named(encoding) else { return Ok(body) };
    let mut decoded = Vec::new();
    let failed = |error: io::Error| {
        let status = match error.kind() {
            io::ErrorKind::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            _ => StatusCode::BAD_REQUEST,
        };
        (status, format!("the compression cannot be read: {error}"))
    };
    decoder.push(body);
    while let Some(bytes) = decoder.next().map_err(failed)? {
        decoded.extend_from_slice(&bytes);
        if decoded.len() > MAX_DECODED {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "too large".to_owned()));
        }
    }
    decoded.extend(decoder.finish().map_err(failed)?.unwrap_or_default());
    Ok(decoded.into())
}

fn with_type(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

fn json(status: StatusCode, body: &str) -> Answer {
    with_type(status, "application/json", Bytes::copy_from_slice(body.as_bytes()))
}

fn refused(status: StatusCode, why: &str) -> Answer {
    json(status, &serde_json::json!({ "error": why }).to_string())
}
