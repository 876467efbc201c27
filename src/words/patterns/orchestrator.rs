//! An orchestrator in words: sentences for its events, states and results of tasks,
//! preview, the effect of a flag, tasks as Markdown.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::{
    Narrate, PatternPane, PatternTerms, Progress, RunStep, RunStepState, add_stop, end_line,
};
use crate::base::name::{FlagName, TaskId};
use crate::base::time::duration_text;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{Event, EventKind, FallbackKind, Purpose, RunClosed, SpanId, StopReason};
use crate::log::facts::PatternFact;
use crate::log::facts::orchestrator::{OrchestratorFact, Task, WorkerFault};
use crate::log::world::orchestrator::{Orchestrator, TaskRow, TaskState};
use crate::log::world::{Projection, RunFold, RunState, SpanKind};
use crate::words::format::short_error;
use crate::words::glyph::Glyph;
use crate::words::markdown::table_cell;
use crate::words::measure::columns;
use crate::words::readable::top_text;
use crate::words::sentence::{HeadlessForm, Sentence, attempts_text, round_and_purpose};
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::tool_sentence::fallback_text;
use crate::words::verdict::{RunVerdict, run_lead};
use crate::words::{badges, format};

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
            budget: Some((
                "dispatches",
                self.dispatches.into(),
                self.plan.budget.max_dispatches.into(),
            )),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let workers = format::count_noun(self.plan.workers.len() as u64, "worker");
        let tasks = format::count_noun(self.plan.budget.max_tasks.into(), "task");
        (workers, format!("max {tasks}"))
    }

    fn steps(&self, _run: &RunFold) -> Vec<RunStep> {
        let tasks = self.tasks.iter().map(|row| RunStep {
            text: format!("{} {}", row.task.id, row.task.worker),
            is_optional: !row.task.critical,
            state: match row.state {
                TaskState::Waiting => RunStepState::Waiting,
                TaskState::Running | TaskState::Retrying => RunStepState::Running,
                TaskState::Done
                | TaskState::Degraded
                | TaskState::Failed
                | TaskState::Cancelled => RunStepState::Ended,
            },
        });
        tasks.collect()
    }

    fn span_name(&self, span: &SpanKind) -> Option<Cow<'_, str>> {
        let SpanKind::Task { index } = span else { return None };
        task_at(self, *index).map(|row| row.task.id.as_str().into())
    }

    fn tell<'w>(&'w self, event: &'w Event, run: &'w RunFold, it: &mut Sentence<'w>) {
        let fact = match &event.kind {
            EventKind::Pattern(PatternFact::Orchestrator(fact)) => fact,
            // The task's own line reports it, also where its result is omitted.
            EventKind::CallFailed { .. } if is_task_call(event.span, run) => {
                return it.headless = HeadlessForm::Hidden;
            }
            EventKind::CallDegraded { by: FallbackKind::Omitted, .. } => {
                return it.headless = HeadlessForm::Hidden;
            }
            _ => return,
        };
        let row = task_of_span(self, event.span, run);
        match fact {
            OrchestratorFact::PlanAccepted { tasks } => {
                let count = format::count_noun(tasks.len() as u64, "task");
                let name = |task: &Task| format!("{} {}", task.id, task.worker);
                let all: Vec<String> = tasks.iter().map(name).collect();
                let first: Vec<String> = tasks.iter().take(MAX_NAMED_TASKS).map(label).collect();
                let mut brief = format!("{count}: {}", first.join(", "));
                if let Some(more @ 1..) = tasks.len().checked_sub(MAX_NAMED_TASKS) {
                    brief.push_str(&format!(" and {more} more"));
                }
                it.set(StyleRole::Done, format!("{count}: {}", all.join(", "))).as_step("plan");
                it.brief = Some(brief);
            }
            OrchestratorFact::TaskStarted { task, worker, .. } => {
                it.about(task.as_str()).text = worker.as_str().into();
            }
            OrchestratorFact::TaskDone { attempts } => {
                it.set(StyleRole::Done, attempts_text(*attempts));
                // The line of its call says that a fallback is used.
                if row.is_some_and(|row| row.fallback.is_none()) {
                    it.as_sign(Glyph::Done, "done");
                }
            }
            OrchestratorFact::TaskFailed { attempts, reason } => {
                let text = format!("{} after {}", reason.phrase(), attempts_text(*attempts));
                it.set(StyleRole::Failed, text)
                    .with_detail(row.and_then(|row| row.error.as_deref()).unwrap_or_default())
                    .as_sign(Glyph::Failed, "failed");
            }
            OrchestratorFact::ResultsAggregated { aggregate, overwritten, .. } => {
                let level = aggregate.get(&self.plan.level).map(level_part);
                let value = level.as_ref().map_or("none", |level| &*level.text);
                let mut text = format!("{} {value}", self.plan.level);
                if let Some(why) = level_evidence(self) {
                    text.push_str(&format!(" ({why})"));
                }
                if !overwritten.is_empty() {
                    let tasks: Vec<String> = overwritten.iter().map(short_id).collect();
                    text.push_str(&format!("; {} replaced by a later task", tasks.join(", ")));
                }
                let glyph = level.and_then(|level| level.glyph).unwrap_or(Glyph::Done);
                it.set(StyleRole::Done, text)
                    .with_detail(one_line(aggregate))
                    .as_sign(glyph, "aggregate");
            }
        }
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
        add_state(self, run, to);
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        let Some(closed) = &run.progress.closed else { return StyledLine::default() };
        let mut line = match task_error(run, closed) {
            Some(error) => StyledLine::new(badges::ended(closed.reason.class()).role, error),
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
        if let Some(error) = task_error(run, closed) {
            return verdict.because(closed, error);
        }
        // What is missing, before what the results are.
        let mut failed = self.tasks.iter().filter(|row| row.state == TaskState::Failed);
        if let Some(row) = failed.next() {
            let why = row.reason.as_ref().map_or("failed".into(), |reason| reason.phrase());
            let more = match failed.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            verdict.facts.push(format!("without {}: {why}{more}", label(&row.task)));
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

    fn reached(&self) -> Option<String> {
        Some(tasks_text(self))
    }

    fn level(&self) -> Option<(&str, StyledPart)> {
        let level = self.aggregate.as_ref()?.get(&self.plan.level)?;
        Some((&self.plan.level, level_part(level)))
    }

    fn full_subject(&self, event: &Event, run: &RunFold) -> Option<String> {
        let row = match round_and_purpose(event.span, run) {
            (_, Some(Purpose::Task { index, .. })) => task_at(self, *index),
            _ => task_of_span(self, event.span, run),
        };
        row.map(|row| label(&row.task))
    }

    fn totals(&self) -> Vec<StyledPart> {
        let tasks = format::count_noun(self.tasks.len() as u64, "task");
        vec![StyledPart::plain(format!("  {tasks}"))]
    }

    fn markdown(&self, out: &mut String) {
        add_tasks(self, out);
    }

    fn if_flag(&self, flag: &FlagName, on: bool, run: &RunFold) -> Vec<String> {
        effects(self, flag, on, run)
    }

    fn rows(&self, pane: PatternPane, run: &RunFold) -> Option<Vec<String>> {
        match pane {
            PatternPane::First => Some(task_rows(self, run)),
            PatternPane::Fourth => Some(vec![slots_text(self)]),
            PatternPane::Second | PatternPane::Third => None,
        }
    }

    fn items(&self) -> Option<Vec<String>> {
        let tasks = self.tasks.iter().map(|row| row.task.id.to_string());
        Some(std::iter::once("plan".to_owned()).chain(tasks).collect())
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        // With many tasks the first ones determine the width.
        let tasks = self.tasks.iter().take(64).map(|row| row.task.id.as_str());
        let workers = self.plan.workers.iter().map(|worker| worker.name.as_str());
        tasks.chain(workers).map(columns).max().unwrap_or(0)
    }
}

/// The critical task that stopped the run, and its error.
fn task_error(run: &RunFold, closed: &RunClosed) -> Option<String> {
    let is_task = closed.reason == StopReason::CriticalTaskFailed;
    run.stop_cause().filter(|_| is_task).map(|cause| cause.to_string())
}

/// Number of a plan's tasks that are named; the others are only counted.
const MAX_NAMED_TASKS: usize = 8;

/// A task's id and worker. The id is cut, because nothing limits its length.
fn label(task: &Task) -> String {
    format!("{} {}", short_id(&task.id), task.worker)
}

fn short_id(task: &TaskId) -> String {
    visible_within(task.as_str(), REASON_CHARS)
}

/// The task of this span, if it is the span of a task.
fn task_of_span<'w>(
    orchestrator: &'w Orchestrator,
    span: SpanId,
    run: &RunFold,
) -> Option<&'w TaskRow> {
    match run.spans.get(span)?.kind {
        SpanKind::Task { index } => task_at(orchestrator, index),
        _ => None,
    }
}

