//! Pane 2 of a team: a row for each hop (start, handoff or consultation) and each refused handoff;
//! below them totals. Only the rows in view are read.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::agents::facts::HandoffRefusal;
use crate::agents::plan::AgentsPlan;
use crate::agents::projection::{AgentsFold, HopKind, HopRow, HopState};
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::agent::{names, time_held};
use crate::panes::agents::picture::{agents_in_picture, is_on_bench};
use crate::panes::team::view::{TeamView, hop_areas};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::{bar, empty};
use crate::ui::sign::StateSign;
use crate::ui::table::{self, Column};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{StyleRole, Theme};

/// Width of a hop's number.
const NUMBER: u16 = 5;
/// Width of its time.
const CLOCK: u16 = 6;
/// Width of the arrow, which its ASCII form needs.
const HOW: u16 = 3;
/// Width of its number of context tokens.
const CONTEXT: u16 = 6;
/// Width of the labels of the totals.
const LABEL: u16 = 10;

/// Widths of names and reasons.
#[derive(Clone, Copy)]
struct HopColumns {
    name: u16,
    why: u16,
}

impl HopColumns {
    fn for_width(width: u16, plan: &AgentsPlan) -> Self {
        let fixed = 2 + NUMBER + CLOCK + HOW + CONTEXT + 1;
        let room = width.saturating_sub(fixed);
        let name = names(plan).clamp(4, 18).min((room / 3).max(4));
        Self { name, why: room.saturating_sub(2 * name + 2) }
    }
}

/// Draws the pane.
pub(crate) fn render(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(team) = world.agents() else { return };
    let plan = &team.plan;
    let (rows, foot) = hop_areas(area);
    let places = HopColumns::for_width(area.width, plan);
    if team.hops.is_empty() {
        let text = match (world.progress.is_live(), plan.outer_swarm().is_some()) {
            (true, true) => "No agent is in control yet.",
            (true, false) => "No agent has been consulted yet. 4 shows the transcript.",
            (false, _) => "No agent was called. 5 shows what happened.",
        };
        empty(cx, area, text, buf);
    } else {
        let heads = [
            Column::right("#", NUMBER - 1),
            Column::left("", 1),
            Column::left("when", CLOCK),
            Column::left("from", places.name + 1 + HOW),
            Column::left("to", places.name + 1),
            Column::left("why", places.why),
            Column::right("ctx", CONTEXT),
        ];
        table::heads(cx, Pen::new(buf, line(area, 0), cx.glyphs).space(2), &heads);
    }
    let (window, selected) = view.hop_rows(data, usize::from(rows.height));
    for (nth, at) in window.enumerate() {
        let Some(hop) = team.hops.get(at) else { break };
        let here = line(rows, nth as u16);
        hop_row(cx, world, here, at, hop, selected == Some(at), places, buf);
    }
    self::totals(data, cx, foot, world, team, plan, buf);
}

