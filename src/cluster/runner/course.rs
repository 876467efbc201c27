//! Follows a run while it is stored: its row in the list of runs, and a pause while the cluster cannot
//! store it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::prepared::PlayedLog;
use super::{Runner, RunnerNews};
use crate::base::refused::Refused;
use crate::base::time::now_ms;
use crate::cluster::rows::{ASKING, ClusterRow, RunRows};
use crate::engine::RunHandle;
use crate::host::run_store::row_course;
use crate::log::bus::publish_unless_ended;
use crate::log::event::{Command, Event, EventKind, Initiator, SpanId};
use crate::log::world::RunFold;
use crate::log::world::run_row::LastEvent;
use crate::store::database::rows::RunCourse;
use crate::store::recorder::RecordListener;

/// How often the row of a run is written while it runs.
const ROW_EVERY: Duration = Duration::from_secs(1);

/// A write that fails for this time pauses the run. A replicated server that changes its leader is not
/// noticed.
const PAUSE_AFTER: Duration = Duration::from_secs(15);

/// The course of a run.
pub(crate) struct RemoteCourse<'a> {
    runner: &'a Runner,
    pub run: &'a RunHandle,
    pub row: ClusterRow,
    /// Revision of the row that this owner may replace; `None`: any.
    revision: Option<u64>,
    course: RunFold,
    written: Option<Instant>,
    /// Since when something waits to be stored.
    waiting: Instant,
    is_paused: bool,
}

impl<'a> RemoteCourse<'a> {
    /// Follows a run. `revision` is that of its row before this owner claimed the run; `None`: it could
    /// not be read.
    pub fn new(
        runner: &'a Runner,
        run: &'a RunHandle,
        row: ClusterRow,
        revision: Option<u64>,
    ) -> Self {
        let (course, waiting) = (RunFold::default(), Instant::now());
        Self { runner, run, row, revision, course, written: None, waiting, is_paused: false }
    }

    /// The run as far as it was followed.
    pub fn course(&self) -> &RunFold {
        &self.course
    }

    /// The stop reason, if the run has ended.
    pub fn reason(&self) -> Option<String> {
        self.course.progress.closed.as_ref().map(|closed| closed.reason.to_string())
    }

    /// Writes the row; while the run plays, not over that of a later owner: it takes a moment until this one
    /// learns that it has lost the run.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn write_row(&mut self) -> Result<(), Refused> {
        self.written = Some(Instant::now());
        fill(&mut self.row, &self.course);
        let (rows, row) = (RunRows(&self.runner.cluster), &self.row);
        // The end is stored in the log, which no later owner continues.
        let over = self.revision.filter(|_| row.reason.is_none());
        if let Some(revision) = rows.write(row, over).await? {
            self.revision = Some(revision);
            return Ok(());
        }
        // Either the run has a later owner, or the answer to an earlier write was lost.
        let (revision, found) = rows.read(self.run.id(), row.started_ms).await?;
        if found.is_some_and(|found| is_of_same_owner(&found, row)) {
            self.revision = Some(revision);
        }
        Ok(())
    }
}

impl RemoteCourse<'_> {
    /// Writes the row of a run that was released.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn write_released(&mut self) -> Result<(), Refused> {
        self.row.status = ASKING.to_owned();
        self.write_row().await
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
    let course = RunFold::course_of(events.iter().map(|event| &**event));
    row.events = events.len() as u64;
    fill(&mut row, &course);
    row
}

/// Whether the owner of the run has not changed between these rows; a run that has ended has none.
fn is_of_same_owner(found: &ClusterRow, own: &ClusterRow) -> bool {
    found.reason.is_none() && (&found.runner, found.takeovers) == (&own.runner, own.takeovers)
}

/// Sets what the events so far say.
fn fill(row: &mut ClusterRow, course: &RunFold) {
    let RunCourse { elapsed_ms, tokens, cost_usd, result, ended, .. } = row_course(course);
    (row.elapsed_ms, row.tokens, row.cost_usd) = (elapsed_ms, tokens, cost_usd);
    row.result = result.as_deref().map(str::to_owned);
    row.waits_for = course.questions.open().map(|question| question.asked.who.clone()).collect();
    if ended.is_some() {
        row.status = "ended".to_owned();
        row.reason = ended;
    }
}

impl RecordListener for RemoteCourse<'_> {
    fn events(&mut self, events: &[Arc<Event>]) {
        if self.run.bus().stored_mark().next().0 >= self.row.events {
            self.waiting = Instant::now();
        }
        for event in events {
            self.course.apply_course(event);
            self.row.events = event.seq.0 + 1;
        }
        self.row.last = events
            .last()
            .map(|event| LastEvent { kind: event.kind.name().into(), at_ms: now_ms() });
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
                tracing::debug!(run = self.row.run, "the row of the run was not written: {why:#}");
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
    use crate::support::own_runner::{cluster, models, request, settings};
    use crate::support::relay::shipped;

    /// An owner may be suspended between its claim and its row, until another one has played the run.
    #[tokio::test(flavor = "multi_thread")]
    async fn late_owner_keeps_next_owners_row() {
        let Some((_server, cluster)) = cluster().await else { return };
        let (_keep, draining) = watch::channel(false);
        let runner_of = Runner::new(cluster.clone(), settings("a"), models(), draining, |_| ());
        let engine = Engine::new(EngineSettings::default());
        let handle = engine.start(Launch::scripted(shipped("checkout-launch", &[]), true));
        let (rows, run) = (RunRows(&cluster), handle.id().clone());
        let row = |runner: Option<&str>| ClusterRow {
            status: "running".to_owned(),
            runner: runner.map(str::to_owned),
            run: run.to_string(),
            ..ClusterRow::waiting(&request("checkout-launch", &[]))
        };
        let started_ms = row(None).started_ms;
        assert_eq!(rows.read(&run, started_ms).await.expect("read"), (0, None));
        rows.put(&row(None)).await.expect("stored");
        let (before, found) = rows.read(&run, started_ms).await.expect("read");
        assert_eq!(found, Some(row(None)));
        let course = |runner| RemoteCourse::new(&runner_of, &handle, row(runner), Some(before));
        let (mut late, mut next) = (course(Some("late")), course(Some("next")));
        let listed = async || rows.read(&run, started_ms).await.expect("read").1.expect("a row");
        for _ in 0..2 {
            next.write_row().await.expect("stored");
            late.write_row().await.expect("answered");
            assert_eq!(listed().await.runner.as_deref(), Some("next"));
        }
        // The answer to a write was lost: the row is still its own.
        rows.put(&row(Some("next"))).await.expect("stored");
        next.write_row().await.expect("answered");
        next.row.events = 7;
        next.write_row().await.expect("stored");
        assert_eq!(listed().await.events, 7);
        // One that has ended is nobody's any more.
        let end = ClusterRow { reason: Some("success".to_owned()), ..row(Some("next")) };
        rows.put(&end).await.expect("stored");
        for _ in 0..2 {
            next.write_row().await.expect("answered");
            assert_eq!(listed().await, end);
        }
    }
}
