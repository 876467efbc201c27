//! What the pattern `resilience` (source `003`) needs of its scenario: many agents that ask the
//! same tools at once, through a guarded gateway or a naive one.

use std::time::Duration;

use super::model::Latency;
use super::name::ToolName;

/// `pattern = "resilience"`.
#[derive(Debug, Clone)]
pub struct ResilienceSpec {
    /// Agents that run at once.
    pub agents: u32,
    /// How often each goes through its steps.
    pub turns: u32,
    /// The tools an agent asks in one turn, in this order.
    pub steps: Vec<ToolName>,
    /// Call slots that all agents share, as the worker pool of a service: a call holds one from its
    /// first attempt to its end, waits between attempts included.
    pub pool: u32,
    /// The pause of an agent between two turns.
    pub pace: Latency,
    /// Whether calls go through the tools' policies, or through [`Naive`] ones.
    pub guarded: bool,
    /// What an unguarded gateway does.
    pub naive: Naive,
    /// Bound of the whole run, pauses not counted.
    pub max_seconds: Duration,
}

/// Retries in three places, each unaware of the others, as in the incident of source `003`. No
/// breaker, no bulkhead, no wait, no safe mode; time-outs stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naive {
    /// Repeats inside the tool's own client, unseen by the gateway.
    pub client_retries: u32,
    /// Repeats in the wrapper around the tool.
    pub tool_retries: u32,
    /// "Try again" of the agent's loop, for one step.
    pub agent_retries: u32,
}