#[allow(clippy::too_many_arguments, reason = "a row is all of these, and each is used once")]
fn hop_row(
    cx: &DrawContext,
    world: &World,
    area: Rect,
    at: usize,
    hop: &HopRow,
    selected: bool,
    places: HopColumns,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let mut sign = state_sign(theme, &hop.state);
    if hop.state == HopState::Running && !world.progress.is_live() {
        (sign.glyph, sign.style) = (Glyph::Off, theme.style(StyleRole::Off));
    }
    let mut pen = table::row_or_blank(cx, area, selected, buf);
    pen.glyph(sign.glyph, sign.style);
    pen.right_aligned(&(at + 1).to_string(), NUMBER - 1, dim).space(1);
    pen.cell(&format::clock(world.progress.run_time(hop.at)), CLOCK, dim);
    // Hops within a consulted team are dimmed.
    let name = if hop.depth > 0 { dim } else { plain };
    let from = match (&hop.from, hop.depth) {
        (Some(from), _) => from.as_str(),
        (None, 0) => "you",
        (None, _) => hop.team.as_str(),
    };
    pen.name(from, places.name, if hop.from.is_none() { dim } else { name }).space(1);
    let how = match hop.kind {
        HopKind::Consult => Glyph::Consults,
        HopKind::Start | HopKind::Handoff => Glyph::Arrow,
    };
    pen.cell(cx.glyphs.symbol(how), HOW, dim);
    pen.name(
        hop.to.as_str(),
        places.name,
        if sign.glyph == Glyph::Running { sign.style } else { name },
    );
    pen.space(1);
    let message = hop.message.as_deref().unwrap_or_default();
    let (why, role) = match &hop.state {
        HopState::Refused(why) => (refusal(*why, places.why), StyleRole::Refused),
        HopState::Failed(reason) => (reason.phrase().into_owned(), sign_role(reason)),
        HopState::Degraded { by, reason } => {
            (format!("{}; {}", reason.phrase(), by.word()), StyleRole::Retry)
        }
        _ if !message.is_empty() => (message.replace(['\n', '\r', '\t'], " "), StyleRole::Text),
        _ => (default_hop_text(hop).to_owned(), StyleRole::Dim),
    };
    pen.cell(&why, places.why, theme.style(role));
    let context = hop.context_tokens.map_or_else(String::new, format::count);
    pen.right_aligned(&context, CONTEXT, dim);
}

fn sign_role(reason: &crate::event::StopReason) -> StyleRole {
    match reason {
        crate::event::StopReason::Cancelled => StyleRole::Off,
        _ => StyleRole::Failed,
    }
}

/// Why a handoff was refused, shortened if there is little room.
fn refusal(why: HandoffRefusal, width: u16) -> String {
    let whole = why.to_string();
    match why {
        _ if columns(&whole) <= usize::from(width) => whole,
        HandoffRefusal::MaxHandoffs(most) => format!("limit {most}"),
        HandoffRefusal::Repetitive => "repetitive".to_owned(),
    }
}

/// The text of a hop without a message.
fn default_hop_text(hop: &HopRow) -> &'static str {
    match hop.kind {
        HopKind::Start => "start",
        HopKind::Handoff => "without a message",
        HopKind::Consult => "",
    }
}

/// Draws the totals by importance: limits, time held by each agent, context tokens, unused agents.
fn totals(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    world: &World,
    team: &AgentsFold,
    plan: &AgentsPlan,
    buf: &mut Buffer,
) {
    let mut row = 0;
    let mut next = || {
        row += 1;
        line(area, row - 1)
    };
    if plan.outer_swarm().is_some() && area.height > 0 {
        limits_row(cx, next(), team, plan, buf);
    }
    let now = data.drawn_to(cx.now);
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, next(), cx.glyphs);
    pen.space(1).cell("held", LABEL, dim);
    for agent in team.agents.iter().filter(|row| row.turns > 0) {
        let took = format::duration_text(time_held(world, agent, now));
        let name = agent.name.as_str();
        if !pen.fits(columns(name) + columns(&took) + 1) {
            pen.glyph(Glyph::Ellipsis, dim);
            break;
        }
        pen.put(name, dim).space(1).put(&took, cx.theme.style(StyleRole::Text)).space(2);
    }
    let mut pen = Pen::new(buf, next(), cx.glyphs);
    pen.space(1).cell("context", LABEL, dim);
    context_sparkline(cx, &mut pen, team, world.progress.is_live());
    let unused: Vec<&str> = agents_in_picture(plan)
        .filter(|name| team.agent(name).is_none_or(|row| row.turns == 0))
        .filter(|name| !is_on_bench(team, plan, name))
        .map(|name| name.as_str())
        .collect();
    let mut pen = Pen::new(buf, next(), cx.glyphs);
    pen.space(1).cell("unused", LABEL, dim);
    let swarm = plan.outer_swarm().is_some();
    let none = if swarm { "none: each had control" } else { "none: each was called" }.to_owned();
    let text = if unused.is_empty() { none } else { unused.join(", ") };
    pen.put(&text, if unused.is_empty() { dim } else { cx.theme.style(StyleRole::Text) });
}

