//! What agents do, in words.

pub mod event_line;
pub mod fields;
pub mod lines;
pub mod markdown;
