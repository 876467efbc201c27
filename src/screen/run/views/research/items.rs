//! Panes 3 and 4 of research: the answer's sentences with their citations; the notes with their
//! quotes and conflicts. An item has several texts below one another, of which only the rows in
//! view are wrapped.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::ResearchView;
use super::answer::answer_items;
use super::notes::note_items;
use super::page::solids;
use super::sources::lead;
use crate::log::facts::research::NoteId;
use crate::screen::layout::line;
use crate::screen::list::row_style;
use crate::screen::run::data::RunData;
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::screen::text::Pen;
use crate::screen::widgets::{empty, out_of_view};
use crate::screen::{DrawContext, list};
use crate::words::glyph::Glyph;
use crate::words::measure::wrap_within;
use crate::words::styled::{StyleRole, StyledPart};
use crate::words::verdict::why_stopped;

/// Maximum bytes of one text that are used.
const MAX_BYTES: usize = 8 * 1024;

/// The sign at the start of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemSign {
    None,
    /// It succeeded.
    Done,
    Running,
    Waiting,
    /// It deserves attention.
    Alert,
    Refused,
    Failed,
    /// It was dropped.
    Off,
}

/// The thing that an item is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemSubject {
    /// Plain text; it cannot be inspected.
    Text,
    /// A sentence of the answer, by its index.
    Sentence(usize),
    Note(NoteId),
    /// Two notes that are compared.
    Pair(NoteId, NoteId),
}

/// A text of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemText<'a> {
    pub text: Cow<'a, str>,
    pub role: StyleRole,
    /// Parts that follow it on the same line.
    pub tail: Vec<StyledPart>,
    /// The text in the other column, if any.
    pub other: Option<Cow<'a, str>>,
    /// Maximum rows that are shown.
    pub max_rows: usize,
    /// Whether the end is shown rather than the start, as for a partial reply.
    pub shows_end: bool,
}

impl<'a> ItemText<'a> {
    /// A text of at most `most` rows.
    pub fn of(text: impl Into<Cow<'a, str>>, role: StyleRole, max_rows: usize) -> Self {
        let text = text.into();
        Self { text, role, tail: Vec::new(), other: None, max_rows, shows_end: false }
    }
}

/// A row of a wrapped part.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRow {
    pub text: String,
    /// Number of non-blank characters of the part before this row.
    pub solids: usize,
    /// The text in the other column.
    pub other: Option<String>,
    /// Whether the part is cut off after this row.
    pub cut: bool,
}

impl ItemText<'_> {
    /// Whether the two texts are shown in two columns at this width.
    pub fn has_two_columns(&self, width: u16) -> bool {
        /// Minimum width of a readable column.
        const MIN_COLUMN: u16 = 22;
        self.other.is_some() && width >= 2 * MIN_COLUMN + GAP
    }

    pub fn column_width(width: u16) -> u16 {
        width.saturating_sub(GAP) / 2
    }

    /// The text with the texts that follow it.
    fn whole(&self) -> Cow<'_, str> {
        if self.tail.is_empty() {
            return Cow::Borrowed(used_part(&self.text));
        }
        let mut text = used_part(&self.text).to_owned();
        for part in &self.tail {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&part.text);
        }
        Cow::Owned(text)
    }

    /// The roles of the text and of what follows it: each applies up to this many non-blank
    /// characters.
    pub fn roles(&self) -> Vec<(usize, StyleRole)> {
        let mut until = solids(used_part(&self.text));
        let mut roles = vec![(until, self.role)];
        for part in &self.tail {
            until += solids(&part.text);
            roles.push((until, part.role.unwrap_or(self.role)));
        }
        roles
    }

    /// The rows of the part at this width.
    pub fn rows(&self, width: u16) -> Vec<ItemRow> {
        if self.shows_end {
            let (rows, _) = crate::words::measure::wrap_end(
                &self.text,
                usize::from(width.max(1)),
                self.max_rows,
            );
            let row = |text| ItemRow { text, solids: 0, other: None, cut: false };
            return rows.into_iter().map(row).collect();
        }
        if self.has_two_columns(width) {
            let half = usize::from(Self::column_width(width));
            let (left, cut_left) = wrap_within(used_part(&self.text), half, self.max_rows);
            let other = self.other.as_deref().unwrap_or_default();
            let (right, cut_right) = wrap_within(used_part(other), half, self.max_rows);
            let count = left.len().max(right.len());
            let row = |nth: usize| ItemRow {
                text: left.get(nth).cloned().unwrap_or_default(),
                solids: 0,
                other: right.get(nth).cloned(),
                cut: (cut_left || cut_right) && nth + 1 == count,
            };
            return (0..count).map(row).collect();
        }
        let mut rows = whole_rows(&self.whole(), width, self.max_rows);
        if let Some(other) = &self.other {
            rows.extend(whole_rows(used_part(other), width, self.max_rows));
        }
        rows
    }
}

