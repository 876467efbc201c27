//! The drawing of a team or a swarm: which pane shows what, the titles, and the second header row.

use crate::app::run::run_view::RunView;
use crate::app::run::run_view::pane_title;
use crate::panes::team::view::TeamView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::title::{follows, rows_in_view};
use super::{chain, hops};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::panes::agents::draw::{calls, graph, transcript};
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle};

impl DrawView for TeamView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => graph::render(self.selected_agent(), data, cx, area, buf),
            Pane::Second => hops::render(self, data, cx, area, buf),
            Pane::Third => calls::render(self.lower(), data, cx, area, buf),
            Pane::Fourth => transcript::render(self.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let (text, follows) = (pane_title(self.titles(), pane), follows(self, data, cx, pane));
        let aside = rows_in_view(self, data, pane, inside);
        match pane {
            Pane::Second => PaneTitle { aside, ..PaneTitle::plain(format!("{text}{follows}")) },
            _ => PaneTitle { notes: vec![follows], aside, ..PaneTitle::plain(text) },
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: Rect, _alone: bool, buf: &mut Buffer) {
        chain::render(data, cx, row, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (48, 48)
    }

    fn advice_pane(&self) -> Pane {
        Pane::Fourth
    }
}
