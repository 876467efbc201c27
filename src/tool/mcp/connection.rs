//! A connection to an MCP server: how it is opened, and the requests over it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CancelledNotification, CancelledNotificationParam, ClientRequest, ErrorCode,
    ErrorData, InputResponses, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use rmcp::transport::DynamicTransportError;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};

use super::OfferedTool;
use super::client::{CallGuest, Form, FormQuestion, InFlightCalls, McpClient, elicit_result};
use super::handshake::{self, HandshakeFailed, Lifecycle};
use super::http::{self, HttpAddress};
use super::results::{add_tools, tool_page};
use super::stdio;
use crate::gateway::{AttemptHost, AttemptProgress, InputRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::json_rpc;
use crate::tool::link::{LinkFailures, LinkGuard, ProgramLink};
use crate::tool::program::LinkedProgram;

/// Most tools that are listed.
const MAX_TOOLS: usize = 1_000;
/// Most pages of a list.
const MAX_PAGES: usize = 50;
/// Most times that a server may answer one call with questions.
const MAX_ROUNDS: u32 = 10;
/// Wait before a call is sent again because its server asks for that and for nothing else.
const ROUND_WAIT: Duration = Duration::from_millis(250);

/// How long a program may take to answer `server/discover` before it is sent `initialize` too: some that
/// are older are silent at a request that they do not know. Its first answer counts, however late.
const PROBE: Duration = Duration::from_secs(10);
/// The request of a server for the input of a person.
pub(super) const ELICITATION: &str = "elicitation/create";

/// How a server is reached.
pub(super) enum ServerWay {
    Program(LinkedProgram),
    Address(HttpAddress),
}

/// An open connection. Dropping it closes it; a program is killed then.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    link: Arc<ProgramLink>,
    calls: Arc<InFlightCalls>,
    failures: Arc<LinkFailures>,
    /// Whether the server may be given time to end by itself.
    is_program: bool,
    /// Whether its tools were listed over this connection.
    is_listed: AtomicBool,
    // Dropped in this order: first what rmcp does at the end, then what is left is killed.
    _service: RunningService<RoleClient, McpClient>,
    _guard: LinkGuard,
}

/// Why a connection is not open.
pub(super) struct OpenFailed {
    pub(super) failed: Box<AttemptFailed>,
    /// Whether a program ended when it was asked which protocol versions it speaks.
    pub(super) ended_at_discovery: bool,
}

impl From<Box<AttemptFailed>> for OpenFailed {
    fn from(failed: Box<AttemptFailed>) -> Self {
        Self { failed, ended_at_discovery: false }
    }
}

impl Connection {
    /// Opens a connection. `lifecycle`: what is known of the protocol version that the server speaks.
    pub(super) async fn open(
        way: &ServerWay,
        failures: &Arc<LinkFailures>,
        lifecycle: Lifecycle,
    ) -> Result<Self, OpenFailed> {
        let link = ProgramLink::new();
        // If this future is dropped, this closes the link and so ends the server.
        let guard = LinkGuard { link: Arc::clone(&link), failures: Arc::clone(failures) };
        let calls = Arc::<InFlightCalls>::default();
        let version = match &lifecycle {
            Lifecycle::Version(version) => version.clone(),
            _ => ProtocolVersion::LATEST_WITH_INITIALIZE,
        };
        let client = McpClient::new(Arc::clone(&calls), version);
        let is_program = matches!(way, ServerWay::Program(_));
        let opened = match way {
            ServerWay::Program(program) => {
                let transport = stdio::start(program, &link, failures).await?;
                handshake::open(client, transport, lifecycle, Some(PROBE)).await
            }
            ServerWay::Address(address) => {
                let transport = address.connect(&link, failures);
                handshake::open(client, transport, lifecycle, None).await
            }
        };
        match opened {
            Ok(service) => Ok(Self {
                peer: service.peer().clone(),
                link,
                calls,
                failures: Arc::clone(failures),
                is_program,
                is_listed: AtomicBool::new(false),
                _service: service,
                _guard: guard,
            }),
            Err(error) => {
                let failed = link.failure();
                let failed = failed.unwrap_or_else(|| not_opened(failures, &link, &error));
                let ended_at_discovery = is_program
                    && failed.class == FailureClass::Tool
                    && matches!(error, HandshakeFailed::EndedAtDiscovery);
                Err(OpenFailed { failed, ended_at_discovery })
            }
        }
    }

    /// Whether a request can be sent over it.
    pub(super) fn is_usable(&self) -> bool {
        !self.link.is_over() && !self.peer.is_transport_closed()
    }

    /// Whether the server needs `initialize`.
    pub(super) fn is_legacy(&self) -> bool {
        self.peer.peer_info().is_none_or(|info| info.protocol_version.has_initialize())
    }

