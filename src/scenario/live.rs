//! The defaults of a model that is asked live, where a scenario says nothing: an endpoint has bad
//! moments, and a run of several seats asks it several times at once.

use std::time::Duration;

use super::agent::AgentKind;
use super::model::{CallPolicy, PatternSpec, Scenario};
use super::research::{DoneBy, Who};
use super::resilience::{BreakerCounts, RetryBudgetLimits};
use super::seated::Caller;

/// Attempts of one call, the first included.
const MAX_ATTEMPTS: u32 = 4;
/// Milliseconds before attempt 2, 3, …; the last repeats.
const BACKOFF_MS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// Retries within a minute that each caller of the model may count on.
const RETRIES_A_CALLER: u32 = 2;

/// What of `[tools.llm]` a scenario does not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unset {
    /// `retries.max_attempts`
    pub max_attempts: bool,
    /// `retries.backoff_ms`
    pub backoff: bool,
    /// `retry_budget.min`
    pub retry_min: bool,
    /// `breaker.counts`
    pub breaker_counts: bool,
}

impl Scenario {
    /// The gateway's policy for calls of a model that is asked live: [`Scenario::llm`] with the
    /// defaults of a live model where the file says nothing.
    pub fn llm_live(&self) -> CallPolicy {
        let Unset { max_attempts, backoff, retry_min, breaker_counts } = self.llm_unset;
        let mut policy = self.llm.clone();
        if max_attempts {
            policy.max_attempts = MAX_ATTEMPTS;
        }
        if backoff {
            policy.backoff = BACKOFF_MS.map(Duration::from_millis).into();
        }
        if let Some(budget) = &mut policy.retry_budget
            && retry_min
        {
            let callers = u32::try_from(callers(&self.pattern).len()).unwrap_or(u32::MAX);
            let floor = RETRIES_A_CALLER.saturating_mul(callers);
            budget.min = floor.max(RetryBudgetLimits::default().min);
        }
        if let Some(breaker) = &mut policy.breaker
            && breaker_counts
        {
            breaker.counts = BreakerCounts::Calls;
        }
        policy
    }
}

/// Who asks a model in a live run: seats and the brief, planner and report, agents that speak, steps of
/// research that a model does. A role that sits twice is there twice.
pub fn callers(pattern: &PatternSpec) -> Vec<Caller> {
    match pattern {
        PatternSpec::Collaboration(spec) => {
            let seats = spec.sequence.iter().cloned().map(Caller::Role);
            seats.chain([Caller::Finalize]).collect()
        }
        PatternSpec::Orchestrator(_) => vec![Caller::Plan, Caller::Finalize],
        PatternSpec::Team(spec) => {
            let speaks = |kind: &AgentKind| !matches!(kind, AgentKind::Swarm(_));
            let agents = spec.agents.values().filter(|agent| speaks(&agent.kind));
            agents.map(|agent| Caller::Agent(agent.name.clone())).collect()
        }
        PatternSpec::Resilience(_) => Vec::new(),
        PatternSpec::Research(spec) => {
            let steps = [
                (spec.plan.by, Caller::Plan),
                (spec.notes.by, Caller::Notes),
                (spec.answer.by, Caller::Answer),
            ];
            let by_model =
                |(who, caller): (Who, _)| (who.in_a_run(true) == DoneBy::Model).then_some(caller);
            steps.into_iter().filter_map(by_model).collect()
        }
    }
}
