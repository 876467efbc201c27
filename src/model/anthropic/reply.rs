//! The content of a reply, from an answer or assembled from the events of a stream: its text, its
//! tool calls, and, if the model was thinking, all blocks in order, to be sent with the next
//! request unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::log::event::{MessageRole, Reply};
use crate::model::client::fields::{
    BadAnswer, Fields, IgnoredFields, MAX_CALLS, NAME_CAP, TokenCounts, ToolCallFault, arguments,
    make_ids_unique, parse_needed, whole_arguments,
};
use crate::model::client::stream::{StreamStep, StreamedContent, end_of_message};
use crate::model::client::{Client, TEXT_CAP};
use crate::model::{ChatRequest, Conversation};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

/// The content of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct MessageContent {
    /// Whether the message has begun.
    pub(crate) has_message: bool,
    pub(crate) blocks: ReplyBlocks,
    /// As the API counts: `prompt` excludes what was read from or written to the cache.
    counts: TokenCounts,
    model: Option<Arc<str>>,
    finish: Option<Arc<str>>,
    end: ReplyEnd,
    ignored: IgnoredFields,
}

impl MessageContent {
    /// Adds a whole message.
    pub(crate) fn add_message(
        &mut self,
        message: &Fields<'_>,
        client: &Client,
    ) -> Result<(), BadAnswer> {
        if message.get("content").is_some_and(|content| content.get().starts_with('"')) {
            self.blocks.add_text(&message.text("content")?);
        } else {
            for block in message.list("content")? {
                let block: Fields<'_> = parse_needed("content", block)?;
                self.blocks.start(None, &block)?;
            }
        }
        self.start(message, client);
        Ok(())
    }

    /// Adds the fields that a message has at its start.
    fn start(&mut self, message: &Fields<'_>, client: &Client) {
        self.has_message = true;
        self.model = message.word("model").map(|name| client.model_name(&name));
        self.count(message);
        self.end(message, client);
    }

    fn count(&mut self, of: &Fields<'_>) {
        let ignored = &mut self.ignored;
        let Some(usage) = of.optional("usage", ignored) else { return };
        let details = usage.optional("output_tokens_details", ignored).unwrap_or_default();
        self.counts = self.counts.updated_with(TokenCounts {
            prompt: usage.count("input_tokens", ignored),
            completion: usage.count("output_tokens", ignored),
            total: usage.count("total_tokens", ignored),
            cached: usage.count("cache_read_input_tokens", ignored),
            cache_written: usage.count("cache_creation_input_tokens", ignored),
            reasoning: details.count("thinking_tokens", ignored),
        });
    }

    /// Takes over why the message ends: the API's word, or the text of the model's refusal.
    fn end(&mut self, of: &Fields<'_>, client: &Client) {
        let details = of.optional("stop_details", &mut self.ignored).unwrap_or_default();
        let (reason, explanation) = (of.word("stop_reason"), details.word("explanation"));
        let reason = reason.filter(|reason| reason != "null");
        if let Some(finish) = client.finish(reason.as_deref(), explanation.as_deref()) {
            (self.end, self.finish) = (end_of_message(reason.as_deref()), Some(finish));
        }
    }
}

impl StreamedContent for MessageContent {
    const NEEDED: &'static str = "a message";
    const FOREIGN: &'static str = "it is not of this API";

