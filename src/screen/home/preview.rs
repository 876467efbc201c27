//! Pane 3 of the first screen: a preview of the selected scenario or run.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::HomePane;
use super::history::ListedRun;
use crate::base::time;
use crate::base::time::Day;
use crate::base::visible::visible;
use crate::log::event::{BoundaryId, ModelLabel};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::log::world::{RunState, World};
use crate::scenario::catalogue::{EntryError, LiveOffer, ScenarioEntry, ScenarioGroup};
use crate::scenario::spec::InputKind;
use crate::scenario::{ProblemPosition, Scenario, Severity};
use crate::screen::action::Action;
use crate::screen::form::fields::shown_value;
use crate::screen::keymap::key_of;
use crate::screen::run::origin::RemoteRun;
use crate::screen::run::{EventWindow, RunPage};
use crate::screen::text::Pen;
use crate::screen::{AppState, DrawContext};
use crate::words::badges::{WAITS, age_text, run_result, run_state};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::wrap_within;
use crate::words::patterns::{Narrate, add_end, words_of};
use crate::words::question::{short_age, waits_text};
use crate::words::sentence::{PLACES, places};
use crate::words::styled::{StyleRole, StyledLine, StyledText};
use crate::words::tool_sentence::breaker_state;

/// Maximum number of events that are searched from the end of a log, so that a long log costs no more
/// than a short one.
const MAX_SEARCHED_EVENTS: usize = 256;

fn notice(text: &str) -> StyledText {
    let mut items = StyledText::default();
    items.item("", StyleRole::Dim, text);
    items
}

/// The items of the preview on the first screen.
pub fn items(state: &AppState) -> StyledText {
    match state.home.preview_source {
        HomePane::Runs => match state.selected_run() {
            Some(ListedRun::Session(page)) => run_items(page, state.now),
            Some(ListedRun::Kept(row)) => kept_items(row, state.history.wall_ms(state.now)),
            None => {
                let key = key_of(Action::Open);
                notice(&format!(
                    "No run yet: {key} on a scenario starts one. What it did is shown here."
                ))
            }
        },
        HomePane::Scenarios | HomePane::Preview => {
            match state.home.selected_scenario(&state.scenarios) {
                Some(entry) => entry_items(entry),
                None => notice("No scenario: select one in 1. What it is made of is shown here."),
            }
        }
    }
}

/// The title of the preview: the name of the selected row.
pub fn title(state: &AppState) -> String {
    let name = match state.home.preview_source {
        HomePane::Runs => state.selected_run().map(|run| run.id().as_str().to_owned()),
        _ => state
            .home
            .selected_scenario(&state.scenarios)
            .map(|entry| entry.name.as_str().to_owned()),
    };
    name.unwrap_or_else(|| HomePane::Preview.title().to_owned())
}

fn entry_items(entry: &ScenarioEntry) -> StyledText {
    let mut items = StyledText::default();
    match &entry.loaded {
        Ok(scenario) => add_scenario(scenario, &mut items),
        Err(EntryError::Unreadable(why)) => items.error("unreadable", why),
        Err(EntryError::Problems(problems)) => {
            items.add(StyleRole::Title, problems.count());
            for problem in problems.iter() {
                let place = match &problem.place {
                    ProblemPosition::File { line, column } => format!("{line}:{column}"),
                    ProblemPosition::Override { column, .. } => format!("--set:{column}"),
                };
                let path = match problem.path.as_str() {
                    "" => String::new(),
                    path => format!("{path}: "),
                };
                let text = format!("{path}{}", problem.what);
                match problem.severity {
                    Severity::Error => items.error(&place, text),
                    Severity::Warning => items.warning(&place, text),
                }
                if let Some(help) = &problem.help {
                    items.item("", StyleRole::Dim, help);
                }
            }
            let key = key_of(Action::Rescan);
            let text = format!("Fix the file; {key} reads it again.");
            items.item("", StyleRole::Dim, &text);
        }
    }
    let path = match entry.group() {
        ScenarioGroup::Own => entry.path.to_string(),
        ScenarioGroup::Shipped(_) => format!("{} (in the program)", entry.path),
    };
    items.item("file", StyleRole::Dim, path);
    if entry.loaded.is_ok() {
        match &entry.live {
            LiveOffer::Ready { host, model, key, .. } => {
                items.item("live", StyleRole::Dim, format!("{model} at {host}, {key}"));
            }
            LiveOffer::Choose { why } | LiveOffer::Missing { why } => {
                items.item("live", StyleRole::Dim, why);
            }
        }
    }
    items
}

