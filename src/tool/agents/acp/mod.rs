//! A coding agent that speaks the agent client protocol (ACP, version 1), as a model. Its program is
//! started with the first call, and again after it has died. Each caller has a session of its own, and one
//! turn of a session is one attempt.
//!
//! The types of messages are our own (docs/rules/decisions.md, *Agents of other programs*).

mod actions;
mod connection;
mod files;
mod prompt;
mod terminals;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use self::connection::{AcpConnection, RequestFailed};
use self::prompt::{Heard, NextPrompt};
use self::turn::{EndedTurn, Turn};
use crate::base::visible::shell_word;
use crate::log::event::{AttemptFailed, FailureClass, ModelLabel, Reply, Usage};
use crate::model::{ChatModel, ChatRequest, Failure, Listener};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::tools::agent::{AGENT_VARIABLES, AcpSpec, ActionKind, OutsideAgent};
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport};
use crate::tool::command::{find_program, not_found_advice};
use crate::tool::link::LinkFailures;
use crate::tool::program::LinkedProgram;
use crate::tool::{Environment, NotReady, ToolSettings};

/// The code of an error that asks for a login.
const AUTH_REQUIRED: i64 = -32_000;

/// A coding agent of one run: its program, which all its callers share.
pub(crate) struct AcpProgram {
    agent: Arc<OutsideAgent>,
    spec: AcpSpec,
    program: LinkedProgram,
    /// The MCP servers, with the values of their variables.
    servers: Vec<(McpServerSpec, ToolSettings)>,
    failures: Arc<LinkFailures>,
    /// The folder that the sessions work in, absolute.
    folder: PathBuf,
    connection: tokio::sync::Mutex<Option<Arc<AcpConnection>>>,
    /// What the operator has allowed for the whole run.
    always: Mutex<Vec<ActionKind>>,
}

