//! What runners tidy up now and then: forgotten runs are queued again, and the logs of
//! runs that ended some time ago go into the archive. Any runner may do it, and several at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::course::{row_after, row_before};
use super::prepared::PlayedLog;
use super::{Runner, RunnerNews};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::now_ms;
use crate::cluster::archive::RunArchive;
use crate::cluster::entry::LogPart;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::log::event::RunId;

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
                Err(why) => tracing::debug!("nothing was tidied up: {why:#}"),
            }
        }
    }

    /// One round. A run is queued again, or listed again, if it had no item or no row in the round before
    /// either: one that is handed over just now has none for a moment. Returns those.
    pub(super) async fn sweep_once(
        &self,
        before: &BTreeSet<RunId>,
    ) -> Result<BTreeSet<RunId>, Refused> {
        let queued = self.cluster.queued_runs().await?;
        let mut forgotten = BTreeSet::new();
        let mut listed = BTreeSet::new();
        for row in RunRows(&self.cluster).all().await? {
            let run = RunId::new(row.run.as_str());
            listed.insert(run.clone());
            if row.reason.is_some() {
                if let Err(why) = self.archive(row, &run).await {
                    tracing::debug!(%run, "the log was not archived: {why:#}");
                }
            } else if !queued.contains(&run) {
                forgotten.insert(run);
            }
        }
        match RunRows(&self.cluster).logged().await {
            Ok(logged) => forgotten.extend(logged.into_iter().filter(|run| !listed.contains(run))),
            Err(why) => tracing::debug!("runs without a row are not looked for: {why:#}"),
        }
        for run in forgotten.intersection(before) {
            let recalled = self.recall(run, !queued.contains(run), !listed.contains(run));
            if let Err(why) = recalled.await {
                tracing::debug!(%run, "the run was not put back: {why:#}");
            }
        }
        Ok(forgotten)
    }

    /// Puts a run that has not ended back into the queue and into the list; completes the row of one that
    /// has.
    async fn recall(&self, run: &RunId, queue: bool, list: bool) -> Result<(), Refused> {
        let entries = self.cluster.entries(run).await.or_refuse("its log cannot be read")?;
        let Some((first, last)) = entries.first().zip(entries.last()) else { return Ok(()) };
        let LogPart::Requested(request) = &first.part else { return Ok(()) };
        let (waiting, place) = (ClusterRow::waiting(request), last.place);
        let row = match PlayedLog::new(run, entries) {
            Ok(log) if log.reason().is_some() => {
                let row = row_after(row_before(&log), &log.events);
                return RunRows(&self.cluster).put(&row).await;
            }
            Ok(log) => row_after(row_before(&log), &log.events),
            // A log that cannot be read is offered too: a runner says what is wrong with it.
            Err(_) => waiting,
        };
        if list {
            RunRows(&self.cluster).put(&row).await?;
        }
        if queue {
            self.tell(RunnerNews::Trouble(format!("{run} was forgotten: it is queued again")));
            self.cluster.enqueue(&row.pool, run, Some(place)).await?;
        }
        Ok(())
    }

    async fn archive(&self, row: ClusterRow, run: &RunId) -> Result<(), Refused> {
        let least_ms = row.started_ms.saturating_add(row.elapsed_ms);
        if row.archived || !self.is_old(least_ms) {
            return Ok(());
        }
        // It may have waited or paused for long: its end counts.
        let last = self.cluster.last_entry(run).await.or_refuse("its log cannot be read")?;
        if last.is_some_and(|last| !self.is_old(last.stored_ms)) {
            return Ok(());
        }
        RunArchive(&self.cluster).add(run).await?;
        RunRows(&self.cluster).put(&ClusterRow { archived: true, ..row }).await
    }

    /// Whether a run that ended then goes into the archive now.
    fn is_old(&self, ended_ms: u64) -> bool {
        let age = Duration::from_millis(now_ms().saturating_sub(ended_ms));
        age >= self.settings.archive_after
    }
}
