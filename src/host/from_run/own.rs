//! A run of ours as a scenario: its own file as it was then, with the overrides in force, its script
//! replaced by what was said, and its tools that asked something outside replaced by what they gave.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toml_edit::{
    Array, ArrayOfTables, Datetime, DocumentMut, InlineTable, Item, Table, TableLike,
    Value as TomlItem, value,
};

use super::calls::{self, RecordedAttempt, RecordedCall};
use super::fixtures::{fault, fixture_rows};
use super::values;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::Day;
use crate::log::event::head::LaunchRecord;
use crate::log::event::id::SourceNo;
use crate::log::event::{
    Answer, Event, EventKind, FailureClass, Initiator, ModelLabel, Purpose, Reply, RunStarted,
    ScriptedCall, Usage, World,
};
use crate::log::world::Projection;
use crate::scenario::Override;
use crate::scenario::read::overrides::values_in_force;
use crate::scenario::read::tree::{TomlNode, TomlValue};
use crate::scenario::spec::SourceText;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::TRANSFER;
use crate::scenario::tools::mcp::model_name;

/// The kinds of tools that ask something outside of the file, by the keys of their tables.
const OUTSIDE: [&str; 4] = ["http", "command", "search", "read"];

/// The scenario, and what it could not say, one sentence each.
pub fn scenario_of(
    head: &RunStarted,
    record: &LaunchRecord,
    events: &[Arc<Event>],
    world: &World,
) -> Result<(String, Vec<String>), Refused> {
    let parsed: Result<DocumentMut, _> = record.source.text.parse();
    let document = parsed.or_refuse("the text of its scenario is not TOML")?;
    let is_scripted = head.model == ModelLabel::Scripted && record.answered_by.is_none();
    let calls = calls::calls(events, world);
    let mut file = OwnFile { document, head, events, calls, is_scripted, left: Vec::new() };
    file.apply_overrides(&record.source)?;
    file.inline_prompts(&record.source);
    file.fix_start();
    file.fix_session(world);
    if !is_scripted {
        file.fix_live_model();
    }
    file.replace_tools();
    file.replace_script();
    file.tell_changes(record);
    let mut text = file.document.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok((text, file.left))
}

struct OwnFile<'r> {
    document: DocumentMut,
    head: &'r RunStarted,
    events: &'r [Arc<Event>],
    calls: Vec<RecordedCall>,
    /// Whether the replies were those of the script, whose tokens are counted the same way again.
    is_scripted: bool,
    /// What the scenario does not say.
    left: Vec<String>,
}

