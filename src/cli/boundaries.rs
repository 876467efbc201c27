//! Whether a boundary that a person names ever comes: each pattern has its own.

use crate::event::{BoundaryId, ResearchStep};
use crate::scenario::Scenario;
use crate::scenario::agent::{AgentKind, AgentSpec, ModelAgent, TeamSpec};
use crate::scenario::model::PatternSpec;
use crate::scenario::name::AgentName;
use crate::scenario::orchestrator::OrchestratorSpec;
use crate::scenario::research::ResearchSpec;
use crate::scenario::storm::ResilienceSpec;

/// Whether a run of this scenario can come to a boundary.
///
/// # Errors
/// That it never does, why, and what there is.
pub(super) fn comes(scenario: &Scenario, at: &BoundaryId) -> Result<(), String> {
    let spec = match &scenario.pattern {
        PatternSpec::Collaboration(spec) => spec,
        PatternSpec::Orchestrator(spec) => return orchestrated(scenario, spec, at),
        PatternSpec::Team(spec) => return in_team(spec, at),
        PatternSpec::Resilience(spec) => return stormy(spec, at),
        PatternSpec::Research(spec) => return researched(spec, at),
    };
    let mut parts = at.as_str().splitn(3, ':');
    if !matches!(parts.next(), Some("round" | "message" | "finalize")) {
        let there = "round:2, message:2:ROLE, finalize";
        return Err(format!("never comes here; there are: {there}"));
    }
    let round = parts.next().and_then(|round| round.parse::<u32>().ok()).unwrap_or(1);
    let most = spec.budget.max_rounds;
    if round > most {
        return Err(format!("never comes: budget.max_rounds is {most}"));
    }
    // A seat behind a flag may be empty, and leave its message to another.
    let most = spec.budget.max_messages;
    let empty = spec.roles.values().any(|role| role.behind.is_some());
    let before = u64::from(round - 1) * spec.sequence.len() as u64;
    if !empty && before >= u64::from(most) {
        return Err(format!("never comes: budget.max_messages is {most}"));
    }
    match parts.next() {
        Some(seat) => {
            let (role, nth) = match seat.split_once('#') {
                None => (seat, Some(1)),
                // The first seat of a role is called by the role alone.
                Some((role, nth)) => (role, nth.parse().ok().filter(|nth| *nth > 1)),
            };
            let seats = spec.sequence.iter().filter(|name| name.as_str() == role).count();
            if nth.is_some_and(|nth: usize| nth <= seats) {
                return Ok(());
            }
            if seats > 0 {
                return Err(format!("never comes: {role} has {seats} in the sequence"));
            }
            let names: Vec<&str> = spec.sequence.iter().map(|name| name.as_str()).collect();
            Err(format!("no such role at the table; there are: {}", names.join(", ")))
        }
        None => Ok(()),
    }
}

/// Whether research can come to a boundary.
fn researched(spec: &ResearchSpec, at: &BoundaryId) -> Result<(), String> {
    let steps = ResearchStep::ALL.map(ResearchStep::word);
    if at.as_str() == "plan" || steps.contains(&at.as_str()) {
        return Ok(());
    }
    let most = spec.budget.max_urls;
    let place = at.as_str().strip_prefix("source:").and_then(|place| place.parse::<u32>().ok());
    match place {
        Some(place) if (1..=most).contains(&place) => Ok(()),
        Some(0) => Err("never comes: sources are counted from 1".to_owned()),
        Some(_) => Err(format!("never comes: budget.max_urls is {most}")),
        None => {
            let there = steps.join(", ");
            Err(format!("never comes here; there are: plan, {there}, source:1"))
        }
    }
}

