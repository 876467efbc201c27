//! The members drawer of a team: the members of each swarm, and the agents that could join. The
//! drawer shows the current members; a pending change is shown next to them.

use ratatui::layout::Rect;

use crate::agents::facts::roster::{RosterChange, RosterCommand};
use crate::app::action::Action;
use crate::app::layout::{DrawerParts, Size, drawer, keep_in_view};
use crate::app::run::RunPage;
use crate::app::selection::moved_index;
use crate::base::name::AgentName;
use crate::event::kind::Initiator;
use crate::event::world::World;
use crate::event::{Command, RunId};

/// Rows below the list: a description of the selected agent, and the effect of a change. A
/// longer list covers the last of them, which are rarely needed.
const FOOT: u16 = 6;

/// A line of the drawer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersRow {
    /// A swarm.
    Swarm(AgentName),
    /// An agent that is a member, or could become one.
    Agent(RosterEntry),
}

/// An agent, seen as a possible member of a swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterEntry {
    /// The swarm.
    pub swarm: AgentName,
    /// The agent.
    pub agent: AgentName,
}

impl RosterEntry {
    /// Whether a change of this member is pending: `true` to join, `false` to leave.
    pub fn pending(&self, page: &RunPage) -> Option<bool> {
        let mut changes = page.pending_changes().members();
        let own = changes.find(|it| it.swarm == self.swarm && it.agent == self.agent)?;
        Some(own.joins)
    }
}

/// The parts of the drawer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembersParts {
    /// All of it, border included.
    pub window: Rect,
    /// The swarms and their agents.
    pub list: Rect,
    /// The text about the selected agent.
    pub foot: Rect,
    /// The first line in view.
    pub top: usize,
}

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersDrawer {
    /// The run of the swarms.
    pub run: RunId,
    /// The selected agent.
    pub selected: Option<RosterEntry>,
}

/// The lines of the drawer: each swarm with its first members, then the agents that could join it.
pub fn member_rows(world: &World) -> Vec<MembersRow> {
    let Some(team) = world.agents() else { return Vec::new() };
    let plan = &team.plan;
    let mut rows = Vec::new();
    for swarm in &team.swarms {
        rows.push(MembersRow::Swarm(swarm.name.clone()));
        // The order is that of the plan, so that a row never moves when an agent joins.
        let start = plan.agent(&swarm.name).map(|head| head.members.as_slice()).unwrap_or_default();
        let others = plan.agents.iter().filter(|head| head.kind == "agent");
        let others = others.map(|head| &head.name).filter(|name| !start.contains(name));
        for agent in start.iter().chain(others) {
            let place = RosterEntry { swarm: swarm.name.clone(), agent: agent.clone() };
            rows.push(MembersRow::Agent(place));
        }
    }
    rows
}

/// Whether an agent is a member of a swarm now.
pub fn is_member(world: &World, place: &RosterEntry) -> bool {
    let swarm = world.agents().and_then(|team| team.swarm(&place.swarm));
    swarm.is_some_and(|swarm| swarm.members.contains(&place.agent))
}

/// Whether an agent is the entry of a swarm, which cannot leave.
pub fn is_entry(world: &World, place: &RosterEntry) -> bool {
    let swarm = world.agents().and_then(|it| it.plan.swarm(&place.swarm));
    swarm.is_some_and(|swarm| swarm.entry == place.agent)
}

impl MembersDrawer {
    /// The drawer of a run, with the first member selected.
    pub fn new(run: RunId, world: &World) -> Self {
        let first = member_rows(world).into_iter().find_map(|row| match row {
            MembersRow::Agent(place) => Some(place),
            MembersRow::Swarm(_) => None,
        });
        Self { run, selected: first }
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> MembersParts {
        let rows = member_rows(world);
        let wanted = u16::try_from(rows.len().max(1)).unwrap_or(u16::MAX);
        let DrawerParts { window, list, note } = drawer(size.body(), wanted, FOOT);
        let at = self.selected_index(&rows).unwrap_or(0);
        MembersParts {
            window,
            list,
            foot: note,
            // The row with the swarm's name is kept in view with the selection.
            top: keep_in_view(0, at, usize::from(list.height), rows.len()),
        }
    }

    fn selected_index(&self, rows: &[MembersRow]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        rows.iter().position(|row| matches!(row, MembersRow::Agent(place) if place == selected))
    }

    /// The agent on this line.
    pub fn entry_at(&self, world: &World, line: usize) -> Option<RosterEntry> {
        match member_rows(world).into_iter().nth(line)? {
            MembersRow::Agent(place) => Some(place),
            MembersRow::Swarm(_) => None,
        }
    }

    /// Selects the row on this line of the list; the row `top` is the first in view. Returns whether it
    /// was selected before and can be switched; `None` if the line has no row.
    pub(crate) fn select_line(&mut self, line: usize, top: usize, world: &World) -> Option<bool> {
        let entry = self.entry_at(world, top + line)?;
        let before = self.selected.replace(entry.clone());
        Some(before == Some(entry))
    }

    pub(crate) fn on_move(&mut self, action: Action, world: &World, page: usize) -> bool {
        let places: Vec<RosterEntry> = member_rows(world)
            .into_iter()
            .filter_map(|row| match row {
                MembersRow::Agent(place) => Some(place),
                MembersRow::Swarm(_) => None,
            })
            .collect();
        let at = places.iter().position(|place| Some(place) == self.selected.as_ref());
        match moved_index(action, at, places.len(), page).and_then(|at| places.get(at)) {
            Some(place) => {
                self.selected = Some(place.clone());
                true
            }
            None => false,
        }
    }

    /// The command for a switch of the selected agent, or why there is none.
    pub(crate) fn command(&self, page: &RunPage) -> Result<Command, String> {
        let world = page.world();
        let Some(place) = &self.selected else { return Err("This run has no swarm.".to_owned()) };
        let RosterEntry { swarm, agent } = place.clone();
        if !world.progress.is_live() {
            return Err("The run has ended: its swarms can no longer change.".to_owned());
        }
        if is_entry(world, place) {
            return Err(format!("{swarm} starts with {agent}: it cannot leave."));
        }
        let joined = place.pending(page).unwrap_or(is_member(world, place));
        let change = match joined {
            true => RosterChange::Remove { agent },
            false => RosterChange::Add { agent },
        };
        Ok(Command::Roster(RosterCommand { swarm, change, by: Initiator::You }))
    }
}