impl OwnFile<'_> {
    fn apply_overrides(&mut self, source: &SourceText) -> Result<(), Refused> {
        let set: Result<Vec<Override>, _> = source.set.iter().map(|set| set.parse()).collect();
        let set = set.or_refuse("an override of the run is wrong")?;
        for (path, node) in values_in_force(&source.text, &set) {
            let Some((last, steps)) = path.split_last() else { continue };
            // The script is replaced anyway.
            if path.first().is_some_and(|first| first == "script" || first.starts_with("script[")) {
                continue;
            }
            let mut at = self.document.as_item_mut();
            for step in steps {
                at = table_at(at, step).or_refuse(format_args!("{step} is not in the file"))?;
            }
            let new = item_of(&node).or_refuse(format_args!("{last} has no value in TOML"))?;
            match slot_at(at, last) {
                Some(slot) => replace_value(slot, new),
                None => {
                    if let Some(table) = at.as_table_like_mut() {
                        table.insert(last, Item::Value(new));
                    }
                }
            }
        }
        Ok(())
    }

    /// Prompt files are beside the file of the run: their texts come into this one.
    fn inline_prompts(&mut self, source: &SourceText) {
        if !source.prompt_files.is_empty() {
            inline(self.document.as_item_mut(), source);
        }
    }

    /// The seed and the flags of the start.
    fn fix_start(&mut self) {
        let document = &mut self.document;
        let seed = i64::try_from(self.head.seed).unwrap_or_default();
        if document.get("seed").and_then(Item::as_integer).unwrap_or(42) != seed {
            document.insert("seed", value(seed));
        }
        for flag in &self.head.flags {
            let table =
                document.get_mut("flags").and_then(|flags| flags.get_mut(flag.name.as_str()));
            let Some(table) = table.and_then(Item::as_table_like_mut) else { continue };
            if table.get("default").and_then(Item::as_bool) != Some(flag.on) {
                set(table, "default", flag.on.into());
            }
        }
        // How old a page is depends on the day of the run.
        if let Some(research) = document.get_mut("research").and_then(Item::as_table_like_mut)
            && research.contains_key("max_age_days")
            && !research.contains_key("as_of")
        {
            research.insert("as_of", value(Day::from_unix_ms(self.head.wall_ms).to_string()));
        }
    }

    /// One run answers one message.
    fn fix_session(&mut self, world: &World) {
        for pattern in ["team", "swarm", "router"] {
            let table = self.document.get_mut(pattern).and_then(Item::as_table_like_mut);
            if let Some(table) = table
                && table.remove("follow_ups").is_some()
            {
                self.left.push("the follow-up messages of the session are left out".to_owned());
            }
        }
        let Some(session) = world.projection().and_then(Projection::session) else { return };
        if session.message > 1 {
            self.document.insert("goal", value(values::escaped(&session.text)));
            self.left.push(format!(
                "the run answered message {} of a session and began at {}: what was said before is not in \
                 this file, and the run begins at the first agent",
                session.message, session.first_agent
            ));
        }
    }

    /// What a live model has by default and a script has not.
    fn fix_live_model(&mut self) {
        if let Some(research) = self.document.get_mut("research").and_then(Item::as_table_like_mut)
        {
            for key in ["plan", "notes", "answer"] {
                if research.get(key).and_then(Item::as_str) == Some("model_when_live") {
                    set(research, key, "model".into());
                }
            }
        }
        if let Some(llm) = self.head.tools.first() {
            let tools = self.document.entry("tools").or_insert_with(implicit_table);
            let tools = tools.as_table_like_mut();
            let table = tools.map(|tools| tools.entry("llm").or_insert(Item::Table(Table::new())));
            if let Some(table) = table.and_then(Item::as_table_like_mut) {
                let backoff = llm.limits.backoff_ms.iter().map(|ms| to_i64(*ms));
                let mut retries = InlineTable::new();
                retries.insert("max_attempts", i64::from(llm.limits.max_attempts).into());
                retries.insert("backoff_ms", backoff.collect::<Array>().into());
                retries.insert("jitter", llm.limits.jitter.into());
                set(table, "retries", retries.into());
            }
        }
        match self.head.price_of(None) {
            Some(price) => {
                let mut prices = Table::new();
                prices.insert("prompt_usd_per_million", value(price.input));
                prices.insert("completion_usd_per_million", value(price.output));
                self.document.insert("prices", Item::Table(prices));
                if price.cached.is_some() || price.cache_write.is_some() {
                    self.left.push("prices of cached tokens are those of all others".to_owned());
                }
            }
            None => self.left.push("the cost is not known: the run had no single price".to_owned()),
        }
    }

    /// Tools that asked something outside become fixtures with what they gave.
    fn replace_tools(&mut self) {
        for tool in &self.head.tools {
            let kind = tool.kind.as_str();
            let name = tool.name.as_str();
            if kind == "model" || OUTSIDE.contains(&kind) {
                remove(&mut self.document, "tools", name, "faults");
            }
            if kind == "mcp" {
                self.left.push(format!("the MCP server of {name} is asked again"));
            }
            if !OUTSIDE.contains(&kind) {
                continue;
            }
            let rows = fixture_rows(&self.calls, name, &mut self.left);
            let removed = ["tools", "workers"]
                .into_iter()
                .find(|section| remove(&mut self.document, section, name, kind));
            let Some(section) = removed else {
                self.left.push(format!("{name} is asked again: its table was not found"));
                continue;
            };
            if kind == "read"
                && !has(&self.document, "tools", name, "breaker")
                && section == "tools"
            {
                // Pages of the web have no breaker by default, other tools have one.
                let mut off = InlineTable::new();
                off.insert("enabled", false.into());
                if let Some(table) = entry(&mut self.document, section, name) {
                    table.insert("breaker", value(off));
                }
            }
            put_fixture(&mut self.document, section, name, rows);
        }
    }

    fn replace_script(&mut self) {
        self.document.remove("script");
        let mut rows = self.model_rows();
        for answer in calls::answers(self.events) {
            let mut row = Table::new();
            row.insert("person", value(answer.who.as_str()));
            row.insert("when", value(format!("nth == {}", answer.nth)));
            if let Some(after) = values::latency(answer.after) {
                row.insert("latency", value(after));
            }
            if put_answer(&mut row, &answer.answer) {
                rows.push(row);
            } else {
                let what = answer.answer.phrase();
                self.left.push(format!("answer {} of {}: {what}", answer.nth, answer.who));
            }
        }
        if !rows.is_empty() {
            self.document.insert("script", Item::ArrayOfTables(rows));
        }
    }

    fn model_rows(&mut self) -> ArrayOfTables {
        let pages = pages(self.events);
        let agents: BTreeSet<String> = names_in(&self.document, "agents");
        let key = |call: &RecordedCall| format!("{:?}", call.purpose);
        let mut asked_again = BTreeSet::new();
        let mut continued: HashMap<(String, u32), u32> = HashMap::new();
        for call in &self.calls {
            if call.repeat > 0 {
                asked_again.insert(key(call));
            }
            *continued.entry((key(call), call.repeat)).or_default() += 1;
        }
        let mut nths: HashMap<(String, u32), u32> = HashMap::new();
        let mut rows = ArrayOfTables::new();
        for call in &self.calls {
            let Some(who) = call.purpose.script() else { continue };
            let of_key = (key(call), call.repeat);
            let nth = nths.entry(of_key.clone()).or_default();
            *nth += 1;
            let is_repeated = continued.get(&of_key).is_some_and(|calls| *calls > 1);
            for attempt in &call.attempts {
                let mut row = Table::new();
                match who {
                    ScriptedCall::Role { role, round } => {
                        row.insert("role", value(role.as_str()));
                        row.insert("round", value(i64::from(round)));
                    }
                    ScriptedCall::Agent { agent, turn, round } => {
                        row.insert("agent", value(agent.as_str()));
                        row.insert("turn", value(i64::from(turn)));
                        row.insert("round", value(i64::from(round)));
                    }
                    ScriptedCall::Step(step) => {
                        row.insert("step", value(step.word()));
                    }
                }
                if let Purpose::Notes { source } = call.purpose
                    && let Some(url) = pages.get(&source)
                {
                    row.insert("when", value(format!("url == {}", values::cel_text(url))));
                }
                if is_repeated {
                    row.insert("nth", value(i64::from(*nth)));
                }
                if asked_again.contains(&key(call)) {
                    row.insert("again", value(i64::from(call.repeat)));
                }
                if call.attempts.len() > 1 {
                    row.insert("attempt", value(i64::from(attempt.number)));
                }
                if say(&mut row, attempt, &agents, self.is_scripted, &mut self.left) {
                    rows.push(row);
                }
            }
        }
        rows
    }

    /// What somebody changed while the run was going.
    fn tell_changes(&mut self, record: &LaunchRecord) {
        for (at, flag, on) in &record.flags {
            let to = if *on { "on" } else { "off" };
            self.left.push(format!("run it with --flag {flag}={to}@{at}, as this run"));
        }
        let mut changes = BTreeMap::<&str, u32>::new();
        for event in self.events {
            let by = match &event.kind {
                EventKind::FlagChanged { by, .. }
                | EventKind::FaultInjected { by, .. }
                | EventKind::FaultRemoved { by, .. }
                | EventKind::LimitsChanged { by, .. }
                | EventKind::ConcurrencyChanged { by, .. } => *by,
                EventKind::BreakerChanged { by: Some(by), .. } => *by,
                _ => continue,
            };
            if matches!(by, Initiator::You | Initiator::Remote) {
                *changes.entry(event.kind.name()).or_default() += 1;
            }
        }
        for (what, times) in changes {
            let what = format!("somebody steered the run: {what}, {times} times");
            self.left.push(what);
        }
    }
}

