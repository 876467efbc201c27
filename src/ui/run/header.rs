//! The two header rows of a run: who and what, then its progress, or what stands in its way.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{bar, middle};
use crate::app::run::RunPage;
use crate::app::run::told::{by, model};
use crate::event::Boundary;
use crate::event::kind::{CollaborationPlan, ModelLabel};
use crate::event::world::collaboration::{Collaboration, Round};
use crate::event::world::{Stage, World};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::{Glyph, Glyphs};
use crate::ui::text::{Pen, columns, elide, elide_middle};
use crate::ui::theme::Role;

/// The columns from which on a round has a bar.
const LEAST: u16 = 16;
/// The least columns of a round: its number, its glyph, a gap.
const BARE: u16 = 7;
/// The least columns that tell who answers.
const LEAST_MODEL: usize = 24;
/// Columns of the bar of messages.
const BAR: u16 = 8;

/// A piece of the first row. The higher its rank, the sooner it is left out.
struct Piece {
    rank: u8,
    text: String,
    style: Style,
    /// Columns of blanks after it.
    gap: u16,
}

/// Who and what: run, pattern, title, state, round, clock, messages, model.
pub fn first(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let theme = cx.theme;
    let (dim, plain) = (theme.style(Role::Dim), theme.style(Role::Text));
    let piece = |rank, text: String, style, gap| Piece { rank, text, style, gap };
    let head = world.head.as_ref();
    let title = head.map_or("", |head| head.title.as_str());
    let mut pieces = vec![
        piece(5, "roundtable".to_owned(), theme.style(Role::Strong), 1),
        piece(5, cx.glyphs.of(Glyph::Vertical).to_owned(), theme.style(Role::Border), 1),
        piece(3, page.id().to_string(), dim, 2),
    ];
    if let Some(head) = head {
        pieces.push(piece(7, head.plan.name().to_owned(), dim, 2));
    }
    pieces.push(piece(0, String::new(), theme.style(Role::Strong), 3));
    let state = if page.is_scrubbed() {
        format!("{} PLAYHEAD", cx.glyphs.of(Glyph::Playhead))
    } else {
        let sign = theme.run(world);
        format!("{} {}", cx.glyphs.of(sign.glyph), sign.word)
    };
    let style =
        if page.is_scrubbed() { theme.style(Role::Playhead) } else { theme.run(world).style };
    pieces.push(piece(1, state, style, 3));
    let table = world.collaboration();
    if let Some((table, plan)) = table {
        let round = table.current().map_or(0, |round| round.number);
        pieces.push(piece(2, format!("round {round}/{}", plan.max_rounds), plain, 3));
    }
    let clock = format::clock(world.active(page.time(cx.now)));
    pieces.push(piece(1, clock, plain, 3));
    if let Some((table, plan)) = table {
        let text = format!("msgs {}/{}", table.messages, plan.max_messages);
        pieces.push(piece(4, text, plain, 1));
        pieces.push(piece(8, " ".repeat(usize::from(BAR)), plain, 2));
    }
    // Whether it is live or scripted is never left out.
    let who = head.map(|head| &head.model);
    let least_who = who.map_or_else(String::new, |who| model_within(who, LEAST_MODEL, cx.glyphs));
    pieces.push(piece(1, least_who.clone(), dim, 0));
    let width = usize::from(area.width.saturating_sub(2));
    let taken = |pieces: &[Piece]| -> usize {
        pieces.iter().map(|piece| columns(&piece.text) + usize::from(piece.gap)).sum()
    };
    // The title takes what is left, down to this much of it.
    let least = (columns(title) + 2).min(16);
    while taken(&pieces) + least > width {
        let most = pieces.iter().map(|piece| piece.rank).max().filter(|rank| *rank > 1);
        let Some(most) = most else { break };
        pieces.retain(|piece| piece.rank != most);
    }
    // The title is cut before the model's name.
    if let (Some(who), Some(last)) = (who, pieces.last_mut()) {
        last.text.clear();
        let room = width.saturating_sub(taken(&pieces) + least.min(12));
        let text = model_within(who, room.max(columns(&least_who)), cx.glyphs);
        if let Some(last) = pieces.last_mut() {
            last.text = text;
        }
    }
    // Narrower gaps and a shorter bar before a shorter title.
    if taken(&pieces) + columns(title) + 2 > width {
        for piece in &mut pieces {
            piece.gap = piece.gap.min(2);
        }
    }
    let over = (taken(&pieces) + columns(title) + 2).saturating_sub(width).min(4);
    if let Some(bar) = pieces.iter_mut().find(|piece| piece.rank == 8) {
        bar.text.truncate(usize::from(BAR) - over);
    }
    if !pieces.iter().any(|piece| piece.rank == 8)
        && let Some(messages) = pieces.iter_mut().find(|piece| piece.rank == 4)
    {
        messages.gap = 2;
    }
    let room = width.saturating_sub(taken(&pieces));
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    for piece in &pieces {
        match piece.rank {
            0 if title.is_empty() => {}
            0 => {
                let title = elide(title, room.saturating_sub(2), cx.glyphs);
                pen.put(&format!("\"{title}\""), piece.style).space(piece.gap);
            }
            8 => {
                if let Some((table, plan)) = table {
                    let width = piece.text.len() as u16;
                    bar(cx, &mut pen, table.messages.into(), plan.max_messages.into(), width);
                }
                pen.space(piece.gap);
            }
            _ => {
                pen.put(&piece.text, piece.style).space(piece.gap);
            }
        }
    }
}

