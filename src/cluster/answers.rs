//! Answers that came when their runner had lost the run: they were paid, so the next owner takes them
//! instead of asking again.

use std::time::Duration;

use async_nats::HeaderMap;
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::Cluster;
use super::leader::{BEHIND, BEHIND_FOR, last_message};
use super::names::LATE;
use super::publish::Published;
use crate::event::kind::Reply;
use crate::event::{RunId, SpanId};
use crate::store::ReadError;

/// How long servers that do not answer are tried again for an answer that was paid, and the time between.
const UNANSWERED: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(250);

impl Cluster {
    /// Leaves the answer to an attempt for the next owner of the run. The first one counts. Servers that do
    /// not answer are asked again for some time: the answer was paid.
    pub async fn leave_answer(&self, run: &RunId, attempt: SpanId, reply: &Reply) {
        let Ok(payload) = serde_json::to_vec(reply) else { return };
        let subject = self.namespace().late(run, attempt);
        let until = Instant::now() + UNANSWERED;
        loop {
            match self.store(subject.clone(), HeaderMap::new(), payload.clone(), None).await {
                Published::Stored(_) => {
                    tracing::info!(%run, "left a late answer for its next runner");
                    return;
                }
                Published::NoAnswer(_) | Published::NoLeader(_) | Published::AskAgain
                    if Instant::now() < until =>
                {
                    sleep(AGAIN).await;
                }
                other => {
                    tracing::warn!(%run, "a late answer was not stored: {other:?}");
                    return;
                }
            }
        }
    }

    /// Waits for the answer that a former owner of the run leaves for an attempt, until this moment. Then it
    /// is read for certain, for some time longer if the servers do not answer.
    pub async fn await_late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
        until: Instant,
    ) -> Option<Reply> {
        let subject = self.namespace().late(run, attempt);
        // What arrives says only that it is worth looking: the stream may have refused it.
        let mut arrivals = self.client().subscribe(subject).await.ok();
        loop {
            if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                return Some(reply);
            }
            let arrived = async {
                match &mut arrivals {
                    Some(arrivals) => arrivals.next().await,
                    None => std::future::pending().await,
                }
            };
            if !matches!(timeout_at(until, arrived).await, Ok(Some(_))) {
                break;
            }
            // It is seen before it is stored.
            let stored_by = Instant::now() + BEHIND_FOR;
            while Instant::now() < stored_by {
                if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                    return Some(reply);
                }
                sleep(BEHIND).await;
            }
        }
        // It may have come at the last moment.
        let until = until.max(Instant::now()) + UNANSWERED;
        loop {
            match self.late_answer(run, attempt).await {
                Ok(found) => return found,
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(%run, "whether there is a late answer is not known: {error}");
                    return None;
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// The answer that a former owner of the run has left for an attempt; one that cannot be read does not count.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
    ) -> Result<Option<Reply>, ReadError> {
        let subject = self.namespace().late(run, attempt);
        let found = last_message(self, LATE, &subject).await?;
        Ok(found.and_then(|found| serde_json::from_slice(&found.payload).ok()))
    }
}
