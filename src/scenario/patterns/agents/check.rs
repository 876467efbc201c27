//! Cross-checks between the agents of a file: kinds and members, teams that contain themselves or
//! are nested too deeply, settings without effect, the template of a handoff's input.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{
    AgentTable, COORDINATOR_KEYS, EntryMember, MemberToolsTable, Members, SPEAKER_KEYS, SWARM_KEYS,
};
use super::{
    AgentKind, AgentSpec, AgentsSpec, CoordinatorTeam, MAX_DEPTH, ModelAgent, RosterError, Swarm,
    SwarmLimits, check_entry, check_member,
};
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::patterns::agents::MemberTools;
use crate::scenario::patterns::row::{BoundaryForm, ModelKey, ToolUse};
use crate::scenario::people;
use crate::scenario::people::names_tool;
use crate::scenario::read::format::ScenarioFile;
use crate::scenario::read::names::NamedEntry;
use crate::scenario::read::shape::{NonBlankString, StringField};
use crate::scenario::read::template::{TemplatePart, TemplateScope};
use crate::scenario::read::tree::TextSpan;
use crate::scenario::read::{ReadContext, suggest_name};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::handoff_template::{HandoffPiece, HandoffTemplate};
use crate::scenario::tools::agent as outside_agent;
use crate::scenario::tools::mcp::split_name;

/// The ids of the boundaries of agents.
pub(crate) const AGENT_BOUNDARIES: &[BoundaryForm] =
    &[BoundaryForm::Named("ask"), BoundaryForm::Named("handoff")];

/// The kind of an agent, as its keys imply it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentTableKind {
    Model,
    Team,
    Swarm,
    Person,
}

impl AgentTableKind {
    /// The kind of an agent; `None` if its table is invalid.
    pub fn from_entry(entry: &NamedEntry<AgentTable>) -> Option<Self> {
        let table = entry.value.as_ref()?;
        if table.person.is_some() {
            return Some(Self::Person);
        }
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
            Self::Person => "a person",
        }
    }
}

