//! Pane 2 of the tools: the selected tool with its injected faults, fallbacks used, load, policy,
//! and the history of its breaker; at the end of a run about tools its outcome.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::breakers::{in_flight_text, sign};
use super::summary::{
    alert_text, fails_now, faults_text, is_full, policy_fields, refused_and_fallbacks, window_state,
};
use super::{ToolsView, View, lanes, listed_tools};
use crate::base::time;
use crate::log::event::{BreakerStage, Elapsed};
use crate::log::world::Projection;
use crate::log::world::tool_row::{ToolRow, ToolTally};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::{outcome_text, text_area};
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, wrap_within};
use crate::words::question::tally_text;
use crate::words::sentence::took_ms;
use crate::words::styled::StyleRole;
use crate::words::tool_sentence::short_breaker_cause;

/// Width of a name.
const NAME: u16 = 10;
/// Width of the bar of a breaker's state, in a wide and in a narrow pane.
const BAR: (u16, u16) = (10, 3);

/// The selected tool and its breaker's state.
pub(crate) fn title(
    view: &ToolsView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    match view.tool(data) {
        _ if view.shows_outcome(data) => ("Outcome".to_owned(), Some(cx.theme.run(data.shown()))),
        Some(tool) => (tool.name().to_string(), Some(sign(cx, tool))),
        None => ("Tool".to_owned(), None),
    }
}

pub(crate) fn render(
    view: &ToolsView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let area = text_area(area);
    let dim = cx.theme.style(StyleRole::Dim);
    let Some(tool) = view.tool(data) else {
        let text = format!("No tool: select one in 1. {} or Esc goes back.", key_of(Action::Tools));
        Pen::new(buf, line(area, 0), cx.glyphs).put(&text, dim);
        return;
    };
    let live = data.world().progress.is_live();
    let now = data.time(cx.now);
    let mut rows = FieldRows { cx, area, buf, nth: 0 };
    if view.shows_outcome(data) {
        return outcome(&mut rows, data);
    }
    match faults_text(tool) {
        Some(faults) => rows.field("injected", &faults, StyleRole::Flag, 2),
        None if tool.head.is_observed() => {}
        None if live => {
            let text = format!("none: {} injects a fault", key_of(Action::Faults));
            rows.field("injected", &text, StyleRole::Dim, 1);
        }
        None => rows.field("injected", "none", StyleRole::Dim, 1),
    }
    let (refused, stood) = refused_and_fallbacks(&tool.tally);
    if let Some(refused) = refused {
        let now = fails_now(tool, data, now) || is_full(tool);
        let role = if now { StyleRole::Refused } else { StyleRole::Text };
        rows.field("refused", &refused, role, 1);
    }
    if let Some(stood) = stood {
        rows.field("fallback", &stood, StyleRole::Retry, 1);
    }
    if tool.tally.stale > 0 {
        let text = format!("{}, ignored", format::count_noun(tool.tally.stale, "late result"));
        rows.field("late", &text, StyleRole::Dim, 1);
    }
    if let Some(state) = window_state(tool, now) {
        rows.field("window", &state, StyleRole::Text, 1);
    }
    load(&mut rows, tool, data);
    let wraps = if area.height >= 16 { 3 } else { 1 };
    if area.height >= 16 {
        let shared = if tool.head.shared { ", shared by the runs of this session" } else { "" };
        rows.field("kind", &format!("{}{shared}", tool.head.kind), StyleRole::Text, 2);
    }
    for (name, text) in policy_fields(&tool.head) {
        let has_window = tool.head.limits.breaker.is_some_and(|breaker| breaker.window.is_some());
        let most = if name == "breaker" && has_window { wraps.max(2) } else { wraps };
        rows.field(name, &text, StyleRole::Text, most);
    }
    history(&mut rows, tool, data, now);
}

/// Draws how the run ended, and the results of its calls.
fn outcome(rows: &mut FieldRows<'_, '_>, data: &RunData) {
    let Some(closed) = &data.shown().progress.closed else { return };
    let sign = rows.cx.theme.ended(closed.reason.class());
    let mut pen = rows.pen();
    pen.glyph(sign.glyph, sign.style).space(1).put(&closed.reason.phrase(), sign.style);
    for OutcomeLine { name, text, role } in outcome_lines(data) {
        let most = if name == "why" { 4 } else { 2 };
        rows.field(name, &text, role, most);
    }
    if rows.left() >= 2 {
        rows.nth += 1;
        rows.field("", "j, k: details of a tool", StyleRole::Dim, 1);
    }
}

/// Draws rows one below the other.
struct FieldRows<'a, 'b> {
    cx: &'a DrawContext<'a>,
    area: Rect,
    buf: &'b mut Buffer,
    nth: u16,
}

