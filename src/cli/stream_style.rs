//! Styles a command's output with the dashboard's theme and glyphs; colours only on a terminal.

use std::io::IsTerminal;

use ratatui::prelude::IntoCrossterm as _;
use ratatui::style::Style;

use crate::narrate::glyph::{Glyph, Glyphs};
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
    /// The style for this stream.
    pub fn on(stream: &impl IsTerminal, theme: Theme, ascii: bool) -> Self {
        let depth = Abilities::detect().depth;
        let colour = stream.is_terminal() && depth != ColourDepth::Mono;
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
            style.into_crossterm().apply(text).to_string()
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
                Some(glyph) => format!("{} {}", self.glyph(glyph), part.text),
                None => part.text.clone().into_owned(),
            };
            let is_last = at + 1 == line.parts.len();
            let width = if is_last { 0 } else { usize::from(part.width) };
            let text = format!("{text:<width$}");
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
