//! The client of MCP servers: starts them or connects, lists their tools, calls them. The protocol is
//! rmcp's, in both of its eras; transports, limits and the mapping of results are ours.

mod client;
mod connection;
mod handshake;
mod http;
mod results;
mod stdio;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ProtocolVersion};
use serde_json::{Map, Value};

use self::connection::{Connection, OpenFailed, ServerWay};
use self::handshake::Lifecycle;
use self::http::HttpAddress;
use self::results::call_result;
use super::{Environment, NotReady, ToolSettings};
use crate::gateway::AttemptHost;
use crate::log::event::AttemptFailed;
use crate::log::event::tool::OfferedTool;
use crate::net::Http;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport, McpVersion};
use crate::tool::link::LinkFailures;
use crate::tool::program::LinkedProgram;

/// An MCP server of one run. It is started or connected to by the first attempt that needs it, and again
/// by the next one after it has died.
pub struct McpServer {
    shared: Arc<ServerShared>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct McpResult {
    /// Its texts, one below the other; other parts by kind, name and size.
    pub text: String,
    /// Its structured part.
    pub structured: Option<Value>,
}

impl McpServer {
    /// A server that is not started yet, its variables looked up in `env`. The caller limits what `http`
    /// may reach, by `allow_private`.
    pub fn new(
        spec: Arc<McpServerSpec>,
        http: Http,
        env: Environment<'_>,
    ) -> Result<Arc<Self>, Vec<NotReady>> {
        let (way, redactor) = match &spec.transport {
            McpTransport::Command(command) => {
                let settings = ToolSettings::look_up(&command.env, env)?;
                let redactor = settings.redactor.clone();
                let mut command = command.clone();
                command.max_bytes = spec.max_bytes;
                let program =
                    LinkedProgram { spec: command, env: settings, path: env("PATH"), folder: None };
                (ServerWay::Program(program), redactor)
            }
            McpTransport::Url(url) => {
                let address = HttpAddress::new(&spec, url, http, env)?;
                let redactor = address.redactor.clone();
                (ServerWay::Address(address), redactor)
            }
            McpTransport::Configured => {
                let why = format!(
                    "the MCP server {} is neither in the scenario nor in the configuration: give \
                     it a command or a url",
                    spec.name
                );
                return Err(vec![NotReady::Server { why }]);
            }
        };
        let failures = Arc::new(LinkFailures::new("the MCP server", &spec.name, redactor));
        let shared = ServerShared {
            way,
            failures,
            state: Mutex::new(ServerState::Down),
            version: spec.protocol_version.map(|version| match version {
                McpVersion::V20241105 => ProtocolVersion::V_2024_11_05,
                McpVersion::V20250326 => ProtocolVersion::V_2025_03_26,
                McpVersion::V20250618 => ProtocolVersion::V_2025_06_18,
                McpVersion::V20251125 => ProtocolVersion::V_2025_11_25,
                McpVersion::V20260728 => ProtocolVersion::V_2026_07_28,
            }),
            is_legacy: AtomicBool::new(false),
            known: Mutex::default(),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }

    /// The tools that it offers, in its order: at most 1,000, of at most 50 pages.
    pub async fn list(
        &self,
        host: &dyn AttemptHost,
    ) -> Result<Vec<OfferedTool>, Box<AttemptFailed>> {
        // A list has no progress, and a server that needs input has to wait for a call.
        let _ = host;
        let connection = self.shared.connection().await?;
        let tools = connection.list().await?;
        self.shared.know(&tools);
        Ok(tools)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Why there is no result. The class is `rejected` if the tool itself says so.
    pub async fn call(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        host: &dyn AttemptHost,
    ) -> Result<McpResult, Box<AttemptFailed>> {
        let connection = self.shared.connection().await?;
        let known = self.shared.known(tool);
        if known.has_headers && connection.needs_list() {
            let tools = connection.list().await?;
            self.shared.know(&tools);
        }
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
        let result = connection.call(CallToolRequest::new(params), host).await?;
        call_result(result, tool, known.result.as_deref(), &self.shared.failures)
    }

    /// The run has ended: the server ends. A program has half a second for that.
    pub fn end(&self) {
        let before = std::mem::replace(&mut *relock(&self.shared.state), ServerState::Ended);
        if let ServerState::Up(connection) = before {
            connection.end();
        }
    }
}

fn relock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type OpenResult = Result<Arc<Connection>, Box<AttemptFailed>>;

/// The part of a server that its connection attempts share.
struct ServerShared {
    way: ServerWay,
    failures: Arc<LinkFailures>,
    state: Mutex<ServerState>,
    /// The protocol version that the scenario says.
    version: Option<ProtocolVersion>,
    /// Whether it is known to need `initialize`. Then it is not asked again.
    is_legacy: AtomicBool,
    /// What is known of the tools that were listed last, by tool.
    known: Mutex<HashMap<String, KnownTool>>,
}

/// What a call of a tool goes by.
#[derive(Clone, Default)]
struct KnownTool {
    /// Schema of its structured result.
    result: Option<Arc<Value>>,
    /// Whether some of its arguments are headers, too (`x-mcp-header`).
    has_headers: bool,
}

enum ServerState {
    /// Not started, or not any more.
    Down,
    /// The attempt that starts it lives as long as somebody waits for it.
    Starting(WeakShared<BoxFuture<'static, OpenResult>>),
    Up(Arc<Connection>),
    Ended,
}

impl ServerShared {
    fn know(&self, tools: &[OfferedTool]) {
        let known = tools.iter().map(|tool| {
            let result = tool.result.clone().map(Arc::new);
            let has_headers = tool.parameters.to_string().contains("\"x-mcp-header\"");
            (tool.name.clone(), KnownTool { result, has_headers })
        });
        *relock(&self.known) = known.collect();
    }

    fn known(&self, tool: &str) -> KnownTool {
        relock(&self.known).get(tool).cloned().unwrap_or_default()
    }

    /// The connection. Attempts that need one at the same time share the attempt to open it.
    async fn connection(self: &Arc<Self>) -> OpenResult {
        let starting = {
            let mut state = relock(&self.state);
            let starting = match &*state {
                ServerState::Ended => return Err(self.failures.ended()),
                ServerState::Up(connection) if connection.is_usable() => {
                    return Ok(Arc::clone(connection));
                }
                ServerState::Starting(starting) => starting.upgrade(),
                ServerState::Up(_) | ServerState::Down => None,
            };
            match starting {
                Some(starting) => starting,
                None => {
                    let starting = Arc::clone(self).start().boxed().shared();
                    // Not started yet, so it is not at its end.
                    if let Some(weak) = Shared::downgrade(&starting) {
                        *state = ServerState::Starting(weak);
                    }
                    starting
                }
            }
        };
        starting.await
    }

    async fn start(self: Arc<Self>) -> OpenResult {
        let opened = self.open().await;
        let mut state = relock(&self.state);
        if matches!(*state, ServerState::Ended) {
            return Err(self.failures.ended());
        }
        *state = match &opened {
            Ok(connection) => ServerState::Up(Arc::clone(connection)),
            Err(_) => ServerState::Down,
        };
        opened
    }

    async fn open(&self) -> OpenResult {
        let lifecycle = match &self.version {
            Some(version) => Lifecycle::Version(version.clone()),
            None if self.is_legacy.load(Ordering::Relaxed) => Lifecycle::Initialize,
            None => Lifecycle::Unknown,
        };
        let opened = match Connection::open(&self.way, &self.failures, lifecycle).await {
            // Some servers end when their first message is not `initialize`.
            Err(OpenFailed { ended_at_discovery: true, .. }) => {
                Connection::open(&self.way, &self.failures, Lifecycle::Initialize).await
            }
            opened => opened,
        };
        let connection = opened.map_err(|failed| failed.failed)?;
        self.is_legacy.store(connection.is_legacy(), Ordering::Relaxed);
        Ok(Arc::new(connection))
    }
}