    fn add_event(
        &mut self,
        name: &str,
        event: &Fields<'_>,
        _: &ChatRequest,
        client: &Client,
    ) -> Result<Option<StreamStep>, BadAnswer> {
        let kind = event.word("type");
        let kind = kind.as_deref().unwrap_or(name);
        if kind.is_empty() {
            if event.is_empty() {
                return Ok(Some(StreamStep::More));
            }
            if let Some(error) = event.error_without_reply() {
                return Err(BadAnswer::Reported(error));
            }
        }
        match kind {
            "message_start" => {
                let message = event.optional("message", &mut self.ignored);
                self.start(&message.unwrap_or_default(), client);
            }
            // Not of the API, but plain: the whole message in one event.
            "message" => self.add_message(event, client)?,
            "content_block_start" => {
                self.has_message = true;
                if let Some(block) = event.needed::<Fields<'_>>("content_block")? {
                    self.blocks.start(event.index(&mut self.ignored), &block)?;
                }
            }
            "content_block_delta" => {
                self.has_message = true;
                if let Some(delta) = event.needed::<Fields<'_>>("delta")? {
                    self.blocks.append_delta(event.index(&mut self.ignored), &delta)?;
                }
            }
            "message_delta" => {
                self.has_message = true;
                self.count(event);
                if let Some(delta) = event.optional("delta", &mut self.ignored) {
                    self.end(&delta, client);
                }
            }
            "message_stop" => return Ok(Some(StreamStep::Done)),
            "ping" | "content_block_stop" => {}
            _ => {
                self.ignored.add("event");
                return Ok(None);
            }
        }
        Ok(Some(StreamStep::More))
    }

    fn text(&self) -> &str {
        &self.blocks.text
    }

    fn has_needed(&self) -> bool {
        self.has_message
    }

    fn has_begun(&self) -> bool {
        self.blocks.has_begun()
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn exceeded_cap(&self) -> Option<usize> {
        self.blocks.beyond()
    }

    fn done(self, client: &Client, request: &ChatRequest) -> Result<Reply, ToolCallFault> {
        let from_cache = self.counts.cached.unwrap_or_default();
        let cached = from_cache + self.counts.cache_written.unwrap_or_default();
        let prompt = self.counts.prompt.map(|tokens| tokens + cached);
        let said = self.blocks.done(client, &request.messages, self.end)?;
        Ok(Reply {
            tool_calls: said.calls,
            usage: TokenCounts { prompt, ..self.counts }.usage(),
            model: self.model,
            finish: self.finish,
            end: self.end,
            blocks: said.kept,
            ignored: self.ignored.names(),
            ..Reply::from_agent_text(client.without_the_key(&said.text))
        })
    }
}

/// The most bytes of all blocks of a reply, thinking included, which is kept but not shown.
pub const BLOCKS_CAP: usize = 1 << 20;

/// The blocks of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct ReplyBlocks {
    made: Vec<ReplyBlock>,
    /// The text of all text blocks, in the order in which it arrived.
    pub(crate) text: String,
    /// Bytes of the tool calls.
    called: usize,
    /// Bytes of all other blocks.
    other: usize,
}

#[derive(Debug)]
struct ReplyBlock {
    index: i64,
    kind: BlockKind,
    start: Map<String, Value>,
    /// Its text or its thinking.
    text: String,
    /// Its streamed input.
    json: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse,
    Other,
}

impl BlockKind {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("text") => Self::Text,
            Some("thinking") => Self::Thinking,
            Some("redacted_thinking") => Self::RedactedThinking,
            Some("tool_use") => Self::ToolUse,
            _ => Self::Other,
        }
    }

    /// The field that is streamed.
    fn field(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("text"),
            Self::Thinking => Some("thinking"),
            Self::RedactedThinking | Self::ToolUse | Self::Other => None,
        }
    }
}

/// The content of a complete reply.
#[derive(Debug)]
pub(crate) struct ReplyContent {
    pub(crate) text: String,
    pub(crate) calls: Arc<[ToolCall]>,
    /// All blocks, if some of them must be sent back unchanged.
    pub(crate) kept: Option<Arc<Value>>,
}

impl ReplyBlocks {
    /// Starts a block, or adds a complete one. Without an index it is the next one.
    pub(crate) fn start(
        &mut self,
        index: Option<i64>,
        block: &Fields<'_>,
    ) -> Result<(), BadAnswer> {
        let text = match BlockKind::of(block.word("type").as_deref()).field() {
            Some(field) => block.text(field)?.into_owned(),
            None => String::new(),
        };
        self.begin(index, block.to_map(), text);
        Ok(())
    }

