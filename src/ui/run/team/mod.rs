//! The panes of a coordinator team or a swarm: graph, hops, calls, transcript.

pub(super) mod calls;
pub(super) mod chain;
pub(super) mod graph;
pub(super) mod hops;
pub(super) mod transcript;

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::agents::projection::AgentRow;
use crate::agents::projection::Team;
use crate::app::run::team::{agents_in_picture, hop_areas};
use crate::app::run::{Pane, RunPage};
use crate::event::Elapsed;
use crate::event::kind::TeamPlan;
use crate::event::world::World;
use crate::ui::DrawContext;
use crate::ui::glyph::Glyph;
use crate::ui::text::{Pen, columns, elide, elide_middle};
use crate::ui::theme::{StateSign, StyleRole};

/// Width limit of a model's name, in a run with several models.
const MODEL: u16 = 18;

/// Draws a model's name in exactly `width` columns. A narrow column keeps the start of the name; a
/// wide one also its end, which tells versions apart.
fn put_model(cx: &DrawContext, pen: &mut Pen, name: &str, width: u16, style: Style) {
    let start = pen.x();
    let columns = usize::from(width);
    let text = match width {
        0..12 => elide(name, columns, cx.glyphs),
        _ => elide_middle(name, columns, cx.glyphs),
    };
    pen.put_within(&text, width, style).advance_to(start + width);
}

/// Whether the pane follows the run, after its title.
pub(super) fn follows(page: &RunPage, cx: &DrawContext, pane: Pane) -> String {
    let follows = match pane {
        Pane::Second => page.follows_hops(),
        Pane::Fourth => page.follows_transcript(),
        _ => return String::new(),
    };
    let dot = cx.glyphs.symbol(Glyph::Dot);
    match follows {
        _ if page.shown().team().is_none() => String::new(),
        true => format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)),
        false => format!(" {dot} G: follow"),
    }
}

/// The range of rows in view, such as `1-11 of 12`; empty if all fit.
pub(super) fn rows_in_view(page: &RunPage, pane: Pane, area: Rect) -> String {
    let Some(team) = page.shown().team() else { return String::new() };
    let plan = &*team.plan;
    let (window, all) = match pane {
        Pane::First if page.graph(area).is_none() => {
            (page.listed(plan, area), agents_in_picture(plan).count())
        }
        Pane::Second => {
            let (rows, _) = hop_areas(area);
            (page.hop_rows(usize::from(rows.height)).0, team.hops.len())
        }
        Pane::Third => match page.call_tree() {
            Some(tree) => (page.call_rows(&tree, usize::from(area.height)).0, tree.len()),
            None => return String::new(),
        },
        _ => return String::new(),
    };
    if window.is_empty() || window.len() >= all {
        return String::new();
    }
    format!("{}-{} of {all}", window.start + 1, window.end)
}

/// Width of the longest agent name.
fn names(plan: &TeamPlan) -> u16 {
    let longest = plan.agents.iter().map(|agent| columns(agent.name.as_str())).max();
    u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX)
}

/// The state of an agent. After the run's end no agent is running.
fn agent_sign(cx: &DrawContext, world: &World, row: &AgentRow) -> StateSign {
    use crate::agents::projection::AgentState;
    match row.state {
        AgentState::Running if !world.is_live() => {
            StateSign { glyph: Glyph::Off, word: "stopped", style: cx.theme.style(StyleRole::Off) }
        }
        state => cx.theme.agent(state),
    }
}

/// Total time that an agent was active, including the current turn.
fn time_held(world: &World, row: &AgentRow, now: Elapsed) -> Duration {
    let going = row.since.map(|since| world.active_between(since, now)).unwrap_or_default();
    row.work_time + going
}

/// Whether this agent is in control, or gave the answer of a run that has ended.
fn is_active_agent(world: &World, team: &Team, row: &AgentRow) -> bool {
    let whom = if world.is_live() { &team.in_control } else { &team.answered_by };
    whom.as_ref().or(team.in_control.as_ref()) == Some(&row.name)
}

/// The end of an arriving text, in one row.
fn tail(text: &str, width: usize) -> String {
    let mut from = text.len().saturating_sub(width.saturating_mul(4));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let flat = text[from..].replace(['\n', '\r', '\t'], " ");
    let mut start = 0;
    while columns(&flat[start..]) > width {
        start += flat[start..].chars().next().map_or(1, char::len_utf8);
    }
    flat[start..].to_owned()
}
