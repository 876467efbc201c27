//! The coordinator team and swarm patterns (teams source document): agents that work together.

pub(crate) mod file;
pub(crate) mod head;
pub(crate) mod outcome;
pub mod plan;
pub mod play;
pub mod projection;
pub mod spec;
mod starting;
pub(crate) mod words;
