//! The one format of durations, clocks, counts, confidences and amounts: see
//! [`narrate::format`](crate::narrate::format).

pub use crate::narrate::format::*;

use crate::narrate::glyph::{Glyph, Glyphs};

/// The estimated cost of a run: `≈ $0.0052`.
pub fn estimate(cost: f64, glyphs: Glyphs) -> String {
    format!("{} {}", glyphs.symbol(Glyph::Estimate), usd(cost))
}
