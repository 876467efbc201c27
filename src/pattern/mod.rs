//! The patterns, each in a file or folder of its name, and the registry of what the engine asks of
//! them. In a folder, `policy.rs` is pure and has the rules that a user must be able to trust, and
//! `play.rs` is the loop that calls models and tools, applies the policy and publishes events.
//!
//! A pattern does not know that a dashboard exists. It is deterministic, given the scenario and the
//! replies and results it gets: everything else goes through its
//! [`RunContext`](crate::run::RunContext).

pub mod agents;
pub mod collaboration;
pub(crate) mod observed;
pub mod orchestrator;
pub(crate) mod people;
mod plan;
mod prompting;
mod reply;
pub mod research;
pub mod resilience;
pub mod router;
pub mod team;

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;

use self::agents::swarm::Rosters;
use self::orchestrator::dispatch::ConcurrencyLimit;
pub(crate) use self::plan::plan;
use crate::log::bus::Bus;
use crate::log::event::StopReason;
use crate::run::{LiveControl, RunContext, Session};
use crate::scenario::Scenario;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::router::RouterSpec;
use crate::scenario::patterns::team::TeamSpec;

/// Plays a run to its end. `live` was made for the same pattern. A run has only the future of its pattern;
/// one future for all patterns would be as large as the largest.
pub(crate) fn play<'a>(
    cx: &'a RunContext,
    scenario: &'a Scenario,
    live: &'a PatternLive,
) -> BoxFuture<'a, Result<(), StopReason>> {
    match (&scenario.pattern, live) {
        (PatternSpec::Collaboration(spec), _) => Box::pin(collaboration::play(cx, scenario, spec)),
        (PatternSpec::Orchestrator(spec), PatternLive::Concurrency(limit)) => {
            Box::pin(orchestrator::play(cx, scenario, spec, limit))
        }
        (PatternSpec::Team(spec), PatternLive::Rosters(rosters)) => {
            Box::pin(team::play(cx, scenario, spec, rosters))
        }
        (PatternSpec::Resilience(spec), _) => Box::pin(resilience::play(cx, spec)),
        (PatternSpec::Research(spec), _) => Box::pin(research::play(cx, scenario, spec)),
        (PatternSpec::Router(spec), PatternLive::Rosters(rosters)) => {
            Box::pin(router::play(cx, scenario, spec, rosters))
        }
        (PatternSpec::Observed(spec), _) => Box::pin(observed::play(cx, spec)),
        (PatternSpec::Orchestrator(_) | PatternSpec::Team(_) | PatternSpec::Router(_), _) => {
            Box::pin(ready(Err(StopReason::InternalError)))
        }
    }
}

/// The part of a running pattern that commands change, as the pattern itself needs it.
pub(crate) enum PatternLive {
    Nothing,
    /// How many tasks run at once.
    Concurrency(Arc<ConcurrencyLimit>),
    /// The members of the swarms.
    Rosters(Arc<Rosters>),
}

impl PatternLive {
    /// The state at the start of a run with this log, which continues a session.
    pub(crate) fn new(spec: &PatternSpec, bus: &Bus, session: &Session) -> Self {
        match spec {
            PatternSpec::Orchestrator(spec) => {
                let limit = ConcurrencyLimit::new(bus.clone(), spec.budget.max_parallel);
                Self::Concurrency(Arc::new(limit))
            }
            PatternSpec::Team(TeamSpec { agents, .. })
            | PatternSpec::Router(RouterSpec { agents, .. }) => {
                let left = &session.memory.rosters;
                Self::Rosters(Arc::new(Rosters::new(bus.clone(), agents, left)))
            }
            PatternSpec::Collaboration(_)
            | PatternSpec::Resilience(_)
            | PatternSpec::Research(_)
            | PatternSpec::Observed(_) => Self::Nothing,
        }
    }

    /// What takes the commands; `None` if nothing changes.
    pub(crate) fn control(&self) -> Option<Arc<dyn LiveControl>> {
        match self {
            Self::Nothing => None,
            Self::Concurrency(limit) => Some(Arc::clone(limit) as Arc<dyn LiveControl>),
            Self::Rosters(rosters) => Some(Arc::clone(rosters) as Arc<dyn LiveControl>),
        }
    }
}
