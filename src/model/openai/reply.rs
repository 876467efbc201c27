//! The content of a reply, from an answer or assembled from the events of a stream: its text and
//! its tool calls.
//!
//! A streamed piece belongs to the call with its `index`. Servers omit or repeat different parts of
//! it, so if the index is not enough, the id, the name and whether the arguments are complete
//! decide: see [`PartialCall::starts_new_call`].

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::TEXT_CAP;
use crate::log::event::Reply;
use crate::model::client::Client;
use crate::model::client::fields::{
    BadAnswer, Fields, IgnoredFields, JsonText, MAX_CALLS, NAME_CAP, TokenCounts, ToolCallFault,
    arguments, make_ids_unique, parse_needed, whole_arguments,
};
use crate::model::client::kept_fields::{FieldPlace, KeptCall, KeptFields};
use crate::model::client::stream::{StreamStep, StreamedContent, end_of_completion};
use crate::model::{ChatRequest, Conversation};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Types of content parts that are the model's thinking; the reply does not include it.
const THINKING: [&str; 4] = ["thinking", "redacted_thinking", "reasoning", "summary"];

/// A message, or the next part of one.
struct MessagePart<'a> {
    text: Cow<'a, str>,
    refusal: String,
    calls: Vec<ToolCallPart<'a>>,
    /// The fields that go back with the message.
    kept: KeptFields,
}

impl<'a> MessagePart<'a> {
    fn of(message: &Fields<'a>, ignored: &mut IgnoredFields) -> Result<Self, BadAnswer> {
        // A refusal of another type says nothing.
        let refuses = message.get("refusal").is_some_and(|it| it.get().starts_with('"'));
        let mut refusal =
            if refuses { message.text("refusal")?.into_owned() } else { String::new() };
        let is_list = |content: &RawValue| content.get().starts_with('[');
        let text = match message.get("content") {
            Some(content) if is_list(content) => {
                text_of_parts(&message.list("content")?, &mut refusal, ignored)?.into()
            }
            _ => message.text("content")?,
        };
        let mut calls = Vec::new();
        for call in message.list("tool_calls")? {
            calls.push(ToolCallPart::of(&parse_needed("tool_calls", call)?, ignored)?);
        }
        let kept = KeptFields::of(FieldPlace::Message, message);
        Ok(Self { text, refusal, calls, kept })
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }
}

/// The text in a list of content parts; a refusal in it is added to `refusal`.
fn text_of_parts(
    parts: &[&RawValue],
    refusal: &mut String,
    ignored: &mut IgnoredFields,
) -> Result<String, BadAnswer> {
    let mut text = String::new();
    for part in parts {
        if let Ok(JsonText(piece)) = serde_json::from_str(part.get()) {
            text.push_str(&piece);
            continue;
        }
        let part: Fields<'_> = parse_needed("content", part)?;
        match part.word("type").as_deref() {
            None | Some("text" | "output_text") => text.push_str(&part.text("text")?),
            Some("refusal") => refusal.push_str(&part.text("refusal")?),
            Some(kind) if THINKING.contains(&kind) => {}
            Some(_) => ignored.add("content"),
        }
    }
    Ok(text)
}

/// The content of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct CompletionContent {
    /// Whether a choice has arrived, even an empty one.
    pub(super) has_choice: bool,
    /// Whether a choice with a message has arrived.
    pub(crate) has_message: bool,
    pub(crate) text: String,
    pub(crate) calls: PartialCalls,
    refusal: String,
    /// Whether a part of the reply came in a `delta`.
    is_streamed: bool,
    finish: Option<String>,
    model: Option<Arc<str>>,
    counts: TokenCounts,
    ignored: IgnoredFields,
    /// The fields that go back with the message.
    kept: KeptFields,
}

