//! The panes of research.

pub(crate) mod draw;
