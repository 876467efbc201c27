//! The two header rows: who and what, then the run's own progress.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Cx;
use super::format;
use super::glyph::Glyph;
use super::text::{Pen, columns};
use super::theme::Role;
use crate::app::State;
use crate::app::run::RunPage;
use crate::event::Elapsed;
use crate::event::kind::{CollaborationPlan, ModelLabel};
use crate::event::world::collaboration::Round;
use crate::event::world::{Collaboration, World};

/// Draws both rows.
pub fn render(state: &State, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let first = Rect { height: area.height.min(1), ..area };
    let second = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    match state.watched() {
        Some(page) => {
            run(state, page, cx, first, buf);
            progress(page.shown(), state.elapsed(page), cx, second, buf);
        }
        None => home(state, cx, first, second, buf),
    }
}

/// A piece of the first row; the higher its rank, the sooner it is left out.
struct Piece {
    text: String,
    style: Style,
    rank: u8,
}

fn brand(cx: &Cx, pen: &mut Pen) {
    pen.space(1).put("roundtable ", cx.theme.style(Role::Strong));
    pen.glyph(Glyph::Vertical, cx.theme.style(Role::Border)).space(1);
}

fn home(state: &State, cx: &Cx, first: Rect, second: Rect, buf: &mut Buffer) {
    let dim = cx.theme.style(Role::Dim);
    let mut pen = Pen::new(buf, first, cx.glyphs);
    brand(cx, &mut pen);
    pen.put("home", cx.theme.style(Role::Text));
    let live = state.live_runs().count();
    let text = match state.runs.len() {
        0 => "no run yet".to_owned(),
        runs => format!("{} in this session, {live} live", format::things(runs as u64, "run")),
    };
    let taken = u16::try_from(columns(&text)).unwrap_or(u16::MAX);
    let room = pen.left().saturating_sub(1);
    pen.space(room.saturating_sub(taken).max(2));
    let role = if live > 0 { Role::Running } else { Role::Dim };
    pen.put(&text, cx.theme.style(role));

    let mut pen = Pen::new(buf, second, cx.glyphs);
    pen.space(1);
    let broken = state.scenarios.iter().filter(|entry| entry.loaded.is_err()).count();
    pen.put(&format::things(state.scenarios.len() as u64, "scenario"), dim);
    if broken > 0 {
        pen.put(", ", dim).put(&format!("{broken} broken"), cx.theme.style(Role::Failed));
    }
    let tally = state.runs.iter().map(|page| page.world().tally);
    let (calls, tokens) = tally.fold((0, 0), |(calls, tokens), tally| {
        let usage = tally.usage;
        (calls + tally.calls, tokens + usage.prompt_tokens + usage.completion_tokens)
    });
    if calls > 0 {
        let text = format!("   {}, {} tok", format::things(calls, "call"), format::count(tokens));
        pen.put(&text, dim);
    }
    if !state.forgotten.is_empty() {
        let facts = state.forgotten.iter().map(|(_, facts)| facts).sum();
        let runs = format::things(state.forgotten.len() as u64, "finished run");
        let text =
            format!("   {} of {runs} dropped to bound memory", format::things(facts, "fact"));
        pen.put(&text, cx.theme.style(Role::Notice));
    }
}

fn run(state: &State, page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let dim = cx.theme.style(Role::Dim);
    let plain = cx.theme.style(Role::Text);
    let mut pieces = vec![Piece { text: page.id().as_str().to_owned(), style: dim, rank: 3 }];
    let mut add = |text: String, style, rank| pieces.push(Piece { text, style, rank });
    let title = world.head.as_ref().map_or("", |head| &head.title);
    if let Some(head) = &world.head {
        add(head.plan.name().to_owned(), dim, 6);
    }
    let sign = cx.theme.run(world);
    add(String::new(), plain, 0);
    add(format!("{} {}", cx.glyphs.of(sign.glyph), sign.word), sign.style, 1);
    let table = world.collaboration();
    if let Some((table, plan)) = table {
        let round = table.current().map_or(0, |round| round.number);
        add(format!("round {round}/{}", plan.max_rounds), plain, 2);
    }
    add(format::clock(world.active(state.elapsed(page))), plain, 1);
    let mut bar = None;
    if let Some((table, plan)) = table {
        add(format!("msgs {}/{}", table.messages, plan.max_messages), plain, 4);
        bar = Some((u64::from(table.messages), u64::from(plan.max_messages)));
    }
    if let Some(head) = &world.head {
        let text = match &head.model {
            ModelLabel::Scripted => "scripted".to_owned(),
            ModelLabel::Live { name, .. } => format!("live {name}"),
        };
        add(text, dim, 5);
    }
    let bar_columns = 8;
    let brand_columns = 13;
    // The title takes what is left, down to this many columns.
    let least = columns(title).min(14) + 2;
    let taken = |pieces: &[Piece]| {
        let bar = if pieces.iter().any(|piece| piece.rank == 4) { bar_columns + 1 } else { 0 };
        let texts = pieces.iter().filter(|piece| piece.rank > 0);
        brand_columns + bar + texts.map(|piece| columns(&piece.text) + 2).sum::<usize>()
    };
    while taken(&pieces) + least > usize::from(area.width) {
        let Some(most) = pieces.iter().map(|piece| piece.rank).max().filter(|rank| *rank > 1)
        else {
            break;
        };
        pieces.retain(|piece| piece.rank != most);
    }
    let room = usize::from(area.width).saturating_sub(taken(&pieces) + 2);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    brand(cx, &mut pen);
    for piece in pieces {
        match piece.rank {
            0 => {
                let width = u16::try_from(room.min(columns(title) + 2)).unwrap_or(u16::MAX);
                let quoted = format!("\"{title}\"");
                pen.name(&quoted, width, cx.theme.style(Role::Strong)).space(2);
            }
            4 => {
                pen.put(&piece.text, piece.style).space(1);
                if let Some((used, allowed)) = bar {
                    budget(cx, &mut pen, used, allowed, bar_columns as u16);
                }
                pen.space(2);
            }
            _ => {
                pen.put(&piece.text, piece.style).space(2);
            }
        }
    }
}

