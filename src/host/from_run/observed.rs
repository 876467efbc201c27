//! A run of another program as a scenario: its agents as a team, if one of them put the others to work, else
//! as a swarm in which each hands over to the next; what their models said as the script, their tools as
//! fixtures, and what was seen as expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use super::course::{self, Done, Step, Turn};
use super::fixtures::put_result;
use super::values;
use crate::base::json_text::to_canonical_json;
use crate::base::refused::Refused;
use crate::log::event::{RunStarted, StopReason, World};
use crate::log::facts::observed::SpanEnd;
use crate::scenario::people::ASK;
use crate::scenario::spec::tool::TRANSFER;

/// What stands where a text is not known.
const UNKNOWN: &str = "(What was said here is not known.)";

/// Names that no agent and no tool may have.
const RESERVED: [&str; 3] = ["llm", "operator", TRANSFER];

/// Longest name.
const NAME_CHARS: usize = 60;

/// Most agents in one expectation about their order.
const MAX_ORDER: usize = 20;

/// The scenario, and what is not known, one sentence each.
pub fn scenario_of(head: &RunStarted, world: &World) -> Result<(String, Vec<String>), Refused> {
    let Some(observed) = world.observed() else {
        return Err(Refused::new(format!("{} is no observed run", head.run)));
    };
    let (turns, left) = course::turns(observed, world);
    let closed = world.progress.closed.as_ref();
    let mut file = ObservedFile {
        world,
        head,
        succeeded: closed.is_none_or(|closed| closed.reason.is_success()),
        ends_with_failure: false,
        names: Names::default(),
        turns,
        left,
        fixtures: BTreeMap::new(),
        calls: BTreeMap::new(),
    };
    file.left.push(
        "the instructions of the agents, and the arguments that their tools take, are not copied"
            .into(),
    );
    let text = match file.is_team() {
        true => file.team(),
        false => file.swarm(),
    };
    if !file.succeeded && !file.ends_with_failure {
        file.left.push(format!(
            "the run ended without success ({}), this scenario ends with success",
            file.why_failed()
        ));
    }
    Ok((text, file.left))
}

struct ObservedFile<'r> {
    world: &'r World,
    head: &'r RunStarted,
    succeeded: bool,
    /// Whether its last call of a model failed.
    ends_with_failure: bool,
    names: Names,
    turns: Vec<Turn>,
    left: Vec<String>,
    /// The results of each tool, with the arguments, in the order of its calls.
    fixtures: BTreeMap<String, Vec<(Value, Done)>>,
    /// How often each tool and consulted agent was called.
    calls: BTreeMap<String, u64>,
}

/// A reply of a model with the calls it makes.
#[derive(Default)]
struct Round {
    /// Attempts that failed before it.
    failed: Vec<Done>,
    said: Option<Done>,
    text: Option<String>,
    calls: Vec<(String, Value)>,
}