/// Builds the agents of a file. Problems are reported to `cx`.
pub(crate) fn agents(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<AgentsSpec> {
    if file.agents.entries.is_empty() && !cx.at_key("agents", |cx| cx.has_error_here()) {
        let what = "there are no agents";
        cx.at_key("agents", |cx| cx.error(TextSpan::new(0, 0..0), what, "add [agents.NAME]"));
    }
    let agents: Vec<Option<AgentSpec>> = cx.at_key("agents", |cx| {
        let read = |entry: &NamedEntry<AgentTable>| {
            cx.at_key(&entry.name, |cx| agent(entry, file, scope, cx))
        };
        file.agents.entries.iter().map(read).collect()
    });
    cx.at_key("agents", |cx| report_nesting(file, cx));
    agents.into_iter().collect()
}

fn agent(
    entry: &NamedEntry<AgentTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
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
        .map(|text| cx.at_key("description", |cx| scope.text(&text.text, text.at, cx)));
    let speaker = build_model_agent(entry, table, file, scope, cx);
    let kind = match kind {
        AgentTableKind::Person => {
            let person = table.person.as_ref()?;
            AgentKind::Person(cx.at_key("person", |cx| people::declared(person, file, cx))?)
        }
        AgentTableKind::Model => AgentKind::Model(speaker?),
        AgentTableKind::Team => {
            let members = members(entry, kind, table, file, cx);
            warn_of_team_settings(table, file, cx);
            let parallel_tools = cx
                .at_key("parallel_tools", |cx| scope.switch_value(&table.parallel_tools.value, cx));
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
            warn_of_swarm_settings(entry, table, file, cx);
            let handoff_input = match &table.handoff_input {
                Some(text) => {
                    Some(cx.at_key("handoff_input", |cx| handoff_input(text, scope, cx))?)
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
            AgentTableKind::Person => "remove it, or remove `person`: a person calls no model",
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
    entry: &NamedEntry<AgentTable>,
    table: &AgentTable,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ModelAgent> {
    let instruction = table
        .instruction
        .as_ref()
        .map(|text| cx.at_key("instruction", |cx| scope.prompt(&text.text, text.at, cx)));
    let tools = &table.tools.value.0;
    for (index, tool) in tools.iter().enumerate() {
        let before = &tools[..index];
        cx.at_key("tools", |cx| cx.at_index(index, |cx| check_agent_tool(tool, before, file, cx)));
    }
    let people: Vec<Option<PersonName>> = cx.at_key("people", |cx| {
        let people = table.people.value.0.iter().enumerate();
        people
            .map(|(index, name)| cx.at_index(index, |cx| people::declared(name, file, cx)))
            .collect()
    });
    let outside = outside_agent::build(&entry.name, table, file, cx);
    outside_agent::check_cost(&entry.name, table, entry.at, file, cx);
    if let (Some(model), Some(Some(agent))) = (&table.model, &outside) {
        let what = format!("`{}` answers with a model of its own", agent.name);
        let help = "remove it; the settings of the other program choose its model";
        cx.at_key("model", |cx| cx.error(model.at, what, help));
    }
    Some(ModelAgent {
        outside: outside?,
        people: people.into_iter().collect::<Option<_>>()?,
        instruction: instruction.unwrap_or_default(),
        tools: tools.iter().map(|tool| ToolName::from(tool.text.as_str())).collect(),
        max_tool_rounds: table.max_tool_rounds.value.0,
    })
}

fn check_agent_tool(
    tool: &NonBlankString,
    before: &[NonBlankString],
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let Some(tools) = &file.tools else { return };
    if let Some((server, _)) = split_name(&tool.text) {
        if !file.mcp.has(server) {
            let what = format!("there is no MCP server `{server}`");
            let help = match file.mcp.entries.is_empty() {
                true => format!(
                    "add [mcp.{server}] with `command` or `url`; with neither it is the server of this name in the configuration"
                ),
                false => suggest_name(server, file.mcp.names()),
            };
            cx.error(tool.at, what, help);
        } else if before.iter().any(|earlier| names_tool(&earlier.text, &tool.text)) {
            let what = format!("`{}` is listed twice", tool.text);
            cx.error(tool.at, what, "remove one of the two");
        }
    } else if file.mcp.names().any(|server| server == tool.text) {
        let what = format!("`{}` is an MCP server, not a tool", tool.text);
        cx.error(tool.at, what, format!("write {0}.* for all its tools, or {0}.TOOL", tool.text));
    } else if file.agents.names().any(|name| name == tool.text) {
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
                    matches!(
                        AgentTableKind::from_entry(found),
                        Some(AgentTableKind::Model | AgentTableKind::Person)
                    )
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
    let hands_over = matches!(kind, AgentTableKind::Model | AgentTableKind::Person);
    if of == AgentTableKind::Swarm && !hands_over {
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

/// An agent in the graph of memberships.
struct MembershipNode<'f> {
    entry: &'f NamedEntry<AgentTable>,
    /// Index in its `members`, and index of that agent in the file.
    members: Vec<(usize, usize)>,
    /// How many levels of teams are below it, once known.
    depth: Option<usize>,
}

/// Reports cycles and too deep nesting. No recursion: a file may be long.
fn report_nesting(file: &ScenarioFile, cx: &mut ReadContext) {
    let agents = &file.agents.entries;
    let places: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(place, entry)| (entry.name.as_str(), place)).collect();
    let mut knots: Vec<MembershipNode<'_>> = agents
        .iter()
        .map(|entry| {
            let members = entry.value.iter().flat_map(|table| &table.members);
            let members = members.flat_map(|Members(list)| list.value.iter().enumerate());
            // An agent that is its own member is reported elsewhere.
            let others = members.filter(|(_, member)| member.text != entry.name);
            let members = others.filter_map(|(at, it)| Some((at, *places.get(it.text.as_str())?)));
            MembershipNode { entry, members: members.collect(), depth: None }
        })
        .collect();
    for start in 0..knots.len() {
        // The path down to the current agent, each with the index of its next member.
        let mut way = if knots[start].depth.is_none() { vec![(start, 0)] } else { Vec::new() };
        while let Some((here, next)) = way.last_mut() {
            let here = *here;
            let Some((index, member)) = knots[here].members.get(*next).copied() else {
                let depths = knots[here].members.iter().filter_map(|(_, it)| knots[*it].depth);
                let depth = depths.max().map_or(0, |deepest| deepest + 1);
                if depth == MAX_DEPTH + 1 {
                    let entry = knots[here].entry;
                    let what = format!("teams are nested {depth} deep here");
                    let help = format!("at most {MAX_DEPTH}");
                    cx.at_key(&entry.name, |cx| cx.error(entry.at, what, help));
                }
                knots[here].depth = Some(depth);
                way.pop();
                continue;
            };
            *next += 1;
            if let Some(from) = way.iter().position(|(passed, _)| *passed == member) {
                let circle =
                    way[from..].iter().map(|(passed, _)| knots[*passed].entry.name.as_str());
                let path: Vec<&str> = circle.chain([knots[member].entry.name.as_str()]).collect();
                report_cycle(knots[here].entry, index, &path.join(" > "), cx);
            } else if knots[member].depth.is_none() {
                way.push((member, 0));
            }
        }
    }
}

fn report_cycle(entry: &NamedEntry<AgentTable>, index: usize, path: &str, cx: &mut ReadContext) {
    let members = entry.value.as_ref().and_then(|table| table.members.as_ref());
    let Some(member) = members.and_then(|Members(list)| list.value.get(index)) else { return };
    cx.at_key(&format!("{}.members", entry.name), |cx| {
        cx.at_index(index, |cx| {
            let what = format!("`{}` contains itself: {path}", member.text);
            cx.error(member.at, what, "a team cannot have itself as a member");
        });
    });
}

/// Warns of a rule for an agent that never calls such a tool.
pub(crate) fn warn_of_no_calls(
    tool: &NonBlankString,
    agent: Option<&NonBlankString>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let Some(agent) = agent else { return };
    let entry = file.agents.entries.iter().find(|entry| entry.name == agent.text.trim());
    let Some(table) = entry.and_then(|entry| entry.value.as_ref()) else { return };
    let tools = &table.tools.value.0;
    if !tools.iter().any(|own| people::names_tool(tool.text.trim(), own.text.trim())) {
        let name = agent.text.trim();
        let what = match table.person {
            Some(_) => format!("the rule has no effect: {name} is a person and calls no tools"),
            None => format!("the rule has no effect: {name} has no such tool"),
        };
        let own = tools.iter().map(|own| own.text.trim()).collect::<Vec<_>>().join(", ");
        let help = match own.is_empty() {
            true => "remove the rule, or name another agent".to_owned(),
            false => format!("tools of {name}: {own}"),
        };
        cx.at_key("agent", |cx| cx.warn(agent.at, what, &help));
    }
}

/// Whether a person is asked anything but to approve calls: by an agent, in the place of an agent or a
/// role, or for a decision.
pub(crate) fn gives_answers(name: &str, file: &ScenarioFile) -> bool {
    let is_it = |named: &NonBlankString| named.text.trim() == name;
    let agents = file.agents.entries.iter().filter_map(|entry| entry.value.as_ref());
    let roles = file.roles.entries.iter().filter_map(|entry| entry.value.as_ref());
    let decision = file.collaboration.as_ref().and_then(|it| it.on_no_decision.as_ref());
    let mut named = agents
        .flat_map(|agent| agent.person.iter().chain(&agent.people.value.0))
        .chain(roles.filter_map(|role| role.person.as_ref()))
        .chain(decision.and_then(|it| it.ask.as_ref()));
    named.any(is_it)
}

/// Settings of a team: output of members that is not shown, or not streamed.
fn warn_of_team_settings(table: &AgentTable, file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(tools) = table.member_tools.as_ref().map(|tools| &tools.value) else { return };
    let streams = file.model.as_ref().is_none_or(|model| model.stream);
    cx.at_key("member_tools", |cx| {
        if tools.inner_text.at.end > 0 && !tools.stream_inner.value {
            let what = "`inner_text` has no effect: output of members is not shown";
            let help = "add stream_inner = true, or remove it";
            cx.at_key("inner_text", |cx| cx.warn(tools.inner_text.at, what, help));
        }
        if tools.stream_inner.value && !streams {
            let what = "`stream_inner` has no effect: model.stream is false";
            let help = "remove one of the two";
            cx.at_key("stream_inner", |cx| cx.warn(tools.stream_inner.at, what, help));
        }
    });
}

/// Settings of a swarm: where the next message starts, and when handoffs are refused.
fn warn_of_swarm_settings(
    entry: &NamedEntry<AgentTable>,
    table: &AgentTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let root = file.swarm.as_ref().and_then(|swarm| swarm.root.as_ref());
    let transfer = &table.cross_request_transfer;
    if transfer.value && root.is_none_or(|root| root.text != entry.name) {
        let what = "`cross_request_transfer` has no effect in a swarm within another team";
        let help = "only the root agent receives the next message";
        cx.at_key("cross_request_transfer", |cx| cx.warn(transfer.at, what, help));
    }
    warn_of_small_window(table, cx);
    warn_of_few_members(table, cx);
}

/// Warns if more different names are required than there are members.
fn warn_of_few_members(table: &AgentTable, cx: &mut ReadContext) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let Some(Members(members)) = &table.members else { return };
    let count = members.value.len();
    let too_many = unique.value.0 as usize > count && unique.value.0 <= window.value.0;
    if unique.at.end > 0 && window.value.0 > 0 && too_many {
        let what = format!(
            "the targets cannot have {} different names: every handoff is refused once the \
             window is full",
            unique.value.0
        );
        let help = format!("members of the swarm: {count}");
        cx.at_key("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    }
}

/// Warns if more different names are required than the window has entries.
fn warn_of_small_window(table: &AgentTable, cx: &mut ReadContext) {
    let (window, unique) = (&table.repetitive_handoff_window, &table.repetitive_handoff_min_unique);
    let (names, most) = (unique.value.0, window.value.0);
    if most == 0 || names <= most {
        return;
    }
    let what = format!(
        "{most} targets cannot have {names} different names: every handoff is refused once the \
         window is full"
    );
    // The warning is at the one of the two that the file sets; the other may be a default.
    if unique.at.end > 0 {
        let help = "set it to at most the window, or 0 for no check";
        cx.at_key("repetitive_handoff_min_unique", |cx| cx.warn(unique.at, what, help));
    } else {
        let help = format!(
            "set it to at least `repetitive_handoff_min_unique` ({names}), or 0 for no check"
        );
        cx.at_key("repetitive_handoff_window", |cx| cx.warn(window.at, what, help));
    }
}

/// Builds the template of a handoff's input: `{{input}}` is filled in now, `{message}` and the
/// other placeholders at the handoff.
pub(crate) fn handoff_input(
    text: &NonBlankString,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<HandoffTemplate> {
    let mut template = HandoffTemplate::default();
    for part in scope.parts(&text.text, text.at, cx) {
        match part {
            TemplatePart::FileText(from, own) => {
                check_placeholders(own, from, text.at, cx);
                template.push_template(own);
            }
            TemplatePart::Filled(value) => template.push_literal(&value),
            // Only texts of a script have such parts.
            TemplatePart::Later(_) | TemplatePart::Flag(_) => {}
        }
    }
    (!cx.has_error_here()).then_some(template)
}

/// Reports braces that look like a placeholder but are not, in a part of a template that begins
/// `from` bytes into it.
fn check_placeholders(own: &str, from: usize, at: TextSpan, cx: &mut ReadContext) {
    for (open, _) in own.match_indices('{') {
        let inner = &own[open + 1..];
        // Nested braces contain no placeholder; the inner pair may be one.
        let Some(name) = inner.find(['{', '}']).map(|end| &inner[..end]) else { return };
        if !inner[name.len()..].starts_with('}') {
            continue;
        }
        let like_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
        if name.chars().all(like_a_name) && !HandoffPiece::NAMES.contains(&name) {
            let at = cx.inner_span(at, from + open, from + open + name.len() + 2);
            let what = format!("`{{{name}}}` is not a placeholder of a handoff");
            let help = cx.suggest(name, HandoffPiece::NAMES);
            cx.error(at, what, help);
        }
    }
}
