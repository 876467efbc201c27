//! The inspector: one event or one call in full, in tabs, with a summary on the left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cx;
use super::format;
use super::glyph::Glyph;
use super::run::Tiles;
use super::text::{Pen, columns, on_line, wrap};
use super::theme::Role;
use crate::app::run::document::{Line, Look};
use crate::app::run::inspect::FIELD;
use crate::app::run::layout::{inspector as areas, padded, tabs};
use crate::app::run::whose::{purpose_name, tool_of};
use crate::app::run::{Inspector, RunPage, Tab, Target};
use crate::event::kind::Purpose;
use crate::event::world::SpanKind;

/// Draws the inspector into a run's page.
pub fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let Some(inspector) = page.inspector() else { return };
    let parts = areas(area);
    let mut tiles = Tiles::new(area);
    if let Some(beside) = parts.beside {
        tiles.frame(beside, Role::Border);
    }
    tiles.frame(parts.frame, Role::BorderFocus);
    tiles.paint(cx, buf);
    if let Some(beside) = parts.beside {
        aside(page, cx, inspector, beside, buf);
    }
    strip(cx, parts.tabs, inspector, buf);
    body(cx, inspector, parts.text, buf);
    foot(cx, inspector, parts.frame, parts.text, buf);
}

/// Draws the summary of what is inspected, and the keys.
fn aside(page: &RunPage, cx: &Cx, inspector: &Inspector, frame: Rect, buf: &mut Buffer) {
    let title = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let text = format!(" {} ", heading(page, inspector.target));
    Pen::new(buf, title, cx.glyphs).put(&text, on_line(cx.theme.style(Role::Title)));
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
        pen.cell(key, 5, cx.theme.style(Role::Key)).put(what, cx.theme.style(Role::Dim));
    }
}

/// A short name of what is inspected.
fn heading(page: &RunPage, target: Target) -> String {
    match target {
        Target::Fact(seq) => {
            format!(
                "Event {} of {}",
                format::exact(seq.0 + 1),
                format::exact(page.log().len() as u64)
            )
        }
        Target::Call(call) => match page.world().spans.get(call).map(|span| &span.what) {
            Some(SpanKind::Call(Purpose::Contribution { round, role, .. })) => {
                format!("{role}, round {round}")
            }
            Some(SpanKind::Call(Purpose::Finalize)) => {
                let plan = page.world().orchestrator().is_some();
                if plan { "report" } else { "launch brief" }.to_owned()
            }
            Some(SpanKind::Call(purpose)) => {
                let who = purpose_name(Some(purpose));
                match tool_of(purpose, page.world()).filter(|tool| *tool != "llm") {
                    Some(tool) => format!("{who}, {tool}"),
                    None => who.into_owned(),
                }
            }
            _ => format!("span {}", call.0),
        },
    }
}

fn strip(cx: &Cx, row: Rect, inspector: &Inspector, buf: &mut Buffer) {
    let asks = inspector.asks;
    for (nth, (tab, place)) in Tab::ALL.into_iter().zip(tabs(row, Tab::words(asks))).enumerate() {
        let role = if tab == inspector.tab { Role::Button } else { Role::Dim };
        let text = format!(" {} {} ", nth + 1, tab.word(asks));
        Pen::new(buf, place, cx.glyphs).put(&text, on_line(cx.theme.style(role)));
    }
}

fn body(cx: &Cx, inspector: &Inspector, area: Rect, buf: &mut Buffer) {
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
        Pen::new(buf, area, cx.glyphs).put("Nothing here.", cx.theme.style(Role::Dim));
    }
}

/// Draws the scroll position into the lower border.
fn foot(cx: &Cx, inspector: &Inspector, frame: Rect, area: Rect, buf: &mut Buffer) {
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
    Pen::new(buf, at, cx.glyphs).put(&text, on_line(cx.theme.style(Role::Dim)));
}

/// Draws a line from row `row` of the area on, without its first `skip` rows. Returns the next row.
pub(super) fn draw_line(
    cx: &Cx,
    area: Rect,
    row: u16,
    skip: usize,
    line: &Line,
    buf: &mut Buffer,
) -> u16 {
    let theme = cx.theme;
    let style = theme.style(match line.look {
        Look::Text | Look::Field => Role::Text,
        Look::Head => Role::Strong,
        Look::Dim => Role::Dim,
        Look::Done => Role::Done,
        Look::Failed => Role::Failed,
        Look::Running => Role::Running,
    });
    let (name, text, indent) = match (line.look, line.text.split_once('\t')) {
        (Look::Field, Some((name, text))) => (name, text, FIELD),
        _ => ("", line.text.as_str(), 0),
    };
    let width = area.width.saturating_sub(indent);
    let mut row = row;
    for (nth, part) in wrap(text, usize::from(width)).iter().enumerate().skip(skip) {
        if row >= area.height {
            break;
        }
        let at = Rect { y: area.y + row, height: 1, ..area };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        if nth == 0 && indent > 0 {
            pen.put_within(name, indent.saturating_sub(1), theme.style(Role::Dim));
        }
        pen.to(area.x + indent).put(part, style);
        if line.look == Look::Head && nth == 0 && pen.left() > 2 {
            let left = pen.space(1).left();
            pen.glyphs(Glyph::Horizontal, left, theme.style(Role::Border));
        }
        row += 1;
    }
    row
}
