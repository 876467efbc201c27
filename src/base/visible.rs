//! Text from models, tools and files is untrusted. This module makes characters visible that could
//! control a terminal or hide in a text.

use std::borrow::Cow;
use std::iter;

/// Most characters of untrusted text in a stop reason (docs/rules/decisions.md: "at most 64").
pub const REASON_CHARS: usize = 64;

/// Replaces a character that has no symbol of its own.
const REPLACEMENT: char = '\u{fffd}';

/// A body without the byte order mark that some programs put before UTF-8; it does not belong to the text.
pub fn without_byte_order_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Whether this character must never reach a terminal or a document: C0 and C1 controls, DEL, bidi controls,
/// line and paragraph separators, noncharacters (XML 1.0 does not allow two of them), and invisible characters without a function in text (Unicode's
/// `Default_Ignorable_Code_Point` except those of `is_joining`).
pub fn is_hostile(c: char) -> bool {
    if c < '\u{34f}' {
        return matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}');
    }
    matches!(c,
        '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
        | '\u{fdd0}'..='\u{fdef}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether this character is invisible and changes its neighbours: joiners and variation selectors.
/// Emoji and several scripts need them; elsewhere they only hide something.
fn is_joining(c: char) -> bool {
    c >= '\u{180b}'
        && matches!(c,
            '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{200c}' | '\u{200d}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether this character has no shape of its own: hostile characters, joiners, variation selectors.
pub fn is_invisible(c: char) -> bool {
    is_hostile(c) || is_joining(c)
}

/// Whether a joiner or variation selector has a function between these two characters.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match c {
        '\u{200d}' if joins_letters(before) => true,
        '\u{200d}' => {
            let ends_emoji =
                matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') || is_pictograph(before);
            ends_emoji && after.is_some_and(is_pictograph)
        }
        '\u{200c}' => joins_letters(before),
        // The base of a keycap is a digit; every other base is a symbol or a letter outside ASCII.
        '\u{fe00}'..='\u{fe0f}' => {
            matches!(before, '0'..='9' | '#' | '*')
                || !(before.is_ascii() || before == REPLACEMENT || is_joining(before))
        }
        '\u{180b}'..='\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
                | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

/// Letters of scripts whose words contain joiners: Arabic, the Indic scripts, Mongolian.
fn joins_letters(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}'
        | '\u{900}'..='\u{dff}' | '\u{1820}'..='\u{18aa}')
}

/// Symbols that emoji sequences consist of.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1f1e5}' | '\u{1f200}'..='\u{1f3fa}'
        | '\u{1f400}'..='\u{1faff}')
}

/// Whether a text has a character that must not be shown as it is.
pub fn has_hostile(text: &str) -> bool {
    match text.is_ascii() {
        true => text.bytes().any(|byte| byte.is_ascii_control()),
        false => first_hostile(text).is_some(),
    }
}

/// Each character, and whether it must not be shown as it is.
pub fn chars_with_hostility(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = None;
    let mut rest = text.chars();
    iter::from_fn(move || {
        let c = rest.next()?;
        let hides = is_hostile(c) || (is_joining(c) && !joins(before, c, rest.clone().next()));
        before = Some(if hides { REPLACEMENT } else { c });
        Some((c, hides))
    })
}

/// The first character that must not be shown as it is. This runs for every cell of every frame, so
/// a text without such characters takes one simple pass.
pub fn first_hostile(text: &str) -> Option<char> {
    if !text.chars().any(is_invisible) {
        return None;
    }
    chars_with_hostility(text).find_map(|(c, hides)| hides.then_some(c))
}

/// Each character as it is shown.
fn visible_chars(text: &str) -> impl Iterator<Item = char> {
    chars_with_hostility(text).map(|(c, hides)| if hides { visible_char(c) } else { c })
}

/// The visible replacement of a hostile character: Unicode's control picture if there is one (`␛`
/// for escape), else `�`.
pub fn visible_char(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        _ => REPLACEMENT,
    }
}

