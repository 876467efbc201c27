//! The one form of text that is shown: lines of parts, each with a role to which the theme gives a
//! style. What draws them, on the dashboard or on a terminal's standard output, knows no more.
//!
//! The roles of the screen: the names to which a theme gives styles.

use std::borrow::Cow;

use serde_json::Value;

use super::format;
use super::glyph::Glyph;

/// Longest line that is kept as one, in bytes; a longer one is continued on the next.
const MAX_LINE_BYTES: usize = 4096;

/// The sign of a state: a glyph and a word, and the role of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Badge {
    pub glyph: Glyph,
    pub word: &'static str,
    /// How both are painted.
    pub role: StyleRole,
}

impl Badge {
    /// A badge of these parts.
    pub const fn new(glyph: Glyph, word: &'static str, role: StyleRole) -> Self {
        Self { glyph, word, role }
    }
}

/// A part of a line that looks the same throughout: a glyph, a text, or a glyph, a space and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledPart {
    /// The glyph before the text, if any.
    pub glyph: Option<Glyph>,
    /// The text; empty for a glyph alone.
    pub text: Cow<'static, str>,
    /// How it is painted; `None`: like text without a style.
    pub role: Option<StyleRole>,
    /// The part is followed by blanks up to this many characters.
    pub width: u16,
}

impl StyledPart {
    /// A text without a style.
    pub fn plain(text: impl Into<Cow<'static, str>>) -> Self {
        Self { glyph: None, text: text.into(), role: None, width: 0 }
    }

    /// A text in a role.
    pub fn new(role: StyleRole, text: impl Into<Cow<'static, str>>) -> Self {
        Self { role: Some(role), ..Self::plain(text) }
    }

    /// A glyph and a text in a role.
    pub fn with_glyph(glyph: Glyph, role: StyleRole, text: impl Into<Cow<'static, str>>) -> Self {
        Self { glyph: Some(glyph), ..Self::new(role, text) }
    }

    /// The part, followed by blanks up to this many characters.
    pub fn padded(self, width: u16) -> Self {
        Self { width, ..self }
    }
}

impl From<Badge> for StyledPart {
    fn from(badge: Badge) -> Self {
        Self::with_glyph(badge.glyph, badge.role, badge.word)
    }
}

/// A line: perhaps a label, then its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    /// The label in the column before the text; empty where the line continues the item before it.
    /// `None`: the text has the whole width.
    pub label: Option<Cow<'static, str>>,
    /// The parts, from left to right.
    pub parts: Vec<StyledPart>,
}

impl StyledLine {
    /// A line of one part, without a label.
    pub fn new(role: StyleRole, text: impl Into<Cow<'static, str>>) -> Self {
        Self::from(StyledPart::new(role, text))
    }

    /// A text with a label.
    pub fn labelled(
        label: impl Into<Cow<'static, str>>,
        role: StyleRole,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { label: Some(label.into()), parts: vec![StyledPart::new(role, text)] }
    }

    /// The line with one part more.
    pub fn with(mut self, part: impl Into<StyledPart>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// The line with a text without a style at its end.
    pub fn then(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.with(StyledPart::plain(text))
    }

    /// Adds a text without a style.
    pub fn push(&mut self, text: impl Into<Cow<'static, str>>) {
        self.parts.push(StyledPart::plain(text));
    }

    /// The glyph before the text, if any.
    pub fn glyph(&self) -> Option<Glyph> {
        self.parts.first().and_then(|part| part.glyph)
    }

    /// The role of the line's first part: that of the line where it has only one.
    pub fn role(&self) -> StyleRole {
        self.parts.first().and_then(|part| part.role).unwrap_or(StyleRole::Text)
    }

    /// The text of all parts, without label and glyphs.
    pub fn text(&self) -> Cow<'_, str> {
        match self.parts.as_slice() {
            [] => Cow::Borrowed(""),
            [part] => Cow::Borrowed(&part.text),
            parts => parts.iter().map(|part| &*part.text).collect(),
        }
    }

