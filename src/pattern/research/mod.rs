//! The research pattern (research source document): plan, search, dedupe, gate, read and take
//! notes, verify, synthesize.
//!
//! [`policy`] and the modules in it are pure. They hold the rules that a user must be able to trust:
//! which sources are read, which notes and answers are accepted. They treat what pages and models
//! say as data. [`by_rule`] replaces the model where a
//! scenario allows that; `play.rs` and `reading.rs` are the loop.

pub mod file;
pub mod note_taking;
pub mod play;
pub mod policy;
mod reading;
mod script;
pub mod spec;