/// The text with every hostile character replaced by a visible one, including line breaks and tabs.
/// Joiners and variation selectors stay where they have a function: inside an emoji, and in words
/// of scripts that need them.
pub fn visible(text: &str) -> Cow<'_, str> {
    if has_hostile(text) { Cow::Owned(visible_chars(text).collect()) } else { Cow::Borrowed(text) }
}

/// Like [`visible`], but keeps line breaks and tabs, for longer texts such as those for the
/// clipboard. Line breaks become `\n`.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let text = match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    let stays = |line: &str| line.split('\t').all(|cell| !has_hostile(cell));
    if text.split('\n').all(stays) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(['\n', '\t']) {
        let end = piece.ends_with(['\n', '\t']);
        let (piece, end) = piece.split_at(piece.len() - usize::from(end));
        out.push_str(&visible(piece));
        out.push_str(end);
    }
    Cow::Owned(out)
}

/// A command's output as it may reach a terminal: like [`visible_lines`]; with `styled`, colours and other
/// styles stay (`ESC [ … m`, the only sequences that this program writes to standard output).
pub fn visible_output(text: &str, styled: bool) -> Cow<'_, str> {
    if !styled || !text.contains('\u{1b}') {
        return visible_lines(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        let end = style_end(from).unwrap_or(0);
        out.push_str(&visible_lines(before));
        out.push_str(&from[..end]);
        // Any other sequence is shown.
        let shown = if end == 0 { 1 } else { 0 };
        out.push_str(&visible(&from[end..end + shown]));
        rest = &from[end + shown..];
    }
    out.push_str(&visible_lines(rest));
    Cow::Owned(out)
}

/// The end of the style that a text begins with.
fn style_end(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | ':'))?;
    parameters[end..].starts_with('m').then_some(end + 3)
}

