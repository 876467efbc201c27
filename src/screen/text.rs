//! Drawing of any text, trusted or not. Control characters, escape sequences and bidi controls
//! become visible symbols, wide and combining characters take the columns that the terminal gives
//! them, and nothing is drawn outside its bounds. With `--ascii` all of it is written in seven
//! bits.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;

use super::theme::Theme;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure::{cluster, clusters, columns};
use crate::words::styled::{StyleRole, StyledLine};

/// Draws a text in row `y` from column `x`, at most `width` columns and never outside the buffer;
/// the rest is cut off. Returns the column after the last one drawn.
pub fn draw(buf: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
    let area = buf.area;
    if y < area.top() || y >= area.bottom() || x < area.left() {
        return x;
    }
    let end = x.saturating_add(width).min(area.right());
    let mut x = x;
    for (cluster, width) in clusters(text) {
        if x >= end || end - x < width {
            break;
        }
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(&cluster).set_style(style);
        }
        for behind in x + 1..x + width {
            if let Some(cell) = buf.cell_mut((behind, y)) {
                cell.reset();
                cell.set_style(style);
            }
        }
        x += width;
    }
    x
}

/// Applies a style to a rectangle and keeps its text.
pub fn paint(buf: &mut Buffer, area: Rect, style: Style) {
    buf.set_style(area.intersection(buf.area), style);
}

/// The style of a text on a border: it replaces the border's own style completely.
pub fn on_border(style: Style) -> Style {
    Style::reset().patch(style)
}

/// Clears a rectangle.
pub fn clear(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
}

/// The text in at most `width` columns; a longer one loses its end.
pub fn elide(text: &str, width: usize, glyphs: Glyphs) -> Cow<'_, str> {
    if head(text, width).len() == text.len() {
        return Cow::Borrowed(text);
    }
    let dots = ellipsis(width, glyphs);
    let mut out = head(text, width - columns(dots)).to_owned();
    out.truncate(out.trim_end().len());
    out.push_str(dots);
    Cow::Owned(out)
}

/// The text in at most `width` columns; a longer one loses its middle, since names differ most at
/// their ends.
pub fn elide_middle(text: &str, width: usize, glyphs: Glyphs) -> Cow<'_, str> {
    if head(text, width).len() == text.len() {
        return Cow::Borrowed(text);
    }
    let dots = ellipsis(width, glyphs);
    let room = width - columns(dots);
    let front = head(text, room.div_ceil(2));
    let mut out = front.to_owned();
    out.push_str(dots);
    out.push_str(tail(text, room - columns(front).min(room)));
    Cow::Owned(out)
}

fn ellipsis(width: usize, glyphs: Glyphs) -> &'static str {
    let dots = glyphs.symbol(Glyph::Ellipsis);
    if columns(dots) > width { "" } else { dots }
}

/// The longest start of the text that fits.
fn head(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += usize::from(cluster(grapheme).1);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// The longest end of the text that fits.
fn tail(text: &str, width: usize) -> &str {
    let mut used = 0;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += usize::from(cluster(grapheme).1);
        if used > width {
            break;
        }
        from = at;
    }
    &text[from..]
}

/// Draws pieces of text one after the other into one row, never past its end.
pub struct Pen<'a> {
    buf: &'a mut Buffer,
    glyphs: Glyphs,
    x: u16,
    y: u16,
    end: u16,
}

impl<'a> Pen<'a> {
    /// A pen at the start of the first row of `area`.
    pub fn new(buf: &'a mut Buffer, area: Rect, glyphs: Glyphs) -> Self {
        let end = if area.height == 0 { area.x } else { area.right() };
        Self { buf, glyphs, x: area.x, y: area.y, end }
    }

    /// Number of columns that are left.
    pub fn left(&self) -> u16 {
        self.end.saturating_sub(self.x)
    }

    /// The next column.
    pub fn x(&self) -> u16 {
        self.x
    }

    /// Draws a text; its end is left out if it does not fit.
    pub fn put(&mut self, text: &str, style: Style) -> &mut Self {
        let left = self.left();
        self.put_within(text, left, style)
    }

    /// Draws a text in at most `width` columns; its end is left out if it does not fit.
    pub fn put_within(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let width = width.min(self.left());
        let text = elide(text, usize::from(width), self.glyphs);
        self.x = draw(self.buf, self.x, self.y, width, &text, style);
        self
    }

    /// Draws a name in exactly `width` columns: its middle is left out, or blanks follow.
    pub fn name(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let width = width.min(self.left());
        let start = self.x;
        let text = elide_middle(text, usize::from(width), self.glyphs);
        draw(self.buf, self.x, self.y, width, &text, style);
        self.x = start + width;
        self
    }

    /// Draws a text in exactly `width` columns: its end is left out, or blanks follow.
    pub fn cell(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let width = width.min(self.left());
        let start = self.x;
        self.put_within(text, width, style);
        self.x = start + width;
        self
    }

    /// Draws a text right-aligned in `width` columns.
    pub fn right_aligned(&mut self, text: &str, width: u16, style: Style) -> &mut Self {
        let taken = u16::try_from(columns(text)).unwrap_or(u16::MAX);
        let pad = width.saturating_sub(taken);
        self.space(pad).put_within(text, width - pad, style)
    }

    /// Draws a glyph.
    pub fn glyph(&mut self, glyph: Glyph, style: Style) -> &mut Self {
        let text = self.glyphs.symbol(glyph);
        self.put(text, style)
    }

    /// Draws the parts of a line, each in the style of its role.
    pub fn line(&mut self, line: &StyledLine, theme: &Theme) -> &mut Self {
        for part in &line.parts {
            let style = theme.style(part.role.unwrap_or(StyleRole::Text));
            if let Some(glyph) = part.glyph {
                self.glyph(glyph, style);
                if !part.text.is_empty() {
                    self.space(1);
                }
            }
            self.put(&part.text, style);
        }
        self
    }

