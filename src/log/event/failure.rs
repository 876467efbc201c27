//! How an attempt fails: the classes of failures, and why a model call failed.

use crate::base::worded;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::Usage;
use super::stop::ReasonPart;
use crate::base::time::millis;
use crate::base::visible::visible_within;
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind};

/// Most characters of a failure's text.
const TEXT_CHARS: usize = 300;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttemptFailed {
    /// Class of the failure.
    pub class: FailureClass,
    /// HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What happened and what to do. Keys and addresses are redacted; the length is limited.
    pub text: String,
    /// Milliseconds that `Retry-After` requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether to retry, if the endpoint itself says so (`x-should-retry`) or the failure is sure to
    /// pass or not; otherwise class and status decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The part of the reply that was received before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Arc<str>>,
    /// Tokens it has used, if part of a reply was received: as the endpoint counted them, or
    /// estimated at 4 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Parameters that the endpoint refused. Requests leave them out from now on, so the next
    /// attempt differs from this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Vec<String>>,
    /// Whether it took longer than the breaker's `slow_call_ms`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slow: bool,
}

impl AttemptFailed {
    /// A failure with its class and text.
    pub fn new(class: FailureClass, text: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            class,
            status: None,
            text: text.into(),
            retry_after_ms: None,
            should_retry: None,
            partial: None,
            usage: None,
            adapted: None,
            slow: false,
        })
    }

    /// A failure with advice that is never cut off. Both texts are limited in length and cleaned of
    /// control characters; the caller makes sure that they hold no secret.
    pub fn with_advice(class: FailureClass, what: &str, advice: &str) -> Box<Self> {
        let room = TEXT_CHARS.saturating_sub(advice.chars().count() + 2);
        let what = visible_within(what.trim_end_matches(['.', ' ']), room);
        Self::new(class, format!("{what}. {advice}"))
    }

    /// A failed HTTP status.
    pub fn from_status(status: u16, text: impl Into<String>) -> Box<Self> {
        let class = match status {
            429 => FailureClass::RateLimited,
            401 | 403 => FailureClass::Auth,
            _ => FailureClass::Status,
        };
        Box::new(Self { status: Some(status), ..*Self::new(class, text) })
    }

    /// The failure of a scripted fault once its delay has passed; `None`: it hangs for ever.
    /// `malformed` describes the reply if it is malformed.
    pub fn from_scripted_fault(fault: &ScriptFault, malformed: &str) -> Option<Box<Self>> {
        let (class, text) = match &fault.kind {
            ScriptFaultKind::Hang => return None,
            ScriptFaultKind::Reset => (FailureClass::Reset, "the connection broke halfway"),
            ScriptFaultKind::Refused => (FailureClass::Connect, "connection refused"),
            ScriptFaultKind::BadResponse => (FailureClass::BadResponse, malformed),
            ScriptFaultKind::Status { status, .. } => {
                (FailureClass::Status, &*format!("HTTP {status}"))
            }
            ScriptFaultKind::Resolve => (FailureClass::Resolve, "the host name does not resolve"),
            ScriptFaultKind::Tls => (FailureClass::Tls, "the TLS handshake failed"),
            ScriptFaultKind::Tool => (FailureClass::Tool, "the tool failed"),
            ScriptFaultKind::TooLarge => (FailureClass::TooLarge, "the body is too large"),
            ScriptFaultKind::Denied => (FailureClass::Denied, "the call is refused"),
            ScriptFaultKind::Rejected => (FailureClass::Rejected, "the tool rejects the call"),
        };
        let text = match &fault.text {
            Some(text) => visible_within(text, TEXT_CHARS).to_string(),
            None => format!("{text} (scripted)"),
        };
        let mut failed = Self::new(class, text);
        if let ScriptFaultKind::Status { status, retry_after } = &fault.kind {
            let text = std::mem::take(&mut failed.text);
            failed = Self::from_status(*status, text);
            failed.retry_after_ms = retry_after.map(millis);
        }
        failed.should_retry = fault.retry;
        Some(failed)
    }
}

/// Classes of failures (cascading failures source document; docs/rules/patterns.md, *Tool
/// gateway*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    /// The tool answered that it cannot do what the call asks. The caller has to change, not the tool.
    Rejected,
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

worded! { FailureClass + ALL + phrase {
    Timeout = "timeout" | "timed out", Resolve = "resolve" | "name not found",
    Connect = "connect" | "no connection", Tls = "tls", Reset = "reset",
    RateLimited = "rate_limited" | "rate limited", Auth = "auth", Status = "status" | "HTTP error",
    BadResponse = "bad_response" | "bad response", Tool = "tool" | "failed",
    TooLarge = "too_large" | "too large", Denied = "denied", Rejected = "rejected", Limit = "limit",
    ScriptMissing = "script_missing" | "not scripted", Panic = "panic", Cancelled = "cancelled",
} }

impl FailureClass {
    /// The class with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
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
            | Self::Rejected
            | Self::Limit
            | Self::ScriptMissing
            | Self::Cancelled => false,
        }
    }
}

/// Why a model call failed, other than a timeout or an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LlmError {
    /// `auth`: 401 or 403
    Auth,
    /// `rate_limited`: 429 after the retries
    RateLimited,
    /// `http_<status>`
    Http(u16),
    /// `connection`: refused, reset, host name not resolved, TLS
    Connection,
    /// `bad_response`: a body that is not a chat completion
    BadResponse,
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auth => f.write_str("auth"),
            Self::RateLimited => f.write_str("rate_limited"),
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Connection => f.write_str("connection"),
            Self::BadResponse => f.write_str("bad_response"),
        }
    }
}

impl ReasonPart for LlmError {
    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "auth" => Self::Auth,
            "rate_limited" => Self::RateLimited,
            "connection" => Self::Connection,
            "bad_response" => Self::BadResponse,
            _ => Self::Http(text.strip_prefix("http_")?.parse().ok()?),
        })
    }

    fn phrase(&self) -> Cow<'_, str> {
        match self {
            Self::Auth => "key refused".into(),
            Self::RateLimited => "rate limited".into(),
            Self::Http(status) => format!("HTTP {status}").into(),
            Self::Connection => "no connection".into(),
            Self::BadResponse => "bad response".into(),
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Auth => {
                "The endpoint refused the key: the attempt names its variable; check it with `roundtable doctor --live`."
            }
            Self::RateLimited => {
                "The endpoint limits the rate of calls: start the run again later."
            }
            Self::Http(_) => "The endpoint returned an HTTP error: its text says why.",
            Self::Connection => "Check the endpoint with `roundtable doctor --live`.",
            Self::BadResponse => {
                "The reply was not a chat completion, or was too large: the attempt says which."
            }
        })
    }
}
