//! What a server says, in the words of either API: a test of what both do is one table over both.

use std::fmt::Display;

use roundtable::log::event::{AttemptFailed, ChatMessage, MessageRole, Reply};
use roundtable::model::{ChatModel, ChatRequest};
use roundtable::scenario::spec::tool::ToolOffer;
use serde_json::{Value, json};

use super::messages;
use super::messages::{answered, anthropic, asking, closing};
use super::wire::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Chat,
    Messages,
}

pub const APIS: [Api; 2] = [Api::Chat, Api::Messages];

impl Api {
    pub fn model(self, server: &Server, stream: bool) -> Box<dyn ChatModel> {
        match (self, stream) {
            (Self::Chat, true) => Box::new(server.streaming()),
            (Self::Chat, false) => Box::new(server.model()),
            (Self::Messages, _) => Box::new(anthropic(server, stream)),
        }
    }

    /// What a stream says before its first piece.
    pub fn begin(self) -> String {
        match self {
            Self::Chat => "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n".to_owned(),
            Self::Messages => {
                let block = json!({ "type": "text", "text": "" });
                messages::message_start() + &messages::block_start(0, &block)
            }
        }
    }

    /// The event that brings a piece of text.
    pub fn piece(self, text: &str) -> String {
        self.literal_piece(&Value::from(text).to_string())
    }

    /// The same of a text that is JSON already, quotes and all.
    pub fn literal_piece(self, text: &str) -> String {
        match self {
            Self::Chat => format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
            ),
            Self::Messages => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n"
            ),
        }
    }

    /// A stream that says this text and does not end.
    pub fn saying(self, text: &str) -> String {
        match self {
            Self::Chat => piece(text),
            Self::Messages => messages::saying(text),
        }
    }

    /// The number of the event after [`Self::saying`].
    pub fn next_event(self) -> usize {
        match self {
            Self::Chat => 2,
            Self::Messages => 5,
        }
    }

    /// The event that announces a call.
    pub fn call_start(self, id: &str, name: &str) -> String {
        match self {
            Self::Chat => {
                calls_delta(json!([{ "index": 0, "id": id, "function": { "name": name } }]))
            }
            Self::Messages => {
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                messages::block_start(1, &block)
            }
        }
    }

    /// The event that brings a piece of the arguments of that call.
    pub fn call_piece(self, arguments: &str) -> String {
        match self {
            Self::Chat => {
                calls_delta(json!([{ "index": 0, "function": { "arguments": arguments } }]))
            }
            Self::Messages => {
                let delta = json!({ "type": "input_json_delta", "partial_json": arguments });
                messages::block_delta(1, &delta)
            }
        }
    }

    pub fn end(self) -> String {
        match self {
            Self::Chat => ENDING.to_owned(),
            Self::Messages => messages::ending("end_turn"),
        }
    }

    /// The reason that [`Self::end`] gives, as [`Self::hello`] does.
    pub fn finish(self) -> Option<&'static str> {
        match self {
            Self::Chat => Some("stop"),
            Self::Messages => Some("end_turn"),
        }
    }

    /// A whole answer that says `hello`.
    pub fn hello(self) -> &'static str {
        match self {
            Self::Chat => HELLO,
            Self::Messages => messages::MESSAGE,
        }
    }

    pub fn error(self, kind: &str, message: &str) -> String {
        match self {
            Self::Chat => json!({ "error": { "message": message, "type": kind } }).to_string(),
            Self::Messages => messages::error(kind, message),
        }
    }

    /// The reply of the streaming model to these events, after which the server closes.
    pub async fn streamed(self, events: impl AsRef<[u8]>) -> Result<Reply, AttemptFailed> {
        let server = Server::start().await;
        let bytes = [STREAM_HEAD.as_bytes(), events.as_ref()].concat();
        answered(&server, &*self.model(&server, true), &team(), bytes).await.0
    }

    /// The reply of the model that does not stream to a good answer of this body.
    pub async fn whole(self, body: &str) -> Result<Reply, AttemptFailed> {
        let server = Server::start().await;
        let model = self.model(&server, false);
        answered(&server, &*model, &team(), closing("200 OK", body)).await.0
    }

    /// The failure of the model that does not stream, answered with these bytes.
    pub async fn failure(self, bytes: impl AsRef<[u8]>) -> AttemptFailed {
        let server = Server::start().await;
        let model = self.model(&server, false);
        let failed = answered(&server, &*model, &ask(true), bytes).await.0;
        let failed = failed.expect_err("a failure");
        assert_eq!(failed.partial, None);
        failed
    }

    /// The reply to these events, and every piece that was heard of it.
    pub async fn heard(self, events: &str) -> (Reply, String) {
        let server = Server::start().await;
        let (model, request) = (self.model(&server, true), team());
        let (heard, mut pieces) = Heard::new();
        let (reply, ()) = both(model.chat(&request, &heard), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{STREAM_HEAD}{events}")).await;
        })
        .await;
        drop(heard);
        let mut all = String::new();
        while let Some(piece) = pieces.recv().await {
            all.push_str(&piece);
        }
        (reply.expect("a reply"), all)
    }

    /// The failure of the streaming model at a server that sends this and then the same part without
    /// end, and how many bytes of that were taken.
    pub async fn endless(self, before: &str, part: &str) -> (AttemptFailed, usize) {
        let server = Server::start().await;
        let (model, request) = (self.model(&server, true), team());
        let (failed, sent) = both(model.chat(&request, &Deaf), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{STREAM_HEAD}{before}")).await;
            connection.send_without_end(part.as_bytes()).await
        })
        .await;
        let failed = failed.expect_err("a failure");
        check_text(&failed);
        (*failed, sent)
    }
}

/// The event of a chat completion that brings pieces of calls.
pub fn calls_delta(calls: impl Display) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":{calls}}}}}]}}\n\n")
}

/// A request with tools that can be called.
pub fn team() -> ChatRequest {
    let tools = ["a", "ab", "research", "billing"].into_iter().map(ToolOffer::bare).collect();
    ChatRequest { tools, ..asking(&[ChatMessage::new(MessageRole::User, "Go.")]) }
}

/// A server that keeps its connection, and a model that asks it for streams.
pub struct Kept {
    server: Server,
    model: Box<dyn ChatModel>,
    request: ChatRequest,
    open: Option<Connection>,
}

impl Kept {
    pub async fn new(api: Api) -> Self {
        let server = Server::start().await;
        let model = api.model(&server, true);
        Self { server, model, request: team(), open: None }
    }

    /// The reply to a stream whose bytes are cut here; each part comes as a chunk of its own.
    pub async fn reply(&mut self, stream: &[u8], cuts: impl IntoIterator<Item = usize>) -> Reply {
        let mut bytes = CHUNKED_HEAD.as_bytes().to_vec();
        let mut from = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            if cut > from {
                bytes.extend_from_slice(format!("{:x}\r\n", cut - from).as_bytes());
                bytes.extend_from_slice(&stream[from..cut]);
                bytes.extend_from_slice(b"\r\n");
                from = cut;
            }
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        let (server, open) = (&self.server, self.open.take());
        let (reply, connection) = both(self.model.chat(&self.request, &Deaf), async {
            let mut connection = match open {
                Some(connection) => connection,
                None => server.accept().await,
            };
            connection.request().await;
            connection.send(bytes).await;
            connection
        })
        .await;
        self.open = Some(connection);
        reply.expect("a reply")
    }
}
