//! Pane 4 of the tools: the amplification (requests per call), the alerts, and the latest calls
//! that were retried, with each attempt and wait.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::tool_summary::alert_text;
use crate::event::EventKind;
use crate::event::world::Projection;
use crate::event::world::SpanKind;
use crate::narrate::attribution::purpose_name;
use crate::narrate::glyph::Glyph;
use crate::panes::tools::comparison::RunComparison;
use crate::panes::tools::view::{ToolsView, retried_calls};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::run::attempts;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Width of a call's caller, and of its tool or model.
const WHO: u16 = 11;

/// Draws the pane.
pub(crate) fn render(
    view: &ToolsView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let theme = cx.theme;
    let (plain, dim) = (theme.style(StyleRole::Text), theme.style(StyleRole::Dim));
    let tools = || world.tools.rows().iter().filter(|tool| tool.name().as_str() != "llm");
    let asked: u64 = tools().map(|tool| tool.tally.calls).sum();
    let made: u64 = tools().map(|tool| tool.tally.requests()).sum();
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(1);
    match world.tools.amplification() {
        Some(factor) => {
            let role = if factor > 1.0 { StyleRole::Retry } else { StyleRole::Text };
            pen.put(&format::requests_a_call(factor), theme.style(role));
            pen.put(&format!("  {made} for {asked} calls"), plain);
        }
        None => {
            pen.put("no tool calls yet", dim);
        }
    }
    if let Some(load) = world.projection().and_then(Projection::tool_load) {
        let (text, style) = match load.naive_attempts {
            None => ("  guarded".to_owned(), dim),
            Some(most) => (format!("  naive: up to {most}"), theme.style(StyleRole::Retry)),
        };
        if pen.fits(columns(&text) + 1) {
            pen.put(&text, style);
        }
    }
    // Like the list below, of all calls: also those of models.
    let retries = world.tally.retries;
    let clients: u64 = tools().map(|tool| tool.tally.client_retries).sum();
    let repeats: u64 = tools().map(|tool| tool.tally.repeats).sum();
    let mut pen = Pen::new(buf, line(area, 1), cx.glyphs);
    pen.space(1).put("retries ", dim);
    for (count, word) in [(retries, "by gateway"), (clients, "by clients"), (repeats, "by agents")]
    {
        let role = if count > 0 { StyleRole::Retry } else { StyleRole::Dim };
        pen.put(&format!("{} ", format::count(count)), theme.style(role)).put(word, dim).space(2);
    }
    let mut nth = 2;
    if let Some(other) = view.comparison() {
        comparison_row(other, cx, line(area, nth), buf);
        nth += 1;
    }
    for raised in world.alerts.active().take(usize::from(area.height.saturating_sub(nth)) / 2) {
        let style = theme.style(StyleRole::Failed);
        let mut pen = Pen::new(buf, line(area, nth), cx.glyphs);
        pen.space(1)
            .glyph(Glyph::Alert, style)
            .space(1)
            .put(&alert_text(raised, &world.progress), style);
        nth += 1;
    }
    let rows = usize::from(area.height.saturating_sub(nth));
    let calls = retried_calls(data, rows);
    if calls.is_empty() && rows > 0 {
        // Only the latest events are searched.
        let text = match retries {
            0 => "No call was retried.",
            _ => "None of the latest calls was retried.",
        };
        Pen::new(buf, line(area, nth), cx.glyphs).space(1).put(text, dim);
    }
    for call in calls {
        let mut pen = Pen::new(buf, line(area, nth), cx.glyphs);
        nth += 1;
        let started = data.opening_event(call).map(|event| &event.kind);
        let tool = match started {
            Some(EventKind::CallStarted(started)) => started.tool.as_str(),
            _ => "",
        };
        let purpose = match world.spans.get(call).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => Some(purpose),
            _ => None,
        };
        let who = purpose_name(purpose);
        // If the run uses several models, the model is shown instead of the tool.
        let asks_model = purpose.filter(|purpose| purpose.caller().is_some());
        let tool = asks_model.and_then(|purpose| world.models.for_purpose(purpose)).unwrap_or(tool);
        pen.space(1).name(&who, WHO, plain).space(1).name(tool, WHO, dim).space(1);
        attempts::put(data, cx, &mut pen, call, "");
        let over = world.spans.get(call).is_some_and(|span| span.closed.is_some());
        if let Some(EventKind::CallDegraded { by, .. }) =
            data.closing_event(call).map(|event| &event.kind).filter(|_| over)
        {
            let text = format!(" {} {}", cx.glyphs.symbol(Glyph::Alert), by.word());
            pen.put(&text, theme.style(StyleRole::Retry));
        }
    }
}

/// Draws the comparison with the other mode's run (guarded or naive) of the same scenario.
fn comparison_row(other: &RunComparison, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
    let theme = cx.theme;
    let (plain, dim) = (theme.style(StyleRole::Text), theme.style(StyleRole::Dim));
    let how = if other.guarded { "guarded" } else { "naive" };
    let (tool, factor) = &other.amplification;
    let role = if *factor > 1.0 { StyleRole::Retry } else { StyleRole::Text };
    let mut pen = Pen::new(buf, row, cx.glyphs);
    pen.space(1).put(&format!("vs. {how} {} ", other.run), dim);
    pen.put(&format!("{tool} {}", format::requests_a_call(*factor)), theme.style(role));
    for (tool, p95) in &other.p95 {
        pen.put(&format!("  p95 {tool} "), dim).put(&format::duration_text(*p95), plain);
    }
}
