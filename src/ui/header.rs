//! The two header rows: what is shown, then the run's progress.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, columns};
use super::theme::StyleRole;
use super::{format, run};
use crate::app::AppState;
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
    let text = match state.runs.len() + state.removed_count() {
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
    let totals = state.totals();
    if totals.calls > 0 {
        let calls = format::count_noun(totals.calls, "call");
        pen.put(&format!("   {calls}, {} tok", format::count(totals.tokens)), dim);
    }
    if let Some(cost) = totals.cost_usd() {
        pen.put(&format!(", {}", format::estimate(cost, cx.glyphs)), dim);
    }
    if totals.estimated > 0 {
        pen.put(&format!(" ({} estimated)", replies(totals.estimated)), dim);
    }
    if !state.dropped_runs.is_empty() {
        let facts = state.dropped_runs.iter().map(|(_, facts)| facts).sum();
        let runs = format::count_noun(state.dropped_runs.len() as u64, "finished run");
        let text =
            format!("   {} of {runs} dropped to bound memory", format::count_noun(facts, "event"));
        pen.put(&text, cx.theme.style(StyleRole::Notice));
    }
}

fn replies(number: u64) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}
