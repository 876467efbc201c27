//! Plays the runs of a cluster: takes one for each free slot, claims it, continues it where its former
//! owner stopped, and stores it until its end. What a runner may do is decided here; how logs, commands
//! and late answers are stored is in `cluster/`.

mod commands;
mod core;
mod course;
pub mod grants;
mod hand_over;
mod keeper;
mod late;
mod live_text;
mod play;
mod played_log;
mod prepared;
mod serve;
mod sweep;
#[cfg(test)]
mod tests;

pub use self::core::{Runner, RunnerNews, RunnerSettings};