impl ObservedFile<'_> {
    /// Whether one agent consults the others: each by one agent, and none of them itself.
    fn is_team(&self) -> bool {
        let tops = self.turns.iter().filter(|turn| turn.inside.is_none()).count();
        let mut by: BTreeMap<&str, &str> = BTreeMap::new();
        for turn in &self.turns {
            let Some(outer) = turn.inside.and_then(|at| self.turns.get(at)) else { continue };
            if *by.entry(&turn.name).or_insert(&outer.name) != &*outer.name {
                return false;
            }
        }
        let rises = |name: &str| {
            let chain = std::iter::successors(by.get(name).copied(), |at| by.get(at).copied());
            chain.take(self.turns.len() + 1).all(|at| at != name)
        };
        tops == 1 && !by.is_empty() && by.keys().all(|name| rises(name))
    }

    fn team(&mut self) -> String {
        let turns = std::mem::take(&mut self.turns);
        let mut names = Vec::new();
        for turn in &turns {
            names.push(self.names.agent(&turn.name, &mut self.left));
        }
        let mut script = ArrayOfTables::new();
        let mut of_agent = BTreeMap::<&str, u32>::new();
        let mut members: Vec<(String, Vec<String>)> = Vec::new();
        let mut tools: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (turn, name) in turns.iter().zip(&names) {
            let nth = of_agent.entry(name).or_default();
            *nth += 1;
            if !members.iter().any(|(known, _)| known == name) {
                members.push((name.clone(), Vec::new()));
            }
            let is_last = turn.inside.is_none();
            let mut rounds = self.rounds(turn, &names, tools.entry(name.clone()).or_default());
            self.finish(&mut rounds, turn, is_last, None);
            self.write_rounds(&mut script, name, *nth, rounds, is_last);
            for step in &turn.steps {
                if let Step::Consult(inner, _) = step
                    && let Some(inner) = names.get(*inner)
                    && let Some((_, of)) = members.iter_mut().find(|(known, _)| known == name)
                    && !of.contains(inner)
                {
                    of.push(inner.clone());
                }
            }
        }
        let mut document = self.beginning("team", &turns);
        let mut team = Table::new();
        team.insert("root", value(names.first().map_or("program", String::as_str)));
        document.insert("team", Item::Table(team));
        let mut agents = implicit();
        for (name, of) in &members {
            let mut table = agent_table(tools.get(name));
            if !of.is_empty() {
                table.insert("members", value(of.iter().map(String::as_str).collect::<Array>()));
            }
            agents.insert(name, Item::Table(table));
        }
        document.insert("agents", Item::Table(agents));
        let consulted: Vec<&String> = names.iter().skip(1).collect();
        let order: Vec<String> = consulted.into_iter().cloned().collect();
        self.end(document, script, &order, true)
    }

    fn swarm(&mut self) -> String {
        let turns = merged(std::mem::take(&mut self.turns), &mut self.left);
        let mut names = Vec::new();
        for turn in &turns {
            names.push(self.names.agent(&turn.name, &mut self.left));
        }
        let mut script = ArrayOfTables::new();
        let mut of_agent = BTreeMap::<&str, u32>::new();
        let mut tools: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (place, (turn, name)) in turns.iter().zip(&names).enumerate() {
            let nth = of_agent.entry(name).or_default();
            *nth += 1;
            let next = names.get(place + 1);
            let mut rounds = self.rounds(turn, &[], tools.entry(name.clone()).or_default());
            self.finish(&mut rounds, turn, next.is_none(), next);
            self.write_rounds(&mut script, name, *nth, rounds, next.is_none());
        }
        let root = self.names.agent("program", &mut self.left);
        let mut document = self.beginning("swarm", &turns);
        let mut swarm = Table::new();
        swarm.insert("root", value(root.as_str()));
        document.insert("swarm", Item::Table(swarm));
        let mut members: Vec<&str> = Vec::new();
        for name in &names {
            if !members.contains(&name.as_str()) {
                members.push(name);
            }
        }
        let mut whole = Table::new();
        whole.insert("description", value("The program that was watched"));
        whole.insert("members", value(members.iter().copied().collect::<Array>()));
        whole.insert("entry", value(names.first().map_or("program", String::as_str)));
        whole.insert("max_handoffs", value(0));
        whole.insert("repetitive_handoff_window", value(0));
        let mut agents = implicit();
        agents.insert(&root, Item::Table(whole));
        for name in members {
            agents.insert(name, Item::Table(agent_table(tools.get(name))));
        }
        document.insert("agents", Item::Table(agents));
        self.end(document, script, &names, false)
    }

    /// The replies of a turn with their calls, in its order.
    fn rounds(
        &mut self,
        turn: &Turn,
        names: &[String],
        tools: &mut BTreeSet<String>,
    ) -> Vec<Round> {
        let mut rounds: Vec<Round> = Vec::new();
        let mut failed = Vec::new();
        let mut called = Vec::new();
        for step in &turn.steps {
            let (name, args, wire) = match step {
                Step::Model(done) if done.failed() => {
                    failed.push(done.clone());
                    continue;
                }
                Step::Model(done) => {
                    let failed = std::mem::take(&mut failed);
                    let text = done.about.output.as_deref().map(str::to_owned);
                    let said = Some(done.clone());
                    rounds.push(Round { failed, said, text, calls: Vec::new() });
                    continue;
                }
                // The last round hands over.
                Step::Handoff(about) => {
                    called.push(Arc::clone(&about.name));
                    continue;
                }
                Step::Tool(done) => {
                    let name = self.names.tool(&done.about.name, &mut self.left);
                    let args = self.arguments(done);
                    self.fixtures
                        .entry(name.clone())
                        .or_default()
                        .push((args.clone(), done.clone()));
                    tools.insert(name.clone());
                    (name, args, Arc::clone(&done.about.name))
                }
                Step::Consult(inner, by) => {
                    // In a swarm the agents follow one another.
                    let Some(name) = names.get(*inner) else { continue };
                    let given = by.as_ref().and_then(|by| by.about.input.as_deref());
                    let request = request_of(given).unwrap_or_else(|| UNKNOWN.to_owned());
                    let wire =
                        by.as_ref().map_or_else(|| "".into(), |by| Arc::clone(&by.about.name));
                    if let Some(by) = by {
                        let tool = &by.about.name;
                        self.left.push(format!("the tool {tool} is the consultation of {name}"));
                    }
                    (name.clone(), json!({ "request": request }), wire)
                }
            };
            *self.calls.entry(name.clone()).or_default() += 1;
            called.push(wire);
            if rounds.is_empty() {
                let who = &turn.name;
                self.left.push(format!("{who} made a call before a reply of its model was seen"));
                rounds.push(Round::default());
            }
            if let Some(round) = rounds.last_mut() {
                round.calls.push((name, args));
            }
        }
        if !failed.is_empty() {
            rounds.push(Round { failed, ..Round::default() });
        }
        for round in &mut rounds {
            round.text = round.text.take().map(|text| without_calls(&text, &called));
            round.text = round.text.take().filter(|text| !text.trim().is_empty());
        }
        rounds
    }

    /// The arguments of a call as an object.
    fn arguments(&mut self, done: &Done) -> Value {
        let name = &done.about.name;
        let Some(input) = done.about.input.as_deref() else {
            self.left.push(format!("the arguments of {name} are not known"));
            return json!({});
        };
        match serde_json::from_str::<Value>(input) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            _ => {
                self.left.push(format!("the arguments of {name} have no names: they are `input`"));
                json!({ "input": input })
            }
        }
    }

    /// Ends a turn: with a handoff, or with its last reply.
    fn finish(
        &mut self,
        rounds: &mut Vec<Round>,
        turn: &Turn,
        is_last: bool,
        next: Option<&String>,
    ) {
        let who = &turn.name;
        let asked_no_model = !turn.steps.iter().any(|step| matches!(step, Step::Model(_)));
        if rounds.last().is_none_or(|round| !round.calls.is_empty()) {
            rounds.push(Round::default());
        }
        let Some(last) = rounds.last_mut() else { return };
        if let Some(next) = next {
            let handed = turn.steps.iter().rev().find_map(|step| match step {
                Step::Handoff(about) => about.input.as_deref(),
                _ => None,
            });
            let mut args = Map::new();
            args.insert("agent_name".to_owned(), next.as_str().into());
            let output = turn.about.output.as_deref().filter(|_| asked_no_model);
            if let Some(message) = handed.or(output).filter(|it| !it.trim().is_empty()) {
                args.insert("message".to_owned(), message.into());
            }
            last.calls.push((TRANSFER.to_owned(), Value::Object(args)));
            return;
        }
        // The answer of the run, else what the turn gave, else what its model said.
        let answer = self.world.progress.answer.as_deref().filter(|_| is_last);
        let known = answer.or(turn.about.output.as_deref()).filter(|it| !it.trim().is_empty());
        match (known, &last.text) {
            (Some(known), Some(said)) if known.trim() != said.trim() => {
                self.left
                    .push(format!("{who} ends with its result, its model said it in other words"));
                last.text = Some(known.to_owned());
            }
            (Some(known), None) => last.text = Some(known.to_owned()),
            (None, None) => {
                self.left.push(format!("the last reply of {who} is not known"));
                last.text = Some(UNKNOWN.to_owned());
            }
            _ => {}
        }
    }

    fn write_rounds(
        &mut self,
        script: &mut ArrayOfTables,
        agent: &str,
        turn: u32,
        rounds: Vec<Round>,
        is_last: bool,
    ) {
        let count = rounds.len();
        for (place, round) in rounds.into_iter().enumerate() {
            let begin = || {
                let mut row = Table::new();
                row.insert("agent", value(agent));
                row.insert("turn", value(i64::from(turn)));
                row.insert("round", value(place as i64 + 1));
                row
            };
            let is_end = is_last && !self.succeeded && place + 1 == count;
            let fails = is_end && round.said.is_none() && !round.failed.is_empty();
            let attempts = round.failed.len() + usize::from(!fails);
            if !round.failed.is_empty() {
                let left =
                    "the log does not say how model calls failed: here each is a bad response";
                self.left.push(left.to_owned());
            }
            for (nth, failed) in round.failed.iter().enumerate() {
                let mut row = begin();
                if attempts > 1 {
                    row.insert("attempt", value(nth as i64 + 1));
                }
                put_latency(&mut row, failed);
                row.insert("text", value(""));
                row.insert("fault", value(fault("bad_response", &failed.error(), nth as i64 + 1)));
                script.push(row);
            }
            if fails {
                self.ends_with_failure = true;
                continue;
            }
            let mut row = begin();
            if attempts > 1 {
                row.insert("attempt", value(attempts as i64));
            }
            if let Some(said) = &round.said {
                put_latency(&mut row, said);
                row.insert("usage", value(usage(said)));
            } else {
                row.insert("usage", value(InlineTable::new()));
            }
            if let Some(text) = &round.text {
                row.insert("text", value(values::escaped(text)));
            }
            if !round.calls.is_empty() {
                row.insert("calls", value(self.written_calls(&round.calls)));
            } else if round.text.is_none() {
                row.insert("text", value(UNKNOWN));
            }
            script.push(row);
        }
    }

    fn written_calls(&mut self, calls: &[(String, Value)]) -> Array {
        let mut written = Array::new();
        for (name, args) in calls {
            let mut call = InlineTable::new();
            call.insert("tool", name.as_str().into());
            match values::templated(args) {
                Some(table) => call.insert("args", table),
                None => call.insert("raw", values::escaped(&args.to_string()).into()),
            };
            written.push(call);
        }
        written
    }

    /// Why the run failed, or stopped.
    fn why_failed(&self) -> String {
        let closed = self.world.progress.closed.as_ref();
        let reason = closed.map(|closed| &closed.reason);
        let failed = self.world.observed().filter(|_| reason == Some(&StopReason::SpanFailed));
        let failed = failed.and_then(|observed| {
            let mut failed = observed.spans.iter().filter(|it| it.end == Some(SpanEnd::Failed));
            let error = failed.next_back()?.about.error.clone()?;
            error.lines().next().map(str::to_owned)
        });
        failed.or_else(|| Some(reason?.phrase().into_owned())).unwrap_or_default()
    }

    fn beginning(&mut self, pattern: &str, turns: &[Turn]) -> DocumentMut {
        let mut document = DocumentMut::new();
        let title = values::comment(&self.head.title);
        document.insert("title", value(if title.is_empty() { "A run".into() } else { title }));
        document.insert("pattern", value(pattern));
        document.insert("about", value("What another program did, as its spans tell it."));
        let given = turns.iter().flat_map(|turn| {
            let model = turn.steps.iter().find_map(|step| match step {
                Step::Model(done) => done.about.input.as_deref(),
                _ => None,
            });
            turn.about.input.as_deref().into_iter().chain(model)
        });
        let goal = given.map(str::trim).find(|text| !text.is_empty());
        if goal.is_none() {
            self.left
                .push("what the program was asked is not known: the goal is its command".into());
        }
        let goal = goal.unwrap_or(&self.head.goal).to_owned();
        document.insert("goal", value(values::escaped(&goal)));
        let mut budget = Table::new();
        budget.insert("max_seconds", value(86_400));
        document.insert("budget", Item::Table(budget));
        document
    }

    /// Tools, script and expectations.
    fn end(
        &mut self,
        mut document: DocumentMut,
        script: ArrayOfTables,
        order: &[String],
        is_team: bool,
    ) -> String {
        let mut tools = implicit();
        let most = script.iter().filter_map(|row| row.get("attempt")?.as_integer()).max();
        let mut retries = InlineTable::new();
        retries.insert("max_attempts", most.unwrap_or(1).min(20).into());
        retries.insert("backoff_ms", Array::from_iter([0]).into());
        retries.insert("jitter", false.into());
        let mut llm = Table::new();
        llm.insert("timeout_s", value(3_600));
        llm.insert("retries", value(retries));
        tools.insert("llm", Item::Table(llm));
        for (name, calls) in std::mem::take(&mut self.fixtures) {
            tools.insert(&name, Item::Table(tool_table(&name, &calls, &mut self.left)));
        }
        if is_team {
            for name in order {
                let mut member = Table::new();
                member.insert("timeout_s", value(86_400));
                tools.insert(name, Item::Table(member));
            }
        }
        document.insert("tools", Item::Table(tools));
        document.insert("script", Item::ArrayOfTables(script));
        let mut rows = ArrayOfTables::new();
        let mut expect = |that: String| {
            let mut row = Table::new();
            row.insert("that", value(that));
            rows.push(row);
        };
        match (self.succeeded, self.ends_with_failure) {
            (true, _) => expect("status == 'ok'".to_owned()),
            (false, true) => expect("status == 'stopped'".to_owned()),
            (false, false) => {}
        }
        for (name, calls) in &self.calls {
            expect(format!("{} == {calls}", calls_of(name)));
        }
        let mut first: Vec<&str> = Vec::new();
        for name in order {
            if !first.contains(&name.as_str()) {
                first.push(name);
            }
        }
        first.truncate(MAX_ORDER);
        if first.len() > 1 {
            let names: Vec<String> = first.into_iter().map(quoted).collect();
            expect(format!("order({})", names.join(", ")));
        }
        document.insert("expect", Item::ArrayOfTables(rows));
        document.to_string()
    }
}

