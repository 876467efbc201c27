//! What the rest of the program asks the projection of an orchestrator.

use super::Orchestrator;
use crate::event::kind::{FallbackKind, Purpose};
use crate::event::world::outcome::{OutcomeFields, Replaced};
use crate::event::world::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::event::{Boundary, BoundaryId, Event, EventKind, Seq, SpanId};
use crate::pattern::orchestrator::facts::OrchestratorFact;

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
        let failed =
            matches!(OrchestratorFact::of(&event.kind), Some(OrchestratorFact::TaskFailed { .. }));
        failed.then_some(MarkKind::Failed)
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
        match &event.kind {
            EventKind::Pattern(_) => cause_of_fact(event, run, log),
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Task { .. } => run.spans.opened_by(call.parent),
                Purpose::Finalize => last_fact(event.seq, log, |fact| {
                    matches!(fact, OrchestratorFact::ResultsAggregated { .. })
                }),
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

/// The last fact before `seq` that matches.
fn last_fact(seq: Seq, log: &dyn EventLog, so: fn(&OrchestratorFact) -> bool) -> Option<Seq> {
    log.last_before(seq, &|event| OrchestratorFact::of(&event.kind).is_some_and(so))
}

fn cause_of_fact(event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
    let before = |so| last_fact(event.seq, log, so);
    match OrchestratorFact::of(&event.kind)? {
        OrchestratorFact::PlanAccepted { .. } => run.spans.closed_by(event.span),
        OrchestratorFact::TaskStarted { .. } => {
            before(|fact| matches!(fact, OrchestratorFact::PlanAccepted { .. }))
        }
        OrchestratorFact::TaskDone { .. } | OrchestratorFact::TaskFailed { .. } => {
            run.spans.last_child(event.span)?.closed_by
        }
        OrchestratorFact::ResultsAggregated { .. } => before(|fact| {
            matches!(fact, OrchestratorFact::TaskDone { .. } | OrchestratorFact::TaskFailed { .. })
        }),
    }
}
