//! The client of the agent: what is sent to it, and its responses to requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::base::visible::{first_bytes, visible_lines};
use crate::cli::stdio::ServiceEnd;
use crate::net::json_rpc::{RpcError, RpcMessage};

/// Longest text in one message, in bytes: some clients read lines of at most 64 KiB, and each of these
/// bytes may be escaped.
pub const MAX_TEXT: usize = 8_000;

pub fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection to the client.
pub struct AcpClient {
    lines: mpsc::Sender<Vec<u8>>,
    ended: watch::Receiver<Option<ServiceEnd>>,
    name: Mutex<Option<String>>,
    requests: Mutex<SentRequests>,
}

/// The requests that the client has not answered yet.
#[derive(Default)]
struct SentRequests {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
}

/// A request that was sent. Dropping it ignores the response.
struct SentRequest<'a> {
    client: &'a AcpClient,
    id: u64,
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        lock(&self.client.requests).waiting.remove(&self.id);
    }
}

impl AcpClient {
    pub fn new(lines: mpsc::Sender<Vec<u8>>, ended: watch::Receiver<Option<ServiceEnd>>) -> Self {
        Self { lines, ended, name: Mutex::default(), requests: Mutex::default() }
    }

    /// The name by which it has introduced itself.
    pub fn name(&self) -> Option<String> {
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = Some(name);
    }

    /// Waits until the service ends.
    pub async fn ended(&self) {
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// Sends a message. A client that does not read makes its runs wait; at the end of the service it loses
    /// what it has not read.
    pub async fn send(&self, message: &RpcMessage) {
        let line = message.to_line();
        tokio::select! {
            biased;
            () = self.ended() => {
                let _ = self.lines.try_send(line);
            }
            place = self.lines.reserve() => {
                if let Ok(place) = place {
                    place.send(line);
                }
            }
        }
    }

    /// Sends a request, and returns the response.
    ///
    /// # Errors
    /// That of the client.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let (respond, response) = oneshot::channel();
        let id = {
            let mut requests = lock(&self.requests);
            requests.last += 1;
            let id = requests.last;
            requests.waiting.insert(id, respond);
            id
        };
        let _sent = SentRequest { client: self, id };
        let method = method.to_owned();
        self.send(&RpcMessage::Request { id: id.into(), method, params }).await;
        response.await.unwrap_or_else(|_| Err(RpcError::new(0, "the connection has ended")))
    }

    /// Takes a response of the client.
    pub fn take(&self, id: &Value, result: Result<Value, RpcError>) {
        let sent = id.as_u64().and_then(|id| lock(&self.requests).waiting.remove(&id));
        match sent {
            // Nobody waits for it if the question has ended meanwhile.
            Some(respond) => drop(respond.send(result)),
            None => tracing::info!("a response of the client belongs to no request"),
        }
    }

    /// Sends an update of a session.
    pub async fn update(&self, session: &str, update: Value) {
        let params = json!({ "sessionId": session, "update": update });
        let method = "session/update".to_owned();
        self.send(&RpcMessage::Notification { method, params }).await;
    }

    /// Says something to the user. What it quotes is data.
    pub async fn say(&self, session: &str, text: &str) {
        self.say_as("agent_message_chunk", session, text).await;
    }

    /// Tells the user what happens meanwhile.
    pub async fn think(&self, session: &str, text: &str) {
        self.say_as("agent_thought_chunk", session, text).await;
    }

    async fn say_as(&self, kind: &str, session: &str, text: &str) {
        let text = visible_lines(text);
        let mut rest = &*text;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(first_bytes(rest, MAX_TEXT).len());
            rest = after;
            let content = json!({ "type": "text", "text": chunk });
            self.update(session, json!({ "sessionUpdate": kind, "content": content })).await;
        }
    }
}
