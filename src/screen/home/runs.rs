//! Pane 2 of the first screen: the runs of this session, then the kept ones.

use std::ops::Range;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::HomePane;
use super::history::{HistorySummary, ListedRun, RunHeading, RunSort};
use crate::base::time;
use crate::log::event::{BoundaryId, Elapsed, RunId};
use crate::log::world::run_row::RunRow;
use crate::log::world::{Projection, RunState};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::list::Column;
use crate::screen::run::events::filter_text;
use crate::screen::run::{RunPage, progress_of};
use crate::screen::text::{Pen, on_border};
use crate::screen::widgets::{empty, heading};
use crate::screen::{AppState, DrawContext, list};
use crate::words::badges::{WAITS, age_text, run_result, run_state};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::{end_line, words_of};
use crate::words::question::{shortened_waits, waits_for, waits_text};
use crate::words::styled::{StyleRole, StyledPart};

/// The column widths of the list of runs.
struct RunColumns {
    ids: u16,
    pattern: u16,
    title: u16,
    spark: u16,
}

const WORD: u16 = 10;
/// Columns of an id with the gap after it: of a run of this program, and of one of a cluster.
const IDS: Range<usize> = 7..11;
const ROUND: u16 = 7;
const CLOCK: u16 = 8;
/// Columns after the activity.
const GAP: u16 = 2;

impl RunColumns {
    /// The widths for titles of at most `longest` columns. In a narrow list a complete title is
    /// more important than the activity.
    fn of(width: u16, longest: u16, ids: u16) -> Self {
        let (pattern, spark, result) = match width {
            150.. => (14, 32, 30),
            116.. => (14, 16, 24),
            _ => (0, 8, 17),
        };
        let room = width.saturating_sub(3 + WORD + ids + ROUND + CLOCK + pattern + result);
        let beside = room.saturating_sub(spark + GAP);
        if beside < longest.saturating_add(2).min(room) && width < 116 {
            return Self { ids, pattern, title: room.max(8), spark: 0 };
        }
        Self { ids, pattern, title: beside.max(8), spark }
    }
}

/// Draws the rows in view and the heads above them.
pub(crate) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let list = state.listed();
    if list.is_empty() && state.history.filter.is_on() {
        let text = match (state.history.said_runs_left(), state.history.said_problem()) {
            (Some(_), _) => "Searching what was said.",
            (None, Some(problem)) => problem,
            (None, None) => "No run matches the filter. Esc removes it.",
        };
        return empty(cx, list::head_row(area).union(area), text, buf);
    }
    if list.is_empty() {
        let (open, new) = (key_of(Action::Open), key_of(Action::NewRun));
        let text = format!(
            "No runs yet: {open} on a scenario starts one, {new} opens the launch form. Kept runs are listed here too."
        );
        return empty(cx, list::head_row(area).union(area), &text, buf);
    }
    let longest = state.runs.iter().filter_map(|page| page.world().head.as_ref());
    let longest = longest.map(|head| columns(&head.title)).max().unwrap_or(0);
    let summary = state.history.summary;
    let of_pages = state.runs.iter().map(|page| page.id().as_str().len()).max().unwrap_or(0);
    let ids = (summary.longest_id.max(of_pages) + 1).clamp(IDS.start, IDS.end) as u16;
    let columns = RunColumns::of(area.width, u16::try_from(longest).unwrap_or(u16::MAX), ids);
    let rounds = |page: &RunPage| words_of(page.world()).is_some_and(|it| it.terms().has_rounds);
    let far = if state.runs.iter().all(rounds) { "round" } else { "steps" };
    let heads = [
        Column::left("status", WORD),
        Column::left("run", ids),
        Column::left("pattern", columns.pattern),
        Column::left("title", columns.title),
        Column::left(far, ROUND),
        Column::left("activity", if columns.spark > 0 { columns.spark + GAP } else { 0 }),
        Column::left("time", CLOCK),
        Column::rest("result"),
    ];
    let kept = KeptColumns::of(area.width, ids, &summary);
    let (top, between) = (state.home.runs_top, list.heads_line());
    // Above kept runs alone are their heads.
    let only_kept = !matches!(list.get(0), Some(ListedRun::Session(_)));
    if only_kept || between.is_some_and(|line| top > line) {
        kept.heads(cx, list::head_row(area), buf);
    } else {
        list::heads(cx, Pen::new(buf, list::head_row(area), cx.glyphs).space(3), &heads);
    }

    let focused = state.home.focus == HomePane::Runs;
    for (line, y) in (top..list.lines()).zip(area.top()..area.bottom()) {
        let Some(run) = list.on_line(line) else {
            let row = Rect { y, height: 1, ..area };
            match list.heading_on_line(line) {
                Some(RunHeading::Waiting) => heading(cx, row, "Waiting for you", buf),
                Some(RunHeading::Others) => heading(cx, row, "Other runs", buf),
                Some(RunHeading::Kept) | None => kept.heads(cx, row, buf),
            }
            continue;
        };
        let selected = state.home.run.as_ref() == Some(run.id());
        let pen = list::pane_row(cx, area, y, selected, focused, buf);
        match run {
            ListedRun::Session(page) => run_row(page, state.elapsed(page), cx, pen, &columns),
            ListedRun::Kept(row) => {
                let place = (
                    state.history.age_ms(row, state.now),
                    list.depth(list.place_on_line(line).unwrap_or_default()),
                );
                kept.row(row, place, cx, pen);
            }
        }
        // The run that is marked to be compared; if it is selected, its background says so too.
        if state.to_compare.marked.as_ref() == Some(run.id()) {
            let mark = Rect { x: area.x, y, width: area.width.min(1), height: 1 };
            Pen::new(buf, mark, cx.glyphs)
                .glyph(Glyph::SlotFull, cx.theme.style(StyleRole::Notice));
        }
    }
}