    /// Draws a glyph `times` times.
    pub fn glyphs(&mut self, glyph: Glyph, times: u16, style: Style) -> &mut Self {
        for _ in 0..times.min(self.left()) {
            self.glyph(glyph, style);
        }
        self
    }

    /// Skips columns and leaves them as they are.
    pub fn space(&mut self, width: u16) -> &mut Self {
        self.x = self.x.saturating_add(width).min(self.end);
        self
    }

    /// Moves to this column, unless the pen is already past it.
    pub fn advance_to(&mut self, x: u16) -> &mut Self {
        self.x = self.x.max(x).min(self.end);
        self
    }

    /// Whether a text of this width still fits.
    pub fn fits(&self, width: usize) -> bool {
        width <= usize::from(self.left())
    }
}

/// Replaces non-ASCII characters in each cell. Glyphs have their own twins; this is for texts.
pub(super) fn to_ascii(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let twin = twin(cell.symbol());
        cell.set_symbol(twin);
    }
}

/// A text in seven bits.
pub(crate) fn ascii_text(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ' '..='~' => c,
            _ => twin(c.encode_utf8(&mut [0; 4])).chars().next().unwrap_or('?'),
        })
        .collect()
}

/// The character that is closest.
fn twin(symbol: &str) -> &'static str {
    match symbol {
        "‘" | "’" | "‚" | "′" => "'",
        "“" | "”" | "„" | "″" => "\"",
        "‐" | "‑" | "‒" | "–" | "—" | "−" => "-",
        "…" => ".",
        "•" | "·" => "*",
        "×" => "x",
        "\u{a0}" | "\u{202f}" | "\u{2009}" => " ",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;
    use crate::base::visible::is_hostile;

    const HOSTILE: &str = "a\u{1b}[2J\u{202e}b\u{7}\u{9b}31m\u{200b}e\u{301}宽👩‍👩‍👧\u{301}\r\n\tz";

    fn row(buf: &Buffer, y: u16) -> String {
        (buf.area.left()..buf.area.right()).map(|x| buf[(x, y)].symbol()).collect()
    }

    #[test]
    fn shows_hostile_text_without_sending_it() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 1));
        draw(&mut buf, 0, 0, 40, HOSTILE, Style::new());
        let row = row(&buf, 0);
        assert!(row.starts_with("a␛[2J\u{fffd}b␇\u{fffd}31m\u{fffd}e\u{301}宽"), "{row}");
        assert!(!row.chars().any(is_hostile));
    }

    #[test]
    fn replaces_cluster_too_wide_for_cell() {
        let tower = format!("e{}", "\u{301}".repeat(500));
        assert_eq!(columns(&tower), 1);
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        draw(&mut buf, 0, 0, 4, &format!("x{tower}y"), Style::new());
        assert_eq!(row(&buf, 0), "x\u{fffd}y ");
        assert_eq!(columns("\u{301}"), 1, "a mark without a letter takes a column of its own");
    }

    #[test]
    fn never_cuts_wide_character() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 6, 1));
        let end = draw(&mut buf, 0, 0, 3, "宽宽", Style::new());
        assert_eq!(end, 2);
        assert_eq!(buf[(2, 0)].symbol(), " ");
        assert_eq!(elide("宽宽宽", 4, Glyphs::Unicode), "宽…");
    }

    #[test]
    fn what_is_left_out_is_said() {
        assert_eq!(elide("demand holds", 8, Glyphs::Unicode), "demand…");
        assert_eq!(elide("demand holds", 8, Glyphs::Ascii), "demand..");
        assert_eq!(elide_middle("risk_analyst", 7, Glyphs::Unicode), "ris…yst");
        assert_eq!(elide_middle("risk_analyst", 1, Glyphs::Unicode), "…");
        assert_eq!(elide_middle("risk_analyst", 1, Glyphs::Ascii), "r");
        assert_eq!(elide("risk_analyst", 0, Glyphs::Unicode), "");
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside_its_bounds(text in "\\PC*|[\\x00-\\x{2FFF}]*", width in 0u16..30) {
            let mut buf = Buffer::empty(Rect::new(0, 0, 40, 3));
            buf.set_style(buf.area, Style::new());
            let end = draw(&mut buf, 5, 1, width, &text, Style::new());
            prop_assert!(end <= 5 + width);
            for y in [0, 2] {
                prop_assert_eq!(row(&buf, y), " ".repeat(40));
            }
            prop_assert!((0..40).all(|x| (5..end).contains(&x) || buf[(x, 1)].symbol() == " "));
            prop_assert!(!row(&buf, 1).chars().any(is_hostile));
        }

        #[test]
        fn elided_text_fits(text in "\\PC*", width in 0usize..30) {
            for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
                prop_assert!(columns(&elide(&text, width, glyphs)) <= width);
                prop_assert!(columns(&elide_middle(&text, width, glyphs)) <= width);
            }
        }
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(elide_middle("regional_finance_analyst", 13, Glyphs::Unicode), "region…nalyst");
        assert_eq!(elide_middle("short", 13, Glyphs::Unicode), "short");
    }

    #[test]
    fn every_cell_is_seven_bits() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 24, 1));
        buf.set_string(0, 0, "“it’s – 日本” größe ␛[m…", Style::default());
        to_ascii(&mut buf);
        let row: String = buf.content().iter().map(|cell| cell.symbol()).collect();
        assert!(row.is_ascii(), "{row}");
        assert!(row.starts_with("\"it's - ? ? \" gr??e ?[m."), "{row}");
    }
}