    fn begin(&mut self, index: Option<i64>, start: Map<String, Value>, text: String) {
        let kind = BlockKind::of(start.get("type").and_then(Value::as_str));
        match kind {
            BlockKind::Text => {
                self.text.push_str(&text);
                self.other += 32;
            }
            BlockKind::ToolUse => {
                let input = start.get("input").map_or(0, |input| input.to_string().len());
                self.called += id_of(&start).len() + name_of(&start).len() + input;
                self.other += 64;
            }
            // Roughly its size in the log.
            _ => self.other += start.iter().map(|(name, value)| weight(name, value)).sum::<usize>(),
        }
        let next = || self.made.iter().map(|block| block.index.saturating_add(1)).max();
        let index = index.or_else(next).unwrap_or_default();
        self.made.push(ReplyBlock { index, kind, start, text, json: String::new() });
    }

    /// Adds a complete block of text.
    pub(crate) fn add_text(&mut self, text: &str) {
        let start = Map::from_iter([("type".to_owned(), Value::from("text"))]);
        self.begin(None, start, text.to_owned());
    }

    /// Appends to a block, without an index to the last one.
    fn append_delta(&mut self, index: Option<i64>, delta: &Fields<'_>) -> Result<(), BadAnswer> {
        let (text, json) = (delta.text("text")?, arguments(delta, "partial_json")?);
        let (thinking, signature) = (delta.text("thinking")?, delta.text("signature")?);
        let name = match (text.is_empty(), json.is_empty()) {
            (false, _) => "text",
            (_, false) => "tool_use",
            _ if thinking.is_empty() && signature.is_empty() => return Ok(()),
            _ => "thinking",
        };
        let found = match index {
            Some(index) => self.made.iter().rposition(|block| block.index == index),
            None => self.made.len().checked_sub(1),
        };
        let at = found.unwrap_or_else(|| {
            // Some servers do not announce their blocks.
            let start = Map::from_iter([("type".to_owned(), Value::from(name))]);
            self.begin(index, start, String::new());
            self.made.len() - 1
        });
        let Some(block) = self.made.get_mut(at) else { return Ok(()) };
        block.text.push_str(&text);
        self.text.push_str(&text);
        block.json.push_str(&json);
        self.called += json.len();
        block.text.push_str(&thinking);
        if !signature.is_empty() {
            block.start.insert("signature".to_owned(), Value::from(&*signature));
        }
        self.other += thinking.len() + signature.len();
        Ok(())
    }

    /// Whether a text or a call has begun.
    pub(crate) fn has_begun(&self) -> bool {
        !self.text.is_empty() || self.made.iter().any(|block| block.kind == BlockKind::ToolUse)
    }

    /// The cap in bytes that the blocks exceed, if they do.
    pub(crate) fn beyond(&self) -> Option<usize> {
        let said = self.text.len() + self.called;
        if said > TEXT_CAP {
            return Some(TEXT_CAP);
        }
        (said + self.other > BLOCKS_CAP).then_some(BLOCKS_CAP)
    }

