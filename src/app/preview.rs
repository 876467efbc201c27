//! The preview of the selected row: items with a label each, not yet wrapped.

use super::home::HomePane;
use super::run::results::{one_line, state_word, task_result};
use super::run::{RunLog, RunPage};
use super::state::AppState;
use crate::app::form::shown_value::shown_value;
use crate::event::EventKind;
use crate::event::contribution::Contribution;
use crate::event::kind::{CollaborationFact, ModelLabel, PatternFact};
use crate::event::world::{RunState, World};
use crate::narrate::badges;
use crate::narrate::event_line_tool::breaker_state;
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart};
use crate::pattern::collaboration::words::badges::seat_badge;
use crate::pattern::orchestrator::projection::TaskState;
use crate::scenario::catalogue::{EntryError, LiveOffer, ScenarioEntry};
use crate::scenario::spec::model::InputKind;
use crate::scenario::{ProblemPosition, Scenario, Severity};

/// The most events from the end of a log that are searched, so that a long log costs no more than a
/// short one.
const MAX_SEARCHED_EVENTS: usize = 256;

fn item(label: &str, text: impl Into<String>, role: StyleRole) -> StyledLine {
    StyledLine::labelled(label.to_owned(), role, text.into())
}

/// An item with a glyph before its text.
fn signed(label: &str, glyph: Glyph, role: StyleRole, text: impl Into<String>) -> StyledLine {
    let part = StyledPart::with_glyph(glyph, role, text.into());
    StyledLine { label: Some(label.to_owned().into()), parts: vec![part] }
}

fn error(label: &str, text: impl Into<String>) -> StyledLine {
    signed(label, Glyph::Failed, StyleRole::Failed, text)
}

fn warning(label: &str, text: impl Into<String>) -> StyledLine {
    signed(label, Glyph::Alert, StyleRole::Retry, text)
}

/// The items of the preview on the first screen.
pub fn items(state: &AppState) -> Vec<StyledLine> {
    match state.home.preview_source {
        HomePane::Runs => match state.home.selected_run(&state.runs) {
            Some(page) => run_items(page),
            None => {
                vec![item(
                    "",
                    "No run is selected: press Enter on a scenario to start one.",
                    StyleRole::Dim,
                )]
            }
        },
        HomePane::Scenarios | HomePane::Preview => {
            match state.home.selected_scenario(&state.scenarios) {
                Some(entry) => entry_items(entry),
                None => vec![item("", "No scenario is selected.", StyleRole::Dim)],
            }
        }
    }
}

