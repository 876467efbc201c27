//! The panes of a team or a swarm.

mod agent_list;
pub(crate) mod draw;
mod lanes;
mod sequence;
mod subject;
mod target;
pub mod view;
