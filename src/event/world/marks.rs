//! The moments that the scrubber marks.

use crate::base::name::{AgentName, FlagName, ToolName};
use crate::event::kind::BreakerStage;
use crate::event::{Elapsed, Seq};

/// A moment to mark on the scrubber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubberMark {
    /// Time of the event.
    pub at: Elapsed,
    /// The event.
    pub seq: Seq,
    /// What to mark.
    pub what: MarkKind,
}

/// The meaning of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A round started.
    Round(u32),
    /// The answer is being composed.
    Finalize,
    /// A flag was switched.
    Flag(FlagName, bool),
    /// An agent of a swarm took over.
    Handoff(AgentName),
    /// The root agent consults another agent.
    Consulted(AgentName),
    /// A part of the work that the pattern names is done, such as reading a source's page; its short
    /// label.
    Part(Box<str>),
    /// A call is retried.
    Retry,
    /// A tool's breaker changed its state.
    Breaker(ToolName, BreakerStage),
    /// A fault was injected into a tool (`true`) or removed.
    Fault(ToolName, bool),
    /// The run was paused.
    Paused,
    /// A handoff was refused by the limits of a swarm, or a source by an allowlist.
    Refused,
    /// A call or a contribution failed.
    Failed,
    /// The run ended.
    Closed,
}
