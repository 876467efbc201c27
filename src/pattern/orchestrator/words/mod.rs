//! An orchestrator in words.

mod event_line;
mod lines;
mod markdown;
mod narrate;
mod preview;
pub mod results;
mod what_if;
