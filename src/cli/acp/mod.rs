//! `roundtable acp`: a scenario as an agent of the Agent Client Protocol (version 1), on standard input and
//! output. An editor such as Zed starts it; a prompt of its user starts a run, and a question of the run
//! is a request for permission.

mod client;
mod session;
mod updates;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::client::AcpClient;
use self::session::{AcpSessions, PromptSource};
use super::args::{FlagArg, Global};
use super::exit::{Done, Exit};
use super::launch::read_scenario;
use super::people::PeopleArg;
use super::run::RunArgs;
use super::stdio::StdioService;
use super::streams::refuse;
use crate::base::refused::Refused;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::net::json_rpc::{
    INVALID_PARAMS, LineRead, METHOD_NOT_FOUND, PARSE_ERROR, RpcError, RpcMessage, read_line,
};
use crate::scenario::STDIN;
use crate::screen::form::fields::MAX_TEXT_BYTES;

/// Arguments of `roundtable acp`.
#[derive(Debug, Clone, Default, Args)]
pub struct AcpArgs {
    /// The scenario that answers: a file, or the name of a shipped one
    #[arg(value_name = "FILE|NAME")]
    pub scenario: Option<String>,
    /// Call live models, with your keys, for money; without it the script of the scenario answers
    #[arg(long, conflicts_with = "instant")]
    pub live: bool,
    /// The model of live runs, such as gpt-4.1-mini or anthropic/claude-haiku-4-5
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "live")]
    pub model: Option<String>,
    /// Skip the latency of scripted replies
    #[arg(long)]
    pub instant: bool,
    /// Override a field of the scenario, such as budget.max_rounds=1 or inputs.region=EU
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag at the start of each run, or at a boundary: legal_analyst=on@round:2
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Who answers the questions of the runs: wait (default; the user of the client does), script or nobody
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// Seed of the random numbers of each run
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Call the endpoint through this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// The version of the protocol.
const PROTOCOL: u64 = 1;

/// Messages to the client that are queued.
const QUEUED: usize = 256;

/// Standard error, where a person starts the agent in a terminal.
const HOW: &str = "\
roundtable: `roundtable acp SCENARIO` is started by an ACP client, which speaks to it on standard input
  help: add it to the settings of Zed:
    { \"agent_servers\": { \"roundtable\": { \"command\": \"roundtable\", \"args\": [\"acp\", \"support-swarm\"] } } }
  help: other clients (JetBrains, Neovim, Toad) take the same command: roundtable acp support-swarm
  help: give the file of a scenario by its whole path; `roundtable acp --help` has the options
";

/// Runs `roundtable acp` until the client closes standard input, or a signal.
pub async fn serve(args: AcpArgs, global: &Global) -> Done {
    let mut service = StdioService::open(global, HOW)?;
    let run = run_args(args).map_err(|why| refuse(&why, Exit::Usage))?;
    let Some(scenario) = read_scenario(&run) else { return Err(Exit::Usage) };
    let (input, output) = service.connect();
    let (sender, lines) = mpsc::channel(QUEUED);
    let writer = tokio::spawn(write_lines(lines, output));
    let client = Arc::new(AcpClient::new(sender, service.ended.clone()));
    let agent = AcpAgent {
        title: scenario.title.clone(),
        client: Arc::clone(&client),
        sessions: Arc::new(AcpSessions::new(client, &service, PromptSource::new(run, &scenario))),
    };
    let mut prompts = JoinSet::new();
    tokio::select! {
        () = agent.read(input, &mut prompts) => {}
        () = service.broken() => {}
    }
    service.end_runs().await;
    while prompts.join_next().await.is_some() {}
    // The last sender of lines.
    drop((agent, prompts));
    let _ = writer.await;
    Ok(service.finish(Exit::Ok).await)
}

/// The arguments of `roundtable run` for the runs of the agent.
fn run_args(args: AcpArgs) -> Result<RunArgs, Refused> {
    let scenario = args.scenario.ok_or_else(|| {
        Refused::new("no scenario: which one answers?")
            .help("add one: roundtable acp support-swarm")
    })?;
    let is_taken = "standard input has the messages of the client";
    if scenario == STDIN {
        return Err(Refused::new(format!("-: {is_taken}")).help("give the scenario as a file"));
    }
    if args.people == Some(PeopleArg::Ask) {
        let why = Refused::new(format!("--people ask: {is_taken}"));
        return Err(why.help("leave it out: the user of the client is asked"));
    }
    Ok(RunArgs {
        scenario,
        live: args.live,
        model: args.model,
        instant: args.instant,
        set: args.set,
        flags: args.flags,
        people: args.people.or(Some(PeopleArg::Wait)),
        seed: args.seed,
        proxy: args.proxy,
        ..RunArgs::default()
    })
}

/// Passes the lines on until their last sender is gone.
async fn write_lines(mut lines: mpsc::Receiver<Vec<u8>>, mut output: DuplexStream) {
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// The agent of one client.
struct AcpAgent {
    title: String,
    client: Arc<AcpClient>,
    sessions: Arc<AcpSessions>,
}

/// Parameters of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    /// The client decides whether it speaks the version of the response.
    #[serde(rename = "protocolVersion")]
    _protocol_version: u16,
    #[serde(default)]
    client_info: Option<ClientInfo>,
}

#[derive(Deserialize)]
struct ClientInfo {
    name: String,
}

/// Parameters of `session/new`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSessionParams {
    cwd: String,
    #[serde(default)]
    mcp_servers: Vec<Value>,
}