/// `plan`, `dispatch:ATTEMPT:TASK`, `finalize`; the planner names the tasks, so any may come.
fn orchestrated(
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    at: &BoundaryId,
) -> Result<(), String> {
    let mut parts = at.as_str().splitn(3, ':');
    match (parts.next(), parts.next().map(str::parse::<u32>), parts.next()) {
        (Some("plan" | "finalize"), None, None) => Ok(()),
        (Some("dispatch"), Some(Ok(attempt)), Some(_)) => {
            let most = spec.budget.max_dispatches;
            if attempt > most {
                return Err(format!("never comes: budget.max_dispatches is {most}"));
            }
            let attempts = spec.workers.iter().filter_map(|it| scenario.tools.get(&it.name));
            let most = attempts.map(|tool| tool.policy.max_attempts).max().unwrap_or(1);
            if attempt > most {
                return Err(format!("never comes: a task has {most} attempts at most"));
            }
            Ok(())
        }
        _ => Err("never comes here; there are: plan, dispatch:1:TASK, finalize".to_owned()),
    }
}

/// `ask:ROUND:PATH`, `handoff:NTH:AGENT` in the outermost swarm and `handoff:NTH:PATH/AGENT` in one
/// within; a path begins with the outermost agent, and what stands in it is counted:
/// `pm/dev_team.1`.
fn in_team(spec: &TeamSpec, at: &BoundaryId) -> Result<(), String> {
    let mut parts = at.as_str().splitn(3, ':');
    let word = parts.next();
    let nth = parts.next().and_then(|nth| nth.parse::<u32>().ok()).unwrap_or(1);
    let path = parts.next().unwrap_or_default();
    let names = path.split('/').map(|step| step.rsplit_once('.').map_or(step, |it| it.0));
    let stranger = names.into_iter().find(|name| !spec.agents.contains_key(*name));
    if let (Some("ask" | "handoff"), Some(name)) = (word, stranger) {
        let known: Vec<&str> = spec.agents.keys().map(AgentName::as_str).collect();
        return Err(format!("no such agent: {name:?}; there are: {}", known.join(", ")));
    }
    let never = |why: String| {
        let why = if why.is_empty() { why } else { format!(": {why}") };
        Err(format!("never comes here{why}; there are: {}", there_are(spec)))
    };
    match word {
        Some("ask") => match walked(spec, path) {
            Ok(agent) if nth == 1 && after_a_handoff(spec, path, agent) => {
                never(format!("a handoff stands before {}'s first call", agent.name))
            }
            Ok(agent) => match speaker(&agent.kind) {
                Some(model) if nth <= model.max_tool_rounds.saturating_add(1) => Ok(()),
                Some(model) => {
                    let most = model.max_tool_rounds;
                    never(format!("max_tool_rounds of {} is {most}", agent.name))
                }
                // A swarm says nothing by itself, its members do.
                None => never(String::new()),
            },
            Err(why) => never(why),
        },
        Some("handoff") => {
            let (place, to) = path.rsplit_once('/').unwrap_or((spec.root.as_str(), path));
            match walked(spec, place).and_then(|agent| handed(spec, agent, to, nth)) {
                Ok(()) if place == spec.root.as_str() && path != to => {
                    never(format!("of {place} it is handoff:{nth}:{to}"))
                }
                Ok(()) => Ok(()),
                Err(why) => never(why),
            }
        }
        _ => never(String::new()),
    }
}

/// Whether this agent can hand over to that one for the nth time.
fn handed(spec: &TeamSpec, agent: &AgentSpec, to: &str, nth: u32) -> Result<(), String> {
    let AgentKind::Swarm(swarm) = &agent.kind else {
        return Err(format!("{} is no swarm, nobody hands over in it", agent.name));
    };
    let most = swarm.limits.max_handoffs;
    if most > 0 && nth > most {
        return Err(format!("max_handoffs of {} is {most}", agent.name));
    }
    in_it(spec, agent, to).map(drop)
}

