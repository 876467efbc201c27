//! The setup of a run, for the head of its log: the values of the scenario and the session, with all
//! defaults filled in.

use std::sync::Arc;

use super::team::starting_agent;
use crate::base::name::AgentName;
use crate::base::time::{Day, millis};
use crate::log::event::head::RunStarted;
use crate::log::facts::PatternPlan;
use crate::log::facts::ResiliencePlan;
use crate::log::facts::agents::TeamPlan;
use crate::log::facts::agents::{AgentHead, SessionHead, SwarmHead};
use crate::log::facts::collaboration::{CollaborationPlan, DecideRowHead, RoleFlagHead};
use crate::log::facts::observed::{GuardPlan, ObservedPlan};
use crate::log::facts::orchestrator::{OrchestratorPlan, WorkerHead};
use crate::log::facts::research::ResearchPlan;
use crate::log::facts::router::{RouteHead, RouterPlan};
use crate::run::Session;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::patterns::agents::{AgentKind, AgentSpec, AgentsSpec};
use crate::scenario::patterns::collaboration::{CollaborationSpec, Concurrency, Share, WhenOff};
use crate::scenario::patterns::orchestrator::OrchestratorSpec;
use crate::scenario::patterns::research::{ResearchSpec, SamePage};
use crate::scenario::patterns::resilience::ResilienceSpec;
use crate::scenario::patterns::router::RouterSpec;
use crate::scenario::patterns::team::TeamSpec;

/// The setup of a run, for the head of its log: of a live or a scripted model, which begins at this
/// time of the wall, in milliseconds. `recorded`: the head of the run that it continues, or that
/// answers it.
pub(crate) fn plan(
    spec: &PatternSpec,
    session: &Session,
    live: bool,
    wall_ms: u64,
    recorded: Option<&RunStarted>,
) -> PatternPlan {
    match spec {
        PatternSpec::Collaboration(spec) => {
            let recorded = recorded.map(|head| &head.plan);
            PatternPlan::Collaboration(Arc::new(collaboration(spec, live, recorded)))
        }
        PatternSpec::Orchestrator(spec) => PatternPlan::Orchestrator(Arc::new(orchestrator(spec))),
        PatternSpec::Team(spec) if spec.is_swarm() => {
            PatternPlan::Swarm(Arc::new(team(spec, session)))
        }
        PatternSpec::Team(spec) => PatternPlan::Team(Arc::new(team(spec, session))),
        PatternSpec::Resilience(spec) => PatternPlan::Resilience(Arc::new(resilience(spec))),
        PatternSpec::Research(spec) => {
            let recorded = recorded.map(|head| &head.plan);
            PatternPlan::Research(Arc::new(research(spec, live, wall_ms, recorded)))
        }
        PatternSpec::Observed(spec) => {
            let guard = spec.guard.as_ref().map(|limits| GuardPlan {
                max_calls: limits.max_calls,
                max_seconds: limits.max_time.map(|most| most.as_secs()),
                repeats: limits.repeats,
            });
            PatternPlan::Observed(Arc::new(ObservedPlan { command: spec.command.clone(), guard }))
        }
        PatternSpec::Router(spec) => PatternPlan::Router(Arc::new(router(spec, session))),
    }
}

/// The setup of a run. `recorded`: that of the run that it continues, or that answers it.
fn collaboration(
    spec: &CollaborationSpec,
    live: bool,
    recorded: Option<&PatternPlan>,
) -> CollaborationPlan {
    let (usual, live_rules) = match recorded {
        None => (Share::Arguments, live),
        Some(PatternPlan::Collaboration(plan)) => (plan.share, plan.live_rules),
        Some(_) => (Share::Stances, false),
    };
    let roles = || spec.roles.iter();
    let weighted = roles().filter(|(_, role)| role.weight != 1.0);
    CollaborationPlan {
        sequence: spec.sequence.clone(),
        role_flags: spec
            .roles
            .iter()
            .filter_map(|(name, role)| {
                let behind = role.role_flag.as_ref()?;
                let deny = behind.when_off == WhenOff::Deny;
                Some((name.clone(), RoleFlagHead { flag: behind.flag.clone(), deny }))
            })
            .collect(),
        parallel: spec.concurrency == Concurrency::Parallel,
        budget: spec.budget,
        summary_inputs: spec.summary_inputs.clone(),
        share: spec.share.unwrap_or(usual),
        live_rules,
        decide: spec
            .decide
            .iter()
            .map(|row| DecideRowHead { when: row.when.text().to_owned(), decision: row.decision })
            .collect(),
        weights: weighted.map(|(name, role)| (name.clone(), role.weight)).collect(),
        vetoes: roles().filter(|(_, role)| role.veto).map(|(name, _)| name.clone()).collect(),
    }
}

