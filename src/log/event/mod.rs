//! An event, and its line of JSON: `{"v":2,"seq":0,"at_us":0,"span":0,"kind":"run.started",…}`,
//! written by [`Event::to_line`] and read by [`Event::from_line`]. Events are complete and
//! versioned, and only gain kinds and fields.
//!
//! `at_us` is the time since the start of the run in **microseconds** ([`Elapsed`]). All other
//! times in events and outcomes are in milliseconds; their names end in `_ms`.

pub mod call;
pub mod call_window;
pub mod command;
pub mod failure;
pub mod head;
pub mod id;
mod kind;
pub(super) mod named;
pub mod purpose;
pub mod question;
pub mod redact;
pub mod result_text;
pub mod safe_json;
pub mod schema;
pub mod stop;
pub mod tool;
pub mod weight;

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use self::id::SourceNo;
use super::facts::PatternFact;
use super::facts::observed::SpanRole;
use crate::base::name::TOO_LONG;

pub use self::command::Command;
pub use self::id::{Boundary, BoundaryId, Elapsed, RunId, Seq, SpanId};
pub use self::kind::*;
pub use self::stop::{StopClass, StopReason};
pub use super::world::World;

/// One event of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Sequence number in the log.
    pub seq: Seq,
    /// Time since the start of the run.
    pub at: Elapsed,
    /// The span it belongs to. An event that opens a span has the id of that span.
    pub span: SpanId,
    /// What happened.
    pub kind: EventKind,
}

/// A line that is not an event. An event of an unknown kind is not an error.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Not JSON, or not an object with `seq`, `at_us`, `span` and `kind`.
    #[error("not an event of a run: {0}")]
    NotAnEvent(#[from] serde_json::Error),
    /// An event of another version: an older one was never released, a newer one may mean something else.
    #[error(
        "it has version {0} of the events, and this program reads version {SCHEMA_VERSION}; {advice}",
        advice = if *.0 < SCHEMA_VERSION { "move the file aside" } else { "use a newer roundtable" }
    )]
    OtherVersion(u32),
    /// A name that no scenario can give: of a role, an agent, a tool, a flag or a run.
    #[error("{0}")]
    LongName(String),
}

#[derive(Serialize)]
struct LineOut<'a> {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunId>,
    seq: Seq,
    at_us: Elapsed,
    span: SpanId,
    #[serde(flatten)]
    kind: KindOut<'a>,
}

struct KindOut<'a>(&'a EventKind);

#[derive(Serialize)]
struct UnknownOut<'a> {
    kind: &'a str,
    #[serde(flatten)]
    fields: &'a Map<String, Value>,
}

impl Serialize for KindOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            EventKind::Pattern(fact) => fact.serialize(to),
            EventKind::Unknown { kind, fields } => UnknownOut { kind, fields }.serialize(to),
            shared => shared.serialize(to),
        }
    }
}

/// What every event has, read before the fields of its kind.
#[derive(Deserialize)]
struct Head<'l> {
    v: Option<u32>,
    seq: Seq,
    at_us: Elapsed,
    span: SpanId,
    #[serde(borrow)]
    kind: Cow<'l, str>,
}

impl Event {
    /// The event as one line of JSON, without a line break.
    ///
    /// # Errors
    /// No event of roundtable causes one; the signature is that of serde_json.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.line_out(None))
    }

    /// Appends the event as one line of JSON that is safe to print to a terminal, without a line
    /// break. With the id of its run (`"run"`) lines of several logs can be told apart;
    /// [`from_line`](Self::from_line) reads lines with and without it.
    ///
    /// # Errors
    /// As [`to_line`](Self::to_line); then nothing is appended.
    pub fn append_line(
        &self,
        run: Option<&RunId>,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let run = run.filter(|_| !self.names_its_run());
        safe_json::append_line(&self.line_out(run), out)
    }

    /// Whether the kind has a field `run`.
    fn names_its_run(&self) -> bool {
        match &self.kind {
            EventKind::RunStarted(_)
            | EventKind::SessionRunStarted { .. }
            | EventKind::SessionRunClosed { .. }
            | EventKind::SessionRunDropped { .. } => true,
            EventKind::Unknown { fields, .. } => fields.contains_key("run"),
            _ => false,
        }
    }

    fn line_out<'e>(&'e self, run: Option<&'e RunId>) -> LineOut<'e> {
        LineOut {
            v: SCHEMA_VERSION,
            run,
            seq: self.seq,
            at_us: self.at,
            span: self.span,
            kind: KindOut(&self.kind),
        }
    }

    /// Reads an event from a line of version 2; a line without `v` is read as one.
    /// An unknown kind, or a known kind with unknown fields, becomes
    /// [`EventKind::Unknown`].
    ///
    /// # Errors
    /// [`LineError::NotAnEvent`] if the line is not JSON, or lacks `seq`, `at_us`, `span` or `kind`;
    /// [`LineError::OtherVersion`] if it is of another version; [`LineError::LongName`] if a name is longer than one of a scenario.
    pub fn from_line(line: &str) -> Result<Event, LineError> {
        let head: Head<'_> = serde_json::from_str(line)?;
        if let Some(other) = head.v.filter(|version| *version != SCHEMA_VERSION) {
            return Err(LineError::OtherVersion(other));
        }
        let known = EventKind::read(&head.kind, line)
            .or_else(|| Some(PatternFact::read(&head.kind, line)?.map(EventKind::Pattern)));
        let kind = match known.map(|kind| kind.map_err(|error| error.to_string())) {
            Some(Ok(kind)) => kind,
            Some(Err(why)) if why.starts_with(TOO_LONG) => {
                // The place in the line tells a reader nothing.
                let why = why.split(" at line ").next().unwrap_or_default();
                return Err(LineError::LongName(why.to_owned()));
            }
            _ => {
                let mut fields: Map<String, Value> = serde_json::from_str(line)?;
                for taken in ["v", "seq", "at_us", "span", "kind"] {
                    fields.shift_remove(taken);
                }
                EventKind::Unknown { kind: head.kind.into(), fields: fields.into() }
            }
        };
        Ok(Event { seq: head.seq, at: head.at_us, span: head.span, kind })
    }
}

