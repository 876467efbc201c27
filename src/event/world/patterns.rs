//! The state of a run, and the registry of projections: one variant for each pattern.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::fold::RunFold;
use super::marks::MarkKind;
use super::projection::Projection;
use crate::agents::facts::SessionHead;
use crate::agents::projection::AgentsFold;
use crate::event::patterns::PatternPlan;
use crate::event::{Event, EventKind, Seq};
use crate::pattern::collaboration::projection::Collaboration;
use crate::pattern::orchestrator::projection::Orchestrator;
use crate::pattern::research::projection::Research;
use crate::pattern::resilience::projection::Resilience;
use crate::pattern::router::projection::Router;
use crate::pattern::team::projection::Team;

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
    /// same. A host that follows an endless run calls this now and then, with an event some way
    /// back, because screens still show calls that have just ended.
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
    /// A collaboration.
    Collaboration(Collaboration),
    /// An orchestrator.
    Orchestrator(Orchestrator),
    /// A team or swarm.
    Team(Team),
    /// A resilience run.
    Resilience(Resilience),
    /// A research run.
    Research(Box<Research>),
    /// A router.
    Router(Router),
}

impl PatternWorld {
    /// The state at the start of a run with this plan.
    pub(super) fn new(plan: &PatternPlan) -> Self {
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
        }
    }

    /// Processes one event, which `run` has processed already. A static match, because this is
    /// done for each event of a log.
    pub(super) fn apply(&mut self, event: &Event, run: &RunFold) {
        match self {
            Self::None => {}
            Self::Collaboration(world) => world.apply(event, run),
            Self::Orchestrator(world) => world.apply(event, run),
            Self::Team(world) => world.apply(event, run),
            Self::Resilience(world) => world.apply(event, run),
            Self::Research(world) => world.apply(event, run),
            Self::Router(world) => world.apply(event, run),
        }
    }

    /// What the scrubber marks at this event. A static match, like [`Self::apply`].
    pub(super) fn mark(&self, event: &Event) -> Option<MarkKind> {
        match self {
            Self::None => None,
            Self::Collaboration(world) => world.mark(event),
            Self::Orchestrator(world) => world.mark(event),
            Self::Team(world) => world.mark(event),
            Self::Resilience(world) => world.mark(event),
            Self::Research(world) => world.mark(event),
            Self::Router(world) => world.mark(event),
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
        }
    }
}
