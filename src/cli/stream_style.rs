//! Styles a command's output with the dashboard's theme and glyphs; colours only on a terminal.

use ratatui::prelude::IntoCrossterm as _;
use ratatui::style::Style;

use super::message::stderr_is_terminal;
use super::stdout;
use crate::base::visible::visible_lines;
use crate::narrate::glyph::{Glyph, Glyphs};
use crate::narrate::measure::padded;
use crate::narrate::styled::StyledLine;
use crate::shell::tty::Abilities;
use crate::ui::theme::{ColourDepth, StateSign, StyleRole, Theme};

/// Style of the output on one stream.
#[derive(Debug, Clone)]
pub struct StreamStyle {
    theme: Theme,
    colour: bool,
    glyphs: Glyphs,
}

impl StreamStyle {
    /// The style for standard output.
    pub fn of_stdout(theme: Theme, ascii: bool) -> Self {
        Self::new(stdout::is_terminal(), theme, ascii)
    }

    /// The style for standard error.
    pub fn of_stderr(theme: Theme, ascii: bool) -> Self {
        Self::new(stderr_is_terminal(), theme, ascii)
    }

    /// The style for a stream that is a terminal, or not.
    pub fn new(is_terminal: bool, theme: Theme, ascii: bool) -> Self {
        let depth = Abilities::detect().depth;
        let colour = is_terminal && depth != ColourDepth::Mono;
        Self { theme: theme.with_depth(depth), colour, glyphs: Glyphs::new(ascii) }
    }

    /// Whether colours are used.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// The theme, at the stream's colour depth.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// The text of a glyph.
    pub fn glyph(&self, glyph: Glyph) -> &'static str {
        self.glyphs.symbol(glyph)
    }

    /// Applies a style to a text.
    pub fn with(&self, style: Style, text: &str) -> String {
        if self.colour && style != Style::default() {
            // A style in the text itself would end this one.
            style.into_crossterm().apply(visible_lines(text)).to_string()
        } else {
            text.to_owned()
        }
    }

    /// Applies a role's style to a text.
    pub fn role(&self, role: StyleRole, text: &str) -> String {
        self.with(self.theme.style(role), text)
    }

    /// A line with its styles. No blanks follow its last part.
    pub fn line(&self, line: &StyledLine) -> String {
        let mut out = String::new();
        for (at, part) in line.parts.iter().enumerate() {
            let text = match part.glyph {
                Some(glyph) if part.text.is_empty() => self.glyph(glyph).to_owned(),
                Some(glyph) => format!("{} {}", self.glyph(glyph), visible_lines(&part.text)),
                None => visible_lines(&part.text).into_owned(),
            };
            let is_last = at + 1 == line.parts.len();
            let width = if is_last { 0 } else { usize::from(part.width) };
            let text = padded(&text, width);
            match part.role {
                Some(role) => out.push_str(&self.role(role, &text)),
                None => out.push_str(&text),
            }
        }
        out
    }

    /// A state as its glyph and word, styled.
    pub fn sign(&self, sign: StateSign) -> String {
        self.with(sign.style, &format!("{} {}", self.glyph(sign.glyph), sign.word))
    }
}