fn orchestrator(spec: &OrchestratorSpec) -> OrchestratorPlan {
    OrchestratorPlan {
        workers: spec
            .workers
            .iter()
            .map(|worker| WorkerHead {
                name: worker.name.clone(),
                description: worker.description.clone(),
                flag: worker.flag.clone(),
            })
            .collect(),
        budget: spec.budget,
        sections: spec.sections.iter().map(|section| section.name.clone()).collect(),
        level: spec.level.name.clone(),
    }
}

/// The setup of a run that answers the message of this session.
fn team(spec: &TeamSpec, session: &Session) -> TeamPlan {
    let starts = starting_agent(spec, session);
    TeamPlan {
        root: spec.root.clone(),
        agents: agent_heads(&spec.agents, [&spec.root].into_iter(), session),
        max_ms: millis(spec.max_seconds),
        session: SessionHead {
            message: session.message,
            text: Arc::clone(&session.text),
            previous_run: session.after.clone(),
            first_run: session.first_run.clone(),
            history: Arc::clone(&session.memory.history),
            owner: session.memory.owner.clone(),
            first_agent: starts,
        },
    }
}

fn resilience(spec: &ResilienceSpec) -> ResiliencePlan {
    let naive = spec.naive;
    let naive_attempts = [naive.client_retries, naive.tool_retries, naive.agent_retries]
        .into_iter()
        .fold(1_u32, |all, retries| all.saturating_mul(retries.saturating_add(1)));
    ResiliencePlan {
        agents: spec.agents,
        turns: spec.turns,
        steps: spec.steps.clone(),
        pool: spec.pool,
        guarded: spec.guarded,
        naive_attempts,
        max_ms: millis(spec.max_seconds),
    }
}

/// The setup of a run with a live or a scripted model, which begins at this time of the wall.
/// `recorded`: that of the run that it continues, or that answers it.
fn research(
    spec: &ResearchSpec,
    live: bool,
    wall_ms: u64,
    recorded: Option<&PatternPlan>,
) -> ResearchPlan {
    let (usual, folds_signs) = match recorded {
        None => (SamePage::Query, true),
        Some(PatternPlan::Research(plan)) => (plan.same_page, plan.folds_signs),
        Some(_) => (SamePage::Path, false),
    };
    let today = || Day::from_unix_ms(wall_ms).to_string();
    ResearchPlan {
        question: spec.question.clone(),
        as_of: spec.as_of.clone().unwrap_or_else(today),
        allowed_domains_policy: spec.allowed_domains_policy.clone(),
        allowed_domains_execution: spec.allowed_domains_execution.clone(),
        sources: spec.sources.clone(),
        plan_by: spec.plan.by.executor(live),
        notes_by: spec.notes.by.executor(live),
        answer_by: spec.answer.by.executor(live),
        same_page: spec.same_page.unwrap_or(usual),
        folds_signs,
        misquotes: spec.misquotes,
        min_independent_sources: spec.min_independent_sources,
        max_age_days: spec.max_age_days,
        budget: spec.budget,
    }
}

/// The setup of a run that routes the request of this session.
fn router(spec: &RouterSpec, session: &Session) -> RouterPlan {
    let routes = spec.routes.iter();
    RouterPlan {
        request: Arc::clone(&session.text),
        routes: routes
            .map(|route| RouteHead { agent: route.agent.clone(), flag: route.flag.clone() })
            .collect(),
        fallback: spec.fallback.clone(),
        min_confidence: spec.min_confidence,
        agents: agent_heads(&spec.agents, spec.routes.iter().map(|it| &it.agent), session),
        max_ms: millis(spec.max_seconds),
    }
}

/// The setup of all agents: each of `roots` before its members, agents in no `members` list last.
fn agent_heads<'s>(
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
    let (model, team, swarm, person) = match &agent.kind {
        AgentKind::Model(model) => (Some(model), None, None, None),
        AgentKind::Team(team) => (Some(&team.coordinator), Some(team), None, None),
        AgentKind::Swarm(swarm) => (None, None, Some(swarm), None),
        AgentKind::Person(person) => (None, None, None, Some(person.clone())),
    };
    AgentHead {
        name: agent.name.clone(),
        description: agent.description.to_string(),
        kind: agent.kind.word().to_owned(),
        person,
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
