//! What panes and windows draw alike: rows, bars, states, texts, headings, scroll arrows, text
//! fields, the text of an empty pane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Widget;

use super::DrawContext;
use super::form::fields::TextField;
use super::layout::line;
use super::scroll::{Scroll, WrappingLines};
use super::text::{Pen, paint};
use super::theme::StateSign;
use crate::base::visible::{first_hostile, visible_char};
use crate::log::world::{RunProgress, RunState};
use crate::words::glyph::Glyph;
use crate::words::measure::wrap_within;
use crate::words::styled::StyleRole;

/// Draws a state: its glyph, then its word.
pub(super) fn put_sign(cx: &DrawContext, pen: &mut Pen, sign: StateSign) {
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

/// Draws the text of a pane without rows: what would be there, and what brings it there, as
/// `No NAME yet: …`. Where nothing more can come, `No NAME: WHY.`
pub(crate) fn empty(cx: &DrawContext, area: Rect, text: &str, buf: &mut Buffer) {
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let (rows, _) = wrap_within(text, width, usize::from(area.height));
    for (nth, row) in rows.iter().enumerate() {
        let mut pen = Pen::new(buf, line(area, nth as u16), cx.glyphs);
        pen.space(1).put(row, cx.theme.style(StyleRole::Dim));
    }
}

/// The text of an empty pane of a run: what would be there, and what brings it; of a run that has ended, that
/// there was none.
pub(crate) fn none_yet(name: &str, comes: &str, progress: &RunProgress) -> String {
    match progress.stage {
        RunState::Closed => format!("No {name}: the run ended before the first one."),
        _ => format!("No {name} yet: {comes}."),
    }
}

/// Draws a text that wraps; rows that do not fit are cut off.
pub(crate) fn paragraph(cx: &DrawContext, area: Rect, text: &str, style: Style, buf: &mut Buffer) {
    let (rows, _) = wrap_within(text, usize::from(area.width).max(1), area.height.into());
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        Pen::new(buf, Rect { y, height: 1, ..area }, cx.glyphs).put(row, style);
    }
}

/// Draws a heading, followed by a line to the end of the row.
pub(crate) fn heading(cx: &DrawContext, row: Rect, text: &str, buf: &mut Buffer) {
    let border = cx.theme.style(StyleRole::Border);
    let mut pen = Pen::new(buf, row, cx.glyphs);
    pen.glyphs(Glyph::Horizontal, 2, border).space(1);
    pen.put(text, cx.theme.style(StyleRole::Title)).space(1);
    let rest = pen.left();
    pen.glyphs(Glyph::Horizontal, rest, border);
}

/// Draws texts below a heading, each with a dot before its first row.
pub(super) fn list_below_heading<T: AsRef<str>>(
    cx: &DrawContext,
    area: Rect,
    heading_text: &str,
    texts: &[T],
    buf: &mut Buffer,
) {
    let row = |y: u16| {
        Rect { x: area.x + 1, y, width: area.width.saturating_sub(2), height: 1 }.intersection(area)
    };
    heading(cx, row(area.y), heading_text, buf);
    let width = usize::from(area.width.saturating_sub(4)).max(1);
    let mut y = area.y + 1;
    for text in texts {
        let room = area.bottom().saturating_sub(y);
        let (rows, _) = wrap_within(text.as_ref(), width, room.into());
        for (at, text) in rows.iter().take(room.into()).enumerate() {
            let mut pen = Pen::new(buf, row(y), cx.glyphs);
            match at {
                0 => pen.glyph(Glyph::Dot, cx.theme.style(StyleRole::Dim)).space(1),
                _ => pen.space(2),
            };
            pen.put(text, cx.theme.style(StyleRole::Text));
            y += 1;
        }
    }
}

/// Draws scroll arrows in a column of the frame, at the first and the last of these rows.
pub(super) fn scroll_arrows(
    cx: &DrawContext,
    column: u16,
    rows: Rect,
    [above, below]: [bool; 2],
    buf: &mut Buffer,
) {
    let at = Rect { x: column, width: 1, height: 1, ..rows };
    let key = cx.theme.style(StyleRole::Key);
    if above {
        Pen::new(buf, at, cx.glyphs).glyph(Glyph::Up, key);
    }
    if below {
        let last = Rect { y: rows.bottom().saturating_sub(1), ..at };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, key);
    }
}

/// Draws scroll arrows on the frame next to the text, so that the text keeps its width.
pub(super) fn out_of_view(
    cx: &DrawContext,
    area: Rect,
    top: Scroll,
    lines: &impl WrappingLines,
    buf: &mut Buffer,
) {
    if area.width < 20 || area.height < 2 {
        return;
    }
    let hidden = [top > Scroll::default(), top < Scroll::end(lines, usize::from(area.height))];
    scroll_arrows(cx, area.right(), area, hidden, buf);
}

/// Draws a text field of `rows` rows, of which the first `cut` are above `place`; `typing` shows
/// the cursor.
pub(super) fn render_text_field(
    text: &TextField,
    cx: &DrawContext,
    place: Rect,
    rows: u16,
    cut: u16,
    typing: bool,
    buf: &mut Buffer,
) {
    let style = cx.theme.style(StyleRole::Field);
    paint(buf, place, style);
    // The widget keeps its own scroll position: it is drawn in full into a buffer of its own, then
    // the rows in view are copied.
    let whole = Rect::new(0, 0, place.width, rows);
    let mut beside = Buffer::empty(whole);
    paint(&mut beside, whole, style);
    Widget::render(&text.area, whole, &mut beside);
    for y in 0..place.height {
        for x in 0..place.width {
            let (Some(from), Some(to)) =
                (beside.cell((x, y + cut)), buf.cell_mut((place.x + x, place.y + y)))
            else {
                continue;
            };
            *to = from.clone();
            // Text from a file may hold characters that must not reach a terminal.
            if let Some(c) = first_hostile(to.symbol()) {
                to.set_symbol(visible_char(c).encode_utf8(&mut [0; 4]));
            }
            if !typing {
                to.modifier.remove(Modifier::REVERSED | Modifier::UNDERLINED);
            }
        }
    }
}
