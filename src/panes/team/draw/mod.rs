//! Drawing of the panes of a team or a swarm.

mod agents;
pub(crate) mod chain;
mod hop;
mod sequence;
mod title;
mod view;
