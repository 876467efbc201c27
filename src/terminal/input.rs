//! Converts the terminal's events to the dashboard's messages.

use crossterm::event::{
    Event, KeyCode as TermKey, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

use crate::screen::msg::{Mouse, MouseKind};
use crate::screen::{KeyCode, KeyPress, Msg};

/// A terminal's event as a message; `None` for an event without effect, such as a key release.
pub fn message(event: Event) -> Option<Msg> {
    Some(match event {
        Event::Key(key) => Msg::Key(convert(key)?),
        Event::Paste(text) => Msg::Paste(text.replace("\r\n", "\n").replace('\r', "\n")),
        Event::Resize(cols, rows) => Msg::Resize { cols, rows },
        Event::Mouse(mouse) => {
            let what = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => MouseKind::Down,
                MouseEventKind::Drag(MouseButton::Left) => MouseKind::Drag,
                MouseEventKind::Up(MouseButton::Left) => MouseKind::Up,
                MouseEventKind::ScrollUp => MouseKind::WheelUp,
                MouseEventKind::ScrollDown => MouseKind::WheelDown,
                _ => return None,
            };
            Msg::Mouse(Mouse { kind: what, col: mouse.column, row: mouse.row })
        }
        Event::FocusGained | Event::FocusLost => return None,
    })
}

fn convert(key: KeyEvent) -> Option<KeyPress> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let code = match key.code {
        // With Ctrl some terminals send a lower-case letter, others an upper-case one.
        TermKey::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            KeyCode::Char(c.to_ascii_lowercase())
        }
        TermKey::Char(c) if shift && c.is_ascii_lowercase() => {
            KeyCode::Char(c.to_ascii_uppercase())
        }
        TermKey::Char(c) => KeyCode::Char(c),
        TermKey::Enter => KeyCode::Enter,
        TermKey::Esc => KeyCode::Esc,
        TermKey::Tab if shift => KeyCode::BackTab,
        TermKey::Tab => KeyCode::Tab,
        TermKey::BackTab => KeyCode::BackTab,
        TermKey::Backspace => KeyCode::Backspace,
        TermKey::Delete => KeyCode::Delete,
        TermKey::Insert => KeyCode::Insert,
        TermKey::Up => KeyCode::Up,
        TermKey::Down => KeyCode::Down,
        TermKey::Left => KeyCode::Left,
        TermKey::Right => KeyCode::Right,
        TermKey::Home => KeyCode::Home,
        TermKey::End => KeyCode::End,
        TermKey::PageUp => KeyCode::PageUp,
        TermKey::PageDown => KeyCode::PageDown,
        TermKey::F(n) => KeyCode::F(n),
        _ => return None,
    };
    let carries_shift = !matches!(code, KeyCode::Char(_) | KeyCode::BackTab);
    Some(KeyPress {
        code,
        ctrl: key.modifiers.contains(KeyModifiers::CONTROL),
        alt: key.modifiers.contains(KeyModifiers::ALT),
        shift: shift && carries_shift,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: TermKey, modifiers: KeyModifiers) -> Option<KeyPress> {
        convert(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn key_spellings_yield_one_key() {
        let shift = KeyModifiers::SHIFT;
        let ctrl = KeyModifiers::CONTROL;
        for (code, modifiers, want) in [
            (TermKey::Char('g'), KeyModifiers::NONE, KeyPress::char('g')),
            (TermKey::Char('G'), shift, KeyPress::char('G')),
            (TermKey::Char('G'), KeyModifiers::NONE, KeyPress::char('G')),
            (TermKey::Char('g'), shift, KeyPress::char('G')),
            (TermKey::Char('?'), shift, KeyPress::char('?')),
            (TermKey::Char('c'), ctrl, KeyPress::ctrl('c')),
            (TermKey::Char('C'), ctrl, KeyPress::ctrl('c')),
            (TermKey::BackTab, shift, KeyPress::new(KeyCode::BackTab)),
            (TermKey::Tab, shift, KeyPress::new(KeyCode::BackTab)),
            (TermKey::Up, shift, KeyPress { shift: true, ..KeyPress::new(KeyCode::Up) }),
        ] {
            assert_eq!(key(code, modifiers), Some(want), "{code:?} {modifiers:?}");
        }
        assert_eq!(key(TermKey::CapsLock, KeyModifiers::NONE), None);
        let mut up = KeyEvent::new(TermKey::Char('x'), KeyModifiers::NONE);
        up.kind = KeyEventKind::Release;
        assert_eq!(convert(up), None, "a key release has no effect");
    }

    #[test]
    fn paste_normalizes_line_ends() {
        let Some(Msg::Paste(text)) = message(Event::Paste("a\r\nb\rc\n".to_owned())) else {
            panic!("a paste");
        };
        assert_eq!(text, "a\nb\nc\n");
    }
}
