//! One call through the gateway, from the outside in (docs/rules/patterns.md, *Tool gateway*):
//!
//! ```text
//! safe mode( RETRY( breaker.allow -> bulkhead.enter -> timeout( contained( callee ) ) ) )
//! ```
//!
//! The run's budget, deadline and cancellation surround all of it: dropping the call cancels it. A
//! permit is held during an attempt, never during a wait. Every step is an event on the call's own
//! span; a dropped call closes its span itself, so no span is open when a run ends.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::attempt::{
    CallTurn, FailedAttempt, publish_if_stale, recorded_result, run_within, run_within_clock,
    timeout_error,
};
use super::breaker::AttemptVerdict;
use super::guard::{CallGuard, GuardRefusal};
use super::{Attempt, CallScope, Callee, retry};
use crate::base::time::millis;
use crate::log::bus::{Bus, LiveSlot};
use crate::log::event::{
    AttemptFailed, CallStarted, EventKind, FailureClass, FallbackKind, Reply, SpanId, StopReason,
};

/// Most attempts of one call that may be repeated with an adapted request: each parameter once, the
/// form of a reply twice.
const MAX_ADAPTED: u32 = 6;

/// A call to make.
#[derive(Debug)]
pub struct GatewayCall {
    /// What is called, with which arguments, for which caller.
    pub started: Box<CallStarted>,
    /// Cache key for a fallback, if one is allowed: the arguments as text.
    pub safe_key: Option<String>,
}

/// A call that succeeded, or was served from a fallback.
#[derive(Clone, Debug)]
pub struct CallSuccess {
    pub span: SpanId,
    /// Number of attempts; refused ones count.
    pub attempts: u32,
    /// Reply of the model or result of the tool, as the log has it.
    pub reply: Arc<Reply>,
    /// Kind of fallback, if the tool was unavailable.
    pub fallback: Option<FallbackKind>,
    /// What the caller reads below the result if the call was approved with other arguments.
    pub changed: Option<Arc<str>>,
}

/// A call that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailed {
    pub span: SpanId,
    /// Number of attempts; refused ones count.
    pub attempts: u32,
    pub reason: StopReason,
    /// Failure of the last attempt; `None` if that attempt was refused.
    pub last: Option<Box<AttemptFailed>>,
    /// Whether the tool was unavailable; `false` if the request was wrong or not allowed.
    pub unavailable: bool,
    /// What the caller reads if the call was not approved.
    pub denied: Option<Arc<str>>,
}

/// Why a call was not approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Stop reason of the call.
    pub reason: StopReason,
    /// What the caller reads; `None`: the run stops.
    pub text: Option<Arc<str>>,
}

/// Result of one attempt.
enum AttemptOutcome<'a> {
    Answered(Arc<Reply>),
    /// It failed. The verdict for the breaker is decided together with the retry.
    Failed(FailedAttempt<'a>),
    /// It was not made. `tool` is true if the tool was unavailable, false if the caller was not
    /// admitted.
    Refused {
        reason: StopReason,
        tool: bool,
    },
}

