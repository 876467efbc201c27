//! Pane 2 of a team while it works: a row for each agent, and below them the limits of the swarm
//! and the size of the context.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::TeamView;
use crate::base::name::AgentName;
use crate::base::time;
use crate::log::facts::agents::{AgentsPlan, LoopGuard};
use crate::log::world::agents::{AgentRow, AgentsFold};
use crate::screen::layout::line;
use crate::screen::list::{Column, ListPane};
use crate::screen::run::data::RunData;
use crate::screen::run::views::agents::{
    MODEL, agent_sign, agents_in_picture, is_active_agent, is_on_bench, names, put_model, time_held,
};
use crate::screen::text::Pen;
use crate::screen::widgets::{bar, empty};
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// Rows above the agents: the column names.
pub const AGENTS_HEAD: u16 = 1;

/// The list of the agents, and the totals below it.
#[derive(Clone, Debug)]
pub struct AgentList {
    pub agents: ListPane,
    pub totals: Rect,
}

impl AgentList {
    /// The list in an area.
    pub fn of(plan: &AgentsPlan, selected: Option<&AgentName>, area: Rect) -> Self {
        let count = agents_in_picture(plan).count();
        let wanted = match plan.outer_swarm() {
            None => 1,
            Some(swarm) if swarm.repetitive_handoff_window > 0 => 3,
            Some(_) => 2,
        };
        // The agents have at least five rows; a blank row is between them and the totals.
        let totals = match area.height.saturating_sub(AGENTS_HEAD + 5) {
            room if room > wanted => wanted,
            room => room.saturating_sub(1),
        };
        let below = totals + u16::from(totals > 0);
        let rows = Rect {
            y: area.y + AGENTS_HEAD,
            height: area.height.saturating_sub(AGENTS_HEAD + below),
            ..area
        };
        let at = selected.and_then(|name| agents_in_picture(plan).position(|it| it == name));
        let totals = Rect { y: area.bottom() - totals, height: totals, ..area };
        Self { agents: ListPane::new(rows, count, at.unwrap_or(0)), totals }
    }

    /// The agent at a row of the screen.
    pub fn agent_at<'p>(&self, plan: &'p AgentsPlan, y: u16) -> Option<&'p AgentName> {
        agents_in_picture(plan).nth(self.agents.row_at(y)?)
    }
}

/// Width of the labels of the totals.
const LABEL: u16 = 11;
/// Width of a number of turns, with the blank after it.
const TURNS: u16 = 6;
/// Width of a time, with the blank after it.
const HELD: u16 = 10;
/// Minimum width of the agents that an agent passed work to.
const PASSED: u16 = 16;

pub(crate) fn render(
    view: &TeamView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(team) = world.agents() else {
        return empty(cx, area, "No agents yet: the run is starting.", buf);
    };
    let plan = &team.plan;
    let list = AgentList::of(plan, view.selected_agent(), area);
    let all: Vec<&AgentRow> = agents_in_picture(plan).filter_map(|name| team.agent(name)).collect();
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    let fixed = 3 + 3 + TURNS + HELD;
    let widest = match world.models.is_empty() {
        true => area.width.saturating_sub(fixed),
        false => area.width / 3,
    };
    let name = names(plan).clamp(5, widest.clamp(5, 24));
    // Columns after state, name, turns and time.
    let left = area.width.saturating_sub(fixed + name);
    let model = match world.models.is_empty() {
        true => 0,
        false if left >= MODEL + 1 + PASSED => MODEL + 1,
        false => left.min(MODEL + 1),
    };
    let passed = if left.saturating_sub(model) >= PASSED { left - model } else { 0 };
    let heads = [
        Column::left("agent", name + 3),
        Column::right("turns", TURNS - 1),
        Column::right("time held", HELD),
        Column::left("", 1),
        Column::left(if model > 0 { "model" } else { "" }, model),
        Column::left(if passed > 0 { "passed to" } else { "" }, passed),
    ];
    list::heads(cx, Pen::new(buf, line(area, 0), cx.glyphs).space(3), &heads);
    let now = data.drawn_to(cx.now);
    for (at, here) in list.agents.rows() {
        let Some(row) = all.get(at) else { break };
        let chosen = view.selected_agent() == Some(&row.name);
        let mut pen = list::row_or_blank(cx, here, chosen, buf);
        let sign = agent_sign(cx, world, row);
        let active = row.turns > 0 && is_active_agent(world, team, row);
        let style = match (row.turns, active) {
            (0, _) => dim,
            (_, true) => theme.style(StyleRole::Strong),
            _ => plain,
        };
        pen.glyph(sign.glyph, sign.style).space(1).name(row.name.as_str(), name, style).space(1);
        match active {
            true => pen.glyph(Glyph::Holder, theme.style(StyleRole::Strong)),
            false => pen.space(1),
        };
        pen.space(1);
        if row.turns == 0 {
            let bench = is_on_bench(team, plan, &row.name);
            pen.put(if bench { "bench" } else { "unused" }, dim);
            continue;
        }
        pen.right_aligned(&row.turns.to_string(), TURNS - 1, plain);
        pen.right_aligned(&time::duration_text(time_held(world, row, now)), HELD, plain).space(1);
        if model > 0 {
            let name = world.models.for_agent(row.name.as_str()).unwrap_or_default();
            put_model(cx, &mut pen, name, model - 1, dim);
            pen.space(1);
        }
        if passed > 0 {
            pen.put(&passed_to(cx, team, row), dim);
        }
    }
    totals(cx, list.totals, team, plan, world.progress.is_live(), buf);
}

