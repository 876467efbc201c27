//! The client of MCP servers: starts them or connects, lists their tools, calls them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Environment, NotReady};
use crate::gateway::AttemptHost;
use crate::log::event::kind::{AttemptFailed, FailureClass};
use crate::log::event::tool::OfferedTool;
use crate::net::Http;
use crate::scenario::tools::mcp::McpServerSpec;

/// An MCP server of one run. It is started or connected to by the first attempt that needs it, and again
/// by the next one after it has died.
pub struct McpServer {
    spec: Arc<McpServerSpec>,
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
    /// A server that is not started yet, its variables looked up in `env`.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn new(
        spec: Arc<McpServerSpec>,
        http: Http,
        env: Environment<'_>,
    ) -> Result<Arc<Self>, Vec<NotReady>> {
        let _ = (http, env);
        Ok(Arc::new(Self { spec }))
    }

    /// The tools that it offers, in its order.
    ///
    /// # Errors
    /// Why they are not known.
    pub async fn list(
        &self,
        host: &dyn AttemptHost,
    ) -> Result<Vec<OfferedTool>, Box<AttemptFailed>> {
        let _ = host;
        Err(AttemptFailed::new(FailureClass::Tool, self.spec.name.clone()))
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
        let _ = (tool, args, host);
        Err(AttemptFailed::new(FailureClass::Tool, self.spec.name.clone()))
    }

    /// The run has ended: the server ends.
    pub fn end(&self) {}
}
