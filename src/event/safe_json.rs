//! JSON that may go to a terminal, a pager or a file that somebody looks at: C1, bidi and other
//! invisible characters of its texts are escaped, so that no text of a model can steer what shows it.
//! It is the same JSON to a parser.

use std::fmt::Write as _;

use serde::Serialize;

use super::visible::judged;

/// A value as JSON of several lines, indented by two as the sources print it.
///
/// # Errors
/// None that a value of ours can cause; serde_json's signature has one.
pub fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|json| escape(&json, true))
}

/// A value as JSON on one line.
///
/// # Errors
/// As [`pretty`].
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|json| escape(&json, false))
}

/// Escapes what must not reach a terminal in JSON that is one already. Line ends between its
/// values stay where `lines` says so; within its texts JSON has none.
pub fn escape(json: &str, lines: bool) -> String {
    if json.is_ascii()
        && !json.bytes().any(|byte| byte.is_ascii_control() && !(lines && byte == b'\n'))
    {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len());
    for (c, hides) in judged(json) {
        if !hides || (lines && c == '\n') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_escaped_and_reads_back_the_same() {
        let value = json!({ "text": "a\u{1b}[2J\u{9b}31m\u{202e}\u{e0041}\u{7f}é🙂\n\u{200d}\u{34f}👩\u{200d}🚀" });
        for text in [line(&value).expect("JSON"), pretty(&value).expect("JSON")] {
            let left = judged(&text).find(|&(c, hides)| hides && c != '\n');
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
