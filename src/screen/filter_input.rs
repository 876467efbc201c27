//! A line of text that is being typed.

use unicode_segmentation::UnicodeSegmentation;

use super::key::{KeyCode, KeyPress};
use crate::base::visible::is_hostile;

/// Maximum characters of a filter.
const MAX_CHARS: usize = 500;

/// A line of text, the position of the cursor, and the text that the arrow up recalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterInput {
    text: String,
    cursor: usize,
    last: String,
}

impl FilterInput {
    /// Begins with a text; `last` is the filter before it.
    pub(crate) fn new(text: String, last: String) -> Self {
        let cursor = text.len();
        Self { text, cursor, last }
    }

    /// The filter that the arrow up recalls; empty: none.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Position of the cursor, in bytes.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Inserts a text; line ends become blanks, other control characters are dropped.
    pub(crate) fn insert(&mut self, text: &str) {
        let room = MAX_CHARS.saturating_sub(self.text.chars().count());
        let text: String = text
            .chars()
            .map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c })
            .filter(|c| !is_hostile(*c))
            .take(room)
            .collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Handles a key; `false` if the key has no meaning here.
    pub(crate) fn on_key(&mut self, key: KeyPress) -> bool {
        if let Some(c) = key.typed_char() {
            self.insert(c.encode_utf8(&mut [0; 4]));
            return true;
        }
        match (key.code, key.ctrl) {
            (KeyCode::Char('u'), true) => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            (KeyCode::Char('w'), true) => {
                let kept = self.text[..self.cursor].trim_end();
                let start = kept.rfind(' ').map_or(0, |blank| blank + 1);
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => self.cursor = 0,
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => self.cursor = self.text.len(),
            // The second press restores the typed text.
            (KeyCode::Up | KeyCode::Down, _) if !self.last.is_empty() => {
                std::mem::swap(&mut self.text, &mut self.last);
                self.cursor = self.text.len();
            }
            (KeyCode::Left, _) => self.cursor = self.before(),
            (KeyCode::Right, _) => self.cursor = self.after(),
            (KeyCode::Backspace, _) => {
                let start = self.before();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            (KeyCode::Delete, _) => {
                let end = self.after();
                self.text.drain(self.cursor..end);
            }
            _ => return false,
        }
        true
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..]
            .graphemes(true)
            .next()
            .map_or(self.cursor, |next| self.cursor + next.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_edited() {
        let mut line = FilterInput::new("kind == x".to_owned(), String::new());
        line.on_key(KeyPress::new(KeyCode::Backspace));
        line.insert("\"go\u{1b}\n\"");
        assert_eq!(line.text(), "kind == \"go \"");
        line.on_key(KeyPress::ctrl('w'));
        assert_eq!(line.text(), "kind == \"go ");
        line.on_key(KeyPress::new(KeyCode::Home));
        line.on_key(KeyPress::new(KeyCode::Delete));
        assert_eq!(line.text(), "ind == \"go ");
    }

    #[test]
    fn arrow_up_recalls_last_filter() {
        let mut line = FilterInput::new(String::new(), "failed".to_owned());
        line.insert("now");
        line.on_key(KeyPress::new(KeyCode::Up));
        line.insert("!");
        assert_eq!(line.text(), "failed!");
        line.on_key(KeyPress::new(KeyCode::Down));
        assert_eq!(line.text(), "now");
        let mut first = FilterInput::default();
        assert!(!first.on_key(KeyPress::new(KeyCode::Up)), "there is nothing to recall");
    }

    proptest! {
        #[test]
        fn the_cursor_stays_in_the_text(keys in proptest::collection::vec(0u8..10, 0..40)) {
            let mut line = FilterInput::new("né宽👩‍👩‍👧".to_owned(), "宽".to_owned());
            for key in keys {
                line.on_key(match key {
                    0 => KeyPress::new(KeyCode::Left),
                    1 => KeyPress::new(KeyCode::Right),
                    2 => KeyPress::new(KeyCode::Home),
                    3 => KeyPress::new(KeyCode::End),
                    4 => KeyPress::new(KeyCode::Backspace),
                    5 => KeyPress::new(KeyCode::Delete),
                    6 => KeyPress::ctrl('w'),
                    7 => KeyPress::ctrl('u'),
                    8 => KeyPress::new(KeyCode::Up),
                    _ => KeyPress::char('é'),
                });
                prop_assert!(line.text().is_char_boundary(line.cursor()));
            }
        }
    }
}
