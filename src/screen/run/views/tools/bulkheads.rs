//! Pane 3 of the tools: each tool's concurrent, queued and refused attempts; and the call slots
//! that the agents of a resilience run share.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::breakers::in_flight_text;
use super::summary::is_full;
use super::{ToolsView, listed_tools};
use crate::base::time;
use crate::log::world::Projection;
use crate::log::world::tool_row::ToolRow;
use crate::screen::layout::{below, line};
use crate::screen::list::{Column, row_style};
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::widgets::empty;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Number of slots drawn one by one, in a wide and in a narrow pane; more slots are drawn to scale.
const MAX_SLOTS: (u16, u16) = (16, 8);
/// Width of the figures next to the slots.
const FIGURES: u16 = 8;

pub(crate) fn render(
    view: &ToolsView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let dim = cx.theme.style(StyleRole::Dim);
    let tools = &listed_tools(world)[..];
    if tools.is_empty() {
        return empty(cx, area, "No tools: the queues of tools would be listed here.", buf);
    }
    let longest = tools.iter().map(|tool| tool.name().as_str().len()).max().unwrap_or(4).max(10);
    let name = u16::try_from(longest).unwrap_or(u16::MAX).min((area.width / 4).max(10));
    let most = if area.width < 64 { MAX_SLOTS.1 } else { MAX_SLOTS.0 };
    // The figures are in one column, right after the longest row of slots.
    let slots = world.projection().and_then(Projection::tool_load).map(|it| it.slots);
    let pool = slots.map(|it| it.pool);
    let limits = tools.iter().filter_map(|tool| tool.head.limits.bulkhead);
    let longest = limits.map(|it| it.max_in_flight).chain(pool).max().unwrap_or(0);
    let most = u16::try_from(longest).unwrap_or(most).min(most);
    let mut nth = 0;
    if let Some(slots) = slots {
        let mut pen = Pen::new(buf, line(area, nth), cx.glyphs);
        pen.space(3).name("call slots", name, cx.theme.style(StyleRole::Text)).space(1);
        slots_bar(cx, &mut pen, slots.in_use, slots.pool, most);
        pen.put(&format!("{} waiting", slots.waiting), queue_style(cx, slots.waiting));
        let peak = format!("peak {}, {} waiting", slots.peak, slots.peak_waiting);
        if pen.fits(columns(&peak) + 4) {
            pen.space(3).put(&peak, dim);
        }
        nth += 1;
    }
    let mut pen = Pen::new(buf, line(area, nth), cx.glyphs);
    nth += 1;
    let heads = [
        Column::left("pool", name + 1),
        Column::left("slots", most + FIGURES),
        Column::left("queue", 7),
        Column::left("refused", 9),
        Column::rest("waited"),
    ];
    list::heads(cx, pen.space(3), &heads);
    for (at, here) in view.tool_list(data, below(area, nth)).rows() {
        let Some(tool) = tools.get(at) else { break };
        let selected = view.tool_at(data) == Some(at) && view.tool_is_selected();
        row_style(cx, here, selected, buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        one_tool(cx, &mut pen, (tool, world.progress.is_live()), name, most, selected);
    }
}

fn queue_style(cx: &DrawContext, queued: u32) -> ratatui::style::Style {
    cx.theme.style(if queued > 0 { StyleRole::Retry } else { StyleRole::Dim })
}

fn one_tool(
    cx: &DrawContext,
    pen: &mut Pen,
    (tool, is_live): (&ToolRow, bool),
    name: u16,
    most: u16,
    selected: bool,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let (glyph, role) = match (tool.in_flight > 0, is_live) {
        (true, true) => (Glyph::Running, StyleRole::Running),
        (true, false) => (Glyph::Off, StyleRole::Off),
        (false, _) => (Glyph::Waiting, StyleRole::Waiting),
    };
    list::mark_or_blank(cx, pen, selected);
    pen.glyph(glyph, cx.theme.style(role)).space(1);
    pen.name(tool.name().as_str(), name, cx.theme.style(StyleRole::Text)).space(1);
    let Some(bulkhead) = tool.head.limits.bulkhead else {
        let in_flight = in_flight_text(tool, is_live);
        let limit = if tool.head.is_observed() { "" } else { "; no bulkhead" };
        let text = format!("{in_flight}, peak {}{limit}", tool.peak);
        pen.put(&text, dim);
        return;
    };
    slots_bar(cx, pen, tool.in_flight, bulkhead.max_in_flight, most);
    pen.cell(&tool.queued.to_string(), 7, queue_style(cx, tool.queued));
    let refused = tool.tally.bulkhead_full;
    let role = match refused {
        0 => StyleRole::Dim,
        _ if is_full(tool) => StyleRole::Refused,
        _ => StyleRole::Text,
    };
    pen.cell(&format::count(refused), 9, cx.theme.style(role));
    let waited = time::duration_text(Duration::from_millis(tool.tally.waited_ms));
    pen.put(&waited, if tool.tally.waited_ms > 0 { cx.theme.style(StyleRole::Text) } else { dim });
}

/// Draws used and free slots, with their figures.
fn slots_bar(cx: &DrawContext, pen: &mut Pen, used: u32, all: u32, most: u16) {
    let start = pen.x();
    let cells = all.min(u32::from(most));
    // Drawn to scale: the bar is empty only at 0 and full only at all.
    let full = match (used, all) {
        (0, _) | (_, 0) => 0,
        (used, all) if used >= all => cells,
        (used, all) if all <= cells => used,
        (used, all) => (u64::from(used) * u64::from(cells) / u64::from(all))
            .clamp(1, u64::from(cells.saturating_sub(1)).max(1)) as u32,
    };
    let style = cx.theme.budget(used.into(), all.into());
    pen.glyphs(Glyph::SlotFull, full as u16, style);
    pen.glyphs(Glyph::SlotEmpty, (cells - full) as u16, cx.theme.style(StyleRole::BarEmpty));
    pen.advance_to(start + most + 1);
    pen.put(&format!("{used}/{all}"), cx.theme.style(StyleRole::Text))
        .advance_to(start + most + FIGURES);
}
