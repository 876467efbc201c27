//! What happens to a call that may have taken effect before its run stopped.

use serde::{Deserialize, Serialize};

/// What a resumed run does with a call whose attempt was in flight when the run stopped, so that
/// it is not known whether it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum InDoubt {
    /// The attempt is made again.
    Retry,
    /// The run pauses before the attempt is made again.
    Ask,
    /// The run stops.
    Stop,
}
