//! The messages of one subject of a stream: stores one and says exactly what the server answered,
//! reads many in one request, reads the last one from the leader. It uses no consumers: a stream
//! can have only a thousand of them.

use std::fmt;
use std::time::Duration;

use async_nats::client::Request;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::{HeaderMap, RequestErrorKind};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::archive::Blobs;
use super::entry::{LogEntry, LogPart, RawEntry, header, number, unix_ms};
use super::names::LOGS;
use super::{Cluster, error_text};
use crate::base::refused::Refused;
use crate::log::event::RunId;
use crate::store::{EventGroup, ReadError};

/// The server's number for "the last message of the subject is another one".
const WRONG_LAST: u64 = 10_071;
/// The server's number for "ask again": a replicated stream has another append of the subject in flight.
const IN_FLIGHT: u64 = 10_164;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// It is stored, with this number.
    Stored(u64),
    /// It was not stored: the subject does not end with the expected message.
    WrongLast,
    /// It was not stored; the same message may be stored when it is sent again.
    AskAgain,
    /// It was not stored: no permission, a full disk.
    Refused(String),
    /// It was not stored: there is no such stream, or its servers elect a leader.
    NoLeader(String),
    /// It may be stored or not: there was no answer.
    NoAnswer(String),
}

impl Published {
    /// The number of a message that does not depend on those before it; `what` is wrong if it is not stored.
    pub(crate) fn or_refuse(self, what: impl fmt::Display) -> Result<u64, Refused> {
        let why = match self {
            Self::Stored(place) => return Ok(place),
            Self::Refused(why) | Self::NoLeader(why) | Self::NoAnswer(why) => why,
            Self::WrongLast | Self::AskAgain => "the cluster is busy".to_owned(),
        };
        Err(Refused::new(what.to_string()).because(why))
    }
}

/// Header with the number that the last message of the subject has to have.
pub(super) const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";

#[derive(Deserialize)]
struct Ack {
    #[serde(default)]
    seq: u64,
    error: Option<AckError>,
}

#[derive(Deserialize)]
struct AckError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Cluster {
    /// Stores a message. With `after` only if the last message of the subject has this number; 0: if there
    /// is none.
    pub(crate) async fn store(
        &self,
        subject: String,
        mut headers: HeaderMap,
        payload: Vec<u8>,
        after: Option<u64>,
    ) -> Published {
        if let Some(after) = after {
            headers.insert(EXPECTED_LAST, after.to_string());
        }
        let request = Request::new().headers(headers).payload(payload.into());
        let denied = self.until_denied(&subject);
        let answer = tokio::select! {
            answer = self.client().send_request(subject, request) => answer,
            // The server does not answer then.
            why = denied => return Published::Refused(why),
        };
        match answer {
            Ok(message) => published(&message.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Published::NoLeader(NO_STREAMS.to_owned()),
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    Published::Refused(error_text(&error))
                }
                RequestErrorKind::TimedOut => {
                    Published::NoAnswer("the cluster does not answer".to_owned())
                }
                RequestErrorKind::Other => Published::NoAnswer(error_text(&error)),
            },
        }
    }
}

fn published(answer: &[u8]) -> Published {
    match serde_json::from_slice::<Ack>(answer) {
        Ok(Ack { error: None, seq }) => Published::Stored(seq),
        Ok(Ack { error: Some(error), .. }) => match error.err_code {
            WRONG_LAST => Published::WrongLast,
            IN_FLIGHT => Published::AskAgain,
            code => Published::Refused(format!("{} (NATS error {code})", error.description)),
        },
        Err(error) => Published::NoAnswer(format!("the server's answer cannot be read: {error}")),
    }
}

/// Messages in one answer, and bytes.
const BATCH: u32 = 4_096;
const BATCH_BYTES: u32 = 8 << 20;

/// How long the next message of an answer may take.
const NEXT: Duration = Duration::from_secs(20);

impl Cluster {
    /// The messages of a subject from this number on: as many as one answer has, in their order; none:
    /// there are no more.
    pub(crate) async fn messages(
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
            .map_err(|error| unreadable(error_text(&error)))?;
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
            .map_err(|error| unreadable(error_text(&error)))?;
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
            let entry =
                raw.read().map_err(|why| ReadError::Damaged { at, why: format!("{why:#}") })?;
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
        let entry = raw.read().map_err(|why| ReadError::Damaged { at, why: format!("{why:#}") })?;
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
pub(super) async fn last_place(cluster: &Cluster, run: &RunId) -> Result<u64, ReadError> {
    let last = last_message(cluster, LOGS, &cluster.namespace().log(run)).await?;
    Ok(last.map_or(0, |last| last.place))
}

/// Time before a copy of a stream that is behind its leader is read again, and how long that is done.
pub(super) const BEHIND: Duration = Duration::from_millis(20);
pub(super) const BEHIND_FOR: Duration = Duration::from_secs(10);

/// The streams were not made yet.
const NO_STREAMS: &str = "the cluster has no streams of roundtable: run `roundtable cluster init`";
const NO_STREAM: ErrorCode = ErrorCode::STREAM_NOT_FOUND;

/// How long the leader of a stream may take to answer. While there is none, the request is lost, so it is
/// sent again soon.
const LEADER: Duration = Duration::from_secs(4);

/// The last message of a subject, from the leader of its stream; `None`: there is none.
pub(super) async fn last_message(
    cluster: &Cluster,
    stream: &str,
    subject: &str,
) -> Result<Option<RawEntry>, ReadError> {
    let unreadable = |error: &dyn std::error::Error| ReadError::Unreadable(error_text(error));
    let stream = cluster.context().get_stream_no_info(stream).await;
    let stream = stream.map_err(|error| unreadable(&error))?;
    let last = timeout(LEADER, stream.get_last_raw_message_by_subject(subject)).await;
    let last = last.map_err(|_| {
        ReadError::Unreadable("the leader of the stream does not answer".to_owned())
    })?;
    let message = match last {
        Ok(message) => message,
        Err(error) => {
            return match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(why) if why.error_code() == NO_STREAM => {
                    Err(ReadError::Unreadable(NO_STREAMS.to_owned()))
                }
                _ => Err(unreadable(&error)),
            };
        }
    };
    Ok(Some(RawEntry {
        place: message.sequence,
        stored_ms: u64::try_from(message.time.unix_timestamp_nanos() / 1_000_000).unwrap_or(0),
        headers: message.headers,
        payload: message.payload.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_server_replies() {
        let error = |code: u64| format!(r#"{{"error":{{"code":400,"err_code":{code}}}}}"#);
        assert_eq!(published(br#"{"stream":"RT_F_00","seq":7}"#), Published::Stored(7));
        assert_eq!(published(error(10_071).as_bytes()), Published::WrongLast);
        assert_eq!(published(error(10_164).as_bytes()), Published::AskAgain);
        assert!(matches!(published(error(10_077).as_bytes()), Published::Refused(_)));
        assert!(matches!(published(b"what?"), Published::NoAnswer(_)));
    }
}
