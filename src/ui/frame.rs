//! The frames of windows and of the home screen: titles and feet on their borders, which
//! `border` draws.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::border;
use super::cx::DrawContext;
use super::text::{self, Pen};
use crate::app::layout::inside;
use crate::narrate::style_role::StyleRole;

/// The number, labels and border style of a pane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// Its number, if a digit key focuses it.
    pub number: Option<u8>,
    /// Its title.
    pub title: &'a str,
    /// The text at the right end of its lower border; of a numbered pane, whose lower border may be the
    /// upper one of another, at the right end of its upper border.
    pub foot: &'a str,
    /// Whether it is focused.
    pub focused: bool,
}

/// The title of a window about a run, and whether that run is live: `Flags of r-7f3a, live`.
pub fn live_title(what: &str, of: &str, is_live: bool) -> String {
    format!("{what} of {of}{}", if is_live { ", live" } else { "" })
}

/// Draws a window that covers what is below it; returns the area inside.
pub fn window(title: &str, foot: &str, cx: &DrawContext, area: Rect, buf: &mut Buffer) -> Rect {
    window_border(cx, area, buf);
    label(Frame { title, foot, focused: true, ..Frame::default() }, cx, area, buf);
    inside(area.intersection(buf.area))
}

/// Clears the area of a window and draws its border.
pub fn window_border(cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    text::clear(buf, area);
    if area.width >= 2 && area.height >= 2 {
        border::double(cx, area, cx.theme.style(StyleRole::BorderFocus), buf);
    }
}

/// Draws title and foot onto a border.
pub fn label(frame: Frame, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return;
    }
    let role = if frame.focused { StyleRole::BorderFocus } else { StyleRole::Border };
    let style = cx.theme.style(role);
    let (left, right) = (area.left(), area.right() - 1);
    let (top, bottom) = (area.top(), area.bottom() - 1);
    let room = area.width.saturating_sub(4);
    let title_style = text::on_border(cx.theme.style(if frame.focused {
        StyleRole::Title
    } else {
        StyleRole::Text
    }));
    if !frame.title.is_empty() && room > 2 {
        let row = Rect { x: left + 2, y: top, width: room, height: 1 };
        let mut pen = Pen::new(buf, row, cx.glyphs);
        pen.put(" ", style);
        if let Some(number) = frame.number {
            pen.put(&format!("{number} "), cx.theme.style(StyleRole::Dim));
        }
        let width = pen.left().saturating_sub(1);
        pen.put_within(frame.title, width, title_style).put(" ", style);
    }
    let foot = u16::try_from(text::columns(frame.foot)).unwrap_or(u16::MAX);
    if foot > 0 && foot.saturating_add(2) <= room {
        let x = right - 2 - foot;
        let y = if frame.number.is_some() { top } else { bottom };
        let row = Rect { x: x - 1, y, width: foot + 2, height: 1 };
        let dim = cx.theme.style(StyleRole::Dim);
        Pen::new(buf, row, cx.glyphs).put(" ", dim).put(frame.foot, dim).put(" ", dim);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::narrate::glyph::Glyphs;
    use crate::ui::theme::Theme;

    #[test]
    fn a_frame_of_any_size_stays_inside() {
        let theme = Theme::default();
        let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs: Glyphs::Unicode };
        for width in 0..12 {
            for height in 0..6 {
                let mut buf = Buffer::empty(Rect::new(0, 0, 10, 5));
                let area = Rect::new(1, 1, width, height);
                window("A long title", "foot", &cx, area, &mut buf);
                let (number, title) = (Some(1), "A long title");
                let frame = Frame { number, title, foot: "foot", focused: true };
                label(frame, &cx, area, &mut buf);
            }
        }
    }
}
