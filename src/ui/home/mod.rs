//! The first screen: scenarios, runs, and a preview of the selected row.

mod kept_runs;
mod preview;
mod runs;
mod scenarios;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::border::Borders;
use super::cx::DrawContext;
use super::frame::{self, Frame};
use super::table;
use super::text::Pen;
use super::theme::StyleRole;
use crate::app::home::{HomePane, HomeParts, tab_labels};
use crate::app::layout::inside;
use crate::app::{AppState, preview as previewed};

/// Draws the first screen.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let home = &state.home;
    let parts = HomeParts::split(area, home.focus, state.listed().all_lines());
    if parts.tabs.is_some() {
        let labels = tab_labels(state.scenarios.len(), state.listed().len());
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
            HomePane::Preview => previewed::title(state),
            pane => pane.title().to_owned(),
        };
        let foot = hidden(state, &parts, pane);
        let number = Some(pane.number());
        let frame = Frame { number, title: &title, foot: &foot, focused: pane == home.focus };
        frame::label(frame, cx, parts.pane(pane), buf);
        let inner = inside(parts.pane(pane));
        match pane {
            HomePane::Scenarios => {
                let border = title_room(parts.pane(pane), &foot);
                scenarios::filter_line(state, cx, border, taken(&title), buf);
                scenarios::render(state, cx, parts.rows(pane), buf);
                scenarios::about(state, cx, parts.description_area(pane), buf);
            }
            HomePane::Runs => {
                let border = title_room(parts.pane(pane), &foot);
                kept_runs::title(state, cx, border, taken(&title), buf);
                runs::render(state, cx, parts.rows(pane), buf);
            }
            HomePane::Preview => {
                preview::render(&previewed::items(state).lines, state, cx, inner, buf)
            }
        }
    }
}

/// Columns of a pane's border that its number and title take.
fn taken(title: &str) -> u16 {
    u16::try_from(title.len()).unwrap_or(u16::MAX).saturating_add(6)
}

/// The border of a pane without the range in view at its right end.
fn title_room(pane: Rect, range: &str) -> Rect {
    let range = u16::try_from(range.len()).unwrap_or(u16::MAX);
    let taken = if range > 0 { range + 2 } else { 0 };
    Rect { width: pane.width.saturating_sub(taken), ..pane }
}

/// The range of a list's rows that are in view; empty if all are.
fn hidden(state: &AppState, parts: &HomeParts, pane: HomePane) -> String {
    let rows = usize::from(parts.rows(pane).height);
    match pane {
        HomePane::Scenarios => {
            let lines = state.home.lines(&state.scenarios);
            let top = state.home.scenarios_top;
            let first = lines.entries_above(top);
            let shown = lines.entries_above(top + rows) - first;
            let is_whole = lines.count() <= rows;
            if is_whole { String::new() } else { table::range(first, shown, lines.entries().len()) }
        }
        HomePane::Runs => {
            let len = state.listed().lines();
            if len > rows { table::range(state.home.runs_top, rows, len) } else { String::new() }
        }
        HomePane::Preview => String::new(),
    }
}