impl CompletionContent {
    /// Adds an answer, or an event of a stream. `offered`: the tools that calls may name.
    pub(crate) fn add(
        &mut self,
        answer: &Fields<'_>,
        offered: &[ToolOffer],
        client: &Client,
    ) -> Result<(), BadAnswer> {
        self.count(answer);
        if self.model.is_none() {
            self.model = answer.word("model").map(|name| client.model_name(&name));
        }
        let Some(choice) = answer.list("choices")?.into_iter().next() else {
            return Ok(());
        };
        let choice: Fields<'_> = parse_needed("choices", choice)?;
        self.has_choice = true;
        self.count(&choice);
        if let Some(delta) = choice.needed("delta")? {
            let delta = MessagePart::of(&delta, &mut self.ignored)?;
            self.add_delta(delta, offered)?;
        }
        // Next to deltas, some servers repeat the message as a whole.
        if !self.is_streamed && choice.raw("message").is_some_and(|it| it.get() != "null") {
            let message = choice.needed("message")?.unwrap_or_default();
            let message = MessagePart::of(&message, &mut self.ignored)?;
            self.add_message(message)?;
        }
        // OpenRouter reports the error of its provider here.
        if let Some(error) = choice.error() {
            return Err(BadAnswer::Reported(error));
        }
        if let Some(reason) = choice.word("finish_reason").filter(|reason| reason != "null") {
            self.finish = Some(reason.into_owned());
        }
        Ok(())
    }

    fn count(&mut self, of: &Fields<'_>) {
        let ignored = &mut self.ignored;
        let Some(usage) = of.optional("usage", ignored) else { return };
        let prompt_details = usage.optional("prompt_tokens_details", ignored).unwrap_or_default();
        let details = usage.optional("completion_tokens_details", ignored).unwrap_or_default();
        self.counts = self.counts.updated_with(TokenCounts {
            prompt: usage.count("prompt_tokens", ignored),
            completion: usage.count("completion_tokens", ignored),
            total: usage.count("total_tokens", ignored),
            cached: prompt_details.count("cached_tokens", ignored),
            cache_written: None,
            reasoning: details.count("reasoning_tokens", ignored),
        });
    }

    fn add_delta(
        &mut self,
        mut delta: MessagePart<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), BadAnswer> {
        self.kept.add_part(std::mem::take(&mut delta.kept));
        if delta.is_empty() {
            return Ok(());
        }
        if self.has_begun() && !self.is_streamed {
            let why = "it has a `delta` after a whole `message`";
            return Err(BadAnswer::Unreadable(why.to_owned()));
        }
        self.is_streamed = true;
        self.text.push_str(&delta.text);
        self.refusal.push_str(&delta.refusal);
        for piece in delta.calls {
            self.calls.piece(piece, offered);
        }
        Ok(())
    }

    /// Adds a whole message. In a stream, each message repeats the text so far.
    fn add_message(&mut self, mut message: MessagePart<'_>) -> Result<(), BadAnswer> {
        self.has_message = true;
        self.kept.replace(std::mem::take(&mut message.kept));
        match message.text.strip_prefix(&*self.text) {
            Some(more) => self.text.push_str(more),
            None if message.text.is_empty() => {}
            None => {
                let why = "its `message` does not begin with the text before it";
                return Err(BadAnswer::Unreadable(why.to_owned()));
            }
        }
        if !message.refusal.is_empty() {
            self.refusal = message.refusal;
        }
        if !message.calls.is_empty() {
            self.calls = PartialCalls::default();
        }
        for call in message.calls {
            self.calls.whole(call);
        }
        Ok(())
    }
}

impl StreamedContent for CompletionContent {
    const NEEDED: &'static str = "a choice";
    const FOREIGN: &'static str = "it has no `choices`";