impl FieldRows<'_, '_> {
    fn left(&self) -> u16 {
        self.area.height.saturating_sub(self.nth)
    }

    fn pen(&mut self) -> Pen<'_> {
        let at = line(self.area, self.nth);
        self.nth += 1;
        Pen::new(self.buf, at, self.cx.glyphs)
    }

    /// Draws a name and its text, in at most `most` rows.
    fn field(&mut self, name: &str, text: &str, role: StyleRole, most: usize) {
        let width = usize::from(self.area.width.saturating_sub(NAME).max(1));
        let most = most.min(usize::from(self.left()));
        let (parts, cut) = wrap_within(text, width, most.max(1));
        let count = parts.len().min(most);
        for (nth, part) in parts.iter().take(count).enumerate() {
            let (dim, style) = (self.cx.theme.style(StyleRole::Dim), self.cx.theme.style(role));
            let mut pen = self.pen();
            pen.cell(if nth == 0 { name } else { "" }, NAME, dim);
            // Too long on purpose, so that `put` ends a cut text with an ellipsis.
            let last = cut && nth + 1 == count;
            match last {
                true => pen.put(&format!("{part}{}", " ".repeat(width)), style),
                false => pen.put(part, style),
            };
        }
    }
}

/// Draws the requests over time as a sparkline, with totals.
fn load(rows: &mut FieldRows<'_, '_>, tool: &ToolRow, data: &RunData) {
    if rows.left() == 0 {
        return;
    }
    let cx = rows.cx;
    let width = rows.area.width;
    let requests = format::count_noun(tool.tally.requests(), "request");
    let in_flight = in_flight_text(tool, data.shown().progress.is_live());
    let text = match width {
        60.. => format!("{requests}, {in_flight}, peak {}", tool.peak),
        _ => format!("{requests}, {in_flight}"),
    };
    let room = width.saturating_sub(NAME + 1).saturating_sub(columns(&text) as u16).min(40);
    let (dim, spark) = (cx.theme.style(StyleRole::Dim), cx.theme.style(StyleRole::Spark));
    let rates = lanes::request_rates(data, tool, cx, room);
    let most = rates.iter().copied().max().unwrap_or(0);
    let mut pen = rows.pen();
    pen.cell("load", NAME, dim);
    if room >= 4 {
        for rate in rates {
            pen.put(cx.glyphs.spark(rate, most), spark);
        }
        pen.space(1);
    }
    pen.put(&text, cx.theme.style(StyleRole::Text));
}

/// Draws the latest state changes of the breaker, the newest last, each with its duration.
fn history(rows: &mut FieldRows<'_, '_>, tool: &ToolRow, data: &RunData, now: Elapsed) {
    let room = usize::from(rows.left());
    if room == 0 || tool.head.limits.breaker.is_none() {
        return;
    }
    let cx = rows.cx;
    let dim = cx.theme.style(StyleRole::Dim);
    if tool.history.is_empty() {
        rows.field("history", "closed since the start", StyleRole::Dim, 1);
        return;
    }
    let wide = rows.area.width >= 60;
    let most = if wide { BAR.0 } else { BAR.1 };
    let moves: Vec<_> = tool.history.iter().collect();
    let first = moves.len().saturating_sub(room);
    let until = |nth: usize| moves.get(nth + 1).map_or(now, |next| next.at);
    let longest = (first..moves.len()).map(|nth| until(nth).since(moves[nth].at)).max();
    let longest = longest.map_or(1, |longest| longest.as_micros().max(1));
    for (nth, moved) in moves.iter().enumerate().skip(first) {
        let stood = until(nth).since(moved.at);
        let sign = cx.theme.breaker(moved.to);
        let full = (stood.as_micros() * u128::from(most)).div_ceil(longest).clamp(1, most.into());
        let mut pen = rows.pen();
        pen.cell(&format::time_in_run(data.shown().progress.run_time(moved.at)), NAME - 1, dim)
            .space(1);
        pen.glyph(sign.glyph, sign.style).space(1).cell(sign.word, 10, sign.style);
        let bar = pen.x();
        pen.glyphs(Glyph::TrackFull, full as u16, sign.style).advance_to(bar + most + 1);
        pen.cell(&time::duration_text(stood), 6, cx.theme.style(StyleRole::Text)).space(1);
        let why = match moved.by {
            Some(who) => who.phrase().into(),
            None if wide => moved.why.description(moved.counted),
            None => short_breaker_cause(moved.why, moved.counted),
        };
        pen.put(&why, dim);
    }
}

/// Maximum number of listed alerts.
const ALERTS: usize = 4;

/// A line of the outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutcomeLine {
    pub name: &'static str,
    pub text: String,
    pub role: StyleRole,
}

