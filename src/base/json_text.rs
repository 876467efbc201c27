//! Canonical JSON text: equal values have the same text, so arguments can be hashed and looked up
//! (`args_hash` in the orchestrator source document).
//!
//! Integers that 64 bits cannot hold are refused. Parsed as floats they would change; Python
//! integers, as in the source documents, have no limit.
//!
//! JSON that other programs send is read by [`read_lenient`], the start of an object that still comes by
//! [`read_start`].

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The value as JSON with sorted keys, no spaces after `,` and `:`, and non-ASCII characters as
/// `\uXXXX`. Numbers have JSON's shortest form.
pub fn to_canonical_json(value: &Value) -> String {
    let mut out = String::new();
    put(value, &mut out);
    out
}

fn put(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => put_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                put(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            // Python sorts by code points, as `str` compares here.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (place, (key, value)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                put_text(key, out);
                out.push(':');
                put(value, out);
            }
            out.push('}');
        }
    }
}

fn put_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// Numbers that JSON does not have. Python's `json` writes them.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The JSON text with what other programs write and `serde_json` refuses replaced: each half of a surrogate
/// pair (`\ud83d` without `\udc4d`) by U+FFFD, and `NaN` and infinities by `null`. Programs that cut
/// texts by UTF-16 units send halves. Other text is unchanged, so valid JSON is.
pub fn repaired(json: &str) -> Cow<'_, str> {
    let unit =
        |at: usize| u16::from_str_radix(json.get(at..)?.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let (mut out, mut copied, mut at, mut in_string) = (String::new(), 0, 0, false);
    while let Some(byte) = json.as_bytes().get(at) {
        let (length, replacement) = match (byte, in_string) {
            (b'"', _) => {
                in_string = !in_string;
                (1, None)
            }
            (b'\\', true) => match (unit(at), unit(at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
                (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
                _ => (2, None),
            },
            (b'-' | b'I' | b'N', false) => {
                let rest = json.get(at..).unwrap_or_default();
                let found = NO_NUMBERS.iter().find(|word| rest.starts_with(**word));
                found.map_or((1, None), |word| (word.len(), Some("null")))
            }
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            out.push_str(json.get(copied..at).unwrap_or_default());
            out.push_str(replacement);
            copied = at + length;
        }
        at += length;
    }
    if copied == 0 {
        return json.into();
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    out.into()
}

/// Reads JSON of another program: as it is or, if it cannot be read so, [`repaired`].
///
/// # Errors
/// It cannot be read in either way.
pub fn read_lenient<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json).or_else(|error| match std::str::from_utf8(json).map(repaired) {
        Ok(Cow::Owned(json)) => serde_json::from_str(&json),
        _ => Err(error),
    })
}

/// Reads an object of which only the start is there: a text, a list or an object that is open ends where the
/// start does, and a key without a value is left out. `None` if it is not the start of an object.
pub fn read_start(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let (mut at, mut open, mut is_value) = (0, Vec::new(), false);
    // Up to where the text can be closed, and whether a string has to be closed there first.
    let (mut kept, mut in_string) = (0, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                open.push(if *byte == b'{' { '}' } else { ']' });
                is_value = *byte == b'[';
                kept = at;
            }
            b'}' | b']' => {
                open.pop();
                kept = at;
            }
            b':' => is_value = true,
            b',' => {
                is_value = open.last() == Some(&']');
                kept = at - 1;
            }
            b'"' => {
                let rest = text.get(at..)?;
                let (length, is_whole) = string_start(rest);
                at += length;
                if is_value {
                    (kept, in_string) = (at, !is_whole);
                }
                if !is_whole {
                    break;
                }
            }
            _ => {}
        }
        if open.is_empty() && kept > 0 {
            break;
        }
    }
    // A line end in a string is not JSON, but what a model may write.
    let mut json = text.get(..kept)?.replace(char::is_control, " ");
    json.extend(in_string.then_some('"'));
    json.extend(open.into_iter().rev());
    serde_json::from_str(&repaired(&json)).ok().filter(Value::is_object)
}

