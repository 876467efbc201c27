//! Which model answers whom, where a scenario says so.

use super::name::{AgentName, RoleName};

/// Who asks a model.
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

/// A model that a scenario names for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seated {
    /// Who asks it.
    pub caller: Caller,
    /// Its name, with or without its provider's before a `/`.
    pub model: String,
    /// Where the scenario says so: `roles.risk_analyst.model`.
    pub place: String,
    /// `--set` said so, which goes before `--model`.
    pub by_override: bool,
}
