//! The only fold of a log: every screen, result and export shows its state. [`World::apply`] is
//! total: any event in any order, as a file may have them, changes something or nothing, and never
//! fails.
//!
//! [`RunFold`] has what all patterns share; [`PatternWorld`] lists the projections of the patterns,
//! and [`Projection`] has the questions that the rest of the program asks them.

pub mod agents;
pub mod alerts;
pub mod available;
mod chunked;
pub mod collaboration;
pub mod failures;
pub mod observed;
pub mod orchestrator;
mod outcome;
mod over_time;
mod progress;
pub mod questions;
pub mod research;
pub mod resilience;
pub mod router;
mod run;
pub mod run_row;
mod spans;
mod spending;
pub mod team;
pub mod tool_row;
pub mod tool_timeline;
pub mod tools;
pub mod turns;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use self::agents::AgentsFold;
use self::collaboration::Collaboration;
use self::observed::Observed;
use self::orchestrator::Orchestrator;
use self::outcome::Replaced;
use self::research::Research;
use self::resilience::Resilience;
use self::router::Router;
use self::team::Team;
use self::tools::ToolLoad;
use super::event::{BoundaryId, Event, EventKind, Purpose, Seq, SpanId};
use super::facts::PatternPlan;
use super::facts::agents::SessionHead;
use crate::scenario::patterns::collaboration::Decision;

pub use self::failures::CutReply;
pub use self::outcome::{Outcome, OutcomeFields, OutcomeUsage, SessionOutcome};
pub use self::over_time::MarkKind;
pub use self::progress::{RunProgress, RunState};
pub use self::run::{FlagNow, RunFold, Tally};
pub use self::spans::{Span, SpanKind, SpanState};
pub use self::spending::SpendingUsed;

/// State of a run after the events so far.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// What all patterns share. `World` dereferences to it.
    pub run: RunFold,
    /// The pattern's own projection.
    pub pattern: PatternWorld,
}

impl Deref for World {
    type Target = RunFold;

    fn deref(&self) -> &RunFold {
        &self.run
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut RunFold {
        &mut self.run
    }
}

impl World {
    /// The state before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state after these events.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut world = Self::new();
        for event in events {
            world.apply(event);
        }
        world
    }

    /// Processes one event: first what all patterns share, then the pattern's projection.
    pub fn apply(&mut self, event: &Event) {
        let has_head = self.run.head.is_some();
        self.run.apply(event);
        match &event.kind {
            EventKind::RunStarted(_) if has_head => {}
            EventKind::RunStarted(head) => self.pattern = PatternWorld::new(&head.plan),
            _ => {
                self.pattern.apply(event, &self.run);
                if let EventKind::Pattern(_) = &event.kind
                    && let Some(mark) = self.pattern.mark(event)
                {
                    self.run.over_time.mark(event, mark);
                }
            }
        }
    }

    /// Forgets ended calls of endless kinds that closed before this event; the outcome stays the
    /// same. In an endless run, call it from time to time, with an event a few thousand back, because
    /// screens still show calls that have just ended.
    pub fn forget_before(&mut self, fact: Seq) {
        self.run.forget_before(fact);
    }

    /// Whether a result was replaced by a fallback or omitted, or a reply that was used is not whole.
    pub fn is_degraded(&self) -> bool {
        self.tally.degraded > 0
            || !self.cut_replies().is_empty()
            || self.projection().is_some_and(Projection::is_degraded)
    }

    /// The projection of the run's pattern; `None` before the head.
    pub fn projection(&self) -> Option<&dyn Projection> {
        self.pattern.get()
    }

    /// Projection of a collaboration; `None` for other patterns.
    pub fn collaboration(&self) -> Option<&Collaboration> {
        match &self.pattern {
            PatternWorld::Collaboration(world) => Some(world),
            _ => None,
        }
    }

    /// Projection of an orchestrator; `None` for other patterns.
    pub fn orchestrator(&self) -> Option<&Orchestrator> {
        match &self.pattern {
            PatternWorld::Orchestrator(world) => Some(world),
            _ => None,
        }
    }

    /// The agents of the run, if its pattern is made of agents.
    pub fn agents(&self) -> Option<&AgentsFold> {
        self.projection()?.agents()
    }

    /// The place of the run in its session, if its pattern takes messages.
    pub(crate) fn session(&self) -> Option<&SessionHead> {
        self.projection()?.session()
    }

