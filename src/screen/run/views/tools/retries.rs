//! Pane 4 of the tools: the amplification (requests per call, the point of the cascading failures
//! source document), the alerts, and the latest calls that were retried; next to the figures of the
//! latest run of the same scenario under the other policy.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::summary::alert_text;
use super::{ToolsView, retried_calls};
use crate::base::name::ToolName;
use crate::base::time;
use crate::log::event::{EventKind, RunId};
use crate::log::world::{Projection, SpanKind};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::speech;
use crate::screen::text::Pen;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::sentence::purpose_name;
use crate::words::styled::StyleRole;

/// Width of a call's caller, and of its tool or model.
const WHO: u16 = 11;

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
            None => ("  guards on".to_owned(), dim),
            Some(most) => {
                (format!("  no guards: up to {most} attempts"), theme.style(StyleRole::Retry))
            }
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
            0 if world.progress.is_live() => {
                "No retries yet: a call that is retried is listed here."
            }
            0 => "No retries: no call was retried.",
            _ => "No retries among the latest calls.",
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
        speech::put_attempts(data, cx, &mut pen, call, "");
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
    let how = if other.guarded { "guards on" } else { "no guards" };
    let (tool, factor) = &other.amplification;
    let role = if *factor > 1.0 { StyleRole::Retry } else { StyleRole::Text };
    let mut pen = Pen::new(buf, row, cx.glyphs);
    pen.space(1).put(&format!("{} ({how}): ", other.run), dim);
    pen.put(&format!("{tool} {}", format::requests_a_call(*factor)), theme.style(role));
    for (tool, p95) in &other.p95 {
        pen.put(&format!("  p95 {tool} "), dim).put(&time::duration_text(*p95), plain);
    }
}

/// The figures of a run that another run is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunComparison {
    /// The run with these figures.
    pub run: RunId,
    /// Whether its calls go through the tools' policies.
    pub guarded: bool,
    /// The tool whose requests per call are furthest from 1, and that factor.
    pub amplification: (ToolName, f64),
    /// 95th percentile of the latency of the other tools of the plan, in the order of its steps.
    pub p95: Vec<(ToolName, Duration)>,
}

/// The figures of a run; `None` where it has no calls of tools to compare.
pub(crate) fn comparison_of(run: &RunData) -> Option<RunComparison> {
    let world = run.world();
    let load = world.projection()?.tool_load()?;
    let rows = || load.steps.iter().filter_map(|step| world.tools.get(step.as_str()));
    let factors = rows().filter_map(|row| Some((row, row.tally.amplification()?)));
    // A factor of 0.5 is as far from one request per call as a factor of 2.
    let far = |factor: f64| factor.max(f64::MIN_POSITIVE).ln().abs();
    let (row, factor) = factors.max_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b)))?;
    let p95 = rows().filter_map(|row| Some((row.name().clone(), row.latencies.percentile(95)?)));
    Some(RunComparison {
        run: run.id().clone(),
        guarded: load.naive_attempts.is_none(),
        amplification: (row.name().clone(), factor),
        p95: p95.filter(|(name, _)| name != row.name()).collect(),
    })
}
