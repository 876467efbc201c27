//! Reads the messages of one subject of a stream, many in one request, without a consumer: a stream
//! can have a thousand of them at most, and any number of programs read.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::blobs::Blobs;
use super::connection::{Cluster, plain};
use super::entry::{LogEntry, LogPart, RawEntry, header, number, unix_ms};
use super::leader::{BEHIND, BEHIND_FOR, NO_STREAMS, last_message};
use super::names::LOGS;
use crate::event::RunId;
use crate::store::{EventGroup, ReadError};

/// Messages in one answer, and bytes.
const BATCH: u32 = 4_096;
const BATCH_BYTES: u32 = 8 << 20;

/// How long the next message of an answer may take.
const NEXT: Duration = Duration::from_secs(20);

impl Cluster {
    /// The messages of a subject from this number on: as many as one answer has, in their order; none:
    /// there are no more.
    ///
    /// # Errors
    /// The server does not answer, or there is no such stream.
    pub(super) async fn messages(
        &self,
        stream: &str,
        subject: &str,
        from: u64,
    ) -> Result<Vec<RawEntry>, ReadError> {
        let unreadable = |why: String| ReadError::Unreadable(why);
        let inbox = self.client().new_inbox();
        let mut answers = self
            .client()
            .subscribe(inbox.clone())
            .await
            .map_err(|error| unreadable(plain(&error)))?;
        let asked = json!({
            "seq": from.max(1), "next_by_subj": subject, "batch": BATCH, "max_bytes": BATCH_BYTES,
        });
        self.client()
            .publish_with_reply(
                format!("$JS.API.DIRECT.GET.{stream}"),
                inbox,
                asked.to_string().into(),
            )
            .await
            .map_err(|error| unreadable(plain(&error)))?;
        let mut found = Vec::new();
        loop {
            let message = timeout(NEXT, answers.next())
                .await
                .map_err(|_| unreadable("the cluster does not answer".to_owned()))?
                .ok_or_else(|| unreadable("the connection was closed".to_owned()))?;
            if let Some(status) = message.status {
                return match status.as_u16() {
                    // The end of the answer, and nothing found.
                    204 | 404 => Ok(found),
                    503 => Err(unreadable(NO_STREAMS.to_owned())),
                    code => {
                        let why = message.description.unwrap_or_default();
                        Err(unreadable(format!("the server refuses to read: {why} ({code})")))
                    }
                };
            }
            let headers = message.headers.unwrap_or_default();
            found.push(RawEntry {
                place: number(&headers, "Nats-Sequence").unwrap_or(0),
                stored_ms: header(&headers, "Nats-Time-Stamp").map_or(0, unix_ms),
                headers,
                payload: message.payload.to_vec(),
            });
        }
    }

    /// Some messages of the log of a run from this place on; none: there are no more.
    ///
    /// # Errors
    /// As [`messages`](Self::messages), or a message is not one of a log.
    pub async fn some_entries(&self, run: &RunId, from: u64) -> Result<Vec<LogEntry>, ReadError> {
        let subject = self.namespace().log(run);
        let mut entries = Vec::new();
        for raw in self.messages(LOGS, &subject, from).await? {
            let at = raw.place;
            let entry = raw.read().map_err(|why| ReadError::Damaged { at, why })?;
            entries.push(self.fetched(entry).await?);
        }
        Ok(entries)
    }

    /// The whole log of a run, up to what the leader of the stream has now: any of its servers may
    /// answer, and one that has not yet stored the end must not hide it.
    ///
    /// # Errors
    /// As [`some_entries`](Self::some_entries).
    pub async fn entries(&self, run: &RunId) -> Result<Vec<LogEntry>, ReadError> {
        let mut end = last_place(self, run).await?;
        let until = Instant::now() + BEHIND_FOR;
        let mut entries: Vec<LogEntry> = Vec::new();
        loop {
            let place = entries.last().map_or(0, |last| last.place);
            let more = self.some_entries(run, place + 1).await?;
            if !more.is_empty() {
                entries.extend(more);
            } else if place >= end {
                return Ok(entries);
            } else if Instant::now() < until {
                sleep(BEHIND).await;
                // The log may have been archived meanwhile.
                end = last_place(self, run).await?;
            } else {
                let why = "a server is behind the leader of the logs".to_owned();
                return Err(ReadError::Unreadable(why));
            }
        }
    }

    /// The last message of the log of a run, from the leader of the stream; `None`: there is none.
    ///
    /// # Errors
    /// As [`some_entries`](Self::some_entries).
    pub async fn last_entry(&self, run: &RunId) -> Result<Option<LogEntry>, ReadError> {
        let Some(raw) = last_message(self, LOGS, &self.namespace().log(run)).await? else {
            return Ok(None);
        };
        let at = raw.place;
        let entry = raw.read().map_err(|why| ReadError::Damaged { at, why })?;
        self.fetched(entry).await.map(Some)
    }

    /// The entry with its lines, if they are in the object store.
    pub(super) async fn fetched(&self, entry: LogEntry) -> Result<LogEntry, ReadError> {
        let LogPart::Elsewhere(first, count, name) = &entry.part else { return Ok(entry) };
        let lines = Blobs(self).get(name).await?.ok_or_else(|| ReadError::Damaged {
            at: first.0,
            why: "its lines are not in the object store".to_owned(),
        })?;
        let part = LogPart::Events(EventGroup::stored(*first, *count, lines));
        Ok(LogEntry { part, ..entry })
    }
}

/// Number of the last message of the log of a run, from the leader of the stream; 0: there is none.
///
/// # Errors
/// The server does not answer, or there is no such stream.
pub(super) async fn last_place(cluster: &Cluster, run: &RunId) -> Result<u64, ReadError> {
    let last = last_message(cluster, LOGS, &cluster.namespace().log(run)).await?;
    Ok(last.map_or(0, |last| last.place))
}
