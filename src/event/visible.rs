//! Text from a model, a tool or a file is data: this makes what would steer a terminal visible.

use std::borrow::Cow;

/// The most characters of foreign text that a stop reason carries (decisions: "at most 64").
pub const REASON_CHARS: usize = 64;

/// Whether this character must never reach a terminal as it is: C0 and C1 controls, DEL, bidi
/// controls, other invisible format characters, and line and paragraph separators.
pub fn is_hostile(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// The visible stand-in of a hostile character: the control pictures of Unicode where there is
/// one (`␛` for escape), `�` else.
pub fn stand_in(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// The text with every hostile character, line ends and tabs too, as its visible stand-in.
///
/// ```
/// use roundtable::event::visible::visible;
/// assert_eq!(visible("go\u{1b}[2J"), "go␛[2J");
/// assert_eq!(visible("plain"), "plain");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hostile) {
        Cow::Owned(text.chars().map(|c| if is_hostile(c) { stand_in(c) } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// [`visible`], cut to `chars` characters, with `…` as the last where something was cut off.
///
/// ```
/// use roundtable::event::visible::visible_within;
/// assert_eq!(visible_within("abcdef", 4), "abc…");
/// ```
pub fn visible_within(text: &str, chars: usize) -> String {
    let fits = text.chars().nth(chars).is_none();
    let keep = if fits { chars } else { chars.saturating_sub(1) };
    let mut out: String =
        text.chars().take(keep).map(|c| if is_hostile(c) { stand_in(c) } else { c }).collect();
    if !fits {
        out.push('…');
    }
    out
}
