//! The cascading failures pattern (cascading failures source document): many agents call the same
//! tools at once, through a guarded gateway or a naive one.

pub mod file;
pub(crate) mod head;
pub(crate) mod outcome;
pub mod plan;
pub mod play;
pub mod projection;
pub mod spec;
pub(crate) mod words;
