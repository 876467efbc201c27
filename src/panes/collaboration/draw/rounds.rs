//! The second header row of a collaboration: its rounds.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::event::Boundary;
use crate::event::world::RunState;
use crate::narrate::glyph::Glyph;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::{Collaboration, Round};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Minimum width of a round with a bar.
pub(crate) const LEAST: u16 = 16;
/// Minimum width of a round: its number, its glyph, a gap.
pub(crate) const BARE: u16 = 7;

/// Draws the closed, current and future rounds.
pub(crate) fn render(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let current = table.current().map_or(0, |round| round.number);
    let last = plan.max_rounds.max(current).max(1);
    // Bars are dropped before rounds are left out.
    let all = last.saturating_mul(u32::from(BARE)) <= u32::from(area.width);
    let fit = if all { last } else { u32::from((area.width / LEAST).max(1)).min(last) };
    // The current round, the next one, and as many earlier ones as fit.
    let from = current.max(1).saturating_sub(fit.saturating_sub(2)).clamp(1, last - fit + 1);
    let to = from + fit - 1;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let dim = cx.theme.style(StyleRole::Dim);
    if from > 1 {
        pen.glyph(Glyph::Ellipsis, dim).space(1);
    }
    let brief = data.shown().settings.breakpoints.contains(&Boundary::Finalize.id());
    let tail = if to < last { 2 } else { 0 } + if brief { 9 } else { 0 };
    let share = pen.left().saturating_sub(tail) / u16::try_from(fit).unwrap_or(u16::MAX).max(1);
    for number in from..=to {
        let end = pen.x() + share;
        one_round(data, cx, &mut pen, number, table.round(number), end);
        pen.advance_to(end);
    }
    if to < last {
        pen.glyph(Glyph::Ellipsis, dim);
    }
    if brief {
        pen.space(1).glyph(Glyph::Breakpoint, cx.theme.style(StyleRole::Paused));
        pen.put(" brief", cx.theme.style(StyleRole::Text));
    }
}

fn one_round(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    number: u32,
    round: Option<&Round>,
    end: u16,
) {
    let theme = cx.theme;
    let live = data.shown().progress.is_live();
    let paused = matches!(data.shown().progress.stage, RunState::Paused { .. });
    let (glyph, role, text) = match round {
        None if !live => (Glyph::Off, StyleRole::Off, String::new()),
        None => (Glyph::Waiting, StyleRole::Waiting, String::new()),
        Some(round) => match round.closed {
            Some(closed) => {
                let took = data.shown().progress.active_between(round.opened, closed);
                (Glyph::Done, StyleRole::Done, format::duration_text(took))
            }
            None => {
                let (came, asked) = (round.contributions().count(), round.asked_seats());
                let long = format!("{came} of {asked} answered");
                let fits = columns(&long) + 8 <= usize::from(end.saturating_sub(pen.x()));
                let text = if fits { long } else { format!("{came}/{asked}") };
                match (live, paused) {
                    (true, false) => (Glyph::Running, StyleRole::Running, text),
                    (true, true) => (Glyph::Paused, StyleRole::Paused, text),
                    (false, _) => (Glyph::Failed, StyleRole::Failed, text),
                }
            }
        },
    };
    let style = theme.style(role);
    pen.put(&format!("R{number} "), theme.style(StyleRole::Text));
    pen.glyph(glyph, style).space(1);
    let left = |pen: &Pen| end.saturating_sub(pen.x() + 2);
    // A breakpoint is always shown, even if the bar gets shorter.
    let at = Boundary::Round(number).id();
    if round.is_none() && live && data.shown().settings.breakpoints.contains(&at) {
        let word = format!("{} break", cx.glyphs.symbol(Glyph::Breakpoint));
        let fits = columns(&word) as u16 <= left(pen) + 1;
        let word = if fits { &word } else { cx.glyphs.symbol(Glyph::Breakpoint) };
        pen.put(word, theme.style(StyleRole::Paused)).space(1);
    }
    if !text.is_empty() && columns(&text) as u16 + 3 <= left(pen) {
        pen.put(&text, style).space(1);
    }
    let width = left(pen);
    let empty = theme.style(StyleRole::TrackEmpty);
    match round {
        None if !live => pen,
        None => pen.glyphs(Glyph::TrackEmpty, width, empty),
        Some(round) if round.closed.is_some() => {
            pen.glyphs(Glyph::TrackFull, width, theme.style(StyleRole::Track))
        }
        Some(round) => {
            let (came, asked) = (round.contributions().count(), round.asked_seats().max(1));
            let full = (usize::from(width) * came / asked).min(usize::from(width)) as u16;
            let tip = u16::from(full < width);
            let now = theme.style(if live { StyleRole::TrackNow } else { StyleRole::Failed });
            pen.glyphs(Glyph::TrackFull, full, now).glyphs(Glyph::TrackTip, tip, now);
            pen.glyphs(Glyph::TrackEmpty, width - full - tip, empty)
        }
    };
}