    /// Projection of a resilience run; `None` for other patterns.
    #[cfg(test)]
    pub(crate) fn resilience(&self) -> Option<&Resilience> {
        match &self.pattern {
            PatternWorld::Resilience(world) => Some(world),
            _ => None,
        }
    }

    /// Projection of a research run; `None` for other patterns.
    pub fn research(&self) -> Option<&Research> {
        match &self.pattern {
            PatternWorld::Research(world) => Some(world),
            _ => None,
        }
    }

    /// Projection of an observed run; `None` for other patterns.
    pub(crate) fn observed(&self) -> Option<&Observed> {
        match &self.pattern {
            PatternWorld::Observed(world) => Some(world),
            _ => None,
        }
    }

    /// Projection of a router; `None` for other patterns.
    pub(crate) fn router(&self) -> Option<&Router> {
        match &self.pattern {
            PatternWorld::Router(world) => Some(world),
            _ => None,
        }
    }
}

/// The projection of the run's pattern.
#[derive(Clone, Debug, Default)]
pub enum PatternWorld {
    /// No head yet.
    #[default]
    None,
    Collaboration(Collaboration),
    Orchestrator(Orchestrator),
    /// A team or swarm.
    Team(Team),
    Resilience(Resilience),
    Research(Box<Research>),
    Router(Router),
    Observed(Box<Observed>),
}

impl PatternWorld {
    /// The state at the start of a run with this plan.
    pub(crate) fn new(plan: &PatternPlan) -> Self {
        match plan {
            PatternPlan::Collaboration(plan) => {
                Self::Collaboration(Collaboration::new(Arc::clone(plan)))
            }
            PatternPlan::Orchestrator(plan) => {
                Self::Orchestrator(Orchestrator::new(Arc::clone(plan)))
            }
            PatternPlan::Team(plan) | PatternPlan::Swarm(plan) => {
                Self::Team(Team::new(Arc::clone(plan)))
            }
            PatternPlan::Resilience(plan) => Self::Resilience(Resilience::new(Arc::clone(plan))),
            PatternPlan::Research(plan) => {
                Self::Research(Box::new(Research::new(Arc::clone(plan))))
            }
            PatternPlan::Router(plan) => Self::Router(Router::new(Arc::clone(plan))),
            PatternPlan::Observed(plan) => {
                let goal = Arc::from(plan.command.join(" "));
                Self::Observed(Box::new(Observed::new(Arc::clone(plan), &goal)))
            }
        }
    }

    /// Processes one event, which `run` has processed already. A static match, because this is
    /// done for each event of a log.
    pub(crate) fn apply(&mut self, event: &Event, run: &RunFold) {
        match self {
            Self::None => {}
            Self::Collaboration(world) => world.apply(event, run),
            Self::Orchestrator(world) => world.apply(event, run),
            Self::Team(world) => world.apply(event, run),
            Self::Resilience(world) => world.apply(event, run),
            Self::Research(world) => world.apply(event, run),
            Self::Router(world) => world.apply(event, run),
            Self::Observed(world) => world.apply(event, run),
        }
    }

    /// What the scrubber marks at this event. A static match, like [`Self::apply`].
    pub(crate) fn mark(&self, event: &Event) -> Option<MarkKind> {
        match self {
            Self::None => None,
            Self::Collaboration(world) => world.mark(event),
            Self::Orchestrator(world) => world.mark(event),
            Self::Team(world) => world.mark(event),
            Self::Resilience(world) => world.mark(event),
            Self::Research(world) => world.mark(event),
            Self::Router(world) => world.mark(event),
            Self::Observed(world) => world.mark(event),
        }
    }

    /// The projection; `None` before the head.
    pub fn get(&self) -> Option<&dyn Projection> {
        match self {
            Self::None => None,
            Self::Collaboration(world) => Some(world),
            Self::Orchestrator(world) => Some(world),
            Self::Team(world) => Some(world),
            Self::Resilience(world) => Some(world),
            Self::Research(world) => Some(&**world),
            Self::Router(world) => Some(world),
            Self::Observed(world) => Some(&**world),
        }
    }
}

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

    /// Whether the number of tasks at a time can be changed while the run plays.
    fn limits_tasks(&self) -> bool {
        false
    }

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
