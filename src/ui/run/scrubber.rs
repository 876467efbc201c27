//! The scrubber: how much happened when, the moments worth a mark, and the playhead.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::line;
use crate::app::run::RunPage;
use crate::app::run::layout::scrubber_line;
use crate::event::Elapsed;
use crate::event::world::MarkKind;
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::Role;

/// Draws both rows.
pub(super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let theme = cx.theme;
    let dim = theme.style(Role::Dim);
    let end = page.head_time(cx.now);
    let track = scrubber_line(area);
    let head = page.world();
    let columns_of_time = head.activity.columns(end, usize::from(track.width));
    let most = columns_of_time.iter().copied().max().unwrap_or(0);
    let playhead = page.is_scrubbed().then(|| column(page.shown().at, end, track));

    if track.x > area.x {
        let clock = format::clock(std::time::Duration::ZERO);
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(&clock, dim);
    }
    let spark = theme.style(Role::Spark);
    let mut pen = Pen::new(buf, track, cx.glyphs);
    for (nth, count) in columns_of_time.iter().enumerate() {
        let x = track.x + nth as u16;
        if playhead == Some(x) {
            pen.glyph(Glyph::Playhead, theme.style(Role::Playhead));
        } else {
            // What lies behind the playhead steps back.
            let later = playhead.is_some_and(|playhead| x > playhead);
            pen.put(cx.glyphs.spark(*count, most), if later { dim } else { spark });
        }
    }
    let rest = Rect { x: track.right(), width: area.right() - track.right(), ..line(area, 0) };
    let mut pen = Pen::new(buf, rest, cx.glyphs);
    if playhead.is_none() {
        pen.glyph(Glyph::Playhead, theme.style(Role::Playhead));
    } else {
        pen.space(1);
    }
    pen.space(1).put(&format::clock(end.duration()), dim);
    if area.height > 1 {
        marks(page, cx, area, track, end, playhead, buf);
    }
}

/// The column that a time stands in.
fn column(at: Elapsed, end: Elapsed, track: Rect) -> u16 {
    let span = u128::from(end.0.max(1));
    let nth = u128::from(at.0.min(end.0)) * u128::from(track.width) / span;
    let last = u128::from(track.width.saturating_sub(1));
    track.x + u16::try_from(nth.min(last)).unwrap_or(0)
}

/// The second row: what matters more is set first, and what finds no room is left out.
fn marks(
    page: &RunPage,
    cx: &Cx,
    area: Rect,
    track: Rect,
    end: Elapsed,
    playhead: Option<u16>,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let row = line(area, 1);
    let mut taken: Vec<(u16, u16)> = Vec::new();
    let mut set = |x: u16, text: &str, role: Role, shift: u16, buf: &mut Buffer| {
        let width = u16::try_from(columns(text)).unwrap_or(u16::MAX);
        // A label that would run past the end ends there.
        let x = x.min(row.right().saturating_sub(width + 1)).max(row.x);
        let free = |x: &u16| taken.iter().all(|(from, to)| *x > *to || *x + width < *from);
        // Two moments close together stand beside each other, the earlier one in its place.
        let last = row.right().saturating_sub(width + 1).min(x + shift);
        let first = x.saturating_sub(shift).max(row.x);
        let places = (x..=last).chain((first..x).rev());
        let Some(x) = places.into_iter().find(free).filter(|_| width <= row.width && width > 0)
        else {
            return;
        };
        taken.push((x, x + width));
        let place = Rect { x, width, ..row }.intersection(row);
        Pen::new(buf, place, cx.glyphs).put(text, theme.style(role));
    };
    if let Some(x) = playhead {
        let text = format!("{} playhead", format::moment(page.shown().at));
        set(x, &text, Role::Playhead, 0, buf);
    }
    let (now, role) =
        if page.world().is_live() { ("now", Role::Notice) } else { ("end", Role::Dim) };
    set(track.right().saturating_sub(1), now, role, 0, buf);
    for rank in 0..3 {
        for mark in &page.world().marks {
            let (text, role, its) = label(cx, &mark.what);
            if its == rank {
                let shift = if rank < 2 { 9 } else { 1 };
                set(column(mark.at, end, track), &text, role, shift, buf);
            }
        }
    }
}

/// A mark's label, its look, and its rank: the lower, the sooner it is set.
fn label(cx: &Cx, what: &MarkKind) -> (String, Role, u8) {
    let glyph = |glyph: Glyph| cx.glyphs.of(glyph).to_owned();
    match what {
        MarkKind::Round(number) => (format!("R{number}"), Role::Text, 1),
        MarkKind::Finalize => ("brief".to_owned(), Role::Text, 1),
        MarkKind::Flag(_, true) => ("flag on".to_owned(), Role::Flag, 0),
        MarkKind::Flag(_, false) => ("flag off".to_owned(), Role::Flag, 0),
        MarkKind::Failed => (glyph(Glyph::Failed), Role::Failed, 0),
        MarkKind::Paused => (glyph(Glyph::Paused), Role::Paused, 2),
        MarkKind::Retry => (glyph(Glyph::Retry), Role::Retry, 2),
        MarkKind::Closed => (String::new(), Role::Dim, 3),
    }
}
