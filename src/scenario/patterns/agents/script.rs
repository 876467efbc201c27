//! The script rows of agents, and their tool calls.

use std::sync::Arc;

use serde_json::Value;

use super::check::AgentTableKind;
use super::table::{AgentTable, CallTable, Members};
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::people::{ASK, names_tool};
use crate::scenario::read::format::tools::fill_table;
use crate::scenario::read::format::{ScenarioFile, ScriptTable};
use crate::scenario::read::names::NamedEntry;
use crate::scenario::read::shape::{BoundedList, NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::{ReadContext, suggest_name};
use crate::scenario::spec::tool::{TRANSFER, ToolCall};
use crate::scenario::tools::mcp::{model_name, split_name};

/// Names bound in a condition on a reply of an agent in a team.
pub(crate) const AGENT_NAMES: &[&str] = &[
    "facts", "inputs", "goal", "attempt", "flags", "agent", "input", "message", "turn", "round",
    "results", "handoffs", "refused", "from", "members",
];

/// Reports keys of agents' rows in a file of another pattern.
pub(crate) fn report_agent_row_keys(row: &ScriptTable, help: &str, cx: &mut ReadContext) {
    let given = [
        ("agent", row.agent.as_ref().map(|it| it.at)),
        ("message", row.message.as_ref().map(|it| it.at)),
        ("turn", row.turn.as_ref().map(|it| it.at)),
        ("calls", row.calls.as_ref().map(|it| it.at)),
    ];
    for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
        let what = format!("`{key}` is for replies of agents");
        cx.at_key(key, |cx| cx.error(at, what, help));
    }
}

pub(crate) fn check_agent_row(
    row: &Positioned<ScriptTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let table = &row.value;
    if let Some(role) = &table.role {
        let help = "write agent = \"NAME\"";
        cx.at_key("role", |cx| cx.error(role.at, "a team has agents, not roles", help));
    }
    if let Some(step) = &table.step {
        let what = "a reply of an agent has no step";
        cx.at_key("step", |cx| cx.error(step.at, what, "remove `step`"));
    }
    let Some(agent) = &table.agent else { return };
    cx.at_key("agent", |cx| match file.agents.entries.iter().find(|it| it.name == agent.text) {
        None if file.agents.has(&agent.text) => {}
        None => report_unknown_name(agent, "an agent", file.agents.names(), cx),
        Some(found) if AgentTableKind::from_entry(found) == Some(AgentTableKind::Person) => {
            let what = format!("`{}` is a person and calls no model", agent.text);
            cx.error(agent.at, what, "write person = \"NAME\" for what the person answers");
        }
        Some(found) if AgentTableKind::from_entry(found) == Some(AgentTableKind::Swarm) => {
            let what = format!("`{}` is a swarm and has no replies of its own", agent.text);
            cx.error(agent.at, what, "write the name of a member");
        }
        Some(_) => {}
    });
}

