//! What a server may ask of this program: a ping, and form input of a person for a call in flight. And
//! how its notifications find their call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, ServerNotification,
    ServerRequest,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::connection::ELICITATION;
use crate::base::json_schema;
use crate::gateway::{AttemptProgress, InputReply};

/// Most questions of a call that wait for their turn. More are declined.
const MAX_QUESTIONS: usize = 8;

/// The client that a server sees.
#[derive(Debug)]
pub(super) struct McpClient {
    calls: Arc<InFlightCalls>,
    /// The protocol version of its `initialize`.
    version: ProtocolVersion,
}

impl McpClient {
    pub(super) fn new(calls: Arc<InFlightCalls>, version: ProtocolVersion) -> Self {
        Self { calls, version }
    }

    async fn elicit(&self, params: &Value, context: &RequestContext<RoleClient>) -> ElicitResult {
        let Some(form) = Form::read(params) else {
            return self.calls.decline("nobody here opens an address");
        };
        let call = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => self.calls.question_queue_of(id),
            _ => self.calls.latest_question_queue(),
        };
        let Some(call) = call else { return self.calls.decline("no call is in flight") };
        let (reply, answer) = oneshot::channel();
        if call.try_send(FormQuestion { form, reply }).is_err() {
            return self.calls.decline("too many questions wait");
        }
        tokio::select! {
            // The call has ended if its end of the channel is gone.
            answer = answer => elicit_result(answer.unwrap_or(InputReply::Cancel)),
            () = context.ct.cancelled() => elicit_result(InputReply::Cancel),
        }
    }
}

/// What a server asks a person, in a form.
pub(super) struct Form {
    pub(super) text: String,
    /// The JSON schema of the answer.
    pub(super) schema: Value,
}

impl Form {
    /// Reads the parameters of the request; `None`: it is no form. They are read as JSON, because libraries
    /// write schemas that the types of rmcp refuse: optional fields, `1.0` as a bound, formats of their own.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let text = params.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = json_schema::of_object(params.get("requestedSchema")?).ok()?;
        Some(Self { text, schema })
    }
}

/// The answer of a person as the protocol has it.
pub(super) fn elicit_result(reply: InputReply) -> ElicitResult {
    match reply {
        InputReply::Accept(content) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        InputReply::Decline => ElicitResult::new(ElicitationAction::Decline),
        InputReply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

// `ClientHandler` is not used: its default for `roots/list` is an empty list, and not an error.
impl Service<RoleClient> for McpClient {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ElicitRequest(request) => {
                let params = serde_json::to_value(request.params).unwrap_or_default();
                Ok(ClientResult::ElicitResult(self.elicit(&params, &context).await))
            }
            ServerRequest::CustomRequest(request) if request.method == ELICITATION => {
                let params = request.params.unwrap_or_default();
                Ok(ClientResult::ElicitResult(self.elicit(&params, &context).await))
            }
            _ => {
                let text = "roundtable offers elicitation with forms, and nothing else";
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
            }
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        if let ServerNotification::ProgressNotification(progress) = notification {
            self.calls.progress(progress.params);
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        let capabilities = ClientCapabilities::builder().enable_elicitation_with(form).build();
        let name = Implementation::new("roundtable", env!("CARGO_PKG_VERSION"));
        // `server/discover` names its own version.
        ClientConfig::new(capabilities, name).with_protocol_version(self.version.clone())
    }
}

/// Something that a server asks a person.
pub(super) struct FormQuestion {
    pub(super) form: Form,
    /// Receives the answer; closed if the server does not wait for it any more.
    pub(super) reply: oneshot::Sender<InputReply>,
}

/// The calls of a connection that wait for their result, in the order of their start.
#[derive(Debug, Default)]
pub(super) struct InFlightCalls {
    calls: Mutex<Vec<CallSeat>>,
    next_number: AtomicU64,
    declined: AtomicU64,
}

/// Where the messages about a call go.
#[derive(Debug)]
struct CallSeat {
    number: u64,
    /// Its request and its progress token, once it was sent.
    sent: Option<(RequestId, ProgressToken)>,
    progress: watch::Sender<AttemptProgress>,
    questions: mpsc::Sender<FormQuestion>,
}

/// The other end of a [`CallSeat`]. Dropping it ends the call.
pub(super) struct CallGuest {
    calls: Arc<InFlightCalls>,
    number: u64,
    /// How far the call is. Only the last one is kept.
    pub(super) progress: watch::Receiver<AttemptProgress>,
    pub(super) questions: mpsc::Receiver<FormQuestion>,
}

impl InFlightCalls {
    /// Adds a call. It is added before it is sent, so that the first message about it finds it.
    pub(super) fn enter(self: &Arc<Self>) -> CallGuest {
        let (progress, progress_of_call) = watch::channel(AttemptProgress::default());
        let (questions, questions_of_call) = mpsc::channel(MAX_QUESTIONS);
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.lock().push(CallSeat { number, sent: None, progress, questions });
        CallGuest {
            calls: Arc::clone(self),
            number,
            progress: progress_of_call,
            questions: questions_of_call,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CallSeat>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn question_queue_of(&self, id: &RequestId) -> Option<mpsc::Sender<FormQuestion>> {
        let calls = self.lock();
        let is_its = |call: &&CallSeat| call.sent.as_ref().is_some_and(|(of, _)| of == id);
        calls.iter().find(is_its).map(|call| call.questions.clone())
    }

    fn latest_question_queue(&self) -> Option<mpsc::Sender<FormQuestion>> {
        self.lock().last().map(|call| call.questions.clone())
    }

    fn progress(&self, params: ProgressNotificationParam) {
        let calls = self.lock();
        let is_its = |call: &&CallSeat| {
            call.sent.as_ref().is_some_and(|(_, token)| *token == params.progress_token)
        };
        let Some(call) = calls.iter().find(is_its) else { return };
        let text = params.message.unwrap_or_default();
        let progress = AttemptProgress { text, done: params.progress, total: params.total };
        // rmcp handles each notification in a task of its own, so they may come in another order.
        call.progress.send_if_modified(|last| {
            let is_newer = progress.done >= last.done;
            if is_newer {
                *last = progress;
            }
            is_newer
        });
    }

    /// Declines a question that no person is asked.
    pub(super) fn decline(&self, why: &str) -> ElicitResult {
        let count = self.declined.fetch_add(1, Ordering::Relaxed) + 1;
        // A server may ask without end, so this is no line of an ordinary log.
        tracing::debug!(count, why, "declined what an MCP server asked");
        ElicitResult::new(ElicitationAction::Decline)
    }
}

impl CallGuest {
    /// The call was sent with this id and progress token.
    pub(super) fn sent(&self, id: RequestId, token: ProgressToken) {
        let mut calls = self.calls.lock();
        if let Some(call) = calls.iter_mut().find(|call| call.number == self.number) {
            call.sent = Some((id, token));
        }
    }
}

impl Drop for CallGuest {
    fn drop(&mut self) {
        self.calls.lock().retain(|call| call.number != self.number);
    }
}
