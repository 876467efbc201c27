//! The glyphs that text on the screen uses: see [`narrate::glyph`](crate::narrate::glyph).

pub use crate::narrate::glyph::{Glyph, Glyphs};