/// A bar of what is used of what is allowed.
fn budget(cx: &Cx, pen: &mut Pen, used: u64, allowed: u64, width: u16) {
    let cells = u64::from(width);
    let full = (used * cells).checked_div(allowed).unwrap_or(0).min(cells) as u16;
    pen.glyphs(Glyph::BarFull, full, cx.theme.budget(used, allowed));
    pen.glyphs(Glyph::BarEmpty, width - full, cx.theme.style(Role::BarEmpty));
}

/// The run's own progress: its rounds as one track, and what decides.
fn progress(world: &World, now: Elapsed, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let Some((table, plan)) = world.collaboration() else { return };
    let (verdict, style) = verdict(world, table, plan, cx);
    let taken = u16::try_from(columns(&verdict)).unwrap_or(u16::MAX).min(area.width / 2);
    let track = Rect { width: area.width.saturating_sub(taken + 3), ..area };
    rounds(world, table, plan, now, cx, track, buf);
    let row = Rect { x: area.right() - taken - 1.min(area.width), width: taken, ..area };
    Pen::new(buf, row.intersection(area), cx.glyphs).put(&verdict, style);
}

/// What was decided, else why it stopped, else what would decide.
fn verdict(
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
    cx: &Cx,
) -> (String, Style) {
    if let Some(closed) = world.closed.as_ref().filter(|closed| !closed.reason.is_success()) {
        let phase = closed.phase.as_deref().map(|phase| format!(" in {phase}")).unwrap_or_default();
        let sign = cx.theme.ended(closed.reason.class());
        return (format!("{}{phase}", closed.reason), sign.style);
    }
    if let Some(decision) = table.decision() {
        let sign = cx.theme.decision(decision);
        return (format!("decided: {} {}", cx.glyphs.of(sign.glyph), sign.word), sign.style);
    }
    let text = format!("decides at {} go and no block", plan.min_go_votes);
    (text, cx.theme.style(Role::Dim))
}

fn rounds(
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
    now: Elapsed,
    cx: &Cx,
    area: Rect,
    buf: &mut Buffer,
) {
    let current = table.current().map_or(1, |round| round.number);
    let last = plan.max_rounds.max(current);
    // As many rounds as can be told apart, the current one among them.
    let fit = u32::from((area.width / 18).max(1));
    let from = current
        .saturating_sub(fit.saturating_sub(2).max(1) - 1)
        .min(last.saturating_sub(fit - 1))
        .max(1);
    let to = last.min(from.saturating_add(fit - 1));
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    if from > 1 {
        pen.glyph(Glyph::Ellipsis, cx.theme.style(Role::Dim)).space(1);
    }
    let share = pen.left() / u16::try_from(to - from + 1).unwrap_or(u16::MAX).max(1);
    for number in from..=to {
        let end = pen.x() + share;
        let round = table.round(number);
        let (glyph, text, role) = said_of(world, round, now);
        let style = cx.theme.style(role);
        pen.put(&format!("R{number} "), cx.theme.style(Role::Text)).glyph(glyph, style).space(1);
        if !text.is_empty() && pen.x() + (columns(&text) as u16) + 4 <= end {
            pen.put(&text, style).space(1);
        }
        let width = end.saturating_sub(pen.x() + 2);
        track(cx, &mut pen, round, width);
        pen.to(end);
    }
    if to < last {
        pen.glyph(Glyph::Ellipsis, cx.theme.style(Role::Dim));
    }
}

fn said_of(world: &World, round: Option<&Round>, now: Elapsed) -> (Glyph, String, Role) {
    match round {
        None => (Glyph::Waiting, String::new(), Role::Waiting),
        Some(round) => match round.closed {
            Some(closed) => (Glyph::Done, format::took(closed.since(round.opened)), Role::Done),
            None if !world.is_live() => (Glyph::Failed, String::new(), Role::Failed),
            None => {
                let (came, of) = (round.contributions().count(), round.asked());
                let _ = now;
                (Glyph::Running, format!("{came} of {of} seats in"), Role::Running)
            }
        },
    }
}

/// The track of one round: full, up to the seats that are in, or empty.
fn track(cx: &Cx, pen: &mut Pen, round: Option<&Round>, width: u16) {
    let empty = cx.theme.style(Role::TrackEmpty);
    match round {
        None => {
            pen.glyphs(Glyph::TrackEmpty, width, empty);
        }
        Some(round) if round.closed.is_some() => {
            pen.glyphs(Glyph::TrackFull, width, cx.theme.style(Role::Track));
        }
        Some(round) => {
            let (came, of) = (round.contributions().count(), round.asked().max(1));
            let full = (usize::from(width) * came / of).min(usize::from(width)) as u16;
            let now = cx.theme.style(Role::TrackNow);
            pen.glyphs(Glyph::TrackFull, full, now);
            let tip = u16::from(full < width);
            pen.glyphs(Glyph::TrackTip, tip, now);
            pen.glyphs(Glyph::TrackEmpty, width - full - tip, empty);
        }
    }
}