/// How an expectation names the number of calls of a tool or a consulted agent.
fn calls_of(name: &str) -> String {
    format!("calls({})", quoted(name))
}

fn quoted(name: &str) -> String {
    format!("'{name}'")
}

fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn agent_table(tools: Option<&BTreeSet<String>>) -> Table {
    let mut table = Table::new();
    table.insert("description", value("An agent of the program that was watched"));
    table.insert("instruction", value("The instruction of this agent is not known."));
    table.insert("max_tool_rounds", value(10_000));
    if let Some(tools) = tools.filter(|tools| !tools.is_empty()) {
        table.insert("tools", value(tools.iter().map(String::as_str).collect::<Array>()));
    }
    table
}

/// A tool as a fixture. Equal calls with different results are told apart by their numbers.
fn tool_table(name: &str, calls: &[(Value, Done)], left: &mut Vec<String>) -> Table {
    let mut retries = InlineTable::new();
    retries.insert("max_attempts", 1.into());
    let mut off = InlineTable::new();
    off.insert("enabled", false.into());
    let mut table = Table::new();
    table.insert("description", value("A tool of the program that was watched"));
    table.insert("timeout_s", value(3_600));
    table.insert("retries", value(retries));
    table.insert("breaker", value(off));
    let mut groups: Vec<(String, Vec<&(Value, Done)>)> = Vec::new();
    for call in calls {
        let key = to_canonical_json(&call.0);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(call),
            None => groups.push((key, vec![call])),
        }
    }
    // A row also fits calls with more arguments than it names.
    groups.sort_by_key(|(_, group)| {
        let args = group.first().and_then(|(args, _)| args.as_object());
        std::cmp::Reverse(args.map_or(0, Map::len))
    });
    let mut rows = ArrayOfTables::new();
    for (_, group) in groups {
        for (nth, (args, done)) in group.iter().enumerate() {
            let mut row = Table::new();
            let args = args.as_object().into_iter().flatten();
            let args = args.filter_map(|(key, given)| Some((key, values::templated(given)?)));
            let args = args.collect::<InlineTable>();
            if !args.is_empty() {
                row.insert("args", value(args));
            }
            if group.len() > 1 {
                row.insert("nth", value(nth as i64 + 1));
            }
            put_latency(&mut row, done);
            match done.failed() {
                true => {
                    row.insert("fault", value(fault("tool", &done.error(), 1)));
                    row.insert("raw", value("null"));
                }
                false => put_result(&mut row, &result_of(name, done, left)),
            }
            rows.push(row);
        }
    }
    let mut fixture = implicit();
    fixture.insert("rows", Item::ArrayOfTables(rows));
    table.insert("fixture", Item::Table(fixture));
    table
}

