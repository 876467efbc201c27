//! The preview of the selected row: items with a label each, not yet wrapped.

use super::entry::{Broken, Entry, LiveOffer};
use super::format;
use super::home::HomePane;
use super::run::results::{bare, state_word, told};
use super::run::told_tool::stage;
use super::run::{RunLog, RunPage};
use super::state::State;
use crate::event::EventKind;
use crate::event::contribution::{Contribution, Stance};
use crate::event::kind::ModelLabel;
use crate::event::world::collaboration::SeatState;
use crate::event::world::orchestrator::TaskState;
use crate::event::world::{Stage, World};
use crate::scenario::agent::TeamSpec;
use crate::scenario::model::{CollaborationSpec, Concurrency, InputKind, PatternSpec, WhenOff};
use crate::scenario::orchestrator::OrchestratorSpec;
use crate::scenario::research::ResearchSpec;
use crate::scenario::storm::ResilienceSpec;
use crate::scenario::{Place, Scenario, Severity};

/// The most events from the end of a log that are searched, so that a long log costs no more than a
/// short one.
const LOOKED_AT: usize = 256;

/// One item of the preview.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its label; empty where it continues the item before it.
    pub label: String,
    /// Its text.
    pub text: String,
    /// How it is shown.
    pub tone: Tone,
}

/// How an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A heading.
    Head,
    /// Normal text.
    Plain,
    /// Secondary text.
    Dim,
    /// An error.
    Bad,
    /// A warning.
    Odd,
    /// A seat and its progress.
    Seat(SeatState),
    /// A seat and its stance.
    Stands(Stance),
}

fn item(label: &str, text: impl Into<String>, tone: Tone) -> Item {
    Item { label: label.to_owned(), text: text.into(), tone }
}

/// The items of the preview on the first screen.
pub fn items(state: &State) -> Vec<Item> {
    match state.home.about {
        HomePane::Runs => match state.home.selected_run(&state.runs) {
            Some(page) => of_run(page),
            None => {
                vec![item(
                    "",
                    "No run is selected: press Enter on a scenario to start one.",
                    Tone::Dim,
                )]
            }
        },
        HomePane::Scenarios | HomePane::Preview => {
            match state.home.selected_scenario(&state.scenarios) {
                Some(entry) => of_entry(entry),
                None => vec![item("", "No scenario is selected.", Tone::Dim)],
            }
        }
    }
}

/// The title of the preview: the name of the selected row.
pub fn title(state: &State) -> String {
    let name = match state.home.about {
        HomePane::Runs => {
            state.home.selected_run(&state.runs).map(|page| page.id().as_str().to_owned())
        }
        _ => state
            .home
            .selected_scenario(&state.scenarios)
            .map(|entry| entry.name.as_str().to_owned()),
    };
    name.unwrap_or_else(|| HomePane::Preview.title().to_owned())
}

fn of_entry(entry: &Entry) -> Vec<Item> {
    let mut items = Vec::new();
    match &entry.loaded {
        Ok(scenario) => of_scenario(scenario, &mut items),
        Err(Broken::Unreadable(why)) => items.push(item("unreadable", why, Tone::Bad)),
        Err(Broken::Problems(problems)) => {
            items.push(item("", problems.count(), Tone::Head));
            for problem in problems.iter() {
                let place = match &problem.place {
                    Place::File { line, column } => format!("{line}:{column}"),
                    Place::Override { column, .. } => format!("--set:{column}"),
                };
                let tone = match problem.severity {
                    Severity::Error => Tone::Bad,
                    Severity::Warning => Tone::Odd,
                };
                let path = match problem.path.as_str() {
                    "" => String::new(),
                    path => format!("{path}: "),
                };
                items.push(item(&place, format!("{path}{}", problem.what), tone));
                if let Some(help) = &problem.help {
                    items.push(item("", help, Tone::Dim));
                }
            }
            items.push(item("", "Fix the file, then press r to reload it.", Tone::Dim));
        }
    }
    items.push(item("file", &entry.path, Tone::Dim));
    if entry.loaded.is_ok() {
        items.push(match &entry.live {
            LiveOffer::Ready { host, model, key, .. } => {
                item("live", format!("{model} at {host}, {key}"), Tone::Dim)
            }
            LiveOffer::Choose { why } | LiveOffer::Missing { why } => item("live", why, Tone::Dim),
        });
    }
    items
}

