//! Runs past one machine: their logs in NATS JetStream, where any runner can play them and any
//! dashboard can watch them. [`ClusterLog`] is the [`RunLog`](crate::store::RunLog) of it; the rest is
//! what logs alone do not carry: runs to play, commands, late answers, the list of runs, the runners.
//!
//! A runner owns a run while the last claim in its log is its own: each append expects the last place of
//! the log that the runner has read, so an append of a runner that was replaced is refused. Nothing
//! else decides who owns a run: not the work queue, no acknowledgement, no lease.
//!
//! This module knows nothing of engines: `runner/` plays runs.

pub mod access;
pub mod address;
pub mod answers;
pub mod archive;
mod blobs;
pub mod claim;
pub mod commands;
pub mod connection;
pub mod entry;
pub mod follow;
pub mod hand_over;
pub mod layout;
mod leader;
pub mod log;
pub mod names;
mod publish;
pub mod queue;
mod read;
pub mod request;
pub mod rows;
pub mod runners;
pub mod spoken;
#[cfg(test)]
mod tests;

pub use self::connection::{Cluster, ConnectError};
pub use self::log::ClusterLog;
