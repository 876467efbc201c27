//! Pane 2 of an orchestrator: details of the selected or current row of the waterfall; at the end
//! the outcome.

use std::fmt;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::waterfall::WaterfallRow;
use super::{OrchestratorView, TaskSubject};
use crate::base::time;
use crate::log::event::{Boundary, BreakerStage, Elapsed, EventKind};
use crate::log::facts::orchestrator::OrchestratorPlan;
use crate::log::world::orchestrator::{AttemptEnd, Orchestrator, TaskRow, TaskState};
use crate::log::world::{RunState, World};
use crate::scenario::spec::script::ScriptStep;
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::text_area;
use crate::screen::run::speech;
use crate::screen::scroll::draw_scrolled;
use crate::screen::theme::{StateSign, Theme};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::patterns::orchestrator::{one_line, state_word};
use crate::words::readable::fields_text;
use crate::words::sentence::failure_name;
use crate::words::styled::{StyleRole, StyledText};
use crate::words::tool_sentence::{breaker_state, fallback_text};

/// The details of the row that the page is about; empty for rows that have text of their own.
pub fn task_document(run: &RunData, subject: TaskSubject, now: Elapsed) -> StyledText {
    let mut document = StyledText::default();
    let world = run.shown();
    let Some(orchestrator) = world.orchestrator() else { return document };
    let plan = &*orchestrator.plan;
    match subject {
        TaskSubject::Plan => add_plan(&mut document, world, orchestrator, plan),
        TaskSubject::Task(place) => {
            if let Some(row) = orchestrator.tasks.get(place) {
                add_task(run, &mut document, world, orchestrator, plan, row, now);
            }
        }
        TaskSubject::Join => add_join(&mut document, orchestrator, plan),
        _ => {}
    }
    document
}

fn add_plan(
    document: &mut StyledText,
    world: &World,
    orchestrator: &Orchestrator,
    plan: &OrchestratorPlan,
) {
    if let Some(model) = world.models.for_step(ScriptStep::Plan) {
        document.field("model", model);
    }
    if let Some((reason, raw)) = &orchestrator.refused {
        document.text(StyleRole::Failed, &format!("refused: {}", reason.phrase()));
        if let Some(advice) = reason.advice() {
            document.add(StyleRole::Dim, advice);
        }
        document.gap();
        document.heading("refused plan");
        document.json(raw);
        return;
    }
    if orchestrator.tasks.is_empty() {
        let text = match orchestrator.plan_call {
            Some(_) => "No plan yet: it comes with the planner's reply.",
            None => "No plan yet: the planner is called first.",
        };
        document.add(StyleRole::Dim, text);
        document.field("max", format::count_noun(plan.budget.max_tasks.into(), "task"));
        document.gap();
        document.heading("available workers");
        for worker in &plan.workers {
            document.field(worker.name.as_str(), &worker.description);
        }
        return;
    }
    let count = format::count_noun(orchestrator.tasks.len() as u64, "task");
    document.field("accepted", format!("{count} (max {})", plan.budget.max_tasks));
    for row in &orchestrator.tasks {
        let critical = if row.task.critical { ", critical" } else { "" };
        document.field(row.task.id.as_str(), format!("{}{critical}", row.task.worker));
    }
    if !world.progress.is_live() {
        return;
    }
    document.gap();
    let (inspect, prompt) = (key_of(Action::Inspect), key_of(Action::Prompt));
    let text = format!("{inspect} inspects the call, {prompt} views its prompt.");
    document.add(StyleRole::Dim, text);
}

