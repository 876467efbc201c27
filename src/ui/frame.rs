//! Borders. Panes that share a line join their borders: where two meet they form a crossing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::DrawContext;
use super::glyph::Glyphs;
use super::text::{self, Pen};
use super::theme::StyleRole;
use crate::app::layout::inside;

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// Every line, with the sides that it reaches.
const LINES: [(u8, &str); 11] = [
    (LEFT | RIGHT, "─"),
    (UP | DOWN, "│"),
    (DOWN | RIGHT, "┌"),
    (DOWN | LEFT, "┐"),
    (UP | RIGHT, "└"),
    (UP | LEFT, "┘"),
    (UP | DOWN | RIGHT, "├"),
    (UP | DOWN | LEFT, "┤"),
    (DOWN | LEFT | RIGHT, "┬"),
    (UP | LEFT | RIGHT, "┴"),
    (UP | DOWN | LEFT | RIGHT, "┼"),
];

/// The number, labels and border style of a pane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// Its number, if a digit key focuses it.
    pub number: Option<u8>,
    /// Its title.
    pub title: &'a str,
    /// The text at the right end of its lower border.
    pub foot: &'a str,
    /// Whether it is focused.
    pub focused: bool,
    /// It covers other panes: the area is cleared, and its lines join none.
    pub covers: bool,
}

/// Draws border and labels of one pane; returns the area inside.
pub fn render(frame: Frame, cx: &DrawContext, area: Rect, buf: &mut Buffer) -> Rect {
    border(frame, cx, area, buf);
    label(frame, cx, area, buf);
    inside(area.intersection(buf.area))
}

/// Draws the border alone. Panes that share lines draw all borders first, the focused one last,
/// then their labels.
pub fn border(frame: Frame, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if frame.covers {
        text::clear(buf, area);
    }
    if area.width < 2 || area.height < 2 {
        return;
    }
    let role = if frame.focused { StyleRole::BorderFocus } else { StyleRole::Border };
    let style = cx.theme.style(role);
    let (left, right) = (area.left(), area.right() - 1);
    let (top, bottom) = (area.top(), area.bottom() - 1);
    if frame.covers {
        return double(cx, area, style, buf);
    }
    for x in left + 1..right {
        join(buf, x, top, LEFT | RIGHT, style, cx.glyphs);
        join(buf, x, bottom, LEFT | RIGHT, style, cx.glyphs);
    }
    for y in top + 1..bottom {
        join(buf, left, y, UP | DOWN, style, cx.glyphs);
        join(buf, right, y, UP | DOWN, style, cx.glyphs);
    }
    join(buf, left, top, DOWN | RIGHT, style, cx.glyphs);
    join(buf, right, top, DOWN | LEFT, style, cx.glyphs);
    join(buf, left, bottom, UP | RIGHT, style, cx.glyphs);
    join(buf, right, bottom, UP | LEFT, style, cx.glyphs);
}

/// The double border of a window that covers others.
fn double(cx: &DrawContext, area: Rect, style: Style, buf: &mut Buffer) {
    let [across, down, corners @ ..] = match cx.glyphs {
        Glyphs::Unicode => ["═", "║", "╔", "╗", "╚", "╝"],
        Glyphs::Ascii => ["=", "|", "+", "+", "+", "+"],
    };
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    let mut put = |x, y, symbol| {
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(symbol).set_style(style);
        }
    };
    for x in area.left() + 1..right {
        put(x, area.top(), across);
        put(x, bottom, across);
    }
    for y in area.top() + 1..bottom {
        put(area.left(), y, down);
        put(right, y, down);
    }
    put(area.left(), area.top(), corners[0]);
    put(right, area.top(), corners[1]);
    put(area.left(), bottom, corners[2]);
    put(right, bottom, corners[3]);
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
        let row = Rect { x: x - 1, y: bottom, width: foot + 2, height: 1 };
        let dim = cx.theme.style(StyleRole::Dim);
        Pen::new(buf, row, cx.glyphs).put(" ", dim).put(frame.foot, dim).put(" ", dim);
    }
}

/// Draws a piece of a line and joins it with a line that is there already.
fn join(buf: &mut Buffer, x: u16, y: u16, sides: u8, style: Style, glyphs: Glyphs) {
    let Some(cell) = buf.cell_mut((x, y)) else { return };
    let symbol = match glyphs {
        Glyphs::Unicode => {
            let there = LINES.iter().find(|(_, line)| *line == cell.symbol());
            let sides = sides | there.map_or(0, |(sides, _)| *sides);
            LINES.iter().find(|(own, _)| *own == sides).map_or("┼", |(_, line)| *line)
        }
        Glyphs::Ascii => match (sides, cell.symbol()) {
            (_, "+") => "+",
            (s, "-") if s == LEFT | RIGHT => "-",
            (s, "|") if s == UP | DOWN => "|",
            (s, " ") if s == LEFT | RIGHT => "-",
            (s, " ") if s == UP | DOWN => "|",
            _ => "+",
        },
    };
    cell.set_symbol(symbol).set_style(style);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::theme::Theme;
    use std::time::Duration;

    fn drawn(glyphs: Glyphs) -> Vec<String> {
        let theme = Theme::default();
        let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs };
        let mut buf = Buffer::empty(Rect::new(0, 0, 9, 5));
        for area in [Rect::new(0, 0, 5, 3), Rect::new(4, 0, 5, 3), Rect::new(0, 2, 9, 3)] {
            render(Frame::default(), &cx, area, &mut buf);
        }
        (0..5).map(|y| (0..9).map(|x| buf[(x, y)].symbol()).collect()).collect()
    }

    #[test]
    fn shared_lines_join() {
        assert_eq!(
            drawn(Glyphs::Unicode),
            ["┌───┬───┐", "│   │   │", "├───┴───┤", "│       │", "└───────┘"]
        );
        assert_eq!(
            drawn(Glyphs::Ascii),
            ["+---+---+", "|   |   |", "+---+---+", "|       |", "+-------+"]
        );
    }

    #[test]
    fn a_frame_of_any_size_stays_inside() {
        let theme = Theme::default();
        let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs: Glyphs::Unicode };
        for width in 0..12 {
            for height in 0..6 {
                let mut buf = Buffer::empty(Rect::new(0, 0, 10, 5));
                let frame = Frame {
                    number: Some(1),
                    title: "A long title",
                    foot: "foot",
                    focused: true,
                    covers: true,
                };
                render(frame, &cx, Rect::new(1, 1, width, height), &mut buf);
            }
        }
    }
}