fn run_row(page: &RunPage, now: Elapsed, cx: &DrawContext, mut pen: Pen, columns: &RunColumns) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let world = page.world();
    let sign = cx.theme.run(world);
    pen.glyph(sign.glyph, sign.style).space(1).cell(sign.word, WORD - 1, sign.style).space(1);
    pen.cell(page.id().as_str(), columns.ids - 1, plain).space(1);
    let head = world.head.as_ref();
    if columns.pattern > 0 {
        pen.cell(head.map_or("", |head| head.plan.name()), columns.pattern, dim);
    }
    let title = head.map_or("", |head| head.title.as_str());
    // A follow-up message is shown in place of the title, which is on the session's first row.
    match world.projection().and_then(Projection::session).filter(|session| session.message > 1) {
        Some(session) => {
            let text = session.text.replace(['\n', '\r', '\t'], " ");
            let text = format!("message {}: {text}", session.message);
            let start = pen.x();
            pen.glyph(Glyph::Within, dim).space(1);
            pen.cell(&text, columns.title - 4, plain).advance_to(start + columns.title);
        }
        None => match head.and_then(|head| head.launch.as_ref()?.forked.as_ref()) {
            Some(forked) => {
                let end = pen.x() + columns.title;
                fork(Some(&forked.parent), &forked.at, title, end, cx, &mut pen);
            }
            None => {
                pen.name(title, columns.title - 2, plain).space(2);
            }
        },
    }
    pen.cell(&progress_of(world).short, ROUND, plain);
    // The activity of a run that is not running ends at its last event.
    let end = match world.progress.stage {
        RunState::Running | RunState::Pausing { .. } => now,
        RunState::Empty | RunState::Paused { .. } | RunState::Closed => world.progress.at,
    };
    let end = Elapsed::from_duration(world.progress.run_time(end));
    let counts = world.over_time.activity.columns(end, columns.spark.into());
    let most = counts.iter().copied().max().unwrap_or(0);
    let spark = cx.theme.style(StyleRole::Spark);
    for count in counts {
        pen.put(cx.glyphs.spark(count, most), spark);
    }
    if columns.spark > 0 {
        pen.space(GAP);
    }
    pen.cell(&format::clock(world.progress.active(now)), CLOCK, plain);
    result(page, now, cx, &mut pen);
}

