//! The state of a tool's breaker in a few columns.

use crate::event::Elapsed;
use crate::event::kind::BreakerStage;
use crate::event::world::tool_row::ToolRow;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::theme::StateSign;

/// The state of a tool's breaker; "no breaker" for a tool without one.
pub(crate) fn sign(cx: &DrawContext, tool: &ToolRow) -> StateSign {
    match tool.head.limits.breaker {
        Some(_) => cx.theme.breaker(tool.breaker),
        None => StateSign { word: "no breaker", ..cx.theme.breaker(BreakerStage::Disabled) },
    }
}

/// The state with the time until the breaker probes, if it is open.
pub(crate) fn state_text(tool: &ToolRow, sign: StateSign, now: Elapsed) -> String {
    match tool.retry_in(now) {
        // The word "OPEN" has no room here; the sign has its glyph and colour.
        Some(left) if left.is_zero() => "probe due".to_owned(),
        Some(left) => format!("{} {}", sign.word, format::duration_text(left)),
        None => sign.word.to_owned(),
    }
}

/// The attempts of a tool that are in flight. Those of a run that was interrupted were cut off.
pub(crate) fn in_flight_text(tool: &ToolRow, is_live: bool) -> String {
    let word = if is_live || tool.in_flight == 0 { "running" } else { "cut off" };
    format!("{} {word}", tool.in_flight)
}
