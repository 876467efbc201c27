//! The panes of a team or a swarm.

pub(crate) mod draw;
mod target;
pub mod view;
