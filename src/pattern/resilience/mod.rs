//! Pattern `003`, cascading failures: many agents ask the same tools at once, through a guarded
//! gateway or a naive one.

pub mod play;
