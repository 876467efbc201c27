//! What an orchestrator says about its runs.

use std::borrow::Cow;

use super::event_line::fill_line;
use super::results::{level_evidence, level_part, task_at, tasks_text};
use super::{lines, markdown, preview, what_if};
use crate::base::name::FlagName;
use crate::event::kind::{Purpose, RunClosed};
use crate::event::world::{Projection, RunFold, SpanKind};
use crate::event::{Event, StopReason};
use crate::narrate::event_line::EventLine;
use crate::narrate::measure::columns;
use crate::narrate::pattern_words::{Narrate, PatternTerms};
use crate::narrate::preview::end_line;
use crate::narrate::progress::Progress;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart, StyledText};
use crate::narrate::verdict::RunVerdict;
use crate::narrate::{badges, format};
use crate::pattern::orchestrator::projection::{Orchestrator, TaskState};

impl Narrate for Orchestrator {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "report", answer_mark: "report", has_rounds: false }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let tasks = self.tasks.len();
        let far = (tasks > 0).then(|| format!("{}/{tasks}", self.ended()));
        Progress {
            text: (tasks > 0).then(|| tasks_text(self)),
            short: far.unwrap_or_default(),
            budget: Some(("dispatches", self.dispatches.into(), self.plan.max_dispatches.into())),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let workers = format::count_noun(self.plan.workers.len() as u64, "worker");
        let tasks = format::count_noun(self.plan.max_tasks.into(), "task");
        (workers, format!("max {tasks}"))
    }

    fn span_name(&self, span: &SpanKind) -> Option<Cow<'_, str>> {
        let SpanKind::Task { index } = span else { return None };
        task_at(self, *index).map(|row| row.task.id.as_str().into())
    }

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, line: &mut EventLine<'w>) {
        fill_line(&event.kind, line);
    }

    fn call_fields(&self, purpose: &Purpose, _of_event: bool, to: &mut StyledText) {
        match purpose {
            Purpose::Plan => to.field("purpose", "plan"),
            Purpose::Task { task, index, .. } => {
                to.field("task", task.as_str());
                if let Some(row) = task_at(self, *index) {
                    to.field("worker", row.task.worker.as_str());
                    if !row.args_hash.is_empty() {
                        to.field("args hash", &row.args_hash);
                    }
                }
            }
            Purpose::Finalize => to.field("purpose", "final answer"),
            _ => {}
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        preview::add_state(self, run, to);
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        let Some(closed) = &run.progress.closed else { return StyledLine::default() };
        let mut line = match self.stop_detail(closed) {
            Some(detail) => StyledLine::new(badges::ended(closed.reason.class()).role, detail),
            None => end_line(run, closed),
        };
        if let Some((_, level)) = self.level() {
            line = line.then(", ").with(level);
        }
        if run.tally.degraded > 0 || self.is_degraded() {
            line = line.with(StyledPart::new(StyleRole::Retry, ", degraded"));
        }
        line
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        if let Some(cause) = self.stop_detail(closed) {
            return verdict.because(closed, cause);
        }
        if let Some((name, level)) = self.level() {
            let why = level_evidence(self).map(|why| format!(" ({why})"));
            verdict.facts.push(format!("{name} {}{}", level.text, why.unwrap_or_default()));
            if closed.reason.is_success() {
                verdict.role = level.role.unwrap_or(verdict.role);
                verdict.glyph = level.glyph.unwrap_or(verdict.glyph);
            }
        }
        verdict.facts.extend(self.reached());
        verdict
    }

    fn stop_detail(&self, closed: &RunClosed) -> Option<String> {
        if !matches!(closed.reason, StopReason::CriticalTaskFailed) {
            return None;
        }
        let failed = self.tasks.iter().filter(|row| row.state == TaskState::Failed);
        let row = failed.clone().find(|row| row.task.critical).or(failed.clone().next())?;
        let why = row.error.as_deref().map(str::to_owned);
        let why = why.or_else(|| Some(row.reason.as_ref()?.phrase().into_owned()))?;
        Some(format!("{} failed: {why}", row.task.id))
    }

    fn reached(&self) -> Option<String> {
        Some(tasks_text(self))
    }

    fn level(&self) -> Option<(&str, StyledPart)> {
        let level = self.aggregate.as_ref()?.get(&self.plan.level)?;
        Some((&self.plan.level, level_part(level)))
    }

    fn lines(&self, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
        lines::lines(self, event, run)
    }

    fn caller_name(&self, purpose: &Purpose) -> Option<String> {
        match purpose {
            Purpose::Task { task, .. } => Some(lines::label_of(self, task)),
            _ => None,
        }
    }

    fn totals(&self) -> Vec<StyledPart> {
        let tasks = format::count_noun(self.tasks.len() as u64, "task");
        vec![StyledPart::plain(format!("  {tasks}"))]
    }

    fn markdown(&self, out: &mut String) {
        markdown::add_tasks(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        what_if::effects(self, flag, on, run)
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        // With many tasks the first ones determine the width.
        let tasks = self.tasks.iter().take(64).map(|row| row.task.id.as_str());
        let workers = self.plan.workers.iter().map(|worker| worker.name.as_str());
        tasks.chain(workers).map(columns).max().unwrap_or(0)
    }
}