/// Whether the call executes a task.
fn is_task_call(span: SpanId, run: &RunFold) -> bool {
    let what = run.spans.get(span).map(|span| &span.kind);
    matches!(what, Some(SpanKind::Call(Purpose::Task { .. })))
}

/// Most characters of one value by which a level was decided.
const EVIDENCE_CHARS: usize = 48;

/// The task with this index.
fn task_at(orchestrator: &Orchestrator, index: u32) -> Option<&TaskRow> {
    orchestrator.tasks.get(usize::try_from(index).ok()?).map(|row| &**row)
}

/// The result of a task in one line.
pub fn task_result(row: &TaskRow) -> String {
    let result = || row.result.as_deref().map(one_line).unwrap_or_default();
    match (row.state, row.fallback, &row.reason) {
        (TaskState::Degraded, Some(fallback), _) => {
            let value = result();
            let colon = if value.is_empty() { "" } else { ": " };
            format!("{}{colon}{value}", fallback_text(fallback))
        }
        (TaskState::Failed | TaskState::Cancelled, ..) => task_cause(row).unwrap_or_default(),
        (TaskState::Done, ..) => result(),
        _ => String::new(),
    }
}

/// Why a task has no result: the error of its last attempt where the reason says only that its worker
/// failed.
pub fn task_cause(row: &TaskRow) -> Option<String> {
    Some(match (row.reason.as_ref()?, &row.error) {
        (StopReason::Worker(WorkerFault::Error | WorkerFault::BadResult, _), Some(error)) => {
            short_error(error)
        }
        (reason, _) => reason.phrase().into_owned(),
    })
}

