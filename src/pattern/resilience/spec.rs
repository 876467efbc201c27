//! The settings of the pattern `resilience` (cascading failures source document): many agents that
//! call the same tools concurrently, through a guarded gateway or a naive one.

use std::collections::BTreeMap;

use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::pattern::{LabelledText, LimitField, Spec};
use crate::scenario::spec::policy::{CallPolicy, SafeMode};
use crate::scenario::spec::tool::ToolSpec;
use std::time::Duration;

use crate::base::name::{FlagName, ToolName};
use crate::base::seeded_random::Latency;

/// `pattern = "resilience"`.
#[derive(Debug, Clone)]
pub struct ResilienceSpec {
    /// Number of concurrent agents.
    pub agents: u32,
    /// How often each agent repeats its steps.
    pub turns: u32,
    /// The tools that an agent calls in one turn, in order.
    pub steps: Vec<ToolName>,
    /// Number of call slots that all agents share, like the worker pool of a service: a call holds
    /// one from its first attempt to its end, including the waits between attempts.
    pub pool: u32,
    /// The pause of an agent between two turns.
    pub pace: Latency,
    /// Whether calls use the tools' policies; if not, [`Naive`] ones.
    pub guarded: bool,
    /// The retries without the tools' policies.
    pub naive: Naive,
    /// Time limit of the whole run; pauses are not counted.
    pub max_seconds: Duration,
}

/// Retries in three layers that do not know of each other, as in the incident of the cascading
/// failures source document. No breaker, no bulkhead, no waits, no safe mode; timeouts still apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naive {
    /// Retries inside the tool's own client; the gateway does not see them.
    pub client_retries: u32,
    /// Retries in the wrapper around the tool.
    pub tool_retries: u32,
    /// Retries of one step by the agent's loop.
    pub agent_retries: u32,
}

impl Spec for ResilienceSpec {
    fn name(&self) -> &'static str {
        "resilience"
    }

    fn max_time(&self) -> Duration {
        self.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (u64::from(self.agents), "agent")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![
            LimitField::new("resilience.agents", "Parallel agents", self.agents),
            LimitField::new("resilience.turns", "Turns per agent", self.turns),
            LimitField::new("resilience.pool", "Call slots", self.pool),
            LimitField::max_seconds(self.max_seconds),
        ]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let limits = format!(
            "{} agents, {} turns each, {} call slots, {} s",
            self.agents,
            self.turns,
            self.pool,
            self.max_seconds.as_secs(),
        );
        let steps: Vec<&str> = self.steps.iter().map(|tool| tool.as_str()).collect();
        let how = if self.guarded {
            "guarded: retries in one place, breaker, bulkhead, safe mode".to_owned()
        } else {
            let naive = self.naive;
            format!(
                "naive, retries: client {}, tool {}, agent {}",
                naive.client_retries, naive.tool_retries, naive.agent_retries
            )
        };
        vec![
            LabelledText::new("limits", limits),
            LabelledText::new("tools", steps.join(", ")),
            LabelledText::new("gateway", how),
        ]
    }

    /// Checks `turn:TURN:AGENT`.
    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let mut parts = at.splitn(3, ':');
        let of = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
        match (parts.next(), of(parts.next()), of(parts.next())) {
            (Some("turn"), Some(turn), Some(agent)) => {
                let comes = (1..=self.turns).contains(&turn) && (1..=self.agents).contains(&agent);
                if comes {
                    return Ok(());
                }
                Err(format!("never reached: {} agents with {} turns each", self.agents, self.turns))
            }
            _ => Err("never reached here; use turn:TURN:AGENT".to_owned()),
        }
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        Vec::new()
    }

    /// A naive run keeps only the timeout of a tool, and retries at once.
    fn tool_policy(&self, policy: &CallPolicy) -> CallPolicy {
        if self.guarded {
            return policy.clone();
        }
        CallPolicy {
            timeout: policy.timeout,
            max_attempts: self.naive.tool_retries.saturating_add(1),
            backoff: [].into(),
            jitter: false,
            retry_budget: None,
            breaker: None,
            bulkhead: None,
            safe_mode: SafeMode::OFF,
            ..policy.clone()
        }
    }

    fn reads_flag(&self, _: &FlagName) -> bool {
        false
    }
}