fn add_task(
    run: &RunData,
    document: &mut StyledText,
    world: &World,
    orchestrator: &Orchestrator,
    plan: &OrchestratorPlan,
    row: &TaskRow,
    now: Elapsed,
) {
    let task = &row.task;
    let worker = plan.workers.iter().find(|worker| worker.name == task.worker);
    document.field("worker", task.worker.as_str());
    if let Some(worker) = worker.filter(|worker| !worker.description.is_empty()) {
        document.field("", &worker.description);
    }
    let args = fields_text(&task.args);
    document.field("args", if task.args.is_empty() { "none" } else { &args });
    document.field("critical", if task.critical { "yes: no report without it" } else { "no" });
    if let Some(flag) = worker.and_then(|worker| worker.flag.as_ref()) {
        let on = world.settings.flags.iter().any(|it| it.name == *flag && it.on);
        let now = if on { "on" } else { "off: its next attempt is denied" };
        document.field("flag", format!("{flag}, {now}"));
    }
    add_wait_and_duration(document, world, orchestrator, row, now);
    add_attempts(run, document, row, now);
    if let Some(reason) = &row.reason {
        document.gap();
        let look = match row.state {
            TaskState::Failed => StyleRole::Failed,
            _ => StyleRole::Text,
        };
        document.text(look, &format!("reason: {}", reason.phrase()));
        if let Some(advice) = reason.advice() {
            document.add(StyleRole::Dim, advice);
        }
    }
    if let Some(fallback) = row.fallback {
        document.field("fallback", fallback_text(fallback));
    }
    if let Some(tool) = world.tools.get(task.worker.as_str()) {
        let of = |percent| tool.latencies.percentile(percent).map(time::duration_text);
        if let (Some(p50), Some(p95)) = (of(50), of(95)) {
            document.gap();
            let calls = format::count_noun(tool.latencies.count(), "call");
            document.field("latency", format!("p50 {p50}  p95 {p95}  of {calls}"));
        }
        if !matches!(tool.breaker, BreakerStage::Closed | BreakerStage::Disabled) {
            let (state, key) = (breaker_state(tool.breaker), key_of(Action::Tools));
            document.field("breaker", format!("{state}: {key} opens the tools"));
        }
    }
}

/// Adds what the task waits for, and how long it has been running.
fn add_wait_and_duration(
    document: &mut StyledText,
    world: &World,
    orchestrator: &Orchestrator,
    row: &TaskRow,
    now: Elapsed,
) {
    if let Some(wait) = task_wait(world, orchestrator, row, now) {
        document.field("waits", wait.to_string());
    }
    if let Some(opened) = row.opened {
        let took =
            time::duration_text(world.progress.active_between(opened, row.closed.unwrap_or(now)));
        let since =
            format!("{took}, since {}", format::time_in_run(world.progress.run_time(opened)));
        let name = if row.has_ended() { "took" } else { "running" };
        document.field(name, since);
    }
}

fn add_attempts(run: &RunData, document: &mut StyledText, row: &TaskRow, now: Elapsed) {
    let world = run.shown();
    if row.attempts.is_empty() {
        return;
    }
    document.gap();
    let mut before: Option<Elapsed> = row.opened;
    for bar in &row.attempts {
        let took = world.progress.active_between(bar.opened, bar.closed.unwrap_or(now));
        let took = time::duration_text(took);
        let waited = before
            .map(|before| world.progress.active_between(before, bar.opened))
            .unwrap_or_default();
        let waited = match waited.as_millis() {
            0 => String::new(),
            _ => format!(", waited {}", time::duration_text(waited)),
        };
        let closing = bar.span.and_then(|span| run.closing_event(span)).map(|event| &event.kind);
        let (look, what) = match (bar.end, closing) {
            (AttemptEnd::InFlight, _) => (StyleRole::Running, format!("running {took}")),
            (AttemptEnd::Answered, _) => (StyleRole::Done, format!("answered in {took}")),
            (AttemptEnd::Refused, _) => (StyleRole::Failed, "not made: refused".to_owned()),
            (AttemptEnd::Failed(_), Some(EventKind::AttemptFailed(failed))) => {
                let short = failure_name(failed.class, failed.status);
                (StyleRole::Failed, format!("{short} after {took}"))
            }
            (AttemptEnd::Failed(class), _) => {
                (StyleRole::Failed, format!("{} after {took}", class.phrase()))
            }
        };
        document.add(look, format!("attempt {}  {what}{waited}", bar.number));
        before = bar.closed;
    }
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskWait {
    /// The run is paused before this attempt.
    Paused {
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// For one of these slots.
    Slot {
        /// The concurrency limit.
        max: u32,
    },
    /// Slots are free, but the run is held.
    Held,
    /// For its next attempt.
    Retry {
        /// Time until then.
        left: Duration,
    },
}

impl fmt::Display for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Paused { attempt } => write!(f, "paused before attempt {attempt}"),
            Self::Slot { max } => write!(f, "for a slot (max {max})"),
            Self::Held => f.write_str("until the run continues"),
            Self::Retry { left } => {
                write!(f, "for the next attempt in {}", time::duration_text(left))
            }
        }
    }
}

