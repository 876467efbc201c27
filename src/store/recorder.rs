//! Stores a run while it runs: reads its bus like any other reader, appends what is there in
//! groups, and raises the mark of what is stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::group::EventGroup;
use super::{AppendError, RunLog};
use crate::bus::{LogReader, StoredMark};
use crate::event::{Event, RunId, Seq};

/// Most events that are read at a time.
const BATCH: usize = 256;

/// The wait before the first repetition of a write that failed, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What is reported while a run is stored, and what is decided then.
pub trait RecordListener: Send {
    /// These events are stored next; those before them may not be stored yet.
    fn events(&mut self, events: &[Arc<Event>]);

    /// A group was stored. Some of the events that were reported may come after it.
    fn stored(&mut self) -> impl Future<Output = ()> + Send;

    /// A write failed. It is repeated if this returns `true`; otherwise the run is not stored any
    /// more.
    fn failed(&mut self, why: &str) -> bool;

    /// The write that had failed is done.
    fn recovered(&mut self);
}

/// Why a run is not stored any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Another process writes the log, or the run was deleted.
    Lost(AppendError),
    /// The listener gave up after this failure.
    GaveUp(String),
}

/// Stores the events of a run from `next` on, until its log ends; those before it are stored already.
///
/// # Errors
/// [`RecordError`] if the run is not stored any more. The caller decides what becomes of the run, then
/// [releases](StoredMark::abandon) the calls that wait for the mark.
pub async fn record(
    log: &dyn RunLog,
    run: &RunId,
    mut reader: LogReader,
    next: Seq,
    mark: &StoredMark,
    listener: &mut impl RecordListener,
) -> Result<(), RecordError> {
    mark.raise(next);
    let mut source = GroupSource { reader: &mut reader, run, events: Vec::new() };
    let mut group = EventGroup::starting_at(next);
    loop {
        if group.is_empty() && !source.wait().await {
            return Ok(());
        }
        source.fill(&mut group, listener)?;
        if group.is_empty() {
            continue;
        }
        // The next group is made while this one is written.
        let appending = log.append(run, group.first(), &group);
        let mut following = EventGroup::starting_at(group.next());
        source.fill(&mut following, listener)?;
        settle(log, run, &group, appending.await, mark, listener).await?;
        group = following;
    }
}

/// Makes groups of the events of a run.
struct GroupSource<'a> {
    reader: &'a mut LogReader,
    run: &'a RunId,
    /// Events that were read and are in no group yet.
    events: Vec<Arc<Event>>,
}

impl GroupSource<'_> {
    /// Waits for events; `false`: there are no more.
    async fn wait(&mut self) -> bool {
        !self.events.is_empty() || self.reader.next_batch(&mut self.events, BATCH).await > 0
    }

    /// Adds what is there to a group, until it is full: the more there is, the larger the group.
    fn fill(
        &mut self,
        group: &mut EventGroup,
        listener: &mut impl RecordListener,
    ) -> Result<(), RecordError> {
        while !group.is_full() {
            if self.events.is_empty() && self.reader.take(&mut self.events, BATCH) == 0 {
                break;
            }
            let mut used = 0;
            for event in &self.events {
                if group.is_full() {
                    break;
                }
                used += 1;
                if event.seq >= group.next()
                    && let Err(error) = group.push(event, self.run)
                {
                    return Err(RecordError::GaveUp(error.to_string()));
                }
            }
            listener.events(&self.events[..used]);
            self.events.drain(..used);
        }
        Ok(())
    }
}

/// Takes the result of an append. After a failure repeats it, however often that takes.
async fn settle(
    log: &dyn RunLog,
    run: &RunId,
    group: &EventGroup,
    mut appended: Result<Seq, AppendError>,
    mark: &StoredMark,
    listener: &mut impl RecordListener,
) -> Result<(), RecordError> {
    let mut wait = FIRST_WAIT;
    let mut has_failed = false;
    loop {
        match appended {
            Ok(next) => {
                mark.raise(next);
                if has_failed {
                    listener.recovered();
                }
                listener.stored().await;
                return Ok(());
            }
            Err(AppendError::Unsure(why)) => {
                tracing::warn!(%run, "the run cannot be stored: {why}");
                if !listener.failed(&why) {
                    return Err(RecordError::GaveUp(why));
                }
                has_failed = true;
                sleep(wait).await;
                wait = LONGEST_WAIT.min(wait * 2);
            }
            Err(lost) => return Err(RecordError::Lost(lost)),
        }
        // After an uncertain failure the group may be stored already.
        appended = match log.next(run).await {
            Ok(next) if next == group.next() => Ok(next),
            Ok(next) if next == group.first() => log.append(run, group.first(), group).await,
            Ok(_) => Err(AppendError::Fenced),
            Err(error) => Err(error),
        };
    }
}
