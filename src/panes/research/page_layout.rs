//! The layout of a page's text: its lines, and the positions of the notes' quotes in it. It is made
//! once for a page and its notes, so that a frame costs only the rows in view.
//!
//! Positions are counted in *solids*, characters other than white space, because those stay the
//! same however a text is folded or wrapped.

use std::borrow::Cow;
use std::ops::Range;

use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::event::id::SourceNo;
use crate::narrate::measure::{row_count, wrap};
use crate::pattern::research::ids::NoteId;
use crate::pattern::research::projection::Research;

/// Longest line that is kept as one, in bytes; a longer one is continued on the next.
const LONGEST: usize = 4096;
/// How far before that limit a blank to cut at is looked for, in bytes.
const BACK: usize = 256;

/// The input of a layout: another page, or more notes, require a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayoutKey {
    source: SourceNo,
    bytes: usize,
    notes: usize,
}

/// The layout of a page.
#[derive(Debug)]
pub struct PageLayout {
    key: LayoutKey,
    lines: Vec<PageLine>,
    quotes: Vec<Quote>,
    /// Notes whose quote was not found on the page.
    pub missing: Vec<NoteId>,
}

/// A line of the page, as a range of its text.
#[derive(Debug)]
struct PageLine {
    bytes: Range<usize>,
    /// Number of solids before it.
    solids: usize,
}

/// The position of a note's quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The note with this quote.
    pub note: NoteId,
    /// The range of the quote, in solids.
    pub solids: Range<usize>,
    /// Index of the line in which it begins.
    line: usize,
}

/// Number of characters that are not white space.
pub fn solids(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// The text with each run of white space as one blank.
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

impl PageLayout {
    /// The input for the layout of this source's page; `None` if the source has no page.
    pub(super) fn key_for(research: &Research, source: SourceNo) -> Option<LayoutKey> {
        let page = research.source(source)?.page.as_ref()?;
        let notes = research.notes.iter().filter(|row| row.source == source).count();
        Some(LayoutKey { source, bytes: page.text().len(), notes })
    }

    /// Whether this layout was made of that input.
    pub(super) fn has_key(&self, made: LayoutKey) -> bool {
        self.key == made
    }

    /// Lays out the page of a source; `None` if it has none.
    pub(super) fn lay_out(research: &Research, source: SourceNo) -> Option<PageLayout> {
        let made = Self::key_for(research, source)?;
        let text = research.source(source)?.page.as_ref()?.text();
        let lines = lines_of(text);
        let mut reading = PageLayout { key: made, lines, quotes: Vec::new(), missing: Vec::new() };
        if made.notes > 0 {
            let page = folded(text);
            for row in research.notes.iter().filter(|row| row.source == source) {
                let quote = folded(&row.note.quote);
                let id = row.note.id.clone();
                match page.find(&quote).filter(|_| !quote.is_empty()) {
                    Some(at) => {
                        let from = solids(&page[..at]);
                        let solids = from..from + solids(&quote);
                        let after = reading.lines.partition_point(|line| line.solids <= from);
                        let line = after.saturating_sub(1);
                        reading.quotes.push(Quote { note: id, solids, line });
                    }
                    None => reading.missing.push(id),
                }
            }
        }
        Some(reading)
    }

    /// The quotes, in the order of their notes.
    pub fn quotes(&self) -> &[Quote] {
        &self.quotes
    }

    /// The lines of the page at this width; `text` is the text of the page.
    pub fn wrapped_at<'a>(&'a self, text: &'a str, width: u16) -> PageLines<'a> {
        PageLines { reading: self, text, width: usize::from(width).max(1) }
    }
}

fn lines_of(text: &str) -> Vec<PageLine> {
    let mut lines: Vec<PageLine> = Vec::new();
    let (mut start, mut before) = (0, 0);
    while start <= text.len() {
        let mut end = line_end(text, start);
        // A paragraph with hard line breaks at some width becomes one line.
        while is_continued(&text[start..end], &text[(end + 1).min(text.len())..]) {
            end = line_end(text, end + 1);
        }
        let next = end + 1;
        let end = start + text[start..end].trim_end_matches('\r').len();
        loop {
            let stop = cut_position(&text[start..end]) + start;
            let bytes = start..stop;
            let count = solids(&text[bytes.clone()]);
            lines.push(PageLine { bytes, solids: before });
            before += count;
            start = stop;
            if start >= end {
                break;
            }
        }
        start = next;
    }
    lines
}

/// The end of the line that begins here.
fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |at| start + at)
}

