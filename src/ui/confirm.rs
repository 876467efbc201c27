//! A question over a screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cx;
use super::frame::{self, Frame};
use super::text::{Pen, wrap_within};
use super::theme::Role;
use crate::app::confirm::Confirm;
use crate::app::state::Size;

/// Draws a question.
pub fn render(confirm: &Confirm, cx: &Cx, size: Size, buf: &mut Buffer) {
    let window = confirm.window(size);
    let frame = Frame { title: "Sure?", focused: true, over: true, ..Frame::default() };
    let inner = frame::render(frame, cx, window, buf);
    let text = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let (yes, no) = confirm.buttons(size);
    let width = usize::from(text.width).max(1);
    let mut y = text.y;
    let lines = std::iter::once((&confirm.question, Role::Strong))
        .chain(confirm.detail.iter().map(|line| (line, Role::Text)));
    for (line, role) in lines {
        let room = yes.y.saturating_sub(y);
        let (rows, _) = wrap_within(line, width, room.into());
        for row in &rows {
            Pen::new(buf, Rect { y, height: 1, ..text }, cx.glyphs).put(row, cx.theme.style(role));
            y += 1;
        }
    }
    let (button, key) = (cx.theme.style(Role::Button), cx.theme.style(Role::Key));
    Pen::new(buf, yes, cx.glyphs).put("[ y yes ]", button);
    Pen::new(buf, no, cx.glyphs).put("[ n no ]", key);
}