/// Blank columns between the two texts.
const GAP: u16 = 3;

fn whole_rows(text: &str, width: u16, most: usize) -> Vec<ItemRow> {
    let (rows, cut) = wrap_within(text, usize::from(width.max(1)), most);
    let count = rows.len();
    let mut before = 0;
    let item_rows = rows.into_iter().enumerate().map(|(nth, text)| {
        let from = before;
        before += solids(&text);
        ItemRow { text, solids: from, other: None, cut: cut && nth + 1 == count }
    });
    item_rows.collect()
}

/// The used part of a text, with each run of white space as one blank.
pub fn single_spaced(text: &str) -> String {
    used_part(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The used part of a text: its first [`MAX_BYTES`] bytes.
fn used_part(text: &str) -> &str {
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// An item of a list: a sign, a name and its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct PaneItem<'a> {
    pub subject: ItemSubject,
    /// The name before its texts; may be empty.
    pub name: Cow<'a, str>,
    pub sign: ItemSign,
    /// Its texts, from top to bottom.
    pub parts: Vec<ItemText<'a>>,
}

impl<'a> PaneItem<'a> {
    /// An item that is one plain text.
    pub fn text(sign: ItemSign, part: ItemText<'a>) -> Self {
        Self { subject: ItemSubject::Text, name: "".into(), sign, parts: vec![part] }
    }

    /// A blank row.
    pub fn gap() -> Self {
        Self::text(ItemSign::None, ItemText::of("", StyleRole::Dim, 1))
    }
}

/// A list of items, each built on demand.
pub trait ItemList {
    /// Number of items.
    fn count(&self) -> usize;
    /// The item with this index.
    fn item(&self, at: usize) -> Option<PaneItem<'_>>;
    /// Columns for the names before the texts.
    fn names(&self) -> u16;
}

/// Columns before the names: the mark of the selection, the sign, a blank.
pub const SIGN: u16 = 3;

/// Columns after the texts.
const AFTER: u16 = 1;

/// A list of items whose lines wrap.
pub struct WrappedItems<'a, I> {
    pub items: &'a I,
    /// Columns of the pane.
    pub width: u16,
}

impl<I: ItemList> WrappedItems<'_, I> {
    pub fn text_columns(&self) -> u16 {
        self.width.saturating_sub(SIGN + self.items.names() + 1 + AFTER).max(1)
    }
}

impl<I: ItemList> WrappingLines for WrappedItems<'_, I> {
    fn count(&self) -> usize {
        self.items.count()
    }

    fn rows(&self, line: usize) -> usize {
        let Some(item) = self.items.item(line) else { return 1 };
        let rows: usize = item.parts.iter().map(|part| part.rows(self.text_columns()).len()).sum();
        rows.max(1)
    }
}

pub(crate) fn answer(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(items) = answer_items(data) else { return };
    let lines = WrappedItems { items: &items, width: area.width };
    let (top, selected) = view.answer_at(data, &lines, usize::from(area.height));
    draw(cx, area, &lines, top, selected, buf);
}

pub(crate) fn notes(
    view: &ResearchView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(items) = note_items(data) else { return };
    if items.count() == 0 {
        let world = data.shown();
        let has_sources = world.research().is_some_and(|research| !research.sources.is_empty());
        let text = match world.progress.is_live() {
            true => {
                "No notes yet: they are taken from pages that were read. Pane 1 has the sources."
                    .to_owned()
            }
            false if has_sources && world.stop_cause().is_none() => {
                "No notes: no source yielded one. Pane 1 has the reason for each.".to_owned()
            }
            false => format!("No notes: {}.", why_stopped(world)),
        };
        return empty(cx, area, &text, buf);
    }
    let lines = WrappedItems { items: &items, width: area.width };
    let (top, selected) = view.notes_at(data, &lines, usize::from(area.height));
    draw(cx, area, &lines, top, selected, buf);
}

