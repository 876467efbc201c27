//! What a call needs of the run that makes it (`CallScope`), and of what it calls (`Callee`).

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::base::name::ToolName;
use crate::bus::{Bus, LiveSlot};
use crate::event::kind::{AttemptFailed, Reply, Usage};
use crate::event::{SpanId, StopReason};
use crate::scenario::spec::in_doubt::InDoubt;

/// What the gateway needs from the calling run.
pub trait CallScope: Send + Sync {
    /// Log that receives the events.
    fn bus(&self) -> &Bus;
    /// Time left for the run.
    fn remaining(&self) -> Duration;
    /// Random bits for this call, attempt and use: a hash of (seed, path, attempt, use).
    fn random_bits(&self, attempt: u32, what: &str) -> u64;
    /// Called when an attempt starts (`true`) and when it ends (`false`), for whatever reason.
    fn in_flight(&self, out: bool);
    /// Stop reason for a run that cannot continue without this call.
    fn reason(&self, failure: &AttemptFailed) -> StopReason;
    /// Whether a call keeps the reason of its last failed attempt when the breaker refuses the next
    /// one (otherwise the reason is `circuit_open`): the failure of this call may differ from those
    /// that opened the breaker.
    fn keeps_reason(&self) -> bool {
        false
    }
    /// An attempt was rejected because of parameters; the next one is sent without them.
    fn on_adapted(&self, call: SpanId, failed: &AttemptFailed) {
        let _ = (call, failed);
    }
    /// Records the estimated token use of a failed attempt that had begun to receive a reply.
    fn estimate_usage(&self, failed: &mut AttemptFailed) {
        let _ = failed;
    }
    /// What is done with an attempt that was in flight when the run stopped, if its tool is not
    /// idempotent.
    fn in_doubt(&self) -> InDoubt {
        InDoubt::Stop
    }
    /// Counts what an attempt in doubt may have used, and returns it: an estimate of its prompt.
    fn usage_in_doubt(&self) -> Option<Usage> {
        None
    }
    /// Carries out what was decided about an attempt in doubt: waits until the operator resumes the
    /// run, or stops the run and never returns.
    fn settle_doubt(&self, tool: ToolName, decision: InDoubt) -> BoxFuture<'_, ()> {
        let _ = (tool, decision);
        Box::pin(std::future::pending())
    }
    /// Host that an attempt calls, if the tool's name does not say it: the host of a model.
    fn callee_host(&self) -> Option<String> {
        None
    }
    /// Whether an attempt costs money or changes something outside the run: it is made only once the
    /// log says so durably.
    fn has_effects(&self) -> bool {
        false
    }
    /// Awaited before each attempt: a boundary, or the caller's own policy. `None`: no wait. A
    /// refused attempt counts as used.
    fn admit(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        let _ = attempt;
        None
    }
    /// Completes when an attempt has used up `limit` by the caller's own clock, which stops while
    /// the run is paused. `None`: real time counts.
    fn timeout_clock(&self, limit: Duration) -> Option<BoxFuture<'_, ()>> {
        let _ = limit;
        None
    }
    /// The attempt is queued at the tool's bulkhead until the returned value is dropped: other
    /// calls have to finish first.
    fn enter_queue(&self) -> Option<Box<dyn QueueMarker + '_>> {
        None
    }
    /// Call slots shared with other calls: a call holds one from before its first attempt to its
    /// end.
    fn call_slots(&self) -> Option<&Semaphore> {
        None
    }
}

/// Guard value of a queued attempt; dropping it ends the queueing.
pub trait QueueMarker: Send {}

impl<T: Send> QueueMarker for T {}

/// What a callee receives for one attempt: its number and where to publish partial text.
pub struct Attempt<'a> {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Live slot of the attempt's span.
    pub live: &'a LiveSlot,
    /// Span of the call.
    pub call: SpanId,
    /// Span of the attempt.
    pub span: SpanId,
}

/// The other end of the gateway: a tool or a model.
pub trait Callee: Send + Sync {
    /// Makes one attempt. Has no retries and no timeout of its own; dropping the future cancels it.
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>>;
}
