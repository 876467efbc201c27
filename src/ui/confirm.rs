//! The window of a question.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cx;
use super::format::things;
use super::frame::{self, Frame};
use super::glyph::Glyph;
use super::text::Pen;
use super::theme::Role;
use crate::app::confirm::Confirm;
use crate::app::state::Size;

/// Draws a question.
pub fn render(confirm: &Confirm, cx: &Cx, size: Size, buf: &mut Buffer) {
    let parts = confirm.parts(size);
    let frame = Frame { title: "Confirm", focused: true, over: true, ..Frame::default() };
    frame::render(frame, cx, parts.window, buf);
    let (rows, question) = confirm.rows(size);
    let text = parts.text;
    let shown = rows.iter().enumerate().skip(confirm.top);
    for ((at, row), y) in shown.zip(text.y..text.bottom()) {
        let role = if at < question { Role::Strong } else { Role::Text };
        Pen::new(buf, Rect { y, height: 1, ..text }, cx.glyphs).put(row, cx.theme.style(role));
    }
    let below = rows.len().saturating_sub(confirm.top + usize::from(text.height));
    let mut pen = Pen::new(buf, parts.more, cx.glyphs);
    let key = cx.theme.style(Role::Key);
    if below > 0 {
        let more = things(below as u64, "more line");
        pen.glyph(Glyph::Down, key).put(&format!(" {more} below: j, PgDn, G"), key);
    } else if confirm.top > 0 {
        let more = things(confirm.top as u64, "line");
        pen.glyph(Glyph::Up, key).put(&format!(" {more} above: k, PgUp, g"), key);
    }
    let yes = if confirm.can_say_yes() { Role::Button } else { Role::Dim };
    Pen::new(buf, parts.yes, cx.glyphs).put("[ y yes ]", cx.theme.style(yes));
    Pen::new(buf, parts.no, cx.glyphs).put("[ n no ]", key);
}