impl AcpProgram {
    /// The agent, its variables looked up in `env`. It is not started.
    pub(crate) fn new(
        agent: &Arc<OutsideAgent>,
        spec: &AcpSpec,
        env: Environment<'_>,
    ) -> Result<Arc<Self>, Vec<NotReady>> {
        let mut missing = Vec::new();
        let mut look_up = |settings: &_| {
            let found = ToolSettings::look_up(settings, env);
            found.map_err(|reasons| missing.extend(reasons)).unwrap_or_default()
        };
        let mut settings = look_up(&spec.command.env);
        let servers = spec.servers.iter().map(|server| {
            let settings = match &server.transport {
                McpTransport::Command(command) => look_up(&command.env),
                McpTransport::Url(url) => look_up(&url.headers),
                McpTransport::Configured => ToolSettings::default(),
            };
            (server.clone(), settings)
        });
        let servers: Vec<_> = servers.collect();
        for name in AGENT_VARIABLES {
            if let Some(value) = env(name).filter(|_| !settings.values.contains_key(name)) {
                settings.values.insert(name.to_owned(), crate::net::Secret::new(value));
            }
        }
        let folder = std::path::absolute(spec.cwd.as_deref().unwrap_or(Path::new(".")));
        let folder = folder.and_then(|folder| folder.canonicalize());
        let folder = folder.unwrap_or_else(|error| {
            let folder = spec.cwd.clone().unwrap_or_default();
            let why = format!("its folder {} cannot be used: {error}", folder.display());
            missing.push(NotReady::Server { why });
            folder
        });
        let (name, path) = (&spec.command.program, env("PATH"));
        if find_program(name, path.as_deref()).is_none() {
            let why = format!("program {name} not found: {}", not_found_advice(name));
            missing.push(NotReady::Server { why });
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        let redactor = settings.redactor.clone();
        let failures = Arc::new(LinkFailures::new("the agent", agent.name.as_str(), redactor));
        let program = LinkedProgram {
            spec: spec.command.clone(),
            env: settings,
            path,
            folder: Some(folder.clone()),
        };
        let (agent, spec, connection) = (Arc::clone(agent), spec.clone(), Default::default());
        let always = Mutex::default();
        Ok(Arc::new(Self { agent, spec, program, servers, failures, folder, connection, always }))
    }

    /// The sessions of a caller.
    pub(crate) fn caller(self: &Arc<Self>) -> AcpModel {
        AcpModel { program: Arc::clone(self), idle: Mutex::default() }
    }

    /// The connection to the program, which is started if it is not.
    async fn connect(&self) -> Result<Arc<AcpConnection>, Box<AttemptFailed>> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|it| !it.is_over()) {
            return Ok(Arc::clone(open));
        }
        let offered = json!({
            "fs": {
                "readTextFile": self.spec.files.may_read(),
                "writeTextFile": self.spec.files.may_write(),
            },
            "terminal": self.spec.terminal,
        });
        let opened =
            AcpConnection::open(&self.program, &self.failures, self.spec.start_timeout, offered);
        let opened = Arc::new(opened.await?);
        *connection = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The MCP servers as a session gets them.
    fn session_servers(
        &self,
        connection: &AcpConnection,
    ) -> Result<Vec<Value>, Box<AttemptFailed>> {
        let fail = |what: String, advice: &str| {
            Err(self.failures.failure(FailureClass::Tool, &what, advice))
        };
        let pairs = |settings: &ToolSettings| -> Vec<Value> {
            let pair = |(name, value): (&String, &crate::net::Secret)| json!({ "name": name, "value": value.expose() });
            settings.values.iter().map(pair).collect()
        };
        let mut servers = Vec::new();
        for (server, settings) in &self.servers {
            servers.push(match &server.transport {
                McpTransport::Command(command) => {
                    let found = find_program(&command.program, self.program.path.as_deref());
                    let Some(program) = found.and_then(|it| std::path::absolute(it).ok()) else {
                        let what = format!(
                            "needs the MCP server {}, whose program {} is not found",
                            server.name, command.program
                        );
                        return fail(what, &not_found_advice(&command.program));
                    };
                    json!({
                        "name": server.name,
                        "command": program,
                        "args": command.args,
                        "env": pairs(settings),
                    })
                }
                McpTransport::Url(url) if connection.takes_http() => json!({
                    "type": "http",
                    "name": server.name,
                    "url": url.url,
                    "headers": pairs(settings),
                }),
                McpTransport::Url(_) => {
                    let what = format!("cannot use MCP servers with an address: {}", server.name);
                    return fail(what, "Give the server a command, or take it out of `mcp`.");
                }
                McpTransport::Configured => continue,
            });
        }
        Ok(servers)
    }

    /// Opens a session, or loads one of an earlier process.
    async fn open_session(
        &self,
        connection: &Arc<AcpConnection>,
        earlier: Option<&str>,
    ) -> Result<(AcpSession, bool), Box<AttemptFailed>> {
        let mut params = json!({
            "cwd": self.folder,
            "mcpServers": self.session_servers(connection)?,
        });
        let mut loaded = None;
        if let Some((id, method)) = earlier.zip(connection.loading_method()) {
            let mut params = params.clone();
            params["sessionId"] = id.into();
            // One that is gone is no failure: the whole conversation is sent again.
            loaded = connection.request(method, params).await.ok().map(|_| id.to_owned());
        }
        let is_loaded = loaded.is_some();
        let id = match loaded {
            Some(id) => id,
            None => {
                params["additionalDirectories"] = json!([]);
                let mut opened = connection.request("session/new", params.clone()).await;
                if let Err(RequestFailed::Refused(error)) = &opened
                    && error.code == AUTH_REQUIRED
                    && let Some(login) = connection.logins.iter().find(|login| login.is_silent())
                {
                    let method = json!({ "methodId": login.id });
                    if connection.request("authenticate", method).await.is_ok() {
                        opened = connection.request("session/new", params).await;
                    }
                }
                let opened = opened
                    .map_err(|failed| self.request_failed(connection, "session/new", failed))?;
                let Some(id) = opened.get("sessionId").and_then(Value::as_str) else {
                    let what = "opened a session without an id";
                    return Err(self.failures.failure(FailureClass::BadResponse, what, SPEAKS_ACP));
                };
                self.set_mode(connection, id, opened.get("modes")).await?;
                id.to_owned()
            }
        };
        let connection = Arc::clone(connection);
        Ok((AcpSession { id, connection, heard: Heard::default(), cost_usd: 0.0 }, is_loaded))
    }

