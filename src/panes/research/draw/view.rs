//! The drawing of research: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::title::{aside, follows, model};
use super::{items, page as page_pane, sources, steps};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::app::run::run_view::{RunView, pane_title};
use crate::panes::research::selection::ResearchView;
use crate::ui::cx::DrawContext;
use crate::ui::run::draw_view::{DrawView, PaneTitle, TrackRow};

impl DrawView for ResearchView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => sources::render(self, data, cx, area, buf),
            Pane::Second => page_pane::render(self, data, cx, area, buf),
            Pane::Third => items::answer(self, data, cx, area, buf),
            Pane::Fourth => items::notes(self, data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let aside = aside(self, data, pane, inside);
        match pane {
            Pane::Second => {
                PaneTitle { aside, ..PaneTitle::with_sign(page_pane::title(self, data, cx)) }
            }
            _ => {
                let notes = vec![model(data, cx, pane), follows(self, data, cx, pane)];
                PaneTitle { notes, aside, ..PaneTitle::plain(pane_title(self.titles(), pane)) }
            }
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        steps::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (58, 58)
    }

    fn advice_pane(&self) -> Pane {
        Pane::Third
    }
}
