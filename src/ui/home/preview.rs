//! Pane 3 of the first screen: a preview of the selected scenario or run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::AppState;
use crate::narrate::glyph::Glyph;
use crate::narrate::styled::StyledLine;
use crate::ui::cx::DrawContext;
use crate::ui::text::{Pen, wrap_within};
use crate::ui::theme::StyleRole;

/// Columns of the preview's labels.
const LABEL: u16 = 11;

/// Draws the lines from the first one in view.
pub(super) fn render(
    items: &[StyledLine],
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let width = area.width.saturating_sub(LABEL + 2);
    let mut y = area.y;
    let top = state.home.preview_top.min(items.len().saturating_sub(1));
    for (at, item) in items.iter().enumerate().skip(top) {
        let left = area.bottom().saturating_sub(y);
        if left == 0 {
            break;
        }
        let (glyph, style) = (item.glyph(), cx.theme.style(item.role()));
        let (x, width) = match item.label {
            None => (area.x + 1, area.width.saturating_sub(2)),
            Some(_) => (area.x + 1 + LABEL, width),
        };
        let indent = if glyph.is_some() { 2 } else { 0 };
        let columns = usize::from(width.saturating_sub(indent)).max(1);
        let (rows, cut) = wrap_within(&item.text(), columns, left.into());
        let label = Rect { x: area.x + 1, y, width: LABEL, height: 1 }.intersection(area);
        Pen::new(buf, label, cx.glyphs).cell(
            item.label.as_deref().unwrap_or_default(),
            LABEL - 1,
            cx.theme.style(StyleRole::Dim),
        );
        for (at, row) in rows.iter().enumerate() {
            let line = Rect { x, y: y + at as u16, width, height: 1 }.intersection(area);
            let mut pen = Pen::new(buf, line, cx.glyphs);
            match glyph.filter(|_| at == 0) {
                Some(glyph) => pen.glyph(glyph, style).space(1),
                None => pen.space(indent),
            };
            pen.put(row, style);
        }
        y = y.saturating_add(u16::try_from(rows.len().max(1)).unwrap_or(u16::MAX));
        if cut || (y >= area.bottom() && at + 1 < items.len()) {
            let more = Rect {
                x: area.right().saturating_sub(2),
                y: area.bottom() - 1,
                width: 1,
                height: 1,
            };
            Pen::new(buf, more.intersection(area), cx.glyphs)
                .glyph(Glyph::Down, cx.theme.style(StyleRole::Key));
        }
    }
}