impl GatewayCall {
    /// Makes the call: attempts until one succeeds or the policy gives up. Dropping the future
    /// cancels the attempt in flight.
    ///
    /// # Errors
    /// [`CallFailed`] after the last attempt, if there is no fallback.
    pub async fn make(
        self,
        scope: &dyn CallScope,
        guard: &CallGuard,
        callee: &dyn Callee,
    ) -> Result<CallSuccess, Box<CallFailed>> {
        let bus = scope.bus();
        let leaf = scope.has_recorded_replies();
        let span = {
            let started = EventKind::CallStarted(self.started);
            CallTurn::start(bus, &started).await;
            bus.open(started)
        };
        let mut open = OpenCall { bus, span, attempts: 0, open: true };
        let mut admitted = false;
        if let Some(asked) = scope.asks_before(span) {
            // Boxed because it is rare: otherwise the future of every call would be larger.
            let approved = Box::pin(wait_for_approval(scope, guard, span, asked)).await;
            match approved {
                Ok(()) => admitted = true,
                Err(not_made) => {
                    open.attempts = 1;
                    return match not_made {
                        NotMade::Refused(refusal) => {
                            let reason = refusal.stop_reason(guard.name());
                            open.refuse(&reason, refusal.retry_in());
                            open.use_fallback(guard, self.safe_key.as_deref(), reason, None)
                        }
                        NotMade::Denied(Denial { reason, text }) => {
                            open.refuse(&reason, None);
                            open.close(EventKind::CallFailed {
                                attempts: 1,
                                reason: reason.clone(),
                            });
                            let mut failed = open.failed(reason, None, false);
                            failed.denied = text;
                            Err(failed)
                        }
                    };
                }
            }
        }
        let changed_key = scope.changed_key();
        let _slot = match scope.call_slots() {
            None => None,
            Some(pool) => acquire_slot(pool, scope, span).await,
        };
        let key = self.safe_key.as_deref().map(|own| changed_key.as_deref().unwrap_or(own));
        let mut before: Option<Box<AttemptFailed>> = None;
        let mut adapted = 0;
        let (reason, last) = loop {
            open.attempts += 1;
            let number = open.attempts;
            let admitted = std::mem::take(&mut admitted);
            let call = CallPlace { span, leaf, admitted };
            let attempt = match make_attempt(scope, guard, call, number, callee).await {
                AttemptOutcome::Answered(reply) => {
                    if let (Some(key), Some(value)) = (key, &reply.result) {
                        guard.cache_good(key, value);
                    }
                    open.close(EventKind::CallAnswered { attempts: number });
                    return Ok(CallSuccess {
                        span,
                        attempts: number,
                        reply,
                        fallback: None,
                        changed: None,
                    });
                }
                AttemptOutcome::Refused { reason, tool: false } => {
                    open.close(EventKind::CallFailed { attempts: number, reason: reason.clone() });
                    return Err(open.failed(reason, None, false));
                }
                AttemptOutcome::Refused { reason, tool: true } => {
                    break match before.filter(|_| scope.keeps_reason()) {
                        Some(failed) => (scope.reason(&failed), Some(failed)),
                        None => (reason, None),
                    };
                }
                // An adapted request is not a retry, and needs no wait.
                AttemptOutcome::Failed(attempt)
                    if attempt.failed.adapted.is_some() && adapted < MAX_ADAPTED =>
                {
                    adapted += 1;
                    let failed = attempt.settle_adapted(bus, guard);
                    scope.on_adapted(span, &failed);
                    before = Some(failed);
                    continue;
                }
                AttemptOutcome::Failed(attempt) => attempt,
            };
            let (policy, _) = guard.policy();
            let left = scope.remaining();
            let draw = || scope.random_bits(number, "wait");
            let made = number - adapted;
            let next = retry::decide_retry(&policy, made, &attempt.failed, left, draw);
            let (failed, follows) = attempt.settle(bus, guard, &policy, next, left);
            match follows {
                Ok(wait) => {
                    bus.publish(
                        span,
                        EventKind::CallRetried {
                            attempt: number + 1,
                            wait_ms: millis(wait),
                            cause: failed.class,
                            status: failed.status,
                        },
                    );
                    bus.clock().sleep(wait).await;
                    before = Some(failed);
                }
                Err(limit) => {
                    if let Some(limit) = limit {
                        let attempt = number + 1;
                        bus.publish(span, EventKind::RetryRefused { attempt, limit });
                    }
                    // Without a breaker, a tool is never blocked: many sites may be behind it, and
                    // the `Retry-After` of one must not block the others.
                    if let Some(asked) = retry::honoured_retry_after(&policy, &failed)
                        && policy.breaker.is_some()
                    {
                        guard.block_for(asked);
                    }
                    break (scope.reason(&failed), Some(failed));
                }
            }
        };
        open.use_fallback(guard, key, reason, last)
    }
}

/// A slot of the run's pool; taken before the first attempt.
async fn acquire_slot<'a>(
    pool: &'a Semaphore,
    scope: &'a dyn CallScope,
    call: SpanId,
) -> Option<SemaphorePermit<'a>> {
    if let Ok(permit) = pool.try_acquire() {
        return Some(permit);
    }
    let since = scope.bus().clock().now();
    scope.bus().publish(call, EventKind::CallQueued);
    // Boxed: otherwise the future of every call would be larger.
    let permit = Box::pin(pool.acquire()).await.ok()?;
    CallTurn::of(scope.bus(), call).wait().await;
    let waited_ms = millis(scope.bus().clock().since(since));
    scope.bus().publish(call, EventKind::CallAdmitted { waited_ms });
    Some(permit)
}

/// Why a call that needs an approval is not made.
enum NotMade {
    /// The breaker refuses it, so nobody was asked.
    Refused(GuardRefusal),
    /// It was not admitted or not approved.
    Denied(Denial),
}