/// Whether a line is continued on the next one: it is long, and the next begins like a word and not
/// like an item of a list, a row of a table or a blank line.
fn is_continued(so_far: &str, after: &str) -> bool {
    /// A line with at least this many bytes was probably broken for width.
    const LONG: usize = 60;
    let last = so_far.rsplit('\n').next().unwrap_or_default().trim_end();
    let begins = after.chars().next().is_some_and(|c| c.is_alphabetic() || c == '(' || c == '"');
    so_far.len() < LONGEST && last.len() >= LONG && begins
}

/// Where a long line is cut: at a blank if there is one near.
fn cut_position(line: &str) -> usize {
    if line.len() <= LONGEST {
        return line.len();
    }
    let end = (0..=LONGEST).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let near = (0..=end - BACK).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    line[near..end].rfind(' ').map_or(end, |at| near + at + 1)
}

/// The lines of a page, wrapped at a width.
pub struct PageLines<'a> {
    reading: &'a PageLayout,
    text: &'a str,
    width: usize,
}

impl PageLines<'_> {
    fn line(&self, at: usize) -> Cow<'_, str> {
        let bytes = self.reading.lines.get(at).map(|line| line.bytes.clone());
        let line = bytes.and_then(|bytes| self.text.get(bytes)).unwrap_or_default();
        if line.contains('\n') { line.replace('\n', " ").into() } else { line.into() }
    }

    /// The rows of a line, each with the number of solids before it.
    pub fn wrapped_rows(&self, at: usize) -> Vec<(usize, String)> {
        let mut before = self.reading.lines.get(at).map_or(0, |line| line.solids);
        let rows = wrap(&self.line(at), self.width);
        let counted = rows.into_iter().map(|row| {
            let from = before;
            before += solids(&row);
            (from, row)
        });
        counted.collect()
    }

    /// The scroll position that shows a note's quote a few rows below the top; `None` if the page
    /// does not contain it.
    pub fn scroll_to_quote(&self, note: &NoteId, height: usize) -> Option<Scroll> {
        let quote = self.reading.quotes.iter().find(|quote| quote.note == *note)?;
        let rows = self.wrapped_rows(quote.line);
        let row = rows.iter().rposition(|(from, _)| *from <= quote.solids.start).unwrap_or(0);
        let above = isize::try_from(height / 4).unwrap_or(0);
        Some(Scroll { line: quote.line, row }.step(-above, self, height))
    }
}

impl WrappingLines for PageLines<'_> {
    fn count(&self) -> usize {
        self.reading.lines.len()
    }

    fn rows(&self, line: usize) -> usize {
        row_count(&self.line(line), self.width)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading(text: &str) -> PageLayout {
        let made = LayoutKey { source: SourceNo(1), bytes: text.len(), notes: 0 };
        PageLayout { key: made, lines: lines_of(text), quotes: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut_at_blanks() {
        let text = "word ".repeat(200_000);
        let reading = reading(&text);
        assert!(reading.lines.len() > 200);
        for line in &reading.lines {
            assert!(line.bytes.len() <= LONGEST);
            assert!(text[line.bytes.clone()].starts_with("word"));
        }
    }

    #[test]
    fn a_hard_wrapped_paragraph_is_one_line() {
        let long = "words enough to fill a line of text as people break it by hand";
        let text = format!("{long}\nand more\n- an item\n\n{long}\n- another\nshort\nlines");
        let reading = reading(&text);
        let lines = reading.wrapped_at(&text, 200);
        let shown: Vec<String> = (0..lines.count()).map(|at| lines.line(at).into_owned()).collect();
        let first = format!("{long} and more");
        assert_eq!(shown, [&first, "- an item", "", long, "- another", "short", "lines"]);
    }

    proptest! {
        #[test]
        fn every_solid_stands_in_one_row(text in "[ -~\\n\\r\\t宽é\\x1b]*", width in 2u16..30) {
            let reading = reading(&text);
            let lines = reading.wrapped_at(&text, width);
            let mut at = 0;
            for line in 0..lines.count() {
                for (from, row) in lines.wrapped_rows(line) {
                    prop_assert_eq!(from, at);
                    at += solids(&row);
                }
            }
            prop_assert_eq!(at, solids(&text));
        }
    }
}
