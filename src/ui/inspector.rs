//! The inspector: one event or one call in full, in tabs, with a summary on the left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::border::Borders;
use super::cx::DrawContext;
use super::document::draw_line;
use super::format;
use super::text::{Pen, columns, elide_middle, on_border};
use super::theme::StyleRole;
use crate::app::layout::{padded, tabs};
use crate::app::run::layout::inspector as areas;
use crate::app::run::{InspectTarget, Inspector, RunPage, Tab};
use crate::event::kind::Purpose;
use crate::event::world::SpanKind;
use crate::narrate::attribution::tool_of_purpose;
use crate::narrate::patterns::words;

/// Fewest columns of a heading after the tabs.
const LEAST_HEADING: usize = 8;

/// Draws the inspector into a run's page.
pub fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let Some(inspector) = page.inspector() else { return };
    let parts = areas(area);
    let mut borders = Borders::new(area);
    if let Some(beside) = parts.summary {
        borders.frame(beside, StyleRole::Border);
    }
    borders.frame(parts.frame, StyleRole::BorderFocus);
    borders.paint(cx, buf);
    if let Some(beside) = parts.summary {
        draw_summary(page, cx, inspector, beside, buf);
    }
    strip(cx, parts.tabs, inspector, buf);
    if parts.summary.is_none() {
        heading_after_tabs(page, cx, parts.tabs, inspector, buf);
    }
    body(cx, inspector, parts.text, buf);
    foot(cx, inspector, parts.frame, parts.text, buf);
}

/// Draws the summary of what is inspected, and the keys.
fn draw_summary(
    page: &RunPage,
    cx: &DrawContext,
    inspector: &Inspector,
    frame: Rect,
    buf: &mut Buffer,
) {
    let title = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let text = format!(" {} ", heading(page, inspector.target));
    Pen::new(buf, title, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Title)));
    let area = padded(frame);
    let mut row = 0;
    for line in &inspector.summary.lines {
        row = draw_line(cx, area, row, 0, line, buf);
    }
    let keys = [
        ("c", "jump to the cause"),
        (", .", "previous, next event"),
        ("y Y", "copy, as Markdown"),
        ("o", "raw JSON in $PAGER"),
    ];
    if row + keys.len() as u16 + 1 > area.height {
        return;
    }
    for (nth, (key, what)) in keys.into_iter().enumerate() {
        let at = area.bottom() - (keys.len() - nth) as u16;
        let line = Rect { y: at, height: 1, ..area };
        let mut pen = Pen::new(buf, line, cx.glyphs);
        pen.cell(key, 5, cx.theme.style(StyleRole::Key)).put(what, cx.theme.style(StyleRole::Dim));
    }
}

/// A short name of what is inspected.
fn heading(page: &RunPage, target: InspectTarget) -> String {
    match target {
        InspectTarget::Event(seq) => {
            format!(
                "Event {} of {}",
                format::exact(seq.0 + 1),
                format::exact(page.log().len() as u64)
            )
        }
        InspectTarget::Call(call) => match page.world().spans.get(call).map(|span| &span.kind) {
            Some(SpanKind::Call(Purpose::Contribution { round, role, .. })) => {
                format!("{role}, round {round}")
            }
            Some(SpanKind::Call(Purpose::Finalize)) => {
                words(page.world()).map_or("launch brief", |words| words.terms().answer).to_owned()
            }
            Some(SpanKind::Call(purpose)) => {
                let who = purpose.label();
                match tool_of_purpose(purpose, page.world()).filter(|tool| *tool != "llm") {
                    Some(tool) => format!("{who}, {tool}"),
                    None => who.into_owned(),
                }
            }
            _ => format!("span {}", call.0),
        },
    }
}

fn strip(cx: &DrawContext, row: Rect, inspector: &Inspector, buf: &mut Buffer) {
    let asks = inspector.callee;
    for (nth, (tab, place)) in Tab::ALL.into_iter().zip(tabs(row, Tab::names(asks))).enumerate() {
        let role = if tab == inspector.tab { StyleRole::Button } else { StyleRole::Dim };
        let text = format!(" {} {} ", nth + 1, tab.name(asks));
        Pen::new(buf, place, cx.glyphs).put(&text, on_border(cx.theme.style(role)));
    }
}

/// Draws the name of what is inspected at the end of the row of tabs, where there is no summary.
fn heading_after_tabs(
    page: &RunPage,
    cx: &DrawContext,
    row: Rect,
    inspector: &Inspector,
    buf: &mut Buffer,
) {
    let names = tabs(row, Tab::names(inspector.callee));
    let start = names.iter().map(|place| place.right()).max().unwrap_or(row.x);
    let room = usize::from(row.right().saturating_sub(start + 4));
    let text = format!(" {} ", elide_middle(&heading(page, inspector.target), room, cx.glyphs));
    let width = columns(&text) as u16;
    if room >= LEAST_HEADING {
        let at = Rect { x: row.right() - width - 1, width, height: 1, ..row };
        Pen::new(buf, at, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Title)));
    }
}

fn body(cx: &DrawContext, inspector: &Inspector, area: Rect, buf: &mut Buffer) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let top = inspector.top(area.width, area.height);
    let mut row = 0;
    for (nth, line) in inspector.document.lines.iter().enumerate().skip(top.line) {
        if row >= area.height {
            break;
        }
        let skip = if nth == top.line { top.row } else { 0 };
        row = draw_line(cx, area, row, skip, line, buf);
    }
    if inspector.document.lines.is_empty() {
        Pen::new(buf, area, cx.glyphs).put("Nothing here.", cx.theme.style(StyleRole::Dim));
    }
}

/// Draws the scroll position into the lower border.
fn foot(cx: &DrawContext, inspector: &Inspector, frame: Rect, area: Rect, buf: &mut Buffer) {
    let lines = inspector.document.lines.len();
    let top = inspector.top(area.width, area.height);
    if frame.height < 2 || lines == 0 {
        return;
    }
    let text = format!(" line {} of {lines} ", top.line + 1);
    let width = columns(&text) as u16;
    if width + 4 > frame.width {
        return;
    }
    let at = Rect { x: frame.right() - width - 2, y: frame.bottom() - 1, width, height: 1 };
    Pen::new(buf, at, cx.glyphs).put(&text, on_border(cx.theme.style(StyleRole::Dim)));
}