/// The length of what is there of a JSON string after its opening quote, and whether it is whole; then the
/// closing quote is included. An escape of which only a part is there is not.
fn string_start(rest: &str) -> (usize, bool) {
    let mut at = 0;
    while let Some(step) = rest.get(at..).and_then(|rest| rest.find(['\\', '"'])) {
        at += step;
        let tail = rest.as_bytes().get(at..).unwrap_or_default();
        let escape = match tail {
            [b'"', ..] => return (at + 1, true),
            // The first half of a surrogate pair at the end: the second one follows.
            [_, b'u', b'd', b'8'..=b'9' | b'a'..=b'b', ..] if tail.len() < 12 => 12,
            [_, b'u', ..] => 6,
            _ => 2,
        };
        if tail.len() < escape {
            return (at, false);
        }
        at += escape;
    }
    (rest.len(), false)
}

/// Returns the first integer of a JSON text that parsing has changed, as it is written. `read` is
/// the value parsed from the text, or a part of it. The time is linear in both; the text is only
/// scanned if the value has a float that may be such an integer.
pub fn first_changed_integer<'t>(text: &'t str, read: &Value) -> Option<&'t str> {
    let mut floats = BTreeSet::new();
    collect(read, &mut floats);
    if floats.is_empty() {
        return None;
    }
    numbers(text).find(|number| {
        let float = || number.parse::<f64>().ok().map(f64::to_bits);
        is_beyond(number) && float().is_some_and(|float| floats.contains(&float))
    })
}

/// Collects the floats that may have been an integer beyond 64 bits.
fn collect(value: &Value, floats: &mut BTreeSet<u64>) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.abs() >= SMALLEST);
            floats.extend(float.map(f64::to_bits));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, floats)),
        Value::Object(fields) => fields.values().for_each(|item| collect(item, floats)),
        _ => {}
    }
}

/// 2 to the power of 63: no integer beyond 64 bits is nearer to zero.
const SMALLEST: f64 = 9_223_372_036_854_775_808.0;