/// The title of the preview: the name of the selected row.
pub fn title(state: &AppState) -> String {
    let name = match state.home.preview_source {
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

fn entry_items(entry: &ScenarioEntry) -> Vec<StyledLine> {
    let mut items = Vec::new();
    match &entry.loaded {
        Ok(scenario) => add_scenario(scenario, &mut items),
        Err(EntryError::Unreadable(why)) => items.push(error("unreadable", why)),
        Err(EntryError::Problems(problems)) => {
            items.push(StyledLine::new(StyleRole::Title, problems.count()));
            for problem in problems.iter() {
                let place = match &problem.place {
                    ProblemPosition::File { line, column } => format!("{line}:{column}"),
                    ProblemPosition::Override { column, .. } => format!("--set:{column}"),
                };
                let signed = match problem.severity {
                    Severity::Error => error,
                    Severity::Warning => warning,
                };
                let path = match problem.path.as_str() {
                    "" => String::new(),
                    path => format!("{path}: "),
                };
                items.push(signed(&place, format!("{path}{}", problem.what)));
                if let Some(help) = &problem.help {
                    items.push(item("", help, StyleRole::Dim));
                }
            }
            items.push(item("", "Fix the file, then press r to reload it.", StyleRole::Dim));
        }
    }
    items.push(item("file", &entry.path, StyleRole::Dim));
    if entry.loaded.is_ok() {
        items.push(match &entry.live {
            LiveOffer::Ready { host, model, key, .. } => {
                item("live", format!("{model} at {host}, {key}"), StyleRole::Dim)
            }
            LiveOffer::Choose { why } | LiveOffer::Missing { why } => {
                item("live", why, StyleRole::Dim)
            }
        });
    }
    items
}

fn add_scenario(scenario: &Scenario, items: &mut Vec<StyledLine>) {
    items.push(StyledLine::new(StyleRole::Title, scenario.title.clone()));
    if !scenario.about.is_empty() {
        items.push(item("about", &scenario.about, StyleRole::Text));
    }
    add_lines("goal", &scenario.goal, StyleRole::Text, items);
    for (at, input) in scenario.inputs.iter().enumerate() {
        let label = if at == 0 { "inputs" } else { "" };
        let value = shown_value(&input.value);
        let kind = match &input.kind {
            InputKind::Choice(choices) => format!(" (of {})", choices.join(", ")),
            _ => String::new(),
        };
        items.push(item(label, format!("{} {value}{kind}", input.name), StyleRole::Text));
    }
    for (at, flag) in scenario.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.default { "on" } else { "off" };
        items.push(item(
            label,
            format!("{} {position}: {}", flag.name, flag.label),
            StyleRole::Text,
        ));
    }
    items.extend(scenario.pattern.get().preview().into_iter().map(|line| {
        let role = if line.minor { StyleRole::Dim } else { StyleRole::Text };
        item(line.label, line.text, role)
    }));
    for text in scenario.run_warnings(false) {
        items.push(warning("warning", text));
    }
}

fn run_items(page: &RunPage) -> Vec<StyledLine> {
    let world = page.world();
    let mut items = Vec::new();
    let Some(head) = &world.head else {
        return vec![item("", "No events yet.", StyleRole::Dim)];
    };
    items.push(StyledLine::new(StyleRole::Title, head.title.clone()));
    if let RunState::Paused { at, .. } = &world.stage {
        let at: Vec<_> = at.iter().map(|at| at.display_name()).collect();
        items.push(item("paused", format!("before {}", at.join(", ")), StyleRole::Text));
    }
    if let Some(table) = world.collaboration() {
        let plan = &*table.plan;
        if let Some(closed) = &world.closed {
            match table.decision() {
                Some(decision) if closed.reason.is_success() => {
                    items.push(item("decision", decision.phrase(), StyleRole::Text));
                }
                _ => items.push(error("stopped", closed.reason.phrase())),
            }
            if let Some(advice) = closed.reason.advice() {
                items.push(item("", advice, StyleRole::Dim));
            }
        }
        if let Some(round) = table.current() {
            let text = format!("{} of {}", round.number, plan.max_rounds);
            items.push(item("round", text, StyleRole::Text));
            for seat in &round.seats {
                items.push(match &seat.contribution {
                    Some(said) => {
                        let stated = format::confidence(said.confidence);
                        let text = format!("{} {} {stated}", seat.role, said.stance);
                        let badge = badges::stance(said.stance);
                        signed("", badge.glyph, badge.role, text)
                    }
                    None => {
                        let badge = seat_badge(seat.state);
                        let text = format!("{} {}", seat.role, badge.word);
                        signed("", badge.glyph, badge.role, text)
                    }
                });
            }
            if !round.conflicts.is_empty() {
                let words: Vec<_> = round.conflicts.iter().map(|it| it.phrase()).collect();
                items.push(item("conflicts", words.join(", "), StyleRole::Text));
            }
        }
        let messages = format!("{} of {}", table.messages, plan.max_messages);
        items.push(item("messages", messages, StyleRole::Text));
    } else if let Some(closed) = &world.closed {
        let reason = closed.reason.phrase();
        items.push(match closed.reason.is_success() {
            true => item("ended", reason, StyleRole::Text),
            false => error("ended", reason),
        });
        if let Some(advice) = closed.reason.advice() {
            items.push(item("", advice, StyleRole::Dim));
        }
    }
    if let Some(it) = world.team().filter(|it| it.plan.session.message > 1) {
        let plan = &*it.plan;
        let label = format!("message {}", plan.session.message);
        add_lines(&label, &plan.session.text, StyleRole::Text, &mut items);
        if let Some(after) = &plan.session.previous_run {
            items.push(item("after", after.as_str(), StyleRole::Dim));
        }
    }
    add_tasks(world, &mut items);
    add_sources(world, &mut items);
    add_agents(world, &mut items);
    add_tools(world, &mut items);
    if let Some(answer) = &world.answer {
        add_lines("answer", answer, StyleRole::Text, &mut items);
    } else if let Some(said) = last_said(page.log()) {
        items.push(item("said", format!("{}: {}", said.agent, said.summary), StyleRole::Text));
    }
    add_lines("goal", &head.goal, StyleRole::Text, &mut items);
    for (at, flag) in world.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.on { "on" } else { "off" };
        items.push(item(label, format!("{} {position}", flag.name), StyleRole::Text));
    }
    items.push(item(
        "model",
        match &head.model {
            ModelLabel::Scripted => "scripted".to_owned(),
            ModelLabel::Live { name, host } => format!("live {name} at {host}"),
        },
        StyleRole::Dim,
    ));
    if let Some(last) = page.log().last() {
        let text = format!("{} at {}", last.kind.name(), format::time_in_run(last.at));
        items.push(item("last", text, StyleRole::Dim));
    }
    items
}

