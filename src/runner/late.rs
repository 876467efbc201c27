//! The answers that a former owner of a run may still get: they are
//! awaited as long as one may arrive.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::played_log::PlayedLog;
use crate::bus::LateAnswers;
use crate::cluster::Cluster;
use crate::engine::RunHandle;
use crate::event::kind::{Initiator, Reply};
use crate::event::{Command, EventKind, RunId, SpanId};

/// Time beyond the timeout of an attempt in which its answer may arrive.
const GRACE: Duration = Duration::from_secs(2);

/// The former owner of a run.
pub(super) struct FormerOwner {
    cluster: Cluster,
    run: RunId,
    /// Until when it may have an answer to each attempt that was open.
    until: BTreeMap<SpanId, Instant>,
    handle: OnceLock<RunHandle>,
    /// Attempts that wait for an answer now.
    waiting: AtomicU32,
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
        let (handle, waiting) = (OnceLock::new(), AtomicU32::new(0));
        Self { cluster: cluster.clone(), run: run.clone(), until, handle, waiting }
    }

    /// The run as it continues here: its clock stops while it waits.
    pub fn set_run(&self, run: RunHandle) {
        let _ = self.handle.set(run);
    }

    fn send(&self, command: Command) {
        if let Some(run) = self.handle.get() {
            run.send(command);
        }
    }
}

/// An attempt that waits. While there is one, the run pauses, so that the wait does not count in its time.
struct WaitsForAnswer<'a>(&'a FormerOwner);

impl<'a> WaitsForAnswer<'a> {
    fn new(former: &'a FormerOwner) -> Self {
        if former.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            former.send(Command::Pause { by: Initiator::Runner });
        }
        Self(former)
    }
}

impl Drop for WaitsForAnswer<'_> {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.send(Command::Resume { by: Initiator::Runner });
        }
    }
}

impl LateAnswers for FormerOwner {
    fn answer(&self, attempt: SpanId) -> BoxFuture<'_, Option<Reply>> {
        Box::pin(async move {
            let until = *self.until.get(&attempt)?;
            if let Ok(Some(reply)) = self.cluster.late_answer(&self.run, attempt).await {
                return Some(reply);
            }
            let _waits = WaitsForAnswer::new(self);
            self.cluster.await_late_answer(&self.run, attempt, until).await
        })
    }
}