/// Whether this agent at a path is a member of a swarm that only a handoff can put in control: it does
/// not start, not even with a later message of the session.
fn after_a_handoff(spec: &TeamSpec, path: &str, agent: &AgentSpec) -> bool {
    let Some((of, _)) = path.rsplit_once('/') else { return false };
    let Ok(AgentSpec { kind: AgentKind::Swarm(swarm), name, .. }) = walked(spec, of) else {
        return false;
    };
    let owners_start = swarm.cross_request_transfer && *name == spec.root;
    agent.name != swarm.entry && !owners_start
}

/// The agent at a path.
fn walked<'s>(spec: &'s TeamSpec, path: &str) -> Result<&'s AgentSpec, String> {
    let mut steps = path.split('/');
    let root = spec.agent(&spec.root).filter(|root| steps.next() == Some(root.name.as_str()));
    let mut at = root.ok_or_else(|| format!("a path begins with {}", spec.root))?;
    for step in steps {
        let (name, turn) = step.rsplit_once('.').unwrap_or((step, ""));
        let turn = turn.parse::<u32>().ok().filter(|it| *it > 0 && it.to_string() == turn);
        if turn.is_none() {
            return Err(format!("{step} has no turn, {name}.1 is its first"));
        }
        at = in_it(spec, at, name)?;
    }
    Ok(at)
}

/// An agent that is a member of this one, or may join it.
fn in_it<'s>(spec: &'s TeamSpec, of: &AgentSpec, name: &str) -> Result<&'s AgentSpec, String> {
    let found = spec.agent(&name.into()).filter(|agent| match &of.kind {
        AgentKind::Swarm(_) => matches!(agent.kind, AgentKind::Model(_)),
        AgentKind::Model(_) | AgentKind::Team(_) => of.kind.members().contains(&agent.name),
    });
    found.ok_or_else(|| format!("{name} is no member of {}", of.name))
}

fn speaker(kind: &AgentKind) -> Option<&ModelAgent> {
    match kind {
        AgentKind::Model(model) => Some(model),
        AgentKind::Team(team) => Some(&team.coordinator),
        AgentKind::Swarm(_) => None,
    }
}

/// Boundaries of this team, as examples.
fn there_are(spec: &TeamSpec) -> String {
    let root = &spec.root;
    let Some(AgentKind::Swarm(swarm)) = spec.agent(root).map(|it| &it.kind) else {
        let handoff = within(spec, root, root.to_string());
        let handoff = handoff.map(|path| format!(", handoff:1:{path}/AGENT"));
        let member = spec.agent(root).and_then(|root| root.kind.members().first());
        let member = member
            .filter(|name| spec.agent(name).is_some_and(|member| speaker(&member.kind).is_some()));
        let member = member.map(|member| format!(", ask:1:{root}/{member}.1"));
        return format!(
            "ask:1:{root}{}{}",
            member.unwrap_or_default(),
            handoff.unwrap_or_default()
        );
    };
    format!("ask:1:{root}/{}.1, handoff:1:AGENT", swarm.entry)
}

/// The path of the first swarm within an agent; teams do not stand in themselves.
fn within(spec: &TeamSpec, of: &AgentName, path: String) -> Option<String> {
    match &spec.agent(of)?.kind {
        AgentKind::Model(_) => None,
        AgentKind::Swarm(_) => Some(path),
        AgentKind::Team(team) => {
            let mut members = team.members.iter();
            members.find_map(|member| within(spec, member, format!("{path}/{member}.1")))
        }
    }
}

/// `turn:TURN:AGENT`.
fn stormy(spec: &ResilienceSpec, at: &BoundaryId) -> Result<(), String> {
    let mut parts = at.as_str().splitn(3, ':');
    let of = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    match (parts.next(), of(parts.next()), of(parts.next())) {
        (Some("turn"), Some(turn), Some(agent)) => {
            let comes = (1..=spec.turns).contains(&turn) && (1..=spec.agents).contains(&agent);
            if comes {
                return Ok(());
            }
            Err(format!("never comes: {} agents of {} turns", spec.agents, spec.turns))
        }
        _ => Err("never comes here; there are: turn:TURN:AGENT".to_owned()),
    }
}
