//! The fields of a team's or swarm's outcome (teams source document).

use serde_json::{Value, json};

use crate::agents::projection::{HopKind, HopRow, HopState, LineKind, Team, TranscriptLine};
use crate::event::StopReason;
use crate::event::id::millis;
use crate::event::kind::TeamPlan;
use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::outcome::fields::to_value;

impl Team {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let success = run.closed.as_ref().is_some_and(|closed| closed.reason.is_success());
        let plan = &*self.plan;
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if success {
            add("answer", run.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_agent", to_value(&self.answered_by));
            // Added by roundtable: failed calls that the answer does not mention.
            if !self.missing.is_empty() {
                let missing = self.missing.iter();
                add(
                    "missing",
                    missing.map(|it| json!({ "of": it.name, "text": it.text })).collect(),
                );
            }
        } else if let Some((text, _)) = &self.partial {
            add("partial_answer", (**text).into());
        }
        let handoffs = self.hops.iter().filter(|hop| hop.kind == HopKind::Handoff);
        let made = handoffs.filter(|hop| !matches!(hop.state, HopState::Refused(_)));
        add("handoffs", made.map(|hop| handoff(hop, plan)).collect());
        // A stopped run leaves the session with its previous owner.
        let owner = if success { &self.answered_by } else { &plan.session.owner };
        add("owner", to_value(owner));
        // Added by roundtable: the number of the session's message, and the previous run.
        add("message", plan.session.message.into());
        if let Some(after) = &plan.session.previous_run {
            add("after", to_value(after));
        }
        add("trace", self.hops.iter().map(|hop| step(hop, run)).collect());
        add("history", self.lines.iter().map(transcript_row).collect());
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
        "elapsed_ms": hop.until.map(|until| millis(run.active_between(hop.at, until))),
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
fn handoff(hop: &HopRow, plan: &TeamPlan) -> Value {
    let mut row = json!({
        "from": hop.from,
        "to": hop.to,
        "message": hop.message.as_deref(),
        "at_ms": hop.at.0 / 1_000,
    });
    if hop.team != plan.root {
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
