//! The second header row of a team: the chain of handoffs or consultations, the active agent, and
//! the use of a swarm's limits.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::agents::guard_text;
use crate::base::name::AgentName;
use crate::log::facts::agents::AgentsPlan;
use crate::log::world::World;
use crate::log::world::agents::{AgentsFold, HopKind, HopRow, HopState};
use crate::screen::DrawContext;
use crate::screen::run::data::RunData;
use crate::screen::run::views::agents::MODEL;
use crate::screen::text::{Pen, elide_middle};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Number of the newest hops that are read.
const MAX_HOPS: usize = 64;

/// Minimum width of a chain next to other figures.
const MIN_CHAIN: usize = 27;

pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let Some(team) = world.agents() else { return };
    let plan = &team.plan;
    let links = links(cx, world, team);
    let chain_width = links.iter().map(ChainLink::width).sum::<usize>()
        + plan.coordinator().map_or(0, |it| columns(it.as_str()));
    let width = |parts: &[(String, StyleRole)]| -> u16 {
        let taken = parts.iter().map(|(text, _)| columns(text)).sum::<usize>();
        u16::try_from(taken).unwrap_or(u16::MAX)
    };
    let fits = |parts: &[(String, StyleRole)], chain: usize| {
        usize::from(area.width) >= usize::from(width(parts)) + 3 + chain
    };
    let limits = limits(cx, team, plan);
    let mut both = active(cx, world, team);
    if !both.is_empty() && !limits.is_empty() {
        both.push(("   ".to_owned(), StyleRole::Dim));
    }
    both.extend(limits.iter().cloned());
    // The active agent has its mark in pane 1 too, so the whole chain matters more.
    let cuts = !fits(&both, chain_width) && fits(&limits, chain_width);
    let aside = if cuts { limits } else { both };
    let taken = width(&aside);
    let beside = taken > 0 && fits(&aside, MIN_CHAIN);
    let width = if beside { area.width - taken - 3 } else { area.width };
    chain(cx, world, team, &links, Rect { width, ..area }, buf);
    if beside {
        let at = Rect { x: area.right() - taken, width: taken, ..area };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        for (text, role) in aside {
            pen.put(&text, cx.theme.style(role));
        }
    }
}

/// The agents of the chain, the newest first.
fn links(cx: &DrawContext, world: &World, team: &AgentsFold) -> Vec<ChainLink> {
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
            HopKind::Next => ", ".to_owned(),
            HopKind::Handoff => passes.clone(),
            HopKind::Consult if group < links.len() => ", ".to_owned(),
            HopKind::Consult => consults.clone(),
        };
        links.push(ChainLink { how, name, times: 1, role, consults: from.cloned() });
    }
    links.reverse();
    links
}

/// Draws the chain of handoffs or consultations; its end is always in view.
fn chain(
    cx: &DrawContext,
    world: &World,
    team: &AgentsFold,
    links: &[ChainLink],
    area: Rect,
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let coordinator = team.plan.coordinator();
    if links.is_empty() && coordinator.is_none() {
        pen.put("no agent called yet", dim);
        return;
    }
    let head = coordinator.map_or("", |it| it.as_str());
    let room = usize::from(area.width).saturating_sub(columns(head));
    let mut used = 0;
    let fits = |link: &&ChainLink| {
        used += link.width();
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
    consults: Option<AgentName>,
}

impl ChainLink {
    fn width(&self) -> usize {
        columns(&self.how) + columns(&self.text())
    }

    fn text(&self) -> String {
        match self.times {
            1 => self.name.clone(),
            times => format!("{} x{times}", self.name),
        }
    }
}

/// The active agents: those whose models are called, and those that received work and gave none of it to
/// others; else the one in control.
fn active(cx: &DrawContext, world: &World, team: &AgentsFold) -> Vec<(String, StyleRole)> {
    if !world.progress.is_live() {
        return Vec::new();
    }
    let running: Vec<_> = team.running().collect();
    let is_last = |hop: &&&HopRow| {
        !running.iter().any(|it| it.span != hop.span && world.is_within(it.span, hop.span))
    };
    let speaking = team.agents.iter().filter(|row| row.speaking.is_some()).map(|row| &row.name);
    let mut names: Vec<&AgentName> = speaking.collect();
    for hop in running.iter().filter(is_last) {
        if !names.contains(&&hop.to) {
            names.push(&hop.to);
        }
    }
    let name = match names.len() {
        0 => team.in_control.as_ref(),
        1 => names.pop(),
        several => {
            let several = (format!("{several} agents"), StyleRole::Strong);
            return vec![("active: ".to_owned(), StyleRole::Dim), several];
        }
    };
    let Some(name) = name else { return Vec::new() };
    let mut said =
        vec![("active: ".to_owned(), StyleRole::Dim), (name.to_string(), StyleRole::Strong)];
    if let Some(model) = world.models.for_agent(name.as_str()) {
        let model = elide_middle(model, usize::from(MODEL), cx.glyphs);
        said.push((format!(" {model}"), StyleRole::Dim));
    }
    said
}

/// The use of a swarm's limits.
fn limits(cx: &DrawContext, team: &AgentsFold, plan: &AgentsPlan) -> Vec<(String, StyleRole)> {
    let Some((swarm, row)) = plan.outer_swarm().zip(team.outer_swarm()) else { return Vec::new() };
    let (least, window) = (swarm.repetitive_handoff_min_unique, swarm.repetitive_handoff_window);
    let mut said: Vec<_> = guard_text(&row.guard, least, window).into_iter().collect();
    if row.rejections > 0 {
        let gap = if said.is_empty() { "" } else { "   " };
        let glyph = cx.glyphs.symbol(Glyph::Refused);
        said.push((format!("{gap}{glyph} {} refused", row.rejections), StyleRole::Refused));
    }
    said
}
