//! Builds `run.started`, the head of a run's log: the whole setup of the run.

use std::sync::Arc;

use crate::agents::spec::{AgentKind, AgentSpec};
use crate::agents::starting::starting_agent;
use crate::base::day::Day;
use crate::event::RunId;
use crate::event::id::millis;
use crate::event::kind::{
    AgentHead, CollaborationPlan, FlagAt, ModelLabel, ModelPriceHead, OrchestratorPlan,
    PatternPlan, PricesHead, ResearchPlan, ResiliencePlan, RoleFlagHead, RunStarted, SessionHead,
    SourceHead, SwarmHead, TeamPlan, ToolHead, WorkerHead,
};
use crate::pattern::collaboration::spec::{CollaborationSpec, Concurrency, WhenOff};
use crate::pattern::orchestrator::spec::OrchestratorSpec;
use crate::pattern::research::spec::ResearchSpec;
use crate::pattern::resilience::spec::ResilienceSpec;
use crate::pattern::team::spec::TeamSpec;
use crate::run::Session;
use crate::scenario::Scenario;
use crate::scenario::patterns::PatternSpec;

/// What the scenario does not know about the start of a run.
pub(super) struct RunSetup<'a> {
    pub run: &'a RunId,
    pub model: ModelLabel,
    pub model_prices: Vec<ModelPriceHead>,
    pub flags: Vec<FlagAt>,
    pub tools: Vec<ToolHead>,
    pub seed: u64,
    pub session: &'a Session,
    /// Unix time in milliseconds.
    pub wall_ms: u64,
}

pub(super) fn build_head(scenario: &Scenario, begun: RunSetup<'_>) -> RunStarted {
    let RunSetup { run, model, model_prices, flags, tools, seed, session, wall_ms } = begun;
    let plan = match &scenario.pattern {
        PatternSpec::Collaboration(spec) => {
            PatternPlan::Collaboration(Arc::new(collaboration(spec)))
        }
        PatternSpec::Orchestrator(spec) => PatternPlan::Orchestrator(Arc::new(orchestrator(spec))),
        PatternSpec::Team(spec) if spec.is_swarm() => {
            PatternPlan::Swarm(Arc::new(team(spec, session)))
        }
        PatternSpec::Team(spec) => PatternPlan::Team(Arc::new(team(spec, session))),
        PatternSpec::Resilience(spec) => PatternPlan::Resilience(Arc::new(resilience(spec))),
        PatternSpec::Research(spec) => {
            PatternPlan::Research(Arc::new(research(spec, &model, wall_ms)))
        }
    };
    RunStarted {
        run: run.clone(),
        wall_ms,
        model,
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        goal: scenario.goal.clone(),
        inputs: scenario
            .inputs
            .iter()
            .map(|input| (input.name.to_string(), input.value.clone()))
            .collect(),
        flags,
        seed,
        prices: scenario.model.prices.map(|prices| PricesHead {
            prompt_usd_per_million: prices.prompt_usd_per_million,
            completion_usd_per_million: prices.completion_usd_per_million,
        }),
        model_prices,
        tools,
        alerts: scenario.alerts,
        spending: scenario.spending,
        plan,
    }
}

fn collaboration(spec: &CollaborationSpec) -> CollaborationPlan {
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
        max_rounds: spec.budget.max_rounds,
        max_messages: spec.budget.max_messages,
        max_ms: millis(spec.budget.max_seconds),
        min_go_votes: spec.budget.min_go_votes,
        summary_inputs: spec.summary_inputs.clone(),
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
        max_tasks: spec.budget.max_tasks,
        max_parallel: spec.budget.max_parallel,
        max_retries_per_task: spec.budget.max_retries_per_task,
        max_dispatches: spec.budget.max_dispatches,
        task_timeout_ms: millis(spec.budget.task_timeout),
        max_ms: millis(spec.budget.max_seconds),
        sections: spec.sections.iter().map(|section| section.name.clone()).collect(),
        level: spec.level.name.clone(),
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

fn research(spec: &ResearchSpec, model: &ModelLabel, wall_ms: u64) -> ResearchPlan {
    let live = matches!(model, ModelLabel::Live { .. });
    let today = || Day::from_unix_ms(wall_ms).to_string();
    let budget = &spec.budget;
    ResearchPlan {
        question: spec.question.clone(),
        as_of: spec.as_of.clone().unwrap_or_else(today),
        allowed_domains_policy: spec.allowed_domains_policy.clone(),
        allowed_domains_execution: spec.allowed_domains_execution.clone(),
        sources: spec
            .sources
            .iter()
            .map(|rule| SourceHead {
                domain: rule.domain.clone(),
                trust: rule.trust,
                flag: rule.flag.clone(),
            })
            .collect(),
        plan_by: spec.plan.by.executor(live),
        notes_by: spec.notes.by.executor(live),
        answer_by: spec.answer.by.executor(live),
        misquotes: spec.misquotes,
        min_independent_sources: spec.min_independent_sources,
        max_age_days: spec.max_age_days,
        max_steps: budget.max_steps,
        max_urls: budget.max_urls,
        max_read_pages: budget.max_read_pages,
        max_notes: budget.max_notes,
        max_answer_chars: budget.max_answer_chars,
        max_ms: millis(budget.max_seconds),
    }
}

fn team(spec: &TeamSpec, session: &Session) -> TeamPlan {
    let mut agents: Vec<AgentHead> = Vec::new();
    let mut next = vec![&spec.root];
    // Agents in no `members` list come last.
    let others = spec.agents.keys().rev().filter(|name| **name != spec.root);
    let mut waiting: Vec<_> = others.collect();
    while let Some(name) = next.pop().or_else(|| waiting.pop()) {
        let Some(agent) = spec.agent(name).filter(|_| agents.iter().all(|it| it.name != *name))
        else {
            continue;
        };
        next.extend(agent.kind.members().iter().rev());
        agents.push(self::agent(agent, session));
    }
    let starts = starting_agent(spec, session);
    TeamPlan {
        root: spec.root.clone(),
        agents,
        max_ms: millis(spec.max_seconds),
        session: SessionHead {
            message: session.message,
            text: Arc::clone(&session.text),
            previous_run: session.after.clone(),
            history: Arc::clone(&session.memory.history),
            owner: session.memory.owner.clone(),
            first_agent: starts,
        },
    }
}

fn agent(agent: &AgentSpec, session: &Session) -> AgentHead {
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
        instruction: model.map(|model| Arc::clone(&model.instruction)).unwrap_or_default(),
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
