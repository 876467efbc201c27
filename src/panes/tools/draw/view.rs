//! The drawing of the tools: which pane shows what, the titles, and the second header row.

use crate::app::run::run_view::RunView;
use crate::app::run::run_view::pane_title;
use crate::panes::tools::listed::unused_tools;
use crate::panes::tools::view::ToolsView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{breakers, bulkheads, gauges, retries, tool};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle, TrackRow};

impl DrawView for ToolsView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => breakers::render(self, data, cx, area, buf),
            Pane::Second => tool::render(self, data, cx, area, buf),
            Pane::Third => bulkheads::render(self, data, cx, area, buf),
            Pane::Fourth => retries::render(self, data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(tool::title(self, data, cx)),
            Pane::First | Pane::Third => PaneTitle {
                aside: unused_tools(data.shown()),
                ..PaneTitle::plain(pane_title(self.titles(), pane))
            },
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        gauges::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (60, u16::MAX)
    }
}