/// The lines of the outcome, the most important first; none before the run has ended.
fn outcome_lines(run: &RunData) -> Vec<OutcomeLine> {
    let world = run.shown();
    let (Some(closed), Some(load)) =
        (&world.progress.closed, world.projection().and_then(Projection::tool_load))
    else {
        return Vec::new();
    };
    let tools = listed_tools(world);
    let sum = |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let marked = |is_marked: bool, role| if is_marked { role } else { StyleRole::Text };
    let mut lines = Vec::new();
    let mut add = |name, text: String, role| lines.push(OutcomeLine { name, text, role });
    if !closed.reason.is_success() {
        let why = outcome_text(run, None).text.replace("\n\n", " ");
        add("why", why, StyleRole::Strong);
    }
    let (calls, answered) = (sum(|it| it.calls), sum(|it| it.answered));
    add("calls", format!("{answered} of {calls} answered"), StyleRole::Text);
    let (cached, default) = (sum(|it| it.cached), sum(|it| it.fallback));
    let omitted = sum(|it| it.omitted);
    let mut fallback = format!("{cached} cached, {default} default");
    if omitted > 0 {
        fallback.push_str(&format!(", {omitted} left out"));
    }
    add("fallback", fallback, marked(cached + default + omitted > 0, StyleRole::Retry));
    let failed = sum(|it| it.failed);
    add("failed", format::count_noun(failed, "call"), marked(failed > 0, StyleRole::Failed));
    let denied = sum(|it| it.denied);
    if denied > 0 {
        add("denied", format::count_noun(denied, "call"), StyleRole::Refused);
    }
    if let Some(factor) = world.tools.amplification() {
        let requests =
            format!("{}, {} a call", sum(ToolTally::requests), format::requests_each(factor));
        add("requests", requests, marked(factor > 1.0, StyleRole::Failed));
    }
    let (gateway, client, agent) =
        (sum(|it| it.retries), sum(|it| it.client_retries), sum(|it| it.repeats));
    let retries = format!("{gateway} gateway, {client} client, {agent} agent");
    add("retries", retries, marked(client + agent > 0, StyleRole::Retry));
    if let Some(questions) = tally_text(&world.questions) {
        add("questions", questions, StyleRole::Text);
    }
    if load.naive_attempts.is_some() {
        add("guards", "none: three layers retry".to_owned(), StyleRole::Retry);
    } else {
        let opened = tools.iter().filter(|it| it.tally.openings > 0).map(|it| {
            let times = format::count_noun(it.tally.openings, "time");
            format!("{} opened {times}", it.name())
        });
        let opened: Vec<String> = opened.collect();
        // The row is coloured if a breaker is not closed at the end.
        let is_open = tools.iter().any(|it| {
            matches!(it.breaker, BreakerStage::Open | BreakerStage::Held | BreakerStage::HalfOpen)
        });
        let role = marked(is_open, StyleRole::Refused);
        let opened = if opened.is_empty() { "never opened".to_owned() } else { opened.join(", ") };
        add("breakers", opened, role);
        let (by_breaker, by_bulkhead) = (sum(|it| it.circuit_open), sum(|it| it.bulkhead_full));
        let refused = format!("{by_breaker} breaker, {by_bulkhead} bulkhead");
        add("refused", refused, StyleRole::Text);
    }
    let turns = format::count_noun(load.turns.into(), "turn");
    let agents = format::count_noun(load.agents.len() as u64, "agent");
    add("time", format!("{}, {agents}, {turns}", took_ms(closed.elapsed_ms)), StyleRole::Text);
    let slots = load.slots;
    let peak = format!("peak {} of {}, {} queued", slots.peak, slots.pool, slots.peak_waiting);
    add("slots", peak, StyleRole::Text);
    let alerts = world.alerts.all();
    for (nth, alert) in alerts.iter().take(ALERTS).enumerate() {
        let name = if nth == 0 { "alerts" } else { "" };
        let role = marked(alert.ended.is_none(), StyleRole::Failed);
        add(name, alert_text(alert, &world.progress), role);
    }
    let more = (alerts.len().saturating_sub(ALERTS) as u64).saturating_add(world.alerts.not_kept());
    if more > 0 {
        add("", format!("{more} more"), StyleRole::Dim);
    }
    lines
}

/// The outcome as text, for the clipboard.
pub(super) fn outcome_as_text(run: &RunData) -> String {
    let reason = run.shown().progress.closed.as_ref().map(|closed| closed.reason.phrase());
    let mut text = format!("{}\n", reason.unwrap_or_default());
    for OutcomeLine { name, text: line, .. } in outcome_lines(run) {
        text.push_str(&format!("{name:<10}{line}\n"));
    }
    text
}
