//! Pane 4 of a collaboration: the calls of the seats (attempts, time, tokens), and the use of the budgets.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::seat::{SeatChange, is_open, is_paused_before, names, put_name, seat_sign};
use super::{CollaborationView, Selection};
use crate::base::time;
use crate::base::time::millis;
use crate::log::facts::collaboration::CollaborationPlan;
use crate::log::world::World;
use crate::log::world::collaboration::{Collaboration, RoundSeat, SeatState};
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::layout::Pane;
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

pub(crate) fn render(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(table) = world.collaboration() else { return };
    let plan = &*table.plan;
    let list = view.seat_list(data, Pane::Fourth, area);
    let name = names(plan).clamp(12, (area.width / 3).max(12));
    for (index, at) in list.rows() {
        let Some(role) = plan.sequence.get(index) else { break };
        let selected = view.selection() == Selection::Seat(index);
        let mut pen = list::row_or_blank(cx, at, selected, buf);
        seat(data, cx, &mut pen, world, table, plan, index, role.as_str(), name);
    }
    let nth = list.window.len() as u16;
    if let Some(call) = table.finalize.filter(|_| nth + 1 < area.height) {
        let at = line(area, nth);
        let selected = view.selection() == Selection::Finalize;
        let mut pen = list::row_or_blank(cx, at, selected, buf);
        let (glyph, word, role) = match (&world.progress.answer, is_open(world, call)) {
            (Some(_), _) => (Glyph::Done, "composed", StyleRole::Done),
            (None, true) => (Glyph::Running, "writing", StyleRole::Running),
            (None, false) => (Glyph::Failed, "not written", StyleRole::Failed),
        };
        state(&mut pen, StateSign { glyph, word, style: cx.theme.style(role) });
        pen.name("launch brief", name, cx.theme.style(StyleRole::Text)).space(1);
        if let Some(answer) = &world.progress.answer {
            let text = format::bytes(answer.len() as u64);
            pen.put(&text, cx.theme.style(StyleRole::Dim));
        }
    }
    if area.height > 0 {
        budgets(data, cx, line(area, area.height - 1), world, table, plan, buf);
    }
}

fn state(pen: &mut Pen, sign: StateSign) {
    pen.glyph(sign.glyph, sign.style).space(1).cell(sign.word, 9, sign.style).space(1);
}

#[expect(clippy::too_many_arguments, reason = "one row of one pane, all of it context")]
fn seat(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
    index: usize,
    role: &str,
    name: u16,
) {
    let theme = cx.theme;
    let (plain, dim) = (theme.style(StyleRole::Text), theme.style(StyleRole::Dim));
    let round = table.current();
    let seat = round.and_then(|round| round.seats.get(index));
    let rests = round.is_some_and(|round| is_paused_before(world, round, index));
    let sign = match seat {
        _ if rests => StateSign {
            glyph: Glyph::Paused,
            word: "paused",
            style: theme.style(StyleRole::Paused),
        },
        seat => seat_sign(cx, world, seat),
    };
    state(pen, sign);
    let flagged = plan.sequence.get(index).is_some_and(|role| plan.role_flags.contains_key(role));
    put_name(cx, pen, role, flagged, name, plain);
    pen.space(1);
    let Some(seat) = seat else { return };
    // A seat that leaves has a call now, which is shown.
    if let Some(change) = SeatChange::of(data, table, index).filter(|change| change.joins) {
        let flag = plan.sequence.get(index).and_then(|role| plan.role_flags.get(role));
        let flag = flag.map_or("", |behind| behind.flag.as_str());
        let pending = if change.is_switched { "" } else { ", pending" };
        let text = format!("{}: flag {flag} on{pending}", change.text());
        pen.put(&text, theme.style(StyleRole::Flag));
        return;
    }
    if let Some(said) = &seat.contribution {
        figures(data, cx, pen, seat);
        let dropped = [(seat.extra_keys, "key"), (seat.extra_actions, "action")];
        let dropped = dropped.into_iter().filter(|(count, _)| *count > 0);
        let dropped: Vec<String> = dropped
            .map(|(count, noun)| format!("{} dropped", format::count_noun(count.into(), noun)))
            .collect();
        let mut parts = vec![format::count_noun(said.actions.len() as u64, "action")];
        parts.extend(dropped.iter().cloned());
        let whole = parts.join(", ");
        // Dropped parts matter more than accepted ones.
        let text = if pen.fits(columns(&whole)) { whole } else { dropped.join(", ") };
        pen.put(&text, dim);
        return;
    }
    if let Some(reason) = &seat.refused {
        let text = seat.detail.as_deref().map_or_else(|| reason.phrase(), Into::into);
        pen.put(&text, theme.style(StyleRole::Refused));
        return;
    }
    let note = match seat.state {
        SeatState::Off => match plan.sequence.get(index).and_then(|role| plan.role_flags.get(role))
        {
            Some(behind) => format!("flag {} is off", behind.flag),
            None => "not reached".to_owned(),
        },
        _ if !world.progress.is_live() && matches!(seat.state, SeatState::Waiting) => {
            "not reached: the run ended".to_owned()
        }
        SeatState::Speaking | SeatState::Retrying if !world.progress.is_live() => {
            "the run was stopped".to_owned()
        }
        SeatState::Speaking | SeatState::Retrying => speaking(data, cx, seat),
        SeatState::Answered => "waiting for earlier seats".to_owned(),
        SeatState::Waiting | SeatState::Accepted | SeatState::Refused => String::new(),
        SeatState::Failed => "no reply".to_owned(),
        SeatState::Unused => "came after another seat had stopped the run".to_owned(),
        SeatState::Cancelled => "the run was stopped".to_owned(),
    };
    pen.put(&note, dim);
}

