//! Builds a text: folds white space, separates paragraphs, removes invisible characters.
//!
//! Plain text: lines are kept.

use super::ExtractedDocument;
use crate::base::visible::is_hostile;

/// Separator before the next word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// A text under construction. It neither starts nor ends with white space.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    text: String,
    gap: Gap,
}

impl Flow {
    /// Adds text in which any white space is one blank.
    pub(super) fn push_folded(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.gap = self.gap.max(Gap::Space);
            } else {
                self.push(c);
            }
        }
    }

    /// Adds text whose lines and indentation are kept. Several blank lines become one.
    pub(super) fn push_lines(&mut self, text: &str) {
        let mut indent = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\r' if chars.peek() == Some(&'\n') => {}
                '\n' | '\r' | '\u{c}' | '\u{2028}' | '\u{2029}' => {
                    indent.clear();
                    let ends_a_line = self.gap >= Gap::Line;
                    self.gap = if ends_a_line { Gap::Paragraph } else { Gap::Line };
                }
                c if c.is_whitespace() => indent.push(if c == '\t' { c } else { ' ' }),
                c if is_hostile(c) => {}
                c => {
                    self.close_gap();
                    if !self.text.is_empty() {
                        self.text.push_str(&indent);
                    }
                    indent.clear();
                    self.text.push(c);
                }
            }
        }
        if !indent.is_empty() {
            self.gap = self.gap.max(Gap::Space);
        }
    }

    pub(crate) fn end_line(&mut self) {
        self.gap = self.gap.max(Gap::Line);
    }

    pub(super) fn end_paragraph(&mut self) {
        self.gap = Gap::Paragraph;
    }

    pub(super) fn end_word(&mut self) {
        self.gap = self.gap.max(Gap::Space);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn push(&mut self, c: char) {
        if !is_hostile(c) {
            self.close_gap();
            self.text.push(c);
        }
    }

    fn close_gap(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if !self.text.is_empty() {
            self.text.push_str(match gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
    }
}

/// A text in one line of at most `most` characters, for titles.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut flow = Flow::default();
    flow.push_folded(text);
    let text = flow.finish();
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Most characters of a first line that counts as a title.
const TITLE_CHARS: usize = 120;

/// Reads a plain text. A short first line followed by a blank line is the title; there is no date.
pub(super) fn read_plain(text: &str) -> ExtractedDocument {
    let mut flow = Flow::default();
    flow.push_lines(text);
    let text = flow.finish();
    let first = text.split_once("\n\n").map_or("", |(first, _)| first);
    let alone = !first.contains('\n') && first.chars().count() <= TITLE_CHARS;
    let title = if alone { first.to_owned() } else { String::new() };
    ExtractedDocument { title, published_at: String::new(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_whitespace_and_drops_invisible_characters() {
        let mut flow = Flow::default();
        flow.push_folded(" \n A\u{a0}\u{200b}word,\u{ad}and \u{202e}more\u{e0041}\u{1b} ");
        flow.end_paragraph();
        flow.push_folded("  B");
        flow.end_line();
        flow.push_folded(" C ");
        flow.end_paragraph();
        assert_eq!(flow.finish(), "A word,and more\n\nB\nC");
    }

    #[test]
    fn lines_stay_lines() {
        let mut flow = Flow::default();
        flow.push_lines("\n\n  a\r\n\tb  c  \n\n \n\nd\re\n");
        assert_eq!(flow.finish(), "a\n\tb  c\n\nd\ne");
    }

    #[test]
    fn title_is_one_bounded_line() {
        assert_eq!(one_line(" a\n b ", 9), "a b");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn short_separate_first_line_is_title() {
        for (text, title) in [
            ("Runbook\n\nStop the queue.\n", "Runbook"),
            ("\r\nRunbook\r\n\r\nStop it.", "Runbook"),
            ("Stop the queue.\nThen wait.\n\nEnd.", ""),
            ("Stop the queue.", ""),
        ] {
            assert_eq!(read_plain(text).title, title, "{text:?}");
        }
        assert_eq!(read_plain("a \r\n b\r\n\r\n\r\nc").text, "a\n b\n\nc");
    }
}
