//! The agents' part of an outcome (teams source document): handoffs, turns, the transcript.
//!
//! A long run has thousands of them, so they are written directly, without JSON values in between.

use serde::Serialize;
use serde_json::{Value, json};

use super::{AgentsFold, HopKind, HopRow, HopState, LineKind, ResultEnd, TranscriptLine};
use crate::base::name::AgentName;
use crate::base::time::millis;
use crate::log::event::StopReason;
use crate::log::world::RunFold;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

impl AgentsFold {
    /// The handoffs that were made.
    pub(crate) fn handoff_rows(&self) -> impl Serialize {
        let handoffs = self.hops.iter().filter(|hop| hop.kind == HopKind::Handoff);
        let made = handoffs.filter(|hop| !matches!(hop.state, HopState::Refused(_)));
        made.map(|hop| HandoffEntry::of(hop, self.plan.is_root(&hop.team))).collect::<Vec<_>>()
    }

    /// Every turn of an agent.
    pub(crate) fn turn_rows(&self, run: &RunFold) -> impl Serialize {
        self.hops.iter().map(|hop| TurnEntry::of(hop, run)).collect::<Vec<_>>()
    }

    /// The answers that are tool calls written as text.
    pub(crate) fn written_call_rows(&self) -> Value {
        let written = self.written_calls.iter();
        written.map(|(who, text)| json!({ "who": who, "text": text })).collect()
    }

    pub(crate) fn transcript_rows(&self) -> impl Serialize {
        self.lines.iter().map(TranscriptEntry::of).collect::<Vec<_>>()
    }
}

/// One turn of an agent; its duration does not count pauses.
#[derive(Serialize)]
struct TurnEntry<'a> {
    agent: &'a AgentName,
    team: &'a AgentName,
    from: Option<&'a AgentName>,
    kind: &'static str,
    status: &'static str,
    at_ms: u64,
    elapsed_ms: Option<u64>,
    context_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<&'static str>,
}

impl<'a> TurnEntry<'a> {
    fn of(hop: &'a HopRow, run: &RunFold) -> Self {
        let mut fallback = None;
        let (status, stop_reason) = match &hop.state {
            HopState::Running => ("cancelled", None),
            HopState::Done => ("done", None),
            HopState::HandedOver => ("handed_over", None),
            HopState::Failed(StopReason::Cancelled) => ("cancelled", None),
            HopState::Failed(reason) => ("failed", Some(reason.to_string())),
            HopState::Degraded { by, reason } => {
                fallback = Some(by.word());
                ("degraded", Some(reason.to_string()))
            }
            HopState::Refused(why) => ("refused", Some(why.to_string())),
        };
        let kind = match hop.kind {
            HopKind::Start => "start",
            HopKind::Handoff => "handoff",
            HopKind::Consult => "consult",
            HopKind::Next => "next",
        };
        Self {
            agent: &hop.to,
            team: &hop.team,
            from: hop.from.as_ref(),
            kind,
            status,
            at_ms: hop.at.0 / 1_000,
            elapsed_ms: hop.until.map(|until| millis(run.progress.active_between(hop.at, until))),
            context_tokens: hop.context_tokens,
            stop_reason,
            fallback,
        }
    }
}

/// A handoff as in the teams source document; roundtable adds the swarm if it is not the outermost.
#[derive(Serialize)]
struct HandoffEntry<'a> {
    from: Option<&'a AgentName>,
    to: &'a AgentName,
    message: Option<&'a str>,
    at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    swarm: Option<&'a AgentName>,
}

impl<'a> HandoffEntry<'a> {
    fn of(hop: &'a HopRow, in_root: bool) -> Self {
        Self {
            from: hop.from.as_ref(),
            to: &hop.to,
            message: hop.message.as_deref(),
            at_ms: hop.at.0 / 1_000,
            swarm: (!in_root).then_some(&hop.team),
        }
    }
}

/// A line of the transcript.
#[derive(Serialize)]
struct TranscriptEntry<'a> {
    author: Option<&'a AgentName>,
    at_ms: u64,
    #[serde(flatten)]
    what: EntryKind<'a>,
    /// A person was asked and did not answer: the text is the scenario's answer for that case.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fallback: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum EntryKind<'a> {
    Message(&'a str),
    Text(&'a str),
    /// The text before is not whole.
    Cut(ReplyEnd),
    Call(&'a ToolCall),
    Result {
        of: &'a str,
        text: &'a str,
        ok: bool,
    },
    Handoff {
        to: &'a AgentName,
        message: Option<&'a str>,
    },
    Refused {
        to: &'a AgentName,
        why: String,
    },
    RefusedCall {
        tool: &'a str,
        text: &'a str,
    },
    WrittenCall {
        told: bool,
    },
}

impl<'a> TranscriptEntry<'a> {
    fn of(line: &'a TranscriptLine) -> Self {
        let what = match &line.what {
            LineKind::Message(text) => EntryKind::Message(text),
            LineKind::Said(text) | LineKind::Fallback(text) => EntryKind::Text(text),
            LineKind::Cut { end, .. } => EntryKind::Cut(*end),
            LineKind::Called(call) => EntryKind::Call(call),
            LineKind::Result { of, text, end } => {
                let ok = matches!(end, ResultEnd::Answered | ResultEnd::Unanswered);
                EntryKind::Result { of, text, ok }
            }
            LineKind::HandedOver { to, message } => {
                EntryKind::Handoff { to, message: message.as_deref() }
            }
            LineKind::Refused { to, why } => EntryKind::Refused { to, why: why.to_string() },
            LineKind::NotCalled { tool, text } => EntryKind::RefusedCall { tool, text },
            LineKind::Written { told } => EntryKind::WrittenCall { told: *told },
        };
        let fallback = matches!(
            line.what,
            LineKind::Fallback(_) | LineKind::Result { end: ResultEnd::Unanswered, .. }
        );
        Self { author: line.author.as_ref(), at_ms: line.at.0 / 1_000, what, fallback }
    }
}