/// Draws the limits of the outermost swarm and their use.
fn limits_row(
    cx: &DrawContext,
    area: Rect,
    team: &AgentsFold,
    plan: &AgentsPlan,
    buf: &mut Buffer,
) {
    let Some((swarm, row)) = plan.outer_swarm().zip(team.outer_swarm()) else { return };
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let guard = row.guard;
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1).cell("handoffs", LABEL, dim);
    let (used, most) = (u64::from(row.made()), u64::from(swarm.max_handoffs));
    if most > 0 {
        pen.put(&format!("{used}/{most} "), plain);
        bar(cx, &mut pen, used, most, 8);
    } else {
        pen.put(&format!("{used}, no limit"), plain);
    }
    if swarm.repetitive_handoff_window > 0 {
        let (least, window) =
            (swarm.repetitive_handoff_min_unique, swarm.repetitive_handoff_window);
        // The guard applies only when the window is full.
        let full = guard.window >= window;
        let tight = full && guard.distinct_agents < least;
        let style = theme.style(if tight { StyleRole::Retry } else { StyleRole::Text });
        pen.space(3)
            .put("loop guard ", dim)
            .put(&format!("{}/{least}", guard.distinct_agents), style);
        pen.put(&format!(" in last {window}"), dim);
    }
    if swarm.max_rejections > 0 || row.rejections > 0 {
        let role = if row.rejections > 0 { StyleRole::Refused } else { StyleRole::Text };
        let of = match swarm.max_rejections {
            0 => String::new(),
            most => format!("/{most}"),
        };
        pen.space(3).put("refused ", dim);
        pen.put(&format!("{}{of}", row.rejections), theme.style(role));
    }
}

/// Draws the context tokens of the last hops as a sparkline, with the newest number.
fn context_sparkline(cx: &DrawContext, pen: &mut Pen, team: &AgentsFold, live: bool) {
    let dim = cx.theme.style(StyleRole::Dim);
    let width = usize::from(pen.left().saturating_sub(14)).min(40);
    let last = team.hops.iter().rev().take(4 * width.max(1)).filter_map(|hop| hop.context_tokens);
    let mut counts: Vec<u64> = last.take(width).collect();
    counts.reverse();
    let Some(newest) = counts.last().copied() else {
        pen.put(if live { "no tokens counted yet" } else { "no tokens counted" }, dim);
        return;
    };
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    for count in &counts {
        let part = u32::try_from(count.saturating_mul(1_000) / most).unwrap_or(1_000);
        pen.put(cx.glyphs.spark(part, 1_000), cx.theme.style(StyleRole::Spark));
    }
    pen.space(2).put(&format!("{} tok", format::count(newest)), cx.theme.style(StyleRole::Text));
}

/// The sign of a hop.
pub(crate) fn state_sign(theme: &Theme, state: &HopState) -> StateSign {
    match state {
        HopState::Running => theme.sign(Glyph::Running, "working", StyleRole::Running),
        HopState::Done | HopState::HandedOver => theme.sign(Glyph::Done, "done", StyleRole::Done),
        HopState::Failed(crate::event::StopReason::Cancelled) => {
            theme.sign(Glyph::Off, "cancelled", StyleRole::Off)
        }
        HopState::Degraded { .. } => theme.sign(Glyph::Alert, "degraded", StyleRole::Retry),
        HopState::Failed(_) => theme.sign(Glyph::Failed, "failed", StyleRole::Failed),
        HopState::Refused(_) => theme.sign(Glyph::Refused, "refused", StyleRole::Refused),
    }
}