    async fn set_mode(
        &self,
        connection: &AcpConnection,
        session: &str,
        modes: Option<&Value>,
    ) -> Result<(), Box<AttemptFailed>> {
        let Some(mode) = &self.spec.mode else { return Ok(()) };
        let list = modes.and_then(|modes| modes.get("availableModes")?.as_array());
        let ids: Vec<&str> =
            list.into_iter().flatten().filter_map(|mode| mode.get("id")?.as_str()).collect();
        if !ids.contains(&mode.as_str()) {
            let what = match ids.is_empty() {
                true => format!("has no modes, so not {mode}"),
                false => format!("has no mode {mode}; it has {}", ids.join(", ")),
            };
            let advice = "Set `mode` to one of its modes, or remove it.";
            return Err(self.failures.failure(FailureClass::Tool, &what, advice));
        }
        let params = json!({ "sessionId": session, "modeId": mode });
        let set = connection.request("session/set_mode", params).await;
        set.map(|_| ())
            .map_err(|failed| self.request_failed(connection, "session/set_mode", failed))
    }

    /// The failure of a request that the agent refused, or of its connection.
    fn request_failed(
        &self,
        connection: &AcpConnection,
        method: &str,
        failed: RequestFailed,
    ) -> Box<AttemptFailed> {
        match failed {
            RequestFailed::Link(failed) => failed,
            RequestFailed::Refused(error) if error.code == AUTH_REQUIRED => {
                let said = self.failures.quoted(&error.to_string());
                let logins: Vec<String> =
                    connection.logins.iter().map(ToString::to_string).collect();
                let ways = match logins.as_slice() {
                    [] => String::new(),
                    logins => format!("; it offers: {}", self.failures.quoted(&logins.join("; "))),
                };
                let command = &self.spec.command;
                let words = std::iter::once(&command.program).chain(&command.args);
                let command = words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
                let advice = match logins.as_slice() {
                    [] => format!("Start `{command}` in a shell, log in there, and try again."),
                    _ => format!("Log in with one of them, or with `{command}` in a shell."),
                };
                let what = format!("needs a login: {said}{ways}");
                self.failures.failure(FailureClass::Auth, &what, &advice)
            }
            RequestFailed::Refused(error) => {
                let said = self.failures.quoted(&error.to_string());
                let what = format!("refused {method}: {said}");
                self.failures.failure(FailureClass::Tool, &what, "What it says is the reason.")
            }
        }
    }
}

impl Drop for AcpProgram {
    fn drop(&mut self) {
        // The program has a short time to end by itself.
        if let Some(connection) = self.connection.get_mut() {
            connection.end();
        }
    }
}

/// Advice for a program that does not speak the protocol.
const SPEAKS_ACP: &str = "Is it the right program, with the argument that makes it speak ACP?";

/// A session that is open at the agent.
struct AcpSession {
    id: String,
    connection: Arc<AcpConnection>,
    /// What it knows of the conversation.
    heard: Heard,
    /// What all its turns have cost, as it says.
    cost_usd: f64,
}

/// The sessions of a coding agent for one caller: a role, an agent or a step.
pub(crate) struct AcpModel {
    program: Arc<AcpProgram>,
    /// Those that are in no turn. There is more than one only if the caller has asked several times at once.
    idle: Mutex<Vec<AcpSession>>,
}

