//! Two runs side by side: their figures, the places where they differ, and the selected one in full.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{ComparisonView, DifferenceLine, MARK_COLS, SIDE_COLS};
use crate::base::time;
use crate::log::world::run_row::RunStatus;
use crate::screen::frame::{Borders, Frame};
use crate::screen::layout::{Size, inside, line};
use crate::screen::text::{Pen, clear};
use crate::screen::widgets::{empty, scroll_arrows};
use crate::screen::{DrawContext, frame, list};
use crate::words::badges::run_state;
use crate::words::comparison::runs::ComparedRun;
use crate::words::comparison::{ComparisonRow, DifferentEvent, EventDifference};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::{Badge, StyleRole};

/// Maximum characters of a text in a row of the list.
const MAX_ROW_CHARS: usize = 400;

/// Columns from which the list has the texts of both runs.
const TEXTS_COLS: u16 = 116;

/// Draws the comparison over the whole screen but the status and key rows.
pub fn render(view: &ComparisonView, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let parts = view.parts(size);
    let area = [parts.note, parts.runs, parts.list, parts.detail];
    let area = area.into_iter().fold(parts.title, Rect::union).intersection(buf.area);
    clear(buf, area);
    titles(view, cx, parts.title, parts.note, buf);
    let mut borders = Borders::new(area);
    borders.frame(parts.runs, StyleRole::Border);
    let (other, focused) = match view.full {
        true => (Rect::default(), parts.detail),
        false => (parts.detail, parts.list),
    };
    borders.frame(other, StyleRole::Border);
    borders.paint(cx, buf);
    borders.frame(focused, StyleRole::BorderFocus);
    borders.paint(cx, buf);
    frame::label(Frame { title: "Runs", ..Frame::default() }, cx, parts.runs, buf);
    figures(view, cx, inside(parts.runs), buf);
    let (list, rows) = (inside(parts.list), view.compared.rows.len());
    let title = Frame { title: "Differences", focused: true, ..Frame::default() };
    frame::label(title, cx, parts.list, buf);
    draw_list(view, cx, list, buf);
    let column = parts.list.right().saturating_sub(1);
    let below = view.top + usize::from(list.height) < rows;
    if !list.is_empty() {
        scroll_arrows(cx, column, list, [view.top > 0, below], buf);
    }
    let title = selected_title(view);
    let title = Frame { title: &title, focused: view.full, ..Frame::default() };
    frame::label(title, cx, parts.detail, buf);
    let detail = parts.detail_rows();
    draw_lines(view, cx, detail, buf);
    let below = view.lines_top + usize::from(detail.height) < view.lines.len();
    let column = parts.detail.right().saturating_sub(1);
    scroll_arrows(cx, column, detail, [view.lines_top > 0, below], buf);
}

/// The two rows above the frames: which runs, how much differs, and what to know about them.
fn titles(view: &ComparisonView, cx: &DrawContext, title: Rect, note: Rect, buf: &mut Buffer) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let [left, right] = &view.compared.runs;
    let mut pen = Pen::new(buf, title, cx.glyphs);
    pen.space(1).put("roundtable ", cx.theme.style(StyleRole::Strong));
    pen.glyph(Glyph::Vertical, cx.theme.style(StyleRole::Border)).space(1);
    pen.put("compare ", plain).put(&left.run, cx.theme.style(StyleRole::Strong));
    pen.put(" with ", plain).put(&right.run, cx.theme.style(StyleRole::Strong));
    let (text, role) = amount(view);
    let taken = u16::try_from(columns(&text)).unwrap_or(u16::MAX);
    let free = pen.left().saturating_sub(1).saturating_sub(taken);
    pen.space(free.max(2)).put(&text, cx.theme.style(role));
    let mut pen = Pen::new(buf, note, cx.glyphs);
    pen.space(1);
    let live: Vec<&str> = [left, right]
        .into_iter()
        .zip(view.statuses())
        .filter(|(_, status)| *status == RunStatus::Running)
        .map(|(run, _)| run.run.as_str())
        .collect();
    match live[..] {
        [] => pen.put("The numbers, ids and times of events are not compared.", dim),
        [one] => {
            let text = format!("{one} is still running: compared as far as it is.");
            pen.put(&text, cx.theme.style(StyleRole::Notice))
        }
        _ => pen.put(
            "Both are still running: compared as far as they are.",
            cx.theme.style(StyleRole::Notice),
        ),
    };
}

