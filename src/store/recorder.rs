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
    /// These events are stored next.
    fn events(&mut self, events: &[Arc<Event>]);

    /// A group was stored.
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
    mut next: Seq,
    mark: &StoredMark,
    listener: &mut impl RecordListener,
) -> Result<(), RecordError> {
    mark.raise(next);
    let mut events = Vec::new();
    while reader.next_batch(&mut events, BATCH).await > 0 {
        let mut group = EventGroup::starting_at(next);
        // What has come meanwhile is stored together with it: the more there is, the larger the group.
        while !events.is_empty() {
            listener.events(&events);
            for event in events.drain(..) {
                if event.seq < group.next() {
                    continue;
                }
                if let Err(error) = group.push(&event, run) {
                    return Err(RecordError::GaveUp(error.to_string()));
                }
                if group.is_full() {
                    next = store(log, run, &group, mark, listener).await?;
                    group = EventGroup::starting_at(next);
                }
            }
            reader.take(&mut events, BATCH);
        }
        if !group.is_empty() {
            next = store(log, run, &group, mark, listener).await?;
        }
    }
    Ok(())
}

/// Appends a group, however often that takes.
async fn store(
    log: &dyn RunLog,
    run: &RunId,
    group: &EventGroup,
    mark: &StoredMark,
    listener: &mut impl RecordListener,
) -> Result<Seq, RecordError> {
    let mut wait = FIRST_WAIT;
    let mut has_failed = false;
    let mut is_unsure = false;
    loop {
        // After an uncertain failure the group may be stored already.
        let appended = match is_unsure {
            false => log.append(run, group.first(), group).await,
            true => match log.next(run).await {
                Ok(next) if next == group.next() => Ok(next),
                Ok(next) if next == group.first() => log.append(run, group.first(), group).await,
                Ok(_) => Err(AppendError::Fenced),
                Err(error) => Err(error),
            },
        };
        match appended {
            Ok(next) => {
                mark.raise(next);
                if has_failed {
                    listener.recovered();
                }
                listener.stored().await;
                return Ok(next);
            }
            Err(AppendError::Unsure(why)) => {
                tracing::warn!(%run, "the run cannot be stored: {why}");
                if !listener.failed(&why) {
                    return Err(RecordError::GaveUp(why));
                }
                (has_failed, is_unsure) = (true, true);
                sleep(wait).await;
                wait = LONGEST_WAIT.min(wait * 2);
            }
            Err(lost) => return Err(RecordError::Lost(lost)),
        }
    }
}
