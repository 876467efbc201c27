//! The setup of a resilience run, for the head of its log.

use super::plan::ResiliencePlan;
use super::spec::ResilienceSpec;
use crate::event::id::millis;

/// The setup of a run.
pub(crate) fn setup(spec: &ResilienceSpec) -> ResiliencePlan {
    let naive = spec.naive;
    let naive_attempts = [naive.client_retries, naive.tool_retries, naive.agent_retries]
        .into_iter()
        .fold(1_u32, |all, retries| all.saturating_mul(retries.saturating_add(1)));
    ResiliencePlan {
        agents: spec.agents,
        turns: spec.turns,
        steps: spec.steps.clone(),
        pool: spec.pool,
        guarded: spec.guarded,
        naive_attempts,
        max_ms: millis(spec.max_seconds),
    }
}