/// The kind of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Run,
    /// A round; its number, from 1.
    Round(u32),
    /// A task of a plan.
    Task {
        /// Index of the task, from 0.
        index: u32,
    },
    /// A source of research.
    Source(SourceNo),
    Call(Purpose),
    /// An attempt of a call; its number, from 1.
    Attempt(u32),
    Observed(SpanRole),
}

/// State of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanState {
    /// Not closed yet.
    Open,
    /// Closed with success.
    Done,
    /// Closed with a failure.
    Failed(Option<FailureClass>),
    /// A call that a person or a rule did not approve: nothing has failed.
    Denied,
}

/// What was said in an event, and in which way: the goal of a run and the messages of people, the
/// replies of models, the arguments and results of tools, and their errors. Prompts are left out, since
/// they repeat what was said before.
#[derive(Clone, Copy, Debug)]
pub enum TextPart<'e> {
    /// The goal of the run, and the message of a session.
    Goal(&'e str, Option<&'e str>),
    /// The arguments of a tool.
    Arguments(&'e Value),
    /// The reply of a model.
    Reply(&'e str),
    /// The result of a tool.
    Result(&'e Value),
    /// Why an attempt failed, and what of a reply had arrived.
    Error(&'e str, Option<&'e str>),
    Answer(&'e str),
    /// What an agent that hands over tells the next one.
    Handoff(&'e str),
}

impl<'e> TextPart<'e> {
    /// What was said in an event of this kind; `None` if nothing was.
    pub fn of(kind: &'e EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::RunStarted(head) => {
                let message = head.plan.get().message().filter(|text| *text != head.goal);
                Self::Goal(&head.goal, message)
            }
            EventKind::CallStarted(call) => Self::Arguments(call.args.as_deref()?),
            EventKind::AttemptAnswered(reply) => match &reply.result {
                Some(result) => Self::Result(result),
                None => Self::Reply(&reply.text),
            },
            EventKind::AttemptFailed(failed) => {
                Self::Error(&failed.text, failed.partial.as_deref())
            }
            EventKind::CallDegraded { value, .. } => Self::Result(value.as_deref()?),
            EventKind::AnswerComposed { text, .. } => Self::Answer(text),
            EventKind::Pattern(fact) => fact.get().said()?,
            _ => return None,
        })
    }

    /// The word for the way: `goal`, `arguments`, `reply`, `result`, `error`, `answer` or `handoff`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Goal(..) => "goal",
            Self::Arguments(_) => "arguments",
            Self::Reply(_) => "reply",
            Self::Result(_) => "result",
            Self::Error(..) => "error",
            Self::Answer(_) => "answer",
            Self::Handoff(_) => "handoff",
        }
    }

    /// What was said, as one text.
    pub fn text(self) -> String {
        match self {
            Self::Goal(text, None) | Self::Error(text, None) => text.to_owned(),
            Self::Goal(text, Some(more)) | Self::Error(text, Some(more)) => {
                format!("{text}\n{more}")
            }
            Self::Arguments(value) | Self::Result(value) => value.to_string(),
            Self::Reply(text) | Self::Answer(text) | Self::Handoff(text) => text.to_owned(),
        }
    }
}
