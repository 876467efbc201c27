//! The research pattern (research source document): plan, search, dedupe, gate, read and take
//! notes, verify, synthesize.
//!
//! [`policy`] and the modules in it are pure. They hold the rules that a user must be able to trust:
//! which sources are read, which notes and answers are accepted. They treat what pages and models
//! say as data. [`by_rule`] replaces the model where a
//! scenario allows that; `play.rs` and `reading.rs` are the loop.

pub mod by_rule;
mod detail;
pub mod facts;
pub mod faults;
mod fetched_page;
pub mod file;
pub(crate) mod head;
pub mod ids;
mod note_taking;
pub(crate) mod outcome;
mod payload;
pub mod plan;
pub mod play;
pub mod policy;
pub mod projection;
mod reading;
pub mod research_run;
pub mod spec;
mod tool_data;
pub(crate) mod words;
