//! What leaves the page: text and Markdown for the clipboard, raw events for the pager, the run as
//! files.
//!
//! The tools of a run as text and Markdown, for the clipboard.

use std::fmt::Write as _;

use super::data::RunData;
use super::inspector::documents::{call_events, raw_document};
use super::inspector::{InspectTarget, InspectedRun, Inspector, Tab};
use super::layout::Pane;
use super::pane_text::run_text;
use super::views::pane_title;
use super::views::tools::summary::{faults_text, policy_fields, refused_and_fallbacks};
use super::{InputOutcome, RunPage};
use crate::base::time;
use crate::log::event::{World, safe_json};
use crate::log::world::tool_row::ToolRow;
use crate::screen::action::Action;
use crate::screen::effect::{Contents, Effect, Export};
use crate::words::closing::answer_mark;
use crate::words::format;
use crate::words::markdown::{model_markdown, paragraph, reason_markdown, text};
use crate::words::patterns::words_of;
use crate::words::sentence::{model_text, sentence, took_ms};
use crate::words::styled::StyledText;
use crate::words::tool_sentence::breaker_state;
use crate::words::verdict::stop_lead;

impl RunData {
    /// Whether there is a report to export.
    pub fn has_report(&self) -> bool {
        words_of(self.world()).is_some_and(|words| words.has_report(self.world()))
    }
}

/// Copies the selection as text.
pub(crate) fn copy(page: &RunPage) -> InputOutcome {
    copy_effect(selected_text(page))
}

/// Copies the selection as Markdown.
pub(super) fn copy_markdown(page: &RunPage) -> InputOutcome {
    copy_effect(selected_markdown(page))
}

/// The notice about a copy: `Copied event 61 (45 B).`
pub(crate) fn copied(page: &RunPage, action: Action, text: &str) -> String {
    let focus = page.views.panes.focus;
    let what = match &page.inspector {
        Some(Inspector { target: InspectTarget::Event(seq), .. }) => format!("event {}", seq.0 + 1),
        Some(inspector) => {
            format!("the {} of the call", inspector.tab.name(inspector.callee).to_lowercase())
        }
        None if focus == Pane::Events => {
            let event = page.list.selected(page.run.log()).and_then(|at| page.run.log().get(at));
            event.map_or_else(|| "the event".to_owned(), |it| format!("event {}", it.seq.0 + 1))
        }
        None => format!("from {}", pane_title(page.views.shown().titles(), focus)),
    };
    let form = if action == Action::CopyMarkdown { ", as Markdown" } else { "" };
    format!("Copied {what} ({}{form}).", format::bytes(text.len() as u64))
}

fn selected_text(page: &RunPage) -> String {
    if let Some(inspector) = &page.inspector {
        return inspector.document.to_plain();
    }
    if page.views.panes.focus == Pane::Events {
        return selected_row(page).unwrap_or_default();
    }
    let (focus, own) = (page.views.panes.focus, page.views.own_view());
    let text = page.views.shown().text(&page.run, focus);
    let text = text.or_else(|| own.text(&page.run, focus));
    text.unwrap_or_else(|| {
        run_text(&page.run, page.views.subject_call(&page.run)).text.into_owned()
    })
}

fn selected_row(page: &RunPage) -> Option<String> {
    let event = page.run.log().get(page.list.selected(page.run.log())?)?;
    let line = sentence(event, page.run.world()).line();
    Some(format!("{}  {line}", format::time_in_run(page.run.world().progress.run_time(event.at))))
}

fn selected_markdown(page: &RunPage) -> String {
    if let Some(inspector) = &page.inspector {
        let head = match inspector.target {
            InspectTarget::Event(seq) => format!("{} · event {}", page.run.id(), seq.0 + 1),
            InspectTarget::Call(call) => format!("{} · call {}", page.run.id(), call.0),
        };
        let language = if inspector.tab == Tab::Raw { "json" } else { "text" };
        let fence = fence_around(&inspector.document);
        let text = inspector.document.to_plain();
        let tab = inspector.tab.name(inspector.callee);
        return format!("### {head} · {tab}\n\n{fence}{language}\n{text}{fence}\n");
    }
    let focus = page.views.panes.focus;
    if focus == Pane::Events {
        return selected_row(page).map(|row| format!("`{row}`\n")).unwrap_or_default();
    }
    let selected = page.views.own_view().markdown(&page.run, focus);
    selected.unwrap_or_else(|| run_markdown(&page.run))
}

