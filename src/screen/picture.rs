//! A screen as a picture: an SVG or a text. In the SVG each run of cells of one style is a text of its
//! own, stretched to its columns, so that columns stay straight in any monospaced font.
//!
//! An animated picture draws each such text once for all frames that show it. Texts of the same frames
//! are one group, and a CSS animation shows and hides it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
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

/// The same in CSS.
const RULES: [(Modifier, &str); 4] = [
    (Modifier::BOLD, ";font-weight:bold"),
    (Modifier::DIM, ";opacity:.62"),
    (Modifier::ITALIC, ";font-style:italic"),
    (Modifier::UNDERLINED, ";text-decoration:underline"),
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
    let picture = Picture::new(theme);
    let mut out = picture.head(cells.area, title);
    for run in runs(cells) {
        picture.draw(&mut out, &run, |style| {
            let fill = format!(" fill=\"{}\"", style.ink);
            let has = |(it, _): &&(Modifier, &str)| style.modifier.contains(*it);
            ATTRIBUTES.iter().filter(has).fold(fill, |all, (_, attribute)| all + attribute)
        });
    }
    out + "</g>\n</svg>\n"
}

/// Screens that are shown one after the other, again and again.
pub struct Film<'a> {
    /// All of one size, at least one.
    pub frames: &'a [Buffer],
    /// How long each is shown.
    pub step: Duration,
    /// How long the last one is shown.
    pub rest: Duration,
}

impl Film<'_> {
    /// As an SVG that plays by itself; it needs no script, font or network. Who prefers reduced motion,
    /// or has a viewer without animations, sees the last frame.
    pub fn svg(&self, theme: &Theme, title: &str) -> String {
        let picture = Picture::new(theme);
        let mut styles: Vec<CellStyle> = Vec::new();
        // An element, and the frames that show it: from the first up to one that does not any more.
        let mut shown: BTreeMap<(usize, usize, String), Vec<(usize, usize)>> = BTreeMap::new();
        for (nth, frame) in self.frames.iter().enumerate() {
            for run in runs(frame) {
                let mut drawn = String::new();
                picture.draw(&mut drawn, &run, |style| {
                    let class = styles.iter().position(|it| it == style).unwrap_or_else(|| {
                        styles.push(style.clone());
                        styles.len() - 1
                    });
                    format!(" class=\"s{class}\"")
                });
                for line in drawn.lines() {
                    let spans = shown.entry((run.row, run.col, line.to_owned())).or_default();
                    match spans.last_mut() {
                        Some((_, end)) if *end == nth => *end = nth + 1,
                        _ => spans.push((nth, nth + 1)),
                    }
                }
            }
        }
        let mut groups: BTreeMap<Vec<(usize, usize)>, String> = BTreeMap::new();
        for ((_, _, drawn), spans) in shown {
            let group = groups.entry(spans).or_default();
            *group += &drawn;
            group.push('\n');
        }
        let area = self.frames.first().map_or(Rect::ZERO, |frame| frame.area);
        let (css, drawn) = self.animations(&groups);
        let mut out = picture.head(area, title) + "<style>\n";
        for (nth, style) in styles.iter().enumerate() {
            let has = |(it, _): &&(Modifier, &str)| style.modifier.contains(*it);
            let rules: String = RULES.iter().filter(has).map(|(_, rule)| *rule).collect();
            let _ = writeln!(out, ".s{nth}{{fill:{}{rules}}}", style.ink);
        }
        let length = self.length().as_millis();
        let _ = write!(
            out,
            ".f{{animation:{length}ms step-end infinite}}\n{css}\
             @media (prefers-reduced-motion:reduce){{.f{{animation:none!important}}}}\n\
             </style>\n{drawn}"
        );
        out + "</g>\n</svg>\n"
    }

    /// The keyframes of the groups, and their elements.
    fn animations(&self, groups: &BTreeMap<Vec<(usize, usize)>, String>) -> (String, String) {
        let (mut css, mut out) = (String::new(), String::new());
        let count = self.frames.len();
        for (nth, (spans, drawn)) in groups.iter().enumerate() {
            if spans[..] == [(0, count)] {
                out += drawn;
                continue;
            }
            let _ = write!(css, "@keyframes k{nth}{{");
            if spans[0].0 > 0 {
                css += "0%{visibility:hidden}";
            }
            for (first, end) in spans {
                let _ = write!(css, "{}{{visibility:visible}}", self.percent(*first));
                if *end < count {
                    let _ = write!(css, "{}{{visibility:hidden}}", self.percent(*end));
                }
            }
            css += "}\n";
            let is_last = spans.last().is_some_and(|(_, end)| *end == count);
            let hidden = if is_last { "" } else { " visibility=\"hidden\"" };
            let _ = write!(
                out,
                "<g class=\"f\" style=\"animation-name:k{nth}\"{hidden}>\n{drawn}</g>\n"
            );
        }
        (css, out)
    }

    /// Time of all frames.
    fn length(&self) -> Duration {
        let before = self.frames.len().saturating_sub(1);
        self.step * u32::try_from(before).unwrap_or(u32::MAX) + self.rest
    }

    /// The share of the time that is over when a frame is shown, as CSS has it.
    fn percent(&self, frame: usize) -> String {
        let before = self.step * u32::try_from(frame).unwrap_or(u32::MAX);
        let share = format!("{:.4}", 100.0 * before.div_duration_f64(self.length()));
        share.trim_end_matches('0').trim_end_matches('.').to_owned() + "%"
    }
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