/// A result as an object, which results of tools are here.
fn result_of(name: &str, done: &Done, left: &mut Vec<String>) -> Value {
    let Some(text) = done.about.output.as_deref() else { return Value::Null };
    let result = match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => return object,
        Ok(list @ Value::Array(_)) => list,
        _ => text.into(),
    };
    left.push(format!(
        "the results of {name} are not objects: here each is the field `result` of an object"
    ));
    json!({ "result": result })
}

fn put_latency(row: &mut Table, done: &Done) {
    if let Some(took) = values::latency(done.took) {
        row.insert("latency", value(took));
    }
}

fn fault(kind: &str, text: &str, times: i64) -> InlineTable {
    let mut table = InlineTable::new();
    table.insert("kind", kind.into());
    table.insert("text", text.into());
    if times > 1 {
        table.insert("times", times.into());
    }
    table
}

/// The tokens of a reply; an empty table: they are not known.
fn usage(said: &Done) -> InlineTable {
    let mut table = InlineTable::new();
    let Some(prompt) = said.about.tokens_in else { return table };
    let all = [
        ("prompt_tokens", Some(prompt)),
        ("completion_tokens", said.about.tokens_out),
        ("cached_tokens", said.about.tokens_cached),
    ];
    for (key, tokens) in all {
        if let Some(tokens) = tokens {
            table.insert(key, i64::from(u32::try_from(tokens).unwrap_or(u32::MAX)).into());
        }
    }
    table
}

