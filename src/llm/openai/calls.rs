//! The tool calls of a reply, complete or streamed.
//!
//! A streamed piece belongs to the call with its `index`. Servers omit or repeat different parts of
//! it, so if the index is not enough, the id, the name and whether the arguments are complete
//! decide: see [`PartialCall::starts_new_call`].

use std::borrow::Cow;
use std::sync::Arc;

use crate::event::kind::ToolCall;
use crate::llm::Conversation;
use crate::llm::client::Client;
use crate::llm::client::fields::{BadAnswer, Fields, IgnoredFields};
use crate::llm::client::kept_fields::{FieldPlace, KeptCall, KeptFields};
use crate::llm::client::tool_calls::{
    MAX_CALLS, NAME_CAP, ToolCallFault, arguments, make_ids_unique, whole_arguments,
};
use crate::scenario::spec::tool::ToolOffer;

/// A tool call, or a part of it. Servers omit any of these fields.
#[derive(Debug)]
pub(super) struct ToolCallPart<'a> {
    /// The index of the call in the reply.
    index: Option<i64>,
    id: Option<Cow<'a, str>>,
    /// The tool's name or a part of it; empty if missing.
    name: Cow<'a, str>,
    /// The arguments or a part of them.
    arguments: Cow<'a, str>,
    /// The fields that go back with the call.
    pub(super) kept: KeptCall,
}

impl<'a> ToolCallPart<'a> {
    /// # Errors
    /// The name or the arguments cannot be read.
    pub(super) fn of(call: &Fields<'a>, ignored: &mut IgnoredFields) -> Result<Self, BadAnswer> {
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
pub(super) struct PartialCalls {
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
    pub(super) fn whole(&mut self, called: ToolCallPart<'_>) {
        let at = self.begin(None);
        self.add(at, called, &[]);
    }

    /// Adds a piece to its call, or starts a new call; `offered`: the tools that it may name.
    pub(super) fn piece(&mut self, piece: ToolCallPart<'_>, offered: &[ToolOffer]) {
        let continued = self.continued_call(&piece, offered);
        let at = continued.or_else(|| self.begin(piece.index));
        self.add(at, piece, offered);
    }

    /// Whether there is a call.
    pub(super) fn has_some(&self) -> bool {
        !self.made.is_empty()
    }

    /// The number of bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.made.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum()
    }
    /// The calls in order, each with a unique id, and the fields that go back with each.
    ///
    /// # Errors
    /// There are too many, or one has no valid name.
    pub(super) fn done(
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
