//! One attempt of a call: its timeout, containment of its panics, injected faults (seeded, so a run
//! repeats), and what follows a failure: the breaker's verdict and the retry.
//!
//! In a run that is executed again, an attempt waits for its turn and takes its recorded result. If
//! it was in flight when the run stopped, it is in doubt, and the scenario says what to do. These
//! rare waits are boxed, because otherwise the future of every call would be larger.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};

use super::breaker::{AttemptVerdict, Recorded};
use super::guard::{BreakerPermit, CallGuard};
use super::retry::RetryDecision;
use super::{CallScope, retry};
use crate::base::catch_panic::CatchPanic;
use crate::base::seeded_random::happens_with;
use crate::base::time::millis;
use crate::log::bus::{Bus, late_answer};
use crate::log::clock::Clock;
use crate::log::event::{
    AttemptFailed, Event, EventKind, FailureClass, Reply, RetryLimit, SpanId, StopReason,
};
use crate::log::replay::{CallStep, RecordedAttemptStep, Replay};
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::policy::{BreakerCounts, CallPolicy};
use crate::scenario::spec::tool::InjectedFault;

/// A failed attempt whose verdict the breaker has not received yet.
pub(crate) struct FailedAttempt<'a> {
    /// Span of the attempt, already closed.
    pub span: SpanId,
    pub failed: Box<AttemptFailed>,
    /// The breaker's ticket. The bulkhead already has its permit back.
    pub permit: BreakerPermit<'a>,
}

impl FailedAttempt<'_> {
    /// The request is sent again in an adapted form: the breaker ignores this failure.
    pub fn settle_adapted(self, bus: &Bus, guard: &CallGuard) -> Box<AttemptFailed> {
        publish_if_stale(bus, self.span, guard, self.permit.settle(AttemptVerdict::Neither), false);
        self.failed
    }

    /// Records the failure with the breaker and decides on a retry: `Ok` with the wait before it,
    /// or `Err` with the limit that prevents it, if a limit does.
    pub fn settle(
        self,
        bus: &Bus,
        guard: &CallGuard,
        policy: &CallPolicy,
        next: RetryDecision,
        left: Duration,
    ) -> (Box<AttemptFailed>, Result<Duration, Option<RetryLimit>>) {
        let Self { span, failed, permit: leave } = self;
        let settle = |leave: BreakerPermit<'_>, counts: bool| {
            let of_tool = failed.class.is_failure_of_tool(failed.status);
            let verdict = match counts && of_tool {
                true => AttemptVerdict::of_result(true, failed.slow),
                false => AttemptVerdict::Neither,
            };
            let recorded = leave.settle(verdict);
            publish_if_stale(bus, span, guard, recorded, false);
            recorded
        };
        let by_calls = policy.breaker.is_some_and(|it| it.counts == BreakerCounts::Calls);
        // A probe's verdict is recorded at once: while it is out, the breaker refuses all other
        // attempts.
        let undecided = match by_calls && !leave.is_probe() {
            true => Some(leave),
            false if settle(leave, true) == Recorded::Opened => return (failed, Err(None)),
            false => None,
        };
        let follows = match next {
            RetryDecision::Retry(wait) => guard.take_retry().map(|()| wait).map_err(Some),
            RetryDecision::TooLate(wait) => Err(Some(RetryLimit::Deadline {
                wait_ms: millis(wait),
                left_ms: millis(left),
                requested: retry::honoured_retry_after(policy, &failed) == Some(wait),
            })),
            RetryDecision::OnlyTimeouts => Err(Some(RetryLimit::OnlyTimeouts)),
            RetryDecision::GiveUp => Err(None),
        };
        if let Some(leave) = undecided {
            settle(leave, follows.is_err());
        }
        (failed, follows)
    }
}

/// Publishes that a result arrived after the breaker had changed state, if it did.
pub(super) fn publish_if_stale(
    bus: &Bus,
    span: SpanId,
    guard: &CallGuard,
    recorded: Recorded,
    ok: bool,
) {
    if recorded == Recorded::Stale {
        bus.publish(span, EventKind::ResultIgnored { tool: guard.name().clone(), success: ok });
    }
}

