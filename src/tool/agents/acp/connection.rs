//! The connection to the program of a coding agent: requests and their responses, and what it says and
//! asks, by session.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::SPEAKS_ACP;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::json_rpc::{METHOD_NOT_FOUND, RpcError, RpcMessage, read_line};
use crate::tool::link::{LinkFailures, LinkGuard, ProgramLink};
use crate::tool::program;
use crate::tool::program::{LineReader, LineWriter, LinkedProgram};

/// The only version of the protocol that both sides may speak.
const VERSION: u64 = 1;
/// Most messages of a session that wait for its turn. Then the agent is not read any more.
const MAX_WAITING: usize = 256;
/// How long an agent may take to end a turn that was cancelled. Then its program is killed.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A request without a result.
#[derive(Debug)]
pub(super) enum RequestFailed {
    /// The agent has refused it.
    Refused(RpcError),
    /// The connection has ended.
    Link(Box<AttemptFailed>),
}

/// A way to log in to an agent (`authMethods`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LoginMethod {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    #[serde(rename = "type")]
    kind: String,
}

impl LoginMethod {
    /// Those of the response to `initialize`.
    fn list(said: &Value) -> Vec<Self> {
        let list = said.get("authMethods").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|it| Self::deserialize(it).ok()).collect()
    }

    /// Whether it needs no person: the agent has a token already, or a key in a variable.
    pub(super) fn is_silent(&self) -> bool {
        let id = self.id.replace('-', "_").to_lowercase();
        self.kind == "env_var" || ["cached_token", "api_key"].iter().any(|it| id.contains(it))
    }
}

impl fmt::Display for LoginMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name.as_deref().unwrap_or(&self.id))?;
        match self.description.as_deref().map_or("", str::trim) {
            "" => Ok(()),
            description => write!(f, " ({description})"),
        }
    }
}

/// What an agent says or asks during a turn.
#[derive(Debug)]
pub(super) enum FromAgent {
    /// Something has happened: the update.
    Update(Value),
    /// It asks for something, and waits for the response.
    Request { id: Value, method: String, params: Value },
}

type Pending = oneshot::Sender<Result<Value, RpcError>>;
/// The response to a request, once it is there.
type Response = oneshot::Receiver<Result<Value, RpcError>>;

/// A connection to the program of an agent. The program ends when this is dropped.
pub(super) struct AcpConnection {
    link: Arc<ProgramLink>,
    writer: LineWriter,
    next_id: AtomicU64,
    inbox: Arc<Inbox>,
    /// What the agent can do.
    capabilities: Value,
    /// How a person can log in to it.
    pub(super) logins: Vec<LoginMethod>,
    _guard: LinkGuard,
}