    fn add_event(
        &mut self,
        _: &str,
        event: &Fields<'_>,
        request: &ChatRequest,
        client: &Client,
    ) -> Result<Option<StreamStep>, BadAnswer> {
        let mut step = Some(StreamStep::More);
        if event.raw("choices").is_none() && event.get("usage").is_none() {
            if let Some(error) = event.error_without_reply() {
                return Err(BadAnswer::Reported(error));
            }
            // A new kind of event may come in any stream, and one that keeps it open.
            if !event.is_empty() && event.word("type").is_none_or(|kind| kind != "ping") {
                self.ignored.add("event");
                step = None;
            }
        }
        self.add(event, &request.tools, client)?;
        Ok(step)
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn has_needed(&self) -> bool {
        self.has_choice
    }

    fn has_begun(&self) -> bool {
        !self.text.is_empty() || self.calls.has_some() || !self.refusal.is_empty()
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn exceeded_cap(&self) -> Option<usize> {
        (self.text.len() + self.calls.bytes() > TEXT_CAP).then_some(TEXT_CAP)
    }

    fn done(mut self, client: &Client, request: &ChatRequest) -> Result<Reply, ToolCallFault> {
        let end = end_of_completion(self.finish.as_deref(), Some(&self.refusal));
        let (tool_calls, kept_calls) = match self.calls.done(client, &request.messages) {
            Err(why) if end.is_whole() => return Err(why),
            calls => calls.unwrap_or_default(),
        };
        Ok(Reply {
            tool_calls,
            blocks: client.kept_blocks(self.kept, kept_calls, &mut self.ignored),
            usage: self.counts.usage(),
            model: self.model,
            end,
            finish: client.finish(self.finish.as_deref(), Some(&self.refusal)),
            ignored: self.ignored.names(),
            ..Reply::from_agent_text(client.without_the_key(&self.text))
        })
    }
}

/// A tool call, or a part of it. Servers omit any of these fields.
#[derive(Debug)]
pub(crate) struct ToolCallPart<'a> {
    /// The index of the call in the reply.
    index: Option<i64>,
    id: Option<Cow<'a, str>>,
    /// The tool's name or a part of it; empty if missing.
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
    /// The fields that go back with the call.
    pub(crate) kept: KeptCall,
}

impl<'a> ToolCallPart<'a> {
    pub(crate) fn of(call: &Fields<'a>, ignored: &mut IgnoredFields) -> Result<Self, BadAnswer> {
        let function: Fields<'_> = call.needed("function")?.unwrap_or_default();
        let kept = KeptCall {
            call: KeptFields::of(FieldPlace::Call, call),
            function: KeptFields::of(FieldPlace::Function, &function),
        };
        Ok(Self {
            kept,
            index: call.index(ignored),
            id: call.word("id"),
            name: function.text("name")?,
            arguments: arguments(&function, "arguments")?,
        })
    }
}

/// The tool calls of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct PartialCalls {
    made: Vec<PartialCall>,
    /// The call that the previous piece belongs to.
    last: Option<usize>,
    /// What was wrong first; no piece is added after it.
    fault: Option<ToolCallFault>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: i64,
    id: String,
    name: String,
    arguments: String,
    nesting: Nesting,
    kept: KeptCall,
}

impl PartialCalls {
    /// Adds a call of an answer that is not streamed: always a new call.
    pub(crate) fn whole(&mut self, called: ToolCallPart<'_>) {
        let at = self.begin(None);
        self.add(at, called, &[]);
    }

    /// Adds a piece to its call, or starts a new call; `offered`: the tools that it may name.
    pub(crate) fn piece(&mut self, piece: ToolCallPart<'_>, offered: &[ToolOffer]) {
        let continued = self.continued_call(&piece, offered);
        let at = continued.or_else(|| self.begin(piece.index));
        self.add(at, piece, offered);
    }

    /// Whether there is a call.
    fn has_some(&self) -> bool {
        !self.made.is_empty()
    }

    /// The number of bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.made.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum()
    }
    /// The calls in order, each with a unique id, and the fields that go back with each.
    pub(crate) fn done(
        mut self,
        by: &Client,
        before: &Conversation,
    ) -> Result<(Arc<[ToolCall]>, Vec<KeptCall>), ToolCallFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.made.is_empty() {
            // The usual case; avoids the allocation of an empty list.
            return Ok(Default::default());
        }
        self.made.sort_by_key(|call| call.index);
        if self.made.iter().any(|call| call.name.is_empty()) {
            return Err(ToolCallFault::Nameless);
        }
        let mut calls: Vec<ToolCall> = self
            .made
            .iter()
            .map(|call| ToolCall {
                id: by.without_the_key(&call.id),
                name: by.without_the_key(&call.name),
                arguments: by.without_the_key(whole_arguments(&call.arguments)),
            })
            .collect();
        make_ids_unique(&mut calls, before);
        Ok((calls.into(), self.made.into_iter().map(|call| call.kept).collect()))
    }

    /// The call that a piece continues; `None` if it starts a new one.
    fn continued_call(&self, piece: &ToolCallPart<'_>, offered: &[ToolOffer]) -> Option<usize> {
        let found = match (piece.index, piece.id.as_deref()) {
            (Some(index), _) => self.made.iter().rposition(|call| call.index == index),
            (None, Some(id)) => self.made.iter().rposition(|call| call.id == id),
            (None, None) => self.last,
        };
        let found = match found {
            // Some servers count on within a call, or make up an id for each piece. A piece with
            // neither a known call nor a name continues the previous call.
            None if piece.name.is_empty() => self.last.filter(|last| {
                let announces = piece.arguments.is_empty() || self.made[*last].is_whole();
                piece.id.is_none() || !announces
            }),
            found => found,
        };
        found.filter(|at| !self.made[*at].starts_new_call(piece, offered))
    }

    /// Starts a call; `None` if there are too many.
    fn begin(&mut self, index: Option<i64>) -> Option<usize> {
        if self.made.len() == MAX_CALLS {
            self.fault.get_or_insert(ToolCallFault::TooMany);
            return None;
        }
        let next = self.made.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
        self.made.push(PartialCall { index: index.unwrap_or(next), ..PartialCall::default() });
        Some(self.made.len() - 1)
    }

    fn add(&mut self, at: Option<usize>, piece: ToolCallPart<'_>, offered: &[ToolOffer]) {
        self.last = at;
        let Some(call) = at.and_then(|at| self.made.get_mut(at)).filter(|_| self.fault.is_none())
        else {
            return;
        };
        if call.id.is_empty() {
            call.id.push_str(piece.id.as_deref().unwrap_or_default());
        }
        call.append_name(&piece.name, offered);
        call.append_arguments(&piece.arguments);
        call.kept.add_part(piece.kept);
        if call.name.len() > NAME_CAP {
            self.fault = Some(ToolCallFault::LongName);
        }
    }
}

