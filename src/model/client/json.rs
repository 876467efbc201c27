//! Writes JSON bodies.

use std::io;

use serde::Serialize;

/// A word with the value 1 in every byte.
const ONES: u64 = u64::MAX / 255;
/// The highest bit of every byte of a word.
const HIGH: u64 = ONES << 7;

/// A request body while it is written. Its structure is written as text, with the same bytes as
/// serde_json; most of a body are texts that contain JSON themselves, and those are escaped eight
/// bytes at a time.
pub(crate) struct RequestBody(Vec<u8>);

impl RequestBody {
    pub(crate) fn with_room_for(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }

    /// Writes JSON as it is.
    #[inline]
    pub(crate) fn raw(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    /// Writes a string.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push(b'"');
        self.escape(text.as_bytes());
        self.0.push(b'"');
    }

    /// Writes any value, as serde does.
    ///
    /// # Errors
    /// As `serde_json::to_writer`.
    pub(crate) fn value(
        &mut self,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut *self, value)
    }

    /// Ends an open object that has a field already, after adding these fields to it.
    ///
    /// # Errors
    /// As `serde_json::to_writer`.
    pub(crate) fn close_object_with(
        &mut self,
        fields: &impl Serialize,
    ) -> Result<(), serde_json::Error> {
        let begins = self.0.len();
        self.value(fields)?;
        match self.0.get(begins..) {
            Some(b"{}") => {
                self.0.truncate(begins);
                self.0.push(b'}');
            }
            _ => {
                if let Some(brace) = self.0.get_mut(begins) {
                    *brace = b',';
                }
            }
        }
        Ok(())
    }

    fn escape(&mut self, text: &[u8]) {
        // Most texts need little or no escaping.
        self.0.reserve(text.len() + text.len() / 8 + 16);
        let mut rest = text;
        while let Some((eight, after)) = rest.split_first_chunk::<8>() {
            // Writes all eight bytes, then removes those from the first byte to escape on: cheaper
            // than finding out first how many to copy.
            self.0.extend_from_slice(eight);
            let marks = to_be_escaped(u64::from_le_bytes(*eight));
            if marks == 0 {
                rest = after;
                continue;
            }
            let clean = (marks.trailing_zeros() / 8) as usize;
            self.0.truncate(self.0.len() - (8 - clean));
            let Some((byte, after)) = rest.get(clean..).and_then(<[u8]>::split_first) else {
                break;
            };
            self.escaped(*byte);
            rest = after;
        }
        for byte in rest {
            if is_escaped(*byte) {
                self.escaped(*byte);
            } else {
                self.0.push(*byte);
            }
        }
    }

    #[inline]
    fn escaped(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', byte]),
            b'\n' => self.0.extend_from_slice(b"\\n"),
            other => self.control(other),
        }
    }

    fn control(&mut self, byte: u8) {
        let short = match byte {
            0x08 => b'b',
            b'\t' => b't',
            0x0c => b'f',
            b'\r' => b'r',
            _ => {
                let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
                let digits = [digit(byte >> 4), digit(byte & 0xf)];
                self.0.extend_from_slice(b"\\u00");
                self.0.extend_from_slice(&digits);
                return;
            }
        };
        self.0.extend_from_slice(&[b'\\', short]);
    }
}

/// Whether a byte must be escaped in a JSON string.
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Marks the bytes of a word that must be escaped in a JSON string, in their highest bits. Correct
/// up to the lowest such byte; bytes above it may be marked wrongly.
fn to_be_escaped(word: u64) -> u64 {
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = is_zero(word ^ (ONES * u64::from(b'"')));
    let backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & HIGH
}

impl io::Write for RequestBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [one] => self.0.push(*one),
            [one, two] => {
                self.0.push(*one);
                self.0.push(*two);
            }
            more => self.0.extend_from_slice(more),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(write: impl FnOnce(&mut RequestBody)) -> String {
        let mut body = RequestBody::with_room_for(0);
        write(&mut body);
        String::from_utf8(body.bytes()).expect("UTF-8")
    }

    #[test]
    fn every_byte_is_escaped_at_every_place_as_serde_json_does() {
        for byte in 0..=0x7f_u8 {
            for before in 0..17 {
                for after in [0, 1, 7, 8, 20] {
                    let byte = char::from(byte);
                    let text = format!("{}{byte}{}", "a".repeat(before), "ü".repeat(after));
                    let expected = serde_json::to_string(&text).expect("JSON");
                    assert_eq!(written(|body| body.text(&text)), expected);
                }
            }
        }
    }

    #[test]
    fn an_object_goes_on_with_the_fields_of_another() {
        for (fields, expected) in [
            (json!({}), r#"{"a":1}"#),
            (json!({ "b": [] }), r#"{"a":1,"b":[]}"#),
            (json!({ "b": {}, "c": "{" }), r#"{"a":1,"b":{},"c":"{"}"#),
        ] {
            let body = written(|body| {
                body.raw(r#"{"a":1"#);
                body.close_object_with(&fields).expect("JSON");
            });
            assert_eq!(body, expected);
        }
    }

    proptest! {
        #[test]
        fn a_text_is_written_as_serde_json_writes_it(
            text in prop_oneof!["\\PC{0,60}", "[\"\\\\{}:,a-z \u{0}-\u{1f}\u{7f}-\u{ff}\u{1f600}]{0,60}"],
        ) {
            let expected = serde_json::to_string(&text).expect("JSON");
            prop_assert_eq!(written(|body| body.text(&text)), expected);
        }
    }
}
