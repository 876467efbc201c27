//! The parts that lines of headless text share.

use super::format;
use super::glyph::Glyph;
use super::style_role::StyleRole;
use super::styled::{StyledLine, StyledPart};
use crate::base::visible::visible;
use crate::event::Event;
use crate::event::world::{RunFold, SpanKind};

/// Width in columns of the glyph and the word before a name.
pub const WORD: u16 = 13;

/// A line that begins with a glyph and a word.
pub fn signed(glyph: Glyph, word: &'static str, role: StyleRole) -> StyledLine {
    let part = StyledPart::with_glyph(glyph, role, word).padded(WORD);
    StyledLine::default().then("  ").with(part)
}

/// The estimated cost of a run: `≈ $0.0052`.
pub fn estimate(cost: f64) -> StyledPart {
    StyledPart { glyph: Some(Glyph::Estimate), ..StyledPart::plain(format::usd(cost)) }
}

/// The model of an event's call, if the run uses several.
pub fn model_of<'w>(event: &Event, run: &'w RunFold) -> Option<&'w str> {
    match &run.spans.get(event.span)?.kind {
        SpanKind::Call(purpose) => run.models.for_purpose(purpose),
        _ => None,
    }
}

/// A name with its model in parentheses, if there is one.
pub fn with_model(who: String, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{who} ({})", visible(model)),
        None => who,
    }
}
