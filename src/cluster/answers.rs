//! Answers that came when their runner had lost the run: they were paid, so the next owner takes them
//! instead of asking again.

use async_nats::HeaderMap;
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::Cluster;
use super::names::LATE;
use super::publish::Published;
use super::read::{BEHIND, BEHIND_FOR, last_message};
use crate::event::kind::Reply;
use crate::event::{RunId, SpanId};

impl Cluster {
    /// Leaves the answer to an attempt for the next owner of the run. The first one counts.
    pub async fn leave_answer(&self, run: &RunId, attempt: SpanId, reply: &Reply) {
        let Ok(payload) = serde_json::to_vec(reply) else { return };
        let subject = self.namespace().late(run, attempt);
        match self.store(subject, HeaderMap::new(), payload, None).await {
            Published::Stored(_) => tracing::info!(%run, "left a late answer for its next runner"),
            other => tracing::warn!(%run, "a late answer was not stored: {other:?}"),
        }
    }

    /// Waits for the answer that a former owner of the run leaves for an attempt, until this moment.
    pub async fn await_late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
        until: Instant,
    ) -> Option<Reply> {
        let subject = self.namespace().late(run, attempt);
        // What arrives says only that it is worth looking: the stream may have refused it.
        let mut arrivals = self.client().subscribe(subject).await.ok()?;
        loop {
            if let Some(reply) = self.late_answer(run, attempt).await {
                return Some(reply);
            }
            if !matches!(timeout_at(until, arrivals.next()).await, Ok(Some(_))) {
                // It may have come at the last moment.
                return self.late_answer(run, attempt).await;
            }
            // It is seen before it is stored.
            let stored_by = Instant::now() + BEHIND_FOR;
            while Instant::now() < stored_by {
                if let Some(reply) = self.late_answer(run, attempt).await {
                    return Some(reply);
                }
                sleep(BEHIND).await;
            }
        }
    }

    /// The answer that a former owner of the run has left for an attempt.
    pub async fn late_answer(&self, run: &RunId, attempt: SpanId) -> Option<Reply> {
        let subject = self.namespace().late(run, attempt);
        let found = last_message(self, LATE, &subject).await.ok()??;
        serde_json::from_slice(&found.payload).ok()
    }
}
