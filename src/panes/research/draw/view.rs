//! The drawing of research: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::title::{aside, follows, model};
use super::{items, page as page_pane, sources, steps};
use crate::app::run::{Pane, RunPage};
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle};

/// The drawing of research.
pub(crate) struct ResearchDrawing;

impl DrawView for ResearchDrawing {
    fn pane(&self, page: &RunPage, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => sources::render(page, cx, area, buf),
            Pane::Second => page_pane::render(page, cx, area, buf),
            Pane::Third => items::answer(page, cx, area, buf),
            Pane::Fourth => items::notes(page, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, page: &RunPage, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let aside = aside(page, pane, inside);
        match pane {
            Pane::Second => PaneTitle { aside, ..PaneTitle::with_sign(page_pane::title(page, cx)) },
            _ => {
                let notes = vec![model(page, cx, pane), follows(page, cx, pane)];
                PaneTitle { notes, aside, ..PaneTitle::plain(page.view().title(pane)) }
            }
        }
    }

    fn track(&self, page: &RunPage, cx: &DrawContext, row: Rect, _alone: bool, buf: &mut Buffer) {
        steps::render(page, cx, row, buf);
    }

    fn track_columns(&self, _page: &RunPage) -> (u16, u16) {
        (58, 58)
    }

    fn advice_pane(&self) -> Pane {
        Pane::Third
    }
}
