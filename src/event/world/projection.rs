//! What is asked of the projection of a pattern.

use super::fold::RunFold;
use super::load::ToolLoad;
use super::marks::MarkKind;
use super::outcome::fields::{OutcomeFields, Replaced};
use crate::agents::facts::SessionHead;
use crate::agents::projection::AgentsFold;
use crate::event::contribution::Decision;
use crate::event::kind::Purpose;
use crate::event::{BoundaryId, Event, Seq, SpanId};

/// The projection of one pattern: its state, and the answers that only the pattern knows. `run` is
/// what all patterns share, at the same event.
pub trait Projection {
    /// Processes one event, which `run` has processed already.
    fn apply(&mut self, event: &Event, run: &RunFold);

    /// Adds the pattern's fields of the outcome, in the order of its source document.
    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields);

    /// The replaced and omitted results; `None` where the counts of the tools have them.
    fn replaced(&self) -> Option<Vec<Replaced>> {
        None
    }

    /// Whether a result was replaced or omitted, other than by the gateway.
    fn is_degraded(&self) -> bool {
        false
    }

    /// What the scrubber marks at a fact of this pattern.
    fn mark(&self, _event: &Event) -> Option<MarkKind> {
        None
    }

    /// The call that an event is about, if it is not the call of its span.
    fn call_of(&self, _event: &Event, _run: &RunFold) -> Option<SpanId> {
        None
    }

    /// The event that caused this one, if the pattern decides it: the place where an operator would
    /// look next.
    fn cause_of(&self, _event: &Event, _run: &RunFold, _log: &dyn EventLog) -> Option<Seq> {
        None
    }

    /// The tool of a call with this purpose, if the purpose alone does not name it.
    fn tool_of(&self, _purpose: &Purpose) -> Option<&str> {
        None
    }

    /// The next boundary at which a breakpoint can be set, or why there is none.
    fn next_breakpoint(&self, run: &RunFold) -> Result<BoundaryId, &'static str>;

    /// The callers that put load on the tools, if the run is about its tools.
    fn tool_load(&self) -> Option<ToolLoad<'_>> {
        None
    }

    /// Whether runs of the pattern end with a decision.
    fn decides(&self) -> bool {
        false
    }

    /// The decision of the run so far, if the pattern decides.
    fn decision(&self) -> Option<Decision> {
        None
    }

    /// The agents, if the pattern is made of agents.
    fn agents(&self) -> Option<&AgentsFold> {
        None
    }

    /// The place of the run in its session, if the pattern takes messages.
    fn session(&self) -> Option<&SessionHead> {
        None
    }
}

/// The events of a run that are in memory.
pub trait EventLog {
    /// The last event before this one that matches.
    fn find_before(&self, seq: Seq, so: &dyn Fn(&Event) -> bool) -> Option<Seq>;

    /// The last event that is no longer in memory.
    fn last_dropped(&self) -> Option<Seq>;

    /// The last event before this one that matches. If no event in memory does, the match is taken
    /// to be the last of those that are no longer there.
    fn last_before(&self, seq: Seq, so: &dyn Fn(&Event) -> bool) -> Option<Seq> {
        self.find_before(seq, so).or_else(|| self.last_dropped())
    }
}
