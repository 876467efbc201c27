//! The view of one run: two header rows, the panes, the scrubber. Pure functions of the page.

pub(crate) mod attempts;
pub(crate) mod draw_view;
pub(crate) mod events;
mod frames;
pub mod header;
mod scrubber;
pub(crate) mod speech;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::inspector;
use super::text::clear;
use crate::app::run::{Pane, RunPage};
use crate::panes::draw::draw_view;

/// Draws a run in the area between the header and the key row.
pub fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    clear(buf, area);
    if page.inspector().is_some() {
        inspector::render(page, cx, area, buf);
        return;
    }
    let areas = page.areas(area);
    let view = draw_view(page);
    frames::render(page, view, cx, area, &areas, buf);
    for pane in Pane::ALL {
        let Some(inside) = areas.pane(pane) else { continue };
        match pane {
            Pane::Events => events::render(page, cx, inside, buf),
            _ => view.pane(page, pane, cx, inside, buf),
        }
    }
    scrubber::render(page, cx, areas.scrubber, buf);
}
