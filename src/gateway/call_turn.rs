//! The turn of a call in a run that is executed again (`bus/replay/turn.rs`), and what is recorded of
//! the call. What waits for a turn is boxed: otherwise the future of every call would be larger.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::bus::{Bus, CallStep, Replay};
use crate::event::{EventKind, SpanId, StopReason};

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

    /// The end of a wait in the queue of a tool: the call leaves the queue in its turn.
    pub fn give_up(self, time_up: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        match self.0 {
            Some((replay, call)) => {
                Box::pin(time_up.then(move |()| replay.turn(CallStep::GiveUp(call))))
            }
            None => time_up,
        }
    }

    /// The time at which a breaker decides that refuses until `end`. A log has the time of an event,
    /// not of the decision before it: the recorded decision says on which side of the end that was.
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
