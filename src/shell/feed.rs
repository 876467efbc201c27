//! Facts on their way to the loop: one task per log reads it and hands batches into one bounded
//! channel. When the loop is slow the tasks wait; the logs wait for nobody, and nothing is lost.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::bus::Reader;
use crate::engine::RunHandle;
use crate::event::{Event, RunId, Seq};

/// Facts in one batch: small enough that a key waits for no more than one.
const BATCH: usize = 512;

/// Batches that may wait for the loop.
const WAITING: usize = 16;

/// A batch of facts.
#[derive(Debug)]
pub struct Batch {
    /// Whose; `None`: the session's.
    pub run: Option<RunId>,
    /// The facts, in the log's order.
    pub events: Vec<Arc<Event>>,
}

/// The way in.
#[derive(Debug, Clone)]
pub struct Feed(mpsc::Sender<Batch>);

impl Feed {
    /// The way in and the end that the loop reads.
    pub fn new() -> (Self, mpsc::Receiver<Batch>) {
        let (send, receive) = mpsc::channel(WAITING);
        (Self(send), receive)
    }

    /// Hands on a run's facts, from its first, until its log is closed.
    pub fn follow(&self, run: &RunHandle) {
        let reader = run.bus().reader(Seq(0));
        tokio::spawn(hand_on(reader, Some(run.id().clone()), self.0.clone()));
    }

    /// Hands on the session's facts.
    pub fn follow_session(&self, session: Reader) {
        tokio::spawn(hand_on(session, None, self.0.clone()));
    }
}

async fn hand_on(mut reader: Reader, run: Option<RunId>, feed: mpsc::Sender<Batch>) {
    loop {
        let mut events = Vec::new();
        if reader.next_batch(&mut events, BATCH).await == 0 {
            return;
        }
        if feed.send(Batch { run: run.clone(), events }).await.is_err() {
            return;
        }
    }
}
