//! What a log has: events, the facts and plans of patterns, the fold of a log, the log of one run
//! and its replay. No engine, no input or output.

pub mod bus;
pub mod clock;
pub mod event;
pub mod facts;
pub mod replay;
pub mod world;
