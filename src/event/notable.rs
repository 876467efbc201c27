//! Which events are notable: what a reader of a run wants to know. The others are the steps of calls,
//! which the outcome of the call sums up: its retry, its failure, or what its caller made of it.

use super::EventKind;

impl EventKind {
    /// Whether the event is notable.
    pub(crate) fn is_notable(&self) -> bool {
        !matches!(
            self,
            Self::CallStarted(_)
                | Self::CallAnswered { .. }
                | Self::CallQueued
                | Self::CallAdmitted { .. }
                | Self::AttemptRefused { .. }
                | Self::AttemptQueued { .. }
                | Self::AttemptStarted { .. }
                | Self::AttemptAnswered(_)
                | Self::AttemptFailed(_)
                | Self::ClientRetried { .. }
                | Self::ResultIgnored { .. }
                | Self::SessionRunStarted { .. }
                | Self::SessionRunClosed { .. }
        )
    }
}
