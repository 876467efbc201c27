//! What the inspector is open on, and its tabs.

use crate::event::{Seq, SpanId};

/// A tab of the inspector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// The messages exactly as the model saw them, or a tool's arguments.
    #[default]
    Prompt,
    /// The reply or result, and what the gateway parsed from it.
    Reply,
    /// The events as JSON.
    Raw,
    /// Attempts, waits and tokens.
    Timing,
}

impl Tab {
    /// Every tab, from left to right.
    pub const ALL: [Tab; 4] = [Self::Prompt, Self::Reply, Self::Raw, Self::Timing];

    /// The names of all tabs, for a call of a model or of a tool.
    pub fn names(asks: CalleeKind) -> [&'static str; 4] {
        Self::ALL.map(|tab| tab.name(asks))
    }

    /// The name of the tab, for a call of a model or of a tool.
    pub fn name(self, asks: CalleeKind) -> &'static str {
        match self {
            Self::Prompt if asks == CalleeKind::Tool => "Args",
            Self::Prompt => "Prompt",
            Self::Reply => "Reply",
            Self::Raw => "Raw",
            Self::Timing => "Timing",
        }
    }

    /// The tab this many further on; after the last comes the first.
    pub(super) fn next(self, by: usize) -> Tab {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// The callee of the call that is inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CalleeKind {
    /// A model, with a prompt.
    #[default]
    Model,
    /// A tool, with arguments.
    Tool,
}

/// The thing that is inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectTarget {
    /// The event with this number, and the call that it belongs to, if any.
    Event(Seq),
    /// A call, with its attempts.
    Call(SpanId),
}
