//! What a scenario expects of its runs.

use crate::scenario::condition::Condition;

/// A condition that has to hold when a run has ended (`[[expect]]`).
#[derive(Debug)]
pub struct Expectation {
    /// The condition.
    pub that: Condition,
    /// What it means, in one sentence; `None`: the file does not say it.
    pub message: Option<String>,
    /// Its line in the file, from 1.
    pub line: usize,
}
