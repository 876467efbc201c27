//! A team or swarm in a file (teams source document): its settings and cross-checks (root,
//! follow-ups, agents), and the fields of the outcome that expectations may use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{AgentName, FlagName, ToolName};
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::patterns::agents::boundary::TeamAgents;
use crate::scenario::patterns::agents::check::{
    AGENT_BOUNDARIES, AgentTableKind, agents, models, tool_use, warn_of_orphans,
};
use crate::scenario::patterns::agents::script::{AGENT_NAMES, report_silent_agents};
use crate::scenario::patterns::agents::table::{EntryMember, RootTable, key_owner};
use crate::scenario::patterns::agents::{AgentKind, AgentSpec, AgentsSpec, boundary};
use crate::scenario::patterns::row::{
    LabelledText, LimitField, OutcomeField, PatternRow, Speakers, Spec, ToolUse,
};
use crate::scenario::read::ReadContext;
use crate::scenario::read::format::{Pattern, ScenarioFile};
use crate::scenario::read::shape::NonBlankString;
use crate::scenario::read::template::TemplateScope;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::tool::ToolSpec;

/// `pattern = "team"` or `pattern = "swarm"`: the root agent that the user talks to, and all other
/// agents.
#[derive(Debug)]
pub struct TeamSpec {
    /// The agent that the user talks to: a coordinator team or a swarm.
    pub root: AgentName,
    pub agents: AgentsSpec,
    /// Messages that follow the goal in the session, in order.
    pub follow_ups: Vec<Arc<str>>,
    /// Time limit of each run of the session; pauses are not counted.
    pub max_seconds: Duration,
}

impl TeamSpec {
    /// The agent with this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentSpec> {
        self.agents.get(name)
    }

    /// Whether the root is a swarm.
    pub fn is_swarm(&self) -> bool {
        self.agent(&self.root).is_some_and(|root| matches!(root.kind, AgentKind::Swarm(_)))
    }
}

impl Spec for TeamSpec {
    fn name(&self) -> &'static str {
        if self.is_swarm() { "swarm" } else { "team" }
    }

    fn max_time(&self) -> Duration {
        self.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.agents.len() as u64, "agent")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![LimitField::max_seconds(self.max_seconds)]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let seconds = format!("{} s per message", self.max_seconds.as_secs());
        let agents = self.agents.values();
        let agents = agents
            .map(|agent| format!("{} {}: {}", agent.kind.word(), agent.name, agent.description));
        let mut lines = vec![LabelledText::new("limits", seconds)];
        lines.extend(LabelledText::list("agents", agents));
        lines
    }

    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let team = TeamAgents { root: &self.root, all: &self.agents };
        boundary::check_boundary(team, at, &|| boundary::example_boundaries(team))
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        self.agents.model_callers()
    }

    fn agents(&self) -> Option<&AgentsSpec> {
        Some(&self.agents)
    }

    fn root(&self) -> Option<&AgentName> {
        Some(&self.root)
    }

    fn follow_ups(&self) -> &[Arc<str>] {
        &self.follow_ups
    }

    fn reads_flag(&self, flag: &FlagName) -> bool {
        self.agents.say_flag(flag)
    }
}

/// What a file of the pattern `team` may contain.
pub(crate) const TEAM: PatternRow = PatternRow {
    report_silent: |file, cx| report_silent_agents(file, root_name(&file.team), cx),
    ..of_agents(Pattern::Team, "team")
};

/// What a file of the pattern `swarm` may contain.
pub(crate) const SWARM: PatternRow = PatternRow {
    report_silent: |file, cx| {
        let root = root_name(&file.swarm);
        let root = file.agents.entries.iter().find(|agent| root == Some(agent.name.as_str()));
        let start = root.and_then(|root| root.value.as_ref()?.entry.as_ref());
        report_silent_agents(file, start.map(|EntryMember(start)| start.text.as_str()), cx);
    },
    ..of_agents(Pattern::Swarm, "swarm")
};