    /// Whether this is the heading of a part of a document.
    pub fn is_heading(&self) -> bool {
        self.label.is_none() && self.role() == StyleRole::Strong
    }
}

impl From<StyledPart> for StyledLine {
    fn from(part: StyledPart) -> Self {
        Self { label: None, parts: vec![part] }
    }
}

/// Lines of text, for example one tab of the inspector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledText {
    /// Its lines, from the top.
    pub lines: Vec<StyledLine>,
}

impl StyledText {
    /// Adds a line.
    pub fn add(&mut self, role: StyleRole, text: impl Into<Cow<'static, str>>) {
        self.lines.push(StyledLine::new(role, text));
    }

    /// Adds the heading of a part.
    pub fn heading(&mut self, text: impl Into<Cow<'static, str>>) {
        self.add(StyleRole::Strong, text);
    }

    /// Adds a name and its value. A long value follows on lines of its own.
    pub fn field(&mut self, name: &str, text: impl AsRef<str>) {
        let text = text.as_ref();
        let name = name.to_owned();
        if text.len() <= MAX_LINE_BYTES {
            self.lines.push(StyledLine::labelled(name, StyleRole::Text, text.to_owned()));
            return;
        }
        let size = format::bytes(text.len() as u64);
        self.lines.push(StyledLine::labelled(name, StyleRole::Text, size));
        self.text(StyleRole::Text, text);
    }

    /// Adds an empty line, unless nothing is above it.
    pub fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.add(StyleRole::Text, "");
        }
    }

    /// Adds a value as indented JSON.
    pub fn json(&mut self, value: &Value) {
        self.text(StyleRole::Text, &serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Adds a text line by line; longer lines than [`MAX_LINE_BYTES`] are broken.
    pub fn text(&mut self, role: StyleRole, text: &str) {
        for line in text.split('\n') {
            let mut rest = line.strip_suffix('\r').unwrap_or(line);
            while rest.len() > MAX_LINE_BYTES {
                let mut cut = MAX_LINE_BYTES;
                while !rest.is_char_boundary(cut) {
                    cut -= 1;
                }
                self.add(role, rest[..cut].to_owned());
                rest = &rest[cut..];
            }
            self.add(role, rest.to_owned());
        }
    }

    /// Adds a text with a label, which is empty where the line continues the item before it.
    pub fn item(&mut self, label: &str, role: StyleRole, text: impl AsRef<str>) {
        self.lines.push(StyledLine::labelled(label.to_owned(), role, text.as_ref().to_owned()));
    }

    /// Adds a text with a label, behind the glyph of a badge and in its role.
    pub fn signed(&mut self, label: &str, badge: Badge, text: impl AsRef<str>) {
        let part = StyledPart::with_glyph(badge.glyph, badge.role, text.as_ref().to_owned());
        self.lines.push(StyledLine { label: Some(label.to_owned().into()), parts: vec![part] });
    }

    /// Adds an error.
    pub fn error(&mut self, label: &str, text: impl AsRef<str>) {
        self.signed(label, Badge::new(Glyph::Failed, "", StyleRole::Failed), text);
    }

    /// Adds a warning.
    pub fn warning(&mut self, label: &str, text: impl AsRef<str>) {
        self.signed(label, Badge::new(Glyph::Alert, "", StyleRole::Retry), text);
    }

    /// Adds the lines of a list, the label before the first.
    pub fn list(&mut self, label: &str, items: impl IntoIterator<Item = String>) {
        for (at, text) in items.into_iter().enumerate() {
            self.item(if at == 0 { label } else { "" }, StyleRole::Text, text);
        }
    }

    /// Adds a text of several lines, so that the reader can scroll through it.
    pub fn paragraph(&mut self, label: &str, text: &str) {
        self.list(label, text.lines().map(str::to_owned));
    }

    /// The lines as plain text, with two spaces after a label and for a tab.
    pub fn to_plain(&self) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| {
                let label = line.label.as_ref().map_or_else(String::new, |it| format!("{it}  "));
                (label + &line.text()).replace('\t', "  ")
            })
            .collect();
        lines.join("\n") + "\n"
    }
}

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $name:literal),+ $(,)?) => {
        /// What a part of the screen is for; a theme gives each role a style.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StyleRole { $($(#[$doc])* $role),+ }

        impl StyleRole {
            /// Every role.
            pub const ALL: &'static [StyleRole] = &[$(Self::$role),+];

            /// Its name in a theme's file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name),+ }
            }
        }
    };
}