/// The whole run as Markdown.
fn run_markdown(run: &RunData) -> String {
    let world = run.shown();
    let mut out = String::new();
    let Some(head) = &world.head else { return out };
    let _ = writeln!(out, "# {}\n", text(&head.title));
    let _ = writeln!(out, "{}\n", model_markdown(head.goal.trim()));
    let _ = writeln!(out, "Run {}, {}, {}.", run.id(), head.plan.name(), model_text(&head.model));
    if let Some(closed) = &world.progress.closed {
        let place = closed.phase.as_deref().map(|phase| format!(" in {phase}"));
        let _ = writeln!(
            out,
            "Ended: {}{} after {}.",
            reason_markdown(&stop_lead(world, closed), &closed.reason),
            place.unwrap_or_default(),
            took_ms(closed.elapsed_ms)
        );
        if let Some(cause) = world.stop_cause() {
            let _ = writeln!(out, "\n{}", paragraph(&cause));
        }
    }
    if let Some(words) = words_of(world) {
        words.markdown(&mut out);
    }
    tools_markdown(&mut out, world);
    if let Some(answer) = &world.progress.answer {
        let _ = writeln!(out, "\n## Answer\n\n{}", model_markdown(answer));
        if let Some(mark) = answer_mark(world) {
            let _ = writeln!(out, "\n*{mark}*");
        }
    }
    out
}

/// Shows the events behind the selection in the pager.
pub(super) fn page_raw(page: &RunPage) -> InputOutcome {
    let target = match &page.inspector {
        Some(inspector) => Some(inspector.target),
        None => page.target(),
    };
    let document = match target {
        Some(InspectTarget::Event(seq)) => page.event(seq).map(|event| raw_document(&[event], 0)),
        Some(InspectTarget::Call(call)) => {
            let target = InspectTarget::Call(call);
            let run = InspectedRun::for_target(&page.run, target);
            let (facts, left_out) = call_events(&run, call);
            Some(raw_document(&facts, left_out))
        }
        None => None,
    };
    match document {
        Some(document) => InputOutcome::Emit(vec![Effect::Page(document.to_plain())]),
        None => InputOutcome::Handled { redraw: false },
    }
}

/// Exports the report first if there is one, since people look for it; then the events as lines of JSON,
/// and the outcome if the run has ended.
pub(crate) fn export(run: &RunData) -> InputOutcome {
    if run.log().is_empty() {
        return InputOutcome::Handled { redraw: false };
    }
    let file = |end: &str, contents| Export { file: format!("{}.{end}", run.id()), contents };
    let world = run.world();
    let words = words_of(world).filter(|words| words.has_report(world));
    let report = words.and_then(|words| words.report(world));
    let report = report.map(|text| file("md", Contents::Text(text)));
    let mut files: Vec<Export> = report.into_iter().collect();
    files.push(file("jsonl", Contents::Events(run.events_for_export())));
    let outcome = run.world().outcome();
    if let Some(text) = outcome.and_then(|outcome| safe_json::pretty(&outcome).ok()) {
        files.push(file("outcome.json", Contents::Text(text + "\n")));
    }
    InputOutcome::Emit(vec![Effect::Export(files)])
}

fn copy_effect(text: String) -> InputOutcome {
    if text.is_empty() {
        return InputOutcome::Handled { redraw: false };
    }
    InputOutcome::Emit(vec![Effect::Copy(text)])
}

/// A Markdown fence longer than any that the text contains.
fn fence_around(document: &StyledText) -> String {
    let ticks = |text: &str| {
        let start = text.trim_start();
        start.len() - start.trim_start_matches('`').len()
    };
    let most = document.lines.iter().map(|line| ticks(&line.text())).max().unwrap_or(0);
    "`".repeat((most + 1).max(3))
}

/// Writes the figures of the tools other than the model.
fn tools_markdown(out: &mut String, world: &World) {
    let tools = || world.tools.rows().iter().filter(|tool| tool.name().as_str() != "llm");
    if tools().next().is_none() {
        return;
    }
    let _ = writeln!(out, "\n## Tools\n");
    let _ = writeln!(out, "| tool | breaker | calls | requests | requests a call | errors | p95 |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |");
    for tool in tools() {
        let tally = &tool.tally;
        let breaker = tool.head.limits.breaker.map_or("none", |_| breaker_state(tool.breaker));
        let _ = writeln!(
            out,
            "| {} | {breaker} | {} | {} | {} | {} | {} |",
            tool.name(),
            tally.calls,
            tally.requests(),
            tally.amplification().map(format::requests_each).unwrap_or_default(),
            tally.error_rate().map(format::percent).unwrap_or_default(),
            tool.latencies.percentile(95).map(time::duration_text).unwrap_or_default(),
        );
    }
}

/// One tool as text: its breaker, its figures and its policy.
pub(super) fn tool_text(tool: &ToolRow) -> String {
    let mut text = format!("{} ({})\n", tool.name(), tool.head.kind);
    if tool.head.limits.breaker.is_some() {
        let _ = writeln!(text, "breaker  {}", breaker_state(tool.breaker));
    }
    let (refused, instead) = refused_and_fallbacks(&tool.tally);
    for (name, value) in
        [("injected", faults_text(tool)), ("refused", refused), ("fallback", instead)]
    {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}  {value}");
        }
    }
    for (name, value) in policy_fields(&tool.head) {
        let _ = writeln!(text, "{name}  {value}");
    }
    text
}