/// Who waits for what an agent says.
#[derive(Default)]
struct Inbox {
    pending: Mutex<HashMap<u64, Pending>>,
    /// The turns that are being played, by session.
    turns: Mutex<HashMap<String, mpsc::Sender<FromAgent>>>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AcpConnection {
    /// Starts the program and says what it may use.
    pub(super) async fn open(
        of: &LinkedProgram,
        failures: &Arc<LinkFailures>,
        limit: Duration,
        offered: Value,
    ) -> Result<Self, Box<AttemptFailed>> {
        let link = ProgramLink::new();
        let guard = LinkGuard { link: Arc::clone(&link), failures: Arc::clone(failures) };
        let (reader, writer) = program::start(of, &link, failures).await?;
        let inbox = Arc::new(Inbox::default());
        tokio::spawn(read_messages(reader, writer.clone(), Arc::clone(&inbox), Arc::clone(&link)));
        let mut connection = Self {
            link,
            writer,
            next_id: AtomicU64::new(1),
            inbox,
            capabilities: Value::Null,
            logins: Vec::new(),
            _guard: guard,
        };
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": offered,
            "clientInfo": { "name": "roundtable", "version": env!("CARGO_PKG_VERSION") },
        });
        let fail = |class, what: String, advice: &str| Err(failures.failure(class, &what, advice));
        match timeout(limit, connection.request("initialize", params)).await {
            Err(_) => {
                let stray = connection.link.stray_note(failures);
                let what = format!("did not start within {:.0} s{stray}", limit.as_secs_f64());
                fail(
                    FailureClass::Timeout,
                    what,
                    "Raise start_timeout_s, or see what it waits for.",
                )
            }
            Ok(Err(RequestFailed::Link(failed))) => Err(failed),
            Ok(Err(RequestFailed::Refused(error))) => {
                let what = format!("does not start: {}", failures.quoted(&error.to_string()));
                fail(FailureClass::Tool, what, SPEAKS_ACP)
            }
            Ok(Ok(said)) => match said.get("protocolVersion").and_then(Value::as_u64) {
                Some(VERSION) => {
                    connection.capabilities =
                        said.get("agentCapabilities").cloned().unwrap_or_default();
                    connection.logins = LoginMethod::list(&said);
                    Ok(connection)
                }
                version => {
                    let version = version.map_or("none".to_owned(), |version| version.to_string());
                    let what = format!("speaks another version of the protocol: {version}, not 1");
                    fail(
                        FailureClass::BadResponse,
                        what,
                        "Use a version of it that speaks version 1.",
                    )
                }
            },
        }
    }

    /// Whether the program has ended, or is ending.
    pub(super) fn is_over(&self) -> bool {
        self.link.is_over()
    }

    /// Lets the program end by itself.
    pub(super) fn end(&self) {
        self.link.end();
    }

    /// Whether sessions may use MCP servers with an address.
    pub(super) fn takes_http(&self) -> bool {
        self.capabilities.pointer("/mcpCapabilities/http") == Some(&Value::Bool(true))
    }

    /// The method that opens a session of an earlier process again; `None`: the agent cannot do it.
    pub(super) fn loading_method(&self) -> Option<&'static str> {
        let resumes = self.capabilities.pointer("/sessionCapabilities/resume");
        if resumes.is_some_and(|it| !it.is_null()) {
            return Some("session/resume");
        }
        (self.capabilities.get("loadSession") == Some(&Value::Bool(true))).then_some("session/load")
    }

    /// Sends a request and waits for its response.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Value, RequestFailed> {
        let response = self.send(method, params).await.map_err(RequestFailed::Link)?;
        self.response(response).await
    }

    /// Sends a request.
    async fn send(&self, method: &str, params: Value) -> Result<Response, Box<AttemptFailed>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.inbox.pending).insert(id, sender);
        let request = RpcMessage::Request { id: id.into(), method: method.to_owned(), params };
        match self.writer.send(request.to_line()) {
            Ok(()) => Ok(receiver),
            // The keeper of the program knows soon how it ended.
            Err(_) => Err(self.link.closed().await),
        }
    }

    async fn response(&self, response: Response) -> Result<Value, RequestFailed> {
        tokio::select! {
            biased;
            said = response => match said {
                Ok(said) => said.map_err(RequestFailed::Refused),
                Err(_) => Err(RequestFailed::Link(self.link.closed().await)),
            },
            failed = self.link.closed() => Err(RequestFailed::Link(failed)),
        }
    }

    /// Begins a turn of a session.
    pub(super) async fn begin_turn(
        &self,
        session: &str,
        prompt: &str,
    ) -> Result<OpenTurn<'_>, Box<AttemptFailed>> {
        let (sender, inbox) = mpsc::channel(MAX_WAITING);
        lock(&self.inbox.turns).insert(session.to_owned(), sender);
        let params = json!({
            "sessionId": session,
            "prompt": [{ "type": "text", "text": prompt }],
        });
        let mut turn =
            OpenTurn { connection: self, session: session.to_owned(), inbox, response: None };
        turn.response = Some(self.send("session/prompt", params).await?);
        Ok(turn)
    }

    /// Answers a request of the agent.
    pub(super) fn reply(&self, id: Value, result: Result<Value, RpcError>) {
        // If it has ended, the turn ends with the link.
        let _ = self.writer.send(RpcMessage::Response { id, result }.to_line());
    }
}

/// A turn that has begun. Dropping it cancels it.
pub(super) struct OpenTurn<'a> {
    connection: &'a AcpConnection,
    session: String,
    inbox: mpsc::Receiver<FromAgent>,
    /// `None`: it has ended.
    response: Option<Response>,
}

/// What comes next in a turn.
pub(super) enum TurnStep {
    Said(FromAgent),
    /// It has ended. What the agent said before is in the inbox.
    Ended(Result<Value, RequestFailed>),
}

