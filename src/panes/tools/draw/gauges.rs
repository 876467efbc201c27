//! The second header row of the tools: the breakers that are not closed, the errors, what was served
//! from fallback; without guards, the amplification.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::state::{sign, state_text};
use crate::app::run::data::RunData;
use crate::app::run::tool_summary::{fails_now, is_full};
use crate::event::Elapsed;
use crate::event::kind::BreakerStage;
use crate::event::world::Projection;
use crate::event::world::tool_row::{ToolRow, ToolTally};
use crate::narrate::event_line_tool::short_breaker_cause;
use crate::narrate::format::percent;
use crate::narrate::glyph::Glyph;
use crate::panes::tools::listed::listed_tools;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// At most this many tools are named with the state of their breakers.
const NAMED: usize = 2;
/// Blanks between two parts.
const GAP: u16 = 3;

/// A part of the row.
type Part = (String, StyleRole);

/// Draws the row; a part that does not fit is left out.
pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let tools = listed_tools(world);
    if tools.is_empty() {
        return;
    }
    let load = world.projection().and_then(Projection::tool_load);
    let naive = load.is_some_and(|load| load.naive_attempts.is_some());
    let mut parts = if naive {
        vec![("no guards".to_owned(), StyleRole::Retry)]
    } else {
        breakers(&tools, cx, data.time(cx.now))
    };
    if let Some(factor) = world.tools.amplification().filter(|factor| naive || *factor > 1.0) {
        let role = if factor > 1.0 { StyleRole::Failed } else { StyleRole::Text };
        parts.push((format::requests_a_call(factor), role));
    }
    parts.extend(errors(&tools, data, data.time(cx.now)));
    parts.extend(results(&tools));
    let of_all =
        |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let full = of_all(|tally| tally.bulkhead_full);
    if full > 0 {
        let text = format!("{} refused by bulkheads", format::count(full));
        let is_full = tools.iter().any(|tool| is_full(tool));
        parts.push((text, if is_full { StyleRole::Refused } else { StyleRole::Text }));
    }
    let slow = tools.iter().filter_map(|it| Some((it.latencies.percentile(95)?, it)));
    if let Some((p95, tool)) = slow.max_by_key(|(p95, _)| *p95) {
        let text = format!("slowest p95 {} {}", format::duration_text(p95), tool.name());
        parts.push((text, StyleRole::Dim));
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, (text, role)) in parts.iter().enumerate() {
        let gap = if nth > 0 { GAP } else { 0 };
        if nth == 0 || pen.fits(columns(text) + usize::from(gap)) {
            pen.space(gap).put(text, cx.theme.style(*role));
        }
    }
}

/// The breakers that are not closed, by name; the number of the others if there are none.
fn breakers(tools: &[&ToolRow], cx: &DrawContext, now: Elapsed) -> Vec<Part> {
    let with = || tools.iter().filter(|tool| tool.head.limits.breaker.is_some());
    let role = |stage| match stage {
        BreakerStage::Open | BreakerStage::Held => StyleRole::Refused,
        BreakerStage::HalfOpen => StyleRole::Retry,
        BreakerStage::Disabled => StyleRole::Off,
        BreakerStage::Closed => StyleRole::Done,
    };
    let not_closed = || with().filter(|tool| tool.breaker != BreakerStage::Closed);
    let named = not_closed().take(NAMED).map(|tool| {
        let sign = sign(cx, tool);
        let state = state_text(tool, sign, now);
        let opened = tool.history.back().filter(|it| it.counted.is_some());
        let why = opened.map(|it| format!(" ({})", short_breaker_cause(it.why, it.counted)));
        let glyph = cx.glyphs.symbol(sign.glyph);
        let text = format!("{glyph} {} {state}{}", tool.name(), why.unwrap_or_default());
        (text, role(tool.breaker))
    });
    let mut parts: Vec<Part> = named.collect();
    let more = not_closed().count().saturating_sub(NAMED);
    if more > 0 {
        parts.push((format!("{more} more not closed"), StyleRole::Refused));
    }
    if parts.is_empty() {
        let text = match with().count() as u64 {
            0 => "no breakers".to_owned(),
            count => format!(
                "{} {} closed",
                cx.glyphs.symbol(Glyph::Done),
                format::count_noun(count, "breaker")
            ),
        };
        parts.push((text, StyleRole::Done));
    }
    parts
}

/// The tool with the highest share of errors, of those that fail now if any does. The share is that of
/// the whole run; its colour says whether the tool fails now.
fn errors(tools: &[&ToolRow], data: &RunData, now: Elapsed) -> Option<Part> {
    let rates = tools
        .iter()
        .filter_map(|tool| Some((fails_now(tool, data, now), tool.tally.error_rate()?, tool)));
    let (fails, rate, tool) = rates.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    let role = if fails && rate > 0.0 { StyleRole::Failed } else { StyleRole::Text };
    Some(match rate {
        0.0 => ("no errors".to_owned(), role),
        rate => (format!("{} {} errors", tool.name(), percent(rate)), role),
    })
}

/// How many calls failed, were served from fallback, or have no result.
fn results(tools: &[&ToolRow]) -> Vec<Part> {
    let of_all =
        |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let calls = of_all(|tally| tally.calls);
    let failed = of_all(|tally| tally.failed);
    let fallback = of_all(|tally| tally.cached + tally.fallback);
    let omitted = of_all(|tally| tally.omitted);
    // The repeats of a call can fail too, so the failures are not a part of the calls.
    [
        (failed, format!("{} failed", format::count_noun(failed, "call")), StyleRole::Failed),
        (fallback, format!("{fallback} of {calls} calls from fallback"), StyleRole::Retry),
        (omitted, format!("{omitted} of {calls} calls left out"), StyleRole::Retry),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(_, text, role)| (text, role))
    .collect()
}
