//! The script rows of agents, and their tool calls.

use std::sync::Arc;

use serde_json::Value;

use super::agent::TRANSFER;
use super::build::unknown;
use super::build_team::Kind;
use super::format::{File, Pattern, ScriptTable};
use super::format_team::{AgentTable, CallTable, Members, Start};
use super::format_tools::filled;
use super::named::Entry;
use super::reader::{Reader, among};
use super::script_steps;
use super::shape::{At, List, Prose};
use super::template::Filling;
use super::tool::ToolCall;

/// Reports keys of agents' rows in a file of another pattern.
pub(super) fn strange(row: &ScriptTable, pattern: Pattern, cx: &mut Reader) {
    let given = [
        ("agent", row.agent.as_ref().map(|it| it.at)),
        ("message", row.message.as_ref().map(|it| it.at)),
        ("turn", row.turn.as_ref().map(|it| it.at)),
        ("calls", row.calls.as_ref().map(|it| it.at)),
    ];
    let help = match pattern {
        Pattern::Collaboration => "write role = \"NAME\"".to_owned(),
        _ => script_steps::help(pattern),
    };
    for (key, at) in given.into_iter().filter_map(|(key, at)| Some((key, at?))) {
        let what = format!("`{key}` is for agents of a team or swarm");
        cx.within(key, |cx| cx.error(at, what, help.as_str()));
    }
}

/// Checks a row of an agent.
pub(super) fn judge(row: &At<ScriptTable>, file: &File, cx: &mut Reader) {
    let table = &row.value;
    if let Some(role) = &table.role {
        let help = "write agent = \"NAME\"";
        cx.within("role", |cx| cx.error(role.at, "a team has agents, not roles", help));
    }
    if let Some(step) = &table.step {
        let what = "a reply of an agent has no step";
        cx.within("step", |cx| cx.error(step.at, what, "remove `step`"));
    }
    let Some(agent) = &table.agent else { return };
    cx.within("agent", |cx| match file.agents.entries.iter().find(|it| it.name == agent.text) {
        None if file.agents.has(&agent.text) => {}
        None => unknown(agent, "an agent", file.agents.names(), cx),
        Some(found) if Kind::of(found) == Some(Kind::Swarm) => {
            let what = format!("`{}` is a swarm and has no replies of its own", agent.text);
            cx.error(agent.at, what, "write the name of a member");
        }
        Some(_) => {}
    });
}

/// Builds the tool calls of a row; they get their ids during the run.
pub(super) fn calls(
    row: &ScriptTable,
    calls: &At<List<At<CallTable>, 1, 64>>,
    file: &File,
    filling: &Filling<'_>,
    cx: &mut Reader,
) -> Arc<[ToolCall]> {
    let calls = calls.value.0.iter().enumerate();
    let read = calls.filter_map(|(index, table)| {
        cx.within("calls", |cx| {
            cx.item(index, |cx| {
                let read = call(table, filling, cx)?;
                if !cx.failed_here() {
                    wrong_arguments(table, file, cx);
                }
                if !cx.failed_here() {
                    in_vain(row, &table.value, &read, file, cx);
                }
                Some(read)
            })
        })
    });
    read.collect()
}

fn call(call: &At<CallTable>, filling: &Filling<'_>, cx: &mut Reader) -> Option<ToolCall> {
    let table = &call.value;
    let arguments = match (&table.args, &table.raw) {
        (Some(args), None) => {
            let args = cx.within("args", |cx| {
                filled(&args.value, &mut |text, at| filling.value_of(text, at, cx))
            });
            Value::Object(args).to_string()
        }
        (None, Some(raw)) => cx.within("raw", |cx| filling.text(&raw.text, raw.at, cx)),
        (None, None) => "{}".to_owned(),
        (Some(_), Some(_)) => {
            cx.error(call.at, "the call has two sets of arguments", "keep one of `args` and `raw`");
            return None;
        }
    };
    let name = table.tool.as_ref()?.text.as_str().into();
    Some(ToolCall { id: Arc::from(""), name, arguments: arguments.into() })
}

/// Warns of a call that will be refused: the row may show that on purpose, but a typo is more
/// likely.
fn in_vain(row: &ScriptTable, table: &CallTable, call: &ToolCall, file: &File, cx: &mut Reader) {
    let Some(tool) = &table.tool else { return };
    if let Some(agent) = &row.agent
        && let Some(known) = callable(&agent.text, file)
        && !known.contains(&tool.text.as_str())
    {
        let what = format!("`{}` cannot call `{}`", agent.text, tool.text);
        let help = among(&tool.text, known.iter().copied());
        cx.within("tool", |cx| cx.warn(tool.at, what, help));
    } else if row.agent.is_none() && !anyones(tool, file) {
        let what = format!("no agent can call `{}`", tool.text);
        cx.within("tool", |cx| cx.warn(tool.at, what, ""));
    } else if tool.text == TRANSFER {
        let said: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let to = said.as_ref().and_then(|args| args.get("agent_name")).and_then(Value::as_str);
        if let Some(to) = to.filter(|to| !file.agents.has(to)) {
            let what = format!("there is no agent {to:?} to hand over to");
            cx.within("args", |cx| cx.warn(tool.at, what, among(to, file.agents.names())));
        }
    }
}