fn add_scenario(scenario: &Scenario, items: &mut StyledText) {
    items.add(StyleRole::Title, scenario.title.clone());
    if !scenario.about.is_empty() {
        items.item("about", StyleRole::Text, &scenario.about);
    }
    items.paragraph("goal", &scenario.goal);
    for (at, input) in scenario.inputs.iter().enumerate() {
        let label = if at == 0 { "inputs" } else { "" };
        let value = shown_value(&input.value);
        let kind = match &input.kind {
            InputKind::Choice(choices) => format!(" (of {})", choices.join(", ")),
            _ => String::new(),
        };
        items.item(label, StyleRole::Text, format!("{} {value}{kind}", input.name));
    }
    for (at, flag) in scenario.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.default { "on" } else { "off" };
        items.item(label, StyleRole::Text, format!("{} {position}: {}", flag.name, flag.label));
    }
    for line in scenario.pattern.get().preview() {
        let role = if line.minor { StyleRole::Dim } else { StyleRole::Text };
        items.item(line.label, role, line.text);
    }
    for text in scenario.run_warnings(false) {
        items.warning("warning", text);
    }
}

fn run_items(page: &RunPage, now: Duration) -> StyledText {
    let world = page.world();
    let mut items = StyledText::default();
    let Some(head) = &world.head else {
        return notice("No events yet: the run is starting.");
    };
    items.add(StyleRole::Title, head.title.clone());
    if let RunState::Paused { at, .. } = &world.progress.stage {
        let who = world.questions.open().map(|question| &question.asked.who);
        let text = match (at.is_empty(), waits_text(who)) {
            (false, _) => format!("before {}", places(at, PLACES)),
            (true, Some(waits)) => format!("while it {waits}"),
            (true, None) => "while people are asked".to_owned(),
        };
        items.item("paused", StyleRole::Text, text);
    }
    let words = words_of(world);
    match words {
        Some(words) => words.preview(world, &mut items),
        None => add_end(world, &mut items),
    }
    add_tools(world, &mut items);
    if let Some(answer) = &world.progress.answer {
        if let Some(mark) = world.progress.answer_end.mark() {
            items.item("answer", StyleRole::Retry, mark);
        }
        items.paragraph("answer", answer);
    } else if let Some(said) = words.and_then(|words| last_said(page.log(), words)) {
        items.item("said", StyleRole::Text, said);
    }
    if let Some(forked) = head.launch.as_ref().and_then(|launch| launch.forked.as_ref()) {
        let text = format!("from {} before {}", forked.parent, forked.at.display_name());
        items.item("forked", StyleRole::Text, text);
        if let Some(reused) = world.tally.reused {
            let cost = reused.cost_usd.filter(|cost| *cost > 0.0).map(format::usd);
            let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
            let tokens = format::count(reused.tokens);
            items.item("reused", StyleRole::Dim, format!("{tokens} tokens{cost} of that run"));
        }
    }
    items.paragraph("goal", &head.goal);
    for (at, flag) in world.settings.flags.iter().enumerate() {
        let label = if at == 0 { "flags" } else { "" };
        let position = if flag.on { "on" } else { "off" };
        items.item(label, StyleRole::Text, format!("{} {position}", flag.name));
    }
    items.item(
        "model",
        StyleRole::Dim,
        match &head.model {
            ModelLabel::Scripted => "scripted".to_owned(),
            ModelLabel::Observed { guarded: false } => "of the program that is watched".to_owned(),
            ModelLabel::Observed { guarded: true } => {
                "of the program; their calls pass through roundtable".to_owned()
            }
            ModelLabel::Live { name, host } => format!("live {name} at {host}"),
        },
    );
    if let Some(last) = page.log().last() {
        let text = format!(
            "{} at {}",
            last.kind.name(),
            format::time_in_run(page.world().progress.run_time(last.at))
        );
        items.item("last", StyleRole::Dim, text);
        if let Some(player) = page.remote.as_deref().and_then(RemoteRun::player)
            && world.progress.is_live()
        {
            let silent = short_age(page.time(now).since(last.at));
            items.item("played by", StyleRole::Dim, format!("{player}, silent for {silent}"));
        }
    }
    items
}

