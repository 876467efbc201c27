//! Pane 3 of an orchestrator: the level after the join, and the result of each task as `key: value`.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::task_sign;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::event::world::World;
use crate::panes::orchestrator::results::{
    GAP, LEAD, ResultEntry, ResultField, RunResults, fields_width, name_width, result_fields,
    result_rows,
};
use crate::panes::orchestrator::view::OrchestratorView;
use crate::panes::orchestrator::waterfall::WaterfallRow;
use crate::pattern::orchestrator::projection::TaskState;
use crate::pattern::orchestrator::words::results::level_part;
use crate::ui::cx::DrawContext;
use crate::ui::table;
use crate::ui::text::Pen;
use crate::ui::theme::StyleRole;

/// Draws the pane.
pub(crate) fn render(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let dim = cx.theme.style(StyleRole::Dim);
    let results = RunResults::of(data);
    let count = results.len();
    if count == 0 {
        let text = match world.orchestrator().and_then(|it| it.refused.as_ref()) {
            Some(_) => "The plan was refused, so there are no tasks. 2 shows why.",
            None if world.progress.is_live() => "No results yet: the plan comes first.",
            None => "No task was planned.",
        };
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(text, dim);
        return;
    }
    let rows = usize::from(area.height);
    let shown = result_rows(&results, view.shown_result(data), fields_width(area.width), rows);
    for (nth, (at, entry, fields)) in shown.iter().enumerate() {
        let is_first = nth == 0 || shown[nth - 1].0 != *at;
        let row = Rect { width: area.width.saturating_sub(1), ..line(area, nth as u16) };
        let mut pen = head(view, data, cx, row, entry, is_first, buf);
        put_fields(cx, world, &mut pen, entry, fields.clone());
    }
    if count > rows && rows > 0 && area.width > 20 {
        let first = shown.first().map_or(0, |(at, ..)| *at);
        let text = format!(" {}", table::range(first, rows, count));
        let width = text.len() as u16;
        let at = line(area, area.height - 1);
        let at = Rect { x: at.right() - width, width, ..at };
        Pen::new(buf, at, cx.glyphs).put(&text, dim);
    }
}

/// Draws the state and the name of a result, on the first of its rows.
fn head<'a>(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    row: Rect,
    entry: &ResultEntry<'_>,
    is_first: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let name = name_width(row.width + 1);
    let mut pen = match entry {
        ResultEntry::Task(task, ..) => {
            let selected = view.waterfall_row() == Some(WaterfallRow::Task(*task));
            table::row_or_blank(cx, row, selected && is_first, buf)
        }
        _ => Pen::new(buf, row, cx.glyphs),
    };
    match entry {
        _ if !is_first => {}
        ResultEntry::Level(text, _) | ResultEntry::Section(text, _) => {
            pen.advance_to(row.x + LEAD).name(text, name, dim);
        }
        ResultEntry::Task(_, task, section) => {
            let sign = task_sign(cx, data.shown(), task);
            pen.glyph(sign.glyph, sign.style).space(1);
            let (id, end) = (task.task.id.as_str(), pen.x() + name);
            match section.filter(|section| *section != id) {
                Some(section) => {
                    pen.put_within(id, name / 2, plain).space(1);
                    let left = end.saturating_sub(pen.x());
                    pen.name(section, left, dim);
                }
                None => drop(pen.name(id, name, plain)),
            }
        }
    }
    pen.advance_to(row.x + LEAD + name + 1);
    pen
}

/// Draws some fields of a result: names dim, values plain or in the colour of the result.
fn put_fields(
    cx: &DrawContext,
    world: &World,
    pen: &mut Pen,
    entry: &ResultEntry<'_>,
    shown: Range<usize>,
) {
    let style = |role| cx.theme.style(role);
    let fields = result_fields(entry);
    if fields.is_empty() {
        let word = match entry {
            ResultEntry::Task(_, row, _) if row.state != TaskState::Done => {
                task_sign(cx, world, row).word
            }
            _ => "nothing",
        };
        pen.put(word, style(StyleRole::Dim));
        return;
    }
    let role = match entry {
        ResultEntry::Level(_, level) => {
            pen.line(&level_part(level).into(), cx.theme);
            return;
        }
        ResultEntry::Task(_, row, _) if row.state == TaskState::Failed => StyleRole::Failed,
        ResultEntry::Task(_, row, _) if row.state == TaskState::Degraded => StyleRole::Retry,
        _ => StyleRole::Text,
    };
    let some: &[ResultField<'_>] = &fields[shown.start..shown.end.min(fields.len())];
    for (nth, (name, text)) in some.iter().enumerate() {
        if nth > 0 {
            pen.space(GAP);
        }
        if !name.is_empty() {
            pen.put(name, style(StyleRole::Dim)).put(": ", style(StyleRole::Dim));
        }
        pen.put(text, style(role));
    }
}
