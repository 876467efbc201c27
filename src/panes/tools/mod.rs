//! The panes of the tools, which every run can show.

pub mod comparison;
pub(crate) mod draw;
pub mod view;
