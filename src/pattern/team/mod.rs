//! The coordinator team and swarm patterns (teams source document): agents that work together.

pub mod play;
pub mod spec;
