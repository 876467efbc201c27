//! A raw TCP server that says what a test tells it to, byte by byte, and the model that calls it.
//! A test drives both sides, so nothing waits for a clock.
#![allow(dead_code, reason = "each file of tests uses its part of it")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use roundtable::event::kind::{AttemptFailed, ChatMessage, MessageRole, Purpose, Reply};
use roundtable::llm::anthropic::Anthropic;
use roundtable::llm::endpoint::{self, Endpoint, EndpointRequest, Wire};
use roundtable::llm::openai::OpenAi;
use roundtable::llm::{ChatModel, ChatRequest, Conversation, Listener, ReplyForm, Tuning};
use roundtable::net::{Http, ProxyMode};
use roundtable::scenario::condition::CelBindings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The key of every test; it must turn up in no text.
pub const KEY: &str = "sk-test-4f9a8c7b6d5e";

/// A chat completion that says `hello`.
pub const HELLO: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"gpt-4.1-mini-2025",
"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],
"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}"#;

/// A listening socket.
pub struct Server {
    listener: TcpListener,
    scheme: &'static str,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        Self { listener, scheme: "http" }
    }

    /// One that callers take for a TLS server.
    pub async fn start_https() -> Self {
        Self { scheme: "https", ..Self::start().await }
    }

    pub fn host(&self) -> String {
        self.listener.local_addr().expect("a bound socket").to_string()
    }

    /// The next connection.
    pub async fn accept(&self) -> Connection {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Connection { stream, read: Vec::new() }
    }

    /// Where it is, as an endpoint of Anthropic.
    pub fn messages_endpoint(&self) -> Endpoint {
        let base_url = format!("{}://{}", self.scheme, self.host());
        found([("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &base_url)])
    }

    /// Where it is, as an endpoint.
    pub fn endpoint(&self) -> Endpoint {
        endpoint_at(&format!("{}://{}/v1", self.scheme, self.host()))
    }

    /// The model behind this server, its replies not streamed.
    pub fn model(&self) -> OpenAi {
        OpenAi::new(Http::new(ProxyMode::Direct), self.endpoint(), Tuning::default(), false)
    }

    /// The model behind this server, its replies streamed.
    pub fn streaming(&self) -> OpenAi {
        OpenAi::new(Http::new(ProxyMode::Direct), self.endpoint(), Tuning::default(), true)
    }

    /// The model behind this server, asked with this key.
    pub fn keyed(&self, key: &str, stream: bool) -> OpenAi {
        let endpoint = endpoint_with(key, &format!("{}://{}/v1", self.scheme, self.host()));
        OpenAi::new(Http::new(ProxyMode::Direct), endpoint, Tuning::default(), stream)
    }

    /// The model behind this server, of the provider whose key and address are these variables.
    pub fn model_of(&self, key: &str, address: &str) -> Box<dyn ChatModel> {
        let endpoint =
            found([(key, KEY), (address, &format!("{}://{}/v1", self.scheme, self.host()))]);
        let (http, tuning) = (Http::new(ProxyMode::Direct), Tuning::default());
        match endpoint.provider().wire() {
            Wire::Chat => Box::new(OpenAi::new(http, endpoint, tuning, false)),
            Wire::Messages => Box::new(Anthropic::new(http, endpoint, tuning, false)),
        }
    }

    /// One call that is answered with these bytes on a connection that then closes.
    pub async fn one(
        &self,
        model: &dyn ChatModel,
        answer: &[u8],
    ) -> Result<Reply, Box<AttemptFailed>> {
        let (reply, ()) = both(call(model), async {
            let mut connection = self.accept().await;
            connection.request().await;
            connection.send(answer).await;
        })
        .await;
        reply
    }
}

pub fn endpoint_at(base_url: &str) -> Endpoint {
    endpoint_with(KEY, base_url)
}

fn endpoint_with(key: &str, base_url: &str) -> Endpoint {
    found([("OPENAI_API_KEY", key), ("OPENAI_BASE_URL", base_url)])
}

/// The endpoint that these variables of the shell say.
fn found(shell: [(&str, &str); 2]) -> Endpoint {
    let shell: BTreeMap<_, _> = shell.map(|(name, value)| (name.into(), value.into())).into();
    endpoint::find(&shell, None, EndpointRequest::default()).expect("an endpoint")
}

/// What a request was.
pub struct Asking {
    /// The request line and the headers.
    pub head: String,
    pub body: serde_json::Value,
}

/// The server's side of one connection.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Reads a whole request.
    pub async fn request(&mut self) -> Asking {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more().await, "the connection closed within a request");
        };
        let head = String::from_utf8(self.read[..head_end].to_vec()).expect("a head in ASCII");
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
        });
        let length: usize = length.unwrap_or(0);
        while self.read.len() < head_end + length {
            assert!(self.more().await, "the connection closed within a body");
        }
        let body = &self.read[head_end..head_end + length];
        let body = serde_json::from_slice(body).unwrap_or_default();
        self.read.drain(..head_end + length);
        Asking { head, body }
    }

    /// Reads a whole request, if another comes before the other side closes.
    pub async fn next_request(&mut self) -> bool {
        while self.read.is_empty() {
            if !matches!(self.stream.read_buf(&mut self.read).await, Ok(read) if read > 0) {
                return false;
            }
        }
        self.request().await;
        true
    }

    async fn more(&mut self) -> bool {
        self.stream.read_buf(&mut self.read).await.expect("a connection that can be read") > 0
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("a connection that takes bytes");
    }

    /// Sends until the other side closes; how many bytes it took.
    pub async fn send_without_end(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while self.stream.write_all(bytes).await.is_ok() {
            taken += bytes.len();
        }
        taken
    }

    /// Sends; whether the other side took it.
    pub async fn takes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Waits until the other side has closed.
    pub async fn closed(mut self) {
        loop {
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// The socket, for a test that speaks TLS on it.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Closes with a reset instead of an end.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }
}

/// An answer with its length.
pub fn answer(status: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head += header;
        head += "\r\n";
    }
    format!("{head}\r\n{body}").into_bytes()
}

