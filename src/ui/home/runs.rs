//! Pane 2 of the first screen: the runs of this session, then the kept ones.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::ops::Range;

use super::kept_runs::{KeptColumns, fork};
use crate::app::AppState;
use crate::app::history::ListedRun;
use crate::app::home::HomePane;
use crate::app::run::RunPage;
use crate::app::run::progress::progress_of;
use crate::event::Elapsed;
use crate::event::world::{Projection, RunState};
use crate::narrate::glyph::Glyph;
use crate::narrate::patterns::words;
use crate::narrate::preview::end_line;
use crate::narrate::styled::StyledPart;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::empty;
use crate::ui::table::{self, Column};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

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
pub(super) fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let list = state.listed();
    if list.is_empty() && state.history.filter.is_on() {
        let text = match (state.history.said_runs_left(), state.history.said_problem()) {
            (Some(_), _) => "Searching what was said.",
            (None, Some(problem)) => problem,
            (None, None) => "No run passes the filter. Esc removes it.",
        };
        return empty(cx, table::head_row(area).union(area), text, buf);
    }
    if list.is_empty() {
        let (open, new) = (key_of(Action::Open), key_of(Action::NewRun));
        let text = format!(
            "No runs yet. Press {open} on a scenario to start one, or {new} for the launch form."
        );
        return empty(cx, table::head_row(area).union(area), &text, buf);
    }
    let longest = state.runs.iter().filter_map(|page| page.world().head.as_ref());
    let longest = longest.map(|head| columns(&head.title)).max().unwrap_or(0);
    let summary = state.history.summary;
    let of_pages = state.runs.iter().map(|page| page.id().as_str().len()).max().unwrap_or(0);
    let ids = (summary.longest_id.max(of_pages) + 1).clamp(IDS.start, IDS.end) as u16;
    let columns = RunColumns::of(area.width, u16::try_from(longest).unwrap_or(u16::MAX), ids);
    let rounds = |page: &RunPage| words(page.world()).is_some_and(|it| it.terms().has_rounds);
    let far = if state.runs.iter().all(rounds) { "round" } else { "steps" };
    let heads = [
        Column::left("status", WORD),
        Column::left("run", ids),
        Column::left("pattern", columns.pattern),
        Column::left("title", columns.title),
        Column::left(far, ROUND),
        Column::left("activity", if columns.spark > 0 { columns.spark + GAP } else { 0 }),
        Column::left("clock", CLOCK),
        Column::rest("result"),
    ];
    let kept = KeptColumns::of(area.width, ids, summary.has_cluster);
    let (top, between) = (state.home.runs_top, list.heads_line());
    // Above kept runs alone are their heads.
    let only_kept = !matches!(list.get(0), Some(ListedRun::Session(_)));
    if only_kept || between.is_some_and(|line| top > line) {
        kept.heads(cx, table::head_row(area), buf);
    } else {
        table::heads(cx, Pen::new(buf, table::head_row(area), cx.glyphs).space(3), &heads);
    }

    let focused = state.home.focus == HomePane::Runs;
    for (line, y) in (top..list.lines()).zip(area.top()..area.bottom()) {
        let Some(run) = list.on_line(line) else {
            kept.heads(cx, Rect { y, height: 1, ..area }, buf);
            continue;
        };
        let selected = state.home.run.as_ref() == Some(run.id());
        let pen = table::pane_row(cx, area, y, selected, focused, buf);
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
    pen.glyph(sign.glyph, sign.style).space(1).cell(sign.word, WORD, sign.style);
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
    result(page, cx, &mut pen);
}

/// The result of a run, or how far it is.
fn result(page: &RunPage, cx: &DrawContext, pen: &mut Pen) {
    let world = page.world();
    let mut line = match (words(world), &world.progress.closed) {
        (Some(words), _) => words.result(world),
        (None, Some(closed)) => end_line(world, closed),
        (None, None) => return,
    };
    if !world.progress.answer_end.is_whole() {
        line = line.with(StyledPart::new(StyleRole::Retry, ", cut"));
    }
    pen.line(&line, cx.theme);
}
