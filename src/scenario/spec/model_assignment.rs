//! Models that a scenario sets for single roles, agents and steps.

use super::script::ScriptStep;
use crate::base::name::{AgentName, RoleName};

/// A role, an agent or a step that calls a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelCaller {
    /// A role of a collaboration.
    Role(RoleName),
    /// An agent of a team or swarm.
    Agent(AgentName),
    /// A step of the pattern.
    Step(ScriptStep),
}

/// The model of one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAssignment {
    /// The caller.
    pub caller: ModelCaller,
    /// Name of the model, with or without its provider before a `/`.
    pub model: String,
    /// The key that sets it: `roles.risk_analyst.model`.
    pub place: String,
    /// Set with `--set`, which takes precedence over `--model`.
    pub by_override: bool,
}
