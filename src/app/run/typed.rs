//! A line of text that is being typed.

use unicode_segmentation::UnicodeSegmentation;

use crate::app::key::{Key, KeyCode};
use crate::event::visible::is_hostile;

/// Most characters of a filter.
const MOST: usize = 500;

/// A line of text and the position of the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    text: String,
    at: usize,
}

impl Typed {
    pub(super) fn new(text: String) -> Self {
        let at = text.len();
        Self { text, at }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Position of the cursor, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Inserts a text; line ends become blanks, other control characters are dropped.
    pub(super) fn insert(&mut self, text: &str) {
        let room = MOST.saturating_sub(self.text.chars().count());
        let text: String = text
            .chars()
            .map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c })
            .filter(|c| !is_hostile(*c))
            .take(room)
            .collect();
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    /// Handles a key; `false` if the key has no meaning here.
    pub(super) fn on_key(&mut self, key: Key) -> bool {
        if let Some(c) = key.typed() {
            self.insert(c.encode_utf8(&mut [0; 4]));
            return true;
        }
        match (key.code, key.ctrl) {
            (KeyCode::Char('u'), true) => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            (KeyCode::Char('w'), true) => {
                let kept = self.text[..self.at].trim_end();
                let start = kept.rfind(' ').map_or(0, |blank| blank + 1);
                self.text.drain(start..self.at);
                self.at = start;
            }
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => self.at = 0,
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => self.at = self.text.len(),
            (KeyCode::Left, _) => self.at = self.before(),
            (KeyCode::Right, _) => self.at = self.after(),
            (KeyCode::Backspace, _) => {
                let start = self.before();
                self.text.drain(start..self.at);
                self.at = start;
            }
            (KeyCode::Delete, _) => {
                let end = self.after();
                self.text.drain(self.at..end);
            }
            _ => return false,
        }
        true
    }

    fn before(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..].graphemes(true).next().map_or(self.at, |next| self.at + next.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_edited() {
        let mut line = Typed::new("kind == x".to_owned());
        line.on_key(Key::of(KeyCode::Backspace));
        line.insert("\"go\u{1b}\n\"");
        assert_eq!(line.text(), "kind == \"go \"");
        line.on_key(Key::ctrl('w'));
        assert_eq!(line.text(), "kind == \"go ");
        line.on_key(Key::of(KeyCode::Home));
        line.on_key(Key::of(KeyCode::Delete));
        assert_eq!(line.text(), "ind == \"go ");
    }

    proptest! {
        #[test]
        fn the_cursor_stays_in_the_text(keys in proptest::collection::vec(0u8..9, 0..40)) {
            let mut line = Typed::new("né宽👩‍👩‍👧".to_owned());
            for key in keys {
                line.on_key(match key {
                    0 => Key::of(KeyCode::Left),
                    1 => Key::of(KeyCode::Right),
                    2 => Key::of(KeyCode::Home),
                    3 => Key::of(KeyCode::End),
                    4 => Key::of(KeyCode::Backspace),
                    5 => Key::of(KeyCode::Delete),
                    6 => Key::ctrl('w'),
                    7 => Key::ctrl('u'),
                    _ => Key::char('é'),
                });
                prop_assert!(line.text().is_char_boundary(line.at()));
            }
        }
    }
}
