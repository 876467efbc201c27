//! The cascading failures pattern (cascading failures source document): many agents call the same
//! tools at once, through a guarded gateway or a naive one.

pub mod play;
pub mod spec;
