//! Where a character of a text stands in the file that holds the text as a TOML string.

/// The byte of `raw`, a TOML string with its quotes (or a bare text), at which byte `wanted` of the
/// text that it stands for begins. Total: past the end it is the end.
pub(super) fn offset(raw: &str, wanted: usize) -> usize {
    let (quote, escapes) = if raw.starts_with("\"\"\"") {
        ("\"\"\"", true)
    } else if raw.starts_with("'''") {
        ("'''", false)
    } else if raw.starts_with('"') {
        ("\"", true)
    } else if raw.starts_with('\'') {
        ("'", false)
    } else {
        return wanted.min(raw.len());
    };
    let mut at = quote.len();
    let end = raw.len() - if raw.len() >= 2 * at && raw.ends_with(quote) { at } else { 0 };
    if quote.len() == 3 {
        // The line end right after the opening quotes is no part of the text.
        let rest = &raw[at..end];
        at += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    }
    let mut decoded = 0;
    while at < end {
        let rest = &raw[at..end];
        let (taken, made) = if escapes { piece(rest) } else { plain(rest) };
        if decoded + made > wanted {
            break;
        }
        decoded += made;
        at += taken;
    }
    at.min(raw.len())
}

/// Bytes that one character takes in the file and in the text.
fn plain(rest: &str) -> (usize, usize) {
    let bytes = rest.chars().next().map_or(1, char::len_utf8);
    (bytes, bytes)
}

/// The same where a backslash means something.
fn piece(rest: &str) -> (usize, usize) {
    let Some(escaped) = rest.strip_prefix('\\') else { return plain(rest) };
    let hex = |digits: usize| {
        let code = escaped.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (digits + 2, code.and_then(char::from_u32).map_or(1, char::len_utf8))
    };
    let (taken, made) = match escaped.bytes().next() {
        Some(b'x') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(b' ' | b'\t' | b'\r' | b'\n') => {
            // A backslash at the end of a line swallows the white space that follows.
            let kept = escaped.trim_start_matches([' ', '\t', '\r', '\n']);
            (rest.len() - kept.len(), 0)
        }
        _ => (2, 1),
    };
    (taken.min(rest.len()).max(1), made)
}
