//! The drawing of a router: which pane shows what, the titles, and the second header row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{routes, steps};
use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::app::run::run_view::{RunView, pane_title};
use crate::app::run::subject_text::text_area;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::{calls, transcript};
use crate::panes::router::decision::document;
use crate::panes::router::view::RouterView;
use crate::ui::cx::DrawContext;
use crate::ui::document::draw_scrolled;
use crate::ui::run::draw_view::{DrawView, PaneTitle, TrackRow};
use crate::ui::table::range;

impl DrawView for RouterView {
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => routes::render(self, data, cx, area, buf),
            Pane::Second => {
                let text = document(data, self.route());
                draw_scrolled(cx, text_area(area), &text, self.scroll(), buf);
            }
            Pane::Third => calls::render(self.lower(), data, cx, area, buf),
            Pane::Fourth => transcript::render(self.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        let title = match pane {
            Pane::Second if self.shows_outcome(data) => {
                let sign = cx.theme.run(data.shown());
                PaneTitle::with_sign(("Outcome".to_owned(), Some(sign)))
            }
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        };
        let in_view = match pane {
            Pane::First => Some(self.routes_in_view(data, inside)),
            Pane::Third => self.lower().calls_in_view(data, inside),
            Pane::Second | Pane::Fourth | Pane::Events => None,
        };
        let aside = match in_view {
            Some((rows, all)) if !rows.is_empty() && rows.len() < all => {
                range(rows.start, rows.len(), all)
            }
            _ => String::new(),
        };
        let dot = cx.glyphs.symbol(Glyph::Dot);
        let notes = match pane {
            Pane::Fourth if self.lower().follows_transcript() => {
                vec![format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down))]
            }
            Pane::Fourth => vec![format!(" {dot} G: follow")],
            _ => Vec::new(),
        };
        PaneTitle { notes, aside, ..title }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        steps::render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (30, 48)
    }
}