/// What an agent is asked, from the arguments of the call that asks it.
fn request_of(given: Option<&str>) -> Option<String> {
    let given = given.map(str::trim).filter(|given| !given.is_empty())?;
    let fields: Option<Map<String, Value>> = serde_json::from_str(given).ok();
    let only = fields.filter(|fields| fields.len() == 1);
    let only = only.and_then(|fields| fields.values().next()?.as_str().map(str::to_owned));
    Some(only.unwrap_or_else(|| given.to_owned()))
}

/// A text of a model without the lines that only name its calls: `find_invoice({"number": "2041"})`.
fn without_calls(text: &str, called: &[Arc<str>]) -> String {
    let is_call = |line: &&str| {
        let Some((name, rest)) = line.trim().split_once('(') else { return false };
        let known = called.iter().any(|it| **it == *name) || name.starts_with("transfer_to_");
        known && rest.ends_with(')')
    };
    let kept: Vec<&str> = text.lines().filter(|line| !is_call(line)).collect();
    match kept.len() == text.lines().count() {
        true => text.to_owned(),
        false => kept.join("\n"),
    }
}

/// Turns one after another: those inside of others follow them, and neighbours of one agent are one.
fn merged(turns: Vec<Turn>, left: &mut Vec<String>) -> Vec<Turn> {
    let name =
        |turns: &[Turn], at: Option<usize>| at.and_then(|at| Some(turns.get(at)?.name.clone()));
    let outer: Vec<_> = turns.iter().map(|turn| name(&turns, turn.inside)).collect();
    let mut all: Vec<Turn> = Vec::new();
    for (turn, outer) in turns.into_iter().zip(outer) {
        if let Some(outer) = outer {
            left.push(format!("{} was inside of {outer}, here it follows", turn.name));
        } else if let Some(before) = all.iter().rev().find(|before| before.inside.is_none())
            && before.until.is_some_and(|until| until > turn.from)
        {
            let before = &before.name;
            left.push(format!("{} began before {before} had ended, here it follows", turn.name));
        }
        match all.last_mut() {
            Some(before) if before.name == turn.name => {
                left.push(format!("turns of {} in a row are one", turn.name));
                before.steps.extend(turn.steps);
                before.about = turn.about;
                before.end = turn.end;
            }
            _ => all.push(turn),
        }
    }
    all
}

