//! The list of commands over a screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::format;
use super::frame;
use super::table;
use super::text::Pen;
use super::theme::StyleRole;
use crate::app::commands::CommandList;
use crate::app::help::{help_window, keys_of};
use crate::app::layout::Size;
use crate::narrate::glyph::{Glyph, Glyphs};

/// Columns of the names and of the keys.
const NAME: u16 = 18;
const KEYS: u16 = 12;

/// Draws the list of commands.
pub fn render(list: &CommandList, cx: &DrawContext, size: Size, buf: &mut Buffer) {
    let foot = format::count_noun(list.count() as u64, "command");
    let inner = frame::window("Commands", &foot, cx, help_window(size), buf);
    let row = |y: u16| {
        Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 }
            .intersection(inner)
    };
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let cursor = cx.theme.style(StyleRole::Cursor);
    let mut pen = Pen::new(buf, row(inner.y), cx.glyphs);
    pen.put(":", dim);
    if list.query.is_empty() {
        pen.glyph(Glyph::Cursor, cursor).put(" type parts of a name or description", dim);
    } else {
        pen.put(&list.query, plain).glyph(Glyph::Cursor, cursor);
    }
    let rows =
        Rect { y: inner.y + inner.height.min(2), height: inner.height.saturating_sub(4), ..inner };
    if list.count() == 0 {
        Pen::new(buf, row(rows.y), cx.glyphs).put("No match (Backspace to widen).", dim);
    }
    for ((command, is_selected), y) in list.rows().zip(rows.y..rows.bottom()) {
        let (binding, here) = (command.binding, command.refusal.is_none());
        let keys = keys_of(binding, cx.glyphs == Glyphs::Ascii);
        let mut pen = table::row(cx, row(y), is_selected, buf);
        pen.space(1).cell(binding.action.name(), NAME, if here { plain } else { dim });
        pen.cell(&keys, KEYS, if here { cx.theme.style(StyleRole::Key) } else { dim });
        match &command.refusal {
            Some(why) => pen.put(why, dim),
            None => pen.put(binding.help, plain),
        };
    }
    // What the selected row does, in full: above it may be cut, or be the reason.
    if let Some(command) = list.selected() {
        let area = row(inner.bottom().saturating_sub(1));
        Pen::new(buf, area, cx.glyphs).put(command.binding.help, dim);
    }
}
