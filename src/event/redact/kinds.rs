//! Which fields of the kinds of events are texts.

use std::sync::Arc;

use super::TextRedactor;
use crate::event::kind::AttemptFailed;
use crate::event::{Command, EventKind};

impl EventKind {
    /// Replaces the texts of an event.
    pub(super) fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::RunStarted(head) => Arc::make_mut(head).redact(by),
            Self::RunClosed(closed) => closed.redact(by),
            Self::Pausing { by: _, at_round: _ }
            | Self::Resumed { by: _, paused_ms: _ }
            | Self::RunResumed { by: _, downtime_ms: _, events: _ }
            | Self::ConcurrencyChanged { max_parallel: _, by: _ }
            | Self::CallAnswered { attempts: _ }
            | Self::CallRetried { attempt: _, wait_ms: _, cause: _, status: _ }
            | Self::RetryRefused { attempt: _, limit: _ }
            | Self::CallQueued
            | Self::CallAdmitted { waited_ms: _ }
            | Self::AttemptQueued { attempt: _ }
            | Self::AttemptStarted {
                parent: _,
                attempt: _,
                timeout_ms: _,
                waited_ms: _,
                probe: _,
            }
            | Self::CallInDoubt { tool: _, decision: _, usage: _ }
            | Self::ClientRetried { request: _, cause: _ }
            | Self::BreakerChanged {
                tool: _,
                to: _,
                cause: _,
                open_for_ms: _,
                by: _,
                counted: _,
            }
            | Self::ResultIgnored { tool: _, success: _ }
            | Self::LimitsChanged { tool: _, limits: _, change: _, by: _ }
            | Self::FaultInjected { tool: _, fault: _, by: _ }
            | Self::FaultRemoved { tool: _, fault: _, by: _ }
            | Self::RequestAdapted { model: _, parameter: _ }
            | Self::BudgetReached(_)
            | Self::SessionRunStarted { run: _, scenario: _ }
            | Self::SessionRunDropped { run: _, events: _ }
            | Self::EventsDropped { events: _ } => {}
            Self::Paused { at } => at.iter_mut().for_each(|at| by.boundary(at)),
            Self::Stepped { step: _, boundary, paused_ms: _ }
            | Self::BreakpointChanged { at: boundary, set: _ }
            | Self::FlagChanged { flag: _, on: _, by: _, boundary }
            | Self::RunForked { by: _, parent: _, at: boundary, prices: _ } => {
                by.boundary(boundary);
            }
            Self::CommandTaken { command, by: sender, place: _ } => {
                "somebody".clone_into(sender);
                if let Command::Break { at, set: _ } = &mut **command {
                    by.boundary(at);
                }
            }
            Self::PlanRefused { reason, raw, details } => {
                reason.redact(by);
                by.value(Arc::make_mut(raw));
                by.some_value(details);
            }
            Self::AnswerComposed { text, by: _, end: _ } => by.text(text),
            Self::CallStarted(call) => call.redact(by),
            Self::CallFailed { attempts: _, reason }
            | Self::AttemptRefused { attempt: _, reason, retry_in_ms: _ }
            | Self::SessionRunClosed { run: _, reason } => reason.redact(by),
            Self::CallDegraded { attempts: _, reason, by: _, value } => {
                reason.redact(by);
                by.some_value(value);
            }
            Self::AttemptAnswered(reply) => Arc::make_mut(reply).redact(by),
            Self::AttemptFailed(failed) => {
                let AttemptFailed {
                    class: _,
                    status: _,
                    text,
                    retry_after_ms: _,
                    should_retry: _,
                    partial,
                    usage: _,
                    adapted: _,
                    slow: _,
                } = &mut **failed;
                by.text(text);
                by.some(partial);
            }
            Self::ReplyRepaired { repair, changed } => {
                by.word(repair);
                by.text(changed);
            }
            Self::ReplyRefused(refused) => refused.redact(by),
            Self::ConditionFailed { place: _, text } => by.text(text),
            Self::Warning { text } => by.text(text),
            Self::Pattern(fact) => fact.redact(by),
            // Which of its fields are texts is not known.
            Self::Unknown { kind: _, fields } => *fields = Arc::default(),
        }
    }
}
