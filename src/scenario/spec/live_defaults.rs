//! Defaults of the gateway's policy for a live model: endpoints fail now and then, and several
//! seats of a run call one at the same time.

use std::time::Duration;

use super::limits::{BreakerCounts, RetryBudgetLimits};
use super::model::Scenario;
use super::model_assignment::ModelCaller;
use super::policy::{CallPolicy, UnsetLlmKeys};
use crate::agents::spec::AgentKind;
use crate::pattern::research::spec::{StepExecutor, StepMode};
use crate::scenario::patterns::PatternSpec;

/// Default of `max_attempts`.
const MAX_ATTEMPTS: u32 = 4;
/// Waits in milliseconds before attempt 2, 3, …; the last value repeats.
const BACKOFF_MS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// Retries per minute that each caller of the model may always make.
const RETRIES_PER_CALLER: u32 = 2;

impl Scenario {
    /// The gateway's policy for calls of a live model: [`Scenario::llm`], with the defaults of a
    /// live model for keys that the file does not set.
    pub fn llm_live(&self) -> CallPolicy {
        let UnsetLlmKeys { max_attempts, backoff, retry_min, breaker_counts } = self.llm_unset;
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
            let callers = u32::try_from(model_callers(&self.pattern).len()).unwrap_or(u32::MAX);
            let floor = RETRIES_PER_CALLER.saturating_mul(callers);
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

/// The callers of a live model: seats and the launch brief, planner and report, agents that call a
/// model, steps of research that a model does. A role with two seats is listed twice.
pub fn model_callers(pattern: &PatternSpec) -> Vec<ModelCaller> {
    match pattern {
        PatternSpec::Collaboration(spec) => {
            let seats = spec.sequence.iter().cloned().map(ModelCaller::Role);
            seats.chain([ModelCaller::Finalize]).collect()
        }
        PatternSpec::Orchestrator(_) => vec![ModelCaller::Plan, ModelCaller::Finalize],
        PatternSpec::Team(spec) => {
            let speaks = |kind: &AgentKind| !matches!(kind, AgentKind::Swarm(_));
            let agents = spec.agents.values().filter(|agent| speaks(&agent.kind));
            agents.map(|agent| ModelCaller::Agent(agent.name.clone())).collect()
        }
        PatternSpec::Resilience(_) => Vec::new(),
        PatternSpec::Research(spec) => {
            let steps = [
                (spec.plan.by, ModelCaller::Plan),
                (spec.notes.by, ModelCaller::Notes),
                (spec.answer.by, ModelCaller::Answer),
            ];
            let by_model = |(who, caller): (StepMode, _)| {
                (who.executor(true) == StepExecutor::Model).then_some(caller)
            };
            steps.into_iter().filter_map(by_model).collect()
        }
    }
}
