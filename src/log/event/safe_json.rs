//! JSON that is safe to print to a terminal, a pager or a file for reading: C1, bidi and other
//! invisible characters in its texts are escaped, so a model's text cannot control the terminal.
//! For a parser it is the same JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::base::visible::chars_with_hostility;

/// A value as JSON on several lines, indented by two spaces as in the source documents.
///
/// # Errors
/// No value of roundtable causes one; the signature is that of serde_json.
pub fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|json| escaped(json, true))
}

/// A value as JSON on one line.
///
/// # Errors
/// As [`pretty`].
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|json| escaped(json, false))
}

/// Appends a value as JSON on one line, without a line break.
///
/// # Errors
/// As [`pretty`]; then nothing is appended.
pub fn append_line(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = serde_json::to_writer(&mut *out, value);
    let json = out.get(start..).unwrap_or_default();
    if written.is_err() {
        out.truncate(start);
    } else if !is_plain(json, false) {
        // What serde_json writes is UTF-8.
        let json = String::from_utf8_lossy(json).into_owned();
        out.truncate(start);
        out.extend_from_slice(escape(&json, false).as_bytes());
    }
    written
}

/// Escapes the characters of JSON text that must not reach a terminal. `lines` keeps the line breaks
/// between its values; its texts contain none.
pub fn escape(json: &str, lines: bool) -> Cow<'_, str> {
    if is_plain(json.as_bytes(), lines) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for (c, hides) in chars_with_hostility(json) {
        if !hides || (lines && c == '\n') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// Whether all of it is printable ASCII.
fn is_plain(json: &[u8], lines: bool) -> bool {
    // A chunk is looked at without a branch for each byte.
    json.chunks(64).all(|chunk| {
        chunk.iter().fold(true, |is_plain, byte| {
            is_plain & (matches!(byte, b' '..=b'~') | (lines & (*byte == b'\n')))
        })
    })
}

fn escaped(json: String, lines: bool) -> String {
    match escape(&json, lines) {
        Cow::Owned(safe) => safe,
        Cow::Borrowed(_) => json,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn escapes_terminal_controls_and_round_trips() {
        let value = json!({ "text": "a\u{1b}[2J\u{9b}31m\u{202e}\u{e0041}\u{7f}é🙂\n\u{200d}\u{34f}👩\u{200d}🚀" });
        let mut appended = b"[".to_vec();
        append_line(&value, &mut appended).expect("JSON");
        assert_eq!(appended, format!("[{}", line(&value).expect("JSON")).into_bytes());
        for text in [line(&value).expect("JSON"), pretty(&value).expect("JSON")] {
            let left = chars_with_hostility(&text).find(|&(c, hides)| hides && c != '\n');
            assert_eq!(left, None, "{text}");
            assert!(
                text.contains(
                    "\\u009b31m\\u202e\\udb40\\udc41\\u007fé🙂\\n\\u200d\\u034f👩\u{200d}🚀"
                ),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Value>(&text).expect("reads"), value);
        }
    }
}