fn of_scenario(scenario: &Scenario, items: &mut Vec<Item>) {
    items.push(item("", &scenario.title, Tone::Head));
    if !scenario.about.is_empty() {
        items.push(item("about", &scenario.about, Tone::Plain));
    }
    lines("goal", &scenario.goal, Tone::Plain, items);
    for (at, input) in scenario.inputs.iter().enumerate() {
        let label = if at == 0 { "inputs" } else { "" };
        let value = shown_value(&input.value);
        let kind = match &input.kind {
            InputKind::Choice(choices) => format!(" (of {})", choices.join(", ")),
            _ => String::new(),
        };
        items.push(item(label, format!("{} {value}{kind}", input.name), Tone::Plain));
    }
    for (at, flag) in scenario.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.default { "on" } else { "off" };
        items.push(item(label, format!("{} {position}: {}", flag.name, flag.label), Tone::Plain));
    }
    match &scenario.pattern {
        PatternSpec::Collaboration(spec) => of_collaboration(spec, items),
        PatternSpec::Orchestrator(spec) => of_orchestrator(spec, items),
        PatternSpec::Team(spec) => of_team(spec, items),
        PatternSpec::Resilience(spec) => of_resilience(spec, items),
        PatternSpec::Research(spec) => of_research(spec, items),
    }
    for warning in scenario.warnings_of(false) {
        items.push(item("warning", warning, Tone::Odd));
    }
}

fn of_research(spec: &ResearchSpec, items: &mut Vec<Item>) {
    let budget = &spec.budget;
    items.push(item("question", &spec.question, Tone::Plain));
    let limits = format!(
        "{} sources, {} pages, {} notes, {} characters, {} s",
        budget.max_urls,
        budget.max_read_pages,
        budget.max_notes,
        budget.max_answer_chars,
        budget.max_seconds.as_secs(),
    );
    items.push(item("limits", limits, Tone::Plain));
    let on = |domain: &String| spec.allowed_domains_execution.contains(domain);
    for (at, domain) in spec.allowed_domains_policy.iter().enumerate() {
        let label = if at == 0 { "domains" } else { "" };
        let switched = if on(domain) { "" } else { ", switched off" };
        let said = format!("{domain}, trust {}{switched}", spec.trust(domain));
        items.push(item(label, said, Tone::Plain));
    }
}

fn of_collaboration(spec: &CollaborationSpec, items: &mut Vec<Item>) {
    let budget = &spec.budget;
    let limits = format!(
        "{} rounds, {} messages, {} s; needs {} go, no block",
        budget.max_rounds,
        budget.max_messages,
        budget.max_seconds.as_secs(),
        budget.min_go_votes,
    );
    items.push(item("limits", limits, Tone::Plain));
    for (at, name) in spec.sequence.iter().enumerate() {
        let label = if at == 0 { "seats" } else { "" };
        let behind = spec.roles.get(name).and_then(|role| role.behind.as_ref());
        let text = match behind.map(|behind| (&behind.flag, behind.when_off)) {
            None => name.to_string(),
            Some((flag, WhenOff::Skip)) => format!("{name}, while flag {flag} is on"),
            Some((flag, WhenOff::Deny)) => {
                format!("{name}; the run stops at its turn while flag {flag} is off")
            }
        };
        items.push(item(label, text, Tone::Plain));
    }
    let how = match spec.concurrency {
        Concurrency::Parallel => "all seats in parallel",
        Concurrency::Sequential => "one seat after another",
    };
    items.push(item("order", how, Tone::Dim));
}

fn of_team(spec: &TeamSpec, items: &mut Vec<Item>) {
    let seconds = format!("{} s per message", spec.max_seconds.as_secs());
    items.push(item("limits", seconds, Tone::Plain));
    for (at, agent) in spec.agents.values().enumerate() {
        let label = if at == 0 { "agents" } else { "" };
        let text = format!("{} {}: {}", agent.kind.word(), agent.name, agent.description);
        items.push(item(label, text, Tone::Plain));
    }
}

fn of_orchestrator(spec: &OrchestratorSpec, items: &mut Vec<Item>) {
    let budget = &spec.budget;
    let limits = format!(
        "{} tasks, {} concurrent, {} dispatches, {} s; timeout {} per attempt, {} retries",
        budget.max_tasks,
        budget.max_parallel,
        budget.max_dispatches,
        budget.max_seconds.as_secs(),
        format::took(budget.task_timeout),
        budget.max_retries_per_task,
    );
    items.push(item("limits", limits, Tone::Plain));
    for (at, worker) in spec.workers.iter().enumerate() {
        let label = if at == 0 { "workers" } else { "" };
        let text = match &worker.flag {
            None => format!("{}: {}", worker.name, worker.description),
            Some(flag) => {
                format!("{}, while flag {flag} is on: {}", worker.name, worker.description)
            }
        };
        items.push(item(label, text, Tone::Plain));
    }
}