/// Parameters that only name a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    session_id: String,
}

/// Parameters of `session/prompt`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptParams {
    session_id: String,
    prompt: Vec<PromptPart>,
}

/// A part of a prompt.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PromptPart {
    Text { text: String },
    Resource { resource: PromptResource },
    ResourceLink { uri: String },
}

/// A file that the client sends with a prompt.
#[derive(Deserialize)]
struct PromptResource {
    uri: String,
    #[serde(default)]
    text: Option<String>,
}

fn params<T: DeserializeOwned>(given: Value) -> Result<T, RpcError> {
    serde_json::from_value(given).map_err(|error| wrong(error.to_string()))
}

/// Wrong parameters.
fn wrong(why: impl AsRef<str>) -> RpcError {
    RpcError::new(INVALID_PARAMS, visible_within(why.as_ref(), REASON_CHARS * 4))
}

impl AcpAgent {
    /// Takes messages until the client closes its end. What is no message is ignored.
    async fn read(&self, input: DuplexStream, prompts: &mut JoinSet<()>) {
        let (mut input, mut line) = (BufReader::new(input), Vec::new());
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            while prompts.try_join_next().is_some() {}
            let messages = match read_line(line.trim_ascii(), RpcMessage::from_line) {
                LineRead::Messages(messages) => messages,
                LineRead::Other => {
                    tracing::info!("a line of the client is no message");
                    continue;
                }
                LineRead::Unreadable(why) => {
                    let result = Err(RpcError::new(PARSE_ERROR, why));
                    self.client.send(&RpcMessage::Response { id: Value::Null, result }).await;
                    continue;
                }
            };
            for message in messages {
                match message {
                    RpcMessage::Request { id, method, params } => {
                        if let Some(result) = self.on_request(&id, &method, params, prompts).await {
                            self.client.send(&RpcMessage::Response { id, result }).await;
                        }
                    }
                    RpcMessage::Notification { method, params } => {
                        self.on_notification(&method, params);
                    }
                    RpcMessage::Response { id, result } => self.client.take(&id, result),
                }
            }
        }
    }

    /// The response to a request; `None`: it follows at the end of the prompt.
    async fn on_request(
        &self,
        id: &Value,
        method: &str,
        given: Value,
        prompts: &mut JoinSet<()>,
    ) -> Option<Result<Value, RpcError>> {
        Some(match method {
            "initialize" => self.initialize(given),
            "authenticate" => Ok(json!({})),
            "session/new" => self.new_session(given),
            "session/close" => params(given).and_then(|SessionParams { session_id }| {
                self.sessions.close(&session_id).map(|()| json!({}))
            }),
            "session/prompt" => match self.begin_prompt(given) {
                Ok((session, text)) => {
                    let (sessions, client) = (Arc::clone(&self.sessions), Arc::clone(&self.client));
                    let id = id.clone();
                    prompts.spawn(async move {
                        let result = sessions.answer(&session, text).await;
                        client.send(&RpcMessage::Response { id, result }).await;
                    });
                    return None;
                }
                Err(why) => Err(why),
            },
            _ => {
                let method = visible_within(method, REASON_CHARS);
                Err(RpcError::new(METHOD_NOT_FOUND, format!("{method} is not offered")))
            }
        })
    }

    fn on_notification(&self, method: &str, given: Value) {
        if method == "session/cancel"
            && let Ok(SessionParams { session_id }) = params(given)
        {
            self.sessions.cancel(&session_id);
        }
    }

    fn initialize(&self, given: Value) -> Result<Value, RpcError> {
        let InitializeParams { client_info, .. } = params(given)?;
        if let Some(ClientInfo { name }) = client_info {
            self.client.set_name(name);
        }
        Ok(json!({
            "protocolVersion": PROTOCOL,
            "agentInfo": {
                "name": "roundtable", "title": self.title, "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": { "close": {} },
            },
            "authMethods": [],
        }))
    }

    fn new_session(&self, given: Value) -> Result<Value, RpcError> {
        let NewSessionParams { cwd, mcp_servers } = params(given)?;
        if !Path::new(&cwd).is_absolute() {
            return Err(wrong("cwd is not an absolute path"));
        }
        if !mcp_servers.is_empty() {
            tracing::info!("{} MCP servers of the client are not used", mcp_servers.len());
        }
        Ok(json!({ "sessionId": self.sessions.open() }))
    }

    /// The session of a prompt, and its text. The session is busy then.
    fn begin_prompt(&self, given: Value) -> Result<(Arc<session::AcpSession>, String), RpcError> {
        let PromptParams { session_id, prompt } = params(given)?;
        let parts = prompt.into_iter().map(|part| match part {
            PromptPart::Text { text } => text,
            PromptPart::ResourceLink { uri } => uri,
            PromptPart::Resource { resource: PromptResource { uri, text } } => {
                let text = text.unwrap_or_else(|| "(not a text)".to_owned());
                format!("\n{uri}:\n{text}\n")
            }
        });
        let text = parts.collect::<Vec<_>>().join("\n").trim().to_owned();
        if text.len() > MAX_TEXT_BYTES {
            let bytes = text.len();
            return Err(wrong(format!(
                "the prompt has {bytes} bytes, and at most {MAX_TEXT_BYTES}"
            )));
        }
        Ok((self.sessions.begin(&session_id)?, text))
    }
}
