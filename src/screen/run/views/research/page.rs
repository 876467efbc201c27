//! Pane 2 of research: the page of a source with the quotes of notes marked; for a dropped source
//! the reason and advice. The layout is made once for a page and its notes. It counts positions in
//! *solids*, characters other than white space, because those stay the same however a text is
//! folded or wrapped.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ResearchView;
use super::items::put_solids;
use super::sources::{GUTTER, page_text, source_sign};
use crate::base::time;
use crate::log::event::id::SourceNo;
use crate::log::facts::research::{NoteId, ResearchPlan};
use crate::log::world::research::{Research, SourcePage, SourceRow};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::text_area;
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::screen::text::{Pen, elide_middle};
use crate::screen::theme::StateSign;
use crate::screen::widgets::{empty, out_of_view};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, row_count, wrap, wrap_within};
use crate::words::patterns::research::source::{
    age_days, missing_page_reason, source_state, trust,
};
use crate::words::styled::StyleRole;
use crate::words::verdict::why_stopped;

/// Maximum length of a line, in bytes; a longer one is continued on the next.
const LONGEST: usize = 4096;
/// Size of the part before that limit in which a blank for the cut is searched, in bytes.
const BACK: usize = 256;

/// The input of a layout: another page, or more notes, require a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutKey {
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
    pub note: NoteId,
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
    pub(crate) fn has_key(&self, made: LayoutKey) -> bool {
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

/// The selected source and its state.
pub(crate) fn title(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let source = || data.shown().research()?.source(view.page_source(data)?);
    let Some(row) = source() else { return ("Page".to_owned(), None) };
    // The note comes first, since the end of a long domain is cut.
    let note = view.page_note(data).map_or_else(String::new, |note| format!("{note} in "));
    let text = format!("{note}{} {}", row.no, row.domain);
    (text.trim_end().to_owned(), Some(source_sign(cx.theme, &row.state)))
}

pub(crate) fn render(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(research) = data.shown().research() else { return };
    let plan = &*research.plan;
    let Some(row) = view.page_source(data).and_then(|no| research.source(no)) else {
        let world = data.shown();
        let text = match (world.progress.is_live(), research.sources.is_empty()) {
            (true, true) => {
                "No page yet: the search comes first. Pane 3 has the progress.".to_owned()
            }
            (true, false) => {
                "No page yet: no source has been read. Select one in pane 1 (j, k).".to_owned()
            }
            (false, true) => format!("No page: no source was found: {}.", why_stopped(world)),
            (false, false) => {
                "No page: no source was read. Select one in pane 1 (j, k).".to_owned()
            }
        };
        return empty(cx, area, &text, buf);
    };
    let text = page_text(area);
    let top = Rect { height: text.y - area.y, ..text_area(area) };
    head(view, cx, top, row, plan, data, buf);
    match (&row.page, view.page_layout(data)) {
        (Some(_), Some((reading, whole))) if !whole.trim().is_empty() => {
            marked_text(
                view,
                data,
                cx,
                (text, text.x > top.x),
                &reading.wrapped_at(whole, text.width),
                reading,
                buf,
            );
        }
        (Some(_), _) => {
            let left = Rect { x: top.x, width: top.width, ..text };
            put_texts(
                cx,
                left,
                &[("The page has no text, or the log no longer has it.", StyleRole::Dim)],
                buf,
            );
        }
        (None, _) => {
            dropped_source(cx, Rect { x: top.x, width: top.width, ..text }, row, plan, buf)
        }
    }
}

/// Draws title, address, date and trust.
fn head(
    view: &ResearchView,
    cx: &DrawContext,
    area: Rect,
    row: &SourceRow,
    plan: &ResearchPlan,
    data: &RunData,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    if area.height == 0 {
        return;
    }
    let title = if row.title().is_empty() { "no title" } else { row.title() };
    Pen::new(buf, line(area, 0), cx.glyphs).put(title, theme.style(StyleRole::Strong));
    if area.height < 2 {
        return;
    }
    let address = row.page.as_ref().map_or(row.address(), |page| &page.url);
    let address = elide_middle(address, usize::from(area.width), cx.glyphs);
    Pen::new(buf, line(area, 1), cx.glyphs).put(&address, dim);
    if area.height < 3 {
        return;
    }
    let mut pen = Pen::new(buf, line(area, 2), cx.glyphs);
    for (nth, fact) in metadata(row, plan).iter().enumerate() {
        let gap = if nth > 0 { 3 } else { 0 };
        if pen.fits(columns(fact) + gap) {
            pen.space(gap as u16).put(fact, dim);
        }
    }
    if area.height > 3 && row.page.is_some() && row.drop_phrase().is_some() {
        // It was read, but dropped afterwards.
        let sign = source_sign(theme, &row.state);
        let text = format!("{}: {}", source_state(row), missing_page_reason(row, plan).0);
        let mut pen = Pen::new(buf, line(area, 3), cx.glyphs);
        pen.glyph(sign.glyph, sign.style).space(1).put(&text, sign.style);
        return;
    }
    let missing =
        view.page_layout(data).map(|(reading, _)| reading.missing.as_slice()).unwrap_or_default();
    if area.height > 3
        && let [first, rest @ ..] = missing
    {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let text = format!("the quote of {first}{more} was not found on this page");
        let failed = theme.style(StyleRole::Failed);
        let mut pen = Pen::new(buf, line(area, 3), cx.glyphs);
        pen.glyph(Glyph::Failed, failed).space(1).put(&text, failed);
    }
}

fn metadata(row: &SourceRow, plan: &ResearchPlan) -> Vec<String> {
    let mut facts = Vec::new();
    let days = age_days(row, plan);
    let published = row.page.as_ref().map_or(&*row.found.published_at, |page| &page.published_at);
    let changed = row.page.as_ref().is_some_and(|page| page.modified);
    let published = if changed { &format!("modified {published}") } else { published };
    facts.push(match days {
        Some(days @ 0..) => format!("{published}, {days} d old"),
        Some(days) => format!("{published}, {} d after {}", days.unsigned_abs(), plan.as_of),
        None if row.page.is_none() && published.is_empty() => "unknown date".to_owned(),
        None if published.is_empty() => "undated".to_owned(),
        None => published.to_owned(),
    });
    if let Some(trust) = trust(row, plan) {
        facts.push(format!("trust {}", format::confidence(trust)));
    }
    if let Some(page) = &row.page {
        facts.push(format::count_noun(page.chars, "character"));
        facts.extend(aside(page));
    }
    facts
}

/// What the tool reports about the fetch: truncated, cached, or redirected.
fn aside(page: &SourcePage) -> Option<String> {
    if page.result_field("cut").and_then(serde_json::Value::as_bool) == Some(true) {
        return Some("truncated".to_owned());
    }
    if let Some(age) = page.result_field("cached_s").and_then(serde_json::Value::as_u64) {
        return Some(format!(
            "cached {} ago",
            time::duration_text(std::time::Duration::from_secs(age))
        ));
    }
    let hops =
        page.result_field("redirects").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    (hops > 0).then(|| format::count_noun(hops as u64, "redirect"))
}

/// Draws the text with its quotes marked, and the note's name where its quote begins.
fn marked_text(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    (area, gutter): (Rect, bool),
    lines: &PageLines<'_>,
    reading: &PageLayout,
    buf: &mut Buffer,
) {
    let height = usize::from(area.height);
    let theme = cx.theme;
    let plain = theme.style(StyleRole::Text);
    let top = view.page_top(data, area.width, height);
    let shown = view.page_note(data);
    // Of two overlapping quotes the selected one is marked.
    let mut quotes: Vec<_> = reading.quotes().iter().collect();
    quotes.sort_by_key(|quote| (quote.solids.start, Some(&quote.note) != shown));
    let mut row = 0;
    let mut at = top.line;
    while row < height && at < lines.count() {
        let skip = if at == top.line { top.row } else { 0 };
        for (from, text) in lines.wrapped_rows(at).iter().skip(skip) {
            if row == height {
                break;
            }
            let here = line(area, row as u16);
            let until = from + solids(text);
            let mut stretches = Vec::new();
            let mut reached = *from;
            for quote in &quotes {
                let within = quote.solids.start < until && quote.solids.end > *from;
                if !within || quote.solids.end <= reached {
                    continue;
                }
                let role =
                    if Some(&quote.note) == shown { StyleRole::Found } else { StyleRole::Strong };
                stretches.push((quote.solids.start.max(reached), plain));
                stretches.push((quote.solids.end, theme.style(role)));
                reached = quote.solids.end;
            }
            stretches.push((usize::MAX, plain));
            put_solids(&mut Pen::new(buf, here, cx.glyphs), text, *from, stretches);
            let begins = |quote: &&&Quote| (*from..until).contains(&quote.solids.start);
            if let Some(quote) = quotes.iter().find(begins).filter(|_| gutter) {
                let role = if Some(&quote.note) == shown { StyleRole::Key } else { StyleRole::Dim };
                let at = Rect { x: here.x - GUTTER, width: GUTTER, ..here };
                Pen::new(buf, at, cx.glyphs).put_within(quote.note.as_str(), 3, theme.style(role));
            }
            row += 1;
        }
        at += 1;
    }
    out_of_view(cx, area, top, lines, buf);
}

/// Draws why there is no page, and the advice.
fn dropped_source(
    cx: &DrawContext,
    area: Rect,
    row: &SourceRow,
    plan: &ResearchPlan,
    buf: &mut Buffer,
) {
    let sign = source_sign(cx.theme, &row.state);
    let (text, to_do) = missing_page_reason(row, plan);
    let word = source_state(row);
    let mut said = vec![(text.as_str(), StyleRole::Text)];
    said.extend(to_do.as_deref().map(|to_do| (to_do, StyleRole::Dim)));
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.glyph(sign.glyph, sign.style).space(1).put(&word, sign.style);
    // The search result's snippet is the only text.
    let snippet = format!("Search result: \"{}\"", row.found.snippet.trim());
    if !row.found.snippet.is_empty() {
        said.extend([("", StyleRole::Dim), (snippet.as_str(), StyleRole::Dim)]);
    }
    let below =
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area };
    put_texts(cx, below, &said, buf);
}

/// Draws wrapped texts below each other.
fn put_texts(cx: &DrawContext, area: Rect, texts: &[(&str, StyleRole)], buf: &mut Buffer) {
    let mut row = 0;
    for (text, role) in texts {
        let room = usize::from(area.height.saturating_sub(row));
        let (parts, _) = wrap_within(text, usize::from(area.width.max(1)), room);
        for part in &parts {
            Pen::new(buf, line(area, row), cx.glyphs).put(part, cx.theme.style(*role));
            row += 1;
        }
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
    fn wraps_huge_line_at_blanks() {
        let text = "word ".repeat(200_000);
        let reading = reading(&text);
        assert!(reading.lines.len() > 200);
        for line in &reading.lines {
            assert!(line.bytes.len() <= LONGEST);
            assert!(text[line.bytes.clone()].starts_with("word"));
        }
    }

    #[test]
    fn joins_hard_wrapped_paragraph() {
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