/// Names of the file for those of the program.
#[derive(Default)]
struct Names {
    agents: BTreeMap<String, String>,
    tools: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Names {
    fn agent(&mut self, name: &str, left: &mut Vec<String>) -> String {
        Self::name(&mut self.agents, &mut self.taken, name, left)
    }

    fn tool(&mut self, name: &str, left: &mut Vec<String>) -> String {
        Self::name(&mut self.tools, &mut self.taken, name, left)
    }

    fn name(
        known: &mut BTreeMap<String, String>,
        taken: &mut BTreeSet<String>,
        name: &str,
        left: &mut Vec<String>,
    ) -> String {
        if let Some(known) = known.get(name) {
            return known.clone();
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let plain = name.chars().take(NAME_CHARS).map(|c| if fits(c) { c } else { '_' });
        let mut plain: String = plain.collect();
        if plain.is_empty() {
            plain.push_str("unnamed");
        }
        if RESERVED.contains(&plain.as_str()) || plain.starts_with(ASK) {
            plain = format!("x_{plain}");
        }
        let numbered = (2..).map(|nth| format!("{plain}_{nth}"));
        let mut all = std::iter::once(plain.clone()).chain(numbered);
        let free = all.find(|it| !taken.contains(it)).unwrap_or_default();
        if free != name {
            left.push(format!("{} has the name {free} here", values::comment(name)));
        }
        taken.insert(free.clone());
        known.insert(name.to_owned(), free.clone());
        free
    }
}