/// The agents that an agent passed work to, with counts.
fn passed_to(cx: &DrawContext, team: &AgentsFold, from: &AgentRow) -> String {
    let mut parts = Vec::new();
    for edge in team.edges.iter().filter(|edge| edge.from.as_ref() == Some(&from.name)).take(12) {
        let how =
            cx.glyphs.symbol(if edge.is_consultation { Glyph::Consults } else { Glyph::Arrow });
        let mut text = format!("{how} {}", edge.to);
        if edge.count > 1 {
            text.push_str(&format!(" {}", edge.count));
        }
        if edge.refused > 0 {
            let refused = cx.glyphs.symbol(Glyph::Refused);
            text.push_str(&format!(" {refused} {} refused", edge.refused));
        }
        parts.push(text);
    }
    parts.join("  ")
}

/// Draws the limits of a swarm and their use, then the context tokens.
fn totals(
    cx: &DrawContext,
    area: Rect,
    team: &AgentsFold,
    plan: &AgentsPlan,
    live: bool,
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let mut row = 0;
    let mut labelled = |label: &str, buf: &mut Buffer, put: &dyn Fn(&mut Pen<'_>)| {
        let mut pen = Pen::new(buf, line(area, row).intersection(area), cx.glyphs);
        put(pen.space(1).cell(label, LABEL, dim));
        row += 1;
    };
    let Some((swarm, counts)) = plan.outer_swarm().zip(team.outer_swarm()) else {
        return labelled("context", buf, &|pen| context_sparkline(cx, pen, team, live));
    };
    let plain = cx.theme.style(StyleRole::Text);
    labelled("handoffs", buf, &|pen| {
        let (used, most) = (u64::from(counts.made()), u64::from(swarm.max_handoffs));
        if most == 0 {
            pen.put(&format!("{used}, no limit"), plain);
        } else {
            pen.put(&format!("{used}/{most} "), plain);
            bar(cx, pen, used, most, 8);
        }
        if counts.rejections > 0 {
            let of = match swarm.max_rejections {
                0 => String::new(),
                most => format!(" of {most}"),
            };
            let style = cx.theme.style(StyleRole::Refused);
            pen.space(2).glyph(Glyph::Refused, style).space(1);
            pen.put(&format!("{}{of} refused", counts.rejections), style);
        }
    });
    labelled("context", buf, &|pen| context_sparkline(cx, pen, team, live));
    let (least, window) = (swarm.repetitive_handoff_min_unique, swarm.repetitive_handoff_window);
    if let Some((text, role)) = guard_text(&counts.guard, least, window) {
        labelled("loop guard", buf, &|pen| {
            pen.put(&text, cx.theme.style(role));
        });
    }
}

/// How many different agents were handed over to in the loop guard's window, and how many must be.
/// `None` before the window is full, from when on the guard applies.
pub(super) fn guard_text(
    guard: &LoopGuard,
    least: u32,
    window: u32,
) -> Option<(String, StyleRole)> {
    if window == 0 || guard.window < window {
        return None;
    }
    let different = match guard.distinct_agents {
        1 => "1 agent".to_owned(),
        several => format!("{several} different agents"),
    };
    let text = format!("{different} in the last {window} handoffs (needs {least})");
    Some(match guard.distinct_agents < least {
        true => (format!("loop? only {text}"), StyleRole::Caution),
        false => (text, StyleRole::Text),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_guard_explains_warning() {
        let guard = |window, distinct_agents| LoopGuard { handoffs: 9, window, distinct_agents };
        for (guard, text) in [
            (
                guard(8, 2),
                Some((
                    "loop? only 2 different agents in the last 8 handoffs (needs 3)",
                    StyleRole::Caution,
                )),
            ),
            (
                guard(8, 3),
                Some(("3 different agents in the last 8 handoffs (needs 3)", StyleRole::Text)),
            ),
            (guard(1, 1), None),
        ] {
            let text = text.map(|(text, role)| (text.to_owned(), role));
            assert_eq!(guard_text(&guard, 3, 8), text);
        }
    }
}
