//! What happens in a research run, in words.

mod event_line;
mod fields;
mod lines;
mod narrate;
pub mod report;
pub mod source;
