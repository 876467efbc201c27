//! The details of a row of the waterfall as lines of text: the plan, a task with its attempts, the
//! joined results.

use super::document::{Document, Look};
use super::told::failure;
use super::told_tool::{instead, stage};
use super::{RunPage, Subject};
use crate::app::format;
use crate::event::kind::{BreakerStage, OrchestratorPlan};
use crate::event::world::orchestrator::{AttemptEnd, Orchestrator, TaskRow, TaskState};
use crate::event::world::{Stage, World};
use crate::event::{Boundary, Elapsed, EventKind};

impl RunPage {
    /// The details of the row that the page is about; empty for rows that have text of their own.
    pub fn task_document(&self, now: Elapsed) -> Document {
        let mut document = Document::default();
        let world = self.shown();
        let Some((orchestrator, plan)) = world.orchestrator() else { return document };
        match self.subject() {
            Subject::Plan => self.plan_lines(&mut document, world, orchestrator, plan),
            Subject::Task(place) => {
                if let Some(row) = orchestrator.tasks.get(place) {
                    self.task_lines(&mut document, world, orchestrator, plan, row, now);
                }
            }
            Subject::Join => join_lines(&mut document, orchestrator, plan),
            _ => {}
        }
        document
    }

    fn plan_lines(
        &self,
        document: &mut Document,
        world: &World,
        orchestrator: &Orchestrator,
        plan: &OrchestratorPlan,
    ) {
        if let Some(model) = world.models.plan() {
            document.field("model", model);
        }
        if let Some((reason, raw)) = &orchestrator.refused {
            document.text(Look::Failed, &format!("refused: {reason}"));
            if let Some(advice) = reason.advice() {
                document.add(Look::Dim, advice);
            }
            document.gap();
            document.add(Look::Head, "refused plan");
            document.json(raw);
            return;
        }
        if orchestrator.tasks.is_empty() {
            let text = match orchestrator.plan_call {
                Some(_) => "Waiting for the planner's reply.",
                None => "The planner has not been called yet.",
            };
            document.add(Look::Dim, text);
            document.field("max", format::things(plan.max_tasks.into(), "task"));
            document.gap();
            document.add(Look::Head, "available workers");
            for worker in &plan.workers {
                document.field(worker.name.as_str(), &worker.description);
            }
            return;
        }
        let count = format::things(orchestrator.tasks.len() as u64, "task");
        document.field("accepted", format!("{count} (max {})", plan.max_tasks));
        for row in &orchestrator.tasks {
            let critical = if row.task.critical { ", critical" } else { "" };
            document.field(row.task.id.as_str(), format!("{}{critical}", row.task.worker));
        }
        if !world.is_live() {
            return;
        }
        document.gap();
        document.add(Look::Dim, "Enter inspects the call, p views its prompt.");
    }

    fn task_lines(
        &self,
        document: &mut Document,
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
        let args = serde_json::to_string(&*task.args).unwrap_or_default();
        document.field("args", if task.args.is_empty() { "none" } else { &args });
        if !row.args_hash.is_empty() {
            document.field("args hash", &row.args_hash);
        }
        document.field("critical", if task.critical { "yes: no report without it" } else { "no" });
        if let Some(flag) = worker.and_then(|worker| worker.flag.as_ref()) {
            let on = world.flags.iter().any(|it| it.name == *flag && it.on);
            let now = if on { "on" } else { "off: its next attempt is denied" };
            document.field("flag", format!("{flag}, {now}"));
        }
        self.standing(document, world, orchestrator, row, now);
        self.attempt_lines(document, row, now);
        if let Some(reason) = &row.reason {
            document.gap();
            let look = match row.state {
                TaskState::Failed => Look::Failed,
                _ => Look::Text,
            };
            document.text(look, &format!("reason: {reason}"));
            if let Some(advice) = reason.advice() {
                document.add(Look::Dim, advice);
            }
        }
        if let Some(stand_in) = row.stand_in {
            document.field("fallback", instead(stand_in));
        }
        if let Some(tool) = world.tools.get(task.worker.as_str()) {
            let of = |percent| tool.latencies.percentile(percent).map(format::took);
            if let (Some(p50), Some(p95)) = (of(50), of(95)) {
                document.gap();
                let calls = format::things(tool.latencies.count(), "call");
                document.field("latency", format!("p50 {p50}  p95 {p95}  of {calls}"));
            }
            if !matches!(tool.stage, BreakerStage::Closed | BreakerStage::Disabled) {
                document.field("breaker", format!("{}: t opens the tools", stage(tool.stage)));
            }
        }
    }

