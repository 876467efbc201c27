//! Text as lines, each with the way it is painted: what the inspector shows, and the details of a
//! task.

use serde_json::Value;

use crate::narrate::format;

/// Longest line that is kept as one, in bytes; a longer one is continued on the next.
const MAX_LINE_BYTES: usize = 4096;

/// How a line is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Text exactly as it was received.
    Text,
    /// Heading of a part.
    Head,
    /// A name and its value, separated by the first tab.
    Field,
    /// Secondary text.
    Dim,
    /// Something that succeeded.
    Done,
    /// Something that failed.
    Failed,
    /// Something still running.
    Running,
}

/// A line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLine {
    /// How it is painted.
    pub style: LineStyle,
    /// Its text, without the line end.
    pub text: String,
}

/// The text of one tab of the inspector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDocument {
    /// Its lines, from the top.
    pub lines: Vec<DocumentLine>,
}

impl TextDocument {
    pub(crate) fn add(&mut self, look: LineStyle, text: impl Into<String>) {
        self.lines.push(DocumentLine { style: look, text: text.into() });
    }

    pub(crate) fn field(&mut self, name: &str, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.len() <= MAX_LINE_BYTES {
            return self.add(LineStyle::Field, format!("{name}\t{text}"));
        }
        self.add(LineStyle::Field, format!("{name}\t{}", format::bytes(text.len() as u64)));
        self.text(LineStyle::Text, text);
    }

    pub(crate) fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.add(LineStyle::Text, "");
        }
    }

    /// Adds a value as indented JSON.
    pub(crate) fn json(&mut self, value: &Value) {
        self.text(LineStyle::Text, &serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Adds a text line by line; lines longer than `LONGEST` are broken.
    pub(crate) fn text(&mut self, look: LineStyle, text: &str) {
        for line in text.split('\n') {
            let mut rest = line.strip_suffix('\r').unwrap_or(line);
            while rest.len() > MAX_LINE_BYTES {
                let mut cut = MAX_LINE_BYTES;
                while !rest.is_char_boundary(cut) {
                    cut -= 1;
                }
                self.add(look, &rest[..cut]);
                rest = &rest[cut..];
            }
            self.add(look, rest);
        }
    }

    /// The lines as plain text, with two spaces for a tab.
    pub fn to_text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| line.text.replace('\t', "  ")).collect();
        lines.join("\n") + "\n"
    }
}