/// The number of differences and of equal events, as a text.
fn amount(view: &ComparisonView) -> (String, StyleRole) {
    let found = &view.compared.comparison;
    let equal = format::count_noun(found.equal as u64, "equal event");
    match found.differences.len() {
        0 if found.setup.is_empty() => (format!("no difference, {equal}"), StyleRole::Done),
        0 => (format!("same events, {equal}"), StyleRole::Done),
        some => {
            let some = format::count_noun(some as u64, "difference");
            (format!("{some}, {equal}"), StyleRole::Changed)
        }
    }
}

/// Columns of the names of the figures.
const NAME: u16 = 10;
/// Columns of how much more the right run has.
const MORE: u16 = 12;

/// The figures of both runs in two columns, and how much more the right one has.
fn figures(view: &ComparisonView, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let each = area.width.saturating_sub(1 + NAME + MORE) / 2;
    let runs = &view.compared.runs;
    let place = |nth: u16, side: u16| {
        let row = line(area, nth);
        let x = row.x + 1 + NAME + side * each;
        Rect { x, width: each.saturating_sub(2), ..row }.intersection(row)
    };
    for ((run, status), side) in runs.iter().zip(view.statuses()).zip(0..) {
        let mut pen = Pen::new(buf, place(0, side), cx.glyphs);
        pen.put(&run.run, cx.theme.style(StyleRole::Strong)).space(2);
        pen.put(&format!("{}, {}", run.pattern, run.model), dim);
        put_result(run, &status, cx, Pen::new(buf, place(1, side), cx.glyphs));
        for ((_, text), nth) in run_figures(run, cx).into_iter().zip(2..) {
            Pen::new(buf, place(nth, side), cx.glyphs).put(&text, plain);
        }
    }
    let [left, right] = runs;
    let names = run_figures(left, cx).map(|(name, _)| name);
    for (name, nth) in ["", "result"].into_iter().chain(names).zip(0..) {
        Pen::new(buf, line(area, nth), cx.glyphs).space(1).put(name, dim);
    }
    let is_equal = left.result == right.result && left.stop_reason == right.stop_reason;
    let result = if is_equal { "=" } else { "differs" };
    let heads = ["difference", result].map(str::to_owned).into_iter();
    for (text, nth) in heads.chain(more(left, right)).zip(0..) {
        let row = line(area, nth);
        let at = Rect { x: row.right().saturating_sub(MORE), width: MORE.min(row.width), ..row };
        let role = match text.as_str() {
            _ if nth == 0 => StyleRole::Dim,
            "=" => StyleRole::Dim,
            _ => StyleRole::Changed,
        };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.right_aligned(&text, MORE.saturating_sub(1), cx.theme.style(role));
    }
}

/// The figures of a run below its result, each with its name.
fn run_figures(run: &ComparedRun, cx: &DrawContext) -> [(&'static str, String); 4] {
    let time = time::duration_text(Duration::from_millis(run.elapsed_ms));
    let cost = run
        .cost_usd
        .map_or_else(|| "-".to_owned(), |cost| crate::words::format::estimate(cost, cx.glyphs));
    let calls = format::count_noun(run.calls, "call");
    let requests = match run.amplification {
        Some(factor) => {
            let requests = format::count(run.requests);
            format!("{requests} for {calls}, {} a call", format::requests_each(factor))
        }
        None => "none".to_owned(),
    };
    [("time", time), ("tokens", format::count(run.tokens)), ("cost", cost), ("requests", requests)]
}

fn put_result(run: &ComparedRun, status: &RunStatus, cx: &DrawContext, mut pen: Pen) {
    let badge = match status {
        RunStatus::Running => Badge::new(Glyph::Running, "LIVE", StyleRole::Running),
        status => run_state(status),
    };
    let sign = cx.theme.badge(badge);
    pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, sign.style).space(2);
    pen.put(&run.result, cx.theme.style(StyleRole::Text));
}

