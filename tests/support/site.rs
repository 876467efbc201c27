//! A web site on this machine, over real sockets: with each path it does what a test tells it to, and
//! it keeps a log of who came.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::server::{Connection, Server};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpSocket;
use tokio::sync::{Notify, Semaphore};

/// The head of a page of HTML.
pub const HTML: &str = "content-type: text/html; charset=utf-8";

/// What the site does with one request.
pub enum Does {
    /// Says this and closes.
    Says(Vec<u8>),
    /// Says this once it is notified, and closes.
    Waits(Arc<Notify>, Vec<u8>),
    /// Says this head, then a byte now and then for ever.
    Drips(&'static str),
    /// Says this head, then this again and again until the reader is gone.
    Repeats(&'static str, Vec<u8>),
    /// Says this, then nothing until the other side has closed.
    Hangs(&'static str),
}

/// A site.
pub struct Site {
    /// Its host, with its port.
    pub host: String,
    log: Arc<Log>,
}

#[derive(Debug)]
struct Log {
    /// The head of each request, in the order in which they came.
    asked: Mutex<Vec<String>>,
    /// Number of connections, with any request.
    connections: Mutex<usize>,
    /// One for each connection that hung until the other side closed it.
    closed: Semaphore,
}

impl Site {
    /// One that does this with each path, given the head of the request and how many times the path was
    /// requested before.
    pub async fn start(does: impl Fn(&str, &str, usize) -> Does + Send + Sync + 'static) -> Self {
        let server = Server::start().await;
        let (asked, connections) = (Mutex::default(), Mutex::default());
        let log = Arc::new(Log { asked, connections, closed: Semaphore::new(0) });
        let site = Self { host: server.host(), log: Arc::clone(&log) };
        let does = Arc::new(does);
        tokio::spawn(async move {
            loop {
                let mut connection = server.accept().await;
                *log.connections.lock().expect("a log") += 1;
                let (does, log) = (Arc::clone(&does), Arc::clone(&log));
                tokio::spawn(async move {
                    let head = connection.request().await.head;
                    let path = path(&head).to_owned();
                    let before = log.note(&head);
                    carry_out(does(&path, &head, before), connection, &log).await;
                });
            }
        });
        site
    }

    /// One whose pages these are; what they are not is 404.
    pub async fn of(pages: &'static [(&'static str, &'static str)]) -> Self {
        Self::start(move |path, _, _| {
            let page = pages.iter().find(|(at, _)| *at == path);
            Does::Says(page.map_or_else(
                || answer("404 Not Found", &[HTML], "<p>Not here."),
                |(_, text)| answer("200 OK", &[HTML], text),
            ))
        })
        .await
    }

    /// The address of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// Its port.
    pub fn port(&self) -> &str {
        self.host.rsplit(':').next().expect("a port")
    }

    /// The heads of the requests.
    pub fn heads(&self) -> Vec<String> {
        self.log.asked.lock().expect("a log").clone()
    }

    /// The paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        self.heads().iter().map(|head| path(head).to_owned()).collect()
    }

    /// Number of connections, with any request.
    pub fn connections(&self) -> usize {
        *self.log.connections.lock().expect("a log")
    }

    /// Waits until the other side has closed a connection that hung.
    pub async fn let_go(&self) {
        let closed = tokio::time::timeout(Duration::from_secs(30), self.log.closed.acquire());
        closed.await.expect("nobody lets go").expect("a site").forget();
    }
}

impl Log {
    /// Notes a request; how many there were for its path before.
    fn note(&self, head: &str) -> usize {
        let mut asked = self.asked.lock().expect("a log");
        asked.push(head.to_owned());
        asked.iter().filter(|it| path(it) == path(head)).count() - 1
    }
}

async fn carry_out(does: Does, mut connection: Connection, log: &Log) {
    match does {
        Does::Says(bytes) => {
            connection.takes(&bytes).await;
        }
        Does::Waits(told, bytes) => {
            told.notified().await;
            connection.takes(&bytes).await;
        }
        Does::Drips(head) => {
            connection.send(head).await;
            let mut drip = tokio::time::interval(Duration::from_millis(10));
            while connection.takes(b" ").await {
                drip.tick().await;
            }
        }
        Does::Repeats(head, bytes) => {
            connection.send(head).await;
            connection.send_without_end(&bytes).await;
        }
        Does::Hangs(head) => {
            connection.send(head).await;
            connection.closed().await;
            log.closed.add_permits(1);
        }
    }
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// An answer with its length, after which the connection closes.
pub fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n");
    for header in headers {
        head += &format!("{header}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// A page of HTML.
pub fn page(text: &str) -> Does {
    Does::Says(answer("200 OK", &[HTML], text))
}

/// A redirect.
pub fn redirect(to: &str) -> Does {
    Does::Says(answer("302 Found", &[&format!("location: {to}")], ""))
}

/// Bytes as gzip packs them.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("packs");
    encoder.finish().expect("packs")
}

/// A host without a listener, as long as this is held: its port is reserved.
pub struct Nobody(#[allow(dead_code, reason = "held")] TcpSocket, pub String);

/// See [`Nobody`].
pub fn nobody() -> Nobody {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let host = socket.local_addr().expect("a bound socket").to_string();
    Nobody(socket, host)
}