/// What an attempt of a model gave. `false`: there was no row for it either.
fn say(
    row: &mut Table,
    attempt: &RecordedAttempt,
    agents: &BTreeSet<String>,
    is_scripted: bool,
    left: &mut Vec<String>,
) -> bool {
    if !attempt.hung()
        && let Some(took) = values::latency(attempt.took)
    {
        row.insert("latency", value(took));
    }
    match &attempt.ended {
        Some(Ok(reply)) => {
            put_calls(row, reply, agents, left);
            if !reply.text.is_empty() || !row.contains_key("calls") {
                row.insert("text", value(values::escaped(&reply.text)));
            }
            match reply.end {
                ReplyEnd::Stop => {}
                end => {
                    row.insert("end", value(end.word()));
                }
            }
            if !is_scripted || reply.usage.is_none() {
                row.insert("usage", value(usage_of(reply.usage.as_ref())));
            }
        }
        Some(Err(failed)) if failed.class == FailureClass::ScriptMissing => return false,
        ended => {
            let failed = ended.as_ref().and_then(|ended| ended.as_ref().err());
            let partial = failed.and_then(|failed| failed.partial.as_deref()).unwrap_or("");
            row.insert("text", value(values::escaped(partial)));
            row.insert("fault", value(fault(attempt, left)));
            if let Some(usage) = failed.and_then(|failed| failed.usage) {
                row.insert("usage", value(usage_of(Some(&usage))));
            }
        }
    }
    true
}

