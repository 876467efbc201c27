//! `[team]` and `[swarm]` of a scenario file: the root, and the messages that follow the goal.

use std::sync::Arc;

use super::spec::TeamSpec;
use crate::agents::file::{AgentTableKind, agents, warn_of_orphans};
use crate::base::name::AgentName;
use crate::scenario::check::build::report_unknown_name;
use crate::scenario::file::format::{Pattern, ScenarioFile};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::TemplateScope;

/// Builds a team or swarm: its agents and the root. Problems are reported to `cx`.
pub(crate) fn team(
    file: &ScenarioFile,
    pattern: Pattern,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<TeamSpec> {
    let agents = agents(file, filling, cx);
    let (place, table) = match pattern {
        Pattern::Swarm => ("swarm", file.swarm.as_ref()),
        _ => ("team", file.team.as_ref()),
    };
    let (root, follow_ups) = cx.at_key(place, |cx| {
        let table = table?;
        let root = cx.at_key("root", |cx| root(table.root.as_ref()?, pattern, file, cx));
        let follow_ups = table.follow_ups.0.iter().enumerate().map(|(index, text)| {
            cx.at_key("follow_ups", |cx| {
                cx.at_index(index, |cx| Arc::from(filling.text(&text.text, text.at, cx)))
            })
        });
        Some((root?, follow_ups.collect()))
    })?;
    warn_of_orphans(file, &[&root], cx);
    let max_seconds = file.budget.as_ref()?.max_seconds(60);
    Some(TeamSpec { root, agents: agents?, follow_ups, max_seconds })
}

/// Checks the agent that the user talks to.
fn root(
    root: &NonBlankString,
    pattern: Pattern,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<AgentName> {
    let Some(found) = file.agents.entries.iter().find(|entry| entry.name == root.text) else {
        if !file.agents.has(&root.text) {
            report_unknown_name(root, "an agent", file.agents.names(), cx);
        }
        return None;
    };
    let (wanted, help) = match pattern {
        Pattern::Swarm => (AgentTableKind::Swarm, "the root of a swarm has `members` and `entry`"),
        _ => (AgentTableKind::Team, "the root of a team has `members` and no `entry`"),
    };
    let kind = AgentTableKind::from_entry(found)?;
    if kind != wanted {
        cx.error(root.at, format!("`{}` is {}", root.text, kind.phrase()), help);
        return None;
    }
    Some(AgentName::from(root.text.as_str()))
}