impl OpenTurn<'_> {
    /// What comes next.
    pub(super) async fn next(&mut self) -> TurnStep {
        let Some(response) = self.response.as_mut() else { return std::future::pending().await };
        let ended = tokio::select! {
            biased;
            Some(said) = self.inbox.recv() => return TurnStep::Said(said),
            ended = response => ended,
            failed = self.connection.link.closed() => {
                self.response = None;
                return TurnStep::Ended(Err(RequestFailed::Link(failed)));
            }
        };
        self.response = None;
        TurnStep::Ended(match ended {
            Ok(said) => said.map_err(RequestFailed::Refused),
            Err(_) => Err(RequestFailed::Link(self.connection.link.closed().await)),
        })
    }

    /// What was said before the end of the turn and is not read yet.
    pub(super) fn rest(&mut self) -> Vec<FromAgent> {
        std::iter::from_fn(|| self.inbox.try_recv().ok()).collect()
    }
}

impl Drop for OpenTurn<'_> {
    fn drop(&mut self) {
        lock(&self.connection.inbox.turns).remove(&self.session);
        let Some(response) = self.response.take() else { return };
        let params = json!({ "sessionId": self.session });
        let cancel = RpcMessage::Notification { method: "session/cancel".to_owned(), params };
        let link = Arc::clone(&self.connection.link);
        if self.connection.writer.send(cancel.to_line()).is_err() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cancelled = AttemptFailed::new(
                FailureClass::Tool,
                "the agent did not end its turn when it was cancelled, so its program was killed",
            );
            runtime.spawn(async move {
                tokio::select! {
                    _ = response => {}
                    () = link.over() => {}
                    () = tokio::time::sleep(CANCEL_TIMEOUT) => link.close(cancelled),
                }
            });
        }
    }
}

/// Reads what the agent says until it ends.
async fn read_messages(
    mut reader: LineReader,
    writer: LineWriter,
    inbox: Arc<Inbox>,
    link: Arc<ProgramLink>,
) {
    loop {
        let messages = tokio::select! {
            biased;
            _ = link.closed() => return,
            messages = reader.next(|line| read_line(line, RpcMessage::from_line)) => messages,
        };
        match messages {
            Ok(messages) => {
                for message in messages {
                    inbox.deliver(message, &writer).await;
                }
            }
            Err(why) => {
                reader.break_off(why);
                link.closed().await;
                return;
            }
        }
    }
}

/// The response to a request of an agent that has no turn.
fn outside_of_turns(method: &str) -> Result<Value, RpcError> {
    match method {
        "session/request_permission" => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, "this client offers that only during a turn")),
    }
}

impl Inbox {
    /// Passes a message of the agent on to the one who waits for it.
    async fn deliver(&self, message: RpcMessage, writer: &LineWriter) {
        match message {
            // It could not read a request, and does not say which one.
            RpcMessage::Response { id: Value::Null, result } => {
                for (_, pending) in lock(&self.pending).drain() {
                    let _ = pending.send(result.clone());
                }
            }
            RpcMessage::Response { id, result } => {
                // Some programs send numbers back as texts.
                let id = id.as_u64().or_else(|| id.as_str()?.parse().ok());
                let pending = id.and_then(|id| lock(&self.pending).remove(&id));
                match pending {
                    Some(pending) => drop(pending.send(result)),
                    None => tracing::debug!(?id, "ignored a response that nobody waits for"),
                }
            }
            RpcMessage::Notification { method, params } if method == "session/update" => {
                let Some(turn) = self.turn_of(&params) else { return };
                let update = params.get("update").cloned().unwrap_or_default();
                let _ = turn.send(FromAgent::Update(update)).await;
            }
            RpcMessage::Notification { .. } => {}
            RpcMessage::Request { id, method, params } => {
                let turn = self.turn_of(&params);
                let request = FromAgent::Request { id, method, params };
                let refused = match turn {
                    Some(turn) => turn.send(request).await.err().map(|unsent| unsent.0),
                    None => Some(request),
                };
                if let Some(FromAgent::Request { id, method, .. }) = refused {
                    let result = outside_of_turns(&method);
                    let _ = writer.send(RpcMessage::Response { id, result }.to_line());
                }
            }
        }
    }

    fn turn_of(&self, params: &Value) -> Option<mpsc::Sender<FromAgent>> {
        let session = params.get("sessionId")?.as_str()?;
        lock(&self.turns).get(session).cloned()
    }
}
