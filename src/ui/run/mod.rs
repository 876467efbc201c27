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
use super::text::{Pen, clear};
use super::theme::StyleRole;
use crate::app::run::{Pane, RunPage};
use crate::event::world::Projection;
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
    goal(page, cx, areas.goal, buf);
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

/// Draws what the run is for: its goal, or the message that it answers.
fn goal(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some(head) = world.head.as_deref() else { return };
    let session = world.projection().and_then(Projection::session);
    let (label, text) = match session.filter(|session| session.message > 1) {
        Some(session) => ("message", &*session.text),
        None => ("goal", head.goal.as_str()),
    };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1).put(label, cx.theme.style(StyleRole::Dim)).space(1);
    let room = pen.left().saturating_sub(1);
    pen.put_within(text, room, cx.theme.style(StyleRole::Text));
}