/// The tasks of an orchestrator: their results, or their progress.
fn add_tasks(world: &World, items: &mut Vec<StyledLine>) {
    /// The most tasks that are listed; the others are only counted.
    const MOST: usize = 32;
    let Some(orchestrator) = world.orchestrator() else { return };
    let plan = &*orchestrator.plan;
    if let Some(level) = orchestrator.aggregate.as_ref().and_then(|it| it.get(&plan.level)) {
        items.push(item(&plan.level, one_line(level), StyleRole::Text));
    }
    for (at, row) in orchestrator.tasks.iter().take(MOST).enumerate() {
        let label = if at == 0 { "tasks" } else { "" };
        let told = task_result(row);
        let state = state_word(row.state);
        let text = match row.state {
            TaskState::Failed | TaskState::Degraded => {
                format!("{} {state}: {told}", row.task.id)
            }
            _ => format!("{} {state}: {}", row.task.id, row.task.worker),
        };
        items.push(match row.state {
            TaskState::Failed => error(label, text),
            _ => item(label, text, StyleRole::Text),
        });
    }
    if let Some(more) = orchestrator.tasks.len().checked_sub(MOST).filter(|more| *more > 0) {
        items.push(item(
            "",
            format!("and {}", format::count_noun(more as u64, "more task")),
            StyleRole::Dim,
        ));
    }
}

/// The sources of research: how far each stage came, and the counts of notes.
fn add_sources(world: &World, items: &mut Vec<StyledLine>) {
    let Some(research) = world.research() else { return };
    let far = research.funnel();
    let sources = format!(
        "{} found, {} kept, {} allowed, {} read",
        far.found, far.deduped, far.allowed, far.read
    );
    items.push(item("sources", sources, StyleRole::Text));
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
    items.push(item("notes", notes, StyleRole::Text));
}

/// The agents of a team or swarm, with their numbers of turns.
fn add_agents(world: &World, items: &mut Vec<StyledLine>) {
    let Some(team) = world.team() else { return };
    let plan = &*team.plan;
    for (at, row) in team.assignable_agents(plan).enumerate() {
        let label = if at == 0 { "agents" } else { "" };
        let text = format!("{} {}", row.name, format::count_noun(row.turns.into(), "turn"));
        items.push(item(label, text, StyleRole::Text));
    }
}

/// The tools besides the model and the agents: breaker, requests and calls.
fn add_tools(world: &World, items: &mut Vec<StyledLine>) {
    let rows = world.tools.rows().iter().filter(|row| !row.head.is_agent());
    let tools = rows.filter(|tool| tool.name().as_str() != "llm");
    for (at, tool) in tools.enumerate() {
        let breaker =
            tool.head.limits.breaker.map_or("no breaker", |_| breaker_state(tool.breaker));
        let text = format!(
            "{} {breaker}, {} for {}",
            tool.name(),
            format::count_noun(tool.tally.requests(), "request"),
            format::count_noun(tool.tally.calls, "call"),
        );
        items.push(item(if at == 0 { "tools" } else { "" }, text, StyleRole::Text));
    }
}

/// The last contribution, if it is near the end of the log.
fn last_said(log: &RunLog) -> Option<&Contribution> {
    log.iter().rev().take(MAX_SEARCHED_EVENTS).find_map(|event| match &event.kind {
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted { contribution, .. },
        )) => Some(&**contribution),
        _ => None,
    })
}

/// A text of several lines: an item each, so that the preview can scroll through it.
fn add_lines(label: &str, text: &str, role: StyleRole, items: &mut Vec<StyledLine>) {
    for (at, line) in text.lines().enumerate() {
        items.push(item(if at == 0 { label } else { "" }, line, role));
    }
}