/// What an attempt of a model or tool returned, if the recording has it; until then its questions are
/// asked again. They are withdrawn before a person is asked about an attempt in doubt. `None`: the attempt
/// is made now.
pub(super) async fn recorded_result(
    replay: &Replay,
    scope: &dyn CallScope,
    guard: &CallGuard,
    span: SpanId,
) -> Option<Result<Reply, Box<AttemptFailed>>> {
    let mut questions = scope.repeat_questions(span);
    loop {
        let step = match questions.take() {
            None => replay.recorded_step(span).await,
            Some(asked) => tokio::select! {
                biased;
                step = replay.recorded_step(span) => step,
                () = asked => return None,
            },
        };
        match step {
            RecordedAttemptStep::Unknown { in_doubt: false } => return None,
            RecordedAttemptStep::Unknown { in_doubt: true } => {
                // A reply that a former owner has paid is used, not requested again.
                if scope.has_effects()
                    && let Some(reply) = late_answer(scope.bus(), span).await
                {
                    return Some(Ok(Reply { adopted: true, ..reply }));
                }
                let idempotent = guard.policy().0.idempotent;
                let decision = if idempotent { InDoubt::Retry } else { scope.in_doubt() };
                return settle(scope, guard, span, decision).await;
            }
            RecordedAttemptStep::Event(event) => match &event.kind {
                EventKind::AttemptAnswered(reply) => return Some(Ok((**reply).clone())),
                EventKind::AttemptFailed(failed) => return Some(Err(failed.clone())),
                EventKind::CallInDoubt { decision, .. } => {
                    if let Some(result) = settle(scope, guard, span, *decision).await {
                        return Some(result);
                    }
                    // A person has decided now: no process has made the call since.
                    let later = &replay.recording().events()[event.seq.0 as usize..];
                    let of_attempt = |event: &&Arc<Event>| event.span == span;
                    let is_answer =
                        |event: &Arc<Event>| matches!(event.kind, EventKind::QuestionAnswered(_));
                    if *decision == InDoubt::Ask && !later.iter().filter(of_attempt).any(is_answer)
                    {
                        return None;
                    }
                }
                _ => return None,
            },
        }
    }
}

/// Counts the possible cost of an attempt in doubt, and carries out the decision. `Some`: the result
/// of the attempt, which is not made again.
async fn settle(
    scope: &dyn CallScope,
    guard: &CallGuard,
    span: SpanId,
    decision: InDoubt,
) -> Option<Result<Reply, Box<AttemptFailed>>> {
    let tool = scope.called().unwrap_or_else(|| guard.name()).clone();
    let usage = scope.usage_in_doubt();
    scope.bus().publish(span, EventKind::CallInDoubt { tool: tool.clone(), decision, usage });
    if decision == InDoubt::Retry {
        return None;
    }
    let result = scope.settle_doubt(span, tool, decision).await?;
    Some(Ok(Reply::from_tool_result(result)))
}

/// The turns of one call. A run that is not executed again has none: every wait ends at once.
#[derive(Clone, Copy, Default)]
pub struct CallTurn<'a>(Option<(&'a Replay, SpanId)>);

impl<'a> CallTurn<'a> {
    /// Waits until a call may start with this event.
    pub async fn start(bus: &Bus, event: &EventKind) {
        if let Some(replay) = bus.replay() {
            Box::pin(replay.turn(CallStep::Start(event))).await;
        }
    }

    /// The turns of a call that has started.
    pub fn of(bus: &'a Bus, call: SpanId) -> Self {
        let replay = bus.replay().filter(|replay| !replay.is_live());
        Self(replay.map(|replay| (replay, call)))
    }

    /// Waits until the call may continue.
    pub async fn wait(self) {
        if let Some((replay, call)) = self.0 {
            Box::pin(replay.turn(CallStep::Continue(call))).await;
        }
    }

    /// Waits for this future; a replayed run waits for its turn.
    pub async fn wait_or(self, until: BoxFuture<'_, ()>) {
        match self.0 {
            Some(_) => self.wait().await,
            None => until.await,
        }
    }

    /// Whether the rate refused the next attempt; `None` if it is not recorded.
    pub fn is_refused_by_rate(self) -> Option<bool> {
        let (replay, call) = self.0?;
        let next = &replay.recorded_turn(call)?.kind;
        Some(matches!(next, EventKind::AttemptRefused { reason: StopReason::RateReached(_), .. }))
    }

    /// The end of a wait in the queue of a tool: the call leaves the queue in its turn.
    pub fn give_up(self, time_up: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        match self.0 {
            Some((replay, call)) => {
                Box::pin(time_up.then(move |()| replay.turn(CallStep::GiveUp(call))))
            }
            None => time_up,
        }
    }

    /// The time of a decision by a breaker that refuses until `end`. A log has the time of an event,
    /// not of the decision before it, so the recorded decision shows whether it was before or after
    /// `end`.
    pub fn decided_at(self, now: Instant, end: Option<Instant>) -> Instant {
        match (end, self.is_let_through()) {
            (Some(end), Some(true)) => now.max(end),
            (Some(end), Some(false)) => now.min(end - Duration::from_nanos(1)),
            _ => now,
        }
    }

    /// Whether the breaker let the next attempt through, or refused it for some time; `None` if
    /// neither is recorded.
    fn is_let_through(self) -> Option<bool> {
        let (replay, call) = self.0?;
        match &replay.recorded_turn(call)?.kind {
            EventKind::AttemptRefused {
                reason: StopReason::CircuitOpen(_), retry_in_ms, ..
            } => retry_in_ms.map(|_| false),
            _ => Some(true),
        }
    }
}

