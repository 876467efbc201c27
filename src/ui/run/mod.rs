//! The view of one run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cx;
use crate::app::run::RunPage;

/// Draws a run into what the header and the key row leave.
pub fn render(page: &RunPage, _cx: &Cx, area: Rect, buf: &mut Buffer) {
    let facts = page.world().tally.facts;
    let line = format!("{}: {facts} facts", page.id());
    buf.set_stringn(area.x, area.y, line, area.width.into(), ratatui::style::Style::new());
}
