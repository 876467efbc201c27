//! What a run that puts load on tools adds to the figures of the tools.

use crate::base::name::ToolName;

/// The callers of a run that puts load on tools, and how they may call.
#[derive(Clone, Copy, Debug)]
pub struct ToolLoad<'w> {
    /// The agents in order.
    pub agents: &'w [LoadAgent],
    /// Turns of each agent.
    pub turns: u32,
    /// The tools that an agent calls in each turn, in order.
    pub steps: &'w [ToolName],
    /// The call slots that all agents share.
    pub slots: CallSlots,
    /// Max attempts of one step if the calls bypass the tools' policies; `None` if they do not.
    pub naive_attempts: Option<u32>,
}

/// Call slots that all agents of a run share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSlots {
    /// How many there are.
    pub pool: u32,
    /// Slots in use.
    pub in_use: u32,
    /// Most slots in use at the same time.
    pub peak: u32,
    /// Number of calls that wait for a slot now.
    pub waiting: u32,
    /// Most calls that waited at the same time.
    pub peak_waiting: u32,
}

/// An agent that calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadAgent {
    /// Number of its current turn, from 1; 0 before the first.
    pub turn: u32,
    /// The tool it calls now.
    pub calling: Option<ToolName>,
    /// Whether that call waits for a slot.
    pub waits_for_slot: bool,
    /// Its calls with a result.
    pub answered: u32,
    /// Its calls with a fallback or an omitted result.
    pub degraded: u32,
    /// Its calls without a result.
    pub failed: u32,
}
