//! The one format of durations, clocks, counts, confidences and amounts: see
//! [`app::format`](crate::app::format), which is in `app` because the dashboard's behaviour needs
//! it too.

pub use crate::app::format::*;

use super::glyph::{Glyph, Glyphs};

/// The estimated cost of a run: `≈ $0.0052`.
pub fn estimate(cost: f64, glyphs: Glyphs) -> String {
    format!("{} {}", glyphs.symbol(Glyph::Estimate), usd(cost))
}