/// Builds the tool calls of a row; they get their ids during the run.
pub(crate) fn calls(
    row: &ScriptTable,
    calls: &Positioned<BoundedList<Positioned<CallTable>, 1, 64>>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Arc<[ToolCall]> {
    let calls = calls.value.0.iter().enumerate();
    let read = calls.filter_map(|(index, table)| {
        cx.at_key("calls", |cx| {
            cx.at_index(index, |cx| {
                let read = call(table, scope, cx)?;
                if !cx.has_error_here() {
                    wrong_arguments(table, file, cx);
                }
                if !cx.has_error_here() {
                    warn_refused_call(row, &table.value, &read, file, cx);
                }
                Some(read)
            })
        })
    });
    read.collect()
}

fn call(
    call: &Positioned<CallTable>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolCall> {
    let table = &call.value;
    let arguments = match (&table.args, &table.raw) {
        (Some(args), None) => {
            let args = cx.at_key("args", |cx| {
                fill_table(&args.value, &mut |text, at| scope.value_of(text, at, cx))
            });
            Value::Object(args).to_string()
        }
        (None, Some(raw)) => cx.at_key("raw", |cx| scope.text(&raw.text, raw.at, cx)),
        (None, None) => "{}".to_owned(),
        (Some(_), Some(_)) => {
            cx.error(call.at, "the call has two sets of arguments", "keep one of `args` and `raw`");
            return None;
        }
    };
    let name = model_name(&table.tool.as_ref()?.text).into();
    Some(ToolCall { id: Arc::from(""), name, arguments: arguments.into() })
}

/// Warns of a call that will be refused: the row may show that on purpose, but a typo is more
/// likely.
fn warn_refused_call(
    row: &ScriptTable,
    table: &CallTable,
    call: &ToolCall,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let Some(tool) = &table.tool else { return };
    if let Some(agent) = &row.agent
        && let Some(known) = callable(&agent.text, file)
        && !known.iter().any(|known| names_tool(known, &tool.text))
    {
        let what = format!("`{}` cannot call `{}`", agent.text, tool.text);
        let help = suggest_name(&tool.text, known.iter().map(String::as_str));
        cx.at_key("tool", |cx| cx.warn(tool.at, what, help));
    } else if row.agent.is_none() && !is_callable_by_any(tool, file) {
        let what = format!("no agent can call `{}`", tool.text);
        cx.at_key("tool", |cx| cx.warn(tool.at, what, ""));
    } else if tool.text == TRANSFER {
        let said: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let to = said.as_ref().and_then(|args| args.get("agent_name")).and_then(Value::as_str);
        if let Some(to) = to.filter(|to| !file.agents.has(to)) {
            let what = format!("there is no agent {to:?} to hand over to");
            cx.at_key("args", |cx| cx.warn(tool.at, what, suggest_name(to, file.agents.names())));
        }
    }
}

/// Reports unknown and missing arguments of a call. The arguments for agents and for handoffs are
/// fixed, so another name is an error; `raw` can still show a refused call. An author's tool may be
/// called with any arguments.
fn wrong_arguments(call: &Positioned<CallTable>, file: &ScenarioFile, cx: &mut ReadContext) {
    let table = &call.value;
    let Some(tool) = &table.tool else { return };
    let name = tool.text.as_str();
    if table.raw.is_some() {
        return;
    }
    let (known, needed, certain) = if name == TRANSFER {
        (vec!["agent_name", "message"], vec!["agent_name"], true)
    } else if file.agents.names().any(|agent| agent == name) {
        (vec!["request"], vec!["request"], true)
    } else {
        let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
        let entry = named.into_iter().find(|entry| entry.name == name);
        let Some(table) = entry.and_then(|entry| entry.value.as_ref()) else { return };
        let names: Vec<&str> = table.args.value.names().collect();
        if names.is_empty() {
            return;
        }
        // Models often omit arguments that a tool can do without.
        (names, Vec::new(), false)
    };
    let given = table.args.as_ref().map(|args| &args.value.table);
    let given = || given.iter().flat_map(|table| &table.entries).map(|(key, _)| key);
    let strange: Vec<_> = given().filter(|key| !known.contains(&key.text.as_str())).collect();
    cx.at_key("args", |cx| {
        for key in &strange {
            let what = format!("`{}` is not an argument of {name}", key.text);
            let help = cx.suggest(&key.text, known.iter().copied());
            cx.at_key(&key.text, |cx| match certain {
                true => cx.error(key.at, what, help),
                false => cx.warn(key.at, what, help),
            });
        }
        if strange.is_empty() {
            let at = table.args.as_ref().map_or(tool.at, |args| args.at);
            for key in needed.iter().filter(|needed| given().all(|key| key.text != **needed)) {
                let what = format!("{name} is called without `{key}` and will be refused");
                cx.at_key(key, |cx| cx.warn(at, what, format!("write args = {{ {key} = \"…\" }}")));
            }
        }
    });
}

/// The names that an agent can call; `None` if its tables are invalid.
fn callable(name: &str, file: &ScenarioFile) -> Option<Vec<String>> {
    let entry = file.agents.entries.iter().find(|entry| entry.name == name)?;
    let table = entry.value.as_ref()?;
    let mut known: Vec<String> = table.tools.value.0.iter().map(|tool| tool.text.clone()).collect();
    let tools = file.tools.as_ref()?;
    let is_of_server = |tool: &str| split_name(tool).is_some_and(|it| file.mcp.has(it.0));
    if !known.iter().all(|tool| tools.named.has(tool) || is_of_server(tool)) {
        return None;
    }
    known.extend(table.people.value.0.iter().map(|person| format!("{ASK}{}", person.text.trim())));
    match AgentTableKind::from_entry(entry)? {
        AgentTableKind::Model if may_hand_over(name, file) => known.push(TRANSFER.to_owned()),
        AgentTableKind::Model => {}
        AgentTableKind::Team => {
            let members = table.members.iter().flat_map(|Members(list)| &list.value);
            known.extend(members.map(|member| member.text.clone()));
        }
        AgentTableKind::Swarm | AgentTableKind::Person => return None,
    }
    Some(known)
}

fn is_callable_by_any(tool: &NonBlankString, file: &ScenarioFile) -> bool {
    let name = tool.text.as_str();
    let tools = file.tools.iter().any(|tools| tools.named.has(name))
        || split_name(name).is_some_and(|(server, _)| file.mcp.has(server));
    let asks = name.strip_prefix(ASK).is_some_and(|person| file.people.has(person));
    tools || asks || file.agents.has(name) || (name == TRANSFER && has_swarm(file))
}

/// Whether it is a member of a swarm, or could join one because it is in no `members` list.
fn may_hand_over(name: &str, file: &ScenarioFile) -> bool {
    let mut of = file.agents.entries.iter().filter(|entry| {
        let members = entry.value.iter().flat_map(|table| &table.members);
        members.flat_map(|Members(list)| &list.value).any(|member| member.text == name)
    });
    let first = of.next();
    let in_a_swarm = first.into_iter().chain(of).any(is_swarm);
    in_a_swarm || (first.is_none() && has_swarm(file))
}

fn has_swarm(file: &ScenarioFile) -> bool {
    file.agents.entries.iter().any(is_swarm)
}

fn is_swarm(entry: &NamedEntry<AgentTable>) -> bool {
    AgentTableKind::from_entry(entry) == Some(AgentTableKind::Swarm)
}

/// Reports agents without a scripted reply. `first` is the agent that speaks first.
pub(crate) fn report_silent_agents(file: &ScenarioFile, first: Option<&str>, cx: &mut ReadContext) {
    for entry in &file.agents.entries {
        let speaks = matches!(
            AgentTableKind::from_entry(entry),
            Some(AgentTableKind::Model | AgentTableKind::Team)
        );
        let mut rows = file.model_rows().map(|(_, row)| &row.value.agent);
        if speaks && !rows.any(|agent| agent.as_ref().is_none_or(|it| it.text == entry.name)) {
            let certain = first == Some(entry.name.as_str());
            cx.at_key(&format!("agents.{}", entry.name), |cx| {
                let what = format!("`{}` has no scripted reply for offline runs", entry.name);
                cx.warn_no_reply(entry.at, what, "add a row in [[script]] for it", certain);
            });
        }
    }
}
