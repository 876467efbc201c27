//! What runners tidy up now and then: forgotten runs are queued again, and the logs of
//! runs that ended some time ago go into the archive. Any runner may do it, and several at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::core::{Runner, RunnerNews, now_ms};
use super::course::row_after;
use super::played_log::PlayedLog;
use crate::cluster::archive::RunArchive;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::event::RunId;

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(60);

impl Runner {
    /// Tidies up until it is dropped.
    pub(super) async fn sweep(self: Arc<Self>) {
        let mut forgotten = BTreeSet::new();
        loop {
            sleep(EVERY).await;
            match self.sweep_once(&forgotten).await {
                Ok(found) => forgotten = found,
                Err(why) => tracing::debug!("nothing was tidied up: {why}"),
            }
        }
    }

    /// One round. A run is queued again if it had no item in the round before either:
    /// one that is handed over just now has none for a moment. Returns those without an item.
    async fn sweep_once(&self, before: &BTreeSet<RunId>) -> Result<BTreeSet<RunId>, String> {
        let queued = self.cluster.queued_runs().await?;
        let mut forgotten = BTreeSet::new();
        for row in RunRows(&self.cluster).all().await? {
            let run = RunId::new(row.run.as_str());
            if row.reason.is_some() {
                self.archive(row, &run).await?;
            } else if !queued.contains(&run) {
                if before.contains(&run) {
                    self.requeue(row, &run).await?;
                } else {
                    forgotten.insert(run);
                }
            }
        }
        Ok(forgotten)
    }

    /// Puts a run that has not ended back into the queue; completes the row of one that has.
    async fn requeue(&self, row: ClusterRow, run: &RunId) -> Result<(), String> {
        let entries = self.cluster.entries(run).await.map_err(|error| error.to_string())?;
        if entries.is_empty() {
            return Ok(());
        }
        match PlayedLog::new(entries) {
            Ok(log) if log.reason().is_some() => {
                RunRows(&self.cluster).put(&row_after(row, &log.events)).await
            }
            // A log that cannot be read is offered too: a runner says what is wrong with it.
            Ok(_) | Err(_) => {
                self.tell(RunnerNews::Trouble(format!("{run} was forgotten: it is queued again")));
                self.cluster.enqueue(&row.pool, run).await
            }
        }
    }

    async fn archive(&self, row: ClusterRow, run: &RunId) -> Result<(), String> {
        let ended_ms = row.started_ms.saturating_add(row.elapsed_ms);
        let age = Duration::from_millis(now_ms().saturating_sub(ended_ms));
        if row.archived || age < self.settings.archive_after {
            return Ok(());
        }
        RunArchive(&self.cluster).add(run).await?;
        RunRows(&self.cluster).put(&ClusterRow { archived: true, ..row }).await
    }
}
