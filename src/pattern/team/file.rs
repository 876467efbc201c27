//! Cross-checks between the tables of a team or swarm: its root, its follow-ups and its agents.

mod outcome_fields;

use std::sync::Arc;

use crate::agents::file::AGENT_BOUNDARIES;
use crate::agents::file::script::{AGENT_NAMES, report_silent_agents};
use crate::agents::file::table::{EntryMember, RootTable, key_owner};
use crate::agents::file::{AgentTableKind, agents, models, tool_use, warn_of_orphans};
use crate::base::name::AgentName;
use crate::pattern::team::spec::TeamSpec;
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::file::format::{Pattern, ScenarioFile};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::pattern_row::{PatternRow, Speakers, ToolUse};

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
        outcome: outcome_fields::FIELDS,
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
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    rooted(file, "team", file.team.as_ref(), AgentTableKind::Team, filling, cx)
}

/// Builds the swarm of a file. Problems are reported to `cx`.
pub(crate) fn swarm(
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    rooted(file, "swarm", file.swarm.as_ref(), AgentTableKind::Swarm, filling, cx)
}

/// Builds the agents of a file and finds the root.
fn rooted(
    file: &ScenarioFile,
    place: &str,
    table: Option<&RootTable>,
    wanted: AgentTableKind,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    let agents = agents(file, filling, cx);
    let (root, follow_ups) = cx.at_key(place, |cx| {
        let table = table?;
        let root = cx.at_key("root", |cx| root(table.root.as_ref()?, wanted, file, cx));
        let follow_ups = table.follow_ups.0.iter().enumerate().map(|(index, text)| {
            cx.at_key("follow_ups", |cx| {
                cx.at_index(index, |cx| Arc::from(filling.text(&text.text, text.at, cx)))
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
            AgentTableKind::Team | AgentTableKind::Model => {
                "the root of a team has `members` and no `entry`"
            }
        };
        cx.error(root.at, format!("`{}` is {}", root.text, kind.phrase()), help);
        return None;
    }
    Some(AgentName::from(root.text.as_str()))
}
