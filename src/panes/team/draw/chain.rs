//! The second header row of a team: the chain of handoffs or consultations, the active agent, and
//! the use of a swarm's limits.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::agents::guard_text;
use crate::agents::plan::AgentsPlan;
use crate::agents::projection::{AgentsFold, HopKind, HopState};
use crate::app::run::data::RunData;
use crate::base::name::AgentName;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::panes::agents::draw::agent::MODEL;
use crate::ui::cx::DrawContext;
use crate::ui::text::{Pen, columns, elide_middle};
use crate::ui::theme::StyleRole;

/// Number of the newest hops that are read.
const MAX_HOPS: usize = 64;

/// Draws the row.
pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let Some(team) = world.agents() else { return };
    let plan = &team.plan;
    let aside = aside(cx, world, team, plan);
    let taken: usize = aside.iter().map(|(text, _)| columns(text)).sum();
    let taken = u16::try_from(taken).unwrap_or(u16::MAX);
    let beside = area.width >= taken.saturating_add(30);
    let width = if beside { area.width - taken - 3 } else { area.width };
    chain(cx, world, team, plan, Rect { width, ..area }, buf);
    if beside {
        let at = Rect { x: area.right() - taken, width: taken, ..area };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        for (text, role) in aside {
            pen.put(&text, cx.theme.style(role));
        }
    }
}

/// Draws the chain of handoffs or consultations; its end is always in view.
fn chain(
    cx: &DrawContext,
    world: &World,
    team: &AgentsFold,
    plan: &AgentsPlan,
    area: Rect,
    buf: &mut Buffer,
) {
    let line = cx.glyphs.symbol(Glyph::Horizontal);
    let passes = format!(" {line}{} ", cx.glyphs.symbol(Glyph::Arrow));
    let consults = format!(" {} ", cx.glyphs.symbol(Glyph::Consults));
    let hops = team.hops.iter().rev().filter(|hop| hop.depth == 0).take(MAX_HOPS);
    let hops: Vec<_> = hops.filter(|hop| !matches!(hop.state, HopState::Refused(_))).collect();
    let mut links: Vec<ChainLink> = Vec::new();
    for hop in hops.into_iter().rev() {
        let role = match hop.state {
            HopState::Running if world.progress.is_live() => StyleRole::Running,
            HopState::Failed(_) => StyleRole::Failed,
            _ => StyleRole::Text,
        };
        let from = hop.from.as_ref().filter(|_| hop.kind == HopKind::Consult);
        // Control returns after a consultation, so each agent that one consults is named once.
        let same = |link: &ChainLink| link.consults.is_some() && link.consults == from.cloned();
        let group = links.iter().rposition(|link| !same(link)).map_or(0, |at| at + 1);
        let name = hop.to.to_string();
        if let Some(link) = links[group..].iter_mut().find(|link| link.name == name) {
            link.times += 1;
            link.role = role;
            continue;
        }
        let how = match hop.kind {
            HopKind::Start => String::new(),
            HopKind::Handoff => passes.clone(),
            HopKind::Consult if group < links.len() => ", ".to_owned(),
            HopKind::Consult => consults.clone(),
        };
        links.push(ChainLink { how, name, times: 1, role, consults: from.cloned() });
    }
    links.reverse();
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let coordinator = plan.coordinator();
    if links.is_empty() && coordinator.is_none() {
        pen.put("no agent called yet", dim);
        return;
    }
    let head = coordinator.map_or("", |it| it.as_str());
    let room = usize::from(area.width).saturating_sub(columns(head));
    let mut used = 0;
    let fits = |link: &&ChainLink| {
        used += columns(&link.how) + columns(&link.text());
        used + 2 <= room
    };
    let shown = links.iter().take_while(fits).count();
    if coordinator.is_some() {
        let role = if world.progress.is_live() { StyleRole::Running } else { StyleRole::Text };
        pen.put(head, cx.theme.style(role));
    }
    if shown < links.len() || team.roots.len() > links.len() + MAX_HOPS {
        pen.put(" ", dim).glyph(Glyph::Ellipsis, dim);
    }
    for link in links.iter().take(shown).rev() {
        pen.put(&link.how, dim).put(&link.text(), cx.theme.style(link.role));
    }
}

/// An agent in the chain, and whether it was handed control or consulted.
struct ChainLink {
    how: String,
    name: String,
    /// How often it was consulted in a row.
    times: u32,
    role: StyleRole,
    /// Who consulted it.
    consults: Option<AgentName>,
}

impl ChainLink {
    fn text(&self) -> String {
        match self.times {
            1 => self.name.clone(),
            times => format!("{} x{times}", self.name),
        }
    }
}

/// The active agent and the use of the limits.
fn aside(
    cx: &DrawContext,
    world: &World,
    team: &AgentsFold,
    plan: &AgentsPlan,
) -> Vec<(String, StyleRole)> {
    let mut said = Vec::new();
    if world.progress.is_live()
        && let Some(holder) = &team.in_control
    {
        said.push(("active: ".to_owned(), StyleRole::Dim));
        said.push((holder.to_string(), StyleRole::Strong));
        if let Some(model) = world.models.for_agent(holder.as_str()) {
            let model = elide_middle(model, usize::from(MODEL), cx.glyphs);
            said.push((format!(" {model}"), StyleRole::Dim));
        }
    }
    if let Some((swarm, row)) = plan.outer_swarm().zip(team.outer_swarm()) {
        let gap = if said.is_empty() { "" } else { "   " };
        if swarm.repetitive_handoff_window > 0 {
            let (least, window) =
                (swarm.repetitive_handoff_min_unique, swarm.repetitive_handoff_window);
            let (text, role) = guard_text(&row.guard, least, window);
            said.push((gap.to_owned(), StyleRole::Dim));
            said.push((text, role));
        }
        if row.rejections > 0 {
            let glyph = cx.glyphs.symbol(Glyph::Refused);
            let refused = format!("   {glyph} {} refused", row.rejections);
            said.push((refused, StyleRole::Refused));
        }
    }
    said
}