/// Waits until the call is approved, once the caller admits its first attempt. If the breaker refuses
/// that attempt, nobody is asked, and the call is not made.
async fn wait_for_approval(
    scope: &dyn CallScope,
    guard: &CallGuard,
    call: SpanId,
    asked: BoxFuture<'_, Result<(), Denial>>,
) -> Result<(), NotMade> {
    let turn = CallTurn::of(scope.bus(), call);
    turn.wait().await;
    if let Some(admitted) = scope.admit(1) {
        admitted.await.map_err(|reason| NotMade::Denied(Denial { reason, text: None }))?;
    }
    let mut open = Some(asked);
    while let Some(asked) = open.take() {
        if let Some(refusal) = guard.refusal(turn) {
            return Err(NotMade::Refused(refusal));
        }
        asked.await.map_err(NotMade::Denied)?;
        // The answer counts for an attempt that is not recorded only if it is about the same call.
        turn.wait().await;
        if scope.withdraw_approval_if_changed() {
            open = scope.asks_before(call);
        }
    }
    Ok(())
}

/// The call of an attempt.
struct CallPlace {
    span: SpanId,
    /// It has a recorded reply, and is not executed again.
    leaf: bool,
    /// The caller has admitted the attempt already.
    admitted: bool,
}

async fn make_attempt<'g>(
    scope: &dyn CallScope,
    guard: &'g CallGuard,
    CallPlace { span: call, leaf, admitted }: CallPlace,
    number: u32,
    callee: &dyn Callee,
) -> AttemptOutcome<'g> {
    let bus = scope.bus();
    let refuse = |reason: StopReason, retry_in: Option<Duration>, tool| {
        let retry_in_ms = retry_in.map(millis);
        let published = reason.clone();
        bus.publish(
            call,
            EventKind::AttemptRefused { attempt: number, reason: published, retry_in_ms },
        );
        AttemptOutcome::Refused { reason, tool }
    };
    let turn = CallTurn::of(bus, call);
    turn.wait().await;
    if !admitted
        && let Some(admitted) = scope.admit(number)
        && let Err(reason) = admitted.await
    {
        return refuse(reason, None, false);
    }
    let mut in_line = None;
    let queued = |max_wait| {
        bus.publish(call, EventKind::AttemptQueued { attempt: number });
        in_line = scope.enter_queue();
        scope.timeout_clock(max_wait, call)
    };
    let mut pass = match guard.enter(|| scope.remaining(), turn, queued).await {
        Ok(pass) => pass,
        Err(refusal) => {
            drop(in_line);
            return refuse(refusal.stop_reason(guard.name()), refusal.retry_in(), true);
        }
    };
    drop(in_line);
    // The attempt is not recorded, and the tool was changed while the approved call was queued.
    if scope.withdraw_approval_if_changed() {
        let tool = scope.called().unwrap_or_else(|| guard.name()).clone();
        return refuse(StopReason::ApprovalDenied(tool), None, false);
    }
    let (policy, limit) = guard.policy();
    let limit = scope.timeout().unwrap_or(limit);
    let slow_call = policy.breaker.and_then(|breaker| breaker.window?.slow_call_ms);
    drop(policy);
    let span = bus.open(EventKind::AttemptStarted {
        parent: call,
        attempt: number,
        timeout_ms: millis(limit),
        waited_ms: millis(pass.waited),
        probe: pass.is_probe(),
    });
    scope.in_flight(true);
    let mut open = OpenAttempt { scope, span, live: bus.live(span), open: true };
    let ended = if leaf
        && let Some(replay) = bus.replay()
        && let Some(recorded) = Box::pin(recorded_result(replay, scope, guard, span)).await
    {
        recorded
    } else {
        if scope.has_effects() {
            bus.wait_until_stored().await;
        }
        // The log has whether an attempt was slow, so that a run that is executed again judges the same.
        let slow = slow_call.map(|ms| (bus.clock().now(), Duration::from_millis(ms)));
        let attempt = callee.attempt(Attempt { number, live: &open.live, call, span });
        let ended = match scope.timeout_clock(limit, span) {
            Some(time_up) => {
                let probe = pass.is_probe();
                let asked = async {
                    match scope.person_is_asked(span).filter(|_| probe) {
                        Some(asked) => asked.await,
                        None => pending().await,
                    }
                };
                run_within_clock(time_up, attempt, asked, || pass.give_back_probe()).await
            }
            None => run_within(limit, attempt).await,
        };
        let mut ended =
            ended.unwrap_or_else(|| Err(timeout_error(limit, scope.callee_host(), open.partial())));
        if slow.is_some_and(|(since, most)| bus.clock().since(since) > most) {
            match &mut ended {
                Ok(reply) => reply.slow = true,
                Err(failed) => failed.slow = true,
            }
        }
        ended
    };
    match ended {
        Ok(reply) => {
            let reply = Arc::new(reply);
            open.close(EventKind::AttemptAnswered(Arc::clone(&reply)));
            let verdict = AttemptVerdict::of_result(false, reply.slow);
            publish_if_stale(bus, span, guard, pass.settle(verdict), true);
            AttemptOutcome::Answered(reply)
        }
        Err(mut failed) => {
            if failed.partial.is_none() {
                failed.partial = open.partial();
            }
            scope.estimate_usage(&mut failed);
            open.close(EventKind::AttemptFailed(failed.clone()));
            AttemptOutcome::Failed(FailedAttempt { span, failed, permit: pass.end() })
        }
    }
}