/// Draws what only the call knows: attempts, time, tokens and the time to the first token.
fn figures(data: &RunData, cx: &DrawContext, pen: &mut Pen, seat: &RoundSeat) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let role = if seat.attempts > 1 { StyleRole::Retry } else { StyleRole::Dim };
    let attempts = format::count_noun(seat.attempts.into(), "attempt");
    pen.cell(&attempts, 11, cx.theme.style(role));
    let span = seat.call.and_then(|call| data.shown().spans.get(call));
    let took = span.map(|span| time::duration_text(span.duration(data.time(cx.now))));
    pen.right_aligned(&took.unwrap_or_default(), 5, plain).space(2);
    if let Some(usage) = seat.usage {
        let tokens = format!("{} in, {} out", usage.prompt_tokens, usage.completion_tokens);
        pen.cell(&tokens, 17, dim);
    }
    if let Some(first) = seat.first_token_ms.filter(|_| pen.left() >= 32) {
        let first = time::duration_text(Duration::from_millis(first));
        pen.cell(&format!("first token {first}"), 20, dim);
    }
}

fn speaking(data: &RunData, cx: &DrawContext, seat: &RoundSeat) -> String {
    let time = data.time(cx.now);
    let took =
        seat.call.and_then(|call| data.shown().spans.get(call)).map(|span| span.duration(time));
    let mut text = took.map(time::duration_text).unwrap_or_default();
    if seat.attempts > 1 {
        text.push_str(&format!(", attempt {}", seat.attempts));
    }
    if let Some(detail) = seat.detail.as_ref().filter(|_| seat.asked_again > 0) {
        text.push_str(&format!(", retry {}: {detail}", seat.asked_again));
    }
    text
}

/// The use of each budget in figures; highlighted above 80 %.
fn budgets(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    world: &World,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1);
    let rounds = table.current().map_or(0, |round| round.number);
    let active = world.progress.active(data.time(cx.now));
    let seconds = millis(plan.budget.max_seconds).div_ceil(1000);
    let budget = |pen: &mut Pen, name: &str, used: u64, allowed: u64, last: bool| {
        pen.put(name, dim).space(1);
        let style = theme.budget(used, allowed);
        // Using the last round is normal, so it is not highlighted.
        let style = if last { theme.style(StyleRole::Bar) } else { style };
        pen.put(&format!("{used}/{allowed}"), style).space(3);
    };
    budget(&mut pen, "rounds", rounds.into(), plan.budget.max_rounds.into(), true);
    budget(&mut pen, "messages", table.messages.into(), plan.budget.max_messages.into(), false);
    budget(&mut pen, "seconds", active.as_secs(), seconds, false);
    if let Some(text) = format::cost(world, cx.glyphs) {
        pen.put("cost", dim).space(1).put(&text, theme.style(StyleRole::Bar)).space(3);
    }
    let retries = world.tally.retries;
    let count = retries.to_string();
    if pen.fits(columns("retries ") + columns(&count)) {
        let role = if retries > 0 { StyleRole::Retry } else { StyleRole::Bar };
        pen.put("retries", dim).space(1).put(&count, theme.style(role));
    }
}
