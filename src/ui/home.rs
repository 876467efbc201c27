//! The first screen: scenarios, runs, and a preview of the selected row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::border::Borders;
use super::cx::DrawContext;
use super::format;
use super::frame::{self, Frame};
use super::table::Column;
use super::text::{Pen, columns, paint, wrap_within};
use super::theme::StyleRole;
use crate::app::home::{HomePane, HomeParts, tab_labels};
use crate::app::layout::inside;
use crate::app::run::RunPage;
use crate::app::run::progress::progress_of;
use crate::app::state::ScenarioEntry;
use crate::app::{AppState, preview};
use crate::event::Elapsed;
use crate::event::world::{Projection, RunState};
use crate::narrate::glyph::Glyph;
use crate::narrate::patterns::words;
use crate::narrate::preview::end_line;
use crate::narrate::styled::StyledLine;
use crate::ui::table;

/// Draws the first screen.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let home = &state.home;
    let parts = HomeParts::split(area, home.focus);
    if parts.tabs.is_some() {
        let labels = tab_labels(state.scenarios.len(), state.runs.len());
        for pane in HomePane::ALL {
            let role = if pane == home.focus { StyleRole::Selected } else { StyleRole::Dim };
            let style = cx.theme.style(role);
            let row = parts.tab(pane, &labels);
            Pen::new(buf, row, cx.glyphs).put(&labels[pane as usize], style);
        }
    }
    let shown = || HomePane::ALL.into_iter().filter(|pane| !parts.pane(*pane).is_empty());
    let mut borders = Borders::new(area);
    for pane in shown().filter(|pane| *pane != home.focus) {
        borders.frame(parts.pane(pane), StyleRole::Border);
    }
    // The style of the focused frame is laid over that of the lines which it shares.
    borders.paint(cx, buf);
    borders.frame(parts.pane(home.focus), StyleRole::BorderFocus);
    borders.paint(cx, buf);
    for pane in shown() {
        let title = match pane {
            HomePane::Preview => preview::title(state),
            pane => pane.title().to_owned(),
        };
        let foot = hidden(state, &parts, pane);
        let number = Some(pane.number());
        let frame = Frame { number, title: &title, foot: &foot, focused: pane == home.focus };
        frame::label(frame, cx, parts.pane(pane), buf);
        let inner = inside(parts.pane(pane));
        match pane {
            HomePane::Scenarios => {
                scenarios(state, cx, parts.rows(pane), buf);
                about(state, cx, parts.description_area(pane), buf);
            }
            HomePane::Runs => runs(state, cx, parts.rows(pane), buf),
            HomePane::Preview => draw_items(&preview::items(state).lines, state, cx, inner, buf),
        }
    }
}

/// The range of a list's rows that are in view; empty if all are.
fn hidden(state: &AppState, parts: &HomeParts, pane: HomePane) -> String {
    let (top, len) = match pane {
        HomePane::Scenarios => (state.home.scenarios_top, state.scenarios.len()),
        HomePane::Runs => (state.home.runs_top, state.runs.len()),
        HomePane::Preview => return String::new(),
    };
    let rows = usize::from(parts.rows(pane).height);
    if len > rows { table::range(top, rows, len) } else { String::new() }
}

/// The text of an empty pane: why it is empty, and the next key.
fn empty(cx: &DrawContext, area: Rect, buf: &mut Buffer, text: &str) {
    let width = usize::from(area.width.saturating_sub(2));
    let (rows, _) = wrap_within(text, width, area.height.into());
    for (row, y) in rows.iter().zip(area.y..) {
        let row_area = Rect { x: area.x + 1, y, height: 1, width: area.width.saturating_sub(1) };
        Pen::new(buf, row_area, cx.glyphs).put(row, cx.theme.style(StyleRole::Dim));
    }
}

/// A pen on a row of a list, with the selection mark drawn.
fn list_row<'a>(
    cx: &DrawContext,
    area: Rect,
    y: u16,
    selected: bool,
    focused: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    let row = Rect { y, height: 1, ..area };
    if selected && focused {
        paint(buf, row, cx.theme.style(StyleRole::Selected));
    }
    let mut pen = Pen::new(buf, row, cx.glyphs);
    if selected {
        let role = if focused { StyleRole::Key } else { StyleRole::Dim };
        pen.glyph(Glyph::Selected, cx.theme.style(role));
    } else {
        pen.space(1);
    }
    pen
}

