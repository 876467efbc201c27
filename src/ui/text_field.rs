//! Drawing of a text field, in the launch form and in the message box.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::widgets::Widget;

use super::cx::DrawContext;
use super::text::paint;
use super::theme::StyleRole;
use crate::app::form::field::TextField;
use crate::base::visible::{first_hostile, visible_char};

/// Draws a text field of `rows` rows, of which the first `cut` are above `place`; `typing` shows
/// the cursor.
pub(super) fn render(
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
