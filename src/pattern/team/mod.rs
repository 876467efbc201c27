//! The coordinator team and swarm patterns (teams source document): agents that work together.

pub(crate) mod file;
pub(crate) mod head;
pub mod play;
pub mod spec;
pub(crate) mod words;
