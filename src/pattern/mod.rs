//! The patterns, each in its own folder, and the registry of what the engine asks of them. `policy.rs` is pure (validate, decide) and holds the rules
//! that a user must be able to trust; `play.rs` is the loop that calls models and tools, applies
//! the policy and publishes events.
//!
//! A pattern does not know that a dashboard exists. Everything that is not deterministic goes
//! through its [`RunContext`](crate::run::RunContext).

pub mod collaboration;
pub mod orchestrator;
pub(crate) mod prompting;
pub mod reply;
pub mod research;
pub mod resilience;
pub mod team;

use std::sync::Arc;

use crate::event::StopReason;
use crate::event::patterns::PatternPlan;
use crate::run::{Rosters, RunContext, Session};
use crate::scenario::Scenario;
use crate::scenario::patterns::PatternSpec;

/// Plays a run to its end.
///
/// # Errors
/// The stop reason, if it ends without an answer.
pub(crate) async fn play(cx: &RunContext, scenario: &Scenario) -> Result<(), StopReason> {
    match &scenario.pattern {
        PatternSpec::Collaboration(spec) => collaboration::play::play(cx, scenario, spec).await,
        PatternSpec::Orchestrator(spec) => orchestrator::play::play(cx, scenario, spec).await,
        PatternSpec::Team(spec) => team::play::play(cx, scenario, spec).await,
        PatternSpec::Resilience(spec) => resilience::play::play(cx, spec).await,
        PatternSpec::Research(spec) => research::play::play(cx, scenario, spec).await,
    }
}

/// The setup of a run, for the head of its log: of a live or a scripted model, which begins at this
/// time of the wall, in milliseconds.
pub(crate) fn plan(spec: &PatternSpec, session: &Session, live: bool, wall_ms: u64) -> PatternPlan {
    match spec {
        PatternSpec::Collaboration(spec) => {
            PatternPlan::Collaboration(Arc::new(collaboration::head::setup(spec)))
        }
        PatternSpec::Orchestrator(spec) => {
            PatternPlan::Orchestrator(Arc::new(orchestrator::head::setup(spec)))
        }
        PatternSpec::Team(spec) if spec.is_swarm() => {
            PatternPlan::Swarm(Arc::new(team::head::setup(spec, session)))
        }
        PatternSpec::Team(spec) => PatternPlan::Team(Arc::new(team::head::setup(spec, session))),
        PatternSpec::Resilience(spec) => {
            PatternPlan::Resilience(Arc::new(resilience::head::setup(spec)))
        }
        PatternSpec::Research(spec) => {
            PatternPlan::Research(Arc::new(research::head::setup(spec, live, wall_ms)))
        }
    }
}

/// The concurrency limit of tasks at the start; `None`: the pattern has none.
pub(crate) fn max_parallel(spec: &PatternSpec) -> Option<u32> {
    match spec {
        PatternSpec::Orchestrator(spec) => Some(spec.budget.max_parallel),
        PatternSpec::Collaboration(_)
        | PatternSpec::Team(_)
        | PatternSpec::Resilience(_)
        | PatternSpec::Research(_) => None,
    }
}

/// The members of the swarms at the start.
pub(crate) fn rosters(spec: &PatternSpec, session: &Session) -> Rosters {
    match spec {
        PatternSpec::Team(spec) => Rosters::new(spec, &session.memory.rosters),
        PatternSpec::Collaboration(_)
        | PatternSpec::Orchestrator(_)
        | PatternSpec::Resilience(_)
        | PatternSpec::Research(_) => Rosters::default(),
    }
}
