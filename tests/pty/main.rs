//! The real binary in a terminal.
#![cfg(unix)]

mod authoring;
mod dashboard;
mod effects;
mod endings;
mod heavy_conditions;
mod hostile_logs;
mod kept_runs;
mod keys;
mod models;
mod peers;
mod people;
mod plain;
#[path = "../support/program.rs"]
mod support;
mod terminal;
mod tour;
mod watch;
