//! A fact as one line of JSON and back: `{"v":1,"seq":0,"at":0,"span":0,"kind":"run.started",…}`.
//!
//! `at` is the time since the start of the run in **microseconds** ([`Elapsed`]). Every other length of
//! time in a fact or an outcome is in milliseconds: fields whose names end in `_ms`, and each `at` of an
//! outcome.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::kind::SCHEMA_VERSION;
use super::{Elapsed, Event, EventKind, RunId, Seq, SpanId};

/// A line that holds no fact at all. A fact of an unknown kind is none of these.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Not JSON, or not an object with `seq`, `at`, `span` and `kind`.
    #[error("not a fact of a run: {0}")]
    NotAFact(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct LineOut<'a> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunId>,
    seq: Seq,
    at: Elapsed,
    span: SpanId,
    #[serde(flatten)]
    kind: KindOut<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KindOut<'a> {
    Known(&'a EventKind),
    Unknown {
        kind: &'a str,
        #[serde(flatten)]
        fields: &'a Map<String, Value>,
    },
}

#[derive(Deserialize)]
struct Head {
    seq: Seq,
    at: Elapsed,
    span: SpanId,
    kind: String,
}

impl Event {
    /// The fact as one line of JSON, without a line end.
    ///
    /// # Errors
    /// None that a fact of ours can cause; serde_json's signature has one.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        self.line(None)
    }

    /// The fact as one line of JSON that names its run (`"run"`), so that lines of several logs can be
    /// told apart. [`from_line`](Self::from_line) reads lines with and without it.
    ///
    /// # Errors
    /// As [`to_line`](Self::to_line).
    pub fn to_line_of(&self, run: &RunId) -> Result<String, serde_json::Error> {
        // Where a kind has a field of that name, it is the kind's.
        let has_its_own = match &self.kind {
            EventKind::RunStarted(_)
            | EventKind::SessionRunStarted { .. }
            | EventKind::SessionRunClosed { .. }
            | EventKind::SessionRunForgotten { .. } => true,
            EventKind::Unknown { fields, .. } => fields.contains_key("run"),
            _ => false,
        };
        self.line((!has_its_own).then_some(run))
    }

    fn line(&self, run: Option<&RunId>) -> Result<String, serde_json::Error> {
        let kind = match &self.kind {
            EventKind::Unknown { kind, fields } => KindOut::Unknown { kind, fields },
            known => KindOut::Known(known),
        };
        serde_json::to_string(&LineOut {
            v: SCHEMA_VERSION,
            run,
            seq: self.seq,
            at: self.at,
            span: self.span,
            kind,
        })
    }

    /// Reads a fact from a line. A kind, or fields of a kind, that this version does not know
    /// become [`EventKind::Unknown`].
    ///
    /// # Errors
    /// [`LineError::NotAFact`] when the line is not JSON or has no place in a log.
    pub fn from_line(line: &str) -> Result<Event, LineError> {
        let value: Value = serde_json::from_str(line)?;
        let head = Head::deserialize(&value)?;
        let kind = EventKind::deserialize(&value).unwrap_or_else(|_| {
            let mut fields = match value {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            for taken in ["v", "seq", "at", "span", "kind"] {
                fields.shift_remove(taken);
            }
            EventKind::Unknown { kind: head.kind.into(), fields: fields.into() }
        });
        Ok(Event { seq: head.seq, at: head.at, span: head.span, kind })
    }
}