/// Reports unknown and missing arguments of a call. The arguments for agents and for handoffs are
/// fixed, so another name is an error; `raw` can still show a refused call. An author's tool may be
/// called with any arguments.
fn wrong_arguments(call: &At<CallTable>, file: &File, cx: &mut Reader) {
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
    cx.within("args", |cx| {
        for key in &strange {
            let what = format!("`{}` is not an argument of {name}", key.text);
            let help = cx.among(&key.text, known.iter().copied());
            cx.within(&key.text, |cx| match certain {
                true => cx.error(key.at, what, help),
                false => cx.warn(key.at, what, help),
            });
        }
        if strange.is_empty() {
            let at = table.args.as_ref().map_or(tool.at, |args| args.at);
            for key in needed.iter().filter(|needed| given().all(|key| key.text != **needed)) {
                let what = format!("{name} is called without `{key}` and will be refused");
                cx.within(key, |cx| cx.warn(at, what, format!("write args = {{ {key} = \"…\" }}")));
            }
        }
    });
}

/// The names that an agent can call; `None` if its tables are invalid.
fn callable<'f>(name: &str, file: &'f File) -> Option<Vec<&'f str>> {
    let entry = file.agents.entries.iter().find(|entry| entry.name == name)?;
    let table = entry.value.as_ref()?;
    let mut known: Vec<&str> = table.tools.value.0.iter().map(|tool| tool.text.as_str()).collect();
    let tools = file.tools.as_ref()?;
    if !known.iter().all(|tool| tools.named.has(tool)) {
        return None;
    }
    match Kind::of(entry)? {
        Kind::Model if may_hand_over(name, file) => known.push(TRANSFER),
        Kind::Model => {}
        Kind::Team => {
            let members = table.members.iter().flat_map(|Members(list)| &list.value);
            known.extend(members.map(|member| member.text.as_str()));
        }
        Kind::Swarm => return None,
    }
    Some(known)
}

/// Whether some agent could call this tool.
fn anyones(tool: &Prose, file: &File) -> bool {
    let name = tool.text.as_str();
    let tools = file.tools.iter().any(|tools| tools.named.has(name));
    tools || file.agents.has(name) || (name == TRANSFER && has_swarm(file))
}

/// Whether it is a member of a swarm, or could join one because it is in no `members` list.
fn may_hand_over(name: &str, file: &File) -> bool {
    let mut of = file.agents.entries.iter().filter(|entry| {
        let members = entry.value.iter().flat_map(|table| &table.members);
        members.flat_map(|Members(list)| &list.value).any(|member| member.text == name)
    });
    let first = of.next();
    let in_a_swarm = first.into_iter().chain(of).any(is_swarm);
    in_a_swarm || (first.is_none() && has_swarm(file))
}

fn has_swarm(file: &File) -> bool {
    file.agents.entries.iter().any(is_swarm)
}

fn is_swarm(entry: &Entry<AgentTable>) -> bool {
    Kind::of(entry) == Some(Kind::Swarm)
}

/// Reports agents without a scripted reply.
pub(super) fn silent(file: &File, pattern: Pattern, cx: &mut Reader) {
    if cx.within("script", |cx| cx.failed_here()) {
        return;
    }
    for entry in &file.agents.entries {
        let speaks = matches!(Kind::of(entry), Some(Kind::Model | Kind::Team));
        let mut rows = file.script.0.iter().map(|row| &row.value.agent);
        if speaks && !rows.any(|agent| agent.as_ref().is_none_or(|it| it.text == entry.name)) {
            let certain = speaks_first(entry, pattern, file);
            cx.within(&format!("agents.{}", entry.name), |cx| {
                let what = format!("`{}` has no scripted reply for offline runs", entry.name);
                cx.silent(entry.at, what, "add a row in [[script]] for it", certain);
            });
        }
    }
}

/// Whether it is the root coordinator, or the entry of the root swarm.
fn speaks_first(entry: &Entry<AgentTable>, pattern: Pattern, file: &File) -> bool {
    let table = if pattern == Pattern::Swarm { &file.swarm } else { &file.team };
    let Some(root) = table.as_ref().and_then(|table| table.root.as_ref()) else { return false };
    if pattern != Pattern::Swarm {
        return root.text == entry.name;
    }
    let root = file.agents.entries.iter().find(|agent| agent.name == root.text);
    let start = root.and_then(|root| root.value.as_ref()?.entry.as_ref());
    start.is_some_and(|Start(start)| start.text == entry.name)
}
