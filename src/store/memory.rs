//! Logs in memory: the reference that the other implementations are tested against.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::stream;
use futures::stream::{BoxStream, StreamExt};
use tokio::sync::Notify;

use super::{AppendError, EventGroup, ReadError, RunLog};
use crate::log::event::{EventKind, RunId, Seq};

/// Logs that end with the process.
#[derive(Debug, Default)]
pub struct MemoryLog {
    runs: Mutex<BTreeMap<RunId, Vec<EventGroup>>>,
    changed: Notify,
}

impl MemoryLog {
    /// Begins the log of a run.
    pub fn begin(&self, run: RunId) {
        self.lock().entry(run).or_default();
    }

    /// Deletes a run.
    pub fn remove(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Vec<EventGroup>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn groups(&self, run: &RunId, from: Seq) -> Result<Vec<EventGroup>, ReadError> {
        let runs = self.lock();
        let groups = runs.get(run).ok_or(ReadError::NoSuchRun)?;
        Ok(groups.iter().filter(|group| group.next() > from).cloned().collect())
    }
}

fn end(groups: &[EventGroup]) -> Seq {
    groups.last().map_or(Seq(0), EventGroup::next)
}

/// Whether a group has the end of its run.
pub(crate) fn has_end(group: &EventGroup) -> bool {
    let last = Seq(group.next().0.saturating_sub(1));
    group.events(last).is_ok_and(|events| {
        events.iter().any(|event| matches!(event.kind, EventKind::RunClosed(_)))
    })
}

impl RunLog for MemoryLog {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let group = group.clone();
        Box::pin(async move {
            let mut runs = self.lock();
            let groups = runs.get_mut(run).ok_or(AppendError::Gone)?;
            if end(groups) != expect || group.first() != expect {
                return Err(AppendError::Fenced);
            }
            let next = group.next();
            groups.push(group);
            drop(runs);
            self.changed.notify_waiters();
            Ok(next)
        })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(
            async move { self.lock().get(run).map(|groups| end(groups)).ok_or(AppendError::Gone) },
        )
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        match self.groups(run, from) {
            Ok(groups) => stream::iter(groups.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        stream::unfold(Some(from), move |from| async move {
            let mut from = from?;
            loop {
                let changed = self.changed.notified();
                let mut groups = match self.groups(run, from) {
                    Ok(groups) => groups.into_iter(),
                    Err(error) => return Some((Err(error), None)),
                };
                if let Some(group) = groups.next() {
                    from = group.next();
                    let more = (!has_end(&group)).then_some(from);
                    return Some((Ok(group), more));
                }
                changed.await;
            }
        })
        .boxed()
    }
}
