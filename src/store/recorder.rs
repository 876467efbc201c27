//! Stores a run while it runs: reads its log like any other reader, makes groups of the new events,
//! appends them and raises the mark of the stored events. Only calls with effects wait for that mark.
//! The slower the store, the larger the groups; a run that is too far ahead waits, so a slow disk
//! slows a run and does not fill the memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::sleep;

use super::{AppendError, EventGroup, RunLog};
use crate::log::bus::{LogReader, StoredMark};
use crate::log::event::{Event, RunId, Seq};

/// Most events that are read at a time.
const BATCH: usize = 256;

/// Most groups of a run that are being appended at a time: a log that is written elsewhere stores what
/// waits for it together.
const IN_FLIGHT: usize = 4;

/// A group of more events has no words, and no later group of its run has: the run is faster than the
/// store. The next search reads the words from the log.
const MAX_INDEXED: u32 = 256;

/// The wait before the first repetition of a write that failed, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Receives reports while a run is stored, and decides what happens after a failure.
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
    let mut source =
        GroupSource { reader: &mut reader, run, events: Vec::new(), has_words: log.has_index() };
    let mut writer = GroupWriter { log, run, mark, appending: VecDeque::new(), stored: None };
    let mut group = EventGroup::starting_at(next);
    loop {
        if group.is_empty() && writer.is_idle() && !source.wait().await {
            return Ok(());
        }
        // Groups are made while those before them are written.
        source.fill(&mut group, listener)?;
        if writer.takes(&group) {
            let following = writer.empty_group(group.next());
            writer.append(std::mem::replace(&mut group, following));
        } else {
            writer.settle(listener).await?;
        }
    }
}

/// A group that is being appended.
type Appending<'a> = (EventGroup, BoxFuture<'a, Result<Seq, AppendError>>);

/// Appends groups to the log of a run, in their order.
struct GroupWriter<'a> {
    log: &'a dyn RunLog,
    run: &'a RunId,
    mark: &'a StoredMark,
    appending: VecDeque<Appending<'a>>,
    /// The last stored group: the next one reuses its memory.
    stored: Option<EventGroup>,
}

impl GroupWriter<'_> {
    fn is_idle(&self) -> bool {
        self.appending.is_empty()
    }

    /// Whether a group is to be appended now. One that is not full waits for those before it, and gets
    /// the events of that time.
    fn takes(&self, group: &EventGroup) -> bool {
        let is_next = self.is_idle() || (group.is_full() && self.appending.len() < IN_FLIGHT);
        !group.is_empty() && is_next
    }

    fn empty_group(&mut self, first: Seq) -> EventGroup {
        match self.stored.take() {
            Some(stored) => EventGroup::reusing(stored, first),
            None => EventGroup::starting_at(first),
        }
    }

    fn append(&mut self, group: EventGroup) {
        let appended = self.log.append(self.run, group.first(), &group);
        self.appending.push_back((group, appended));
    }

    /// Waits for the oldest append. After a failure it repeats that append as often as needed, and
    /// those that were sent after it.
    async fn settle(&mut self, listener: &mut impl RecordListener) -> Result<(), RecordError> {
        let Some((group, appended)) = self.appending.pop_front() else { return Ok(()) };
        match appended.await {
            Err(AppendError::Unsure(why)) => {
                let mut groups = vec![group];
                for (group, appended) in std::mem::take(&mut self.appending) {
                    // It did not continue the log, or it is found to be stored.
                    let _ = appended.await;
                    groups.push(group);
                }
                self.repeat(groups, why, listener).await
            }
            Err(lost) => Err(RecordError::Lost(lost)),
            Ok(next) => {
                self.mark.raise(next);
                self.stored = Some(group);
                listener.stored().await;
                Ok(())
            }
        }
    }

    /// Appends groups after a failure, one after the other.
    async fn repeat(
        &mut self,
        groups: Vec<EventGroup>,
        why: String,
        listener: &mut impl RecordListener,
    ) -> Result<(), RecordError> {
        let mut failed = Some(why);
        for group in groups {
            let mut wait = FIRST_WAIT;
            let mut has_failed = false;
            loop {
                if let Some(why) = failed.take() {
                    // The listener tells the operator.
                    tracing::info!(run = %self.run, "the run cannot be stored: {why}");
                    if !listener.failed(&why) {
                        return Err(RecordError::GaveUp(why));
                    }
                    has_failed = true;
                    sleep(wait).await;
                    wait = LONGEST_WAIT.min(wait * 2);
                }
                match self.append_unless_stored(&group).await {
                    Ok(next) => {
                        self.mark.raise(next);
                        break;
                    }
                    Err(AppendError::Unsure(why)) => failed = Some(why),
                    Err(lost) => return Err(RecordError::Lost(lost)),
                }
            }
            if has_failed {
                listener.recovered();
            }
            listener.stored().await;
        }
        Ok(())
    }

    /// After an uncertain failure a group may be stored already, and so may those after it.
    async fn append_unless_stored(&mut self, group: &EventGroup) -> Result<Seq, AppendError> {
        match self.log.next(self.run).await? {
            next if next >= group.next() => Ok(group.next()),
            next if next == group.first() => self.log.append(self.run, next, group).await,
            _ => Err(AppendError::Fenced),
        }
    }
}

/// Makes groups of the events of a run.
struct GroupSource<'a> {
    reader: &'a mut LogReader,
    run: &'a RunId,
    /// Events that were read and are in no group yet.
    events: Vec<Arc<Event>>,
    /// Whether groups get the words of their events.
    has_words: bool,
}

impl GroupSource<'_> {
    /// Waits for events; `false`: there are no more.
    async fn wait(&mut self) -> bool {
        !self.events.is_empty() || self.reader.next_batch(&mut self.events, BATCH).await > 0
    }

    /// Adds the waiting events to a group, until it is full: the more events wait, the larger the
    /// group.
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
                if event.seq < group.next() {
                    continue;
                }
                if let Err(error) = group.push_line(event, self.run) {
                    return Err(RecordError::GaveUp(error.to_string()));
                }
                self.has_words &= group.len() <= MAX_INDEXED;
                if self.has_words {
                    group.push_words(event);
                } else {
                    group.leave_out_words();
                }
            }
            listener.events(&self.events[..used]);
            self.events.drain(..used);
        }
        Ok(())
    }
}
