//! The collaboration pattern (collaboration source document): roles contribute in rounds until
//! policy reaches a decision.

mod detail;
pub mod facts;
pub mod faults;
pub(crate) mod file;
pub(crate) mod head;
pub(crate) mod outcome;
pub mod payload;
pub mod plain;
pub mod plan;
pub mod play;
pub mod policy;
pub mod projection;
pub mod spec;
pub(crate) mod words;
