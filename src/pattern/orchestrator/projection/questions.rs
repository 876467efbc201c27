//! What the rest of the program asks the projection of an orchestrator.

use super::Orchestrator;
use crate::event::kind::{FallbackKind, Purpose};
use crate::event::world::outcome::{OutcomeFields, Replaced};
use crate::event::world::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::event::{Boundary, BoundaryId, Event, EventKind, Seq, SpanId};

impl Projection for Orchestrator {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn replaced(&self) -> Option<Vec<Replaced>> {
        let rows = self.tasks.iter().filter(|row| row.is_replaced()).map(|row| Replaced {
            tool: row.task.worker.clone(),
            task_id: Some(row.task.id.clone()),
            by: row.fallback.unwrap_or(FallbackKind::Omitted),
            times: None,
            reason: row.reason.clone(),
        });
        Some(rows.collect())
    }

    fn is_degraded(&self) -> bool {
        self.tasks.iter().any(|row| row.is_replaced())
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        matches!(event.kind, EventKind::TaskFailed { .. }).then_some(MarkKind::Failed)
    }

    fn call_of(&self, event: &Event, run: &RunFold) -> Option<SpanId> {
        match (&event.kind, run.spans.get(event.span).map(|span| &span.kind)) {
            (EventKind::AnswerComposed { .. }, _) => self.finalize,
            (_, Some(SpanKind::Task { index })) => {
                self.tasks.get(usize::try_from(*index).ok()?)?.call
            }
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        let before = |so: fn(&EventKind) -> bool| log.last_before(event.seq, &|it| so(&it.kind));
        match &event.kind {
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
            EventKind::PlanAccepted { .. } => run.spans.closed_by(event.span),
            EventKind::TaskStarted { .. } => {
                before(|kind| matches!(kind, EventKind::PlanAccepted { .. }))
            }
            EventKind::TaskDone { .. } | EventKind::TaskFailed { .. } => {
                run.spans.last_child(event.span)?.closed_by
            }
            EventKind::ResultsAggregated { .. } => before(|kind| {
                matches!(kind, EventKind::TaskDone { .. } | EventKind::TaskFailed { .. })
            }),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Task { .. } => run.spans.opened_by(call.parent),
                Purpose::Finalize => {
                    before(|kind| matches!(kind, EventKind::ResultsAggregated { .. }))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn tool_of(&self, purpose: &Purpose) -> Option<&str> {
        let Purpose::Task { index, .. } = purpose else { return None };
        let row = self.tasks.get(usize::try_from(*index).ok()?)?;
        Some(row.task.worker.as_str())
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        // The only boundaries that come exactly once.
        let planned = self.plan_call.is_some();
        Ok(if planned { Boundary::Finalize } else { Boundary::Plan }.id())
    }
}
