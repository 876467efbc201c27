//! Reads the last message of a subject from the leader of its stream: any other server may not have it yet.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::RawMessageErrorKind;
use tokio::time::timeout;

use super::connection::{Cluster, plain};
use super::entry::RawEntry;
use crate::store::ReadError;

/// Time before a copy of a stream that is behind its leader is read again, and how long that is done.
pub(super) const BEHIND: Duration = Duration::from_millis(20);
pub(super) const BEHIND_FOR: Duration = Duration::from_secs(10);

/// The streams were not made yet.
pub(super) const NO_STREAMS: &str =
    "the cluster has no streams of roundtable: run `roundtable cluster init`";
const NO_STREAM: ErrorCode = ErrorCode::STREAM_NOT_FOUND;

/// How long the leader of a stream may take to answer. While there is none, the request is lost, so it is
/// sent again soon.
const LEADER: Duration = Duration::from_secs(4);

/// The last message of a subject, from the leader of its stream; `None`: there is none.
///
/// # Errors
/// The server does not answer, or there is no such stream.
pub(super) async fn last_message(
    cluster: &Cluster,
    stream: &str,
    subject: &str,
) -> Result<Option<RawEntry>, ReadError> {
    let unreadable = |error: &dyn std::error::Error| ReadError::Unreadable(plain(error));
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
