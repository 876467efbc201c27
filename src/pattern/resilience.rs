//! A run of the cascading failures source document: many agents call the same tools at once, through
//! a guarded gateway or a naive one. Each agent does its steps turn by turn, and all of them share a
//! pool of call slots, like the workers of a service.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::base::name::ToolName;
use crate::log::event::{Boundary, Purpose, SpanId, StopReason};
use crate::run::{CallerPolicy, RunContext, ToolCallRequest};
use crate::scenario::patterns::resilience::ResilienceSpec;

/// Runs every agent to its end. An agent continues without the result when a step fails.
///
/// # Errors
/// Why the run stopped before that.
pub async fn play(cx: &RunContext, spec: &ResilienceSpec) -> Result<(), StopReason> {
    cx.set_phase("agents".to_owned());
    let storm = ResilienceRun { cx, spec, pool: Semaphore::new(spec.pool as usize) };
    let mut agents: FuturesUnordered<_> = (1..=spec.agents)
        .map(|agent| {
            let branch = cx.control().branch();
            let storm = &storm;
            async move {
                let _branch = branch;
                storm.run_agent(agent).await
            }
        })
        .collect();
    let _waits = cx.control().mark_waiting();
    while let Some(ended) = agents.next().await {
        ended?;
    }
    Ok(())
}

/// What all agents share.
struct ResilienceRun<'a> {
    cx: &'a RunContext,
    spec: &'a ResilienceSpec,
    pool: Semaphore,
}

impl CallerPolicy for ResilienceRun<'_> {
    fn call_slots(&self) -> Option<&Semaphore> {
        Some(&self.pool)
    }
}

impl ResilienceRun<'_> {
    async fn run_agent(&self, agent: u32) -> Result<(), StopReason> {
        for turn in 1..=self.spec.turns {
            self.cx.boundary(Boundary::Turn { agent, turn }).await?;
            if let Some(tool) = self.all_tools_unavailable() {
                return Err(StopReason::CircuitOpen(tool.clone()));
            }
            for (step, tool) in (0..).zip(&self.spec.steps) {
                self.run_step(agent, turn, step, tool).await?;
            }
            self.cx.wait(self.spec.pace, &format!("agent:{agent}"), turn).await;
        }
        Ok(())
    }

    /// The first tool, if all tools stay unavailable for the rest of the run: the run then stops
    /// early, since no retry can succeed ("stop early with reason" in the cascading failures source
    /// document).
    fn all_tools_unavailable(&self) -> Option<&ToolName> {
        let remaining = self.cx.control().remaining();
        let shut = |tool: &ToolName| {
            self.cx.tools().get(tool).is_some_and(|tool| tool.guard.is_blocked_for(remaining))
        };
        self.spec.steps.first().filter(|_| self.spec.steps.iter().all(shut))
    }

    /// Runs one step, with the retries of an agent that retries on its own.
    async fn run_step(
        &self,
        agent: u32,
        turn: u32,
        step: u16,
        tool: &ToolName,
    ) -> Result<(), StopReason> {
        let naive = (!self.spec.guarded).then_some(self.spec.naive);
        // The arguments are the same in every turn, so an earlier good result can serve as a
        // fallback later.
        let args: Arc<Map<String, Value>> =
            Arc::new([("agent".to_owned(), json!(agent))].into_iter().collect());
        for again in 0..=naive.map_or(0, |naive| naive.agent_retries) {
            let asked = self
                .cx
                .call_tool(ToolCallRequest {
                    parent: SpanId::RUN,
                    of_program: None,
                    tool,
                    purpose: Purpose::AgentStep { agent, turn, step, repeat: again },
                    path: format!("agent:{agent}:{turn}:{step}:{again}"),
                    args: Arc::clone(&args),
                    request_id: None,
                    caller: self,
                    why: None,
                    client_retries: naive.map_or(0, |naive| naive.client_retries),
                })
                .await;
            match asked {
                Ok(_) => break,
                Err(failed) if failed.unavailable && self.cx.requires(tool) => {
                    return Err(failed.reason);
                }
                // A denial is no failure: nobody is asked again.
                Err(failed) if failed.denied.is_some() => break,
                Err(_) => {}
            }
        }
        Ok(())
    }
}
