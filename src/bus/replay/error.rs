//! Why a recorded run cannot be continued.

use crate::event::{BoundaryId, Elapsed, Seq};

/// Why a recorded run is not continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The run does something else than its log says.
    #[error(transparent)]
    Diverged(#[from] Divergence),
    /// A fork: the run does not come to the boundary.
    #[error("the run never came to {at}")]
    NotReached {
        /// The boundary.
        at: BoundaryId,
        /// The boundaries that it came to, in this order.
        passed: Vec<PassedBoundary>,
    },
}

/// The run does something else than its log says, so it cannot be continued from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {} of the log is {recorded}, but the run has {executed} there", .seq.0)]
pub struct Divergence {
    /// The first event of the log that differs.
    pub seq: Seq,
    /// What the log has.
    pub recorded: String,
    /// What the run does.
    pub executed: String,
}

/// A boundary that a recorded run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedBoundary {
    /// The boundary.
    pub id: BoundaryId,
    /// The first event of the recording after it.
    pub next: Seq,
    /// Time of the run then.
    pub at: Elapsed,
}