/// Runs an attempt with a timeout and contains its panics; `None` is a timeout. Allocates nothing for
/// an attempt that is ready at once.
///
/// # Errors
/// The attempt's own failure, or a panic.
pub async fn run_within<T>(
    limit: Duration,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Option<Result<T, Box<AttemptFailed>>> {
    let attempt = pin!(attempt);
    timeout(limit, CatchPanic::new(attempt)).await.ok().map(flatten_panic)
}

/// Like [`run_within`], with the caller's own clock. `on_asked` is called once if `asked` completes
/// before the attempt.
pub(super) async fn run_within_clock<T>(
    time_up: BoxFuture<'_, ()>,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
    asked: impl Future<Output = ()>,
    mut on_asked: impl FnMut(),
) -> Option<Result<T, Box<AttemptFailed>>> {
    let attempt = pin!(attempt);
    let (mut attempt, mut asked) = (pin!(CatchPanic::new(attempt)), pin!(asked));
    let (mut time_up, mut waits) = (time_up, true);
    loop {
        tokio::select! {
            biased;
            ended = &mut attempt => return Some(flatten_panic(ended)),
            () = &mut asked, if waits => {
                waits = false;
                on_asked();
            }
            () = &mut time_up => return None,
        }
    }
}

fn flatten_panic<T>(
    ended: Result<Result<T, Box<AttemptFailed>>, String>,
) -> Result<T, Box<AttemptFailed>> {
    ended.unwrap_or_else(|panic| {
        tracing::error!(%panic, "a tool panicked; its attempt failed, the run continues");
        Err(AttemptFailed::new(FailureClass::Panic, format!("panicked: {panic}")))
    })
}

/// The failure of an attempt that was not done in time; `partial` is the text that had arrived.
pub(super) fn timeout_error(
    limit: Duration,
    from: Option<String>,
    partial: Option<Arc<str>>,
) -> Box<AttemptFailed> {
    let limit = format!("{:.1} s, the timeout of one attempt (timeout_s)", limit.as_secs_f64());
    let from = from.map_or_else(String::new, |host| format!(" from {host}"));
    let text = match &partial {
        None => format!("no reply{from} within {limit}."),
        Some(text) => format!(
            "the reply{from} was not complete within {limit}: {} characters had come.",
            text.chars().count()
        ),
    };
    Box::new(AttemptFailed { partial, ..*AttemptFailed::new(FailureClass::Timeout, text) })
}

/// Makes one attempt with these faults. `draw` is random bits for this attempt.
pub async fn with_faults<T>(
    clock: &Clock,
    faults: &[InjectedFault],
    draw: u64,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Result<T, Box<AttemptFailed>> {
    for fault in faults {
        match fault {
            InjectedFault::Latency { ms } => clock.sleep(Duration::from_millis(*ms)).await,
            InjectedFault::Errors { percent, status, .. }
                if happens_with(f64::from(*percent) / 100.0, draw) =>
            {
                return Err(AttemptFailed::from_status(
                    *status,
                    format!("HTTP {status} (injected)"),
                ));
            }
            InjectedFault::Hang => pending().await,
            InjectedFault::Errors { .. }
            | InjectedFault::Malformed
            | InjectedFault::Reset
            | InjectedFault::Empty
            | InjectedFault::Refusal => {}
        }
    }
    let answered = attempt.await?;
    for fault in faults {
        match fault {
            InjectedFault::Malformed => {
                let text = "the reply is not JSON (injected)";
                return Err(AttemptFailed::new(FailureClass::BadResponse, text));
            }
            InjectedFault::Reset => {
                let text = "the connection broke in the middle of the body (injected)";
                return Err(AttemptFailed::new(FailureClass::Reset, text));
            }
            InjectedFault::Empty => {
                let text = "the reply is empty (injected)";
                return Err(AttemptFailed::new(FailureClass::BadResponse, text));
            }
            InjectedFault::Refusal => {
                return Err(AttemptFailed::new(FailureClass::BadResponse, "refused (injected)"));
            }
            InjectedFault::Latency { .. } | InjectedFault::Errors { .. } | InjectedFault::Hang => {}
        }
    }
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_whether_text_came() {
        let limit = Duration::from_secs(3);
        let said = |partial: Option<&str>| {
            timeout_error(limit, Some("a.example".to_owned()), partial.map(Arc::from)).text
        };
        assert_eq!(
            said(None),
            "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s)."
        );
        assert_eq!(
            said(Some("grün")),
            "the reply from a.example was not complete within 3.0 s, the timeout of one attempt \
             (timeout_s): 4 characters had come."
        );
    }
}
