//! A screen as an SVG: each run of cells of one style is a text of its own, stretched to its columns,
//! so that it stands straight in whatever monospaced font a browser has.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

const WIDTH: usize = 8;
const HEIGHT: usize = 16;
const MARGIN: usize = 12;
const PAPER: &str = "#16181d";
const INK: &str = "#d5d8df";

/// Draws a screen.
pub fn svg(cells: &Buffer, title: &str) -> String {
    let (cols, rows) = (usize::from(cells.area.width), usize::from(cells.area.height));
    let (width, height) = (cols * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{PAPER}\"/>\n\
         <g font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"13\" xml:space=\"preserve\">\n",
        escaped(title)
    );
    for (row, line) in cells.content.chunks(cols.max(1)).enumerate() {
        let mut col = 0;
        while col < line.len() {
            let style = line[col].style();
            let end = (col..line.len()).find(|&at| line[at].style() != style).unwrap_or(line.len());
            let mut text = String::new();
            let mut at = col;
            while at < end {
                text.push_str(line[at].symbol());
                // What a wide character covers is no cell of its own.
                at += line[at].symbol().width().max(1);
            }
            piece(&mut out, row, col, end - col, &text, &line[col]);
            col = end;
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn piece(
    out: &mut String,
    row: usize,
    col: usize,
    cols: usize,
    text: &str,
    cell: &ratatui::buffer::Cell,
) {
    let (mut fg, mut bg) = (colour(cell.fg, INK), colour(cell.bg, PAPER));
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut fg, &mut bg);
    }
    let (x, y) = (MARGIN + col * WIDTH, MARGIN + row * HEIGHT);
    let width = cols * WIDTH;
    if bg != PAPER {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{bg}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    // Blanks at the ends are left out and the rest keeps its place.
    let lead = text.len() - text.trim_start().len();
    let (x, text) = (x + lead * WIDTH, text.trim());
    let width = text.width() * WIDTH;
    let y = y + HEIGHT - 4;
    let mut style = String::new();
    if cell.modifier.contains(Modifier::BOLD) {
        style.push_str(" font-weight=\"bold\"");
    }
    if cell.modifier.contains(Modifier::DIM) {
        style.push_str(" opacity=\"0.62\"");
    }
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\" fill=\"{fg}\"{style}>{}</text>",
        escaped(text)
    );
}

fn colour(colour: Color, otherwise: &str) -> String {
    match colour {
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        _ => otherwise.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
