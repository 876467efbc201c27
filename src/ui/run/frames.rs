//! The frames of a page's panes with their titles, and the tabs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw_view::{DrawView, PaneTitle};
use super::events;
use crate::app::layout::tabs;
use crate::app::run::{Areas, PageShape, Pane, RunPage};
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::ui::border::Borders;
use crate::ui::cx::DrawContext;
use crate::ui::pane::put_sign;
use crate::ui::sign::StateSign;
use crate::ui::text::{Pen, columns, on_border};

/// Draws the frames with their titles, and the tabs if one pane is shown at a time.
pub(super) fn render(
    page: &RunPage,
    view: &dyn DrawView,
    cx: &DrawContext,
    area: Rect,
    areas: &Areas,
    buf: &mut Buffer,
) {
    let mut borders = Borders::new(area);
    let shown = || Pane::ALL.into_iter().filter(|pane| areas.pane(*pane).is_some());
    for pane in shown().filter(|pane| *pane != page.focus()) {
        if let Some(frame) = areas.frame(pane) {
            borders.frame(frame, StyleRole::Border);
        }
    }
    if let Some(frame) = areas.frame(page.focus()) {
        borders.frame(frame, StyleRole::BorderFocus);
    }
    borders.paint(cx, buf);
    for pane in shown() {
        let Some((inside, frame)) = areas.pane(pane).zip(areas.frame(pane)) else { continue };
        title(page, view, cx, pane, areas.shape, (inside, frame), buf);
    }
    let names = page.views.tabs(page);
    if matches!(areas.shape, PageShape::Single | PageShape::Pair) && areas.tabs.height > 0 {
        let places = tabs(areas.tabs, names);
        for ((pane, name), place) in Pane::ALL.into_iter().zip(names).zip(places) {
            let role = if pane == page.focus() { StyleRole::Button } else { StyleRole::Dim };
            let text = format!(" {} {} ", pane.number(), name);
            Pen::new(buf, place, cx.glyphs).put(&text, cx.theme.style(role));
        }
    }
}

/// Draws a pane's number, title and right-aligned note on the upper line of its frame.
fn title(
    page: &RunPage,
    view: &dyn DrawView,
    cx: &DrawContext,
    pane: Pane,
    shape: PageShape,
    (inside, frame): (Rect, Rect),
    buf: &mut Buffer,
) {
    let row = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let focused = page.focus() == pane;
    let style = |role| on_border(cx.theme.style(role));
    let plain = style(if focused { StyleRole::Title } else { StyleRole::Text });
    let dim = style(StyleRole::Dim);
    let number = style(if focused { StyleRole::Key } else { StyleRole::Dim });
    let PaneTitle { text, sign, notes, aside } = match pane {
        Pane::Events => PaneTitle { aside: events::aside(page, cx.glyphs), ..PaneTitle::default() },
        _ => view.title(page, pane, cx, inside),
    };
    let width = columns(&aside) as u16;
    let aside_fits = width > 0 && row.width >= width + 24;
    let mut pen = Pen::new(buf, row, cx.glyphs);
    let keep = if aside_fits { width + 3 } else { 1 };
    let end = row.right().saturating_sub(keep);
    pen.put(" ", dim).put(&format!("{} ", pane.number()), number);
    let left = |pen: &Pen| end.saturating_sub(pen.x());
    if pane == Pane::Events {
        events::title(page, cx, &mut pen, end, plain);
    } else {
        let state = sign.map_or(0, |sign| columns(sign.word) as u16 + 3);
        let room = left(&pen).saturating_sub(state);
        pen.put_within(&text, room, plain);
        if let Some(sign) = sign {
            pen.put(" ", plain);
            put_sign(cx, &mut pen, StateSign { style: on_border(sign.style), ..sign });
        }
        for note in notes {
            if columns(&note) <= usize::from(left(&pen)) {
                pen.put(&note, dim);
            }
        }
    }
    pen.put(" ", dim);
    if shape == PageShape::Stacked {
        // The other pane in the same place.
        let other = match pane {
            Pane::First => Some(Pane::Second),
            Pane::Second => Some(Pane::First),
            Pane::Third => Some(Pane::Fourth),
            Pane::Fourth => Some(Pane::Third),
            Pane::Events => None,
        };
        if let Some(other) = other {
            let text = format!(" {} {} ", other.number(), page.views.tabs(page)[other as usize]);
            if pen.fits(columns(&text) + 2) {
                pen.glyphs(Glyph::Horizontal, 1, cx.theme.style(StyleRole::Border)).put(&text, dim);
            }
        }
    }
    if aside_fits {
        pen.advance_to(row.right() - width - 2).put(" ", dim).put(&aside, dim).put(" ", dim);
    }
}
