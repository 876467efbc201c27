//! The panes of the tools, which every run can show.

pub mod comparison;
pub(crate) mod draw;
pub(crate) mod listed;
pub(crate) mod run_result;
pub mod view;
