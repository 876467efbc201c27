//! Follows a run while it is stored: its row in the list of runs, and a pause while the cluster cannot
//! store it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::core::{Runner, RunnerNews};
use super::played_log::PlayedLog;
use crate::bus::publish_unless_ended;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::engine::RunHandle;
use crate::event::id::millis;
use crate::event::kind::Initiator;
use crate::event::world::CourseFold;
use crate::event::{Command, Event, EventKind, SpanId};
use crate::store::recorder::RecordListener;

/// How often the row of a run is written while it runs.
const ROW_EVERY: Duration = Duration::from_secs(1);

/// A write that fails for this time pauses the run. A replicated server that changes its leader is not
/// noticed.
const PAUSE_AFTER: Duration = Duration::from_secs(15);

/// The course of a run.
pub(super) struct RemoteCourse<'a> {
    runner: &'a Runner,
    pub run: &'a RunHandle,
    pub row: ClusterRow,
    /// Revision of the row over which this owner may write.
    revision: Option<u64>,
    course: CourseFold,
    written: Option<Instant>,
    /// Since when something waits to be stored.
    waiting: Instant,
    is_paused: bool,
}

impl<'a> RemoteCourse<'a> {
    /// `revision` is that of its row before this owner claimed the run; `None`: unknown.
    pub fn new(
        runner: &'a Runner,
        run: &'a RunHandle,
        row: ClusterRow,
        revision: Option<u64>,
    ) -> Self {
        let (course, waiting) = (CourseFold::default(), Instant::now());
        Self { runner, run, row, revision, course, written: None, waiting, is_paused: false }
    }

    /// The stop reason, if the run has ended.
    pub fn reason(&self) -> Option<String> {
        self.course.progress.closed.as_ref().map(|closed| closed.reason.to_string())
    }

    /// Writes the row. While the run plays, not over the row of a later owner: this one may not know yet
    /// that it has lost the run.
    ///
    /// # Errors
    /// It cannot be written, in one sentence.
    pub async fn write_row(&mut self) -> Result<(), String> {
        self.written = Some(Instant::now());
        fill(&mut self.row, &self.course);
        let (rows, row) = (RunRows(&self.runner.cluster), &self.row);
        let written = match self.revision.filter(|_| row.reason.is_none()) {
            Some(before) => match rows.replace(row, before).await? {
                // The answer to the write before this one may have been lost.
                None => rows.own_revision(row).await?.unwrap_or(before),
                Some(revision) => revision,
            },
            None => rows.put(row).await?,
        };
        self.revision = Some(written);
        Ok(())
    }
}

/// The row of a run by the request and the claims of its log.
pub(super) fn row_before(log: &PlayedLog) -> ClusterRow {
    let row = ClusterRow::waiting(&log.request);
    let status = if log.claims > 0 { "running".to_owned() } else { row.status.clone() };
    let takeovers = log.claims.saturating_sub(1);
    ClusterRow { status, runner: log.runner.clone(), takeovers, ..row }
}

/// The row of a run with these events.
pub(super) fn row_after(mut row: ClusterRow, events: &[Arc<Event>]) -> ClusterRow {
    let mut course = CourseFold::default();
    events.iter().for_each(|event| course.apply(event));
    row.events = events.len() as u64;
    fill(&mut row, &course);
    row
}

/// Sets what the events so far say.
fn fill(row: &mut ClusterRow, course: &CourseFold) {
    row.elapsed_ms = millis(course.progress.active(course.progress.at));
    row.tokens = course.tally.usage.total();
    row.cost_usd = course.cost_usd();
    if let Some(closed) = &course.progress.closed {
        row.status = "ended".to_owned();
        row.reason = Some(closed.reason.to_string());
    }
}

impl RecordListener for RemoteCourse<'_> {
    fn events(&mut self, events: &[Arc<Event>]) {
        if self.run.bus().stored_mark().next().0 >= self.row.events {
            self.waiting = Instant::now();
        }
        for event in events {
            self.course.apply(event);
            self.row.events = event.seq.0 + 1;
        }
        if self.course.progress.closed.is_none() {
            self.course.forget_old(events.len());
        }
    }

    async fn stored(&mut self) {
        self.waiting = Instant::now();
        let is_due = self.written.is_none_or(|written| written.elapsed() >= ROW_EVERY);
        if is_due && self.course.progress.closed.is_none() {
            let written = self.write_row().await;
            if let Err(why) = written {
                tracing::debug!(run = self.row.run, "the row of the run was not written: {why}");
            }
        }
    }

    fn failed(&mut self, why: &str) -> bool {
        if !self.is_paused && self.waiting.elapsed() >= PAUSE_AFTER {
            self.is_paused = true;
            let text = format!("paused, because the run cannot be stored: {why}");
            let warning = EventKind::Warning { text: text.clone() };
            let text = match publish_unless_ended(self.run.bus(), SpanId::RUN, warning) {
                true => text,
                false => format!("its end cannot be stored yet: {why}"),
            };
            self.runner.tell(RunnerNews::Trouble(format!("{}: {text}", self.run.id())));
            self.run.send(Command::Pause { by: Initiator::Store });
        }
        true
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.is_paused) {
            self.run.send(Command::Resume { by: Initiator::Store });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::engine::{Engine, EngineSettings, Launch};
    use crate::event::RunId;
    use crate::support::own_runner::{cluster, models, request, settings};
    use crate::support::relay::shipped;

    /// An owner that stood still between its claim and its row, while another one played the run to its end.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_row_of_an_owner_that_stood_still_is_not_written_over_that_of_the_next_one() {
        let Some((_server, cluster)) = cluster().await else { return };
        let (_keep, draining) = watch::channel(false);
        let runner = Runner::new(cluster.clone(), settings("a"), models(), draining, |_| ());
        let engine = Engine::new(EngineSettings::default());
        let handle = engine.start(Launch::scripted(shipped("checkout-launch", &[]), true));
        let rows = RunRows(&cluster);
        let row = |runner: &str| ClusterRow {
            status: "running".to_owned(),
            runner: Some(runner.to_owned()),
            run: "r-1".to_owned(),
            ..ClusterRow::waiting(&request("checkout-launch", &[]))
        };
        let run = RunId::new("r-1");
        assert_eq!(rows.revision(&run, 1).await, Ok(0));
        rows.put(&ClusterRow { runner: None, ..row("") }).await.expect("stored");
        let before = rows.revision(&run, 1).await.expect("read");
        let mut first = RemoteCourse::new(&runner, &handle, row("a"), Some(before));
        let mut slow = RemoteCourse::new(&runner, &handle, row("slow"), Some(before));
        for _ in 0..2 {
            first.write_row().await.expect("stored");
            slow.write_row().await.expect("answered");
            let listed = rows.all().await.expect("read");
            assert_eq!(listed[0].runner.as_deref(), Some("a"));
        }
        // The answer to a write was lost: the row is still its own.
        rows.put(&row("a")).await.expect("stored");
        first.write_row().await.expect("answered");
        first.row.takeovers = 7;
        first.write_row().await.expect("stored");
        assert_eq!(rows.all().await.expect("read")[0].takeovers, 7);
    }
}
