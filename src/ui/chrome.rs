//! What frames every screen: the status row and the key row. The header rows stand in `header`.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::glyph::Glyph;
use super::text::{Pen, columns};
use super::theme::Role;
use super::{Cx, header};
use crate::app::State;
pub use crate::app::layout::Parts;
use crate::app::notice::NoticeKind;
use crate::app::offer::{Offer, offers};
use crate::event::stop::StopClass;

/// Draws header, status and keys.
pub fn render(state: &State, cx: &Cx, parts: Parts, buf: &mut Buffer) {
    header::render(state, cx, parts.header, buf);
    status(state, cx, parts.status, buf);
    keys(state, cx, parts.keys, buf);
}

/// Counts on the left, the last news on the right.
fn status(state: &State, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    match state.watched() {
        Some(page) => {
            let tally = page.shown().tally;
            let going = tally.open().saturating_sub(tally.retrying);
            for (glyph, role, count) in [
                (Glyph::Done, Role::Done, tally.answered),
                (Glyph::Running, Role::Running, going),
                (Glyph::Retry, Role::Retry, tally.retrying),
                (Glyph::Failed, Role::Failed, tally.failed),
            ] {
                count_of(cx, &mut pen, glyph, role, count, "");
            }
        }
        None => {
            let ended = |class: fn(StopClass) -> bool| {
                let of = |page: &&crate::app::run::RunPage| {
                    let closed = page.world().closed.as_ref();
                    closed.is_some_and(|closed| class(closed.reason.class()))
                };
                state.runs.iter().filter(of).count() as u64
            };
            let live = state.live_runs().count() as u64;
            count_of(cx, &mut pen, Glyph::Running, Role::Running, live, "live");
            let done = ended(|class| class == StopClass::Ok);
            count_of(cx, &mut pen, Glyph::Done, Role::Done, done, "done");
            let cancelled = ended(|class| class == StopClass::Cancelled);
            count_of(cx, &mut pen, Glyph::Off, Role::Off, cancelled, "cancelled");
            let failed = ended(|class| !matches!(class, StopClass::Ok | StopClass::Cancelled));
            count_of(cx, &mut pen, Glyph::Failed, Role::Failed, failed, "stopped");
        }
    }
    let room = pen.left().saturating_sub(1);
    if let Some(notice) = state.notices.current() {
        let (mark, role) = match notice.kind {
            NoticeKind::Info => ("", Role::Notice),
            NoticeKind::Error | NoticeKind::Form => ("! ", Role::Failed),
        };
        let more = match state.notices.behind() {
            0 => String::new(),
            more => format!("  +{more}, Esc"),
        };
        let text = format!("{mark}{}", notice.text);
        let taken = u16::try_from(columns(&text) + columns(&more)).unwrap_or(u16::MAX);
        pen.space(room.saturating_sub(taken));
        let width = pen.left().saturating_sub(1 + columns(&more) as u16);
        pen.put_within(&text, width, cx.theme.style(role));
        pen.put(&more, cx.theme.style(Role::Dim));
    } else if let Some(starting) = state.starting.last() {
        let text = format!("starting {}", starting.title);
        let taken = u16::try_from(columns(&text)).unwrap_or(u16::MAX);
        pen.space(room.saturating_sub(taken));
        pen.put(&text, cx.theme.style(Role::Dim));
    }
}

fn count_of(cx: &Cx, pen: &mut Pen, glyph: Glyph, role: Role, count: u64, word: &str) {
    let style = cx.theme.style(if count == 0 { Role::Dim } else { role });
    pen.glyph(glyph, style).put(&format!(" {count}"), style);
    if !word.is_empty() {
        pen.space(1).put(word, style);
    }
    pen.space(2);
}

/// The keys of what is focused: what matters least goes first where not all fit.
fn keys(state: &State, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let mut row = offers(state, state.settings.ascii);
    let width = |offer: &Offer| columns(&offer.keys) + 1 + columns(offer.word) + 2;
    let room = usize::from(area.width.saturating_sub(1));
    while row.iter().map(width).sum::<usize>() > room + 2 {
        // Of those that matter least the last goes first.
        let Some(least) = row.iter().map(|offer| offer.rank).max() else { break };
        let Some(at) = row.iter().rposition(|offer| offer.rank == least) else { break };
        row.remove(at);
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    let (key, dim) = (cx.theme.style(Role::Key), cx.theme.style(Role::Dim));
    for offer in row {
        pen.put(&offer.keys, key).put(" ", dim).put(offer.word, dim).space(2);
    }
}
