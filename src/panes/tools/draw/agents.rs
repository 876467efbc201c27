//! The agents of a run that puts load on tools, a glyph each: calling, queued for a call slot, or idle.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::layout::line;
use crate::event::world::load::{LoadAgent, ToolLoad};
use crate::narrate::glyph::Glyph;
use crate::ui::cx::DrawContext;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Activity of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentActivity {
    Calling,
    Queued,
    Idle,
}

impl AgentActivity {
    const ALL: [AgentActivity; 3] = [Self::Calling, Self::Queued, Self::Idle];

    /// Its glyph, how it is painted, and its word. In a run that was interrupted, calls were cut off.
    fn sign(self, is_live: bool) -> (Glyph, StyleRole, &'static str) {
        match self {
            Self::Calling if is_live => (Glyph::Running, StyleRole::Running, "calling"),
            Self::Calling => (Glyph::Off, StyleRole::Off, "cut off"),
            Self::Queued => (Glyph::Waiting, StyleRole::Retry, "queued"),
            Self::Idle => (Glyph::NotYet, StyleRole::Dim, "idle"),
        }
    }

    fn from_agent(agent: &LoadAgent) -> AgentActivity {
        match (&agent.calling, agent.waits_for_slot) {
            (Some(_), true) => Self::Queued,
            (Some(_), false) => Self::Calling,
            (None, _) => Self::Idle,
        }
    }
}

/// Number of rows for the agents at this width, including the row of counts.
pub(crate) fn rows(width: u16, load: &ToolLoad<'_>) -> u16 {
    let across = usize::from(width.saturating_sub(2)).max(1);
    u16::try_from(load.agents.len().div_ceil(across)).unwrap_or(u16::MAX).saturating_add(1)
}

/// Draws the counts and the agents; only the counts if the agents do not all fit.
pub(crate) fn render(
    cx: &DrawContext,
    area: Rect,
    load: &ToolLoad<'_>,
    is_live: bool,
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let agents = load.agents;
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(1).put("agents  ", dim);
    for does in AgentActivity::ALL {
        let (glyph, role, word) = does.sign(is_live);
        let count = agents.iter().filter(|agent| AgentActivity::from_agent(agent) == does).count();
        let style = cx.theme.style(if count == 0 { StyleRole::Dim } else { role });
        pen.glyph(glyph, style).put(&format!(" {count} {word}"), style).space(3);
    }
    let turns = || agents.iter().map(|agent| agent.turn);
    if let (Some(first), Some(last)) = (turns().min(), turns().max()) {
        let far = if first == last { last.to_string() } else { format!("{first} to {last}") };
        let text = format!("turn {far} of {}", load.turns);
        if pen.fits(columns(&text)) {
            pen.put(&text, dim);
        }
    }
    let across = usize::from(area.width.saturating_sub(2)).max(1);
    if rows(area.width, load) > area.height {
        return;
    }
    for (nth, row) in agents.chunks(across).enumerate() {
        let at = line(area, u16::try_from(nth + 1).unwrap_or(u16::MAX));
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.space(1);
        for agent in row {
            let (glyph, role, _) = AgentActivity::from_agent(agent).sign(is_live);
            pen.glyph(glyph, cx.theme.style(role));
        }
    }
}
