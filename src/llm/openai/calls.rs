//! The tool calls of a reply, complete or streamed.
//!
//! A streamed piece belongs to the call with its `index`. Servers omit or repeat different parts of
//! it, so if the index is not enough, the id, the name and whether the arguments are complete
//! decide: see [`PartialCall::starts_new_call`].

use std::sync::Arc;

use super::wire::ToolCallPart;
use crate::event::kind::ToolCall;
use crate::llm::Conversation;
use crate::llm::client::Client;
use crate::llm::client::tool_calls::{MAX_CALLS, NAME_CAP, ToolCallFault, make_ids_unique};
use crate::scenario::spec::tool::ToolOffer;

/// The tool calls of a reply so far.
#[derive(Debug, Default)]
pub(super) struct PartialCalls {
    made: Vec<PartialCall>,
    /// The call that the previous piece belongs to.
    last: Option<usize>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: i64,
    id: String,
    name: String,
    arguments: String,
    nesting: Nesting,
}

impl PartialCalls {
    /// Adds a call of an answer that is not streamed: always a new call.
    pub(super) fn whole(&mut self, called: ToolCallPart<'_>) -> Result<(), ToolCallFault> {
        let at = self.begin(None)?;
        self.add(at, called, &[])
    }

    /// Adds a piece to its call, or starts a new call; `offered`: the tools that it may name.
    pub(super) fn piece(
        &mut self,
        piece: ToolCallPart<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), ToolCallFault> {
        let at = match self.continued_call(&piece, offered) {
            Some(at) => at,
            None => self.begin(piece.index())?,
        };
        self.add(at, piece, offered)
    }

    /// The number of bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.made.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum()
    }

    /// The calls in order, each with a unique id.
    pub(super) fn done(
        mut self,
        by: &Client,
        before: &Conversation,
    ) -> Result<Arc<[ToolCall]>, ToolCallFault> {
        if self.made.is_empty() {
            // The usual case; avoids the allocation of an empty list.
            return Ok(Arc::default());
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
                arguments: by.without_the_key(&call.arguments),
            })
            .collect();
        make_ids_unique(&mut calls, before);
        Ok(calls.into())
    }

    /// The call that a piece continues; `None` if it starts a new one.
    fn continued_call(&self, piece: &ToolCallPart<'_>, offered: &[ToolOffer]) -> Option<usize> {
        let found = match (piece.index(), piece.id()) {
            (Some(index), _) => self.made.iter().rposition(|call| call.index == index),
            (None, Some(id)) => self.made.iter().rposition(|call| call.id == id),
            (None, None) => self.last,
        };
        let found = match found {
            // Some servers count on within a call, or make up an id for each piece. A piece with
            // neither a known call nor a name continues the previous call.
            None if piece.name().is_empty() => self.last.filter(|last| {
                let announces = piece.arguments().is_empty() || self.made[*last].is_whole();
                piece.id().is_none() || !announces
            }),
            found => found,
        };
        found.filter(|at| !self.made[*at].starts_new_call(piece, offered))
    }

    fn begin(&mut self, index: Option<i64>) -> Result<usize, ToolCallFault> {
        if self.made.len() == MAX_CALLS {
            return Err(ToolCallFault::TooMany);
        }
        let next = self.made.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
        self.made.push(PartialCall { index: index.unwrap_or(next), ..PartialCall::default() });
        Ok(self.made.len() - 1)
    }

    fn add(
        &mut self,
        at: usize,
        piece: ToolCallPart<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), ToolCallFault> {
        self.last = Some(at);
        let call = &mut self.made[at];
        if call.id.is_empty() {
            call.id.push_str(piece.id().unwrap_or_default());
        }
        call.append_name(piece.name(), offered);
        call.append_arguments(piece.arguments());
        if call.name.len() > NAME_CAP { Err(ToolCallFault::LongName) } else { Ok(()) }
    }
}

impl PartialCall {
    /// Whether a piece that matches this call still starts another one: servers that do not count
    /// calls send index 0 for each, and some send no ids either.
    fn starts_new_call(&self, piece: &ToolCallPart<'_>, offered: &[ToolOffer]) -> bool {
        let name = piece.name();
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        if let (false, Some(id)) = (self.id.is_empty(), piece.id()) {
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
                && piece.arguments().trim_start().starts_with('{')
                && piece.arguments() != self.arguments)
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
