//! The research pattern (research source document): plan, search, dedupe, gate, read and take
//! notes, verify, synthesize. `play.rs`, `reading.rs` and `note_taking.rs` are the loop; a step is
//! done by the model or by rule.
//!
//! [`policy`] is pure and has the rules that a user must be able to trust: which sources are read,
//! which notes and answers are accepted. The gate is asked before a source is read, at each
//! redirect, and for the final address. A problem of one page ends only that page. The program sets
//! ids, addresses, titles and dates of notes; a model gives a claim and a quote. A page is a field
//! of the payload, never a part of the instructions.

pub mod note_taking;
pub mod play;
pub mod policy;
mod reading;
