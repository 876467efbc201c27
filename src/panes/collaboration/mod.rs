//! The panes of a collaboration.

pub(crate) mod draw;
