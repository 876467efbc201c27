//! Finds tags with so many attributes that parsing them takes too long.

/// Most attributes of an element: the parser compares each with all others.
const MAX_ATTRIBUTES: usize = 5_000;

/// Whether a tag has too many attributes. Counts every unquoted word between `<` and `>`, so the
/// count may be too high, but never too low. In scripts and texts, where `<` has another meaning, a
/// `>` follows soon.
pub(super) fn has_crowded_tag(text: &str) -> bool {
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'<' || !bytes.peek().is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let (mut words, mut blank, mut equals) = (0, false, false);
        while let Some(byte) = bytes.next() {
            match byte {
                b'>' => break,
                quote @ (b'"' | b'\'') if equals => {
                    bytes.by_ref().find(|&byte| byte == quote);
                    (blank, equals) = (true, false);
                }
                b'=' => equals = true,
                byte if byte.is_ascii_whitespace() || byte == b'/' => blank = true,
                _ => {
                    words += usize::from(blank && !equals);
                    (blank, equals) = (false, false);
                }
            }
            if words > MAX_ATTRIBUTES {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_too_many_attributes_are_seen() {
        let crowded = |count: usize| {
            let words: String = (0..count).map(|n| format!(" a{n}=\"1 2 3\"")).collect();
            format!("<p>1 < 2</p><b{words}>x</b>")
        };
        assert!(!has_crowded_tag(&crowded(MAX_ATTRIBUTES)));
        assert!(has_crowded_tag(&crowded(MAX_ATTRIBUTES + 1)));
        let long = format!("<p title=\"{}\">", "word ".repeat(9_000));
        assert!(!has_crowded_tag(&long), "what stands in quotes is one value");
    }
}