impl PartialCall {
    /// Whether a piece that matches this call still starts another one: servers that do not count
    /// calls send index 0 for each, and some send no ids either.
    fn starts_new_call(&self, piece: &ToolCallPart<'_>, offered: &[ToolOffer]) -> bool {
        let name = &*piece.name;
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        if let (false, Some(id)) = (self.id.is_empty(), piece.id.as_deref()) {
            return id != self.id;
        }
        if self.arguments.is_empty() {
            // More of the name, the name again, or the next call after one without arguments.
            let complete = offered.iter().any(|tool| *tool.name == *self.name);
            return name != self.name
                && complete
                && begins_tool_name(offered, "", name)
                && !begins_tool_name(offered, &self.name, name);
        }
        let again = name == self.name;
        !again
            || (self.is_whole()
                && piece.arguments.trim_start().starts_with('{')
                && piece.arguments != self.arguments)
    }

    fn is_whole(&self) -> bool {
        self.nesting.is_closed()
    }

    /// Servers send the name at once, in pieces, or again with each piece of the arguments.
    fn append_name(&mut self, piece: &str, offered: &[ToolOffer]) {
        if piece.starts_with(&*self.name) && !begins_tool_name(offered, &self.name, piece) {
            self.name.clear();
        }
        self.name.push_str(piece);
    }

    fn append_arguments(&mut self, piece: &str) {
        if self.is_whole() {
            // All arguments again, at the end.
            if piece == self.arguments {
                return;
            }
            // An empty object was only a placeholder.
            if self.arguments == "{}" && piece.trim_start().starts_with('{') {
                self.arguments.clear();
                self.nesting = Nesting::default();
            }
        }
        self.nesting.read(piece);
        self.arguments.push_str(piece);
    }
}

/// Whether the name so far plus this piece is the beginning of a tool's name.
fn begins_tool_name(offered: &[ToolOffer], so_far: &str, piece: &str) -> bool {
    let goes_on = |tool: &ToolOffer| {
        tool.name.strip_prefix(so_far).is_some_and(|rest| rest.starts_with(piece))
    };
    offered.iter().any(goes_on)
}

/// Tracks whether a streamed JSON text is a closed object or list.
#[derive(Debug, Default)]
struct Nesting {
    depth: u32,
    closed: bool,
    within: LexState,
}

#[derive(Debug, Default)]
enum LexState {
    #[default]
    Json,
    Text,
    Escape,
}

impl Nesting {
    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.within = match (&self.within, byte) {
                (LexState::Json, b'"') | (LexState::Escape, _) => LexState::Text,
                (LexState::Text, b'\\') => LexState::Escape,
                (LexState::Text, b'"') => LexState::Json,
                (LexState::Text, _) => LexState::Text,
                (LexState::Json, b'{' | b'[') => {
                    self.depth = self.depth.saturating_add(1);
                    LexState::Json
                }
                (LexState::Json, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                    LexState::Json
                }
                (LexState::Json, _) => LexState::Json,
            };
        }
    }

    fn is_closed(&self) -> bool {
        self.closed && self.depth == 0 && matches!(self.within, LexState::Json)
    }
}
