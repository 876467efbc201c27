//! The panes of an orchestrator.

pub(crate) mod draw;
pub mod results;
pub mod subject;
pub mod task;
pub mod view;
pub mod waterfall;
