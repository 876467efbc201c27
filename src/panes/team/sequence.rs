//! The rows of the sequence diagram: the operator's message to a coordinator, each hop, and the end
//! of the run. A row is read by its index, so that a frame costs only the rows in view.

use ratatui::layout::Rect;

use super::lanes::{HopArrow, LaneEnd, Lanes};
use crate::agents::projection::{AgentsFold, HopKind, HopRow, HopState};
use crate::app::run::data::RunData;
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::event::kind::RunClosed;
use crate::event::world::World;
use crate::narrate::measure::columns;
use crate::panes::agents::picture::agents_in_picture;

/// A row of the diagram.
#[derive(Clone, Copy, Debug)]
pub enum SequenceRow<'a> {
    /// The operator's message to a coordinator. That to a swarm is its first hop.
    Asked(&'a AgentName),
    /// A hop, with its index.
    Hop(usize, &'a HopRow),
    /// The end of the run.
    Ended(&'a RunClosed),
}

/// The rows of the diagram of a world.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    world: &'a World,
    team: &'a AgentsFold,
}

impl<'a> Sequence<'a> {
    /// The rows of the world that is shown.
    pub fn of(run: &'a RunData) -> Option<Self> {
        let world = run.shown();
        Some(Self { world, team: world.agents()? })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let ended = usize::from(self.world.progress.closed.is_some());
        self.asked() + self.team.hops.len() + ended
    }

    fn asked(&self) -> usize {
        usize::from(self.team.plan.coordinator().is_some())
    }

    /// The row with this index.
    pub fn row(&self, at: usize) -> Option<SequenceRow<'a>> {
        let Some(hop) = at.checked_sub(self.asked()) else {
            return self.team.plan.coordinator().map(SequenceRow::Asked);
        };
        match self.team.hops.get(hop) {
            Some(row) => Some(SequenceRow::Hop(hop, row)),
            None if hop == self.team.hops.len() => {
                self.world.progress.closed.as_deref().map(SequenceRow::Ended)
            }
            None => None,
        }
    }

    /// The call behind a row.
    pub fn call(&self, row: SequenceRow<'a>) -> Option<SpanId> {
        match row {
            SequenceRow::Asked(agent) => self.team.agent(agent)?.last_call,
            SequenceRow::Hop(_, hop) => Some(hop.span),
            SequenceRow::Ended(_) => self.team.agent(self.team.answered_by.as_ref()?)?.last_call,
        }
    }

    /// The agents that gave and got the work of a row; an agent without a name is the operator.
    pub fn agents_of(
        &self,
        row: SequenceRow<'a>,
    ) -> Option<(Option<&'a AgentName>, Option<&'a AgentName>)> {
        match row {
            SequenceRow::Asked(agent) => Some((None, Some(agent))),
            SequenceRow::Hop(_, hop) => {
                // A swarm within a team starts its first member itself.
                let from = hop.from.as_ref().or((hop.depth > 0).then_some(&hop.team));
                Some((from, Some(&hop.to)))
            }
            SequenceRow::Ended(closed) => {
                let by = self.team.answered_by.as_ref().filter(|_| closed.reason.is_success())?;
                Some((Some(by), None))
            }
        }
    }

    /// The agent in control after a row.
    pub fn in_control(&self, row: SequenceRow<'a>) -> Option<&'a AgentName> {
        match row {
            SequenceRow::Asked(agent) => Some(agent),
            SequenceRow::Hop(_, hop) => hop.in_control.as_ref(),
            SequenceRow::Ended(_) => None,
        }
    }
}

/// How a row is drawn.
pub fn arrow_of(row: SequenceRow<'_>) -> HopArrow {
    match row {
        SequenceRow::Hop(_, HopRow { state: HopState::Refused(_), .. }) => HopArrow::Refused,
        SequenceRow::Hop(_, HopRow { kind: HopKind::Consult, .. }) => HopArrow::Consults,
        _ => HopArrow::Passes,
    }
}

/// The diagram in an area: the lanes, if they fit, and the areas of its parts.
#[derive(Clone, Debug)]
pub struct Diagram<'a> {
    /// The agents of the lanes, from left to right.
    pub agents: Vec<&'a AgentName>,
    /// Their lanes; `None` if there is no room: the rows then name the agents.
    pub lanes: Option<Lanes>,
    /// The rows above the hops: the names of the lanes.
    pub head: Rect,
    /// The rows of the hops.
    pub rows: Rect,
    /// The row below them, if there is room: the selected or newest hop in words, or the legend.
    pub foot: Rect,
}

impl<'a> Diagram<'a> {
    /// The diagram of the shown world.
    pub fn of(run: &'a RunData, area: Rect) -> Option<Self> {
        let team = run.shown().agents()?;
        let agents: Vec<&AgentName> = agents_in_picture(&team.plan).collect();
        let name = |name: &&AgentName| u16::try_from(columns(name.as_str())).unwrap_or(u16::MAX);
        let names: Vec<u16> = agents.iter().map(name).collect();
        let foot_rows = u16::from(area.height >= 7);
        let lanes = Lanes::fit(area.width, area.height - foot_rows, &names);
        let foot_rows = if lanes.is_some() { foot_rows } else { 0 };
        let head_rows = lanes.as_ref().map_or(1, |lanes| lanes.name_rows).min(area.height);
        let head = Rect { height: head_rows, ..area };
        let rows = area.height - head_rows - foot_rows.min(area.height - head_rows);
        let rows = Rect { y: head.bottom(), height: rows, ..area };
        let foot = Rect { y: rows.bottom(), height: foot_rows, ..area };
        Some(Self { agents, lanes, head, rows, foot })
    }

    /// The lane of an agent; the operator's for `None`.
    pub fn lane_end(&self, agent: Option<&AgentName>) -> Option<LaneEnd> {
        let Some(agent) = agent else { return Some(LaneEnd::You) };
        self.agents.iter().position(|it| *it == agent).map(LaneEnd::Agent)
    }

    /// The agent whose name is at this cell.
    pub fn named_at(&self, col: u16, row: u16) -> Option<&'a AgentName> {
        let row = row.checked_sub(self.head.y).filter(|row| *row < self.head.height)?;
        let at = self.lanes.as_ref()?.named_at(col.checked_sub(self.head.x)?, row)?;
        self.agents.get(at).copied()
    }
}