    /// Closes it because the run has ended.
    pub(super) fn end(&self) {
        match self.is_program {
            true => self.link.end(),
            false => self.link.close(self.failures.ended()),
        }
    }

    /// Whether a call of a tool with headers of its own needs the list first: rmcp takes the names of
    /// the headers from it.
    pub(super) fn needs_list(&self) -> bool {
        !self.is_program && !self.is_legacy() && !self.is_listed.load(Ordering::Relaxed)
    }

    /// The tools that the server offers, in its order.
    pub(super) async fn list(&self) -> Result<Vec<OfferedTool>, Box<AttemptFailed>> {
        let (mut tools, mut cursors) = (Vec::new(), Vec::new());
        for _ in 0..MAX_PAGES {
            let cursor = cursors.last().cloned();
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest::with_param(params);
            let mut sent = self.send(ClientRequest::ListToolsRequest(request)).await?;
            let result = sent.response(&self.link).await.map_err(|error| self.failed(error))?;
            let page = tool_page(result, &self.failures)?;
            add_tools(&mut tools, page.tools, MAX_TOOLS);
            match page.cursor {
                Some(next) if tools.len() < MAX_TOOLS && !cursors.contains(&next) => {
                    cursors.push(next);
                }
                _ => break,
            }
        }
        self.is_listed.store(true, Ordering::Relaxed);
        Ok(tools)
    }

    /// Sends a call, and answers its questions.
    pub(super) async fn call(
        &self,
        mut call: CallToolRequest,
        host: &dyn AttemptHost,
    ) -> Result<Value, Box<AttemptFailed>> {
        for _ in 0..MAX_ROUNDS {
            let request = ClientRequest::CallToolRequest(call.clone());
            let mut result = self.exchange(request, host).await?;
            if result.get("resultType").is_none_or(|kind| kind != "input_required") {
                return Ok(result);
            }
            let state = result.get("requestState").and_then(Value::as_str);
            call.params.request_state = state.map(str::to_owned);
            let requests = result.get_mut("inputRequests").map(Value::take);
            let requests = match requests {
                Some(Value::Object(requests)) => requests,
                _ => Map::new(),
            };
            call.params.input_responses = self.answer(requests, host).await?;
            if call.params.input_responses.is_none() {
                tokio::time::sleep(ROUND_WAIT).await;
            }
        }
        let what = format!("needed input {MAX_ROUNDS} times in one call");
        Err(self.failures.failure(FailureClass::BadResponse, &what, "Fix the server."))
    }

    /// The answers to the questions that a call was answered with, by their keys; `None`: there is no
    /// question.
    async fn answer(
        &self,
        requests: Map<String, Value>,
        host: &dyn AttemptHost,
    ) -> Result<Option<InputResponses>, Box<AttemptFailed>> {
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            if request.get("method").is_none_or(|method| method != ELICITATION) {
                let what = "asks for what roundtable does not offer (sampling or roots)";
                let advice = "Use a tool that works without it.";
                return Err(self.failures.failure(FailureClass::Tool, what, advice));
            }
            let answer = match request.get("params").and_then(Form::read) {
                Some(Form { text, schema }) => {
                    let from = self.failures.name().to_owned();
                    elicit_result(host.ask(InputRequest { from, text, schema }).await)
                }
                None => self.calls.decline("nobody here opens an address"),
            };
            answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        Ok((!answers.is_empty()).then_some(answers))
    }

    /// Sends a call and waits for its response; meanwhile its host gets progress and questions.
    async fn exchange(
        &self,
        request: ClientRequest,
        host: &dyn AttemptHost,
    ) -> Result<Value, Box<AttemptFailed>> {
        let mut guest = self.calls.enter();
        let mut sent = self.send(request).await?;
        if let Some(handle) = &sent.handle {
            guest.sent(handle.id.clone(), handle.progress_token.clone());
        }
        let CallGuest { progress, questions, .. } = &mut guest;
        let response = tokio::select! {
            biased;
            response = sent.response(&self.link) => response,
            never = self.ask_all(questions, host) => match never {},
            never = publish_all(progress, host) => match never {},
        };
        if progress.has_changed().unwrap_or(false) {
            host.progress(progress.borrow_and_update().clone());
        }
        response.map_err(|error| self.failed(error))
    }

    /// Asks what the server wants to know, one question after the other.
    async fn ask_all(
        &self,
        questions: &mut mpsc::Receiver<FormQuestion>,
        host: &dyn AttemptHost,
    ) -> Infallible {
        while let Some(question) = questions.recv().await {
            let FormQuestion { form: Form { text, schema }, mut reply } = question;
            let from = self.failures.name().to_owned();
            tokio::select! {
                answer = host.ask(InputRequest { from, text, schema }) => {
                    let _ = reply.send(answer);
                }
                // The server does not wait for the answer any more.
                () = reply.closed() => {}
            }
        }
        std::future::pending().await
    }

