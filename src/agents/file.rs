//! Cross-checks between the agents of a file: their kinds, and who is a member of which team.

pub(crate) mod handoff_input;
pub(crate) mod nesting;
pub mod script;
pub mod table;
pub(crate) mod unused_settings;

use std::collections::BTreeSet;

use crate::agents::file::handoff_input::handoff_input;
use crate::agents::file::nesting::nesting;
use crate::agents::file::table::{
    AgentTable, COORDINATOR_KEYS, EntryMember, MemberToolsTable, Members, SPEAKER_KEYS, SWARM_KEYS,
};
use crate::agents::spec::{
    AgentKind, AgentSpec, AgentsSpec, CoordinatorTeam, HandoffTemplate, MemberTools, ModelAgent,
    RosterError, Swarm, SwarmLimits, check_entry, check_member,
};
use crate::base::name::{AgentName, ToolName};
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::spec::boundary_form::BoundaryForm;

use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::shape::{NonBlankString, StringField};
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::pattern_row::{ModelKey, ToolUse};
use crate::scenario::spec::model_assignment::ModelCaller;

/// The ids of the boundaries of agents.
pub(crate) const AGENT_BOUNDARIES: &[BoundaryForm] =
    &[BoundaryForm::Named("ask"), BoundaryForm::Named("handoff")];

/// The kind of an agent, as its keys imply it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentTableKind {
    Model,
    Team,
    Swarm,
}

impl AgentTableKind {
    /// The kind of an agent; `None` if its table is invalid.
    pub fn from_entry(entry: &NamedEntry<AgentTable>) -> Option<Self> {
        let table = entry.value.as_ref()?;
        Some(match (&table.entry, &table.members) {
            (Some(_), _) => Self::Swarm,
            (None, Some(_)) => Self::Team,
            (None, None) => Self::Model,
        })
    }

    /// The kind in a sentence.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Model => "a model agent",
            Self::Team => "a coordinator team",
            Self::Swarm => "a swarm",
        }
    }
}