/// An open call; dropping it closes its span as cancelled.
struct OpenCall<'a> {
    bus: &'a Bus,
    span: SpanId,
    attempts: u32,
    open: bool,
}

impl OpenCall<'_> {
    /// Records that the first attempt was refused.
    fn refuse(&self, reason: &StopReason, retry_in: Option<Duration>) {
        let (reason, retry_in_ms) = (reason.clone(), retry_in.map(millis));
        self.bus.publish(self.span, EventKind::AttemptRefused { attempt: 1, reason, retry_in_ms });
    }

    fn close(&mut self, how: EventKind) {
        self.open = false;
        self.bus.publish(self.span, how);
    }

    fn failed(
        &self,
        reason: StopReason,
        last: Option<Box<AttemptFailed>>,
        unavailable: bool,
    ) -> Box<CallFailed> {
        let (span, attempts) = (self.span, self.attempts);
        Box::new(CallFailed { span, attempts, reason, last, unavailable, denied: None })
    }

    /// Ends a call whose tool is unavailable: with the cached value, else the default value, else
    /// without a result (docs/rules/patterns.md, *Tool gateway*). A fallback never counts as a
    /// success.
    fn use_fallback(
        mut self,
        guard: &CallGuard,
        key: Option<&str>,
        reason: StopReason,
        last: Option<Box<AttemptFailed>>,
    ) -> Result<CallSuccess, Box<CallFailed>> {
        let (policy, _) = guard.policy();
        let (span, attempts) = (self.span, self.attempts);
        let unavailable = is_unavailable(last.as_deref());
        let Some(key) = key.filter(|_| policy.safe_mode.enabled && unavailable) else {
            self.close(EventKind::CallFailed { attempts, reason: reason.clone() });
            return Err(self.failed(reason, last, unavailable));
        };
        let fallback: Option<(FallbackKind, Arc<Value>)> = guard
            .last_good(key)
            .map(|(value, age)| (FallbackKind::Cached { age_ms: millis(age) }, value))
            .or_else(|| Some((FallbackKind::Default, policy.safe_mode.fallback.clone()?)));
        let (by, value) = match fallback {
            Some((by, value)) => (by, Some(value)),
            None => (FallbackKind::Omitted, None),
        };
        self.close(EventKind::CallDegraded {
            attempts,
            reason: reason.clone(),
            by,
            value: value.clone(),
        });
        match value {
            Some(value) => {
                let reply = Arc::new(Reply::from_tool_result(value));
                Ok(CallSuccess { span, attempts, reply, fallback: Some(by), changed: None })
            }
            None => Err(self.failed(reason, last, true)),
        }
    }
}

/// Whether a failure means that the tool is unavailable; false if the request was wrong.
fn is_unavailable(last: Option<&AttemptFailed>) -> bool {
    last.is_none_or(|failed| {
        failed.class == FailureClass::RateLimited || failed.class.is_failure_of_tool(failed.status)
    })
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.open {
            let attempts = self.attempts;
            self.close(EventKind::CallFailed { attempts, reason: StopReason::Cancelled });
        }
    }
}

/// An open attempt; dropping it closes its span as cancelled and updates the count in flight.
struct OpenAttempt<'a> {
    scope: &'a dyn CallScope,
    span: SpanId,
    live: LiveSlot,
    open: bool,
}

impl OpenAttempt<'_> {
    fn partial(&self) -> Option<Arc<str>> {
        let text = self.live.text();
        (!text.is_empty()).then(|| text.into())
    }

    fn close(&mut self, how: EventKind) {
        self.open = false;
        self.scope.bus().publish(self.span, how);
        self.scope.in_flight(false);
    }
}

impl Drop for OpenAttempt<'_> {
    fn drop(&mut self) {
        if self.open {
            let mut cancelled = AttemptFailed {
                partial: self.partial(),
                ..*AttemptFailed::new(FailureClass::Cancelled, "cancelled because the run ended")
            };
            self.scope.estimate_usage(&mut cancelled);
            self.close(EventKind::AttemptFailed(Box::new(cancelled)));
        }
    }
}
