//! The models that a scenario sets for single roles, agents and steps.

use super::name::{AgentName, RoleName};

/// A role, an agent or a step that calls a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// A role at the table.
    Role(RoleName),
    /// An agent of a team or swarm.
    Agent(AgentName),
    /// The one who plans: tasks, or the steps of research.
    Plan,
    /// The one who takes notes of a page.
    Notes,
    /// The one who puts the answer of research together.
    Answer,
    /// The one who writes the text at the end.
    Finalize,
}

/// The model of one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seated {
    /// The caller.
    pub caller: Caller,
    /// Its name, with or without its provider's before a `/`.
    pub model: String,
    /// Where the scenario says so: `roles.risk_analyst.model`.
    pub place: String,
    /// Set by `--set`, which takes precedence over `--model`.
    pub by_override: bool,
}