/// The addresses of the pages that were read, by the numbers of their sources.
fn pages(events: &[Arc<Event>]) -> HashMap<SourceNo, String> {
    let read = events.iter().filter(|event| event.kind.name() == "page.read").filter_map(|event| {
        let fields: Value = serde_json::from_str(&event.to_line().ok()?).ok()?;
        let source = serde_json::from_value(fields.get("source")?.clone()).ok()?;
        Some((source, fields.get("url")?.as_str()?.to_owned()))
    });
    read.collect()
}

fn put_calls(row: &mut Table, reply: &Reply, agents: &BTreeSet<String>, left: &mut Vec<String>) {
    let mut calls = Array::new();
    for call in &*reply.tool_calls {
        if call.name.trim().is_empty() || model_name(&call.name) != *call.name {
            let name = values::comment(&call.name);
            left.push(format!("a model called a tool by a name that no file can have: {name:?}"));
            continue;
        }
        let mut table = InlineTable::new();
        table.insert("tool", (&*call.name).into());
        let fits = |args: &Value| {
            let allowed: &[&str] = match &*call.name {
                TRANSFER => &["agent_name", "message"],
                name if agents.contains(name) => &["request"],
                _ => return true,
            };
            let mut keys = args.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            keys.all(|key| allowed.contains(&key))
        };
        match values::as_table(&call.arguments).filter(|(args, _)| fits(args)) {
            Some((_, args)) if &*call.arguments != "{}" => {
                table.insert("args", args);
            }
            Some(_) => {}
            None => {
                table.insert("raw", values::escaped(&call.arguments).into());
            }
        }
        calls.push(table);
    }
    if !calls.is_empty() {
        if calls.len() > 1 {
            calls.iter_mut().for_each(|call| call.decor_mut().set_prefix("\n  "));
            calls.set_trailing("\n");
            calls.set_trailing_comma(true);
        }
        row.insert("calls", value(calls));
    }
}

fn usage_of(usage: Option<&Usage>) -> InlineTable {
    let mut table = InlineTable::new();
    let Some(usage) = usage else { return table };
    for (key, tokens) in [
        ("prompt_tokens", usage.prompt_tokens),
        ("completion_tokens", usage.completion_tokens),
        ("cached_tokens", usage.cached_tokens),
        ("cache_write_tokens", usage.cache_write_tokens),
        ("reasoning_tokens", usage.reasoning_tokens),
    ] {
        if tokens > 0 || key == "prompt_tokens" {
            table.insert(key, to_i64(tokens.min(u32::MAX.into())).into());
        }
    }
    table
}

/// Writes the answer of a person. `false`: no row can say it.
fn put_answer(row: &mut Table, answer: &Answer) -> bool {
    let mut reason = |text: &str| {
        if !text.is_empty() {
            row.insert("text", value(values::escaped(text)));
        }
    };
    let (key, said): (_, TomlItem) = match answer {
        Answer::Approve { args: None } => ("approve", true.into()),
        Answer::Approve { args: Some(args) } => match values::templated(args) {
            Some(args) => ("approve", args),
            None => return false,
        },
        Answer::Deny { text } => {
            reason(text);
            ("approve", false.into())
        }
        Answer::Choose { choice, text } => {
            reason(text);
            ("choice", (&**choice).into())
        }
        Answer::Text { text } => ("text", values::escaped(text).into()),
        Answer::HandOver { to, text } => {
            reason(text);
            ("hand_over_to", to.as_str().into())
        }
        Answer::Contribute { contribution } => match values::templated(contribution) {
            Some(contribution) => ("reply", contribution),
            None => return false,
        },
        Answer::Result { .. } | Answer::Stop => return false,
    };
    row.insert(key, value(said));
    true
}

/// The names of the tables in a section of a file.
fn names_in(document: &DocumentMut, section: &str) -> BTreeSet<String> {
    let table = document.get(section).and_then(Item::as_table_like);
    table.map(|table| table.iter().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default()
}

fn entry<'d>(
    document: &'d mut DocumentMut,
    section: &str,
    name: &str,
) -> Option<&'d mut dyn TableLike> {
    document.get_mut(section)?.get_mut(name)?.as_table_like_mut()
}

fn has(document: &DocumentMut, section: &str, name: &str, key: &str) -> bool {
    let table = document.get(section).and_then(|section| section.get(name));
    table.and_then(Item::as_table_like).is_some_and(|table| table.contains_key(key))
}

