//! Failures that a scenario scripts.

use std::time::Duration;

/// A failure of the first `times` attempts of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// The kind of failure.
    pub kind: ScriptFaultKind,
    /// How many attempts of a call fail, from the first on.
    pub times: u32,
}

/// The failures of a scripted attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFaultKind {
    /// The endpoint returns this HTTP status.
    Status {
        /// The status, such as 503.
        status: u16,
        /// The value of its `Retry-After` header, if any.
        retry_after: Option<Duration>,
    },
    /// No response until the timeout.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks in the middle of the reply.
    Reset,
    /// A response body that is not a chat completion.
    BadResponse,
}
