//! The classes of failures.

use serde::{Deserialize, Serialize};

/// Classes of failures (cascading failures source document; docs/rules/patterns.md, *Tool
/// gateway*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum FailureClass {
    /// The attempt took longer than its timeout.
    Timeout,
    /// The host name does not resolve.
    Resolve,
    /// Connection refused, or host unreachable.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection was closed in the middle of the exchange.
    Reset,
    /// HTTP 429.
    RateLimited,
    /// HTTP 401 or 403.
    Auth,
    /// Any other HTTP status that is not a success.
    Status,
    /// A body that does not match its contract.
    BadResponse,
    /// The tool's own program or table failed: it ended with an error, or has no result.
    Tool,
    /// A body larger than its limit.
    TooLarge,
    /// Refused before the tool was called: a forbidden address, or arguments that do not fit. The
    /// caller has to change, not the tool.
    Denied,
    /// An agent was ended by its own limits (`max_tool_rounds`, `stuck`, handoffs). The tool is
    /// fine, and a retry would end the same way.
    Limit,
    /// The script of an offline run has no row for this call: the scenario has to add one.
    ScriptMissing,
    /// A panic, caught.
    Panic,
    /// The run was stopped during the attempt.
    Cancelled,
}

impl FailureClass {
    /// Every class.
    pub const ALL: [FailureClass; 16] = [
        Self::Timeout,
        Self::Resolve,
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::RateLimited,
        Self::Auth,
        Self::Status,
        Self::BadResponse,
        Self::Tool,
        Self::TooLarge,
        Self::Denied,
        Self::Limit,
        Self::ScriptMissing,
        Self::Panic,
        Self::Cancelled,
    ];

    /// The class with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    /// The word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::RateLimited => "rate_limited",
            Self::Auth => "auth",
            Self::Status => "status",
            Self::BadResponse => "bad_response",
            Self::Tool => "tool",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::ScriptMissing => "script_missing",
            Self::Panic => "panic",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a failure of this class counts for the breaker, because the tool itself failed
    /// (docs/rules/patterns.md, *Tool gateway*).
    pub fn is_failure_of_tool(self, status: Option<u16>) -> bool {
        match self {
            Self::Timeout
            | Self::Resolve
            | Self::Connect
            | Self::Tls
            | Self::Reset
            | Self::BadResponse
            | Self::Tool
            | Self::TooLarge
            | Self::Panic => true,
            Self::Status => status.is_some_and(|status| status >= 500),
            Self::RateLimited
            | Self::Auth
            | Self::Denied
            | Self::Limit
            | Self::ScriptMissing
            | Self::Cancelled => false,
        }
    }
}