fn scenarios(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if state.scenarios.is_empty() {
        let text = "No scenarios. Put a file into ./scenarios and press r, or name one on the \
                    command line.";
        return empty(cx, head_row(area).union(area), buf, text);
    }
    let longest = state.scenarios.iter().map(|entry| columns(entry.name.as_str())).max();
    let name = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).clamp(8, 28) + 2;
    let pattern = if area.width >= 64 { 15 } else { 0 };
    let title = if area.width >= 104 { 34 } else { area.width };
    let heads = [
        Column::left("scenario", name),
        Column::left("pattern", pattern),
        Column::left("title", title),
        Column::rest("about"),
    ];
    table::heads(cx, Pen::new(buf, head_row(area), cx.glyphs).space(3), &heads);

    let focused = state.home.focus == HomePane::Scenarios;
    let shown = state.scenarios.iter().skip(state.home.scenarios_top);
    for (entry, y) in shown.zip(area.top()..area.bottom()) {
        let selected = state.home.scenario.as_ref() == Some(&entry.path);
        let pen = list_row(cx, area, y, selected, focused, buf);
        scenario_row(entry, cx, pen, [name, pattern, title]);
    }
}

/// The row of column heads above a list's rows.
fn head_row(rows: Rect) -> Rect {
    Rect { y: rows.y.saturating_sub(1), height: 1, ..rows }
}

/// The description of the selected scenario, below the list.
fn about(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some(entry) = state.home.selected_scenario(&state.scenarios) else { return };
    if area.height < 3 {
        return;
    }
    let line = Rect { height: 1, ..area };
    Pen::new(buf, line, cx.glyphs).glyphs(
        Glyph::Horizontal,
        area.width,
        cx.theme.style(StyleRole::Border),
    );
    let (text, role) = match &entry.loaded {
        Ok(scenario) => (scenario.about.clone(), StyleRole::Dim),
        Err(_) => {
            let text =
                format!("{}: details in 3 Preview.", entry.error_summary().unwrap_or_default());
            (text, StyleRole::Failed)
        }
    };
    let (rows, _) = wrap_within(&text, usize::from(area.width.saturating_sub(2)).max(1), 2);
    for (row, y) in rows.iter().zip(area.y + 1..area.bottom()) {
        let line = Rect { x: area.x + 1, y, height: 1, width: area.width.saturating_sub(1) };
        Pen::new(buf, line, cx.glyphs).put(row, cx.theme.style(role));
    }
}

fn scenario_row(
    entry: &ScenarioEntry,
    cx: &DrawContext,
    mut pen: Pen,
    [name, pattern, title]: [u16; 3],
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    match &entry.loaded {
        Ok(scenario) => {
            if scenario.run_warnings(false).next().is_none() {
                pen.space(2);
            } else {
                pen.glyph(Glyph::Alert, cx.theme.style(StyleRole::Retry)).space(1);
            }
            pen.name(entry.name.as_str(), name - 2, plain).space(2);
            if pattern > 0 {
                pen.cell(scenario.pattern.get().name(), pattern, dim);
            }
            let width = title.saturating_sub(2).min(pen.left());
            pen.cell(&scenario.title, width, plain).space(2).put(&scenario.about, dim);
        }
        Err(_) => {
            let bad = cx.theme.style(StyleRole::Failed);
            pen.glyph(Glyph::Failed, bad).space(1);
            pen.name(entry.name.as_str(), name - 2, bad).space(2);
            pen.put(&entry.error_summary().unwrap_or_default(), bad);
        }
    }
}

/// The column widths of the list of runs.
struct RunColumns {
    pattern: u16,
    title: u16,
    spark: u16,
}

const WORD: u16 = 10;
const ID: u16 = 7;
const ROUND: u16 = 7;
const CLOCK: u16 = 8;
/// Columns after the activity.
const GAP: u16 = 2;

impl RunColumns {
    /// The widths for titles of at most `longest` columns. In a narrow list a complete title is
    /// more important than the activity.
    fn of(width: u16, longest: u16) -> Self {
        let (pattern, spark, result) = match width {
            150.. => (14, 32, 30),
            116.. => (14, 16, 24),
            _ => (0, 8, 17),
        };
        let room = width.saturating_sub(3 + WORD + ID + ROUND + CLOCK + pattern + result);
        let beside = room.saturating_sub(spark + GAP);
        if beside < longest.saturating_add(2).min(room) && width < 116 {
            return Self { pattern, title: room.max(8), spark: 0 };
        }
        Self { pattern, title: beside.max(8), spark }
    }
}