fn remove(document: &mut DocumentMut, section: &str, name: &str, key: &str) -> bool {
    entry(document, section, name).is_some_and(|table| table.remove(key).is_some())
}

fn put_fixture(document: &mut DocumentMut, section: &str, name: &str, rows: Vec<Table>) {
    let Some(item) = document.get_mut(section).and_then(|section| section.get_mut(name)) else {
        return;
    };
    match item {
        Item::Table(table) if !table.is_dotted() => {
            let mut fixture = Table::new();
            fixture.set_implicit(true);
            fixture.insert("rows", Item::ArrayOfTables(rows.into_iter().collect()));
            table.insert("fixture", Item::Table(fixture));
        }
        item => {
            let mut fixture = InlineTable::new();
            let rows: Array = rows.into_iter().map(Table::into_inline_table).collect();
            fixture.insert("rows", rows.into());
            if let Some(table) = item.as_table_like_mut() {
                table.insert("fixture", value(fixture));
            }
        }
    }
}

/// Sets a key and keeps the comments around its value.
fn set(table: &mut dyn TableLike, key: &str, new: TomlItem) {
    match table.get_mut(key) {
        Some(slot) => replace_value(slot, new),
        None => {
            table.insert(key, Item::Value(new));
        }
    }
}

fn replace_value(slot: &mut Item, mut new: TomlItem) {
    if let Item::Value(old) = slot {
        *new.decor_mut() = old.decor().clone();
    }
    *slot = Item::Value(new);
}

fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// The value under a name of a path: `rows[2]` is an item of a list.
fn slot_at<'i>(item: &'i mut Item, step: &str) -> Option<&'i mut Item> {
    match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
        Some((key, index)) => item.get_mut(key)?.get_mut(index.parse::<usize>().ok()?),
        None => item.get_mut(step),
    }
}

/// The table under a name of a path; a new one where there is none.
fn table_at<'i>(item: &'i mut Item, step: &str) -> Option<&'i mut Item> {
    if slot_at(item, step).is_none() && !step.ends_with(']') {
        let is_inline = item.is_inline_table();
        let new = match is_inline {
            true => value(InlineTable::new()),
            false => Item::Table(Table::new()),
        };
        item.as_table_like_mut()?.insert(step, new);
    }
    slot_at(item, step)
}

fn item_of(node: &TomlNode) -> Option<TomlItem> {
    Some(match &node.value {
        TomlValue::Text(text) => text.into(),
        TomlValue::Integer(number) => (*number)?.into(),
        TomlValue::Number(number) => (*number).into(),
        TomlValue::Boolean(truth) => (*truth).into(),
        TomlValue::Date(date) => date.parse::<Datetime>().ok()?.into(),
        TomlValue::List(items) => items
            .iter()
            .map(item_of)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .collect::<Array>()
            .into(),
        TomlValue::Table(table) => {
            let mut inline = InlineTable::new();
            for (key, node) in &table.entries {
                inline.insert(&key.text, item_of(node)?);
            }
            inline.into()
        }
    })
}

/// Puts the texts of prompt files into the tables that name them.
fn inline(item: &mut Item, source: &SourceText) {
    if let Some(tables) = item.as_array_of_tables_mut() {
        for table in tables.iter_mut() {
            let mut inner = Item::Table(std::mem::take(table));
            inline(&mut inner, source);
            if let Item::Table(inner) = inner {
                *table = inner;
            }
        }
        return;
    }
    let Some(table) = item.as_table_like_mut() else { return };
    let names: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for name in names {
        let Some(inner) = table.get_mut(&name) else { continue };
        let text = inner.as_str().and_then(|path| source.prompt_files.get(path)).cloned();
        match (name.strip_suffix("_file"), text) {
            (Some(key), Some(text)) => {
                // A text beside it was replaced by the file, or replaces it.
                if table.contains_key(key) && !last_set_is_file(source, &name, key) {
                    table.remove(&name);
                    continue;
                }
                table.remove(&name);
                table.insert(key, value(&*text));
            }
            _ => inline(inner, source),
        }
    }
}

/// Whether the last override of the two keys of a prompt names its file.
fn last_set_is_file(source: &SourceText, file: &str, text: &str) -> bool {
    let last = source.set.iter().rev().find_map(|set| {
        let set: Override = set.parse().ok()?;
        let name = (*set.path().last()?).to_owned();
        (name == file || name == text).then_some(name)
    });
    last.is_none_or(|last| last == file)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
