//! The agents' part of an outcome (teams source document): handoffs, turns, the transcript.

use serde_json::{Value, json};

use crate::agents::projection::{AgentsFold, HopKind, HopRow, HopState, LineKind, TranscriptLine};
use crate::event::StopReason;
use crate::event::id::millis;
use crate::event::world::RunFold;
use crate::event::world::outcome::fields::to_value;

impl AgentsFold {
    /// The handoffs that were made.
    pub(crate) fn handoff_rows(&self) -> Value {
        let handoffs = self.hops.iter().filter(|hop| hop.kind == HopKind::Handoff);
        let made = handoffs.filter(|hop| !matches!(hop.state, HopState::Refused(_)));
        made.map(|hop| handoff(hop, self.plan.is_root(&hop.team))).collect()
    }

    /// Every turn of an agent.
    pub(crate) fn turn_rows(&self, run: &RunFold) -> Value {
        self.hops.iter().map(|hop| step(hop, run)).collect()
    }

    /// The transcript.
    pub(crate) fn transcript_rows(&self) -> Value {
        self.lines.iter().map(transcript_row).collect()
    }
}

/// One turn of an agent; its duration does not count pauses.
fn step(hop: &HopRow, run: &RunFold) -> Value {
    let mut fallback = None;
    let (status, reason) = match &hop.state {
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
    let mut row = json!({
        "agent": hop.to,
        "team": hop.team,
        "from": hop.from,
        "kind": match hop.kind {
            HopKind::Start => "start",
            HopKind::Handoff => "handoff",
            HopKind::Consult => "consult",
        },
        "status": status,
        "at_ms": hop.at.0 / 1_000,
        "elapsed_ms": hop.until.map(|until| millis(run.progress.active_between(hop.at, until))),
        "context_tokens": hop.context_tokens,
    });
    if let Some(reason) = reason {
        row["stop_reason"] = reason.into();
    }
    if let Some(by) = fallback {
        row["fallback"] = by.into();
    }
    row
}

/// A handoff as in the teams source document; roundtable adds the swarm if it is not the outermost.
fn handoff(hop: &HopRow, in_root: bool) -> Value {
    let mut row = json!({
        "from": hop.from,
        "to": hop.to,
        "message": hop.message.as_deref(),
        "at_ms": hop.at.0 / 1_000,
    });
    if !in_root {
        row["swarm"] = to_value(&hop.team);
    }
    row
}

/// A line of the transcript.
fn transcript_row(line: &TranscriptLine) -> Value {
    let mut row = json!({ "author": line.author, "at_ms": line.at.0 / 1_000 });
    match &line.what {
        LineKind::Message(text) => row["message"] = (**text).into(),
        LineKind::Said(text) => row["text"] = (**text).into(),
        LineKind::Called(call) => row["call"] = to_value(call),
        LineKind::Result { of, text, ok } => {
            row["result"] = json!({ "of": **of, "text": **text, "ok": ok });
        }
        LineKind::HandedOver { to, message } => {
            row["handoff"] = json!({ "to": to, "message": message.as_deref() });
        }
        LineKind::Refused { to, why } => {
            row["refused"] = json!({ "to": to, "why": why.to_string() });
        }
        LineKind::NotCalled { tool, text } => {
            row["refused_call"] = json!({ "tool": tool, "text": text });
        }
    }
    row
}
