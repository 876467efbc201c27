//! The tools of MCP servers. The tools of one server share it, and it ends with the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::mcp::{McpResult, McpServer};
use super::{Environment, NotReady};
use crate::base::sha256_of_text;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::AttemptFailed;
use crate::net::Http;
use crate::scenario::tools::mcp::{McpServerSpec, McpSpec, McpTransport, split_name};

/// Makes the tools of the MCP servers of one run.
pub(crate) struct ServerTools {
    made: MadeServers,
    /// The servers of the configuration, by name.
    configured: BTreeMap<String, Arc<McpServerSpec>>,
}

impl ServerTools {
    /// Servers that are reached through these clients: one for addresses that may be on a local network.
    pub fn new(anywhere: Http, internet: Http) -> Self {
        Self { made: MadeServers::new(anywhere, internet), configured: BTreeMap::new() }
    }

    /// The same, with the servers of the configuration.
    pub fn with_configured(mut self, servers: &BTreeMap<String, Arc<McpServerSpec>>) -> Self {
        self.configured.clone_from(servers);
        self
    }

    /// The tools of a server, or one of them. The server is not started yet.
    pub fn make(
        &self,
        spec: &McpSpec,
        env: Environment<'_>,
    ) -> Result<Box<dyn Tool>, Vec<NotReady>> {
        let name = spec.server.name.clone();
        let server = match (spec.server.is_configured(), self.configured.get(&name)) {
            (false, _) => &spec.server,
            (true, Some(found)) => found,
            (true, None) => {
                let why = format!(
                    "the configuration has no MCP server {name}: add [mcp.{name}] to it (roundtable \
                     config shows where it is), or give the scenario's a command or a url"
                );
                return Err(vec![NotReady::Server { why }]);
            }
        };
        self.made.tool(server, spec.tool.clone(), env)
    }
}

/// The servers that were made so far, by name.
struct MadeServers {
    anywhere: Http,
    internet: Http,
    servers: Mutex<BTreeMap<String, Arc<McpServer>>>,
}

impl MadeServers {
    pub fn new(anywhere: Http, internet: Http) -> Self {
        Self { anywhere, internet, servers: Mutex::default() }
    }

    /// All tools of a server, or one of them.
    pub fn tool(
        &self,
        spec: &Arc<McpServerSpec>,
        tool: Option<String>,
        env: Environment<'_>,
    ) -> Result<Box<dyn Tool>, Vec<NotReady>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match servers.get(&spec.name) {
            Some(server) => Arc::clone(server),
            None => {
                let client = match &spec.transport {
                    McpTransport::Url(url) if !url.allow_private => &self.internet,
                    _ => &self.anywhere,
                };
                let server = McpServer::new(Arc::clone(spec), client.clone(), env)?;
                servers.insert(spec.name.clone(), Arc::clone(&server));
                server
            }
        };
        // Which server it is, without its variables and headers: one that gets another value is the same
        // server, and the operator is shown what changed.
        let reached = match &spec.transport {
            McpTransport::Command(command) => {
                format!("{:?}", (&command.program, &command.args))
            }
            McpTransport::Url(url) => format!("{:?}", url.url),
            McpTransport::Configured => String::new(),
        };
        let identity = sha256_of_text(&reached);
        Ok(Box::new(McpTool { server, tool, identity }))
    }
}

/// The tools of a server, or one of them.
struct McpTool {
    server: Arc<McpServer>,
    /// The server's name of the only tool.
    tool: Option<String>,
    /// A digest of how the server is reached.
    identity: String,
}

impl McpTool {
    async fn call(&self, request: ToolRequest<'_>) -> Result<Arc<Value>, Box<AttemptFailed>> {
        let (tool, is_data) = match (&self.tool, split_name(request.tool)) {
            (Some(tool), _) => (tool.as_str(), true),
            (None, Some((_, tool))) => (tool, false),
            (None, None) => {
                let tools = self.server.list(request.host).await?;
                return Ok(Arc::new(json!({ "server": self.identity, "tools": tools })));
            }
        };
        let McpResult { text, structured } =
            self.server.call(tool, request.args, request.host).await?;
        Ok(Arc::new(match (is_data, structured) {
            // A model reads the texts.
            (false, _) if !text.trim().is_empty() => Value::String(text),
            (_, Some(structured)) => structured,
            // A worker's result is an object, which a server without structured results sends as text.
            (true, None) => serde_json::from_str(&text)
                .ok()
                .filter(Value::is_object)
                .unwrap_or(Value::String(text)),
            (false, None) => Value::String(text),
        }))
    }
}

impl Tool for McpTool {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(self.call(request))
    }

    fn end(&self) {
        self.server.end();
    }
}
