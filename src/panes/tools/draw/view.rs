//! The drawing of the tools: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{breakers, bulkheads, gauges, retries, tool};
use crate::app::run::{Pane, RunPage};
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle};

/// The drawing of the tools.
pub(crate) struct ToolsDrawing;

impl DrawView for ToolsDrawing {
    fn pane(&self, page: &RunPage, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => breakers::render(page, cx, area, buf),
            Pane::Second => tool::render(page, cx, area, buf),
            Pane::Third => bulkheads::render(page, cx, area, buf),
            Pane::Fourth => retries::render(page, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, page: &RunPage, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(tool::title(page, cx)),
            _ => PaneTitle::plain(page.view().title(pane)),
        }
    }

    fn track(&self, page: &RunPage, cx: &DrawContext, row: Rect, _alone: bool, buf: &mut Buffer) {
        gauges::render(page, cx, row, buf);
    }

    fn track_columns(&self, _page: &RunPage) -> (u16, u16) {
        (60, 60)
    }
}
