//! The one way a duration, a clock, a count, a confidence or an amount is written: see
//! [`app::format`](crate::app::format), where the dashboard's behaviour needs it too.

pub use crate::app::format::*;

use super::glyph::{Glyph, Glyphs};

/// What a run costs, which is never more than an estimate: `≈ $0.0052`.
pub fn estimate(cost: f64, glyphs: Glyphs) -> String {
    format!("{} {}", glyphs.of(Glyph::Estimate), usd(cost))
}
