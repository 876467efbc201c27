//! How a command's lines look: the dashboard's theme and glyphs, colours only where a terminal
//! shows them.

use std::io::IsTerminal;

use ratatui::prelude::IntoCrossterm as _;
use ratatui::style::Style;

use crate::shell::tty::Abilities;
use crate::ui::glyph::{Glyph, Glyphs};
use crate::ui::theme::{Depth, Role, Sign, Theme};

/// How lines look on one stream.
#[derive(Debug, Clone)]
pub struct Paint {
    theme: Theme,
    colour: bool,
    glyphs: Glyphs,
}

impl Paint {
    /// Lines for this stream.
    pub fn on(stream: &impl IsTerminal, theme: Theme, ascii: bool) -> Self {
        let depth = Abilities::look().depth;
        let colour = stream.is_terminal() && depth != Depth::Mono;
        Self { theme: theme.at(depth), colour, glyphs: Glyphs::new(ascii) }
    }

    /// Whether there are colours.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// The theme.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// The set of glyphs.
    pub fn glyphs(&self) -> Glyphs {
        self.glyphs
    }

    /// A glyph.
    pub fn glyph(&self, glyph: Glyph) -> &'static str {
        self.glyphs.of(glyph)
    }

    /// A text in a style.
    pub fn with(&self, style: Style, text: &str) -> String {
        if self.colour && style != Style::default() {
            style.into_crossterm().apply(text).to_string()
        } else {
            text.to_owned()
        }
    }

    /// A text as this role looks.
    pub fn role(&self, role: Role, text: &str) -> String {
        self.with(self.theme.style(role), text)
    }

    /// A state: its glyph and its word.
    pub fn sign(&self, sign: Sign) -> String {
        self.with(sign.style, &format!("{} {}", self.glyph(sign.glyph), sign.word))
    }
}
