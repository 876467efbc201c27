//! An attempt of a run that is executed again: its recorded result, or what to do if the run stopped
//! while it was in flight.

use super::call_scope::CallScope;
use super::guard::Guard;
use crate::bus::{RecordedAttemptStep, Replay, late_answer};
use crate::event::kind::{AttemptFailed, Reply};
use crate::event::{EventKind, SpanId};
use crate::scenario::spec::in_doubt::InDoubt;

/// What an attempt of a model or tool returned, if the recording has it. `None`: the attempt is made
/// now.
pub(super) async fn recorded_result(
    replay: &Replay,
    scope: &dyn CallScope,
    guard: &Guard,
    span: SpanId,
) -> Option<Result<Reply, Box<AttemptFailed>>> {
    loop {
        match replay.recorded_step(span).await {
            RecordedAttemptStep::Unknown { in_doubt: false } => return None,
            RecordedAttemptStep::Unknown { in_doubt: true } => {
                // What was paid already is not asked again.
                if scope.has_effects()
                    && let Some(reply) = late_answer(scope.bus(), span).await
                {
                    return Some(Ok(Reply { adopted: true, ..reply }));
                }
                let idempotent = guard.policy().0.idempotent;
                let decision = if idempotent { InDoubt::Retry } else { scope.in_doubt() };
                settle(scope, guard, span, decision).await;
                return None;
            }
            RecordedAttemptStep::Event(event) => match &event.kind {
                EventKind::AttemptAnswered(reply) => return Some(Ok((**reply).clone())),
                EventKind::AttemptFailed(failed) => return Some(Err(failed.clone())),
                EventKind::CallInDoubt { decision, .. } => {
                    settle(scope, guard, span, *decision).await;
                }
                _ => return None,
            },
        }
    }
}

/// Counts what an attempt in doubt may have cost, and does what was decided.
async fn settle(scope: &dyn CallScope, guard: &Guard, span: SpanId, decision: InDoubt) {
    let (tool, usage) = (guard.name().clone(), scope.usage_in_doubt());
    scope.bus().publish(span, EventKind::CallInDoubt { tool: tool.clone(), decision, usage });
    if decision != InDoubt::Retry {
        scope.settle_doubt(tool, decision).await;
    }
}
