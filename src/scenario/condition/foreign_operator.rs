//! Finds operators of other languages in a condition that does not parse.

/// What other languages write, each with the operator of CEL.
const OPERATORS: [(&str, &str); 15] = [
    ("=", "=="),
    ("===", "=="),
    ("is", "=="),
    ("<>", "!="),
    ("!==", "!="),
    ("=!", "!="),
    ("and", "&&"),
    ("AND", "&&"),
    ("&", "&&"),
    ("or", "||"),
    ("OR", "||"),
    ("|", "||"),
    ("not", "!"),
    ("=>", ">="),
    ("=<", "<="),
];

/// An operator of another language.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ForeignOperator<'t> {
    /// Byte offset in the condition.
    pub at: usize,
    pub found: &'t str,
    /// The operator of CEL.
    pub right: &'static str,
}

/// The first operator of another language, outside of strings.
pub(super) fn find_foreign_operator(text: &str) -> Option<ForeignOperator<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_sign = |c: char| "=!<>&|".contains(c);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '\'' | '"' => end_of_string(rest, first),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if is_sign(first) => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let found = &rest[..length];
        // A field may have the name of an operator.
        let is_field = text[..at].ends_with('.');
        let row = OPERATORS.iter().find(|(foreign, _)| *foreign == found).filter(|_| !is_field);
        if let Some((_, right)) = row {
            return Some(ForeignOperator { at, found, right });
        }
        at += length;
    }
    None
}

/// The length of a string with its quotes.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::find_foreign_operator;

    #[test]
    fn operators_of_other_languages_are_found_outside_of_strings() {
        for (text, found) in [
            ("a = 1", Some((2, "=="))),
            ("a === 'b'", Some((2, "=="))),
            ("a == 'x = y' and b", Some((13, "&&"))),
            (r"a == 'it\'s or' | b", Some((16, "||"))),
            ("not a", Some((0, "!"))),
            ("a <> b", Some((2, "!="))),
            ("a => 1", Some((2, ">="))),
            ("a.or == 1 &&", None),
            ("a == -1 || !b && c != d", None),
            ("organ == island", None),
            ("a == 'b", None),
        ] {
            let found_here = find_foreign_operator(text).map(|it| (it.at, it.right));
            assert_eq!(found_here, found, "{text}");
        }
    }
}
