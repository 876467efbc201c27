//! The research pattern (research source document): plan, search, dedupe, gate, read and take
//! notes, verify, synthesize.
//!
//! [`policy`], [`address`], [`quote`], [`figures`], [`compare`] and [`answer`] are pure. They hold
//! the rules that a user must be able to trust: which sources are read, which notes and answers are
//! accepted. They treat what pages and models say as data. [`by_rule`] replaces the model where a
//! scenario allows that; `play.rs` and `reading.rs` are the loop.

pub mod address;
pub mod answer;
pub mod by_rule;
pub mod compare;
mod detail;
pub mod figures;
mod payload;
pub mod play;
pub mod policy;
pub mod quote;
mod reading;
pub mod sentences;
mod tool_data;
