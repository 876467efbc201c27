//! What was done to a kept run.

use crate::event::RunId;

/// A change of a kept run that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptChange {
    /// It was removed.
    Removed(RunId),
    /// It was brought back.
    Restored(RunId),
    /// It was pinned, or is no longer.
    Pinned(RunId, bool),
    /// It could not be changed; the sentence says why.
    Refused(String),
}
