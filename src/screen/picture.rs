//! A screen as a picture: an SVG or a text. In the SVG each run of cells of one style is a text of its
//! own, stretched to its columns, so that columns stay straight in any monospaced font.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use super::theme::{Theme, rgb};
use super::{AppState, DrawContext};
use crate::words::page;

/// Width of a cell.
const WIDTH: usize = 8;
/// Height of a cell.
const HEIGHT: usize = 15;
/// Space around the cells.
const MARGIN: usize = 12;

/// Background and text of a dark terminal.
const DARK: [&str; 2] = ["#16181d", "#d5d8df"];
/// Background and text of a light terminal.
const LIGHT: [&str; 2] = ["#ffffff", "#1a1e24"];

/// The attributes of text that an SVG shows.
const ATTRIBUTES: [(Modifier, &str); 4] = [
    (Modifier::BOLD, " font-weight=\"bold\""),
    (Modifier::DIM, " opacity=\"0.62\""),
    (Modifier::ITALIC, " font-style=\"italic\""),
    (Modifier::UNDERLINED, " text-decoration=\"underline\""),
];

/// Draws the whole screen of this state, without a terminal.
pub fn cells(state: &AppState, cx: &DrawContext) -> Buffer {
    let area = state.terminal.area();
    let mut cells = Buffer::empty(area);
    super::render(state, cx, area, &mut cells);
    cells
}

/// A screen as an SVG. It needs no script, font or network.
pub fn svg(cells: &Buffer, theme: &Theme, title: &str) -> String {
    let [paper, ink] = if theme.is_light() { LIGHT } else { DARK };
    let (cols, rows) = (usize::from(cells.area.width), usize::from(cells.area.height));
    let (width, height) = (cols * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut picture = Picture { out: String::new(), paper, ink };
    let _ = write!(
        picture.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{paper}\"/>\n\
         <g font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"13\" xml:space=\"preserve\">\n",
        page::escape_line(title)
    );
    for (row, line) in cells.content.chunks(cols.max(1)).enumerate() {
        let mut col = 0;
        while col < line.len() {
            let style = line[col].style();
            let end = (col..line.len()).find(|&at| line[at].style() != style).unwrap_or(line.len());
            picture.piece(row, col, &line[col..end]);
            col = end;
        }
    }
    picture.out + "</g>\n</svg>\n"
}

/// A screen as text: a line for each row, without blanks at its end.
pub fn text(cells: &Buffer) -> String {
    let rows = cells.content.chunks(usize::from(cells.area.width).max(1));
    rows.map(|row| symbols(row).trim_end().to_owned() + "\n").collect()
}

/// The text in these cells of a row. A cell that a wide character covers has no text of its own.
fn symbols(row: &[Cell]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(cell) = row.get(at) {
        text.push_str(cell.symbol());
        at += cell.symbol().width().max(1);
    }
    text
}

struct Picture {
    out: String,
    paper: &'static str,
    ink: &'static str,
}

impl Picture {
    /// Adds cells of one style, the first of them at `col`.
    fn piece(&mut self, row: usize, col: usize, cells: &[Cell]) {
        let Some(first) = cells.first() else { return };
        let colour = |it, otherwise: &str| hex(it).unwrap_or_else(|| otherwise.to_owned());
        let (mut fg, mut bg) = (colour(first.fg, self.ink), colour(first.bg, self.paper));
        if first.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut fg, &mut bg);
        }
        let (x, y) = (MARGIN + col * WIDTH, MARGIN + row * HEIGHT);
        if bg != self.paper {
            let width = cells.len() * WIDTH;
            let _ = writeln!(
                self.out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{bg}\"/>"
            );
        }
        let text = symbols(cells);
        if text.trim().is_empty() {
            return;
        }
        // Blanks at the ends are left out, and the rest keeps its place.
        let blanks = text.width() - text.trim_start().width();
        let (x, text) = (x + blanks * WIDTH, text.trim());
        let width = text.width() * WIDTH;
        let y = y + HEIGHT - 3;
        let has = |(it, _): &&(Modifier, &str)| first.modifier.contains(*it);
        let style: String = ATTRIBUTES.iter().filter(has).map(|(_, style)| *style).collect();
        let text = page::escape_line(text);
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\" fill=\"{fg}\"{style}>{text}</text>"
        );
    }
}

/// A colour as in CSS; `None` for that of the terminal.
fn hex(colour: Color) -> Option<String> {
    let (red, green, blue) = rgb(colour)?;
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn one_row(text: &str, style: Style) -> Buffer {
        let mut cells = Buffer::empty(Rect::new(0, 0, 40, 1));
        cells.set_string(0, 0, text, style);
        cells
    }

    #[test]
    fn each_style_has_its_attributes() {
        let drawn = |style| svg(&one_row("  a < b", style), &Theme::default(), "t");
        let plain = drawn(Style::new());
        assert!(
            plain.contains(
                "<text x=\"28\" y=\"24\" textLength=\"40\" fill=\"#d5d8df\">a &lt; b</text>"
            ),
            "{plain}"
        );
        assert_eq!(plain.matches("<rect").count(), 1, "only the background of the screen");
        let style = Style::new().fg(Color::Rgb(230, 159, 0)).bold().underlined().dim().italic();
        let styled = drawn(style);
        for part in ["#e69f00", "bold", "underline", "opacity", "italic"] {
            assert!(styled.contains(part), "{part}: {styled}");
        }
        let reversed = drawn(Style::new().fg(Color::Indexed(196)).reversed());
        assert!(reversed.contains("width=\"56\" height=\"15\" fill=\"#ff0000\""), "{reversed}");
        assert!(reversed.contains("fill=\"#16181d\">a"), "{reversed}");
    }

    #[test]
    fn a_wide_character_has_two_columns() {
        let cells = one_row("日本 a", Style::new());
        assert_eq!(text(&cells), "日本 a\n");
        assert!(svg(&cells, &Theme::default(), "t").contains("textLength=\"48\""));
    }

    #[test]
    fn a_title_cannot_leave_its_element() {
        let picture =
            svg(&one_row("", Style::new()), &Theme::default(), "</title>\u{1b}[2J\u{fffe}&");
        assert!(picture.contains("<title>&lt;/title&gt;"), "{picture}");
        let allowed = |c: char| c == '\n' || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
        assert!(picture.chars().all(allowed), "{picture}");
    }

    #[test]
    fn the_background_fits_the_theme() {
        for (name, is_light) in
            [("dark", false), ("light", true), ("colour-blind", false), ("mono", false)]
        {
            assert_eq!(Theme::shipped(name).expect("shipped").is_light(), is_light, "{name}");
        }
    }
}
