//! A proxy that understands the protocol of NATS: it answers requests of clients in place of the server,
//! or replaces what the server answers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::{io, thread};

/// What becomes of a message that a client publishes.
pub enum Does {
    /// The server gets it and answers it.
    Passes,
    /// The server does not get it. The client receives this answer.
    Answers(String),
    /// The server gets it. The client receives this in place of the server's answer.
    Replaces(String),
}

/// Decides what becomes of a message, by its subject and its headers.
type Decide = dyn Fn(&str, &str) -> Does + Send + Sync;

/// A proxy to a server. Its threads end with the test's process.
pub struct NatsProxy {
    port: u16,
}

/// One connection of a client.
struct Passage {
    decide: Arc<Decide>,
    client: Mutex<TcpStream>,
    /// What clients subscribe to, with the number of each subscription.
    subscriptions: Mutex<Vec<(String, String)>>,
    /// What replaces the answer to a request, by the subject of the answer.
    replaced: Mutex<HashMap<String, String>>,
}

impl NatsProxy {
    /// A proxy to this host and port.
    pub fn to(
        target: (&'static str, u16),
        decide: impl Fn(&str, &str) -> Does + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let decide: Arc<Decide> = Arc::new(decide);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let decide = Arc::clone(&decide);
                thread::spawn(move || serve(client, target, decide).ok());
            }
        });
        Self { port }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

fn serve(client: TcpStream, target: (&str, u16), decide: Arc<Decide>) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    let passage = Arc::new(Passage {
        decide,
        client: Mutex::new(client.try_clone()?),
        subscriptions: Mutex::default(),
        replaced: Mutex::default(),
    });
    let (answers, back) = (BufReader::new(server.try_clone()?), Arc::clone(&passage));
    let ended = client.try_clone()?;
    thread::spawn(move || {
        let _ = back.pass_answers(answers);
        let _ = ended.shutdown(Shutdown::Both);
    });
    let passed = passage.pass_requests(BufReader::new(client), &server);
    let _ = server.shutdown(Shutdown::Both);
    passed
}

/// A line of the protocol, with what follows it.
struct Frame {
    line: String,
    payload: Vec<u8>,
}

impl Frame {
    /// Reads the next one; `None`: the other side has closed. `with_payload`: the words that a line with a
    /// payload begins with.
    fn read(from: &mut impl BufRead, with_payload: &[&str]) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut payload = Vec::new();
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|word| with_payload.contains(&word)) {
            let length: usize = words.next_back().and_then(|it| it.parse().ok()).expect("a length");
            payload.resize(length + 2, 0);
            from.read_exact(&mut payload)?;
        }
        Ok(Some(Self { line, payload }))
    }

    fn words(&self) -> Vec<&str> {
        self.line.split_whitespace().collect()
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&[self.line.as_bytes(), &self.payload].concat())
    }
}

impl Passage {
    fn pass_requests(&self, mut from: impl BufRead, mut to: &TcpStream) -> io::Result<()> {
        while let Some(frame) = Frame::read(&mut from, &["PUB", "HPUB"])? {
            match *frame.words().as_slice() {
                ["SUB", subject, .., number] => {
                    let subscription = (subject.to_owned(), number.to_owned());
                    self.subscriptions.lock().expect("a lock").push(subscription);
                }
                ["HPUB", subject, reply, headers, _] => {
                    let length: usize = headers.parse().expect("a length");
                    let headers = String::from_utf8_lossy(&frame.payload[..length]).into_owned();
                    match (self.decide)(subject, &headers) {
                        Does::Answers(answer) => {
                            self.answer(reply, &answer)?;
                            continue;
                        }
                        Does::Replaces(answer) => {
                            let mut replaced = self.replaced.lock().expect("a lock");
                            replaced.insert(reply.to_owned(), answer);
                        }
                        Does::Passes => {}
                    }
                }
                _ => {}
            }
            frame.write(&mut to)?;
        }
        Ok(())
    }

    fn pass_answers(&self, mut from: impl BufRead) -> io::Result<()> {
        while let Some(frame) = Frame::read(&mut from, &["MSG", "HMSG"])? {
            let replaced = match *frame.words().as_slice() {
                ["MSG" | "HMSG", subject, ..] => {
                    let answer = self.replaced.lock().expect("a lock").remove(subject);
                    answer.map(|answer| (subject.to_owned(), answer))
                }
                _ => None,
            };
            match replaced {
                Some((subject, answer)) => self.answer(&subject, &answer)?,
                None => frame.write(&mut *self.client.lock().expect("a lock"))?,
            }
        }
        Ok(())
    }

    /// Sends a message to the client, as the server does.
    fn answer(&self, subject: &str, text: &str) -> io::Result<()> {
        let subscriptions = self.subscriptions.lock().expect("a lock").clone();
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => subject.starts_with(prefix),
            None => pattern == subject,
        };
        let (_, number) = subscriptions.iter().find(|it| fits(&it.0)).expect("a subscription");
        let message = format!("MSG {subject} {number} {}\r\n{text}\r\n", text.len());
        self.client.lock().expect("a lock").write_all(message.as_bytes())
    }
}
