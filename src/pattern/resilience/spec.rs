//! The settings of the pattern `resilience` (cascading failures source document): many agents that
//! call the same tools concurrently, through a guarded gateway or a naive one.

use std::time::Duration;

use crate::base::name::ToolName;
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