    async fn send(&self, request: ClientRequest) -> Result<SentRequest, Box<AttemptFailed>> {
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = sent.await.map_err(|error| self.failed(error))?;
        Ok(SentRequest { handle: Some(handle) })
    }

    fn failed(&self, error: ServiceError) -> Box<AttemptFailed> {
        if let Some(failed) = self.link.failure() {
            return failed;
        }
        match error {
            ServiceError::McpError(error) => rpc_error(&self.failures, &error),
            ServiceError::TransportSend(error) => not_sent(&self.failures, &self.link, &error),
            ServiceError::TransportClosed => cut_off(&self.failures, &self.link),
            _ => not_as_mcp_says(&self.failures, "does not answer a request as MCP says"),
        }
    }
}

/// Publishes how far a call is.
async fn publish_all(
    progress: &mut watch::Receiver<AttemptProgress>,
    host: &dyn AttemptHost,
) -> Infallible {
    while progress.changed().await.is_ok() {
        host.progress(progress.borrow_and_update().clone());
    }
    std::future::pending().await
}

/// A request that was sent. Dropping it before its response cancels it.
struct SentRequest {
    /// `None` once there is a response.
    handle: Option<RequestHandle<RoleClient>>,
}

impl SentRequest {
    /// The result as JSON: the types of rmcp know less than servers send.
    async fn response(&mut self, link: &ProgramLink) -> Result<Value, ServiceError> {
        let Some(handle) = &mut self.handle else { return Err(ServiceError::TransportClosed) };
        let response = tokio::select! {
            biased;
            response = &mut handle.rx => response.unwrap_or(Err(ServiceError::TransportClosed)),
            _ = link.closed() => Err(ServiceError::TransportClosed),
        };
        self.handle = None;
        response.map(|result| serde_json::to_value(result).unwrap_or_default())
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        let Some(RequestHandle { peer, id, .. }) = self.handle.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), None);
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}

/// The failure of a handshake.
fn not_opened(
    failures: &LinkFailures,
    link: &ProgramLink,
    error: &HandshakeFailed,
) -> Box<AttemptFailed> {
    match error {
        HandshakeFailed::NotSent(error) => not_sent(failures, link, error),
        HandshakeFailed::EndedAtDiscovery | HandshakeFailed::Closed => cut_off(failures, link),
        HandshakeFailed::Refused(error) => {
            let mut failed = rpc_error(failures, error);
            // The caller cannot change it.
            failed.class = FailureClass::Tool;
            failed
        }
        HandshakeFailed::Versions(versions) => {
            let versions: Vec<_> = versions.iter().map(ProtocolVersion::as_str).collect();
            let versions = failures.quoted(&versions.join(", "));
            let what = format!("speaks no protocol version that roundtable speaks: {versions}");
            failures.failure(FailureClass::Tool, &what, "Use another version of the server.")
        }
        HandshakeFailed::NoVersion => {
            not_as_mcp_says(failures, "answered the handshake without a protocol version")
        }
    }
}

/// The failure of a server that answers in a way that the protocol does not have.
fn not_as_mcp_says(failures: &LinkFailures, what: &str) -> Box<AttemptFailed> {
    failures.failure(FailureClass::BadResponse, what, "Is it an MCP server?")
}

/// The failure of a request that could not be sent.
fn not_sent(
    failures: &LinkFailures,
    link: &ProgramLink,
    error: &DynamicTransportError,
) -> Box<AttemptFailed> {
    http::failure_of(error, failures).unwrap_or_else(|| cut_off(failures, link))
}

/// The failure of a request whose connection was closed before the response.
fn cut_off(failures: &LinkFailures, link: &ProgramLink) -> Box<AttemptFailed> {
    link.noted().unwrap_or_else(|| {
        let what = "closed the connection before its answer was complete";
        failures.failure(FailureClass::Reset, what, "Try again.")
    })
}

/// The failure of a request that the server answered with an error.
fn rpc_error(failures: &LinkFailures, error: &ErrorData) -> Box<AttemptFailed> {
    let (class, advice) = match error.code {
        ErrorCode::INVALID_PARAMS => (FailureClass::Rejected, "Correct the arguments of the call."),
        ErrorCode::METHOD_NOT_FOUND => {
            (FailureClass::Rejected, "Call a tool that the server lists.")
        }
        // The library of the server can ask a person only in the older versions.
        _ if error.message.contains(ELICITATION) => {
            (FailureClass::Tool, "Set protocol_version = \"2025-11-25\" in its table of [mcp].")
        }
        _ => (FailureClass::Tool, "Look for it in the log of the server."),
    };
    let text = json_rpc::error_text(&error.message, error.data.as_ref());
    let what = format!("returned error {}: {}", error.code.0, failures.quoted(&text));
    failures.failure(class, &what, advice)
}
