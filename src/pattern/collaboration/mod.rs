//! The collaboration pattern (collaboration source document): roles contribute in rounds until
//! policy reaches a decision.

pub mod payload;
pub mod play;
pub mod policy;
