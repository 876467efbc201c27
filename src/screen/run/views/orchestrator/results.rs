//! Pane 3 of an orchestrator: the level after the join, the sections that no task has as its
//! result, and the result of each task as `key: value`.

use std::ops::Range;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::OrchestratorView;
use super::task::task_sign;
use super::waterfall::WaterfallRow;
use crate::log::world::World;
use crate::log::world::orchestrator::{Orchestrator, TaskRow, TaskState};
use crate::screen::layout::line;
use crate::screen::list::window_start;
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, list};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::orchestrator::{level_part, one_line, task_result};
use crate::words::readable::fields;
use crate::words::styled::StyleRole;

/// Maximum rows of one result; the inspector shows all of it.
const MAX_ROWS: usize = 4;

/// Blank columns between two fields of a result.
pub(crate) const GAP: u16 = 3;

/// Maximum width of a result's name: columns of a task's id and its section.
const NAME: u16 = 16;

/// Columns before the name: a mark or a state, and a blank.
pub(crate) const LEAD: u16 = 3;

/// Columns of a name in a pane of this width.
fn name_width(width: u16) -> u16 {
    NAME.min(width / 3)
}

/// Columns that the fields of a result have in a pane of this width.
pub(super) fn fields_width(width: u16) -> u16 {
    width.saturating_sub(LEAD + name_width(width) + 2)
}

/// One of the results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResultEntry<'a> {
    /// The level that the results add up to, and the name of that field.
    Level(&'a str, &'a Value),
    /// A section of the aggregate that is not the result of a task.
    Section(&'a str, &'a Value),
    /// A task, with its index in the plan and the section that its result is.
    Task(usize, &'a TaskRow, Option<&'a str>),
}

/// A field of a result in words: its name, which may be empty, and its value.
pub(crate) type ResultField<'a> = (&'a str, String);

/// The results of a run in their order: the level, the sections of no task, and the tasks.
pub(crate) struct RunResults<'a> {
    orchestrator: Option<&'a Orchestrator>,
    /// The level and the sections.
    head: Vec<ResultEntry<'a>>,
}

impl<'a> RunResults<'a> {
    /// The results of the shown world.
    pub fn of(run: &'a RunData) -> Self {
        let orchestrator = run.shown().orchestrator();
        Self { orchestrator, head: orchestrator.map(head).unwrap_or_default() }
    }

    fn tasks(&self) -> &'a [Arc<TaskRow>] {
        self.orchestrator.map_or(&[], |it| &it.tasks)
    }

    /// Number of the results.
    pub fn len(&self) -> usize {
        self.head.len() + self.tasks().len()
    }

    /// The place of a task's result, by the task's index in the plan.
    pub fn place_of(&self, task: usize) -> usize {
        self.head.len() + task
    }

    pub fn get(&self, place: usize) -> Option<ResultEntry<'a>> {
        let Some(task) = place.checked_sub(self.head.len()) else {
            return self.head.get(place).cloned();
        };
        let orchestrator = self.orchestrator?;
        let row = orchestrator.tasks.get(task)?;
        let section = orchestrator.section_tasks.iter().position(|it| *it == Some(task));
        let section = section.and_then(|at| orchestrator.plan.sections.get(at));
        Some(ResultEntry::Task(task, row, section.map(String::as_str)))
    }
}

fn head(orchestrator: &Orchestrator) -> Vec<ResultEntry<'_>> {
    let (plan, mut head) = (&*orchestrator.plan, Vec::new());
    if let Some(aggregate) = &orchestrator.aggregate {
        let value = |name: &str| aggregate.get(name).unwrap_or(&Value::Null);
        head.push(ResultEntry::Level(&plan.level, value(&plan.level)));
        let sections = plan.sections.iter().zip(&orchestrator.section_tasks);
        let own = sections.filter(|(_, task)| task.is_none());
        head.extend(own.map(|(name, _)| ResultEntry::Section(name, value(name))));
    }
    head
}

/// The fields of a result that are shown; empty if there are none.
fn result_fields<'a>(entry: &ResultEntry<'a>) -> Vec<ResultField<'a>> {
    match entry {
        ResultEntry::Level(_, value) => vec![("", one_line(value))],
        ResultEntry::Section(_, value) => fields(value),
        ResultEntry::Task(_, row, _) => match (row.state, row.result.as_deref()) {
            (TaskState::Done, Some(result)) => fields(result),
            _ => Some(("", task_result(row)))
                .filter(|(_, text)| !text.is_empty())
                .into_iter()
                .collect(),
        },
    }
}

/// A row of the pane: the place of its result, the result, and which fields of it are on the row.
pub(crate) type ResultRow<'a> = (usize, ResultEntry<'a>, Range<usize>);

