//! Stores a message in a stream, and says exactly what the server answered.

use async_nats::client::Request;
use async_nats::{HeaderMap, RequestErrorKind};
use serde::Deserialize;

use super::connection::{Cluster, plain};
use super::leader::NO_STREAMS;

/// The server's number for "the last message of the subject is another one".
const WRONG_LAST: u64 = 10_071;
/// The server's number for "ask again": a replicated stream has another append of the subject in flight.
const IN_FLIGHT: u64 = 10_164;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Published {
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
    pub(super) async fn store(
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
                    Published::Refused(plain(&error))
                }
                RequestErrorKind::TimedOut => {
                    Published::NoAnswer("the cluster does not answer".to_owned())
                }
                RequestErrorKind::Other => Published::NoAnswer(plain(&error)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_answers_is_told_apart() {
        let error = |code: u64| format!(r#"{{"error":{{"code":400,"err_code":{code}}}}}"#);
        assert_eq!(published(br#"{"stream":"RT_F_00","seq":7}"#), Published::Stored(7));
        assert_eq!(published(error(10_071).as_bytes()), Published::WrongLast);
        assert_eq!(published(error(10_164).as_bytes()), Published::AskAgain);
        assert!(matches!(published(error(10_077).as_bytes()), Published::Refused(_)));
        assert!(matches!(published(b"what?"), Published::NoAnswer(_)));
    }
}
