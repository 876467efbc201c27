//! Follows the log of a run from its beginning: what is stored, then each message as it is stored. A
//! message that was missed, after a lost connection or by a slow reader, is read from the stream, so a
//! follower has no gaps.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::time::sleep;

use super::archive::RunArchive;
use super::entry::{LogEntry, LogPart, RawEntry, header, number, unix_ms};
use super::stream::{BEHIND, last_place};
use super::{Cluster, Link, error_text};
use crate::log::event::{EventKind, RunId, Seq};
use crate::store::{EventGroup, ReadError};

/// Time before servers that do not answer are asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// What a follower learns.
#[derive(Clone, Debug, PartialEq)]
pub enum LogNews {
    /// The next message of the log.
    Entry(LogEntry),
    /// Everything that is stored was read.
    UpToDate,
    /// The connection was lost: what follows comes later.
    LinkLost,
    /// The connection is there again.
    LinkBack,
}

/// Follows one log.
pub struct LogFollower {
    cluster: Cluster,
    run: RunId,
    link: watch::Receiver<Link>,
    seen: Link,
    live: Option<Subscriber>,
    waiting: VecDeque<LogNews>,
    /// The last message that was read, and the event that has to come next.
    place: u64,
    next: Seq,
    /// Whether the stream has to be read before live messages can be used.
    behind: bool,
    /// Whether the servers are reached and cannot answer.
    stalled: bool,
    /// Why nothing follows what was read so far.
    failed: Option<ReadError>,
    ended: bool,
}

impl Cluster {
    /// Follows the log of a run from its beginning.
    pub fn follow(&self, run: &RunId) -> LogFollower {
        self.follow_after(run, 0, Seq(0))
    }

    /// Follows the log of a run from behind this message, where it continues with this event.
    pub fn follow_after(&self, run: &RunId, place: u64, next: Seq) -> LogFollower {
        let mut link = self.link();
        let seen = *link.borrow_and_update();
        LogFollower {
            cluster: self.clone(),
            run: run.clone(),
            link,
            seen,
            live: None,
            waiting: VecDeque::new(),
            place,
            next,
            behind: true,
            stalled: false,
            failed: None,
            ended: false,
        }
    }
}

/// What wakes a follower.
enum Woken {
    Message(Option<Message>),
    Link(bool),
}

impl LogFollower {
    /// Waits for the next news; `None`: the run has ended, and all of its log was read, or an error was
    /// returned before. Cancel safe.
    pub async fn news(&mut self) -> Option<Result<LogNews, ReadError>> {
        loop {
            if let Some(news) = self.waiting.pop_front() {
                return Some(Ok(news));
            }
            if let Some(error) = self.failed.take() {
                self.ended = true;
                return Some(Err(error));
            }
            if self.ended {
                return None;
            }
            let done = match self.behind {
                true => self.catch_up().await,
                false => self.wait().await,
            };
            self.failed = done.err();
        }
    }

