//! What all drawing needs besides its data.

use std::time::Duration;

use super::theme::Theme;
use crate::narrate::glyph::Glyphs;

/// Context of drawing: everything a pane needs besides its own data.
#[derive(Clone, Copy, Debug)]
pub struct DrawContext<'a> {
    /// Time since the start of the program.
    pub now: Duration,
    /// The theme.
    pub theme: &'a Theme,
    /// The glyph set.
    pub glyphs: Glyphs,
}
