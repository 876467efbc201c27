//! What the panes of all agents share.

pub(crate) mod draw;
