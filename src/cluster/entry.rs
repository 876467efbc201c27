//! One message of the log of a run: the request to play it, a claim of a runner, a group of events, or that
//! its runner has released it.

use async_nats::HeaderMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::request::{Claim, Release, RunRequest};
use crate::base::refused::Refused;
use crate::log::event::Seq;
use crate::store::EventGroup;

/// What a message is: `request`, `claim`, `events` or `release`.
pub(crate) const KIND: &str = "RT-Kind";
/// Sequence number of the first event of a group, or that of the next event.
pub(crate) const FIRST: &str = "RT-First";
/// Number of the events.
const COUNT: &str = "RT-Count";
/// The process that stored it.
const OWNER: &str = "RT-Owner";
/// Name of the object that has the lines, if they are too many for a message.
pub(super) const BLOB: &str = "RT-Blob";

/// Name of the object that has what the run leaves to the next message of its session.
pub(super) const SESSION: &str = "RT-Session";

/// A message of the log of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its number in the stream.
    pub place: u64,
    /// When the server stored it, as Unix time in milliseconds.
    pub stored_ms: u64,
    /// The process that stored it.
    pub owner: String,
    /// The object that has what the run leaves to the next message of its session.
    pub session: Option<String>,
    pub part: LogPart,
}

/// What a message of a log is.
#[derive(Clone, Debug, PartialEq)]
pub enum LogPart {
    /// The run was handed over.
    Requested(Box<RunRequest>),
    /// A runner has claimed the run.
    Claimed(Claim),
    Events(EventGroup),
    /// Its runner plays it no more, because every branch waits for people.
    Released(Release),
    /// Events whose lines are in the object store, under this name.
    Elsewhere(Seq, u32, String),
}

/// A message as a server sends it.
pub(crate) struct RawEntry {
    pub place: u64,
    pub stored_ms: u64,
    pub headers: HeaderMap,
    pub payload: Vec<u8>,
}

/// A header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.as_str())
}

/// A header as a number.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    header(headers, name)?.parse().ok()
}

/// The headers of a message of a log.
pub(crate) fn headers(kind: &str, first: Seq, count: u32, owner: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(KIND, kind);
    headers.insert(FIRST, first.0.to_string());
    headers.insert(COUNT, count.to_string());
    headers.insert(OWNER, owner);
    headers
}

/// A time as servers write it, as Unix time in milliseconds; 0 if it cannot be read.
pub(super) fn unix_ms(text: &str) -> u64 {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok();
    let ms = time.map(|time| time.unix_timestamp_nanos() / 1_000_000);
    ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)
}

impl RawEntry {
    /// Reads the message. What is in it is data.
    pub fn read(self) -> Result<LogEntry, Refused> {
        let Self { place, stored_ms, headers, payload } = self;
        let owner = header(&headers, OWNER).unwrap_or_default().to_owned();
        let session = header(&headers, SESSION).map(str::to_owned);
        let wrong = |what: &str| Refused::new(format!("message {place} of the log has {what}"));
        let part = match header(&headers, KIND) {
            Some("request") => {
                let request: RunRequest = serde_json::from_slice(&payload)
                    .map_err(|error| wrong("an unreadable request").because(error))?;
                if !request.has_names() {
                    return Err(wrong("a request with a name that cannot be part of a subject"));
                }
                LogPart::Requested(Box::new(request))
            }
            Some("claim") => LogPart::Claimed(
                serde_json::from_slice(&payload)
                    .map_err(|error| wrong("an unreadable claim").because(error))?,
            ),
            Some("release") => LogPart::Released(
                serde_json::from_slice(&payload)
                    .map_err(|error| wrong("an unreadable release").because(error))?,
            ),
            Some("events") => {
                let first = Seq(number(&headers, FIRST).ok_or_else(|| wrong("no first event"))?);
                let count = number(&headers, COUNT).and_then(|count| u32::try_from(count).ok());
                let count = count.ok_or_else(|| wrong("no number of events"))?;
                match header(&headers, BLOB) {
                    Some(name) => LogPart::Elsewhere(first, count, name.to_owned()),
                    None => LogPart::Events(EventGroup::stored(first, count, payload)),
                }
            }
            Some(_) | None => return Err(wrong("an unknown kind")),
        };
        Ok(LogEntry { place, stored_ms, owner, session, part })
    }
}

/// Whether the run ends with this group.
pub(crate) fn ends(group: &EventGroup) -> bool {
    let lines = group.lines().strip_suffix(b"\n").unwrap_or(group.lines());
    let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    // A text cannot look like this: its quotes are escaped.
    let kind: &[u8] = br#""kind":"run.closed""#;
    last.windows(kind.len()).any(|part| part == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_reject_malformed() {
        let raw = |headers: HeaderMap, payload: &[u8]| RawEntry {
            place: 9,
            stored_ms: 5,
            headers,
            payload: payload.to_vec(),
        };
        let entry = raw(headers("events", Seq(3), 2, "a.1"), b"x\ny\n").read().expect("read");
        assert_eq!((entry.place, entry.stored_ms, &*entry.owner), (9, 5, "a.1"));
        let LogPart::Events(group) = entry.part else { panic!("{entry:?}") };
        assert_eq!((group.first(), group.next(), group.lines()), (Seq(3), Seq(5), &b"x\ny\n"[..]));
        let mut without_count = headers("events", Seq(3), 2, "a.1");
        without_count.insert(COUNT, "many");
        for wrong in [
            raw(headers("secret", Seq(0), 0, "a"), b""),
            raw(HeaderMap::new(), b""),
            raw(headers("claim", Seq(0), 0, "a"), b"{"),
            raw(headers("request", Seq(0), 0, "a"), b"[]"),
            raw(without_count, b""),
        ] {
            assert!(wrong.read().is_err());
        }
        assert_eq!(unix_ms("2026-03-07T00:00:00.5Z"), 1_772_841_600_500);
        assert_eq!(unix_ms("yesterday"), 0);
    }
}
