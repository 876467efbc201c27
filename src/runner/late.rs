//! The answers that a former owner of a run may still get: they are
//! awaited as long as one may arrive.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::prepared::PlayedLog;
use crate::bus::LateAnswers;
use crate::cluster::Cluster;
use crate::event::kind::Reply;
use crate::event::{EventKind, RunId, SpanId};

/// Time beyond the timeout of an attempt in which its answer may arrive.
const GRACE: Duration = Duration::from_secs(2);

/// The former owner of a run.
pub(super) struct FormerOwner {
    cluster: Cluster,
    run: RunId,
    /// Until when it may have an answer to each attempt that was open.
    until: BTreeMap<SpanId, Instant>,
}

impl FormerOwner {
    /// The owner that had stored this log before it was claimed. Both times are those of the server, so the
    /// clocks of runners do not matter.
    pub fn new(cluster: &Cluster, run: &RunId, log: &PlayedLog, claimed_ms: u64) -> Self {
        let now = Instant::now();
        let age = Duration::from_millis(claimed_ms.saturating_sub(log.stored_ms));
        let mut until = BTreeMap::new();
        for event in &log.events {
            match &event.kind {
                EventKind::AttemptStarted { timeout_ms, .. } => {
                    let whole = Duration::from_millis(*timeout_ms) + GRACE;
                    until.insert(event.span, now + whole.saturating_sub(age));
                }
                EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_) => {
                    until.remove(&event.span);
                }
                _ => {}
            }
        }
        Self { cluster: cluster.clone(), run: run.clone(), until }
    }
}

impl LateAnswers for FormerOwner {
    fn answer(&self, attempt: SpanId) -> BoxFuture<'_, Option<Reply>> {
        Box::pin(async move {
            let until = *self.until.get(&attempt)?;
            self.cluster.await_late_answer(&self.run, attempt, until).await
        })
    }
}
