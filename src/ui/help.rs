//! The help over a screen: the binding table with a search line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::format;
use super::frame;
use super::text::Pen;
use super::theme::StyleRole;
use crate::app::help::help_window;
use crate::app::help::{Help, HelpLine, keys_of};
use crate::app::layout::Size;
use crate::narrate::glyph::Glyph;
use crate::ui::table;

/// Columns of the keys.
const KEYS: u16 = 14;

/// Draws the help.
pub fn render(help: &Help, cx: &DrawContext, size: Size, ascii: bool, buf: &mut Buffer) {
    let title = format!("Help for {}", help.context.word());
    let lines = help.lines();
    let count = lines.iter().filter(|line| matches!(line, HelpLine::Row(_))).count();
    let foot = format::count_noun(count as u64, "row");
    let inner = frame::window(&title, &foot, cx, help_window(size), buf);
    let row = |y: u16| {
        Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 }
            .intersection(inner)
    };
    let (dim, plain) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Text));
    let mut pen = Pen::new(buf, row(inner.y), cx.glyphs);
    if help.query.is_empty() {
        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        pen.put(" type to search keys and words", dim);
    } else {
        pen.put(&help.query, plain).glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
    }
    let list =
        Rect { y: inner.y + inner.height.min(2), height: inner.height.saturating_sub(4), ..inner };
    if lines.is_empty() {
        Pen::new(buf, row(list.y), cx.glyphs).put("No match (Backspace to widen).", dim);
    }
    for (line, y) in lines.iter().skip(help.top).zip(list.y..list.bottom()) {
        match line {
            HelpLine::Blank => {}
            HelpLine::Heading(group) => {
                Pen::new(buf, row(y), cx.glyphs)
                    .put(group.title(), cx.theme.style(StyleRole::Title));
            }
            HelpLine::Row(binding) => {
                let selected = help.selected == Some(binding.action);
                let here = help.is_available(binding);
                let mut pen = table::row(cx, row(y), selected, buf);
                let key = if here { cx.theme.style(StyleRole::Key) } else { dim };
                pen.space(1).cell(&keys_of(binding, ascii), KEYS, key);
                if here {
                    pen.put(binding.help, plain);
                } else {
                    pen.put(&format!("{}  ({})", binding.help, binding.places()), dim);
                }
            }
        }
    }
    let bottom = inner.bottom();
    legend(cx, [row(bottom.saturating_sub(2)), row(bottom.saturating_sub(1))], buf);
}

/// Meanings of the glyphs.
const LEGEND: [(Glyph, StyleRole, &str); 12] = [
    (Glyph::Done, StyleRole::Done, "done"),
    (Glyph::Running, StyleRole::Running, "running"),
    (Glyph::Waiting, StyleRole::Waiting, "waiting"),
    (Glyph::Paused, StyleRole::Paused, "paused"),
    (Glyph::Retry, StyleRole::Retry, "retry"),
    (Glyph::Failed, StyleRole::Failed, "failed"),
    (Glyph::Off, StyleRole::Off, "off"),
    (Glyph::Go, StyleRole::Go, "go"),
    (Glyph::Caution, StyleRole::Caution, "caution"),
    (Glyph::Block, StyleRole::Block, "block"),
    (Glyph::Changed, StyleRole::Changed, "changed"),
    (Glyph::Flag, StyleRole::Flag, "flag"),
];

/// Draws the legend into the lower row, or into both if one is too short.
fn legend(cx: &DrawContext, rows: [Rect; 2], buf: &mut Buffer) {
    let [upper, lower] = rows;
    let width = |gap: usize| LEGEND.iter().map(|(.., word)| 2 + word.len() + gap).sum::<usize>();
    let room = usize::from(lower.width);
    // The last entry of a row needs no gap after it.
    let whole = width(2) <= room + 2;
    let gap: u16 = if whole || width(2) + 12 <= room * 2 { 2 } else { 1 };
    let mut pen = Pen::new(buf, if whole { lower } else { upper }, cx.glyphs);
    let mut wrapped = whole;
    for (glyph, role, word) in LEGEND {
        if !pen.fits(word.len() + 2) {
            if wrapped {
                break;
            }
            wrapped = true;
            pen = Pen::new(buf, lower, cx.glyphs);
        }
        pen.glyph(glyph, cx.theme.style(role)).space(1).put(word, cx.theme.style(StyleRole::Dim));
        pen.space(gap);
    }
}
