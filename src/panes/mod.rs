//! The panes of a run's page: a folder for each pattern, for what all agents share, and for the tools.

pub(crate) mod agents;
pub(crate) mod collaboration;
pub(crate) mod draw;
pub(crate) mod orchestrator;
pub(crate) mod research;
pub(crate) mod team;
pub(crate) mod tools;