/// Builds the agents of a file. Problems are reported to `cx`.
pub(crate) fn agents(
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<AgentsSpec> {
    if file.agents.entries.is_empty() && !cx.at_key("agents", |cx| cx.has_error_here()) {
        let what = "there are no agents";
        cx.at_key("agents", |cx| cx.error(TextSpan::new(0, 0..0), what, "add [agents.NAME]"));
    }
    let agents: Vec<Option<AgentSpec>> = cx.at_key("agents", |cx| {
        let read = |entry: &NamedEntry<AgentTable>| {
            cx.at_key(&entry.name, |cx| agent(entry, file, filling, cx))
        };
        file.agents.entries.iter().map(read).collect()
    });
    cx.at_key("agents", |cx| nesting(file, cx));
    agents.into_iter().collect()
}

fn agent(
    entry: &NamedEntry<AgentTable>,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<AgentSpec> {
    let table = entry.value.as_ref()?;
    // If `members` or `entry` is invalid, the intended kind is not known.
    if ["members", "entry"].iter().any(|key| cx.at_key(key, |cx| cx.has_error_here())) {
        return None;
    }
    let kind = AgentTableKind::from_entry(entry)?;
    report_foreign_keys(kind, table, cx);
    let description = table
        .description
        .as_ref()
        .map(|text| cx.at_key("description", |cx| filling.text(&text.text, text.at, cx)));
    let speaker = build_model_agent(table, file, filling, cx);
    let kind = match kind {
        AgentTableKind::Model => AgentKind::Model(speaker?),
        AgentTableKind::Team => {
            let members = members(entry, kind, table, file, cx);
            unused_settings::warn_of_team_settings(table, file, cx);
            let parallel_tools = cx.at_key("parallel_tools", |cx| {
                filling.switch_value(&table.parallel_tools.value, cx)
            });
            AgentKind::Team(CoordinatorTeam {
                coordinator: speaker?,
                members: members?,
                parallel_tools: parallel_tools?,
                member_tools: table
                    .member_tools
                    .as_ref()
                    .map_or_else(MemberTools::default, |at| member_tools(&at.value)),
            })
        }
        AgentTableKind::Swarm => {
            let members = members(entry, kind, table, file, cx);
            unused_settings::warn_of_swarm_settings(entry, table, file, cx);
            let handoff_input = match &table.handoff_input {
                Some(text) => {
                    Some(cx.at_key("handoff_input", |cx| handoff_input(text, filling, cx))?)
                }
                None => None,
            };
            AgentKind::Swarm(swarm(table, members?, handoff_input)?)
        }
    };
    let name = AgentName::from(entry.name.as_str());
    Some(AgentSpec { name, description: description?.into(), kind })
}

/// Reports keys that this kind of agent does not have.
fn report_foreign_keys(kind: AgentTableKind, table: &AgentTable, cx: &mut ReadContext) {
    for (key, at) in table.keys() {
        let help = match kind {
            AgentTableKind::Model if COORDINATOR_KEYS.contains(&key) => {
                "add `members`, or remove it"
            }
            AgentTableKind::Model if SWARM_KEYS.contains(&key) => {
                "add `members` and `entry`, or remove it"
            }
            AgentTableKind::Team if SWARM_KEYS.contains(&key) => "add `entry`, or remove it",
            AgentTableKind::Swarm if SPEAKER_KEYS.contains(&key) => {
                "set it on the members, which call the model"
            }
            AgentTableKind::Swarm if COORDINATOR_KEYS.contains(&key) => {
                "remove it: a swarm has no coordinator"
            }
            _ => continue,
        };
        let what = format!("{} has no `{key}`", kind.phrase());
        cx.at_key(key, |cx| cx.error(at, what, help));
    }
}

fn build_model_agent(
    table: &AgentTable,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ModelAgent> {
    let instruction = table
        .instruction
        .as_ref()
        .map(|text| cx.at_key("instruction", |cx| filling.prompt(&text.text, text.at, cx)));
    let tools = &table.tools.value.0;
    for (index, tool) in tools.iter().enumerate() {
        let before = &tools[..index];
        cx.at_key("tools", |cx| cx.at_index(index, |cx| check_agent_tool(tool, before, file, cx)));
    }
    Some(ModelAgent {
        instruction: instruction.unwrap_or_default(),
        tools: tools.iter().map(|tool| ToolName::from(tool.text.as_str())).collect(),
        max_tool_rounds: table.max_tool_rounds.value.0,
    })
}

/// Checks a tool that an agent may call.
fn check_agent_tool(
    tool: &NonBlankString,
    before: &[NonBlankString],
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let Some(tools) = &file.tools else { return };
    if file.agents.names().any(|name| name == tool.text) {
        let what = format!("`{}` is an agent, not a tool", tool.text);
        cx.error(tool.at, what, "name it in `members` instead");
    } else if !tools.named.has(&tool.text) {
        report_unknown_name(tool, "a tool", tools.named.names(), cx);
    } else if before.iter().any(|earlier| earlier.text == tool.text) {
        cx.error(tool.at, format!("`{}` is listed twice", tool.text), "remove one of the two");
    }
}

/// Checks the members of a team or swarm, with the texts of the source document: each by itself, so
/// that all faults are reported.
fn members(
    entry: &NamedEntry<AgentTable>,
    kind: AgentTableKind,
    table: &AgentTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<Vec<AgentName>> {
    let (at, members) = match &table.members {
        Some(Members(list)) => (list.at, list.value.as_slice()),
        None => (entry.at, &[][..]),
    };
    if members.is_empty() {
        cx.at_key("members", |cx| report_roster_error(&RosterError::NoMembers, at, &[], file, cx));
        return None;
    }
    let names: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
    let coordinator = (kind == AgentTableKind::Team).then_some(entry.name.as_str());
    let mut good = true;
    for (index, member) in members.iter().enumerate() {
        let judge = |cx: &mut ReadContext| match check_member(coordinator, &names, index) {
            Ok(()) => check_agent_member(member, kind, file, cx).is_some(),
            Err(fault) => {
                report_roster_error(&fault, member.at, &names, file, cx);
                false
            }
        };
        good &= cx.at_key("members", |cx| cx.at_index(index, judge));
    }
    if let Some(EntryMember(start)) = &table.entry
        && let Err(fault) = check_entry(&start.text, &names)
    {
        cx.at_key("entry", |cx| report_roster_error(&fault, start.at, &names, file, cx));
        good = false;
    }
    good.then(|| names.into_iter().map(AgentName::from).collect())
}

fn report_roster_error(
    fault: &RosterError,
    at: TextSpan,
    members: &[&str],
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let help = match fault {
        RosterError::NoMembers => "add the name of at least one agent".to_owned(),
        RosterError::EmptyMember | RosterError::EmptyEntry => {
            "write the name of an agent".to_owned()
        }
        RosterError::Coordinator(_) => {
            "the coordinator already has the name of its team".to_owned()
        }
        RosterError::Duplicate(_) => "remove one of the two".to_owned(),
        RosterError::InvalidName(_) => "use letters, digits, _ and -".to_owned(),
        RosterError::NoSuchEntry(entry) => {
            // A member of the wrong kind is reported itself, and is not suggested.
            let able = |name: &&str| {
                let found = file.agents.entries.iter().find(|entry| entry.name == *name);
                found.is_some_and(|found| {
                    AgentTableKind::from_entry(found) == Some(AgentTableKind::Model)
                })
            };
            suggest_name(entry, members.iter().copied().filter(able))
        }
    };
    cx.error(at, fault.to_string(), help);
}

/// Checks that the agent exists and may be a member.
fn check_agent_member(
    member: &StringField,
    of: AgentTableKind,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Option<()> {
    let Some(found) = file.agents.entries.iter().find(|entry| entry.name == member.text) else {
        if !file.agents.has(&member.text) {
            let name = NonBlankString { at: member.at, text: member.text.clone() };
            report_unknown_name(&name, "an agent", file.agents.names(), cx);
        }
        return None;
    };
    let kind = AgentTableKind::from_entry(found)?;
    if of == AgentTableKind::Swarm && kind != AgentTableKind::Model {
        let what =
            format!("`{}` is {} and cannot be a member of a swarm", member.text, kind.phrase());
        let help = "only model agents can; teams and swarms can be members of a coordinator";
        cx.error(member.at, what, help);
        return None;
    }
    Some(())
}

fn member_tools(table: &MemberToolsTable) -> MemberTools {
    MemberTools {
        stream_inner: table.stream_inner.value,
        inner_text: table.inner_text.value,
        history_scope: table.history_scope,
        skip_summarization: table.skip_summarization,
    }
}

fn swarm(
    table: &AgentTable,
    members: Vec<AgentName>,
    handoff_input: Option<HandoffTemplate>,
) -> Option<Swarm> {
    let node_timeout = table.node_timeout_s.as_ref().map(|wait| wait.value.0);
    Some(Swarm {
        members,
        entry: AgentName::from(table.entry.as_ref()?.0.text.as_str()),
        limits: SwarmLimits {
            max_handoffs: table.max_handoffs.value.0,
            repetitive_handoff_window: table.repetitive_handoff_window.value.0,
            repetitive_handoff_min_unique: table.repetitive_handoff_min_unique.value.0,
        },
        max_rejections: table.max_rejections.value.0,
        node_timeout: node_timeout.filter(|wait| !wait.is_zero()),
        cross_request_transfer: table.cross_request_transfer.value,
        independent_history: table.independent_history.value,
        handoff_input,
    })
}

/// Warns of agents that are in no `members` list. If there is a swarm, a model agent may join it
/// later.
pub(crate) fn warn_of_orphans(file: &ScenarioFile, roots: &[&AgentName], cx: &mut ReadContext) {
    let agents = &file.agents.entries;
    let taken: BTreeSet<&str> = agents
        .iter()
        .filter_map(|entry| entry.value.as_ref()?.members.as_ref())
        .flat_map(|Members(list)| list.value.iter().map(|member| member.text.as_str()))
        .collect();
    let may_join =
        agents.iter().any(|entry| AgentTableKind::from_entry(entry) == Some(AgentTableKind::Swarm));
    for entry in agents {
        let name = entry.name.as_str();
        let Some(kind) = AgentTableKind::from_entry(entry) else { continue };
        let on_the_bench = may_join && kind == AgentTableKind::Model;
        let is_root = roots.iter().any(|root| root.as_str() == name);
        if !is_root && !taken.contains(name) && !on_the_bench {
            cx.at_key(&format!("agents.{name}"), |cx| {
                let what = format!("`{name}` is not a member of any team");
                cx.warn(entry.at, what, "name it in the `members` of an agent");
            });
        }
    }
}

/// The keys that give an agent a model of its own.
pub(crate) fn models(file: &ScenarioFile) -> Vec<ModelKey<'_>> {
    let agents = file.agents.entries.iter().filter_map(|agent| {
        let caller = ModelCaller::Agent(AgentName::from(agent.name.as_str()));
        let place = format!("agents.{}.model", agent.name);
        Some(ModelKey::new(caller, place, &agent.value.as_ref()?.model))
    });
    agents.collect()
}

/// How the agents of a file use a tool of `[tools]`.
pub(crate) fn tool_use(file: &ScenarioFile, tool: &str) -> ToolUse {
    let mut tables = file.agents.entries.iter().flat_map(|agent| &agent.value);
    if file.agents.names().any(|agent| agent == tool) {
        ToolUse::Checked
    } else if tables.any(|agent| agent.tools.value.0.iter().any(|name| name.text == tool)) {
        ToolUse::Offered
    } else {
        ToolUse::Never("add it to the `tools` of an agent".to_owned())
    }
}