/// How much more of each figure the right run has.
fn more(left: &ComparedRun, right: &ComparedRun) -> [String; 4] {
    let signed = |one: u64, other: u64, text: &dyn Fn(u64) -> String| match other.cmp(&one) {
        std::cmp::Ordering::Equal => "=".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", text(other - one)),
        std::cmp::Ordering::Less => format!("-{}", text(one - other)),
    };
    let time = |ms: u64| time::duration_text(Duration::from_millis(ms));
    let cost = match (left.cost_usd, right.cost_usd) {
        (Some(one), Some(other)) if (other - one).abs() < 5e-5 => "=".to_owned(),
        (Some(one), Some(other)) => {
            let sign = if other > one { "+" } else { "-" };
            format!("{sign}{}", format::usd((other - one).abs()))
        }
        _ => String::new(),
    };
    [
        signed(left.elapsed_ms, right.elapsed_ms, &time),
        signed(left.tokens, right.tokens, &format::count),
        cost,
        signed(left.requests, right.requests, &format::count),
    ]
}

/// The rows in view of the list of places.
fn draw_list(view: &ComparisonView, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let found = &view.compared.comparison;
    if found.is_same() {
        let text = "No differences: these runs differ only in ids and times.";
        return empty(cx, area, text, buf);
    }
    let dim = cx.theme.style(StyleRole::Dim);
    let rows = view.compared.rows.iter().enumerate().skip(view.top);
    for ((at, row), y) in rows.zip(area.top()..area.bottom()) {
        let row_area = Rect { y, height: 1, ..area };
        let mut pen = list::row(cx, row_area, at == view.selected && !view.full, buf);
        match row {
            ComparisonRow::Equal(count) => {
                let text = format!("{} equal", format::count_noun(*count as u64, "event"));
                pen.space(2).put(&text, dim);
            }
            ComparisonRow::Setup(at) => {
                if let Some(it) = found.setup.get(*at) {
                    let texts = [it.left.as_str(), it.right.as_str()];
                    let names = ["started with", it.what.as_str()];
                    put_row(cx, names, texts, cx.theme.style(StyleRole::Text), pen);
                }
            }
            ComparisonRow::Difference(at) => {
                if let Some(it) = found.differences.get(*at) {
                    let telling = it.is_telling();
                    let role = if telling { StyleRole::Text } else { StyleRole::Dim };
                    let texts = texts_of(it);
                    let what = what_differs(it);
                    let names = [it.place(), what];
                    let texts = [texts[0].as_str(), texts[1].as_str()];
                    put_row(cx, [&names[0], &names[1]], texts, cx.theme.style(role), pen);
                }
            }
        }
    }
}

/// What differs, in a few words.
fn what_differs(it: &EventDifference) -> String {
    let kind = it.kind_name();
    match (&it.left, &it.right, &it.fields[..]) {
        (Some(_), None, _) => format!("{kind}: left only"),
        (None, Some(_), _) => format!("{kind}: right only"),
        (_, _, []) => kind.to_owned(),
        (_, _, [one]) => format!("{kind}: {}", one.name),
        (_, _, [one, rest @ ..]) => format!("{kind}: {} and {} more", one.name, rest.len()),
    }
}

/// The texts of both sides, from shortly before the place where they part.
fn texts_of(it: &EventDifference) -> [String; 2] {
    // The columns before have the place and the kind.
    let line = |side: &Option<DifferentEvent>| {
        let line = side.as_ref().map(|side| side.line.as_str()).unwrap_or_default();
        let behind = line.split_once(it.kind_name()).map_or(line, |(_, behind)| behind);
        start_of(behind.trim())
    };
    match it.fields.first() {
        Some(field) => [start_of(&field.left), start_of(&field.right)],
        None => [line(&it.left), line(&it.right)],
    }
}

/// The start of a text: as much as a row may show.
fn start_of(text: &str) -> String {
    text.chars().take(MAX_ROW_CHARS).collect()
}

