//! The blocks of a reply, complete or streamed: its text, its tool calls, and, if the model was
//! thinking, all blocks in order, to be sent back unchanged.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::wire::Delta;
use crate::event::kind::{ReplyEnd, ToolCall};
use crate::llm::Conversation;
use crate::llm::client::Client;
use crate::llm::client::TEXT_CAP;
use crate::llm::client::json::JsonText;
use crate::llm::client::tool_calls::{MAX_CALLS, NAME_CAP, ToolCallFault, make_ids_unique};

/// The most bytes of all blocks of a reply, thinking included, which is kept but not shown.
pub const BLOCKS_CAP: usize = 1 << 20;

/// A block of an answer that is not streamed.
pub(super) trait WholeBlock {
    /// Appends it to the blocks.
    fn add(self, index: u64, to: &mut ReplyBlocks);
}

impl WholeBlock for Map<String, Value> {
    fn add(self, index: u64, to: &mut ReplyBlocks) {
        to.start(index, self);
    }
}

/// A block with only a type and a text. Most answers have no others, and then no block has to be
/// sent back unchanged.
#[derive(Debug)]
pub(super) struct TextOnlyBlock<'a>(Cow<'a, str>);

impl WholeBlock for TextOnlyBlock<'_> {
    fn add(self, _: u64, to: &mut ReplyBlocks) {
        to.add_text(&self.0);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextOnlyBlock<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TextOnlyBlockVisitor)
    }
}

struct TextOnlyBlockVisitor;

impl<'de> Visitor<'de> for TextOnlyBlockVisitor {
    type Value = TextOnlyBlock<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block with text only")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let is = |text: &Option<JsonText<'de>>, word| JsonText::as_optional_str(text) == Some(word);
        let other = || A::Error::custom("another block");
        if !is(&map.next_key()?, "type")
            || !is(&Some(map.next_value()?), "text")
            || !is(&map.next_key()?, "text")
        {
            return Err(other());
        }
        let JsonText(text) = map.next_value()?;
        if map.next_key::<IgnoredAny>()?.is_some() { Err(other()) } else { Ok(TextOnlyBlock(text)) }
    }
}

/// The blocks of a reply so far.
#[derive(Debug, Default)]
pub(super) struct ReplyBlocks {
    made: Vec<ReplyBlock>,
    /// The text of all text blocks, in the order in which it arrived.
    pub(super) text: String,
    /// Bytes of the tool calls.
    called: usize,
    /// Bytes of all other blocks.
    other: usize,
}

