//! Which events are notable: what a reader of a run wants to know. The others are the steps of calls,
//! which the outcome of the call sums up: its retry, its failure, or what its caller made of it.

use super::EventKind;
use super::kind::Purpose;

impl EventKind {
    /// Whether the event is notable.
    pub(crate) fn is_notable(&self) -> bool {
        // A consultation is a hop of the run, and no other event reports it.
        if let Self::CallStarted(call) = self {
            return matches!(call.purpose, Purpose::Member { .. });
        }
        !matches!(
            self,
            Self::CallAnswered { .. }
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
