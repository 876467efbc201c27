//! The runs that wait for a runner: an alarm clock, and nothing more. That a runner has an item does
//! not mean that it owns the run.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use async_nats::{HeaderMap, Subscriber};
use futures::StreamExt as _;

use super::Cluster;
use super::names::{QUEUE, is_name};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::RunId;

/// Header by which a server stores a message only once, for some minutes.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// What is wrong where no run comes from a queue.
const UNREAD: &str = "the queue of runs cannot be read";

/// A run that waits for a runner.
pub struct QueuedRun {
    pub run: RunId,
    pub pool: String,
    message: Message,
}

impl QueuedRun {
    /// The run has ended, or does not exist: no runner needs the item any more. Only after the end of the run is
    /// stored.
    pub async fn done(&self) {
        if let Err(error) = self.message.double_ack().await {
            tracing::debug!(run = %self.run, "an item of the queue was not removed: {error}");
        }
    }

    /// The run is being played.
    pub async fn in_progress(&self) {
        let _ = self.message.ack_with(AckKind::Progress).await;
    }

    /// Another runner may have it, after this time.
    pub async fn hand_back(&self, after: Duration) {
        let _ = self.message.ack_with(AckKind::Nak(Some(after))).await;
    }
}

/// The runs that wait for the runners of one pool.
pub struct RunQueue {
    consumer: PullConsumer,
    pool: String,
}

impl RunQueue {
    /// Waits for a run, up to this time.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn take(&self, within: Duration) -> Result<Option<QueuedRun>, Refused> {
        let batch = self.consumer.batch().max_messages(1).expires(within).messages().await;
        let mut batch = batch.or_refuse(UNREAD)?;
        match batch.next().await {
            None => Ok(None),
            Some(Err(error)) => Err(error).or_refuse(UNREAD),
            Some(Ok(message)) => {
                if let Some(run) = run_of(&message.payload) {
                    return Ok(Some(QueuedRun { run, pool: self.pool.clone(), message }));
                }
                tracing::warn!("an item of the queue names no run: it is removed");
                let _ = message.ack().await;
                Ok(None)
            }
        }
    }
}

/// The run of an item; `None`: it is not an id, so it cannot be a part of a subject.
fn run_of(payload: &[u8]) -> Option<RunId> {
    std::str::from_utf8(payload).ok().filter(|id| is_name(id)).map(RunId::new)
}

/// What runners say of a run that waits.
pub struct RunNotes(Subscriber);

impl RunNotes {
    /// Waits for the next sentence; `None`: the connection was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<String> {
        let message = self.0.next().await?;
        Some(String::from_utf8_lossy(&message.payload).into_owned())
    }
}

impl Cluster {
    /// Adds a run to the queue of a pool. With the last message of its log only once, however many
    /// runners do it at a time.
    ///
    /// # Errors
    /// The server does not store it.
    pub async fn enqueue(
        &self,
        pool: &str,
        run: &RunId,
        after: Option<u64>,
    ) -> Result<(), Refused> {
        let subject = self.namespace().queue(pool);
        let payload = run.as_str().as_bytes().to_vec();
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(MESSAGE_ID, format!("{}.{run}.{after}", self.namespace()));
        }
        let published = self.store(subject, headers, payload, None).await;
        published.or_refuse(format_args!("{run} cannot be queued")).map(drop)
    }

    /// The runs of all pools that wait for a runner, or are being played.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn queued_runs(&self) -> Result<BTreeSet<RunId>, Refused> {
        let (subject, mut from) = (self.namespace().queue("*"), 0);
        let mut runs = BTreeSet::new();
        loop {
            let items = self.messages(QUEUE, &subject, from).await;
            let items = items.or_refuse(UNREAD)?;
            let Some(last) = items.last() else { return Ok(runs) };
            from = last.place + 1;
            runs.extend(items.iter().filter_map(|item| run_of(&item.payload)));
        }
    }

    /// Sends a sentence about a run that waits to the programs that follow it now.
    pub async fn note(&self, run: &RunId, text: &str) {
        let subject = self.namespace().notes(run);
        let _ = self.client().publish(subject, text.as_bytes().to_vec().into()).await;
    }

    /// What runners say of a run that waits, from now on.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn notes(&self, run: &RunId) -> Result<RunNotes, Refused> {
        let subject = self.namespace().notes(run);
        let notes = self.client().subscribe(subject).await.map(RunNotes);
        notes.or_refuse(format_args!("the notes of runners on {run} cannot be read"))
    }

    /// The queue of a pool. An item that no runner reports as in progress is offered to another runner after
    /// `ack_wait`, for all runners of the pool: see [`RunnerRow::disagrees`](crate::cluster::rows::RunnerRow::disagrees).
    ///
    /// # Errors
    /// The server has no queue.
    pub async fn queue(&self, pool: &str, ack_wait: Duration) -> Result<RunQueue, Refused> {
        let queue = self.context().get_stream_no_info(QUEUE).await;
        let queue = queue.or_refuse(UNREAD)?;
        let config = pull::Config {
            // Neither part has this sign, so no two pools share a name.
            durable_name: Some(format!("{}={pool}", self.namespace())),
            filter_subject: self.namespace().queue(pool),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            max_deliver: -1,
            max_ack_pending: 100_000,
            ..pull::Config::default()
        };
        let consumer = queue.create_consumer(config).await.or_refuse(UNREAD)?;
        Ok(RunQueue { consumer, pool: pool.to_owned() })
    }
}
