//! The drawing of a team or a swarm: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::title::{follows, rows_in_view, title};
use super::{agents, chain, sequence};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::app::run::subject_text::text_area;
use crate::panes::agents::draw::{calls, transcript};
use crate::panes::team::view::TeamView;
use crate::ui::cx::DrawContext;
use crate::ui::document::draw_scrolled;
use crate::ui::run::draw_view::{DrawView, PaneTitle, TrackRow};

impl DrawView for TeamView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => sequence::render(self, data, cx, area, buf),
            Pane::Second => match self.document(data) {
                Some(text) => draw_scrolled(cx, text_area(area), &text, self.scroll(), buf),
                None => agents::render(self, data, cx, area, buf),
            },
            Pane::Third => calls::render(self.lower(), data, cx, area, buf),
            Pane::Fourth => transcript::render(self.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let notes = vec![follows(self, data, cx, pane)];
        let aside = rows_in_view(self, data, pane, inside);
        PaneTitle { notes, aside, ..PaneTitle::with_sign(title(self, data, cx, pane)) }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        chain::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (48, u16::MAX)
    }
}