/// Who answers in about `width` columns: the model's name is cut first, then its host.
fn model_within(label: &ModelLabel, width: usize, glyphs: Glyphs) -> String {
    let whole = model(label);
    let ModelLabel::Live { name, host } = label else { return whole };
    if columns(&whole) <= width {
        return whole;
    }
    let room = width.saturating_sub(columns("live  @ ") + columns(host));
    if room >= 4 {
        return format!("live {} @ {host}", elide(name, room, glyphs));
    }
    let room = width.saturating_sub(columns("live @ "));
    if room >= 4 {
        return format!("live @ {}", elide_middle(host, room, glyphs));
    }
    "live".to_owned()
}

/// The run's progress, and at its end what a person should know just now.
pub fn second(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some((table, plan)) = world.collaboration() else { return };
    let row = Rect { x: area.x + 1.min(area.width), width: area.width.saturating_sub(2), ..area };
    let room = usize::from(row.width);
    let (mut note, role, matters) = note(page, cx, world, table, plan);
    if let Some((short, _)) = note.split_once('\n') {
        // Why and where, and what to do, or at least who says so.
        let whole = note.replacen('\n', ": ", 1);
        note = if columns(&whole) <= room { whole } else { format!("{short}: 2 says what to do") };
    }
    let full = columns(&note);
    // What matters is said whole, whatever it costs the track; the rule only where there is room.
    let width = if matters {
        full.min(room)
    } else if full + 3 + usize::from(LEAST) * (plan.max_rounds as usize).min(3) <= room {
        full
    } else {
        0
    };
    let width = width as u16;
    let track = row.width.saturating_sub(if width > 0 { width + 3 } else { 0 });
    let bare = u32::from(BARE) * plan.max_rounds.clamp(1, 3);
    let with_track = u32::from(track) >= bare.min(u32::from(LEAST));
    if with_track {
        rounds(page, cx, Rect { width: track, ..row }, table, plan, buf);
    }
    let at = if with_track { Rect { x: row.right() - width, width, ..row } } else { row };
    Pen::new(buf, at, cx.glyphs).put(&note, cx.theme.style(role));
}

