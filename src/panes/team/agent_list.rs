//! The places of the list of a team's agents, so that a click finds its agent. Pure geometry.

use std::ops::Range;

use ratatui::layout::Rect;

use crate::agents::plan::AgentsPlan;
use crate::app::run::layout::window_start;
use crate::base::name::AgentName;
use crate::panes::agents::picture::agents_in_picture;

/// Rows above the agents: the column names.
pub const AGENTS_HEAD: u16 = 1;

/// The list of the agents, and the totals below it.
#[derive(Clone, Debug)]
pub struct AgentList {
    /// The agents in view, by index.
    pub rows: Range<usize>,
    /// How many agents there are.
    pub count: usize,
    /// The rows of the totals.
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
        let rows = usize::from(area.height.saturating_sub(AGENTS_HEAD + below));
        let at = selected.and_then(|name| agents_in_picture(plan).position(|it| it == name));
        let first = window_start(at.unwrap_or(0), count, rows);
        let totals = Rect { y: area.bottom() - totals, height: totals, ..area };
        Self { rows: first..(first + rows).min(count), count, totals }
    }

    /// The agent in a row of the area, from its top.
    pub fn agent_at<'p>(&self, plan: &'p AgentsPlan, row: u16) -> Option<&'p AgentName> {
        let row = usize::from(row.checked_sub(AGENTS_HEAD)?);
        let at = self.rows.start.checked_add(row).filter(|at| self.rows.contains(at))?;
        agents_in_picture(plan).nth(at)
    }
}
