//! Where the agents of a team stand in its picture. Pure geometry, so that a click finds its agent.

use ratatui::layout::Rect;

use super::super::RunPage;
use super::pictured;
use crate::app::run::table::first_seat;
use crate::scenario::name::AgentName;

/// Rows of the list above its agents.
pub const LIST_HEAD: u16 = 1;

impl RunPage {
    /// The agent that stands here.
    pub(super) fn agent_at(&self, area: Rect, col: u16, row: u16) -> Option<AgentName> {
        let _ = col;
        let world = self.shown();
        let (team, plan) = world.team()?;
        let all: Vec<&AgentName> = pictured(world, team, plan).collect();
        let rows = area.height.saturating_sub(LIST_HEAD);
        let at = self.selected_agent().and_then(|name| all.iter().position(|it| *it == name));
        let first = first_seat(at.unwrap_or(0), all.len(), usize::from(rows));
        let line = row.checked_sub(area.y + LIST_HEAD)?;
        all.get(first + usize::from(line)).map(|name| (*name).clone())
    }
}