    /// The reply's text, its tool calls with unique ids, and the blocks to send back. `end`: how the
    /// reply ended; calls of a reply that is not whole may be cut, and invalid ones are left out.
    pub(crate) fn done(
        self,
        client: &Client,
        before: &Conversation,
        end: ReplyEnd,
    ) -> Result<ReplyContent, ToolCallFault> {
        let mut made = self.made;
        made.sort_by_key(|block| block.index);
        let thought = |block: &ReplyBlock| {
            matches!(block.kind, BlockKind::Thinking | BlockKind::RedactedThinking)
        };
        // A model that paused continues from all that it had, and so does its continuation.
        let continues =
            before.iter().last().is_some_and(|last| last.role == MessageRole::Assistant);
        let is_part = (end == ReplyEnd::Paused || continues) && !made.is_empty();
        let keeps = is_part || made.iter().any(thought);
        let calls = match calls_of(&made, client, before) {
            Err(why) if end.is_whole() => return Err(why),
            calls => calls.unwrap_or_default(),
        };
        let kept = keeps.then(|| {
            let mut ids = calls.iter().map(|call| &call.id);
            let blocks = made.into_iter().map(|block| {
                let is_call = block.kind == BlockKind::ToolUse;
                let mut block = block.whole();
                // The result of the call is sent under this id.
                if let Some(id) = is_call.then(|| ids.next()).flatten() {
                    block["id"] = Value::from(&**id);
                }
                block
            });
            client.kept_content(blocks.collect())
        });
        Ok(ReplyContent { text: self.text, calls, kept })
    }
}

fn calls_of(
    made: &[ReplyBlock],
    client: &Client,
    before: &Conversation,
) -> Result<Arc<[ToolCall]>, ToolCallFault> {
    let called: Vec<&ReplyBlock> =
        made.iter().filter(|block| block.kind == BlockKind::ToolUse).collect();
    if called.is_empty() {
        return Ok(Arc::default());
    }
    if called.len() > MAX_CALLS {
        return Err(ToolCallFault::TooMany);
    }
    let mut calls = Vec::with_capacity(called.len());
    for block in called {
        match name_of(&block.start) {
            "" => return Err(ToolCallFault::Nameless),
            name if name.len() > NAME_CAP => return Err(ToolCallFault::LongName),
            name => calls.push(ToolCall {
                id: client.without_the_key(&id_of(&block.start)),
                name: client.without_the_key(name),
                arguments: client.without_the_key(&block.arguments()),
            }),
        }
    }
    make_ids_unique(&mut calls, before);
    Ok(calls.into())
}

impl ReplyBlock {
    /// The arguments of a call; if they were streamed, exactly as the model wrote them.
    fn arguments(&self) -> Cow<'_, str> {
        if !self.json.trim().is_empty() {
            return whole_arguments(&self.json).into();
        }
        match self.start.get("input") {
            None | Some(Value::Null) => "{}".into(),
            Some(Value::String(text)) if text.trim().is_empty() => "{}".into(),
            Some(Value::String(text)) => whole_arguments(text).into(),
            Some(Value::Array(items)) if items.is_empty() => "{}".into(),
            Some(input) => input.to_string().into(),
        }
    }

    /// The complete block.
    fn whole(self) -> Value {
        // The input of a tool of the provider is streamed like that of ours.
        let has_input = self.kind == BlockKind::ToolUse || !self.json.trim().is_empty();
        let arguments = has_input.then(|| self.arguments().into_owned());
        let mut block = self.start;
        if let Some(field) = self.kind.field() {
            block.insert(field.to_owned(), Value::from(self.text));
        }
        if let Some(arguments) = arguments {
            // The API accepts no other input than an object.
            let input = serde_json::from_str::<Map<String, Value>>(&arguments).map(Value::Object);
            let input = input.unwrap_or_else(|_| json!({ "unreadable": arguments }));
            block.insert("input".to_owned(), input);
        }
        Value::Object(block)
    }
}

/// The name of the tool that a block calls.
fn name_of(start: &Map<String, Value>) -> &str {
    start.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The id of a call; a number is an id like any other.
fn id_of(start: &Map<String, Value>) -> Cow<'_, str> {
    match start.get("id") {
        Some(Value::String(id)) => id.into(),
        Some(Value::Number(id)) => id.to_string().into(),
        _ => "".into(),
    }
}

fn weight(name: &str, value: &Value) -> usize {
    name.len() + 8 + value.as_str().map_or_else(|| value.to_string().len(), str::len)
}
