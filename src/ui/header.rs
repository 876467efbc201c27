//! The two header rows: what is shown, then the run's progress.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, columns};
use super::theme::StyleRole;
use super::{format, run};
use crate::app::AppState;
use crate::event::kind::{ModelLabel, RunStarted};
use crate::narrate::glyph::Glyph;

/// Draws both rows.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let first = Rect { height: area.height.min(1), ..area };
    let second = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    match state.visible_run() {
        Some(page) => {
            run::header::first_row(page, cx, first, buf);
            run::header::second_row(page, cx, second, buf);
        }
        None => home(state, cx, first, second, buf),
    }
}

fn brand(cx: &DrawContext, pen: &mut Pen) {
    pen.space(1).put("roundtable ", cx.theme.style(StyleRole::Strong));
    pen.glyph(Glyph::Vertical, cx.theme.style(StyleRole::Border)).space(1);
}

fn home(state: &AppState, cx: &DrawContext, first: Rect, second: Rect, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, first, cx.glyphs);
    brand(cx, &mut pen);
    pen.put("home", cx.theme.style(StyleRole::Text));
    let live = state.live_runs().count();
    let text = match state.runs.len() {
        0 if state.history.rows().is_empty() => "no runs yet".to_owned(),
        0 => {
            let noun = if state.history.summary.has_cluster { "run" } else { "kept run" };
            format::count_noun(state.history.rows().len() as u64, noun)
        }
        runs => format!("{}, {live} live", format::count_noun(runs as u64, "run")),
    };
    let taken = u16::try_from(columns(&text)).unwrap_or(u16::MAX);
    let room = pen.left().saturating_sub(1);
    pen.space(room.saturating_sub(taken).max(2));
    let role = if live > 0 { StyleRole::Running } else { StyleRole::Dim };
    pen.put(&text, cx.theme.style(role));

    let mut pen = Pen::new(buf, second, cx.glyphs);
    pen.space(1);
    let broken = state.scenarios.iter().filter(|entry| entry.loaded.is_err()).count();
    pen.put(&format::count_noun(state.scenarios.len() as u64, "scenario"), dim);
    if broken > 0 {
        pen.put(", ", dim).put(&format!("{broken} broken"), cx.theme.style(StyleRole::Failed));
    }
    let tally = state.runs.iter().map(|page| page.world().tally);
    let (calls, tokens, estimated) = tally.fold((0, 0, 0), |(calls, tokens, estimated), tally| {
        let usage = tally.usage;
        let own = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        (calls + tally.calls, u64::saturating_add(tokens, own), estimated + tally.estimated)
    });
    if calls > 0 {
        let text =
            format!("   {}, {} tok", format::count_noun(calls, "call"), format::count(tokens));
        pen.put(&text, dim);
    }
    if let Some(cost) = cost(state) {
        pen.put(&format!(", {}", format::estimate(cost, cx.glyphs)), dim);
    }
    if estimated > 0 {
        pen.put(&format!(" ({} estimated)", replies(estimated)), dim);
    }
    if !state.dropped_runs.is_empty() {
        let facts = state.dropped_runs.iter().map(|(_, facts)| facts).sum();
        let runs = format::count_noun(state.dropped_runs.len() as u64, "finished run");
        let text =
            format!("   {} of {runs} dropped to bound memory", format::count_noun(facts, "event"));
        pen.put(&text, cx.theme.style(StyleRole::Notice));
    }
}

/// Estimated cost of all live runs together, in US dollars; `None` if the cost of one of them is
/// unknown.
fn cost(state: &AppState) -> Option<f64> {
    let is_live = |head: &RunStarted| matches!(head.model, ModelLabel::Live { .. });
    let worlds = state.runs.iter().map(|page| page.world());
    let live = worlds.filter(|world| world.head.as_deref().is_some_and(is_live));
    let cost: f64 = live.map(|world| world.cost_usd()).sum::<Option<f64>>()?;
    (cost > 0.0).then_some(cost)
}

fn replies(number: u64) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}