    /// Adds what the task waits for, and how long it has been running.
    fn standing(
        &self,
        document: &mut Document,
        world: &World,
        orchestrator: &Orchestrator,
        row: &TaskRow,
        now: Elapsed,
    ) {
        if let Some(waits) = waits_for(world, orchestrator, row, now) {
            document.field("waits", waits);
        }
        if let Some(opened) = row.opened {
            let took = format::took(world.took(opened, row.closed.unwrap_or(now)));
            let since = format!("{took}, since {}", format::moment(opened));
            let name = if row.is_over() { "took" } else { "running" };
            document.field(name, since);
        }
    }

    fn attempt_lines(&self, document: &mut Document, row: &TaskRow, now: Elapsed) {
        let world = self.shown();
        if row.attempts.is_empty() {
            return;
        }
        document.gap();
        let mut before: Option<Elapsed> = row.opened;
        for bar in &row.attempts {
            let took = format::took(bar.closed.unwrap_or(now).since(bar.opened));
            let waited = before.map(|before| world.took(before, bar.opened)).unwrap_or_default();
            let waited = match waited.as_millis() {
                0 => String::new(),
                _ => format!(", waited {}", format::took(waited)),
            };
            let closing = bar.span.and_then(|span| self.closing(span)).map(|event| &event.kind);
            let (look, what) = match (bar.end, closing) {
                (AttemptEnd::Out, _) => (Look::Running, format!("waiting for {took}")),
                (AttemptEnd::Answered, _) => (Look::Done, format!("answered in {took}")),
                (AttemptEnd::Refused, _) => (Look::Failed, "not made: refused".to_owned()),
                (AttemptEnd::Failed(_), Some(EventKind::AttemptFailed(failed))) => {
                    let short = failure(failed.class, failed.status);
                    (Look::Failed, format!("{short} after {took}"))
                }
                (AttemptEnd::Failed(class), _) => {
                    (Look::Failed, format!("{} after {took}", class.word()))
                }
            };
            document.add(look, format!("attempt {}  {what}{waited}", bar.number));
            before = bar.closed;
        }
    }
}

/// What a task waits for; `None` if it does not wait.
pub fn waits_for(
    world: &World,
    orchestrator: &Orchestrator,
    row: &TaskRow,
    now: Elapsed,
) -> Option<String> {
    if !world.is_live() || row.is_over() {
        return None;
    }
    if let Stage::Paused { at, .. } = &world.stage {
        let attempt = u32::try_from(row.attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let here = Boundary::Dispatch { task: row.task.id.clone(), attempt }.id();
        if at.contains(&here) {
            return Some(format!("rests before attempt {attempt}"));
        }
    }
    match row.state {
        TaskState::Waiting => Some(format!("for a slot (max {})", orchestrator.max_parallel)),
        TaskState::Retrying => {
            let left = row.retry_at.map(|at| at.since(now)).unwrap_or_default();
            Some(format!("for the next attempt in {}", format::took(left)))
        }
        _ => None,
    }
}

fn join_lines(document: &mut Document, orchestrator: &Orchestrator, plan: &OrchestratorPlan) {
    let Some(aggregate) = &orchestrator.aggregate else {
        let open: Vec<&str> = orchestrator
            .tasks
            .iter()
            .filter(|row| !row.is_over())
            .take(20)
            .map(|row| row.task.id.as_str())
            .collect();
        let text = match open.as_slice() {
            [] => "The results are combined when every task has ended.".to_owned(),
            open => format!("Waiting for {}.", open.join(", ")),
        };
        document.text(Look::Dim, &text);
        return;
    };
    if let Some(level) = aggregate.get(&plan.level) {
        document.field(&plan.level, super::results::bare(level));
    }
    if !orchestrator.overwritten.is_empty() {
        let tasks: Vec<&str> = orchestrator.overwritten.iter().map(|id| id.as_str()).collect();
        document.field("replaced", format!("{} (by a later task)", tasks.join(", ")));
    }
    document.gap();
    document.add(Look::Head, "aggregate");
    document.json(aggregate);
}
