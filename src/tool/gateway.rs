//! One call through the gateway, from outside in:
//!
//! ```text
//! retry( time-out( contained( the callee ) ) )
//! ```
//!
//! The breaker and the bulkhead belong between retry and time-out, safe mode around all of it.
//! Every step is a fact on the call's own span; a call that is dropped in the middle says so
//! itself, so no span is left open when a run ends.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::contained::Contained;
use super::retry::{self, Next};
use crate::bus::{Bus, LiveSlot};
use crate::event::id::millis;
use crate::event::kind::{AttemptFailed, CallStarted, FailureClass, Reply};
use crate::event::{EventKind, SpanId, StopReason};
use crate::scenario::model::CallPolicy;

/// What the gateway needs of the run that calls.
pub trait CallScope: Send + Sync {
    /// Where facts go.
    fn bus(&self) -> &Bus;
    /// What is left of the run's time.
    fn remaining(&self) -> Duration;
    /// Random bits that belong to this call and attempt alone: a hash of (seed, path, attempt).
    fn draw(&self, attempt: u32) -> u64;
    /// An attempt goes out (`true`) or has come back (`false`), however it ended.
    fn in_flight(&self, out: bool);
    /// The reason that this failure gives a run which cannot do without the call.
    fn reason(&self, failure: &AttemptFailed) -> StopReason;
}

/// A call that is to be made.
#[derive(Debug)]
pub struct Call<'a> {
    /// What is asked, and for whom.
    pub started: CallStarted,
    /// How often and how long it is tried.
    pub policy: &'a CallPolicy,
    /// Bound of one attempt.
    pub timeout: Duration,
}

/// A call that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailed {
    /// Its span.
    pub span: SpanId,
    /// What it means for the run.
    pub reason: StopReason,
    /// Its last attempt.
    pub last: AttemptFailed,
}

/// What one attempt is handed: its number and where its text may be shown while it comes.
pub struct Attempt<'a> {
    /// From 1.
    pub number: u32,
    /// The live slot of its span.
    pub live: &'a LiveSlot,
    /// The span of the call.
    pub call: SpanId,
}

/// What is behind the gateway: a tool or a model.
pub trait Callee: Send + Sync {
    /// One attempt. It neither retries nor bounds its time, and dropping it cancels it.
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>>;
}

impl Call<'_> {
    /// Makes the call: attempts until one is answered or policy gives up. Dropping the future
    /// cancels the attempt in flight.
    ///
    /// # Errors
    /// [`CallFailed`] after the last attempt.
    pub async fn make(
        self,
        scope: &dyn CallScope,
        callee: &dyn Callee,
    ) -> Result<(SpanId, Reply), Box<CallFailed>> {
        let bus = scope.bus();
        let span = bus.next_span();
        bus.publish(span, EventKind::CallStarted(Box::new(self.started)));
        let mut open = OpenCall { bus, span, attempts: 0, open: true };
        loop {
            open.attempts += 1;
            let number = open.attempts;
            let failed = match attempt(scope, span, number, self.timeout, callee).await {
                Ok(reply) => {
                    open.close(EventKind::CallAnswered { attempts: number });
                    return Ok((span, reply));
                }
                Err(failed) => failed,
            };
            let remaining = scope.remaining();
            match retry::next(self.policy, number, &failed, remaining, scope.draw(number)) {
                Next::Retry(wait) => {
                    bus.publish(
                        span,
                        EventKind::CallRetried {
                            attempt: number + 1,
                            wait_ms: millis(wait),
                            after: failed.class,
                            status: failed.status,
                        },
                    );
                    sleep(wait).await;
                }
                Next::GiveUp => {
                    let reason = scope.reason(&failed);
                    open.close(EventKind::CallFailed { attempts: number, reason: reason.clone() });
                    return Err(Box::new(CallFailed { span, reason, last: *failed }));
                }
            }
        }
    }
}

async fn attempt(
    scope: &dyn CallScope,
    call: SpanId,
    number: u32,
    limit: Duration,
    callee: &dyn Callee,
) -> Result<Reply, Box<AttemptFailed>> {
    let bus = scope.bus();
    let span = bus.next_span();
    bus.publish(
        span,
        EventKind::AttemptStarted { parent: call, attempt: number, timeout_ms: millis(limit) },
    );
    scope.in_flight(true);
    let mut open = OpenAttempt { scope, span, live: bus.live(span), open: true };
    let answered = bounded(limit, callee.attempt(Attempt { number, live: &open.live, call })).await;
    match answered {
        Ok(reply) => {
            open.close(EventKind::AttemptAnswered(Box::new(reply.clone())));
            Ok(reply)
        }
        Err(mut failed) => {
            if failed.partial.is_none() {
                failed.partial = open.partial();
            }
            open.close(EventKind::AttemptFailed(failed.clone()));
            Err(failed)
        }
    }
}

/// An attempt within its time, its panics contained.
async fn bounded(
    limit: Duration,
    attempt: BoxFuture<'_, Result<Reply, Box<AttemptFailed>>>,
) -> Result<Reply, Box<AttemptFailed>> {
    let failed = |class, text| {
        Err(Box::new(AttemptFailed {
            class,
            status: None,
            text,
            retry_after_ms: None,
            partial: None,
        }))
    };
    match timeout(limit, Contained::new(attempt)).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(panic)) => {
            tracing::error!(%panic, "a tool panicked; its attempt failed and the run goes on");
            failed(FailureClass::Panic, format!("a panic, contained: {panic}"))
        }
        Err(_) => failed(
            FailureClass::Timeout,
            format!("no answer within {:.1} s, the limit of one attempt", limit.as_secs_f64()),
        ),
    }
}

/// A call that closes its span when it is dropped in the middle.
struct OpenCall<'a> {
    bus: &'a Bus,
    span: SpanId,
    attempts: u32,
    open: bool,
}

impl OpenCall<'_> {
    fn close(&mut self, how: EventKind) {
        self.open = false;
        self.bus.publish(self.span, how);
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.open {
            let attempts = self.attempts;
            self.close(EventKind::CallFailed { attempts, reason: StopReason::Cancelled });
        }
    }
}

/// An attempt that closes its span and gives its place back when it is dropped in the middle.
struct OpenAttempt<'a> {
    scope: &'a dyn CallScope,
    span: SpanId,
    live: LiveSlot,
    open: bool,
}

impl OpenAttempt<'_> {
    fn partial(&self) -> Option<std::sync::Arc<str>> {
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
            let cancelled = AttemptFailed {
                class: FailureClass::Cancelled,
                status: None,
                text: "the run was stopped in the middle of it".to_owned(),
                retry_after_ms: None,
                partial: self.partial(),
            };
            self.close(EventKind::AttemptFailed(Box::new(cancelled)));
        }
    }
}