/// Cells of one style in a row.
struct CellRun<'a> {
    row: usize,
    col: usize,
    cells: &'a [Cell],
}

/// All cells, from the top left to the bottom right.
fn runs(cells: &Buffer) -> Vec<CellRun<'_>> {
    let cols = usize::from(cells.area.width).max(1);
    let mut runs = Vec::new();
    for (row, line) in cells.content.chunks(cols).enumerate() {
        let mut col = 0;
        while col < line.len() {
            let style = line[col].style();
            let end = (col..line.len()).find(|&at| line[at].style() != style).unwrap_or(line.len());
            runs.push(CellRun { row, col, cells: &line[col..end] });
            col = end;
        }
    }
    runs
}

/// How a text is drawn.
#[derive(Clone, PartialEq)]
struct CellStyle {
    ink: String,
    modifier: Modifier,
}

struct Picture {
    paper: &'static str,
    ink: &'static str,
}

impl Picture {
    fn new(theme: &Theme) -> Self {
        let [paper, ink] = if theme.is_light() { LIGHT } else { DARK };
        Self { paper, ink }
    }

    /// The beginning of an SVG, up to its first cell.
    fn head(&self, area: Rect, title: &str) -> String {
        let (cols, rows) = (usize::from(area.width), usize::from(area.height));
        let (width, height) = (cols * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{}\"/>\n\
             <g font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
             font-size=\"13\">\n",
            page::escape_line(title),
            self.paper
        )
    }

    /// Adds a run of cells; `attributes` are those of a text in its style.
    fn draw(&self, out: &mut String, run: &CellRun, attributes: impl FnOnce(&CellStyle) -> String) {
        let CellRun { row, col, cells } = *run;
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
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{bg}\"/>"
            );
        }
        let text = symbols(cells);
        if text.trim().is_empty() {
            return;
        }
        let y = y + HEIGHT - 3;
        let style = attributes(&CellStyle { ink: fg, modifier: first.modifier });
        // Viewers join several blanks, so a text ends before them, and the next one has its own place.
        let mut col = 0;
        for words in text.split("  ") {
            let blanks = words.width() - words.trim_start().width();
            let (x, word) = (x + (col + blanks) * WIDTH, words.trim());
            col += words.width() + 2;
            if !word.is_empty() {
                let width = word.width() * WIDTH;
                let word = page::escape_line(word);
                let _ = writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\"{style}>{word}</text>"
                );
            }
        }
    }
}

/// A colour as in CSS; `None` for that of the terminal.
fn hex(colour: Color) -> Option<String> {
    let (red, green, blue) = rgb(colour)?;
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

#[cfg(test)]
mod tests {

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
    fn several_blanks_end_a_text() {
        let drawn = svg(&one_row("a b   c", Style::new()), &Theme::default(), "t");
        for part in ["x=\"12\" y=\"24\" textLength=\"24\"", ">a b</text>", "x=\"60\""] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }

    /// Three frames of 1 s, the last shown for 2 s: what stays is drawn once, the rest by its frames.
    #[test]
    fn film_draws_each_text_once() {
        let frames = ["same a", "same b", "same a"].map(|text| {
            let mut cells = one_row(text, Style::new());
            cells.set_string(5, 0, &text[5..], Style::new().bold());
            cells
        });
        let second = Duration::from_secs(1);
        let film = Film { frames: &frames, step: second, rest: 2 * second };
        let svg = film.svg(&Theme::default(), "t");
        let (css, drawn) = svg.split_once("</style>\n").expect("a style");
        for rule in [
            ".s1{fill:#d5d8df;font-weight:bold}\n",
            ".f{animation:4000ms step-end infinite}\n",
            "{0%{visibility:visible}25%{visibility:hidden}50%{visibility:visible}}",
            "{0%{visibility:hidden}25%{visibility:visible}50%{visibility:hidden}}",
            "@media (prefers-reduced-motion:reduce){.f{animation:none!important}}\n",
        ] {
            assert!(css.contains(rule), "{rule}: {css}");
        }
        for text in [">same</text>", ">a</text>", ">b</text>"] {
            assert_eq!(drawn.matches(text).count(), 1, "{text}: {drawn}");
        }
        // Without animations the last frame is shown.
        let (hidden, text) = (drawn.find("visibility=\"hidden\""), drawn.find(">b</text>"));
        assert!(hidden < text && drawn.matches("hidden").count() == 1, "{drawn}");
        assert_eq!(svg, film.svg(&Theme::default(), "t"));
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
