//! Plays a run to its end, or continues a recorded one.

use std::pin::pin;

use tokio::sync::watch;

use super::handle::{ReplayEnd, RunHandle};
use crate::base::contained::Contained;
use crate::base::when_woken::WhenWoken;
use crate::bus::Recording;
use crate::event::id::millis;
use crate::event::kind::{Initiator, ModelPriceHead, RunClosed};
use crate::event::launch::ForkOrigin;
use crate::event::{EventKind, SpanId, StopReason};
use crate::pattern::{self, PatternLive};
use crate::run::{RunContext, replay};
use crate::scenario::Scenario;

/// How a recorded run is continued.
pub(super) struct ContinuedRun {
    pub by: Initiator,
    /// The present time of the wall, as Unix time in milliseconds.
    pub now_ms: u64,
    /// `None`: in the same log.
    pub fork: Option<ForkOrigin>,
    /// Prices of the models that the run calls.
    pub prices: Vec<ModelPriceHead>,
}

impl ContinuedRun {
    /// The first event after the recorded ones.
    fn first_event(&self, recording: &Recording) -> EventKind {
        if let Some(fork) = &self.fork {
            let (parent, at) = (fork.parent.clone(), fork.at.clone());
            let prices = self.prices.clone();
            return EventKind::RunForked { by: self.by, parent, at, prices };
        }
        let stored_ms =
            recording.head().wall_ms.saturating_add(millis(recording.last_at().duration()));
        EventKind::RunResumed {
            by: self.by,
            downtime_ms: self.now_ms.saturating_sub(stored_ms),
            events: recording.events().len() as u64,
        }
    }
}

/// Executes a recorded run again and continues it. Returns `None` if the run cannot be continued: its
/// log stays as it is.
pub(super) async fn resume(
    context: &RunContext,
    run: &RunHandle,
    begins: ContinuedRun,
    replayed: &watch::Sender<ReplayEnd>,
    playing: impl Future<Output = StopReason>,
) -> Option<StopReason> {
    let steps = replay::RunInputs {
        bus: context.bus(),
        control: context.control(),
        send: &|command| run.deliver(command),
        first: &|recording| begins.first_event(recording),
        flags: begins.fork.as_ref().map_or(&[], |fork| &fork.flags),
        live: &|| drop(replayed.send(ReplayEnd::Live)),
    };
    match replay::execute_again(&steps, playing).await {
        Ok(reason) => Some(reason),
        Err(error) => {
            let _ = replayed.send(ReplayEnd::Failed(error));
            None
        }
    }
}

/// Plays a run to its end and publishes its last event.
pub(super) async fn play(
    context: &RunContext,
    scenario: &Scenario,
    live: &PatternLive,
) -> StopReason {
    let ended = {
        let played = Contained::new(pattern::play(context, scenario, live));
        let over = pin!(context.control().wait_until_over());
        tokio::select! {
            biased;
            // Each step of the pattern polls both, and a run is rarely over.
            over = WhenWoken::new(over) => Err(over),
            ended = played => ended.unwrap_or_else(|panic| {
                tracing::error!(%panic, "a pattern panicked; its run is closed");
                let text = format!("a bug in roundtable ended the run: {panic}");
                context.publish(SpanId::RUN, EventKind::Warning { text });
                Err(StopReason::InternalError)
            }),
        }
    };
    // No call and no change may come after this, so that `run.closed` is the last event.
    context.tools().release();
    if let Some(live) = live.control() {
        live.end();
    }
    // After a cancel it is obvious that later boundaries were not reached.
    if !matches!(ended, Err(StopReason::Cancelled)) {
        for text in context.control().unreached() {
            context.publish(SpanId::RUN, EventKind::Warning { text });
        }
    }
    let (elapsed, paused, boundary) = context.control().close();
    let (reason, phase) = match ended {
        Ok(()) => (StopReason::Success, None),
        Err(reason) => (reason, context.phase()),
    };
    context.publish(
        SpanId::RUN,
        EventKind::RunClosed(Box::new(RunClosed {
            reason: reason.clone(),
            phase,
            boundary,
            elapsed_ms: millis(elapsed),
            paused_ms: millis(paused),
            in_flight: context.in_flight(),
        })),
    );
    reason
}
