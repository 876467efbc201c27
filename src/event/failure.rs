//! How an attempt fails.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::Usage;
use super::failure_class::FailureClass;
use super::id::millis;
use crate::base::visible::visible_within;
use crate::scenario::spec::fault::ScriptFaultKind;

/// Most characters of a failure's text.
const TEXT_CHARS: usize = 300;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
    pub fn from_scripted_fault(fault: &ScriptFaultKind, malformed: &str) -> Option<Box<Self>> {
        Some(match fault {
            ScriptFaultKind::Hang => return None,
            ScriptFaultKind::Reset => {
                Self::new(FailureClass::Reset, "the connection broke halfway (scripted)")
            }
            ScriptFaultKind::Refused => {
                Self::new(FailureClass::Connect, "connection refused (scripted)")
            }
            ScriptFaultKind::BadResponse => {
                Self::new(FailureClass::BadResponse, format!("{malformed} (scripted)"))
            }
            ScriptFaultKind::Status { status, retry_after } => {
                let mut failed = Self::from_status(*status, format!("HTTP {status} (scripted)"));
                failed.retry_after_ms = retry_after.map(millis);
                failed
            }
        })
    }
}