const fn of_agents(pattern: Pattern, name: &'static str) -> PatternRow {
    PatternRow {
        tables: &["agents"],
        // A team needs agents.
        required: &["agents"],
        misplaced_limit: |key| key_owner(key).map(|owner| format!("{owner}: [agents.NAME]")),
        outcome: OUTCOME_FIELDS,
        boundaries: AGENT_BOUNDARIES,
        speakers: Speakers::Agents,
        reply_names: AGENT_NAMES,
        models,
        tool_use: |file, tool| {
            let roots = [&file.team, &file.swarm];
            match roots.into_iter().any(|table| root_name(table) == Some(tool)) {
                true => ToolUse::Never("only the user talks to the root agent".to_owned()),
                false => tool_use(file, tool),
            }
        },
        ..PatternRow::new(pattern, name)
    }
}

fn root_name(table: &Option<RootTable>) -> Option<&str> {
    table.as_ref()?.root.as_ref().map(|root| root.text.as_str())
}

/// Builds the team of a file. Problems are reported to `cx`.
pub(crate) fn team(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    rooted(file, "team", file.team.as_ref(), AgentTableKind::Team, scope, cx)
}

/// Builds the swarm of a file. Problems are reported to `cx`.
pub(crate) fn swarm(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    rooted(file, "swarm", file.swarm.as_ref(), AgentTableKind::Swarm, scope, cx)
}

/// Builds the agents of a file and finds the root.
fn rooted(
    file: &ScenarioFile,
    place: &str,
    table: Option<&RootTable>,
    wanted: AgentTableKind,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    let agents = agents(file, scope, cx);
    let (root, follow_ups) = cx.at_key(place, |cx| {
        let table = table?;
        let root = cx.at_key("root", |cx| root(table.root.as_ref()?, wanted, file, cx));
        let follow_ups = table.follow_ups.0.iter().enumerate().map(|(index, text)| {
            cx.at_key("follow_ups", |cx| {
                cx.at_index(index, |cx| Arc::from(scope.text(&text.text, text.at, cx)))
            })
        });
        Some((root?, follow_ups.collect()))
    })?;
    warn_of_orphans(file, &[&root], cx);
    Some(TeamSpec {
        root,
        agents: agents?,
        follow_ups,
        max_seconds: file.budget.as_ref()?.max_seconds(60),
    })
}

/// Checks the agent that the user talks to.
fn root(
    root: &NonBlankString,
    wanted: AgentTableKind,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<AgentName> {
    let Some(found) = file.agents.entries.iter().find(|entry| entry.name == root.text) else {
        if !file.agents.has(&root.text) {
            report_unknown_name(root, "an agent", file.agents.names(), cx);
        }
        return None;
    };
    let kind = AgentTableKind::from_entry(found)?;
    if kind != wanted {
        let help = match wanted {
            AgentTableKind::Swarm => "the root of a swarm has `members` and `entry`",
            AgentTableKind::Team | AgentTableKind::Model | AgentTableKind::Person => {
                "the root of a team has `members` and no `entry`"
            }
        };
        cx.error(root.at, format!("`{}` is {}", root.text, kind.phrase()), help);
        return None;
    }
    Some(AgentName::from(root.text.as_str()))
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The answer. With success."),
    OutcomeField::new("final_agent", "string|null", "The agent that gave it. With success."),
    OutcomeField::new(
        "missing",
        "array",
        "Calls without a result that the answer does not mention: `of` and `text`.",
    ),
    OutcomeField::new(
        "written_calls",
        "array",
        "Answers of agents that are a tool call written as text: `who` and `text`.",
    ),
    OutcomeField::new("partial_answer", "string", "What was said last before the run was stopped."),
    OutcomeField::new(
        "handoffs",
        "array",
        "Each handoff: `from`, `to`, `message`, `at_ms`, and `swarm` in a nested one.",
    ),
    OutcomeField::new(
        "owner",
        "string|null",
        "The agent that the next message of the session goes to.",
    ),
    OutcomeField::new("message", "integer", "The number of the message in its session, from 1."),
    OutcomeField::new("after", "string", "The run that answered the message before."),
    OutcomeField::new(
        "trace",
        "array",
        "Each turn of an agent: `agent`, `team`, `from`, `kind`, `status`, times.",
    ),
    OutcomeField::new(
        "history",
        "array",
        "The transcript: messages, replies, calls, results, handoffs.",
    ),
];