fn runs(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    if state.runs.is_empty() {
        let text = "No runs yet. Press Enter on a scenario to start one, or n for the launch form.";
        return empty(cx, head_row(area).union(area), buf, text);
    }
    let longest = state.runs.iter().filter_map(|page| page.world().head.as_ref());
    let longest = longest.map(|head| columns(&head.title)).max().unwrap_or(0);
    let columns = RunColumns::of(area.width, u16::try_from(longest).unwrap_or(u16::MAX));
    let rounds = |page: &RunPage| words(page.world()).is_some_and(|it| it.terms().has_rounds);
    let far = if state.runs.iter().all(rounds) { "round" } else { "steps" };
    let heads = [
        Column::left("status", WORD),
        Column::left("run", ID),
        Column::left("pattern", columns.pattern),
        Column::left("title", columns.title),
        Column::left(far, ROUND),
        Column::left("activity", if columns.spark > 0 { columns.spark + GAP } else { 0 }),
        Column::left("clock", CLOCK),
        Column::rest("result"),
    ];
    table::heads(cx, Pen::new(buf, head_row(area), cx.glyphs).space(3), &heads);

    let focused = state.home.focus == HomePane::Runs;
    let shown = state.runs.iter().skip(state.home.runs_top);
    for (page, y) in shown.zip(area.top()..area.bottom()) {
        let selected = state.home.run.as_ref() == Some(page.id());
        let pen = list_row(cx, area, y, selected, focused, buf);
        run_row(page, state.elapsed(page), cx, pen, &columns);
    }
}

fn run_row(page: &RunPage, now: Elapsed, cx: &DrawContext, mut pen: Pen, columns: &RunColumns) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let world = page.world();
    let sign = cx.theme.run(world);
    pen.glyph(sign.glyph, sign.style).space(1).cell(sign.word, WORD, sign.style);
    pen.cell(page.id().as_str(), ID, plain);
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
        None => {
            pen.name(title, columns.title - 2, plain).space(2);
        }
    }
    pen.cell(&progress_of(world).short, ROUND, plain);
    // The activity of a run that is not running ends at its last event.
    let end = match world.progress.stage {
        RunState::Running | RunState::Pausing { .. } => now,
        RunState::Empty | RunState::Paused { .. } | RunState::Closed => world.progress.at,
    };
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
    let line = match (words(world), &world.progress.closed) {
        (Some(words), _) => words.result(world),
        (None, Some(closed)) => end_line(closed),
        (None, None) => return,
    };
    pen.line(&line, cx.theme);
}

/// Columns of the preview's labels.
const LABEL: u16 = 11;

fn draw_items(
    items: &[StyledLine],
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let width = area.width.saturating_sub(LABEL + 2);
    let mut y = area.y;
    let top = state.home.preview_top.min(items.len().saturating_sub(1));
    for (at, item) in items.iter().enumerate().skip(top) {
        let left = area.bottom().saturating_sub(y);
        if left == 0 {
            break;
        }
        let (glyph, style) = (item.glyph(), cx.theme.style(item.role()));
        let (x, width) = match item.label {
            None => (area.x + 1, area.width.saturating_sub(2)),
            Some(_) => (area.x + 1 + LABEL, width),
        };
        let indent = if glyph.is_some() { 2 } else { 0 };
        let columns = usize::from(width.saturating_sub(indent)).max(1);
        let (rows, cut) = wrap_within(&item.text(), columns, left.into());
        let label = Rect { x: area.x + 1, y, width: LABEL, height: 1 }.intersection(area);
        Pen::new(buf, label, cx.glyphs).cell(
            item.label.as_deref().unwrap_or_default(),
            LABEL - 1,
            cx.theme.style(StyleRole::Dim),
        );
        for (at, row) in rows.iter().enumerate() {
            let line = Rect { x, y: y + at as u16, width, height: 1 }.intersection(area);
            let mut pen = Pen::new(buf, line, cx.glyphs);
            match glyph.filter(|_| at == 0) {
                Some(glyph) => pen.glyph(glyph, style).space(1),
                None => pen.space(indent),
            };
            pen.put(row, style);
        }
        y = y.saturating_add(u16::try_from(rows.len().max(1)).unwrap_or(u16::MAX));
        if cut || (y >= area.bottom() && at + 1 < items.len()) {
            let more = Rect {
                x: area.right().saturating_sub(2),
                y: area.bottom() - 1,
                width: 1,
                height: 1,
            };
            Pen::new(buf, more.intersection(area), cx.glyphs)
                .glyph(Glyph::Down, cx.theme.style(StyleRole::Key));
        }
    }
}