/// The text on one line, each white space as one blank.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Draws a row of the list: where, what, and the texts of both sides if there is room.
fn put_row(
    cx: &DrawContext,
    [place, what]: [&str; 2],
    texts: [&str; 2],
    style: Style,
    mut pen: Pen,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let width = pen.left();
    pen.space(1);
    if width < TEXTS_COLS {
        let at = (width * 2 / 5).saturating_sub(2);
        pen.name(place, at, style).space(2);
        let rest = pen.left();
        pen.put_within(what, rest, style);
        return;
    }
    let (at, kind) = (width / 5, width / 4);
    pen.name(place, at, style).space(2);
    pen.cell(what, kind, style).space(2);
    let each = (pen.left().saturating_sub(3)) / 2;
    for (nth, text) in texts.into_iter().enumerate() {
        if nth > 0 {
            pen.space(1).glyph(Glyph::Vertical, cx.theme.style(StyleRole::Border)).space(1);
        }
        match text.is_empty() {
            true => pen.cell(cx.glyphs.symbol(Glyph::Off), each, dim),
            false => pen.cell(&one_line(text), each, style),
        };
    }
}

fn selected_title(view: &ComparisonView) -> String {
    let found = &view.compared.comparison;
    match view.compared.rows.get(view.selected) {
        Some(ComparisonRow::Setup(_)) => "Started with".to_owned(),
        Some(ComparisonRow::Difference(at)) => match found.differences.get(*at) {
            Some(it) => {
                let kind = it.kind_name();
                let side = match (&it.left, &it.right) {
                    (Some(_), None) => " (left only)",
                    (None, Some(_)) => " (right only)",
                    _ => "",
                };
                let at = at + 1;
                format!("{at} of {}: {kind}{side}, {}", found.differences.len(), it.place())
            }
            None => String::new(),
        },
        Some(ComparisonRow::Equal(_)) | None => String::new(),
    }
}

/// The lines of the selected difference that are in view.
fn draw_lines(view: &ComparisonView, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let style = |role| cx.theme.style(role);
    let lines = view.lines.iter().skip(view.lines_top);
    for (shown, y) in lines.zip(area.top()..area.bottom()) {
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..area }, cx.glyphs);
        match shown {
            DifferenceLine::Name(name) => {
                pen.put(name, style(StyleRole::Title));
            }
            DifferenceLine::Same(text) => {
                pen.space(MARK_COLS).put(text, style(StyleRole::Dim));
            }
            DifferenceLine::Note(text) => {
                pen.space(MARK_COLS).put(text, style(StyleRole::Notice));
            }
            DifferenceLine::One { right, text, first } => {
                let name = match (first, right) {
                    (false, _) => "",
                    (true, false) => "left",
                    (true, true) => "right",
                };
                put_mark(cx, *first, &mut pen);
                pen.cell(name, SIDE_COLS, style(StyleRole::Dim));
                let room = pen.left();
                put_side(cx, text.as_deref(), room, &mut pen);
            }
            DifferenceLine::Beside { texts, first } => {
                let half = area.width / 2;
                for (nth, text) in texts.iter().enumerate() {
                    if nth > 0 {
                        pen.advance_to(area.x + half - 1);
                        pen.glyph(Glyph::Vertical, style(StyleRole::Border)).space(1);
                    }
                    put_mark(cx, *first, &mut pen);
                    let room = half.saturating_sub(MARK_COLS + 1);
                    put_side(cx, text.as_deref(), room, &mut pen);
                }
            }
        }
    }
}

fn put_mark(cx: &DrawContext, first: bool, pen: &mut Pen) {
    match first {
        true => pen.glyph(Glyph::Changed, cx.theme.style(StyleRole::Changed)).space(1),
        false => pen.space(MARK_COLS),
    };
}

fn put_side(cx: &DrawContext, text: Option<&str>, room: u16, pen: &mut Pen) {
    match text {
        Some(text) => pen.put_within(text, room, cx.theme.style(StyleRole::Text)),
        None => pen.glyph(Glyph::Off, cx.theme.style(StyleRole::Dim)),
    };
}
