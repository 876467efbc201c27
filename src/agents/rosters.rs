//! The members of the swarms of a run, which can change while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::facts::AgentFact;
use super::facts::roster::{RosterChange, RosterCommand};
use super::spec::{AgentKind, AgentsSpec, check_names};
use crate::base::name::AgentName;
use crate::bus::Bus;
use crate::event::{Command, EventKind, SpanId};
use crate::run::LiveControl;

/// The members of each swarm.
pub struct Rosters {
    bus: Bus,
    state: Mutex<RosterState>,
    /// Agents that may join: only model agents can hand over.
    may_join: BTreeSet<AgentName>,
}

struct RosterState {
    swarms: BTreeMap<AgentName, Roster>,
    closed: bool,
}

struct Roster {
    entry: AgentName,
    at_start: Arc<[AgentName]>,
    members: Arc<[AgentName]>,
}

impl Rosters {
    /// The swarms of these agents. `left` has the members that earlier runs of the session changed.
    pub fn new(
        bus: Bus,
        agents: &AgentsSpec,
        left: &BTreeMap<AgentName, Arc<[AgentName]>>,
    ) -> Self {
        let swarms = agents.values().filter_map(|agent| {
            let AgentKind::Swarm(swarm) = &agent.kind else { return None };
            let at_start: Arc<[AgentName]> = swarm.members.clone().into();
            let members = left.get(&agent.name).unwrap_or(&at_start);
            let (entry, members) = (swarm.entry.clone(), Arc::clone(members));
            Some((agent.name.clone(), Roster { entry, at_start, members }))
        });
        let able = agents.values().filter(|it| matches!(it.kind, AgentKind::Model(_)));
        Self {
            bus,
            may_join: able.map(|agent| agent.name.clone()).collect(),
            state: Mutex::new(RosterState { swarms: swarms.collect(), closed: false }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RosterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current members of a swarm; empty if there is no such swarm.
    pub fn members(&self, swarm: &AgentName) -> Arc<[AgentName]> {
        self.lock().swarms.get(swarm).map_or_else(|| [].into(), |it| Arc::clone(&it.members))
    }

    /// The swarms whose members differ from those at the start.
    pub fn changed(&self) -> BTreeMap<AgentName, Arc<[AgentName]>> {
        let state = self.lock();
        let changed = state.swarms.iter().filter(|(_, it)| it.members != it.at_start);
        changed.map(|(name, roster)| (name.clone(), Arc::clone(&roster.members))).collect()
    }

    /// Changes the members of a swarm and publishes it. An impossible change is ignored: the entry
    /// agent cannot leave, and only the scenario's model agents can join.
    fn change(&self, command: RosterCommand) {
        let RosterCommand { swarm, change, by } = command;
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let Some(roster) = state.swarms.get_mut(&swarm) else { return };
        let mut members: Vec<AgentName> = roster.members.to_vec();
        match &change {
            RosterChange::Add { agent } => members.push(agent.clone()),
            RosterChange::Remove { agent } => members.retain(|member| member != agent),
            RosterChange::Replace { members: others } => members.clone_from(others),
        }
        let names: Vec<&str> = members.iter().map(AgentName::as_str).collect();
        let good = check_names(None, Some(roster.entry.as_str()), &names).is_ok()
            && members.iter().all(|member| self.may_join.contains(member));
        if !good || *members == *roster.members {
            return;
        }
        roster.members = members.into();
        let members = Arc::clone(&roster.members);
        let changed = AgentFact::RosterChanged { swarm, members, change, by };
        self.bus.publish(SpanId::RUN, EventKind::from(changed));
    }
}

impl LiveControl for Rosters {
    fn take(&self, command: Command) -> Option<Command> {
        match command {
            Command::Roster(command) => {
                self.change(command);
                None
            }
            other => Some(other),
        }
    }

    fn end(&self) {
        self.lock().closed = true;
    }
}
