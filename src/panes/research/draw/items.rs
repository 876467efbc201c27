//! Panes 3 and 4 of research: the answer's sentences with their citations; the notes with their
//! quotes and conflicts. Only the rows in view are wrapped.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::sign::lead;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::scroll::Scroll;
use crate::narrate::glyph::Glyph;
use crate::narrate::verdict::why_stopped;
use crate::panes::research::answer::answer_items;
use crate::panes::research::item::{ItemList, ItemRow, ItemText, PaneItem, SIGN, WrappedItems};
use crate::panes::research::notes::note_items;
use crate::panes::research::selection::ResearchView;
use crate::ui::cx::DrawContext;
use crate::ui::pane::{empty, out_of_view};
use crate::ui::table::{self, row_style};
use crate::ui::text::Pen;
use crate::ui::theme::StyleRole;

/// Draws the answer.
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

/// Draws the notes.
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
            true => "No notes yet: they are taken from pages that were read. 1 shows the sources."
                .to_owned(),
            false if has_sources && world.stop_cause().is_none() => {
                "No source yielded a note. 1 shows the reason for each.".to_owned()
            }
            false => format!("No note was taken: {}.", why_stopped(world)),
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
    table::mark(cx, pen, selected);
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
pub(crate) fn put_solids(
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
