//! Drawing of the panes of a team or a swarm.

pub(crate) mod chain;
pub(crate) mod hops;
pub(crate) mod title;
pub(crate) mod view;
