//! Facts on their way to the loop: one task per log reads it and hands batches into one bounded
//! channel. When the loop is slow the tasks wait, and nothing is lost; a run that is too far ahead of
//! them waits too, so that what is on its way stays bounded.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::bus::Reader;
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
    /// The first fact that the log still held when it was read; those before it are gone.
    pub first: Seq,
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

    /// Hands on a run's facts, from where its reader stands, until its log is closed.
    pub fn follow(&self, run: RunId, facts: Reader) {
        tokio::spawn(hand_on(facts, Some(run), self.0.clone()));
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
        let first = reader.window();
        if feed.send(Batch { run: run.clone(), events, first }).await.is_err() {
            return;
        }
    }
}