roles! {
    /// Normal text.
    Text = "text",
    /// Secondary text.
    Dim = "dim",
    /// Emphasised text.
    Strong = "strong",
    /// A pane's title.
    Title = "title",
    /// A border.
    Border = "border",
    /// The border of the focused pane.
    BorderFocus = "border_focus",
    /// The selected row.
    Selected = "selected",
    /// A key that can be pressed.
    Key = "key",
    /// A text field.
    Field = "field",
    /// A button.
    Button = "button",
    /// A search match.
    Found = "found",
    /// Finished successfully.
    Done = "done",
    /// In progress.
    Running = "running",
    /// Waiting for its turn.
    Waiting = "waiting",
    /// Paused at a boundary.
    Paused = "paused",
    /// A retry follows.
    Retry = "retry",
    /// Failed, with no more retries; an error.
    Failed = "failed",
    /// Refused by a policy, a limit or an open breaker.
    Refused = "refused",
    /// Needs the operator.
    NeedsYou = "needs_you",
    /// Switched off.
    Off = "off",
    /// The lowest severity: stance `go`, level `green`.
    Go = "go",
    /// The middle severity: stance `caution`, level `yellow`.
    Caution = "caution",
    /// The highest severity: stance `block`, level `red`.
    Block = "block",
    /// No severity yet: no stance, no decision.
    Undecided = "undecided",
    /// Changed since the last round.
    Changed = "changed",
    /// Depends on a flag.
    Flag = "flag",
    /// The filled part of a bar.
    Bar = "bar",
    /// A budget's bar above 80 %.
    BarHigh = "bar_high",
    /// The empty part of a bar.
    BarEmpty = "bar_empty",
    /// The finished part of a track.
    Track = "track",
    /// The part of a track in progress.
    TrackNow = "track_now",
    /// The remaining part of a track.
    TrackEmpty = "track_empty",
    /// A sparkline.
    Spark = "spark",
    /// The reader's position in time.
    Playhead = "playhead",
    /// The cursor of typed text, or the end of streaming text.
    Cursor = "cursor",
    /// A notice to the operator.
    Notice = "notice",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_text_with_labels_without_tabs() {
        let mut text = StyledText::default();
        text.gap();
        text.heading("call");
        text.field("model", "a\tb");
        text.item("", StyleRole::Dim, "more");
        text.list("tools", ["one".to_owned(), "two".to_owned()]);
        assert_eq!(text.to_plain(), "call\nmodel  a  b\n  more\ntools  one\n  two\n");
        assert!(text.lines[0].is_heading() && !text.lines[1].is_heading());
        assert_eq!(StyledText::default().to_plain(), "\n");
    }

    #[test]
    fn splits_long_value_between_characters() {
        let mut text = StyledText::default();
        text.field("reply", "é".repeat(MAX_LINE_BYTES));
        assert_eq!(text.lines[0].text(), format::bytes(2 * MAX_LINE_BYTES as u64));
        let rest = text.lines[1..].iter().map(StyledLine::text);
        assert_eq!(rest.collect::<String>(), "é".repeat(MAX_LINE_BYTES));
        assert!(text.lines.iter().all(|line| line.text().len() <= MAX_LINE_BYTES));
    }
}
