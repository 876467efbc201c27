//! How a tool's answer is read: JSON, or a failure that says where it broke.

use std::sync::Arc;

use serde_json::Value;

use crate::event::kind::{AttemptFailed, FailureClass};
use crate::event::visible::visible_within;
use crate::net::Redactor;

/// The most characters of an answer that a failure repeats.
const SAID_CHARS: usize = 80;

/// Reads an answer. `from` says whose it is, for the text of a failure.
pub(super) fn json(
    bytes: &[u8],
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let bad = |text: String| AttemptFailed::of(FailureClass::BadResponse, text);
    if bytes.trim_ascii().is_empty() {
        return Err(bad(format!("{from} is empty, where JSON was to come")));
    }
    serde_json::from_slice(bytes).map(Arc::new).map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        bad(format!("{from} is no JSON: {error}: {}", said(&text, redactor)))
    })
}

/// Foreign text as it may be repeated: redacted whole and only then cut, for half a key is not
/// found any more.
pub(super) fn said(text: &str, redactor: &Redactor) -> String {
    visible_within(&redactor.redact(text.trim()), SAID_CHARS)
}