/// The rows of a pane of this size.
///
/// Each result has a row, and the remaining rows go to the results that need more, in turns. If there
/// are fewer rows than results, the rows are a window that contains the result `shown`.
pub(super) fn result_rows<'a>(
    results: &RunResults<'a>,
    shown: usize,
    width: u16,
    rows: usize,
) -> Vec<ResultRow<'a>> {
    let count = results.len();
    if count > rows {
        let top = window_start(shown, count, rows);
        let window = top..count.min(top + rows);
        return window.filter_map(|at| Some((at, results.get(at)?, 0..usize::MAX))).collect();
    }
    let entries: Vec<_> = (0..count).filter_map(|at| results.get(at)).collect();
    let fields: Vec<_> = entries.iter().map(result_fields).collect();
    let width = usize::from(width);
    let needs: Vec<_> = fields.iter().map(|it| wrapped(it, width, MAX_ROWS).len()).collect();
    let parts = entries.iter().zip(&fields).zip(shares(&needs, rows)).enumerate();
    let each = parts.flat_map(|(at, ((entry, fields), most))| {
        let rows = wrapped(fields, width, most);
        rows.into_iter().map(move |fields| (at, entry.clone(), fields))
    });
    each.collect()
}

/// The rows of each result: one, and then one more in turns as long as it needs more and some are left.
fn shares(needs: &[usize], rows: usize) -> Vec<usize> {
    let mut shares = vec![1; needs.len()];
    let mut left = rows.saturating_sub(needs.len());
    for turn in 2..=MAX_ROWS {
        for (share, need) in shares.iter_mut().zip(needs) {
            if *need >= turn && left > 0 {
                (*share, left) = (turn, left - 1);
            }
        }
    }
    shares
}

/// Breaks fields into at most `most` rows; the last row has all remaining fields.
fn wrapped(fields: &[ResultField<'_>], width: usize, most: usize) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    let (mut start, mut taken) = (0, 0);
    for (at, (name, text)) in fields.iter().enumerate() {
        let colon = if name.is_empty() { 0 } else { 2 };
        let columns = name.width() + colon + text.width();
        let next = taken + usize::from(GAP) + columns;
        if at > start && next > width && rows.len() + 1 < most {
            rows.push(start..at);
            (start, taken) = (at, columns);
        } else {
            taken = if at == start { columns } else { next };
        }
    }
    rows.push(start..fields.len());
    rows
}

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
            Some(_) => "No results: the plan was refused. 2 shows why.",
            None if world.progress.is_live() => {
                "No results yet: the plan comes first, then each task has one."
            }
            None => "No results: no task was planned.",
        };
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(text, dim);
        return;
    }
    let rows = usize::from(area.height);
    let shown = result_rows(&results, view.shown_result(data), fields_width(area.width), rows);
    for (nth, (at, entry, fields)) in shown.iter().enumerate() {
        let is_first = nth == 0 || shown[nth - 1].0 != *at;
        let row = Rect { width: area.width.saturating_sub(1), ..line(area, nth as u16) };
        let mut pen = draw_level(view, data, cx, row, entry, is_first, buf);
        put_fields(cx, world, &mut pen, entry, fields.clone());
    }
    if count > rows && rows > 0 && area.width > 20 {
        let first = shown.first().map_or(0, |(at, ..)| *at);
        let text = format!(" {}", list::range(first, rows, count));
        let width = text.len() as u16;
        let at = line(area, area.height - 1);
        let at = Rect { x: at.right() - width, width, ..at };
        Pen::new(buf, at, cx.glyphs).put(&text, dim);
    }
}

/// Draws the state and the name of a result, on the first of its rows.
fn draw_level<'a>(
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
            list::row_or_blank(cx, row, selected && is_first, buf)
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

/// Minimum columns of a value whose end is cut.
const MIN_VALUE: usize = 6;

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
        // A name without any of its value would look like an empty value.
        if !pen.fits(columns(name) + columns(text).min(MIN_VALUE) + 2) {
            pen.glyph(Glyph::Ellipsis, style(StyleRole::Dim));
            return;
        }
        if !name.is_empty() {
            pen.put(name, style(StyleRole::Dim)).put(": ", style(StyleRole::Dim));
        }
        pen.put(text, style(role));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_spare_rows_in_turns() {
        let table: [(&[usize], usize, &[usize]); 5] = [
            (&[1, 2, 3], 3, &[1, 1, 1]),
            (&[1, 2, 3], 5, &[1, 2, 2]),
            (&[1, 2, 3], 9, &[1, 2, 3]),
            (&[4, 1, 4], 6, &[3, 1, 2]),
            (&[], 6, &[]),
        ];
        for (needs, rows, expected) in table {
            assert_eq!(shares(needs, rows), expected, "{needs:?} in {rows}");
        }
    }

    #[test]
    fn wraps_between_fields_last_takes_rest() {
        let field = |name: &'static str, text: &str| (name, text.to_owned());
        let fields = [field("aa", "111"), field("bb", "2"), field("", "ccccc"), field("d", "4")];
        assert_eq!(wrapped(&fields, 80, MAX_ROWS).len(), 1);
        assert_eq!(wrapped(&fields, 15, MAX_ROWS), [0..2, 2..4], "7 + 3 + 5 and 5 + 3 + 4 columns");
        assert_eq!(wrapped(&fields, 14, MAX_ROWS), [0..1, 1..3, 3..4]);
        assert_eq!(wrapped(&fields, 1, MAX_ROWS), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(wrapped(&[], 9, MAX_ROWS).len(), 1, "an empty result has a row too");
        let many: Vec<_> = (0..9).map(|_| field("", "x")).collect();
        assert_eq!(wrapped(&many, 1, MAX_ROWS), [0..1, 1..2, 2..3, 3..9], "four rows at most");
        assert_eq!(wrapped(&fields, 14, 2), [0..1, 1..4]);
    }
}
