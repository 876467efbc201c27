//! The setup of agents, for the head of a log.

use std::sync::Arc;

use super::plan::{AgentHead, SwarmHead};
use super::spec::{AgentKind, AgentSpec, AgentsSpec};
use crate::base::name::AgentName;
use crate::event::id::millis;
use crate::run::Session;

/// The setup of all agents: each of `roots` before its members, agents in no `members` list last.
pub(crate) fn agent_heads<'s>(
    agents: &'s AgentsSpec,
    roots: impl DoubleEndedIterator<Item = &'s AgentName>,
    session: &Session,
) -> Arc<[AgentHead]> {
    let mut heads: Vec<AgentHead> = Vec::new();
    let mut next: Vec<&AgentName> = roots.rev().collect();
    let mut others: Vec<&AgentName> = agents.keys().rev().collect();
    while let Some(name) = next.pop().or_else(|| others.pop()) {
        let new = || heads.iter().all(|head| head.name != *name);
        let Some(agent) = agents.get(name).filter(|_| new()) else { continue };
        next.extend(agent.kind.members().iter().rev());
        heads.push(agent_head(agent, session));
    }
    heads.into()
}

/// The setup of an agent; its members are those that earlier runs of the session left.
fn agent_head(agent: &AgentSpec, session: &Session) -> AgentHead {
    let left = session.memory.rosters.get(&agent.name);
    let (model, team, swarm) = match &agent.kind {
        AgentKind::Model(model) => (Some(model), None, None),
        AgentKind::Team(team) => (Some(&team.coordinator), Some(team), None),
        AgentKind::Swarm(swarm) => (None, None, Some(swarm)),
    };
    AgentHead {
        name: agent.name.clone(),
        description: agent.description.to_string(),
        kind: agent.kind.word().to_owned(),
        members: left.map_or(agent.kind.members(), |it| it).to_vec(),
        instruction: model.map(|model| model.instruction.written()).unwrap_or_default(),
        tools: model.map(|model| model.tools.clone()).unwrap_or_default(),
        max_tool_rounds: model.map(|model| model.max_tool_rounds),
        parallel_tools: team.is_some_and(|team| team.parallel_tools),
        member_tools: team.map(|team| team.member_tools),
        swarm: swarm.map(|swarm| SwarmHead {
            entry: swarm.entry.clone(),
            max_handoffs: swarm.limits.max_handoffs,
            repetitive_handoff_window: swarm.limits.repetitive_handoff_window,
            repetitive_handoff_min_unique: swarm.limits.repetitive_handoff_min_unique,
            max_rejections: swarm.max_rejections,
            node_timeout_ms: swarm.node_timeout.map_or(0, millis),
            cross_request_transfer: swarm.cross_request_transfer,
            independent_history: swarm.independent_history,
            handoff_input: swarm.handoff_input.clone(),
        }),
    }
}