/// The beginning of a text, of at most `bytes` bytes and whole characters.
pub fn first_bytes(text: &str, bytes: usize) -> &str {
    let end = (0..=text.len().min(bytes)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Like [`visible`], cut to `chars` characters; `…` is the last one if something was cut off.
pub fn visible_within(text: &str, chars: usize) -> String {
    // Most words are short and plain, and stay as they are.
    if text.len() <= chars && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let fits = text.chars().nth(chars).is_none();
    let keep = if fits { chars } else { chars.saturating_sub(1) };
    let mut out: String = visible_chars(text).take(keep).collect();
    if !fits {
        out.push('…');
    }
    out
}

/// A word quoted for a shell. Line ends and control characters are written as `$'…'`, which bash,
/// zsh and ksh read, so that the command stays on one line.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\'' => out.push_str(r"\'"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            c if c.is_ascii_control() => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shows_invisible_characters_without_function() {
        for (text, shown) in [
            // Emoji sequences with joiners, variation selectors and keycaps stay whole.
            ("👩\u{200d}👩\u{200d}👧", "👩\u{200d}👩\u{200d}👧"),
            (
                "👩🏽\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
                "👩🏽\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            ),
            // Words of Persian and Hindi, a name in Japanese, Mongolian.
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("葛\u{e0100}", "葛\u{e0100}"),
            ("\u{182d}\u{180b}", "\u{182d}\u{180b}"),
            // The same characters where they only hide something.
            ("ad\u{200d}min", "ad\u{fffd}min"),
            ("ad\u{200c}min \u{200d}", "ad\u{fffd}min \u{fffd}"),
            ("👩\u{200d}", "👩\u{fffd}"),
            ("👩\u{200d}\u{200d}👩", "👩\u{fffd}\u{fffd}👩"),
            ("a\u{fe0f}b", "a\u{fffd}b"),
            ("😀\u{fe0f}\u{fe01}\u{e0101}\u{e0177}", "😀\u{fe0f}\u{fffd}\u{fffd}\u{fffd}"),
            (
                "a\u{34f}b\u{115f}\u{1160}\u{3164}\u{ffa0}",
                "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            (
                "\u{17b4}\u{180e}\u{2065}\u{1d173}\u{e0001}\u{e0fff}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
        ] {
            assert_eq!(visible(text), shown, "{}", text.escape_unicode());
            assert_eq!(visible_within(text, 100), shown);
        }
    }

    #[test]
    fn keeps_lines_and_neutralizes_control_sequences() {
        for (text, shown) in [
            ("a\n\tb\n", "a\n\tb\n"),
            ("a\r\nb", "a\nb"),
            ("\u{1b}[201~rm -rf ~\n\u{9b}0m\u{7f}", "␛[201~rm -rf ~\n\u{fffd}0m␡"),
            ("", ""),
        ] {
            assert_eq!(visible_lines(text), shown, "{text:?}");
        }
    }

    /// `Char` of XML 1.0.
    fn is_xml(c: char) -> bool {
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    }

    #[test]
    fn every_character_shown_is_xml() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            assert!(visible(&text).chars().all(is_xml), "{}", c.escape_unicode());
            assert!(visible_lines(&text).chars().all(is_xml), "{}", c.escape_unicode());
        }
        assert_eq!(
            visible("a\u{fffe}b\u{ffff}\u{fdd0}\u{10ffff}"),
            "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}"
        );
    }

    proptest! {
        #[test]
        fn visible_text_is_clean_and_stable(text in "[\\x00-\\x{2FFF}\\x{FE00}-\\x{FE0F}\\x{E0000}-\\x{E01FF}\\x{1F000}-\\x{1FAFF}]*") {
            let once = visible(&text).into_owned();
            prop_assert!(!has_hostile(&once), "{:?}", once);
            prop_assert!(!once.chars().any(is_hostile));
            prop_assert_eq!(&visible(&once), &once);
            prop_assert_eq!(once.chars().count(), text.chars().count());
            let lines = visible_lines(&text).into_owned();
            prop_assert!(!lines.chars().any(|c| is_hostile(c) && !matches!(c, '\n' | '\t')));
            prop_assert!(lines.chars().all(is_xml), "{:?}", lines);
            prop_assert_eq!(&visible_lines(&lines), &lines);
        }
    }

    #[test]
    fn joiners_are_hostile_outside_scripts() {
        assert!(has_hostile("ad\u{200d}min") && has_hostile("\u{1b}[2J"));
        assert!(!has_hostile("👩\u{200d}🚀 می\u{200c}خواهم"));
    }

    #[test]
    fn an_escape_sequence_becomes_visible() {
        assert_eq!(visible("go\u{1b}[2J"), "go␛[2J");
        assert_eq!(visible("plain"), "plain");
    }

    #[test]
    fn only_styles_reach_a_terminal() {
        for (text, styled, plain) in [
            (
                "\u{1b}[1;38;5;9mred\u{1b}[0m\n",
                "\u{1b}[1;38;5;9mred\u{1b}[0m\n",
                "␛[1;38;5;9mred␛[0m\n",
            ),
            ("a\u{1b}[2J\u{1b}]52;c;x\u{7}", "a␛[2J␛]52;c;x␇", "a␛[2J␛]52;c;x␇"),
            ("\u{1b}[", "␛[", "␛["),
            ("\u{1b}\u{1b}[mx\u{9b}1m", "␛\u{1b}[mx\u{fffd}1m", "␛␛[mx\u{fffd}1m"),
            ("plain\tline\r\n\0", "plain\tline\n␀", "plain\tline\n␀"),
        ] {
            assert_eq!(visible_output(text, true), styled, "{text:?}");
            assert_eq!(visible_output(text, false), plain, "{text:?}");
        }
    }

    #[test]
    fn keeps_line_breaks_shows_control_characters() {
        assert_eq!(visible_lines("a\tb\r\nc\u{1b}[201~\rd"), "a\tb\nc␛[201~␍d");
    }

    #[test]
    fn truncates_text_to_length() {
        assert_eq!(visible_within("abcdef", 4), "abc…");
    }

    #[test]
    fn quotes_words_only_when_needed() {
        for (word, quoted) in [
            ("budget.max_rounds=1", "budget.max_rounds=1"),
            ("goal=Is it safe?", "'goal=Is it safe?'"),
            ("it's", r"'it'\''s'"),
            ("two\nlines", r"$'two\nlines'"),
            ("it's\n\\", r"$'it\'s\n\\'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