/// What a task waits for; `None` if it does not wait.
pub(super) fn task_wait(
    world: &World,
    orchestrator: &Orchestrator,
    row: &TaskRow,
    now: Elapsed,
) -> Option<TaskWait> {
    if !world.progress.is_live() || row.has_ended() {
        return None;
    }
    if let RunState::Paused { at, .. } = &world.progress.stage {
        let attempt = u32::try_from(row.attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let here = Boundary::Dispatch { task: row.task.id.clone(), attempt }.id();
        if at.contains(&here) {
            return Some(TaskWait::Paused { attempt });
        }
    }
    match row.state {
        TaskState::Waiting if is_held(world, orchestrator) => Some(TaskWait::Held),
        TaskState::Waiting => Some(TaskWait::Slot { max: orchestrator.max_parallel }),
        TaskState::Retrying => {
            Some(TaskWait::Retry { left: row.retry_at.map(|at| at.since(now)).unwrap_or_default() })
        }
        _ => None,
    }
}

/// Whether tasks wait because the run pauses or is stepped, and not for a slot.
fn is_held(world: &World, orchestrator: &Orchestrator) -> bool {
    let stops = matches!(world.progress.stage, RunState::Pausing { .. } | RunState::Paused { .. });
    stops && orchestrator.running < orchestrator.max_parallel
}

fn add_join(document: &mut StyledText, orchestrator: &Orchestrator, plan: &OrchestratorPlan) {
    let Some(aggregate) = &orchestrator.aggregate else {
        let open: Vec<&str> = orchestrator
            .tasks
            .iter()
            .filter(|row| !row.has_ended())
            .take(20)
            .map(|row| row.task.id.as_str())
            .collect();
        let text = match open.as_slice() {
            [] => "The results are combined when every task has ended.".to_owned(),
            open => format!("Waiting for {}.", open.join(", ")),
        };
        document.text(StyleRole::Dim, &text);
        return;
    };
    if let Some(level) = aggregate.get(&plan.level) {
        document.field(&plan.level, one_line(level));
    }
    if !orchestrator.overwritten.is_empty() {
        let tasks: Vec<&str> = orchestrator.overwritten.iter().map(|id| id.as_str()).collect();
        document.field("replaced", format!("{} (by a later task)", tasks.join(", ")));
    }
    document.gap();
    document.heading("aggregate");
    document.json(aggregate);
}

pub(crate) fn render(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    if !view.shows_document(data) {
        return speech::render(&view.text_pane(data), data, cx, area, buf);
    }
    let document = task_document(data, view.subject(data), data.drawn_to(cx.now));
    draw_scrolled(cx, text_area(area), &document, view.scroll().unwrap_or_default(), buf);
}

/// Title and state of the pane.
pub(crate) fn title(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
) -> (String, Option<StateSign>) {
    let world = data.shown();
    let Some(orchestrator) = world.orchestrator() else { return (String::new(), None) };
    let sign = |row| Some(row_sign(cx, world, orchestrator, row));
    match view.subject(data) {
        TaskSubject::Plan => ("plan".to_owned(), sign(WaterfallRow::Plan)),
        TaskSubject::Task(task) => {
            let name = orchestrator.tasks.get(task).map(|row| {
                format!("{} {} {}", row.task.id, cx.glyphs.symbol(Glyph::Dot), row.task.worker)
            });
            (name.unwrap_or_default(), sign(WaterfallRow::Task(task)))
        }
        TaskSubject::Join => ("join".to_owned(), sign(WaterfallRow::Join)),
        TaskSubject::Finalize => ("report".to_owned(), sign(WaterfallRow::Report)),
        TaskSubject::Outcome => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        TaskSubject::None => ("Task".to_owned(), None),
    }
}

pub(super) fn row_sign(
    cx: &DrawContext,
    world: &World,
    orchestrator: &Orchestrator,
    row: WaterfallRow,
) -> StateSign {
    let live = world.progress.is_live();
    let of = |glyph, word, role| StateSign { glyph, word, style: cx.theme.style(role) };
    let waiting = |live: bool| match live {
        true => of(Glyph::Waiting, "waiting", StyleRole::Waiting),
        false => of(Glyph::Off, "not reached", StyleRole::Off),
    };
    let going = |live: bool, word| match live {
        true => of(Glyph::Running, word, StyleRole::Running),
        false => of(Glyph::Failed, "stopped", StyleRole::Failed),
    };
    match row {
        WaterfallRow::Plan => match (&orchestrator.refused, orchestrator.plan_call) {
            (Some(_), _) => of(Glyph::Refused, "refused", StyleRole::Refused),
            _ if !orchestrator.tasks.is_empty() => of(Glyph::Done, "accepted", StyleRole::Done),
            (None, Some(_)) => going(live, "planning"),
            (None, None) => waiting(live),
        },
        WaterfallRow::Task(task) => match orchestrator.tasks.get(task) {
            Some(row) => task_sign(cx, world, row),
            None => waiting(live),
        },
        WaterfallRow::Join => match orchestrator.aggregate {
            Some(_) => of(Glyph::Done, "joined", StyleRole::Done),
            None => waiting(live),
        },
        WaterfallRow::Report => match (&world.progress.answer, orchestrator.finalize) {
            (Some(_), _) if !world.progress.answer_end.is_whole() => {
                of(Glyph::Alert, "cut", StyleRole::Retry)
            }
            (Some(_), _) => of(Glyph::Done, "composed", StyleRole::Done),
            (None, Some(_)) => going(live, "writing"),
            (None, None) => waiting(live),
        },
    }
}

/// The state of a task. After the run's end no task is waiting or running.
pub(super) fn task_sign(cx: &DrawContext, world: &World, row: &TaskRow) -> StateSign {
    match (&world.progress.stage, row.state) {
        (RunState::Closed, TaskState::Waiting) => {
            StateSign { word: "not started", ..state_sign(cx.theme, TaskState::Cancelled) }
        }
        (RunState::Closed, TaskState::Running | TaskState::Retrying) => {
            state_sign(cx.theme, TaskState::Cancelled)
        }
        (_, TaskState::Running)
            if row.span.is_some_and(|span| world.question_within(span).is_some()) =>
        {
            cx.theme.waits()
        }
        (_, state) => state_sign(cx.theme, state),
    }
}

/// The sign of a task's progress.
pub(crate) fn state_sign(theme: &Theme, state: TaskState) -> StateSign {
    let (glyph, role) = match state {
        TaskState::Waiting => (Glyph::Waiting, StyleRole::Waiting),
        TaskState::Running => (Glyph::Running, StyleRole::Running),
        TaskState::Retrying => (Glyph::Retry, StyleRole::Retry),
        TaskState::Done => (Glyph::Done, StyleRole::Done),
        TaskState::Degraded => (Glyph::Alert, StyleRole::Retry),
        TaskState::Failed => (Glyph::Failed, StyleRole::Failed),
        TaskState::Cancelled => (Glyph::Off, StyleRole::Off),
    };
    theme.sign(glyph, state_word(state), role)
}
