//! Parses a tool's result as JSON. A failure says where the JSON broke.

use std::sync::Arc;

use serde_json::Value;

use crate::base::big_integer;
use crate::base::visible::{visible_within, without_byte_order_mark};
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::net::Redactor;

/// Most characters of a result that an error message quotes.
const QUOTED_CHARS: usize = 140;

/// Most characters of a number that an error message quotes.
const NUMBER_CHARS: usize = 40;

/// Parses a result as JSON, its secrets redacted. `from` names the sender in the error message.
pub(super) fn parse_json(
    bytes: &[u8],
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let bad = |text: String| AttemptFailed::new(FailureClass::BadResponse, text);
    let bytes = without_byte_order_mark(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(bad(format!("{from} is empty, JSON was expected")));
    }
    match serde_json::from_slice(bytes) {
        Ok(value) if redactor.has_no_secrets() => Ok(Arc::new(value)),
        Ok(value) => Ok(Arc::new(redact_json(value, redactor))),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            Err(bad(format!("{from} is not JSON: {error}: {}", quoted_text(&text, redactor))))
        }
    }
}

/// Rejects a result with a whole number beyond 64 bits: parsing would change it silently. `value` is
/// the part of the result that is used, `bytes` the whole result.
pub(super) fn check_integers(
    bytes: &[u8],
    value: Arc<Value>,
    from: &str,
    redactor: &Redactor,
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let text = String::from_utf8_lossy(bytes);
    let Some(number) = big_integer::first_changed_integer(&text, &value) else { return Ok(value) };
    let number = visible_within(&redactor.redact(number), NUMBER_CHARS);
    let text = format!(
        "{from} holds {number}, a whole number beyond 64 bits, which would lose digits: send it \
         as a string"
    );
    Err(AttemptFailed::new(FailureClass::BadResponse, text))
}

/// Redacts known secrets in a result: a tool may echo its credentials, and the log must not hold
/// them.
fn redact_json(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact_known(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| redact_json(item, redactor)).collect(),
        Value::Object(fields) => {
            let clean = |(key, value): (String, Value)| {
                (redactor.redact_known(&key).into_owned(), redact_json(value, redactor))
            };
            fields.into_iter().map(clean).collect()
        }
        plain => plain,
    }
}

/// Text of others, ready to quote. Redacted first and cut afterwards, because the redactor does not
/// recognise half a key.
pub(super) fn quoted_text(text: &str, redactor: &Redactor) -> String {
    visible_within(&redactor.redact(text.trim()), QUOTED_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_result() {
        let read = |bytes: &str| parse_json(bytes.as_bytes(), "it", &Redactor::default());
        assert_eq!(
            *read("\u{feff}{\"a\":\"\u{feff}\"}").expect("JSON"),
            json!({ "a": "\u{feff}" })
        );
        let empty = read("\u{feff} ").expect_err("nothing");
        assert_eq!(empty.text, "it is empty, JSON was expected");
        assert!(read("\u{feff}\u{feff}1").is_err());
    }
}