fn of_resilience(spec: &ResilienceSpec, items: &mut Vec<Item>) {
    let limits = format!(
        "{} agents, {} turns each, {} call slots, {} s",
        spec.agents,
        spec.turns,
        spec.pool,
        spec.max_seconds.as_secs(),
    );
    items.push(item("limits", limits, Tone::Plain));
    let steps: Vec<&str> = spec.steps.iter().map(|tool| tool.as_str()).collect();
    items.push(item("tools", steps.join(", "), Tone::Plain));
    let how = if spec.guarded {
        "guarded: retries in one place, breaker, bulkhead, safe mode".to_owned()
    } else {
        let naive = spec.naive;
        format!(
            "naive, retries: client {}, tool {}, agent {}",
            naive.client_retries, naive.tool_retries, naive.agent_retries
        )
    };
    items.push(item("gateway", how, Tone::Plain));
}

fn of_run(page: &RunPage) -> Vec<Item> {
    let world = page.world();
    let mut items = Vec::new();
    let Some(head) = &world.head else {
        return vec![item("", "No events yet.", Tone::Dim)];
    };
    items.push(item("", &head.title, Tone::Head));
    if let Stage::Paused { at, .. } = &world.stage {
        let at: Vec<_> = at.iter().map(|at| at.for_people()).collect();
        items.push(item("paused", format!("before {}", at.join(", ")), Tone::Plain));
    }
    if let Some((table, plan)) = world.collaboration() {
        if let Some(closed) = &world.closed {
            match table.decision() {
                Some(decision) if closed.reason.is_success() => {
                    items.push(item("decision", decision.word(), Tone::Plain));
                }
                _ => items.push(item("stopped", closed.reason.to_string(), Tone::Bad)),
            }
            if let Some(advice) = closed.reason.advice() {
                items.push(item("", advice, Tone::Dim));
            }
        }
        if let Some(round) = table.current() {
            let text = format!("{} of {}", round.number, plan.max_rounds);
            items.push(item("round", text, Tone::Plain));
            for seat in &round.seats {
                items.push(match &seat.contribution {
                    Some(said) => {
                        let stated = format::confidence(said.confidence);
                        let text = format!("{} {} {stated}", seat.role, said.stance);
                        item("", text, Tone::Stands(said.stance))
                    }
                    None => item("", seat.role.as_str(), Tone::Seat(seat.state)),
                });
            }
            if !round.conflicts.is_empty() {
                let words: Vec<_> = round.conflicts.iter().map(|it| it.word()).collect();
                items.push(item("conflicts", words.join(", "), Tone::Plain));
            }
        }
        let messages = format!("{} of {}", table.messages, plan.max_messages);
        items.push(item("messages", messages, Tone::Plain));
    } else if let Some(closed) = &world.closed {
        let tone = if closed.reason.is_success() { Tone::Plain } else { Tone::Bad };
        items.push(item("ended", closed.reason.to_string(), tone));
        if let Some(advice) = closed.reason.advice() {
            items.push(item("", advice, Tone::Dim));
        }
    }
    if let Some((_, plan)) = world.team().filter(|(_, plan)| plan.session.message > 1) {
        let label = format!("message {}", plan.session.message);
        lines(&label, &plan.session.text, Tone::Plain, &mut items);
        if let Some(after) = &plan.session.after {
            items.push(item("after", after.as_str(), Tone::Dim));
        }
    }
    of_tasks(world, &mut items);
    of_sources(world, &mut items);
    of_agents(world, &mut items);
    of_tools(world, &mut items);
    if let Some(answer) = &world.answer {
        lines("answer", answer, Tone::Plain, &mut items);
    } else if let Some(said) = last_said(page.log()) {
        items.push(item("said", format!("{}: {}", said.agent, said.summary), Tone::Plain));
    }
    lines("goal", &head.goal, Tone::Plain, &mut items);
    for (at, flag) in world.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.on { "on" } else { "off" };
        items.push(item(label, format!("{} {position}", flag.name), Tone::Plain));
    }
    items.push(item(
        "model",
        match &head.model {
            ModelLabel::Scripted => "scripted".to_owned(),
            ModelLabel::Live { name, host } => format!("live {name} at {host}"),
        },
        Tone::Dim,
    ));
    if let Some(last) = page.log().last() {
        let text = format!("{} at {}", last.kind.name(), format::moment(last.at));
        items.push(item("last", text, Tone::Dim));
    }
    items
}