impl AcpModel {
    fn idle(&self) -> MutexGuard<'_, Vec<AcpSession>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session that knows most of this conversation.
    fn take_idle(&self, request: &ChatRequest) -> Option<AcpSession> {
        let mut idle = self.idle();
        idle.retain(|session| !session.connection.is_over());
        let known = |session: &AcpSession| session.heard.known_part(request);
        let best = (0..idle.len()).max_by_key(|at| idle.get(*at).map(known))?;
        Some(idle.swap_remove(best))
    }

    async fn turn(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let program = &*self.program;
        let session = match self.take_idle(request) {
            Some(session) => session,
            None => {
                let connection = program.connect().await?;
                let earlier = prompt::session_in(request);
                let earlier = earlier.as_ref().map(|(id, known)| (&**id, *known));
                let opened = program.open_session(&connection, earlier.map(|it| it.0)).await;
                let (mut session, is_loaded) = opened?;
                if let Some((_, known)) = earlier.filter(|_| is_loaded) {
                    session.heard.load(request, known);
                }
                session
            }
        };
        let NextPrompt { text, heard } = session.heard.next_prompt(request);
        let turn = Turn {
            agent: &program.agent,
            spec: &program.spec,
            folder: &program.folder,
            env: &program.program.env,
            failures: &program.failures,
            listener,
            always: &program.always,
        };
        let ended = turn.play(&session.connection, &session.id, &text).await;
        let EndedTurn { text, end, finish, usage, cost_usd } =
            ended.map_err(|failed| match failed {
                turn::TurnFailed::Request(failed) => {
                    program.request_failed(&session.connection, "the prompt", failed)
                }
                turn::TurnFailed::Other(failed) => failed,
            })?;
        let (text, call) = match end.is_whole() {
            true => prompt::split_call(&text, request),
            false => (text, None),
        };
        let mut session = session;
        let cost = cost_usd.map(|all| (all - session.cost_usd).max(0.0));
        session.cost_usd = cost_usd.unwrap_or(session.cost_usd);
        let blocks = Arc::new(json!({ "acp": { "session": session.id } }));
        let reply = Reply {
            tool_calls: call.into_iter().collect(),
            usage,
            finish: Some(finish.into()),
            end,
            blocks: Some(blocks),
            cost_usd: cost.filter(|_| program.agent.reports_cost),
            ..Reply::from_agent_text(text.into())
        };
        session.heard = heard.and_reply(&reply);
        self.idle().push(session);
        Ok(reply)
    }
}

impl ChatModel for AcpModel {
    fn label(&self) -> ModelLabel {
        let agent = &self.program.agent;
        ModelLabel::Live { name: agent.name.to_string(), host: agent.place() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        Box::pin(self.turn(request, listener))
    }
}

/// Tokens of a turn, as the agent counts them.
fn usage_of(said: &Value) -> Option<Usage> {
    let count = |fields: &Map<String, Value>, key: &str| fields.get(key).and_then(Value::as_u64);
    let fields = said.as_object()?;
    let (cached, written) = (
        count(fields, "cachedReadTokens").unwrap_or(0),
        count(fields, "cachedWriteTokens").unwrap_or(0),
    );
    let prompt = count(fields, "inputTokens")?.saturating_add(cached).saturating_add(written);
    let thought = count(fields, "thoughtTokens").unwrap_or(0);
    Some(Usage {
        cached_tokens: cached,
        cache_write_tokens: written,
        reasoning_tokens: thought,
        ..Usage::new(prompt, count(fields, "outputTokens")?)
    })
}

/// How a turn ended, by the agent's word; `None`: it is no end of a turn.
fn turn_end(word: &str) -> Option<ReplyEnd> {
    match word {
        "end_turn" => Some(ReplyEnd::Stop),
        "max_tokens" | "max_turn_requests" => Some(ReplyEnd::Length),
        "refusal" => Some(ReplyEnd::Refused),
        _ => None,
    }
}
