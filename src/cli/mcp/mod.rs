//! `roundtable mcp`: an MCP server over standard input and output. An MCP client, such as an editor or a
//! coding agent, lists scenarios, runs them, and reads runs. What a client may do is decided by the
//! operator who starts the server, never by the client.
//!
//! Standard output has messages of the protocol and nothing else. Two threads of their own read and write:
//! neither a silent client nor one that does not read blocks a worker of the runtime.

mod play;
mod reading;
mod tools;

use std::io;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, model};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use self::play::ServerState;
use super::args::Global;
use super::exit::Exit;
use super::headless::on_stop;
use super::launch::{
    FOLLOWED, OnStoreFailure, StoreOfCommand, engine_settings, print_notes, serve_peers,
};
use super::streams;
use super::streams::{print_message, print_on_stderr, refuse};
use crate::base::refused::Refused;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::engine::Engine;
use crate::log::event::safe_json;

/// Arguments of `roundtable mcp`.
#[derive(Debug, Clone, Default, Args)]
pub struct McpArgs {
    /// Scenarios to offer: files, folders of files, names of shipped ones; without any the shipped ones and
    /// those of ./scenarios
    #[arg(value_name = "SCENARIO|FOLDER")]
    pub scenarios: Vec<String>,
    /// Clients may start live runs, which call models with your keys and cost money
    #[arg(long)]
    pub allow_live: bool,
    /// Clients may list and read all kept runs, not only those that they have started
    #[arg(long)]
    pub allow_runs: bool,
    /// Clients may answer the questions of the runs that they have started, approvals too
    #[arg(long)]
    pub allow_answers: bool,
}

/// Longest message of a client, in bytes.
const MAX_LINE: u64 = 4 << 20;

/// Bytes between a thread and the service.
const PIPE: usize = 64 << 10;

/// Timeout for the last messages to be written.
const WRITTEN: Duration = Duration::from_secs(1);

/// Standard error, where a person starts the server in a terminal.
const HOW: &str = "\
roundtable: `roundtable mcp` is started by an MCP client, which speaks to it on standard input
  help: add it to the servers of the client, such as an editor or a coding agent:
    { \"mcpServers\": { \"roundtable\": { \"command\": \"roundtable\", \"args\": [\"mcp\"] } } }
  help: `roundtable mcp --help` has the options that let clients do more
";

/// What a client reads first.
const INSTRUCTIONS: &str = "\
Runs of multi-agent patterns. list_scenarios has what can be run; run_scenario plays one and returns its \
outcome; read_run has the events and the text of a run. Runs are scripted, cost nothing and need no model, \
unless the operator allows live ones.";

/// Why the server ends. The first reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// The client has closed its end.
    Input,
    /// A message cannot be read or written.
    Broken,
    /// A signal.
    Signal,
}

type EndSender = watch::Sender<Option<ServerEnd>>;

fn end(ends: &EndSender, why: ServerEnd) {
    ends.send_if_modified(|end| {
        let is_first = end.is_none();
        end.get_or_insert(why);
        is_first
    });
}

