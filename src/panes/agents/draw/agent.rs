//! An agent's name, model, state and time.

use std::time::Duration;

use ratatui::style::Style;

use crate::agents::plan::AgentsPlan;
use crate::agents::projection::{AgentRow, AgentState, AgentsFold};
use crate::event::Elapsed;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;
use crate::ui::text::{Pen, columns, elide, elide_middle};
use crate::ui::theme::Theme;

/// Width limit of a model's name, in a run with several models.
pub(crate) const MODEL: u16 = 18;

/// Draws a model's name in exactly `width` columns. A narrow column keeps the start of the name; a
/// wide one also its end, which tells versions apart.
pub(crate) fn put_model(cx: &DrawContext, pen: &mut Pen, name: &str, width: u16, style: Style) {
    let start = pen.x();
    let columns = usize::from(width);
    let text = match width {
        0..12 => elide(name, columns, cx.glyphs),
        _ => elide_middle(name, columns, cx.glyphs),
    };
    pen.put_within(&text, width, style).advance_to(start + width);
}

/// Width of the longest agent name.
pub(crate) fn names(plan: &AgentsPlan) -> u16 {
    let longest = plan.agents.iter().map(|agent| columns(agent.name.as_str())).max();
    u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX)
}

/// The state of an agent. After the run's end no agent is running.
pub(crate) fn agent_sign(cx: &DrawContext, world: &World, row: &AgentRow) -> StateSign {
    match row.state {
        AgentState::Running if !world.progress.is_live() => {
            StateSign { glyph: Glyph::Off, word: "stopped", style: cx.theme.style(StyleRole::Off) }
        }
        state => state_sign(cx.theme, state),
    }
}

/// Total time that an agent was active, including the current turn.
pub(crate) fn time_held(world: &World, row: &AgentRow, now: Elapsed) -> Duration {
    let going =
        row.since.map(|since| world.progress.active_between(since, now)).unwrap_or_default();
    row.work_time + going
}

/// Whether this agent is in control, or gave the answer of a run that has ended.
pub(crate) fn is_active_agent(world: &World, team: &AgentsFold, row: &AgentRow) -> bool {
    let whom = if world.progress.is_live() { &team.in_control } else { &team.answered_by };
    whom.as_ref().or(team.in_control.as_ref()) == Some(&row.name)
}

/// The end of an arriving text, in one row.
pub(crate) fn tail(text: &str, width: usize) -> String {
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

/// The sign of an agent in a team.
pub(crate) fn state_sign(theme: &Theme, state: AgentState) -> StateSign {
    match state {
        AgentState::Idle => theme.sign(Glyph::Off, "not used", StyleRole::Off),
        AgentState::Running => theme.sign(Glyph::Running, "working", StyleRole::Running),
        AgentState::Done => theme.sign(Glyph::Done, "done", StyleRole::Done),
        AgentState::Failed => theme.sign(Glyph::Failed, "failed", StyleRole::Failed),
        AgentState::Cancelled => theme.sign(Glyph::Off, "cancelled", StyleRole::Off),
    }
}
