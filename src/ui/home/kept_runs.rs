//! The kept runs in pane 2 of the first screen, and the filter and sort in the pane's title.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::AppState;
use crate::app::history::RunSort;
use crate::event::run_row::RunRow;
use crate::event::{BoundaryId, RunId};
use crate::narrate::glyph::Glyph;
use crate::narrate::kept::{age, run_result, run_state};
use crate::narrate::style_role::StyleRole;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::run::events::filter_text;
use crate::ui::table::{self, Column};
use crate::ui::text::{Pen, on_border};

/// The column widths of the kept runs; a column of no width is left out.
pub(super) struct KeptColumns {
    /// The head of the ids: runs of a cluster are not kept here.
    head: &'static str,
    ids: u16,
    scenario: u16,
    title: u16,
    tokens: u16,
    cost: u16,
}

const WORD: u16 = 12;
const AGE: u16 = 8;
const TIME: u16 = 7;
/// Columns after the figures.
const GAP: u16 = 2;

impl KeptColumns {
    /// The widths in a row of this width, with so many columns for ids.
    pub(super) fn of(width: u16, ids: u16, has_cluster: bool) -> Self {
        let (scenario, tokens, cost, result) = match width {
            150.. => (24, 9, 9, 34),
            116.. => (0, 9, 9, 24),
            _ => (0, 0, 0, 13),
        };
        let fixed = 3 + WORD + ids + AGE + TIME + GAP;
        let taken = fixed + scenario + tokens + cost + result;
        let head = if has_cluster { "run" } else { "kept" };
        Self { head, ids, scenario, title: width.saturating_sub(taken).max(8), tokens, cost }
    }

    /// Draws the heads of the columns.
    pub(super) fn heads(&self, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
        let heads = [
            Column::left("status", WORD),
            Column::left(self.head, self.ids),
            Column::left("age", AGE),
            Column::left("scenario", self.scenario),
            Column::left("title", self.title),
            Column::right("tokens", self.tokens),
            Column::right("cost", self.cost),
            Column::right("time", TIME),
            Column::left("", GAP),
            Column::rest("result"),
        ];
        table::heads(cx, Pen::new(buf, row, cx.glyphs).space(3), &heads);
    }

    /// Draws a row after the mark of its selection.
    pub(super) fn row(
        &self,
        row: &RunRow,
        (age_ms, depth): (u64, u16),
        cx: &DrawContext,
        mut pen: Pen,
    ) {
        let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
        let sign = cx.theme.badge(run_state(&row.status));
        pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, sign.style);
        pen.space(WORD.saturating_sub(u16::try_from(sign.word.len()).unwrap_or(WORD)));
        pen.cell(row.id.as_str(), self.ids - 1, plain).space(1).cell(&age(age_ms), AGE, dim);
        if self.scenario > 0 {
            pen.name(&row.scenario, self.scenario - 2, dim).space(2);
        }
        let at = row.forked_at.as_deref().map(BoundaryId::new);
        match (&row.parent, at) {
            (Some(parent), Some(at)) => {
                let parent = (depth == 0).then_some(parent);
                let start = pen.x();
                pen.space(depth.saturating_sub(1) * 2);
                fork(parent, &at, &row.title, start + self.title, cx, &mut pen);
            }
            _ => {
                pen.name(&row.title, self.title - 2, plain).space(2);
            }
        }
        if self.tokens > 0 {
            let tokens = if row.tokens > 0 { format::count(row.tokens) } else { String::new() };
            pen.right_aligned(&tokens, self.tokens, plain);
        }
        if self.cost > 0 {
            let cost = row.cost_usd.filter(|cost| *cost > 0.0).map(format::usd);
            pen.right_aligned(&cost.unwrap_or_default(), self.cost, plain);
        }
        let time = format::duration_text(Duration::from_millis(row.elapsed_ms));
        pen.right_aligned(&time, TIME, plain).space(GAP);
        if row.pinned {
            pen.put("pinned ", cx.theme.style(StyleRole::Notice));
        }
        let result = run_result(&row.status, row.result.as_deref());
        let left = pen.left();
        pen.put_within(&result, left, plain);
    }
}

/// Draws where a run was forked, and its title up to the column `end`; `parent` is the other run if it
/// is not above.
pub(super) fn fork(
    parent: Option<&RunId>,
    at: &BoundaryId,
    title: &str,
    end: u16,
    cx: &DrawContext,
    pen: &mut Pen,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let place = match parent {
        Some(parent) => format!("{parent}, {}", at.display_name()),
        None => at.display_name(),
    };
    pen.glyph(Glyph::Within, dim).space(1);
    let room = end.saturating_sub(pen.x() + 2);
    pen.put_within(&place, room, dim).space(2);
    let room = end.saturating_sub(pen.x() + 2);
    if room > 3 {
        pen.name(title, room, plain);
    }
    pen.advance_to(end);
}

/// Draws the sort and the filter into the upper border of the pane, after its title.
pub(super) fn title(state: &AppState, cx: &DrawContext, area: Rect, taken: u16, buf: &mut Buffer) {
    let start = area.x.saturating_add(taken);
    let row =
        Rect { x: start, y: area.y, width: area.right().saturating_sub(start + 2), height: 1 };
    let mut pen = Pen::new(buf, row.intersection(area), cx.glyphs);
    let dim = on_border(cx.theme.style(StyleRole::Dim));
    let sort = state.history.sort();
    if sort != RunSort::Newest {
        let text = format!("{} by {} ", cx.glyphs.symbol(Glyph::Dot), sort.word());
        pen.put(&text, dim);
    }
    let Some(filter) = state.history.filter.status() else { return };
    if pen.left() < 14 {
        return;
    }
    match state.history.said_runs_left() {
        None => pen.put("  filter: ", dim),
        Some(0) => pen.put("  searching: ", dim),
        Some(left) => {
            pen.put(&format!("  searching, {} left: ", format::count_noun(left, "run")), dim)
        }
    };
    let room = pen.left().saturating_sub(1);
    filter_text(cx, &mut pen, filter, room, " words, said:WORD, status:failed, scenario:NAME");
    pen.put(" ", dim);
}
