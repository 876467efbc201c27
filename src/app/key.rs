//! A key as the dashboard knows it: no terminal library's type, so that behaviour can be tested
//! without one.

use std::borrow::Cow;

/// A key on the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A character as it was typed: `G`, not Shift and `g`.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
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
