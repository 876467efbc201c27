//! Why a model call failed.

use std::borrow::Cow;
use std::fmt;

use super::reason_part::ReasonPart;
use super::redact::TextRedactor;

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

    fn redact(&mut self, _by: &TextRedactor) {}

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