/// The tasks of an orchestrator: their results, or their progress.
fn of_tasks(world: &World, items: &mut Vec<Item>) {
    /// The most tasks that are listed; the others are only counted.
    const MOST: usize = 32;
    let Some((orchestrator, plan)) = world.orchestrator() else { return };
    if let Some(level) = orchestrator.aggregate.as_ref().and_then(|it| it.get(&plan.level)) {
        items.push(item(&plan.level, bare(level), Tone::Plain));
    }
    for (at, row) in orchestrator.tasks.iter().take(MOST).enumerate() {
        let label = if at == 0 { "tasks" } else { "" };
        let told = told(row);
        let state = state_word(row.state);
        let text = match row.state {
            TaskState::Failed | TaskState::Degraded => {
                format!("{} {state}: {told}", row.task.id)
            }
            _ => format!("{} {state}: {}", row.task.id, row.task.worker),
        };
        let tone = if row.state == TaskState::Failed { Tone::Bad } else { Tone::Plain };
        items.push(item(label, text, tone));
    }
    if let Some(more) = orchestrator.tasks.len().checked_sub(MOST).filter(|more| *more > 0) {
        items.push(item(
            "",
            format!("and {}", format::things(more as u64, "more task")),
            Tone::Dim,
        ));
    }
}

/// The sources of research: how far each stage came, and the counts of notes.
fn of_sources(world: &World, items: &mut Vec<Item>) {
    let Some((research, _)) = world.research() else { return };
    let far = research.funnel();
    let sources = format!(
        "{} found, {} kept, {} allowed, {} read",
        far.found, far.deduped, far.allowed, far.read
    );
    items.push(item("sources", sources, Tone::Plain));
    let mut notes = format!("{} taken, {} cited", far.notes, far.cited);
    for (count, word) in [
        (research.refused.len(), "refused"),
        (research.compared.conflicts.len(), "in conflict"),
        (research.compared.unconfirmed.len(), "unconfirmed"),
    ] {
        if count > 0 {
            notes.push_str(&format!(", {count} {word}"));
        }
    }
    items.push(item("notes", notes, Tone::Plain));
}

/// The agents of a team or swarm, with their numbers of turns.
fn of_agents(world: &World, items: &mut Vec<Item>) {
    let Some((team, plan)) = world.team() else { return };
    for (at, row) in team.workers(plan).enumerate() {
        let label = if at == 0 { "agents" } else { "" };
        let text = format!("{} {}", row.name, format::things(row.turns.into(), "turn"));
        items.push(item(label, text, Tone::Plain));
    }
}

/// The tools besides the model and the agents: breaker, requests and calls.
fn of_tools(world: &World, items: &mut Vec<Item>) {
    let rows = world.tools.rows().iter().filter(|row| !row.head.is_agent());
    let tools = rows.filter(|tool| tool.name().as_str() != "llm");
    for (at, tool) in tools.enumerate() {
        let breaker = tool.head.limits.breaker.map_or("no breaker", |_| stage(tool.stage));
        let text = format!(
            "{} {breaker}, {} for {}",
            tool.name(),
            format::things(tool.tally.requests(), "request"),
            format::things(tool.tally.asked, "call"),
        );
        items.push(item(if at == 0 { "tools" } else { "" }, text, Tone::Plain));
    }
}

/// The last contribution, if it is near the end of the log.
fn last_said(log: &RunLog) -> Option<&Contribution> {
    log.iter().rev().take(LOOKED_AT).find_map(|event| match &event.kind {
        EventKind::ContributionAccepted { contribution, .. } => Some(&**contribution),
        _ => None,
    })
}

/// A text of several lines: an item each, so that the preview can scroll through it.
fn lines(label: &str, text: &str, tone: Tone, items: &mut Vec<Item>) {
    for (at, line) in text.lines().enumerate() {
        items.push(item(if at == 0 { label } else { "" }, line, tone));
    }
}

/// A value as text, strings without quotes.
pub(super) fn shown_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
