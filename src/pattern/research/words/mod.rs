//! What happens in a research run, in words.

pub mod event_line;
pub mod report;
