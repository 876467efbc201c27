//! The tools that a model calls in its reply, from a whole answer or gathered piece by piece.
//!
//! A piece belongs to the call of its `index`. Servers differ in what they leave out of it or say
//! twice, so where the index says too little the id, the name and whether the arguments are whole
//! decide: see [`Call::another`].

use std::sync::Arc;

use super::wire::Called;
use crate::event::kind::ToolCall;
use crate::llm::Conversation;
use crate::llm::client::Client;
use crate::llm::client::tool_calls::{MOST, Miscalled, NAME_CAP, tell_apart};
use crate::scenario::tool::ToolOffer;

/// The calls of a reply, as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: Vec<Call>,
    /// The one that the piece before belonged to.
    last: Option<usize>,
}

#[derive(Debug, Default)]
struct Call {
    index: i64,
    id: String,
    name: String,
    arguments: String,
    nesting: Nesting,
}

impl Calls {
    /// A call of a whole answer: always one of its own.
    pub(super) fn whole(&mut self, called: Called<'_>) -> Result<(), Miscalled> {
        let at = self.begin(None)?;
        self.add(at, called, &[])
    }

    /// A piece of a call, the first one or another; `offered`: the tools that it may be.
    pub(super) fn piece(
        &mut self,
        piece: Called<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), Miscalled> {
        let at = match self.goes_on(&piece, offered) {
            Some(at) => at,
            None => self.begin(piece.index())?,
        };
        self.add(at, piece, offered)
    }

    /// How many bytes have come.
    pub(super) fn bytes(&self) -> usize {
        self.made.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum()
    }

    /// The calls in their order, each with an id that no other of the reply has.
    pub(super) fn done(
        mut self,
        by: &Client,
        before: &Conversation,
    ) -> Result<Arc<[ToolCall]>, Miscalled> {
        if self.made.is_empty() {
            // As it is with most replies; an empty list of its own would be allocated.
            return Ok(Arc::default());
        }
        self.made.sort_by_key(|call| call.index);
        if self.made.iter().any(|call| call.name.is_empty()) {
            return Err(Miscalled::Nameless);
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
        tell_apart(&mut calls, before);
        Ok(calls.into())
    }

    /// The call that a piece goes on with; `None`: it begins one.
    fn goes_on(&self, piece: &Called<'_>, offered: &[ToolOffer]) -> Option<usize> {
        let found = match (piece.index(), piece.id()) {
            (Some(index), _) => self.made.iter().rposition(|call| call.index == index),
            (None, Some(id)) => self.made.iter().rposition(|call| call.id == id),
            (None, None) => self.last,
        };
        let found = match found {
            // Some servers count on within a call, or make up an id for each piece of it: what has
            // neither a call of its own nor a name is more of the one before.
            None if piece.name().is_empty() => self.last.filter(|last| {
                let announces = piece.arguments().is_empty() || self.made[*last].is_whole();
                piece.id().is_none() || !announces
            }),
            found => found,
        };
        found.filter(|at| !self.made[*at].another(piece, offered))
    }

    fn begin(&mut self, index: Option<i64>) -> Result<usize, Miscalled> {
        if self.made.len() == MOST {
            return Err(Miscalled::TooMany);
        }
        let next = self.made.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
        self.made.push(Call { index: index.unwrap_or(next), ..Call::default() });
        Ok(self.made.len() - 1)
    }

    fn add(
        &mut self,
        at: usize,
        piece: Called<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), Miscalled> {
        self.last = Some(at);
        let call = &mut self.made[at];
        if call.id.is_empty() {
            call.id.push_str(piece.id().unwrap_or_default());
        }
        call.hear_name(piece.name(), offered);
        call.hear_arguments(piece.arguments());
        if call.name.len() > NAME_CAP { Err(Miscalled::LongName) } else { Ok(()) }
    }
}

impl Call {
    /// Whether a piece that has this call's place begins another all the same: servers that count
    /// no calls say 0 of each, and some give no ids either.
    fn another(&self, piece: &Called<'_>, offered: &[ToolOffer]) -> bool {
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
                && begins_one(offered, "", name)
                && !begins_one(offered, &self.name, name);
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

    /// The name comes at once, in pieces, or again with each piece of the arguments.
    fn hear_name(&mut self, piece: &str, offered: &[ToolOffer]) {
        if piece.starts_with(&*self.name) && !begins_one(offered, &self.name, piece) {
            self.name.clear();
        }
        self.name.push_str(piece);
    }

    fn hear_arguments(&mut self, piece: &str) {
        if self.is_whole() {
            // All of them once more, at the end.
            if piece == self.arguments {
                return;
            }
            // An empty object that only stood for what was to come.
            if self.arguments == "{}" && piece.trim_start().starts_with('{') {
                self.arguments.clear();
                self.nesting = Nesting::default();
            }
        }
        self.nesting.read(piece);
        self.arguments.push_str(piece);
    }
}

/// Whether what is said so far and this piece are the beginning of a tool's name.
fn begins_one(offered: &[ToolOffer], so_far: &str, piece: &str) -> bool {
    let goes_on = |tool: &ToolOffer| {
        tool.name.strip_prefix(so_far).is_some_and(|rest| rest.starts_with(piece))
    };
    offered.iter().any(goes_on)
}

/// Whether a text that comes in pieces is an object or a list that has been closed.
#[derive(Debug, Default)]
struct Nesting {
    depth: u32,
    closed: bool,
    within: Within,
}

#[derive(Debug, Default)]
enum Within {
    #[default]
    Json,
    Text,
    Escape,
}

impl Nesting {
    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.within = match (&self.within, byte) {
                (Within::Json, b'"') | (Within::Escape, _) => Within::Text,
                (Within::Text, b'\\') => Within::Escape,
                (Within::Text, b'"') => Within::Json,
                (Within::Text, _) => Within::Text,
                (Within::Json, b'{' | b'[') => {
                    self.depth = self.depth.saturating_add(1);
                    Within::Json
                }
                (Within::Json, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                    Within::Json
                }
                (Within::Json, _) => Within::Json,
            };
        }
    }

    fn is_closed(&self) -> bool {
        self.closed && self.depth == 0 && matches!(self.within, Within::Json)
    }
}