#[derive(Debug)]
struct ReplyBlock {
    index: u64,
    kind: BlockKind,
    /// The start event of the block.
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
    fn of(block: &Map<String, Value>) -> Self {
        match block.get("type").and_then(Value::as_str) {
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
pub(super) struct ReplyContent {
    pub(super) text: String,
    pub(super) calls: Arc<[ToolCall]>,
    /// All blocks, if some of them must be sent back unchanged.
    pub(super) kept: Option<Arc<Value>>,
}

impl ReplyBlocks {
    /// Starts a block, or adds a complete one.
    pub(super) fn start(&mut self, index: u64, start: Map<String, Value>) {
        let kind = BlockKind::of(&start);
        let of = |name: &str| start.get(name).and_then(Value::as_str).unwrap_or_default();
        let text = kind.field().map(of).unwrap_or_default().to_owned();
        match kind {
            BlockKind::Text => self.add_text(&text),
            BlockKind::ToolUse => {
                let input = start.get("input").map_or(0, |input| input.to_string().len());
                self.called += of("id").len() + of("name").len() + input;
                self.other += 64;
            }
            // Roughly its size in the log.
            _ => self.other += start.iter().map(|(name, value)| weight(name, value)).sum::<usize>(),
        }
        self.made.push(ReplyBlock { index, kind, start, text, json: String::new() });
    }

    fn add_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.other += 32;
    }

    /// Appends to a block; returns whether that was text or part of a tool call.
    pub(super) fn append_delta(&mut self, index: u64, delta: &Delta<'_>) -> bool {
        let texts = [&delta.text, &delta.partial_json, &delta.thinking, &delta.signature];
        let [text, json, thinking, signature] = texts.map(JsonText::as_optional_str);
        let (kind, name) = match (text, json, thinking.or(signature)) {
            (Some(_), _, _) => (BlockKind::Text, "text"),
            (_, Some(_), _) => (BlockKind::ToolUse, "tool_use"),
            (_, _, Some(_)) => (BlockKind::Thinking, "thinking"),
            _ => return false,
        };
        let at = match self.made.iter().rposition(|block| block.index == index) {
            Some(at) => at,
            None => {
                // Some servers do not announce their blocks.
                let start = Map::from_iter([("type".to_owned(), Value::from(name))]);
                self.start(index, start);
                self.made.len() - 1
            }
        };
        let Some(block) = self.made.get_mut(at) else { return false };
        if let Some(text) = text {
            block.text.push_str(text);
            self.text.push_str(text);
        }
        if let Some(json) = json {
            block.json.push_str(json);
            self.called += json.len();
        }
        if let Some(thinking) = thinking {
            block.text.push_str(thinking);
            self.other += thinking.len();
        }
        if let Some(signature) = signature {
            block.start.insert("signature".to_owned(), Value::from(signature));
            self.other += signature.len();
        }
        kind != BlockKind::Thinking && (text.is_some_and(|text| !text.is_empty()) || json.is_some())
    }

    /// The cap in bytes that the blocks exceed, if they do.
    pub(super) fn beyond(&self) -> Option<usize> {
        let said = self.text.len() + self.called;
        if said > TEXT_CAP {
            return Some(TEXT_CAP);
        }
        (said + self.other > BLOCKS_CAP).then_some(BLOCKS_CAP)
    }

    /// The reply's text, its tool calls with unique ids, and the blocks to send back. `end`: how the
    /// reply ended; calls of a reply that is not whole may be cut, and invalid ones are left out.
    pub(super) fn done(
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
        // A model that paused continues from all that it had.
        let is_continued = end == ReplyEnd::Paused && !made.is_empty();
        let keeps = is_continued || made.iter().any(thought);
        let calls = match calls_of(&made, client, before) {
            Err(why) if end.is_whole() => return Err(why),
            calls => calls.unwrap_or_default(),
        };
        let kept = keeps.then(|| {
            let mut ids = calls.iter().map(|call| &call.id);
            let blocks = made.into_iter().map(|block| {
                let is_call = block.kind == BlockKind::ToolUse;
                let mut block = block.whole();
                client.data_without_the_key(&mut block);
                // The result of the call is sent under this id.
                if let Some(id) = is_call.then(|| ids.next()).flatten() {
                    block["id"] = Value::from(&**id);
                }
                block
            });
            Arc::new(blocks.collect())
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
        let of = |name: &str| block.start.get(name).and_then(Value::as_str).unwrap_or_default();
        match of("name") {
            "" => return Err(ToolCallFault::Nameless),
            name if name.len() > NAME_CAP => return Err(ToolCallFault::LongName),
            name => calls.push(ToolCall {
                id: client.without_the_key(of("id")),
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
    fn arguments(&self) -> String {
        if !self.json.trim().is_empty() {
            return self.json.clone();
        }
        match self.start.get("input") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(input) => input.to_string(),
        }
    }

    /// The complete block.
    fn whole(self) -> Value {
        let mut block = self.start;
        if let Some(field) = self.kind.field() {
            block.insert(field.to_owned(), Value::from(self.text));
        }
        if !self.json.trim().is_empty() {
            let input = serde_json::from_str::<Map<String, Value>>(&self.json);
            let input = input.map(Value::Object);
            let input = input.unwrap_or_else(|_| json!({ "unreadable": self.json }));
            block.insert("input".to_owned(), input);
        }
        Value::Object(block)
    }
}

fn weight(name: &str, value: &Value) -> usize {
    name.len() + 8 + value.as_str().map_or_else(|| value.to_string().len(), str::len)
}
