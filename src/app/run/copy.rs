//! What leaves the page: text and Markdown for the clipboard, raw events for the pager, the run as
//! files.

use std::fmt::Write as _;

use super::inspect::raw::{call_events, raw_document};
use super::inspect::target::{InspectTarget, Tab};
use super::layout::Pane;
use super::markdown::tools_markdown;
use super::subject_text::run_text;
use super::{InputOutcome, RunPage};
use crate::app::effect::{Contents, Effect, Export};
use crate::event::safe_json;
use crate::narrate::event_line::{model_text, took_ms};
use crate::narrate::export::escape::reason_markdown;
use crate::narrate::format;
use crate::narrate::patterns::words;
use crate::narrate::styled::StyledText;
use crate::narrate::tell::event_line;

impl RunPage {
    pub(super) fn copy(&self) -> InputOutcome {
        copy_effect(self.selected_text())
    }

    pub(super) fn copy_markdown(&self) -> InputOutcome {
        copy_effect(self.selected_markdown())
    }

    fn selected_text(&self) -> String {
        if let Some(inspector) = &self.inspector {
            return inspector.document.to_plain();
        }
        if self.panes.focus == Pane::Events {
            return self.selected_row().unwrap_or_default();
        }
        let (focus, own) = (self.panes.focus, self.own_view().get(&self.tools));
        let text = self.shown_view().text(&self.run, focus);
        let text = text.or_else(|| own.text(&self.run, focus));
        text.unwrap_or_else(|| run_text(&self.run, self.subject_call()).text.into_owned())
    }

    fn selected_row(&self) -> Option<String> {
        let event = self.run.log().get(self.list.selected(self.run.log())?)?;
        let line = event_line(event, self.run.world()).line();
        Some(format!("{}  {line}", format::time_in_run(event.at)))
    }

    fn selected_markdown(&self) -> String {
        if let Some(inspector) = &self.inspector {
            let head = match inspector.target {
                InspectTarget::Event(seq) => format!("{} · event {}", self.run.id(), seq.0 + 1),
                InspectTarget::Call(call) => format!("{} · call {}", self.run.id(), call.0),
            };
            let language = if inspector.tab == Tab::Raw { "json" } else { "text" };
            let fence = fence_around(&inspector.document);
            let text = inspector.document.to_plain();
            let tab = inspector.tab.name(inspector.callee);
            return format!("### {head} · {tab}\n\n{fence}{language}\n{text}{fence}\n");
        }
        let focus = self.panes.focus;
        if focus == Pane::Events {
            return self.selected_row().map(|row| format!("`{row}`\n")).unwrap_or_default();
        }
        let selected = self.own_view().get(&self.tools).markdown(&self.run, focus);
        selected.unwrap_or_else(|| self.run_markdown())
    }

    /// The whole run as Markdown.
    fn run_markdown(&self) -> String {
        let world = self.shown();
        let mut out = String::new();
        let Some(head) = &world.head else { return out };
        let _ = writeln!(out, "# {}\n", head.title);
        let _ = writeln!(out, "{}\n", head.goal.trim());
        let _ = writeln!(
            out,
            "Run {}, {}, {}.",
            self.run.id(),
            head.plan.name(),
            model_text(&head.model)
        );
        if let Some(closed) = &world.progress.closed {
            let place = closed.phase.as_deref().map(|phase| format!(" in {phase}"));
            let _ = writeln!(
                out,
                "Ended: {}{} after {}.",
                reason_markdown(&closed.reason),
                place.unwrap_or_default(),
                took_ms(closed.elapsed_ms)
            );
        }
        if let Some(words) = words(world) {
            words.markdown(&mut out);
        }
        tools_markdown(&mut out, world);
        if let Some(answer) = &world.progress.answer {
            let _ = writeln!(out, "\n## Answer\n\n{answer}");
        }
        out
    }

    pub(super) fn page_raw(&self) -> InputOutcome {
        let target = match &self.inspector {
            Some(inspector) => Some(inspector.target),
            None => self.target(),
        };
        let document = match target {
            Some(InspectTarget::Event(seq)) => {
                self.event(seq).map(|event| raw_document(&[event], 0))
            }
            Some(InspectTarget::Call(call)) => {
                let (facts, left_out) = call_events(&self.run, call);
                Some(raw_document(&facts, left_out))
            }
            None => None,
        };
        match document {
            Some(document) => InputOutcome::Emit(vec![Effect::Page(document.to_plain())]),
            None => InputOutcome::Handled { redraw: false },
        }
    }

    /// Whether there is a report to export.
    pub fn has_report(&self) -> bool {
        words(self.run.world()).is_some_and(|words| words.has_report(self.run.world()))
    }

    /// Exports the report first if there is one, since that is what people look for; then the
    /// events as lines of JSON, and the outcome if the run has ended.
    pub(super) fn export(&self) -> InputOutcome {
        if self.run.log().is_empty() {
            return InputOutcome::Handled { redraw: false };
        }
        let file =
            |end: &str, contents| Export { file: format!("{}.{end}", self.run.id()), contents };
        let world = self.run.world();
        let words = words(world).filter(|words| words.has_report(world));
        let report = words.and_then(|words| words.report(world));
        let report = report.map(|text| file("md", Contents::Text(text)));
        let mut files: Vec<Export> = report.into_iter().collect();
        files.push(file("jsonl", Contents::Events(self.events_for_export())));
        let outcome = self.run.world().outcome();
        if let Some(text) = outcome.and_then(|outcome| safe_json::pretty(&outcome).ok()) {
            files.push(file("outcome.json", Contents::Text(text + "\n")));
        }
        InputOutcome::Emit(vec![Effect::Export(files)])
    }
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
