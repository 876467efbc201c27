//! A key as the dashboard knows it: no terminal library's type, so that behaviour can be tested
//! without one.

use std::borrow::Cow;

/// A key on the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A character as it was typed: `G`, not Shift and `g`.
    Char(char),
    Enter,
    Esc,
    Tab,
    /// Shift-Tab.
    BackTab,
    Backspace,
    Delete,
    Insert,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// A function key, from 1.
    F(u8),
}

/// A key press. For characters `shift` is already in the character and is never set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    /// The key.
    pub code: KeyCode,
    /// Ctrl was held.
    pub ctrl: bool,
    /// Alt was held.
    pub alt: bool,
    /// Shift was held (never for characters).
    pub shift: bool,
}

impl KeyPress {
    /// A key without Ctrl, Alt and Shift.
    pub const fn new(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }
    /// A character.
    pub const fn char(c: char) -> Self {
        Self::new(KeyCode::Char(c))
    }
    /// A character with Ctrl.
    pub const fn ctrl(c: char) -> Self {
        Self { code: KeyCode::Char(c), ctrl: true, alt: false, shift: false }
    }

    /// The character that this key types, if it types one.
    pub fn typed_char(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Its name on the screen and in the documents; `ascii` avoids arrows and symbols.
    pub fn label(self, ascii: bool) -> Cow<'static, str> {
        let name: Cow<'static, str> = match self.code {
            KeyCode::Char(' ') => "Space".into(),
            KeyCode::Char(c) if self.ctrl => c.to_ascii_uppercase().to_string().into(),
            KeyCode::Char(c) => c.to_string().into(),
            KeyCode::Enter if ascii => "Enter".into(),
            KeyCode::Enter => "⏎".into(),
            KeyCode::Esc => "Esc".into(),
            KeyCode::Tab => "Tab".into(),
            KeyCode::BackTab => "S-Tab".into(),
            KeyCode::Backspace => "Backspace".into(),
            KeyCode::Delete => "Del".into(),
            KeyCode::Insert => "Ins".into(),
            KeyCode::Up if ascii => "Up".into(),
            KeyCode::Up => "↑".into(),
            KeyCode::Down if ascii => "Down".into(),
            KeyCode::Down => "↓".into(),
            KeyCode::Left if ascii => "Left".into(),
            KeyCode::Left => "←".into(),
            KeyCode::Right if ascii => "Right".into(),
            KeyCode::Right => "→".into(),
            KeyCode::Home => "Home".into(),
            KeyCode::End => "End".into(),
            KeyCode::PageUp => "PgUp".into(),
            KeyCode::PageDown => "PgDn".into(),
            KeyCode::F(n) => format!("F{n}").into(),
        };
        match (self.ctrl, self.alt, self.shift) {
            (false, false, false) => name,
            (ctrl, alt, shift) => format!(
                "{}{}{}{name}",
                if ctrl { "Ctrl-" } else { "" },
                if alt { "Alt-" } else { "" },
                if shift { "S-" } else { "" },
            )
            .into(),
        }
    }
}

