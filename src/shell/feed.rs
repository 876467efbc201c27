//! Feeds events to the loop: one task per log reads it and sends batches into one bounded channel.
//! If the loop is slow, the tasks wait, and a run that is too far ahead of them waits too. So
//! memory is bounded and no event is lost.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::bus::LogReader;
use crate::event::{Event, RunId, Seq};

/// Events in one batch: small enough that processing one does not delay a key noticeably.
const BATCH: usize = 512;

/// Capacity of the channel, in batches.
const CHANNEL_BATCHES: usize = 16;

/// Consecutive events of one log.
#[derive(Debug)]
pub struct Batch {
    /// The run that they belong to; `None`: the log of the engine's session.
    pub run: Option<RunId>,
    /// The events, in the log's order.
    pub events: Vec<Arc<Event>>,
    /// The first event that the log still held when it was read; earlier ones are dropped.
    pub first: Seq,
}

/// The sending end of the channel.
#[derive(Debug, Clone)]
pub struct Feed(mpsc::Sender<Batch>);

impl Feed {
    /// Creates the channel; the loop gets the receiving end.
    pub fn new() -> (Self, mpsc::Receiver<Batch>) {
        let (send, receive) = mpsc::channel(CHANNEL_BATCHES);
        (Self(send), receive)
    }

    /// Sends a run's events, from the reader's position, until its log is closed.
    pub fn follow(&self, run: RunId, facts: LogReader) {
        tokio::spawn(forward(facts, Some(run), self.0.clone()));
    }

    /// Sends the events of the engine's session.
    pub fn follow_session(&self, session: LogReader) {
        tokio::spawn(forward(session, None, self.0.clone()));
    }
}

async fn forward(mut reader: LogReader, run: Option<RunId>, feed: mpsc::Sender<Batch>) {
    loop {
        let mut events = Vec::new();
        if reader.next_batch(&mut events, BATCH).await == 0 {
            return;
        }
        let first = reader.log_start();
        if feed.send(Batch { run: run.clone(), events, first }).await.is_err() {
            return;
        }
    }
}
