//! What the panes of a run's page draw alike: rows, bars, states, scroll arrows, the text of an
//! empty pane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::sign::StateSign;
use super::text::{Pen, wrap_within};
use crate::app::layout::line;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;

/// Draws a state: its glyph, then its word.
pub(crate) fn put_sign(cx: &DrawContext, pen: &mut Pen, sign: StateSign) {
    let text = format!("{} {}", cx.glyphs.symbol(sign.glyph), sign.word);
    pen.put(&text, sign.style);
}

/// Draws a bar of `width` cells for `used` of `allowed`. It is empty only at 0 and full only at
/// `allowed`.
pub(crate) fn bar(cx: &DrawContext, pen: &mut Pen, used: u64, allowed: u64, width: u16) {
    let cells = u64::from(width);
    let full = match (used, allowed) {
        (0, _) | (_, 0) => 0,
        (used, allowed) if used >= allowed => cells,
        (used, allowed) => {
            let exact = u128::from(used) * u128::from(cells) / u128::from(allowed);
            u64::try_from(exact).unwrap_or(cells).clamp(1, cells.saturating_sub(1).max(1))
        }
    };
    let full = u16::try_from(full).unwrap_or(width).min(width);
    pen.glyphs(Glyph::BarFull, full, cx.theme.budget(used, allowed));
    pen.glyphs(Glyph::BarEmpty, width - full, cx.theme.style(StyleRole::BarEmpty));
}

/// Draws the text of a pane without rows.
pub(crate) fn empty(cx: &DrawContext, area: Rect, text: &str, buf: &mut Buffer) {
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let (rows, _) = wrap_within(text, width, usize::from(area.height));
    for (nth, row) in rows.iter().enumerate() {
        let mut pen = Pen::new(buf, line(area, nth as u16), cx.glyphs);
        pen.space(1).put(row, cx.theme.style(StyleRole::Dim));
    }
}

/// Draws scroll arrows on the frame next to the text, so that the text keeps its width.
pub(crate) fn out_of_view(
    cx: &DrawContext,
    area: Rect,
    top: Scroll,
    lines: &impl WrappingLines,
    buf: &mut Buffer,
) {
    if area.width < 20 || area.height < 2 {
        return;
    }
    let at = Rect { x: area.right(), width: 1, height: 1, ..area };
    let key = cx.theme.style(StyleRole::Key);
    if top > Scroll::default() {
        Pen::new(buf, at, cx.glyphs).glyph(Glyph::Up, key);
    }
    if top < Scroll::end(lines, usize::from(area.height)) {
        let last = Rect { y: area.bottom() - 1, ..at };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, key);
    }
}
