//! The panes of an orchestrator.

pub(crate) mod draw;