/// Whether a number is an integer beyond 64 bits.
fn is_beyond(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

/// The numbers of a JSON text, as they are written, in order.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => at += string_length(bytes.get(at + 1..).unwrap_or_default()),
                b'-' | b'0'..=b'9' => {
                    let of_number =
                        |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let rest = bytes.get(at..).unwrap_or_default();
                    let length = rest.iter().take_while(|byte| of_number(byte)).count();
                    let number = text.get(at..at + length);
                    at += length;
                    return number;
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// The length of a JSON string after its opening quote, the closing quote included.
fn string_length(rest: &[u8]) -> usize {
    let mut escaped = false;
    let end = rest.iter().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => *byte == b'"',
    });
    end.map_or(rest.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Python's `json.dumps` writes these numbers with the texts on the right.
    #[test]
    fn most_numbers_have_pythons_text() {
        for (number, python) in [
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e22, "1e+22"),
            (0.0001, "0.0001"),
            (0.1, "0.1"),
        ] {
            assert_eq!(to_canonical_json(&number.into()), python);
        }
        assert_ne!(
            to_canonical_json(&0.00001.into()),
            "1e-05",
            "the difference that is documented"
        );
    }

    #[test]
    fn odd_json_is_repaired() {
        for (json, expected) in [
            (r#""a \ud83d""#, r#""a \ufffd""#),
            (r#""\udc4d a\\\uD83D\n""#, r#""\ufffd a\\\ufffd\n""#),
            (r#"{"\ud83d\ud83d\udc4dü": 1}"#, r#"{"\ufffd\ud83d\udc4dü": 1}"#),
            (r#"[NaN, -Infinity,Infinity, "NaN"]"#, r#"[null, null,null, "NaN"]"#),
        ] {
            assert_eq!(repaired(json), expected, "{json}");
            read_lenient::<Value>(json.as_bytes()).expect(json);
        }
        for json in [r#""\ud83d\udc4d \\ud83d \u00fc \"NaN""#, r#"{"a": -1}"#, r#""\"#, "ü"] {
            assert!(matches!(repaired(json), Cow::Borrowed(_)), "{json}");
        }
        assert!(read_lenient::<Value>(b"\"\xff\"").is_err());
    }

    proptest! {
        #[test]
        fn repair_keeps_valid_json(texts: Vec<String>, number: i64) {
            let json = serde_json::json!([texts, number]).to_string();
            prop_assert_eq!(repaired(&json), json.as_str());
        }
    }

    #[test]
    fn start_of_an_object_is_read() {
        for (start, read) in [
            ("{", "{}"),
            (r#"{"a"#, "{}"),
            (r#"{"a": "#, "{}"),
            (r#"{"a": ""#, r#"{"a": ""}"#),
            (r#"{"a": "x\"y"#, r#"{"a": "x\"y"}"#),
            (r#"{"a": "x\"#, r#"{"a": "x"}"#),
            (r#"{"a": "x\u00e"#, r#"{"a": "x"}"#),
            (r#"{"a": "x\ud83d"#, r#"{"a": "x"}"#),
            (r#"{"a": "x\ud83d\udc4d"#, r#"{"a": "x👍"}"#),
            ("{\"a\": \"x\ny", r#"{"a": "x y"}"#),
            (r#"{"a": ["x", "y", {"b": [1, 2"#, r#"{"a": ["x", "y", {"b": [1]}]}"#),
            (r#"{"a": tru"#, "{}"),
            (r#"{"a": true, "b"#, r#"{"a": true}"#),
            (r#"{"a": "}"} or {"a": 2}"#, r#"{"a": "}"}"#),
        ] {
            let read: Value = serde_json::from_str(read).expect(read);
            assert_eq!(read_start(start), Some(read), "{start}");
        }
        for other in ["", "The launch may go.", "[1", "\"x", "}", "{not json}", r#"{"a" "b"}"#] {
            assert_eq!(read_start(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn start_of_any_text_is_taken(text in "[{}\\[\\]\":,\\\\u0-9a-d \u{e9}-]*") {
            let _ = read_start(&text);
            let _ = read_start(&format!("{{{text}"));
        }
    }

    fn of(text: &str) -> Option<&str> {
        first_changed_integer(text, &serde_json::from_str(text).expect("JSON"))
    }

    #[test]
    fn finds_only_integers_beyond_64_bits() {
        for (text, found) in [
            ("18446744073709551615", None),
            ("18446744073709551616", Some("18446744073709551616")),
            ("-9223372036854775808", None),
            ("-9223372036854775809", Some("-9223372036854775809")),
            ("100000000000000000000", Some("100000000000000000000")),
            ("1e20", None),
            ("100000000000000000000.0", None),
            ("0.1", None),
            ("-0", None),
            (r#""100000000000000000000""#, None),
            (r#"{"100000000000000000000":1}"#, None),
            (r#"["\"100000000000000000000\"", "\\", 5]"#, None),
            (r#"["\\\"", [{"a": [1, 100000000000000000001]}]]"#, Some("100000000000000000001")),
            (r#"[1e20, "a", 100000000000000000000]"#, Some("100000000000000000000")),
            ("[]", None),
        ] {
            assert_eq!(of(text), found, "{text}");
        }
    }

    #[test]
    fn checks_only_passed_on_part() {
        let text = r#"{"note": 98765432109876543210987, "args": {"far": 1e300}}"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(first_changed_integer(text, &value["args"]), None);
        assert_eq!(first_changed_integer(text, &value), Some("98765432109876543210987"));
    }

    proptest! {
        /// A number that is passed on is the same after parsing and writing.
        #[test]
        fn unreported_number_stays_unchanged(number: i128, bits in 0_u32..127) {
            let number = (number >> bits).to_string();
            let read: Value = serde_json::from_str(&number).expect("JSON");
            let written = read.to_string();
            prop_assert_eq!(first_changed_integer(&number, &read).is_none(), written == number);
        }
    }

    #[test]
    fn finds_big_integers_not_floats() {
        let text = r#"{"id": 12345678901234567890123, "of": 18446744073709551615, "far": 1e30}"#;
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(first_changed_integer(text, &value), Some("12345678901234567890123"));
        assert_eq!(first_changed_integer(text, &value["of"]), None);
        assert_eq!(first_changed_integer(text, &value["far"]), None);
    }
}
