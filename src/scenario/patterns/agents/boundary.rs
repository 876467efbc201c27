//! Which boundaries agents can reach.

use super::{AgentKind, AgentSpec, AgentsSpec};
use crate::base::name::AgentName;

/// The agents of a team, and the one that the user talks to.
#[derive(Clone, Copy)]
pub(crate) struct TeamAgents<'s> {
    pub root: &'s AgentName,
    pub all: &'s AgentsSpec,
}

impl<'s> TeamAgents<'s> {
    fn agent(self, name: &AgentName) -> Option<&'s AgentSpec> {
        self.all.get(name)
    }
}

/// Checks `ask:ROUND:PATH`, `handoff:NTH:AGENT` of the outermost swarm and `handoff:NTH:PATH/AGENT`
/// of a nested one. A path begins with the outermost agent; each nested agent has its turn number:
/// `pm/dev_team.1`. `examples` names boundaries that are reached.
pub(crate) fn check_boundary(
    team: TeamAgents<'_>,
    at: &str,
    examples: &dyn Fn() -> String,
) -> Result<(), String> {
    let mut parts = at.splitn(3, ':');
    let word = parts.next();
    let nth = parts.next().and_then(|nth| nth.parse::<u32>().ok()).unwrap_or(1);
    let path = parts.next().unwrap_or_default();
    let names = path.split('/').map(|step| step.rsplit_once('.').map_or(step, |it| it.0));
    let stranger = names.into_iter().find(|name| !team.all.contains_key(*name));
    if let (Some("ask" | "handoff"), Some(name)) = (word, stranger) {
        let known: Vec<&str> = team.all.keys().map(AgentName::as_str).collect();
        return Err(format!("no such agent: {name:?}; use {}", known.join(", ")));
    }
    let never = |why: String| {
        let why = if why.is_empty() { why } else { format!(": {why}") };
        Err(format!("never reached here{why}; use {}", examples()))
    };
    match word {
        Some("ask") => match agent_at_path(team, path) {
            Ok(agent) if nth == 1 && starts_by_handoff(team, path, agent) => {
                never(format!("a handoff comes before {}'s first call", agent.name))
            }
            Ok(agent) => match agent.kind.model() {
                Some(model) if nth <= model.max_tool_rounds.saturating_add(1) => Ok(()),
                Some(model) => {
                    let most = model.max_tool_rounds;
                    never(format!("max_tool_rounds of {} is {most}", agent.name))
                }
                // A swarm makes no model calls, its members do.
                None => never(String::new()),
            },
            Err(why) => never(why),
        },
        Some("handoff") => {
            let (place, to) = path.rsplit_once('/').unwrap_or((team.root.as_str(), path));
            match agent_at_path(team, place).and_then(|agent| check_handoff(team, agent, to, nth)) {
                Ok(()) if place == team.root.as_str() && path != to => {
                    never(format!("in {place} it is handoff:{nth}:{to}"))
                }
                Ok(()) => Ok(()),
                Err(why) => never(why),
            }
        }
        _ => never(String::new()),
    }
}

/// Checks that the swarm can make its nth handoff to this member.
fn check_handoff(
    team: TeamAgents<'_>,
    agent: &AgentSpec,
    to: &str,
    nth: u32,
) -> Result<(), String> {
    let AgentKind::Swarm(swarm) = &agent.kind else {
        return Err(format!("{} is not a swarm, it has no handoffs", agent.name));
    };
    let most = swarm.limits.max_handoffs;
    if most > 0 && nth > most {
        return Err(format!("max_handoffs of {} is {most}", agent.name));
    }
    member_named(team, agent, to).map(drop)
}

/// Whether the agent at this path is a swarm member that only gets control by a handoff. Such a
/// member never starts, not even for a later message of the session.
fn starts_by_handoff(team: TeamAgents<'_>, path: &str, agent: &AgentSpec) -> bool {
    let Some((of, _)) = path.rsplit_once('/') else { return false };
    let Ok(AgentSpec { kind: AgentKind::Swarm(swarm), name, .. }) = agent_at_path(team, of) else {
        return false;
    };
    let owners_start = swarm.cross_request_transfer && name == team.root;
    agent.name != swarm.entry && !owners_start
}

fn agent_at_path<'s>(team: TeamAgents<'s>, path: &str) -> Result<&'s AgentSpec, String> {
    let mut steps = path.split('/');
    let root = team.agent(team.root).filter(|root| steps.next() == Some(root.name.as_str()));
    let mut at = root.ok_or_else(|| format!("a path begins with {}", team.root))?;
    for step in steps {
        let (name, turn) = step.rsplit_once('.').unwrap_or((step, ""));
        let turn = turn.parse::<u32>().ok().filter(|it| *it > 0 && it.to_string() == turn);
        if turn.is_none() {
            return Err(format!("{step} has no turn number, the first is {name}.1"));
        }
        at = member_named(team, at, name)?;
    }
    Ok(at)
}

/// Finds an agent that is a member of this one, or may join it.
fn member_named<'s>(
    team: TeamAgents<'s>,
    of: &AgentSpec,
    name: &str,
) -> Result<&'s AgentSpec, String> {
    let found = team.agent(&name.into()).filter(|agent| match &of.kind {
        AgentKind::Swarm(_) => matches!(agent.kind, AgentKind::Model(_) | AgentKind::Person(_)),
        AgentKind::Model(_) | AgentKind::Team(_) | AgentKind::Person(_) => {
            of.kind.members().contains(&agent.name)
        }
    });
    found.ok_or_else(|| format!("{name} is not a member of {}", of.name))
}

/// Examples of this team's boundaries, for error messages.
pub(crate) fn example_boundaries(team: TeamAgents<'_>) -> String {
    let root = team.root;
    let Some(AgentKind::Swarm(swarm)) = team.agent(root).map(|it| &it.kind) else {
        let handoff = first_swarm_path(team, root, root.to_string());
        let handoff = handoff.map(|path| format!(", handoff:1:{path}/AGENT"));
        let member = team.agent(root).and_then(|root| root.kind.members().first());
        let member = member
            .filter(|name| team.agent(name).is_some_and(|member| member.kind.model().is_some()));
        let member = member.map(|member| format!(", ask:1:{root}/{member}.1"));
        return format!(
            "ask:1:{root}{}{}",
            member.unwrap_or_default(),
            handoff.unwrap_or_default()
        );
    };
    format!("ask:1:{root}/{}.1, handoff:1:AGENT", swarm.entry)
}

/// The path of the first swarm within an agent. The recursion ends: no team contains itself.
fn first_swarm_path(team: TeamAgents<'_>, of: &AgentName, path: String) -> Option<String> {
    match &team.agent(of)?.kind {
        AgentKind::Model(_) | AgentKind::Person(_) => None,
        AgentKind::Swarm(_) => Some(path),
        AgentKind::Team(coordinator) => {
            let mut members = coordinator.members.iter();
            members.find_map(|member| first_swarm_path(team, member, format!("{path}/{member}.1")))
        }
    }
}
