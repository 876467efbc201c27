//! The drawing of a team or a swarm: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::title::{follows, rows_in_view};
use super::{chain, hops};
use crate::app::run::{Pane, RunPage};
use crate::panes::agents::draw::{calls, graph, transcript};
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle};

/// The drawing of a team or a swarm.
pub(crate) struct TeamDrawing;

impl DrawView for TeamDrawing {
    fn pane(&self, page: &RunPage, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => graph::render(page, cx, area, buf),
            Pane::Second => hops::render(page, cx, area, buf),
            Pane::Third => calls::render(page, cx, area, buf),
            Pane::Fourth => transcript::render(page, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, page: &RunPage, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let (text, follows) = (page.view().title(pane), follows(page, cx, pane));
        let aside = rows_in_view(page, pane, inside);
        match pane {
            Pane::Second => PaneTitle { aside, ..PaneTitle::plain(format!("{text}{follows}")) },
            _ => PaneTitle { notes: vec![follows], aside, ..PaneTitle::plain(text) },
        }
    }

    fn track(&self, page: &RunPage, cx: &DrawContext, row: Rect, _alone: bool, buf: &mut Buffer) {
        chain::render(page, cx, row, buf);
    }

    fn track_columns(&self, _page: &RunPage) -> (u16, u16) {
        (48, 48)
    }

    fn advice_pane(&self) -> Pane {
        Pane::Fourth
    }
}
