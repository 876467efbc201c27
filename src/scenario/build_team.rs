//! Cross-checks between the agents of a file: their kinds, and who is a member of which team.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agent::{
    AgentKind, AgentSpec, CoordinatorTeam, HandoffPiece, HandoffTemplate, MemberTools, ModelAgent,
    RosterFault, Swarm, SwarmLimits, TeamSpec, check_entry, check_member,
};
use super::build::unknown;
use super::format::{File, Pattern};
use super::format_team::{
    AgentTable, COORDINATOR_KEYS, MemberToolsTable, Members, SPEAKER_KEYS, SWARM_KEYS, Start,
};
use super::idle_setting;
use super::name::{AgentName, ToolName};
use super::named::Entry;
use super::nesting::nesting;
use super::reader::{Reader, among};
use super::shape::{Prose, Text};
use super::template::{Filling, Part};
use super::tree::Span;

/// The kind of an agent, as its keys imply it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Team,
    Swarm,
}

impl Kind {
    /// The kind of an agent; `None` if its table is invalid.
    pub fn of(entry: &Entry<AgentTable>) -> Option<Self> {
        let table = entry.value.as_ref()?;
        Some(match (&table.entry, &table.members) {
            (Some(_), _) => Self::Swarm,
            (None, Some(_)) => Self::Team,
            (None, None) => Self::Model,
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Model => "a model agent",
            Self::Team => "a coordinator team",
            Self::Swarm => "a swarm",
        }
    }
}

/// Builds the agents of a file and finds the root. Problems are reported to `cx`.
pub(super) fn team(
    file: &File,
    pattern: Pattern,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<TeamSpec> {
    if file.agents.entries.is_empty() && !cx.within("agents", |cx| cx.failed_here()) {
        let what = "there are no agents";
        cx.within("agents", |cx| cx.error(Span::new(0, 0..0), what, "add [agents.NAME]"));
    }
    let agents: Vec<Option<AgentSpec>> = cx.within("agents", |cx| {
        let read = |entry: &Entry<AgentTable>| {
            cx.within(&entry.name, |cx| agent(entry, file, filling, cx))
        };
        file.agents.entries.iter().map(read).collect()
    });
    cx.within("agents", |cx| nesting(file, cx));
    let (place, table) = match pattern {
        Pattern::Swarm => ("swarm", file.swarm.as_ref()),
        _ => ("team", file.team.as_ref()),
    };
    let (root, follow_ups) = cx.within(place, |cx| {
        let table = table?;
        let root = cx.within("root", |cx| root(table.root.as_ref()?, pattern, file, cx));
        let follow_ups = table.follow_ups.0.iter().enumerate().map(|(index, text)| {
            cx.within("follow_ups", |cx| {
                cx.item(index, |cx| Arc::from(filling.text(&text.text, text.at, cx)))
            })
        });
        Some((root?, follow_ups.collect()))
    })?;
    nobodys(file, &root, cx);
    let agents = agents.into_iter().map(|agent| agent.map(|agent| (agent.name.clone(), agent)));
    Some(TeamSpec {
        root,
        agents: agents.collect::<Option<_>>()?,
        follow_ups,
        max_seconds: file.budget.as_ref()?.max_seconds(60),
    })
}

fn agent(
    entry: &Entry<AgentTable>,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<AgentSpec> {
    let table = entry.value.as_ref()?;
    // If `members` or `entry` is invalid, the intended kind is not known.
    if ["members", "entry"].iter().any(|key| cx.within(key, |cx| cx.failed_here())) {
        return None;
    }
    let kind = Kind::of(entry)?;
    foreign(kind, table, cx);
    let description = table
        .description
        .as_ref()
        .map(|text| cx.within("description", |cx| filling.text(&text.text, text.at, cx)));
    let speaker = speaker(table, file, filling, cx);
    let kind = match kind {
        Kind::Model => AgentKind::Model(speaker?),
        Kind::Team => {
            let members = members(entry, kind, table, file, cx);
            idle_setting::of_team(table, file, cx);
            let parallel_tools =
                cx.within("parallel_tools", |cx| filling.truth(&table.parallel_tools.value, cx));
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
        Kind::Swarm => {
            let members = members(entry, kind, table, file, cx);
            idle_setting::of_swarm(entry, table, file, cx);
            let handoff_input = match &table.handoff_input {
                Some(text) => {
                    Some(cx.within("handoff_input", |cx| handoff_input(text, filling, cx))?)
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
fn foreign(kind: Kind, table: &AgentTable, cx: &mut Reader) {
    for (key, at) in table.keys() {
        let help = match kind {
            Kind::Model if COORDINATOR_KEYS.contains(&key) => "add `members`, or remove it",
            Kind::Model if SWARM_KEYS.contains(&key) => "add `members` and `entry`, or remove it",
            Kind::Team if SWARM_KEYS.contains(&key) => "add `entry`, or remove it",
            Kind::Swarm if SPEAKER_KEYS.contains(&key) => {
                "set it on the members, which call the model"
            }
            Kind::Swarm if COORDINATOR_KEYS.contains(&key) => {
                "remove it: a swarm has no coordinator"
            }
            _ => continue,
        };
        let what = format!("{} has no `{key}`", kind.words());
        cx.within(key, |cx| cx.error(at, what, help));
    }
}

fn speaker(
    table: &AgentTable,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Option<ModelAgent> {
    let instruction = table
        .instruction
        .as_ref()
        .map(|text| cx.within("instruction", |cx| filling.text(&text.text, text.at, cx)));
    let tools = &table.tools.value.0;
    for (index, tool) in tools.iter().enumerate() {
        let before = &tools[..index];
        cx.within("tools", |cx| cx.item(index, |cx| its_tool(tool, before, file, cx)));
    }
    Some(ModelAgent {
        instruction: instruction.unwrap_or_default().into(),
        tools: tools.iter().map(|tool| ToolName::from(tool.text.as_str())).collect(),
        max_tool_rounds: table.max_tool_rounds.value.0,
    })
}

/// Checks a tool that an agent may call.
fn its_tool(tool: &Prose, before: &[Prose], file: &File, cx: &mut Reader) {
    let Some(tools) = &file.tools else { return };
    if file.agents.names().any(|name| name == tool.text) {
        let what = format!("`{}` is an agent, not a tool", tool.text);
        cx.error(tool.at, what, "name it in `members` instead");
    } else if !tools.named.has(&tool.text) {
        unknown(tool, "a tool", tools.named.names(), cx);
    } else if before.iter().any(|earlier| earlier.text == tool.text) {
        cx.error(tool.at, format!("`{}` is listed twice", tool.text), "remove one of the two");
    }
}

/// Checks the members of a team or swarm, with the texts of the source document: each by itself, so
/// that all faults are reported.
fn members(
    entry: &Entry<AgentTable>,
    kind: Kind,
    table: &AgentTable,
    file: &File,
    cx: &mut Reader,
) -> Option<Vec<AgentName>> {
    let (at, members) = match &table.members {
        Some(Members(list)) => (list.at, list.value.as_slice()),
        None => (entry.at, &[][..]),
    };
    if members.is_empty() {
        cx.within("members", |cx| tell(&RosterFault::NoMembers, at, &[], file, cx));
        return None;
    }
    let names: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
    let coordinator = (kind == Kind::Team).then_some(entry.name.as_str());
    let mut good = true;
    for (index, member) in members.iter().enumerate() {
        let judge = |cx: &mut Reader| match check_member(coordinator, &names, index) {
            Ok(()) => its_member(member, kind, file, cx).is_some(),
            Err(fault) => {
                tell(&fault, member.at, &names, file, cx);
                false
            }
        };
        good &= cx.within("members", |cx| cx.item(index, judge));
    }
    if let Some(Start(start)) = &table.entry
        && let Err(fault) = check_entry(&start.text, &names)
    {
        cx.within("entry", |cx| tell(&fault, start.at, &names, file, cx));
        good = false;
    }
    good.then(|| names.into_iter().map(AgentName::from).collect())
}

fn tell(fault: &RosterFault, at: Span, members: &[&str], file: &File, cx: &mut Reader) {
    let help = match fault {
        RosterFault::NoMembers => "add the name of at least one agent".to_owned(),
        RosterFault::EmptyMember | RosterFault::EmptyEntry => {
            "write the name of an agent".to_owned()
        }
        RosterFault::Coordinator(_) => {
            "the coordinator already has the name of its team".to_owned()
        }
        RosterFault::Duplicate(_) => "remove one of the two".to_owned(),
        RosterFault::Strange(_) => "use letters, digits, _ and -".to_owned(),
        RosterFault::NoSuchEntry(entry) => {
            // A member of the wrong kind is reported itself, and is not suggested.
            let able = |name: &&str| {
                let found = file.agents.entries.iter().find(|entry| entry.name == *name);
                found.is_some_and(|found| Kind::of(found) == Some(Kind::Model))
            };
            among(entry, members.iter().copied().filter(able))
        }
    };
    cx.error(at, fault.to_string(), help);
}

/// Checks that the agent exists and may be a member.
fn its_member(member: &Text, of: Kind, file: &File, cx: &mut Reader) -> Option<()> {
    let Some(found) = file.agents.entries.iter().find(|entry| entry.name == member.text) else {
        if !file.agents.has(&member.text) {
            let name = Prose { at: member.at, text: member.text.clone() };
            unknown(&name, "an agent", file.agents.names(), cx);
        }
        return None;
    };
    let kind = Kind::of(found)?;
    if of == Kind::Swarm && kind != Kind::Model {
        let what =
            format!("`{}` is {} and cannot be a member of a swarm", member.text, kind.words());
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

/// Builds the template of a handoff's input: `{{input}}` is filled in now, `{message}` and the
/// other placeholders at the handoff.
fn handoff_input(text: &Prose, filling: &Filling<'_>, cx: &mut Reader) -> Option<HandoffTemplate> {
    let mut template = HandoffTemplate::default();
    for part in filling.parts(&text.text, text.at, cx) {
        match part {
            Part::Own(from, own) => {
                judge_names(own, from, text.at, cx);
                template.text(own);
            }
            Part::Filled(value) => template.literal(&value),
        }
    }
    (!cx.failed_here()).then_some(template)
}

/// Reports braces that look like a placeholder and are none, in a part of a template that begins
/// `from` bytes into it.
fn judge_names(own: &str, from: usize, at: Span, cx: &mut Reader) {
    for (open, _) in own.match_indices('{') {
        let inner = &own[open + 1..];
        // Nested braces contain no placeholder; the inner pair may be one.
        let Some(name) = inner.find(['{', '}']).map(|end| &inner[..end]) else { return };
        if !inner[name.len()..].starts_with('}') {
            continue;
        }
        let like_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
        if name.chars().all(like_a_name) && !HandoffPiece::NAMES.contains(&name) {
            let at = cx.inside(at, from + open, from + open + name.len() + 2);
            let what = format!("`{{{name}}}` is not a placeholder of a handoff");
            let help = cx.among(name, HandoffPiece::NAMES);
            cx.error(at, what, help);
        }
    }
}

/// Checks the agent that the user talks to.
fn root(root: &Prose, pattern: Pattern, file: &File, cx: &mut Reader) -> Option<AgentName> {
    let Some(found) = file.agents.entries.iter().find(|entry| entry.name == root.text) else {
        if !file.agents.has(&root.text) {
            unknown(root, "an agent", file.agents.names(), cx);
        }
        return None;
    };
    let (wanted, help) = match pattern {
        Pattern::Swarm => (Kind::Swarm, "the root of a swarm has `members` and `entry`"),
        _ => (Kind::Team, "the root of a team has `members` and no `entry`"),
    };
    let kind = Kind::of(found)?;
    if kind != wanted {
        cx.error(root.at, format!("`{}` is {}", root.text, kind.words()), help);
        return None;
    }
    Some(AgentName::from(root.text.as_str()))
}

/// Warns of agents that are in no `members` list. If there is a swarm, a model agent may join it
/// later.
fn nobodys(file: &File, root: &AgentName, cx: &mut Reader) {
    let agents = &file.agents.entries;
    let taken: BTreeSet<&str> = agents
        .iter()
        .filter_map(|entry| entry.value.as_ref()?.members.as_ref())
        .flat_map(|Members(list)| list.value.iter().map(|member| member.text.as_str()))
        .collect();
    let may_join = agents.iter().any(|entry| Kind::of(entry) == Some(Kind::Swarm));
    for entry in agents {
        let name = entry.name.as_str();
        let Some(kind) = Kind::of(entry) else { continue };
        let on_the_bench = may_join && kind == Kind::Model;
        if name != root.as_str() && !taken.contains(name) && !on_the_bench {
            cx.within(&format!("agents.{name}"), |cx| {
                let what = format!("`{name}` is not a member of any team");
                cx.warn(entry.at, what, "name it in the `members` of an agent");
            });
        }
    }
}