/// Runs `roundtable mcp` until the client closes standard input, or a signal.
pub async fn serve(args: McpArgs, global: &Global) -> Exit {
    if io::stdin().is_terminal() {
        print_on_stderr(HOW, false);
        return Exit::Usage;
    }
    if let Err(exit) = streams::check_stdout() {
        return exit;
    }
    let (ends, ended) = watch::channel(None);
    let stored = StoreOfCommand::open(global, OnStoreFailure::Stop);
    print_notes(&stored.problems);
    // Without a store a run is read from memory only.
    let window = if stored.keeper().is_some() { FOLLOWED } else { u64::MAX };
    let engine = Engine::with_keeper(engine_settings(window), stored.keeper());
    let database = stored.kept().database().cloned();
    let state = match ServerState::new(args, engine.clone(), database, ended.clone()) {
        Ok(state) => Arc::new(state),
        Err(why) => return refuse(&why, Exit::Usage),
    };
    // `attach`, `ctl` and `answer` reach the runs.
    #[cfg(unix)]
    let _peers = serve_peers(&engine).ok();
    let of_signal = ends.clone();
    if let Err(error) = on_stop(move || end(&of_signal, ServerEnd::Signal), Exit::Cancelled.code())
    {
        tracing::warn!("signals end the program immediately: {error}");
    }
    let (input, written, output) = open_pipes(&ends);
    let transport = AsyncRwTransport::<RoleServer, _, _>::new(input, output);
    let mut signal = ended.clone();
    let mut signal = Box::pin(async move {
        let at_once = [Some(ServerEnd::Signal), Some(ServerEnd::Broken)];
        let _ = signal.wait_for(|end| at_once.contains(end)).await;
    });
    let served = tokio::select! {
        served = serve_server(McpService(Arc::clone(&state)), transport) => Some(served),
        () = &mut signal => None,
    };
    let mut exit = Exit::Ok;
    match served {
        None | Some(Err(ServerInitializeError::ConnectionClosed(_))) => {}
        Some(Err(error)) => {
            let why = visible_within(&error.to_string(), REASON_CHARS);
            exit =
                refuse(&Refused::new("the client does not speak MCP").because(why), Exit::Stopped);
        }
        Some(Ok(running)) => {
            let service = running.cancellation_token();
            let signalled = tokio::spawn(async move {
                signal.await;
                service.cancel();
            });
            if let Err(error) = running.waiting().await {
                tracing::warn!("the service has failed: {error}");
            }
            signalled.abort();
        }
    }
    end(&ends, ServerEnd::Input);
    if let Some(keeper) = engine.keeper().filter(|_| *ended.borrow() == Some(ServerEnd::Signal)) {
        keeper.end_waits();
    }
    engine.shutdown().await;
    print_notes(&stored.finish().await);
    let _ = timeout(WRITTEN, written).await;
    if *ended.borrow() == Some(ServerEnd::Broken) { Exit::Stopped } else { exit }
}

/// The ends of standard input and output for the service, and a receiver that ends once everything is
/// written.
fn open_pipes(ends: &EndSender) -> (DuplexStream, oneshot::Receiver<()>, DuplexStream) {
    let (input, to_service) = tokio::io::duplex(PIPE);
    let (output, from_service) = tokio::io::duplex(PIPE);
    let (done, written) = oneshot::channel();
    let (runtime, of_input, of_output) = (Handle::current(), ends.clone(), ends.clone());
    let writer = runtime.clone();
    thread::spawn(move || {
        let mut to_service = to_service;
        let why = read_messages(&runtime, &mut to_service);
        // Before the service sees its end.
        end(&of_input, why);
        drop(to_service);
    });
    thread::spawn(move || {
        if let Err(error) = write_messages(&writer, from_service) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                print_message(&format!("cannot write to standard output: {error}"));
            }
            end(&of_output, ServerEnd::Broken);
        }
        let _ = done.send(());
    });
    (input, written, output)
}

/// Passes on each line of standard input.
fn read_messages(runtime: &Handle, to: &mut DuplexStream) -> ServerEnd {
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdin.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line) {
            Ok(0) => return ServerEnd::Input,
            Ok(_) if line.len() as u64 > MAX_LINE => {
                print_message("the connection ends: a message of the client has more than 4 MB");
                return ServerEnd::Broken;
            }
            Ok(_) => {}
            Err(error) => {
                print_message(&format!("cannot read standard input: {error}"));
                return ServerEnd::Broken;
            }
        }
        if runtime.block_on(to.write_all(&line)).is_err() {
            return ServerEnd::Input;
        }
    }
}

/// Writes each message of the service. What models and files say in it is escaped: some clients show the
/// messages in a terminal.
fn write_messages(runtime: &Handle, from: DuplexStream) -> io::Result<()> {
    let (mut from, mut out) = (BufReader::new(from), streams::stdout_data());
    let mut line = Vec::new();
    loop {
        line.clear();
        if runtime.block_on(from.read_until(b'\n', &mut line))? == 0 {
            return Ok(());
        }
        out.write_all(safe_json::escape(&String::from_utf8_lossy(&line), true).as_bytes())?;
        out.flush()?;
    }
}

/// The service of one client.
struct McpService(Arc<ServerState>);

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let server = Implementation::new("roundtable", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::offered(&self.0.args)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.0, request, &context).await
    }
}

/// The arguments of a tool.
///
/// # Errors
/// They do not match its schema.
fn arguments<T: serde::de::DeserializeOwned>(
    tool: &str,
    given: Option<model::JsonObject>,
) -> Result<T, ErrorData> {
    let given = serde_json::Value::Object(given.unwrap_or_default());
    serde_json::from_value(given).map_err(|error| {
        let why = visible_within(&error.to_string(), REASON_CHARS);
        ErrorData::invalid_params(format!("arguments of {tool}: {why}"), None)
    })
}
