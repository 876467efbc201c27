//! The panes of the tools, which every run can show.

pub(crate) mod draw;
