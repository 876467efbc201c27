//! An MCP server that is a program: rmcp's transport over the lines of [`crate::tool::program`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, NumberOrString, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;

use super::results::{Asked, read_message};
use crate::log::event::AttemptFailed;
use crate::net::json_rpc::read_line;
use crate::tool::link::{LinkFailures, ProgramLink};
use crate::tool::program;
use crate::tool::program::{LineNotSent, LineReader, LineWriter, LinkBreak, LinkedProgram};

/// Starts the program of a server. It is killed when the link is closed.
pub(super) async fn start(
    server: &LinkedProgram,
    link: &Arc<ProgramLink>,
    failures: &Arc<LinkFailures>,
) -> Result<LineTransport, Box<AttemptFailed>> {
    let (stdout, messages) = program::start(server, link, failures).await?;
    let (read, pending) = (VecDeque::new(), HashMap::new());
    Ok(LineTransport { stdout, messages, read, pending, link: Arc::clone(link) })
}

/// Messages to and from a program.
pub(super) struct LineTransport {
    stdout: LineReader,
    messages: LineWriter,
    /// Messages of the last line that are not passed on yet.
    read: VecDeque<ServerJsonRpcMessage>,
    /// What the requests ask for whose response has not arrived. Any other response is ignored.
    pending: HashMap<RequestId, Asked>,
    link: Arc<ProgramLink>,
}

impl LineTransport {
    fn queue(&mut self, message: &ClientJsonRpcMessage) -> Result<(), LineNotSent> {
        match message {
            JsonRpcMessage::Request(request) => {
                self.pending.insert(request.id.clone(), Asked::by(&request.request));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.remove(id);
                }
            }
            _ => {}
        }
        let mut line = serde_json::to_vec(message).map_err(|_| LineNotSent)?;
        line.push(b'\n');
        self.messages.send(line)
    }

    /// The message of a line, if it is one that somebody waits for.
    fn accept(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => return Some(message),
        };
        let is_expected = match id {
            Some(id) => {
                let is_pending = self.pending.remove(id).is_some();
                is_pending || self.pending.remove(&as_number(id)?).is_some()
            }
            None => !self.pending.is_empty(),
        };
        if !is_expected {
            tracing::debug!(?id, "ignored a response that nobody waits for");
        }
        is_expected.then_some(message)
    }
}

/// The id as a number: some servers send numbers back as strings.
fn as_number(id: &RequestId) -> Option<RequestId> {
    match id {
        NumberOrString::String(text) => text.parse().ok().map(NumberOrString::Number),
        NumberOrString::Number(_) => None,
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = LineNotSent;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), LineNotSent>> + Send + 'static {
        std::future::ready(self.queue(&message))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(message) = self.read.pop_front() {
                if let Some(message) = self.accept(message) {
                    return Some(message);
                }
            }
            let pending = &self.pending;
            let asked = |id: &RequestId| {
                let asked = pending.get(id).or_else(|| pending.get(&as_number(id)?));
                asked.copied().unwrap_or(Asked::Other)
            };
            let strict = |line: &[u8]| read_message(line, asked).ok();
            match self.stdout.next(|line| read_line(line, strict)).await {
                Ok(messages) => self.read.extend(messages),
                Err(why) => {
                    self.stdout.break_off(why);
                    self.link.closed().await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), LineNotSent> {
        self.stdout.break_off(LinkBreak::Closed);
        Ok(())
    }
}
