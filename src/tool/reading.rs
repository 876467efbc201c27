//! How a tool's answer is read: JSON, or a failure that says where it broke.

use std::sync::Arc;

use serde_json::Value;

use crate::event::kind::{AttemptFailed, FailureClass};
use crate::event::visible::visible_within;
use crate::net::Redactor;
use crate::scenario::integer;

/// The most characters of an answer that a failure repeats.
const SAID_CHARS: usize = 140;

/// The most characters of a number that a failure repeats.
const NUMBER_CHARS: usize = 40;

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
    match serde_json::from_slice(bytes) {
        Ok(value) if redactor.knows_none() => Ok(Arc::new(value)),
        Ok(value) => Ok(Arc::new(without_secrets(value, redactor))),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            Err(bad(format!("{from} is no JSON: {error}: {}", said(&text, redactor))))
        }
    }
}

/// Refuses an answer that holds a whole number beyond 64 bits where it is used: read, it is another
/// number, and whoever is given it would not know. `value` is what is used of the answer `bytes`.
pub(super) fn unchanged(
    bytes: &[u8],
    value: Arc<Value>,
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let text = String::from_utf8_lossy(bytes);
    let Some(number) = integer::changed(&text, &value) else { return Ok(value) };
    let number = visible_within(&redactor.redact(number), NUMBER_CHARS);
    let text = format!(
        "{from} holds {number}, a whole number beyond 64 bits, which would be changed: have it sent \
         as a text"
    );
    Err(AttemptFailed::of(FailureClass::BadResponse, text))
}

/// An answer may echo what the tool was given to prove itself; the log must not hold it.
fn without_secrets(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact_known(&text).into_owned()),
        Value::Array(items) => {
            items.into_iter().map(|item| without_secrets(item, redactor)).collect()
        }
        Value::Object(fields) => {
            let clean = |(key, value): (String, Value)| {
                (redactor.redact_known(&key).into_owned(), without_secrets(value, redactor))
            };
            fields.into_iter().map(clean).collect()
        }
        plain => plain,
    }
}

/// Foreign text as it may be repeated: redacted whole and only then cut, for half a key is not
/// found any more.
pub(super) fn said(text: &str, redactor: &Redactor) -> String {
    visible_within(&redactor.redact(text.trim()), SAID_CHARS)
}
