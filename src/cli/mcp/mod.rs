//! `roundtable mcp`: an MCP server over standard input and output. An MCP client, such as an editor or a
//! coding agent, lists scenarios, runs them, and reads runs. What a client may do is decided by the
//! operator who starts the server, never by the client.

mod play;
mod reading;
mod tools;

use std::sync::Arc;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientJsonRpcMessage, ClientRequest, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams, JsonRpcMessage,
    JsonRpcRequest, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    ServerJsonRpcMessage,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, model};

use self::play::ServerState;
use super::args::Global;
use super::exit::{Done, Exit};
use super::stdio::StdioService;
use super::streams::refuse;
use crate::base::refused::Refused;
use crate::base::visible::{REASON_CHARS, visible_within};

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

/// Runs `roundtable mcp` until the client closes standard input, or a signal.
pub async fn serve(args: McpArgs, global: &Global) -> Done {
    let mut service = StdioService::open(global, HOW)?;
    let state = match ServerState::new(args, &service) {
        Ok(state) => Arc::new(state),
        Err(why) => return Err(refuse(&why, Exit::Usage)),
    };
    let (input, output) = service.connect();
    let transport = ClientTransport(AsyncRwTransport::<RoleServer, _, _>::new(input, output));
    let mut broken = Box::pin(service.broken());
    let served = tokio::select! {
        served = serve_server(McpService(state), transport) => Some(served),
        () = &mut broken => None,
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
            let cancel = running.cancellation_token();
            let cancelling = tokio::spawn(async move {
                broken.await;
                cancel.cancel();
            });
            if let Err(error) = running.waiting().await {
                tracing::warn!("the service has failed: {error}");
            }
            cancelling.abort();
        }
    }
    service.end_runs().await;
    Ok(service.finish(exit).await)
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

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unreadable(&request))
    }
}

/// Why a request is none that is known here: its method, or its parameters.
fn unreadable(request: &CustomRequest) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let params = params.clone().unwrap_or_default();
    let why = match method.as_str() {
        "initialize" => serde_json::from_value::<InitializeRequestParams>(params).err(),
        "tools/call" => serde_json::from_value::<CallToolRequestParams>(params).err(),
        "tools/list" => serde_json::from_value::<PaginatedRequestParams>(params).err(),
        _ => None,
    };
    let method = visible_within(method, REASON_CHARS);
    match why {
        Some(why) => {
            let why = visible_within(&why.to_string(), REASON_CHARS);
            ErrorData::invalid_params(format!("the params of {method} cannot be read: {why}"), None)
        }
        None => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
    }
}

/// The messages of a client. rmcp takes an `initialize` that it cannot read for a request of a version
/// without one, and says so; here it is refused with what is wrong in it.
struct ClientTransport<T>(T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for ClientTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.0.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.0.receive().await? {
                JsonRpcMessage::Request(JsonRpcRequest {
                    id,
                    request: ClientRequest::CustomRequest(request),
                    ..
                }) if request.method == "initialize" => {
                    let refusal = ServerJsonRpcMessage::error(unreadable(&request), Some(id));
                    self.0.send(refusal).await.ok()?;
                }
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.0.close().await
    }
}

/// The arguments of a tool. One that is `null` is left out: models and clients write it for each optional one.
fn arguments<T: serde::de::DeserializeOwned>(
    tool: &str,
    given: Option<model::JsonObject>,
) -> Result<T, ErrorData> {
    let mut given = given.unwrap_or_default();
    given.retain(|_, value| !value.is_null());
    serde_json::from_value(given.into()).map_err(|error| {
        let why = visible_within(&error.to_string(), REASON_CHARS);
        ErrorData::invalid_params(format!("arguments of {tool}: {why}"), None)
    })
}