/// What a person should know just now, after a line end what to do about it, and whether it
/// matters more than the track.
fn note(
    page: &RunPage,
    cx: &Cx,
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
) -> (String, Role, bool) {
    if page.is_scrubbed() {
        let (facts, all) = (page.shown_facts(), page.log().len());
        // What the run itself does meanwhile.
        let run = match &page.world().stage {
            Stage::Empty | Stage::Running => "the run goes on, ",
            Stage::Pausing { .. } => "the run is PAUSING, ",
            Stage::Paused { .. } => "the run is PAUSED, ",
            Stage::Closed => "",
        };
        let text = format!("after event {facts} of {all}: {run}Space or G goes back");
        return (text, Role::Playhead, true);
    }
    match (&world.stage, &world.closed) {
        (Stage::Closed, Some(closed)) if !closed.reason.is_success() => {
            let place = closed.phase.as_deref().map(|phase| format!(" in {phase}"));
            let mut text = format!(
                "{} {}{}",
                cx.glyphs.of(cx.theme.ended(closed.reason.class()).glyph),
                closed.reason,
                place.unwrap_or_default()
            );
            if let Some(advice) = closed.reason.advice() {
                text.push_str(&format!("\n{advice}"));
            }
            let cancelled = closed.reason.class() == crate::event::StopClass::Cancelled;
            (text, if cancelled { Role::Off } else { Role::Failed }, true)
        }
        (Stage::Paused { at, .. }, _) => {
            let place = at.first().map_or_else(String::new, |at| at.for_people());
            let more = match at.len() {
                0 | 1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            (format!("rests before {place}{more}: Space goes on, s steps"), Role::Paused, true)
        }
        (Stage::Pausing { by: who }, _) => {
            let open = world.tally.open();
            let text = match open {
                0 => format!("pausing, {}, at the next boundary", by(*who)),
                calls => {
                    format!(
                        "pausing, {}: {} to finish first",
                        by(*who),
                        format::things(calls, "call")
                    )
                }
            };
            (text, Role::Paused, true)
        }
        _ => match table.decision() {
            Some(decision) => {
                let sign = cx.theme.decision(decision);
                let role = match sign.glyph {
                    Glyph::Go => Role::Go,
                    Glyph::Caution => Role::Caution,
                    _ => Role::Block,
                };
                (format!("decided {} {}", cx.glyphs.of(sign.glyph), sign.word), role, true)
            }
            None => (middle::rule(plan), Role::Dim, false),
        },
    }
}

/// The rounds as one track: what is done, what is on its way, what is to come.
fn rounds(
    page: &RunPage,
    cx: &Cx,
    area: Rect,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let current = table.current().map_or(0, |round| round.number);
    let last = plan.max_rounds.max(current).max(1);
    // Bars are cut before a round is left out.
    let all = last.saturating_mul(u32::from(BARE)) <= u32::from(area.width);
    let fit = if all { last } else { u32::from((area.width / LEAST).max(1)).min(last) };
    // The current round, what comes next, and as much of what was as fits.
    let from = current.max(1).saturating_sub(fit.saturating_sub(2)).clamp(1, last - fit + 1);
    let to = from + fit - 1;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let dim = cx.theme.style(Role::Dim);
    if from > 1 {
        pen.glyph(Glyph::Ellipsis, dim).space(1);
    }
    let brief = page.shown().breakpoints.contains(&Boundary::Finalize.id());
    let tail = if to < last { 2 } else { 0 } + if brief { 9 } else { 0 };
    let share = pen.left().saturating_sub(tail) / u16::try_from(fit).unwrap_or(u16::MAX).max(1);
    for number in from..=to {
        let end = pen.x() + share;
        one_round(page, cx, &mut pen, number, table.round(number), end);
        pen.to(end);
    }
    if to < last {
        pen.glyph(Glyph::Ellipsis, dim);
    }
    if brief {
        pen.space(1).glyph(Glyph::Breakpoint, cx.theme.style(Role::Paused));
        pen.put(" brief", cx.theme.style(Role::Text));
    }
}

fn one_round(page: &RunPage, cx: &Cx, pen: &mut Pen, number: u32, round: Option<&Round>, end: u16) {
    let theme = cx.theme;
    let live = page.shown().is_live();
    let paused = matches!(page.shown().stage, Stage::Paused { .. });
    let (glyph, role, text) = match round {
        None if !live => (Glyph::Off, Role::Off, String::new()),
        None => (Glyph::Waiting, Role::Waiting, String::new()),
        Some(round) => match round.closed {
            Some(closed) => (Glyph::Done, Role::Done, format::took(closed.since(round.opened))),
            None => {
                let (came, asked) = (round.contributions().count(), round.asked());
                let long = format!("{came} of {asked} seats in");
                let fits = columns(&long) + 8 <= usize::from(end.saturating_sub(pen.x()));
                let text = if fits { long } else { format!("{came}/{asked}") };
                match (live, paused) {
                    (true, false) => (Glyph::Running, Role::Running, text),
                    (true, true) => (Glyph::Paused, Role::Paused, text),
                    (false, _) => (Glyph::Failed, Role::Failed, text),
                }
            }
        },
    };
    let style = theme.style(role);
    pen.put(&format!("R{number} "), theme.style(Role::Text));
    pen.glyph(glyph, style).space(1);
    let left = |pen: &Pen| end.saturating_sub(pen.x() + 2);
    // Where the run will rest is said, whatever it costs the bar.
    let at = Boundary::Round(number).id();
    if round.is_none() && live && page.shown().breakpoints.contains(&at) {
        let word = format!("{} break", cx.glyphs.of(Glyph::Breakpoint));
        let fits = columns(&word) as u16 <= left(pen) + 1;
        let word = if fits { &word } else { cx.glyphs.of(Glyph::Breakpoint) };
        pen.put(word, theme.style(Role::Paused)).space(1);
    }
    if !text.is_empty() && columns(&text) as u16 + 3 <= left(pen) {
        pen.put(&text, style).space(1);
    }
    let width = left(pen);
    let empty = theme.style(Role::TrackEmpty);
    match round {
        None if !live => pen,
        None => pen.glyphs(Glyph::TrackEmpty, width, empty),
        Some(round) if round.closed.is_some() => {
            pen.glyphs(Glyph::TrackFull, width, theme.style(Role::Track))
        }
        Some(round) => {
            let (came, asked) = (round.contributions().count(), round.asked().max(1));
            let full = (usize::from(width) * came / asked).min(usize::from(width)) as u16;
            let tip = u16::from(full < width);
            let now = theme.style(if live { Role::TrackNow } else { Role::Failed });
            pen.glyphs(Glyph::TrackFull, full, now).glyphs(Glyph::TrackTip, tip, now);
            pen.glyphs(Glyph::TrackEmpty, width - full - tip, empty)
        }
    };
}

/// How long the run has been going at the shown moment, pauses left out.
pub fn active(page: &RunPage, now: Duration) -> Duration {
    page.shown().active(page.time(now))
}
