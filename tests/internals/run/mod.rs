//! Runs: how they flow, what they take, what they spend.

mod allocations;
mod concurrency;
mod flows;
mod live_rules;
mod memory;
mod spending;