/// How many tasks are finished, and how many of them failed: `2/4 tasks`, `1 ok, 3 failed of 4 tasks`.
pub fn tasks_text(orchestrator: &Orchestrator) -> String {
    let of = |state| orchestrator.tasks.iter().filter(|row| row.state == state).count();
    let (all, failed) = (orchestrator.tasks.len(), of(TaskState::Failed));
    let ended = orchestrator.ended();
    match failed {
        0 => format!("{ended}/{all} tasks"),
        _ => format!(
            "{} ok, {failed} failed of {all} tasks",
            of(TaskState::Done) + of(TaskState::Degraded)
        ),
    }
}

/// The state of a task in one word.
pub fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "waiting",
        TaskState::Running => "running",
        TaskState::Retrying => "retrying",
        TaskState::Done => "done",
        TaskState::Degraded => "degraded",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

/// The values by which the rule of the level holds, in words: `out of stock skus SKU-9033`. `None`: no
/// rule matched, or the log does not say.
fn level_evidence(orchestrator: &Orchestrator) -> Option<String> {
    let aggregate = orchestrator.aggregate.as_deref()?;
    let values = orchestrator.level_decided_by.iter().filter_map(|name| {
        let value = name.split('.').try_fold(aggregate, |value, field| value.get(field))?;
        let field = name.rsplit('.').next().unwrap_or(name).replace('_', " ");
        Some(format!("{field} {}", visible_within(&one_line(value), EVIDENCE_CHARS)))
    });
    let values: Vec<String> = values.collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// A level of the aggregate: its word, with the glyph and the colour of its severity if it has one.
pub fn level_part(level: &Value) -> StyledPart {
    let word = one_line(level);
    match badges::level(&word) {
        Some(badge) => StyledPart::with_glyph(badge.glyph, badge.role, word),
        None => StyledPart::plain(word),
    }
}

/// A value in one line, an object as `key: value`.
pub fn one_line(value: &Value) -> String {
    top_text(value).replace('\n', " ")
}

/// The most tasks that are listed; the others are only counted.
const MAX_TASKS: usize = 32;

/// Adds how the run ended, and its tasks: their results, or their progress.
pub(super) fn add_state(orchestrator: &Orchestrator, run: &RunFold, to: &mut StyledText) {
    if let Some(closed) = &run.progress.closed {
        add_stop(run, run_lead(run, closed), closed, to);
    }
    let level = &orchestrator.plan.level;
    if let Some(value) = orchestrator.aggregate.as_ref().and_then(|it| it.get(level)) {
        let part = level_part(value);
        to.lines.push(StyledLine { label: Some(level.clone().into()), parts: vec![part] });
    }
    for (at, row) in orchestrator.tasks.iter().take(MAX_TASKS).enumerate() {
        let label = if at == 0 { "tasks" } else { "" };
        let state = state_word(row.state);
        let text = match row.state {
            TaskState::Failed | TaskState::Degraded => {
                format!("{} {state}: {}", row.task.id, task_result(row))
            }
            _ => format!("{} {state}: {}", row.task.id, row.task.worker),
        };
        match row.state {
            TaskState::Failed => to.error(label, text),
            _ => to.item(label, StyleRole::Text, text),
        }
    }
    if let Some(more @ 1..) = orchestrator.tasks.len().checked_sub(MAX_TASKS) {
        let text = format!("and {}", format::count_noun(more as u64, "more task"));
        to.item("", StyleRole::Dim, text);
    }
}

/// The effects of switching `flag` to `on` now, one per line. A flag allows or denies workers
/// (orchestrator source document: read before each attempt).
pub(crate) fn effects(
    orchestrator: &Orchestrator,
    flag: &FlagName,
    on: bool,
    run: &RunFold,
) -> Vec<String> {
    let plan = &*orchestrator.plan;
    let mut lines = vec![match &run.progress.stage {
        RunState::Paused { at, .. } if !at.is_empty() => {
            let first = at[0].display_name();
            format!("Takes effect when the run resumes, at {first}.")
        }
        _ if orchestrator.finalize.is_some() => {
            "Too late: nothing left for it to affect.".to_owned()
        }
        _ => "Takes effect before the next attempt, or at the final answer.".to_owned(),
    }];
    let workers: Vec<_> = plan
        .workers
        .iter()
        .filter(|worker| worker.flag.as_ref() == Some(flag))
        .map(|worker| &worker.name)
        .collect();
    if workers.is_empty() {
        lines.push("No worker depends on it: only the script reads it.".to_owned());
        return lines;
    }
    for worker in workers {
        let open = orchestrator.tasks.iter().filter(|row| row.task.worker == *worker);
        let open: Vec<_> = open.filter(|row| !row.has_ended()).collect();
        lines.push(match (on, open.is_empty()) {
            (_, true) if orchestrator.tasks.is_empty() => {
                let may = if on { "may be dispatched" } else { "would be denied" };
                format!("{worker} {may}, if the plan names it.")
            }
            (_, true) => format!("No task of {worker} is open: nothing changes."),
            (true, false) => format!("{worker} may be dispatched again."),
            (false, false) => {
                let ids: Vec<&str> = open.iter().map(|row| row.task.id.as_str()).collect();
                let ids = ids.join(", ");
                format!("The next attempt of {ids} would be refused: {worker} switched off.")
            }
        });
        if !on && open.iter().any(|row| row.task.critical) {
            lines.push("The run would stop, since a required task would fail.".to_owned());
        }
        if !on && open.iter().any(|row| row.state == TaskState::Running) {
            lines.push("A running attempt continues, and counts.".to_owned());
        }
    }
    lines
}

/// The tasks, a line for each.
fn task_rows(orchestrator: &Orchestrator, run: &RunFold) -> Vec<String> {
    let tasks = orchestrator.tasks.iter();
    tasks
        .map(|row| {
            let took = row.opened.zip(row.closed).map(|(opened, closed)| {
                format!(" after {}", duration_text(run.progress.active_between(opened, closed)))
            });
            let attempts = format::count_noun(row.attempts_used.into(), "attempt");
            let cause = task_cause(row).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!(
                "{} {}: {}{}, {attempts}{cause}",
                row.task.id,
                row.task.worker,
                state_word(row.state),
                took.unwrap_or_default(),
            )
        })
        .collect()
}

/// The slots and what waits for them.
fn slots_text(tasks: &Orchestrator) -> String {
    let waiting = tasks.count(TaskState::Waiting);
    let retrying = tasks.count(TaskState::Retrying);
    format!(
        "{} of {} slots in use, {waiting} tasks wait, {retrying} retry; {} of {} tasks have ended, {} dispatches",
        tasks.running,
        tasks.max_parallel,
        tasks.ended(),
        tasks.tasks.len(),
        tasks.dispatches,
    )
}

/// Adds the tasks and their results.
fn add_tasks(orchestrator: &Orchestrator, out: &mut String) {
    if orchestrator.tasks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Tasks\n\n| task | worker | attempts | result |");
    let _ = writeln!(out, "| --- | --- | --- | --- |");
    for row in &orchestrator.tasks {
        let (id, worker) = (&row.task.id, &row.task.worker);
        let (attempts, result) = (row.attempts.len(), table_cell(&task_result(row)));
        let _ = writeln!(out, "| {id} | {worker} | {attempts} | {result} |");
    }
}