/// Words of keys in the configuration file. Of two words for a key the first one is written.
const KEY_WORDS: [(&str, KeyCode); 19] = [
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

/// The forms in which a key is written in the configuration file.
const KEY_FORMS: &str = "write a character (x, X, !), ctrl-x, alt-x, f1 to f12, enter, space, tab, \
                                    shift-tab, backspace, delete, insert, up, down, left, right, home, end, \
                                    page-up or page-down";

impl KeyPress {
    /// The key that the configuration file writes so.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, String)> {
        let unknown = || (format!("unknown key `{text}`"), KEY_FORMS.to_owned());
        let (mut rest, mut key) = (text, Self::new(KeyCode::Esc));
        while let Some((word, after)) = rest.split_once('-').filter(|(_, after)| !after.is_empty())
        {
            match word.to_ascii_lowercase().as_str() {
                "ctrl" if !key.ctrl => key.ctrl = true,
                "alt" if !key.alt => key.alt = true,
                "shift" if !key.shift => key.shift = true,
                _ => break,
            }
            rest = after;
        }
        let mut chars = rest.chars();
        key.code = match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() => KeyCode::Char(c),
            _ => code_of_word(&rest.to_ascii_lowercase()).ok_or_else(unknown)?,
        };
        match key.code {
            KeyCode::Tab if key.shift => key = Self { code: KeyCode::BackTab, shift: false, ..key },
            KeyCode::Char(c) => {
                let c = match (key.ctrl, key.shift) {
                    (true, _) => c.to_ascii_lowercase(),
                    (false, true) if c.is_ascii_lowercase() => c.to_ascii_uppercase(),
                    (false, _) => c,
                };
                if (key.ctrl && !(c.is_ascii_lowercase() || c == ' '))
                    || (key.shift && (key.ctrl || !c.is_ascii_uppercase()))
                {
                    return Err(unknown());
                }
                if let (true, Some(other)) = (key.ctrl, sent_like(c)) {
                    let what = format!("a terminal sends {text} as {other}");
                    return Err((what, "choose another key".to_owned()));
                }
                key = Self { code: KeyCode::Char(c), shift: false, ..key };
            }
            _ => {}
        }
        Ok(key)
    }

    /// The key as the configuration file writes it.
    pub(crate) fn written(self) -> String {
        let word = KEY_WORDS.iter().find(|(_, code)| *code == self.code);
        let name = match (word, self.code) {
            (Some((word, _)), _) => (*word).to_owned(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, _) => self.code_name().to_ascii_lowercase(),
        };
        let held = [(self.ctrl, "ctrl-"), (self.alt, "alt-"), (self.shift, "shift-")];
        held.iter().filter(|(is, _)| *is).map(|(_, word)| *word).chain([name.as_str()]).collect()
    }

    fn code_name(self) -> String {
        Self::new(self.code).label(true).into_owned()
    }

    /// Whether this key moves the cursor of a text or changes the text, without being a character.
    pub(super) fn edits_text(self) -> bool {
        !self.ctrl
            && !self.alt
            && matches!(
                self.code,
                KeyCode::Enter
                    | KeyCode::Backspace
                    | KeyCode::Delete
                    | KeyCode::Up
                    | KeyCode::Down
                    | KeyCode::Left
                    | KeyCode::Right
                    | KeyCode::Home
                    | KeyCode::End
            )
    }
}

fn code_of_word(word: &str) -> Option<KeyCode> {
    if let Some((_, code)) = KEY_WORDS.iter().find(|(known, _)| *known == word) {
        return Some(*code);
    }
    let number = word.strip_prefix('f')?.parse().ok().filter(|n| (1..=12).contains(n))?;
    Some(KeyCode::F(number))
}

/// The key that a terminal sends in the same way as Ctrl with this character.
fn sent_like(c: char) -> Option<&'static str> {
    match c {
        'i' => Some("tab"),
        'm' => Some("enter"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_through_text() {
        for (text, key) in [
            ("x", KeyPress::char('x')),
            ("X", KeyPress::char('X')),
            ("-", KeyPress::char('-')),
            ("shift-x", KeyPress::char('X')),
            ("Ctrl-X", KeyPress::ctrl('x')),
            ("ctrl-space", KeyPress::ctrl(' ')),
            ("alt--", KeyPress { alt: true, ..KeyPress::char('-') }),
            ("alt-X", KeyPress { alt: true, ..KeyPress::char('X') }),
            ("shift-tab", KeyPress::new(KeyCode::BackTab)),
            ("F12", KeyPress::new(KeyCode::F(12))),
            ("page-down", KeyPress::new(KeyCode::PageDown)),
            ("ctrl-up", KeyPress { ctrl: true, ..KeyPress::new(KeyCode::Up) }),
            ("é", KeyPress::char('é')),
        ] {
            assert_eq!(KeyPress::parse(text).as_ref(), Ok(&key), "{text}");
            let written = key.written();
            assert_eq!(KeyPress::parse(&written), Ok(key), "{written}");
        }
        for text in
            ["", "ctr-x", "xx", "f0", "f13", "ctrl-!", "ctrl-", "shift-1", "\u{1b}", "ctrl-ctrl-x"]
        {
            let (what, help) = KeyPress::parse(text).expect_err(text);
            assert!(what.contains("unknown key") && help.contains("page-up"), "{text}: {what}");
        }
        let (what, _) = KeyPress::parse("ctrl-i").expect_err("it is Tab");
        assert_eq!(what, "a terminal sends ctrl-i as tab");
    }
}