fn result(page: &RunPage, now: Elapsed, cx: &DrawContext, pen: &mut Pen) {
    let world = page.world();
    if page.waits_for_person()
        && let Some(waits) = waits_for(world, now)
    {
        let left = pen.left();
        // The status of the run says the rest.
        pen.put_within(shortened_waits(&waits, left), left, cx.theme.waiting_style());
        return;
    }
    let mut line = match (words_of(world), &world.progress.closed) {
        (Some(words), _) => words.result(world),
        (None, Some(closed)) => end_line(world, closed),
        (None, None) => return,
    };
    if !world.progress.answer_end.is_whole() {
        line = line.with(StyledPart::new(StyleRole::Retry, ", cut"));
    }
    pen.line(&line, cx.theme);
}

/// The column widths of the kept runs; a column of no width is left out.
pub(crate) struct KeptColumns {
    /// The head of the ids: runs of a cluster are not kept here.
    head: &'static str,
    ids: u16,
    scenario: u16,
    title: u16,
    tokens: u16,
    cost: u16,
}

const KEPT_WORD: u16 = 12;
const AGE: u16 = 8;
const TIME: u16 = 7;
/// Columns after the figures.
const KEPT_GAP: u16 = 2;

impl KeptColumns {
    /// The widths in a row of this width, with so many columns for ids.
    pub(crate) fn of(width: u16, ids: u16, summary: &HistorySummary) -> Self {
        let (scenario, tokens, cost, result) = match width {
            150.. => (24, 9, 9, 34),
            116.. => (0, 9, 9, 24),
            _ => (0, 0, 0, 13),
        };
        // A column without a figure gives its place to the title.
        let cost = if summary.has_cost { cost } else { 0 };
        let fixed = 3 + KEPT_WORD + ids + AGE + TIME + KEPT_GAP;
        let taken = fixed + scenario + tokens + cost + result;
        let head = if summary.has_cluster { "run" } else { "kept" };
        Self { head, ids, scenario, title: width.saturating_sub(taken).max(8), tokens, cost }
    }

    pub(crate) fn heads(&self, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
        let heads = [
            Column::left("status", KEPT_WORD),
            Column::left(self.head, self.ids),
            Column::left("age", AGE),
            Column::left("scenario", self.scenario),
            Column::left("title", self.title),
            Column::right("tokens", self.tokens),
            Column::right("cost", self.cost),
            Column::right("time", TIME),
            Column::left("", KEPT_GAP),
            Column::rest("result"),
        ];
        list::heads(cx, Pen::new(buf, row, cx.glyphs).space(3), &heads);
    }

    /// Draws a row after the mark of its selection.
    pub(crate) fn row(
        &self,
        row: &RunRow,
        (age_ms, depth): (u64, u16),
        cx: &DrawContext,
        mut pen: Pen,
    ) {
        let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
        let sign = cx.theme.badge(run_state(&row.status));
        pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, sign.style);
        pen.space(KEPT_WORD.saturating_sub(u16::try_from(sign.word.len()).unwrap_or(KEPT_WORD)));
        pen.cell(row.id.as_str(), self.ids - 1, plain).space(1).cell(&age_text(age_ms), AGE, dim);
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
        let time = time::duration_text(Duration::from_millis(row.elapsed_ms));
        pen.right_aligned(&time, TIME, plain).space(KEPT_GAP);
        if row.pinned {
            pen.put("pinned ", cx.theme.style(StyleRole::Notice));
        }
        match waits_text(row.waits_for.iter()) {
            Some(waits) => {
                let style = cx.theme.waiting_style();
                pen.glyph(WAITS.glyph, style).space(1);
                let left = pen.left();
                pen.put_within(shortened_waits(&waits, left), left, style);
            }
            None => {
                let result = run_result(&row.status, row.result.as_deref());
                let left = pen.left();
                pen.put_within(&result, left, plain);
            }
        }
    }
}

/// Draws where a run was forked, and its title up to the column `end`; `parent` is the other run if it
/// is not above.
pub(crate) fn fork(
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
pub(crate) fn title(state: &AppState, cx: &DrawContext, area: Rect, taken: u16, buf: &mut Buffer) {
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