/// The items of a kept run. Its log has not been read yet.
fn kept_items(row: &RunRow, wall_ms: u64) -> StyledText {
    let age_ms = wall_ms.saturating_sub(row.started_ms);
    let mut items = StyledText::default();
    items.add(StyleRole::Title, row.title.to_string());
    items.signed("status", run_state(&row.status), run_state(&row.status).word);
    if let Some(waits) = waits_text(row.waits_for.iter()) {
        items.signed("", WAITS, waits);
    }
    let result = run_result(&row.status, row.result.as_deref());
    if !result.is_empty() {
        items.item("result", StyleRole::Text, result);
    }
    match &row.status {
        RunStatus::Waiting => items.item("", StyleRole::Dim, "It waits for a runner."),
        RunStatus::Running => match &row.runner {
            Some(runner) => items.item("runner", StyleRole::Text, runner),
            None => items.item("", StyleRole::Dim, "Another process plays it."),
        },
        RunStatus::Interrupted => {
            items.item("", StyleRole::Dim, "Its process ended before the run did.");
        }
        RunStatus::Ended(_) => {}
    }
    if let Some(last) = row.last.as_ref().filter(|_| row.status == RunStatus::Running) {
        let age = short_age(Duration::from_millis(wall_ms.saturating_sub(last.at_ms)));
        items.item("last", StyleRole::Dim, format!("{}, {age} ago", visible(&last.kind)));
    }
    let day = Day::from_unix_ms(row.started_ms);
    items.item("when", StyleRole::Text, format!("{}, {day}", age_text(age_ms)));
    items.item("scenario", StyleRole::Text, &row.scenario);
    items.item("pattern", StyleRole::Text, &row.pattern);
    items.item("model", StyleRole::Text, if row.live { "live" } else { "scripted" });
    let time = time::duration_text(Duration::from_millis(row.elapsed_ms));
    items.item("time", StyleRole::Text, time);
    items.item("tokens", StyleRole::Text, format::exact(row.tokens));
    match row.cost_usd {
        Some(cost) if cost > 0.0 => items.item("cost", StyleRole::Text, format::usd(cost)),
        None if row.live => items.item("cost", StyleRole::Text, "unknown"),
        _ => {}
    }
    let (events, size) = (format::count_noun(row.events, "event"), format::bytes(row.bytes));
    items.item("log", StyleRole::Text, format!("{events}, {size}"));
    if let Some(parent) = &row.parent {
        let at = row.forked_at.as_deref().map(|at| BoundaryId::new(at).display_name());
        let at = at.map_or_else(String::new, |at| format!(" before {at}"));
        items.item("forked", StyleRole::Text, format!("from {parent}{at}"));
    }
    if row.pinned {
        items.item("pinned", StyleRole::Text, "never removed by itself");
    }
    items
}

/// The tools besides the model and the agents: breaker, requests and calls. Those of a watched program are among its
/// totals.
fn add_tools(world: &World, items: &mut StyledText) {
    let rows = world.tools.rows().iter().filter(|row| row.head.is_tool());
    let tools = rows.filter(|tool| tool.name().as_str() != "llm" && !tool.head.is_observed());
    for (at, tool) in tools.enumerate() {
        let breaker =
            tool.head.limits.breaker.map_or("no breaker", |_| breaker_state(tool.breaker));
        let text = format!(
            "{} {breaker}, {} for {}",
            tool.name(),
            format::count_noun(tool.tally.requests(), "request"),
            format::count_noun(tool.tally.calls, "call"),
        );
        items.item(if at == 0 { "breakers" } else { "" }, StyleRole::Text, text);
    }
}

/// The last text that was said, if it is near the end of the log.
fn last_said(log: &EventWindow, words: &dyn Narrate) -> Option<String> {
    log.iter().rev().take(MAX_SEARCHED_EVENTS).find_map(|event| words.said(event))
}

/// Columns of the preview's labels.
const LABEL: u16 = 11;

/// Draws the lines from the first one in view.
pub(crate) fn render(
    items: &[StyledLine],
    state: &AppState,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let width = area.width.saturating_sub(LABEL + 2);
    let mut y = area.y;
    let top = state.home.preview_top.min(items.len().saturating_sub(1));
    for (at, item) in items.iter().enumerate().skip(top) {
        let left = area.bottom().saturating_sub(y);
        if left == 0 {
            break;
        }
        let (glyph, style) = (item.glyph(), cx.theme.style(item.role()));
        let (x, width) = match item.label {
            None => (area.x + 1, area.width.saturating_sub(2)),
            Some(_) => (area.x + 1 + LABEL, width),
        };
        let indent = if glyph.is_some() { 2 } else { 0 };
        let columns = usize::from(width.saturating_sub(indent)).max(1);
        let (rows, cut) = wrap_within(&item.text(), columns, left.into());
        let label = Rect { x: area.x + 1, y, width: LABEL, height: 1 }.intersection(area);
        Pen::new(buf, label, cx.glyphs).cell(
            item.label.as_deref().unwrap_or_default(),
            LABEL - 1,
            cx.theme.style(StyleRole::Dim),
        );
        for (at, row) in rows.iter().enumerate() {
            let line = Rect { x, y: y + at as u16, width, height: 1 }.intersection(area);
            let mut pen = Pen::new(buf, line, cx.glyphs);
            match glyph.filter(|_| at == 0) {
                Some(glyph) => pen.glyph(glyph, style).space(1),
                None => pen.space(indent),
            };
            pen.put(row, style);
        }
        y = y.saturating_add(u16::try_from(rows.len().max(1)).unwrap_or(u16::MAX));
        if cut || (y >= area.bottom() && at + 1 < items.len()) {
            let more = Rect {
                x: area.right().saturating_sub(2),
                y: area.bottom() - 1,
                width: 1,
                height: 1,
            };
            Pen::new(buf, more.intersection(area), cx.glyphs)
                .glyph(Glyph::Down, cx.theme.style(StyleRole::Key));
        }
    }
}