fn draw<I: ItemList>(
    cx: &DrawContext,
    area: Rect,
    lines: &WrappedItems<'_, I>,
    top: Scroll,
    selected: Option<usize>,
    buf: &mut Buffer,
) {
    let height = usize::from(area.height);
    let mut row = 0;
    let mut at = top.line;
    while row < height
        && let Some(item) = lines.items.item(at)
    {
        let skip = if at == top.line { top.row } else { 0 };
        let mut nth = 0;
        for part in &item.parts {
            let roles = part.roles();
            let rows = part.rows(lines.text_columns());
            let last = rows.len().saturating_sub(1);
            for (of_part, text_row) in rows.iter().enumerate() {
                if nth >= skip && row < height {
                    let here = line(area, row as u16);
                    row_style(cx, here, selected == Some(at), buf);
                    let mut pen = Pen::new(buf, here, cx.glyphs);
                    if nth == 0 {
                        head(cx, &mut pen, &item, selected == Some(at), lines.items.names());
                    }
                    pen.advance_to(here.x + SIGN + lines.items.names() + 1);
                    text(cx, &mut pen, part, text_row, &roles, lines.text_columns());
                    if part.shows_end && of_part == last {
                        pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
                    }
                    row += 1;
                }
                nth += 1;
            }
        }
        at += 1;
    }
    out_of_view(cx, area, top, lines, buf);
}

/// Draws the selection mark, the glyph and the name of an item.
fn head(cx: &DrawContext, pen: &mut Pen, item: &PaneItem<'_>, selected: bool, names: u16) {
    list::mark(cx, pen, selected);
    match lead(item.sign) {
        Some((glyph, role)) => pen.glyph(glyph, cx.theme.style(role)),
        None => pen.space(1),
    };
    pen.space(1).name(&item.name, names, cx.theme.style(StyleRole::Strong));
}

/// Draws a row of a text, with its suffix in its own style.
fn text(
    cx: &DrawContext,
    pen: &mut Pen,
    part: &ItemText<'_>,
    row: &ItemRow,
    roles: &[(usize, StyleRole)],
    room: u16,
) {
    let style = |role| cx.theme.style(role);
    if part.has_two_columns(room) && !part.shows_end {
        let half = ItemText::column_width(room);
        let start = pen.x();
        pen.put_within(&row.text, half, style(part.role));
        pen.advance_to(start + half + 1)
            .glyph(Glyph::Vertical, cx.theme.style(StyleRole::Border))
            .space(1);
        pen.put_within(row.other.as_deref().unwrap_or_default(), half, style(part.role));
        return;
    }
    let stretches = roles.iter().map(|(until, role)| (*until, style(*role)));
    put_solids(pen, &row.text, row.solids, stretches);
    if row.cut {
        pen.glyph(Glyph::Ellipsis, cx.theme.style(StyleRole::Dim));
    }
}

/// Draws a row in stretches. The end of each stretch is counted in non-white-space characters, of
/// which `before` precede the row. The last stretch extends to the row's end.
pub(super) fn put_solids(
    pen: &mut Pen,
    row: &str,
    before: usize,
    stretches: impl IntoIterator<Item = (usize, Style)>,
) {
    let mut rest = row;
    let mut at = before;
    let mut last = None;
    for (until, style) in stretches {
        last = Some(style);
        if until <= at {
            continue;
        }
        let end = rest
            .char_indices()
            .filter(|(_, c)| !c.is_whitespace())
            .nth(until - at)
            .map_or(rest.len(), |(end, _)| end);
        // Blanks between two stretches have no style.
        let (piece, after) = rest.split_at(end);
        let words = piece.trim_end();
        pen.put(words, style).put(&piece[words.len()..], Style::default());
        at += piece.chars().filter(|c| !c.is_whitespace()).count();
        rest = after;
        if rest.is_empty() {
            return;
        }
    }
    pen.put(rest, last.unwrap_or_default());
}