    /// Reads what is stored. The subscription is made first, so that nothing falls between.
    async fn catch_up(&mut self) -> Result<(), ReadError> {
        if self.live.is_none() {
            let subject = self.cluster.namespace().live(&self.run);
            let live = self.cluster.client().subscribe(subject).await;
            let unreadable = |error| ReadError::Unreadable(error_text(&error));
            self.live = Some(live.map_err(unreadable)?);
        }
        let read = self.cluster.some_entries(&self.run, self.place + 1).await;
        let entries = match read {
            Ok(entries) => entries,
            // The connection is gone: it is read when it is there again.
            Err(ReadError::Unreadable(_)) if !self.link.borrow().is_up => {
                return self.wait_for_link().await;
            }
            // It was readable before: the servers elect a leader, or too few of them run.
            Err(ReadError::Unreadable(_)) if self.place > 0 => {
                self.stall().await;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if entries.is_empty() {
            // Any server may have answered. The leader knows whether that was all.
            match last_place(&self.cluster, &self.run).await {
                Ok(0) => match self.take_archived().await {
                    Ok(()) => {}
                    // It was readable before.
                    Err(ReadError::Unreadable(_)) if self.place > 0 => {
                        self.stall().await;
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
                Ok(end) if end <= self.place => {
                    self.behind = false;
                    self.waiting.push_back(LogNews::UpToDate);
                }
                Ok(_) => sleep(BEHIND).await,
                Err(_) => {
                    self.stall().await;
                    return Ok(());
                }
            }
        }
        if std::mem::take(&mut self.stalled) {
            self.waiting.push_back(LogNews::LinkBack);
        }
        entries.into_iter().try_for_each(|entry| self.take(entry))
    }

    /// The stream has nothing of the run: it has no log yet, or its log is in the archive.
    async fn take_archived(&mut self) -> Result<(), ReadError> {
        let Some(lines) = RunArchive(&self.cluster).lines(&self.run).await? else {
            if self.place > 0 {
                let why = "the log of the run was removed".to_owned();
                return Err(ReadError::Damaged { at: self.next.0, why });
            }
            self.behind = false;
            self.waiting.push_back(LogNews::UpToDate);
            return Ok(());
        };
        let is_line = |line: &&[u8]| !line.is_empty();
        let rest = lines.split_inclusive(|byte| *byte == b'\n').filter(is_line);
        let skipped = usize::try_from(self.next.0).unwrap_or(usize::MAX);
        let rest: Vec<&[u8]> = rest.skip(skipped).collect();
        let count = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        if count == 0 {
            self.ended = true;
            return Ok(());
        }
        let part = LogPart::Events(EventGroup::stored(self.next, count, rest.concat()));
        let (place, owner) = (self.place, String::new());
        self.take(LogEntry { place, stored_ms: 0, owner, session: None, part })
    }

    /// The servers cannot answer now.
    async fn stall(&mut self) {
        if std::mem::replace(&mut self.stalled, true) {
            sleep(AGAIN).await;
        } else {
            self.waiting.push_back(LogNews::LinkLost);
        }
    }

    /// Waits for a live message, or for the connection.
    async fn wait(&mut self) -> Result<(), ReadError> {
        let Some(live) = &mut self.live else {
            self.behind = true;
            return Ok(());
        };
        let woken = tokio::select! {
            message = live.next() => Woken::Message(message),
            changed = self.link.changed() => Woken::Link(changed.is_ok()),
        };
        match woken {
            Woken::Message(Some(message)) => self.take_live(message).await,
            Woken::Message(None) => {
                self.live = None;
                self.behind = true;
                Ok(())
            }
            Woken::Link(true) => {
                self.note_link();
                Ok(())
            }
            Woken::Link(false) => Err(ReadError::Unreadable("the connection was closed".into())),
        }
    }

    async fn wait_for_link(&mut self) -> Result<(), ReadError> {
        self.note_link();
        if self.link.changed().await.is_err() {
            return Err(ReadError::Unreadable("the connection was closed".to_owned()));
        }
        self.note_link();
        Ok(())
    }

    fn note_link(&mut self) {
        let now = *self.link.borrow_and_update();
        if now.is_up != self.seen.is_up {
            self.waiting.push_back(if now.is_up { LogNews::LinkBack } else { LogNews::LinkLost });
        }
        self.behind |= now.gaps != self.seen.gaps;
        self.seen = now;
    }

    /// Takes a message that was stored just now, if it is the next one.
    async fn take_live(&mut self, message: Message) -> Result<(), ReadError> {
        let headers = message.headers.unwrap_or_default();
        let Some(place) = number(&headers, "Nats-Sequence") else { return Ok(()) };
        if place <= self.place {
            return Ok(());
        }
        if number(&headers, "Nats-Last-Sequence") != Some(self.place) {
            self.behind = true;
            return Ok(());
        }
        let stored_ms = header(&headers, "Nats-Time-Stamp").map_or(0, unix_ms);
        let raw = RawEntry { place, stored_ms, headers, payload: message.payload.to_vec() };
        let entry =
            raw.read().map_err(|why| ReadError::Damaged { at: place, why: format!("{why:#}") })?;
        match self.cluster.fetched(entry).await {
            Ok(entry) => self.take(entry),
            Err(ReadError::Unreadable(_)) => {
                self.behind = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, entry: LogEntry) -> Result<(), ReadError> {
        self.place = entry.place;
        if let LogPart::Events(group) = &entry.part {
            if group.first() != self.next {
                let why = format!("the log continues with event {}", group.first().0);
                return Err(ReadError::Damaged { at: self.next.0, why });
            }
            self.next = group.next();
            let last = group.next().0.checked_sub(1).map(Seq);
            let events = last.map(|last| group.events(last)).transpose()?;
            let last = events.as_ref().and_then(|events| events.last());
            self.ended |= last.is_some_and(|it| matches!(it.kind, EventKind::RunClosed(_)));
        }
        self.waiting.push_back(LogNews::Entry(entry));
        Ok(())
    }
}
