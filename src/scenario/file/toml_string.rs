//! Maps positions in a decoded TOML string to positions in the file.

/// The byte of `raw`, a TOML string with its quotes (or an unquoted text), at which byte `wanted`
/// of the decoded text begins. A position past the end gives the end.
pub(crate) fn source_offset(raw: &str, wanted: usize) -> usize {
    let (quote, escapes) = if raw.starts_with("\"\"\"") {
        ("\"\"\"", true)
    } else if raw.starts_with("'''") {
        ("'''", false)
    } else if raw.starts_with('"') {
        ("\"", true)
    } else if raw.starts_with('\'') {
        ("'", false)
    } else {
        ("", false)
    };
    let mut at = quote.len();
    let end = raw.len() - if raw.len() >= 2 * at && raw.ends_with(quote) { at } else { 0 };
    if quote.len() == 3 {
        // A line break right after the opening quotes is not part of the text.
        let rest = &raw[at..end];
        at += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    }
    let mut decoded = 0;
    while at < end {
        let rest = &raw[at..end];
        let (taken, made) = if escapes { escaped_char(rest) } else { plain_char(rest) };
        if decoded + made > wanted {
            break;
        }
        decoded += made;
        at += taken;
    }
    at.min(raw.len())
}

/// The bytes of one character in the file and in the decoded text.
fn plain_char(rest: &str) -> (usize, usize) {
    let bytes = rest.chars().next().map_or(1, char::len_utf8);
    (bytes, bytes)
}

/// The same for a string with escapes.
fn escaped_char(rest: &str) -> (usize, usize) {
    let Some(escaped) = rest.strip_prefix('\\') else { return plain_char(rest) };
    let hex = |digits: usize| {
        let code = escaped.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (digits + 2, code.and_then(char::from_u32).map_or(1, char::len_utf8))
    };
    let (taken, made) = match escaped.bytes().next() {
        Some(b'x') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(b' ' | b'\t' | b'\r' | b'\n') => {
            // A backslash at the end of a line removes the white space after it.
            let kept = escaped.trim_start_matches([' ', '\t', '\r', '\n']);
            (rest.len() - kept.len(), 0)
        }
        _ => (2, 1),
    };
    // An invalid escape may end inside a character.
    let taken = (taken.max(1)..rest.len()).find(|at| rest.is_char_boundary(*at));
    (taken.unwrap_or(rest.len()), made)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toml::de::DeValue;

    use super::source_offset;

    #[test]
    fn characters_are_found_behind_quotes_escapes_and_line_ends() {
        for (raw, wanted, expected) in [
            ("bare", 2, 2),
            ("'abc'", 1, 2),
            (r#""a\tbc""#, 2, 4),
            (r#""\u00e4b""#, 2, 7),
            ("\"\"\"\nab\"\"\"", 1, 5),
            ("'''\r\nab'''", 0, 5),
            ("\"\"\"a\\\n   b\"\"\"", 1, 9),
            ("'ä€b'", 5, 6),
            ("'abc'", 99, 4),
            ("\"", 0, 1),
        ] {
            assert_eq!(source_offset(raw, wanted), expected, "{raw} {wanted}");
        }
    }

    proptest! {
        #[test]
        fn a_mark_is_found_wherever_it_stands(
            before in r#"([a-zä🙂 ]|\\[tn"\\]|\\u00e4|\\U0001F642|\\x41|\n|\\\n +)*"#,
        ) {
            let raw = format!("\"\"\"{before}#\"\"\"");
            if let Ok(value) = DeValue::parse(&raw) {
                let text = value.get_ref().as_str().unwrap_or_default().to_owned();
                let at = source_offset(&raw, text.find('#').unwrap_or_default());
                prop_assert_eq!(&raw[at..=at], "#", "{} {}", raw, at);
            }
        }

        #[test]
        fn any_text_has_an_answer_at_a_character(
            raw in r#"(\PC|["'\\xuU0]){0,20}"#,
            wanted in 0_usize..40,
        ) {
            prop_assert!(raw.is_char_boundary(source_offset(&raw, wanted)));
        }
    }
}