/// An answer of JSON.
pub fn json(status: &str, body: &str) -> Vec<u8> {
    answer(status, &["content-type: application/json"], body)
}

/// The head of an event stream that ends where the connection does.
pub const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";

/// The head of an event stream in chunks, after which the connection lives on.
pub const CHUNKED_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// How every chunk of a streamed chat completion begins: the fields that clients of vendors require.
macro_rules! chunk_head {
    () => {
        r#"data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-mini-2025","#
    };
}

/// The event that brings this piece of a reply.
pub fn piece(text: &str) -> String {
    let text = serde_json::Value::from(text);
    let choice = format!(r#"{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}"#);
    format!("{}\"choices\":[{choice}]}}\n\n", chunk_head!())
}

/// The event that ends a reply, the one that counts tokens, and the one that ends the stream.
pub const ENDING: &str = concat!(
    chunk_head!(),
    r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    chunk_head!(),
    r#""choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#,
    "\n\ndata: [DONE]\n\n",
);

/// What is asked in every test.
pub fn ask(json: bool) -> ChatRequest {
    let message = |role, content: &str| ChatMessage::new(role, content);
    ChatRequest {
        messages: Conversation::from(Arc::from([
            message(MessageRole::System, "You judge."),
            message(MessageRole::User, "{\"goal\":\"grün \\\"x\\\"\"}"),
        ])),
        tools: [].into(),
        form: if json { ReplyForm::Object } else { ReplyForm::Text },
        purpose: Purpose::Finalize,
        attempt: 1,
        again: 0,
        message: 1,
        draw: 0,
        shown: Arc::new(CelBindings::default()),
    }
}

/// One call of which only the end matters.
pub async fn call(model: &dyn ChatModel) -> Result<Reply, Box<AttemptFailed>> {
    model.chat(&ask(true), &Deaf).await
}

/// Both at once. A test that hangs fails instead.
pub async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(a, b) })
        .await
        .expect("the test hangs")
}

/// Listens to nothing.
pub struct Deaf;

impl Listener for Deaf {
    fn piece(&self, _: &str) {}
}

/// Hands on each piece, so that a test knows that it came.
pub struct Heard(mpsc::UnboundedSender<String>);

impl Heard {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl Listener for Heard {
    fn piece(&self, text: &str) {
        let _ = self.0.send(text.to_owned());
    }
}

/// What every failure's text keeps to.
pub fn check_text(failed: &AttemptFailed) {
    let text = &failed.text;
    assert!(text.chars().count() <= 300, "{} characters: {text}", text.chars().count());
    assert!(!text.contains(KEY) && !text.contains("sk-"), "a key is left: {text}");
    assert!(!text.chars().any(char::is_control), "a control character is left: {text:?}");
    assert!(text.ends_with(['.', '?']), "it does not end with what to do: {text}");
}

/// What speaks TLS with a certificate that no authority of the system has signed.
pub fn unsigned() -> tokio_rustls::TlsAcceptor {
    use tokio_rustls::rustls::{self, ServerConfig};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![include_bytes!("tls/server.der").to_vec().into()],
            include_bytes!("tls/server.key.der").to_vec().try_into().expect("a key"),
        )
        .expect("a certificate and its key");
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}
