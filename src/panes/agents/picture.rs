//! The agents that a picture of them shows.

use crate::agents::plan::AgentsPlan;
use crate::agents::projection::AgentsFold;
use crate::base::name::AgentName;

/// The agents in the picture: all but the swarm that the operator talks to, whose members speak for
/// it, and agents that no one can ever call. It depends on the plan alone.
pub fn agents_in_picture(plan: &AgentsPlan) -> impl Iterator<Item = &AgentName> {
    let swarm = plan.outer_swarm().is_some();
    let rosters = plan.agents.iter().any(|agent| agent.swarm.is_some());
    plan.agents.iter().map(|agent| &agent.name).filter(move |name| {
        let member = || plan.agents.iter().any(|agent| agent.members.contains(name));
        if plan.is_root(name) { !swarm } else { rosters || member() }
    })
}

/// Whether no one can call an agent at present: it is in no team, and in no swarm's current
/// members.
pub fn is_on_bench(team: &AgentsFold, plan: &AgentsPlan, name: &AgentName) -> bool {
    let teams = plan.agents.iter().filter(|agent| agent.swarm.is_none());
    !plan.is_root(name)
        && !teams.flat_map(|agent| &agent.members).any(|member| member == name)
        && !team.swarms.iter().any(|swarm| swarm.members.contains(name))
}
