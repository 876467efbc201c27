//! The template for the input of a handoff's target.

use serde::{Deserialize, Serialize};

use crate::base::name::AgentName;

/// Template for the input of a handoff's target. It is stored in pieces, so that text from an input
/// or an agent is never parsed as part of the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct HandoffTemplate(Vec<HandoffPiece>);

/// A literal or a placeholder of a [`HandoffTemplate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandoffPiece {
    /// Text that is copied unchanged.
    Literal(String),
    /// `{root_input}`: the input of the swarm.
    RootInput,
    /// `{parent_input}`: the input of the agent that hands over.
    ParentInput,
    /// `{from}`: the agent that hands over.
    From,
    /// `{to}`: the agent that takes over.
    To,
    /// `{message}`: the handoff message; empty if there is none.
    Message,
}

impl HandoffPiece {
    /// The placeholders that a template may contain.
    pub const NAMES: [&str; 5] = ["root_input", "parent_input", "from", "to", "message"];

    fn from_placeholder(name: &str) -> Option<Self> {
        Some(match name {
            "root_input" => Self::RootInput,
            "parent_input" => Self::ParentInput,
            "from" => Self::From,
            "to" => Self::To,
            "message" => Self::Message,
            _ => return None,
        })
    }
}

impl HandoffTemplate {
    /// Parses a template. Braces around anything but a placeholder are kept as text.
    pub fn parse_template(text: &str) -> Self {
        let mut template = Self::default();
        template.push_template(text);
        template
    }

    /// Appends text that is parsed as a template.
    pub fn push_template(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            self.push_literal(before);
            // Nested braces contain no placeholder; the inner pair may be one.
            let next = after[1..].find(['{', '}']).map(|at| at + 1);
            let close = next.filter(|at| after[*at..].starts_with('}'));
            let named = close.and_then(|close| {
                Some((HandoffPiece::from_placeholder(&after[1..close])?, &after[close + 1..]))
            });
            rest = match named {
                Some((piece, after)) => {
                    self.0.push(piece);
                    after
                }
                None => {
                    self.push_literal("{");
                    &after[1..]
                }
            };
        }
        self.push_literal(rest);
    }

    /// Appends text unchanged.
    pub fn push_literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(HandoffPiece::Literal(last)) => last.push_str(text),
            _ => self.0.push(HandoffPiece::Literal(text.to_owned())),
        }
    }

    /// Its pieces in order. Adjacent literals are merged.
    pub fn pieces(&self) -> &[HandoffPiece] {
        &self.0
    }

    /// Fills in the template for one handoff.
    pub fn fill(
        &self,
        root: &str,
        parent: &str,
        from: &AgentName,
        to: &AgentName,
        message: Option<&str>,
    ) -> String {
        let filled = self.0.iter().map(|piece| match piece {
            HandoffPiece::Literal(text) => text,
            HandoffPiece::RootInput => root,
            HandoffPiece::ParentInput => parent,
            HandoffPiece::From => from.as_str(),
            HandoffPiece::To => to.as_str(),
            HandoffPiece::Message => message.unwrap_or_default(),
        });
        filled.collect()
    }
}
