//! A raw TCP server that says what a test tells it to, byte by byte. A test drives both sides, so
//! nothing waits for a clock.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// The key of every test; it must turn up in no text.
pub const KEY: &str = "sk-test-4f9a8c7b6d5e";

/// A listening socket.
pub struct Server {
    listener: TcpListener,
    pub(super) scheme: &'static str,
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
}

/// A port that refuses connections: it is bound, so that no other test gets it, and nobody listens.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        Self(socket)
    }

    pub fn host(&self) -> String {
        self.0.local_addr().expect("a bound socket").to_string()
    }
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
        self.request_before_end().await.is_some()
    }

    /// The next request; `None`: the other side closes.
    pub async fn request_before_end(&mut self) -> Option<Asking> {
        while self.read.is_empty() {
            if !matches!(self.stream.read_buf(&mut self.read).await, Ok(read) if read > 0) {
                return None;
            }
        }
        Some(self.request().await)
    }

    /// Reads the first record of a TLS handshake: a connection that is closed with unread bytes is reset.
    pub async fn read_tls_greeting(&mut self) {
        let is_whole = |read: &[u8]| match read {
            [_, _, _, high, low, rest @ ..] => {
                rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
            }
            _ => false,
        };
        while !is_whole(&self.read) {
            assert!(self.more().await, "the connection closed within a greeting");
        }
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

/// Both at once. A test that hangs fails instead.
pub async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(a, b) })
        .await
        .expect("the test hangs")
}
