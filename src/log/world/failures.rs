//! What failed, was refused or waits for another attempt: the cause behind a stop such as
//! `llm_error:bad_response`, which the stop reason alone does not name, and the advice for it. Also
//! the replies that are used though they are not whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::run::RunFold;
use super::spans::{SpanKind, Spans};
use crate::base::name::ToolName;
use crate::log::event::kind::{
    Asks, BreakerCause, BudgetReached, Purpose, ReplyRefused, RetryLimit, format_millis,
};
use crate::log::event::stop::{LlmError, StopClass};
use crate::log::event::{Event, EventKind, SpanId, StopReason};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::tools::mcp::split_name;

/// Most cut replies to keep.
const MAX_CUT: usize = 1_000;

/// What failed, was refused or waits for another attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    pub last_errors: LastErrors,
    pub refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    pub budget_reached: Option<BudgetReached>,
    pub back_off: BackOff,
    /// The replies of models that are used though they are not whole.
    pub cut: Vec<CutReply>,
}

/// A reply of a model that was used though it is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct CutReply {
    /// The role, agent or step that replied.
    pub who: Box<str>,
    /// How it ended.
    pub end: ReplyEnd,
    /// The call.
    #[serde(skip)]
    pub(crate) call: SpanId,
}

impl Failures {
    /// Keeps the causes that an event has, after the span tree.
    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans) {
        self.last_errors.apply(event, spans);
        self.apply_cut(event, spans);
    }

    fn apply_cut(&mut self, event: &Event, spans: &Spans) {
        let span = event.span;
        match &event.kind {
            EventKind::AttemptAnswered(reply)
                if !reply.end.is_whole() && self.cut.len() < MAX_CUT =>
            {
                let call = spans.get(span).and_then(|attempt| spans.get(attempt.parent));
                let Some((call, SpanKind::Call(purpose))) = call.map(|it| (it.id, &it.kind)) else {
                    return;
                };
                if purpose.asks() == Asks::Model {
                    let who = purpose.script_step().unwrap_or_default().into();
                    self.cut.push(CutReply { who, end: reply.end, call });
                }
            }
            _ if self.cut.is_empty() => {}
            EventKind::ReplyRefused(_) => self.cut.retain(|cut| cut.call != span),
            // The model continues its paused reply.
            EventKind::CallStarted(started) if started.prompt.after.is_some() => {
                let after = started.prompt.after;
                self.cut.retain(|cut| cut.end != ReplyEnd::Paused || Some(cut.call) != after);
            }
            // What an agent said in a failed attempt is not used.
            EventKind::AttemptFailed(_) => {
                self.cut.retain(|cut| !spans.is_within(cut.call, span));
            }
            _ => {}
        }
    }
}

/// Calls in backoff, by their span. Each counts once, no matter how its wait ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff(BTreeSet<SpanId>);

impl BackOff {
    /// Processes an event, after the span tree.
    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::CallRetried { .. }
                if spans.get(event.span).is_some_and(|call| call.closed.is_none()) =>
            {
                self.0.insert(event.span);
            }
            EventKind::AttemptStarted { parent, .. } => {
                self.0.remove(parent);
            }
            EventKind::AttemptRefused { .. }
            | EventKind::CallAnswered { .. }
            | EventKind::CallDegraded { .. }
            | EventKind::CallFailed { .. } => {
                self.0.remove(&event.span);
            }
            EventKind::RunClosed(_) => self.0.clear(),
            _ => {}
        }
    }

    /// Number of calls in backoff.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The refused replies of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// For each stop reason, the refusal that counts.
    stops: Vec<StopRefusal>,
}

/// A refused reply that may stop a run.
#[derive(Clone, Debug)]
pub struct StopRefusal {
    /// Round and seat, if seats are asked in parallel: the first seat of the sequence stops the
    /// run.
    seat: Option<(u32, u16)>,
    /// What the reply was for; `None`: the log does not say it.
    pub purpose: Option<Purpose>,
    /// The refusal.
    pub refused: Arc<ReplyRefused>,
}

/// Most reasons to keep: reasons that quote a model's own words may be many.
const MAX_REASONS: usize = 64;

impl Refusals {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        let EventKind::ReplyRefused(refused) = &event.kind else { return };
        if refused.repeat.is_some() {
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => Some(purpose.clone()),
            _ => None,
        };
        let seat = match purpose {
            Some(Purpose::Contribution { round, seat, .. }) => Some((round, seat)),
            _ => None,
        };
        let new = StopRefusal { seat, purpose, refused: Arc::new(ReplyRefused::clone(refused)) };
        let room = self.stops.len() < MAX_REASONS;
        match self.stops.iter_mut().find(|it| it.refused.reason == refused.reason) {
            Some(before) => {
                let earlier = matches!(
                    (before.seat, seat),
                    (Some((round, first)), Some((same, second))) if round == same && first < second
                );
                if !earlier {
                    *before = new;
                }
            }
            None if room => self.stops.push(new),
            None => {}
        }
    }

    /// The refused reply that stops a run with this reason, if there is one.
    pub fn for_reason(&self, stop: &StopReason) -> Option<&StopRefusal> {
        self.stops.iter().find(|it| it.refused.reason == *stop)
    }
}

/// The last errors of model calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastErrors {
    /// Of open calls, by their spans.
    open: BTreeMap<SpanId, LastError>,
    /// For each stop reason of a model call, the call that counts.
    failed: Vec<StopCandidate>,
}

/// Error of the last attempt of a call, and what prevented another attempt.
#[derive(Clone, Debug)]
pub(crate) struct LastError {
    pub text: Arc<str>,
    /// The limit that prevented a retry, if there was one.
    pub limit: Option<RetryLimit>,
    /// A later attempt that was refused: its number, and the reason.
    pub refused: Option<(u32, StopReason)>,
    /// Attempts of the call, refused ones included.
    pub attempts: u32,
    /// Attempts that only repeated a request without a parameter; they do not count as retries.
    pub adapted: u32,
    /// Longest wait in milliseconds that an earlier attempt was answered with (`Retry-After`). The
    /// text already has that of the last attempt.
    pub earlier_wait_ms: Option<u64>,
    own_wait_ms: Option<u64>,
}

#[derive(Clone, Debug)]
struct StopCandidate {
    reason: StopReason,
    call: SpanId,
    said: LastError,
}

impl LastErrors {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::AttemptFailed(failed) => {
                if let Some(attempt) = spans.get(event.span) {
                    let before = self.open.get(&attempt.parent);
                    let adapted = before.map_or(0, |said| said.adapted);
                    let said = LastError {
                        text: failed.text.as_str().into(),
                        limit: None,
                        refused: None,
                        attempts: 1,
                        adapted: adapted + u32::from(failed.adapted.is_some()),
                        earlier_wait_ms: before
                            .and_then(|said| said.own_wait_ms.max(said.earlier_wait_ms)),
                        own_wait_ms: failed.retry_after_ms,
                    };
                    self.open.insert(attempt.parent, said);
                }
            }
            EventKind::RetryRefused { limit, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.limit = Some(*limit);
                }
            }
            EventKind::AttemptRefused { attempt, reason, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.refused = Some((*attempt, reason.clone()));
                }
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.open.remove(&event.span);
            }
            EventKind::CallFailed { attempts, reason } => {
                let said = self.open.remove(&event.span);
                if let (Some(mut said), Some(call)) = (said, spans.get(event.span)) {
                    said.attempts = *attempts;
                    self.note(reason, event.span, said, &call.kind);
                }
            }
            EventKind::CallAnswered { .. } | EventKind::CallDegraded { .. } => {
                self.open.remove(&event.span);
            }
            _ => {}
        }
    }

    fn note(&mut self, reason: &StopReason, call: SpanId, said: LastError, what: &SpanKind) {
        // Concurrent seats: the first one in the sequence stops the run, no matter which one failed
        // first.
        let SpanKind::Call(purpose) = what else { return };
        // A tool has no such reason, and of an agent its own model call has the cause already.
        if purpose.asks() != Asks::Model {
            return;
        }
        let first_counts = matches!(purpose, Purpose::Contribution { .. });
        match self.failed.iter_mut().find(|failed| failed.reason == *reason) {
            Some(before) if first_counts && before.call < call => {}
            Some(before) => (before.call, before.said) = (call, said),
            None => self.failed.push(StopCandidate { reason: reason.clone(), call, said }),
        }
    }

    /// The last error of the model call that stopped a run with this reason, if there is one.
    pub fn for_reason(&self, stop: &StopReason) -> Option<&LastError> {
        let failed = self.failed.iter().find(|failed| failed.reason == *stop)?;
        // For a missing script row, the text already says whose row it is and what to add. A tool has none
        // here, so the other is that of an agent of another program.
        let is_explained = matches!(stop, StopReason::ScriptMissing(_) | StopReason::ToolError(..));
        (is_explained || stop.class() == StopClass::Unreachable).then_some(&failed.said)
    }
}

/// Name of the model at the gateway.
const LLM: &str = "llm";

impl RunFold {
    /// The cause of the end of a run, if a model call or an open breaker stopped it: the last error
    /// and the limit that prevented a retry, or what opened the breaker.
    pub fn stop_cause(&self) -> Option<Arc<str>> {
        let reason = &self.progress.closed.as_ref()?.reason;
        match reason {
            StopReason::CircuitOpen(tool) => self.opened_by(tool),
            StopReason::MaxTokensBudget | StopReason::MaxCostBudget => {
                self.failures.budget_reached.map(|reached| reached.sentence().into())
            }
            _ => {
                let called = match reason {
                    StopReason::ToolError(tool, _) => tool.as_str(),
                    _ => LLM,
                };
                let most = self.tools.get(called).map(|row| row.head.limits.max_attempts);
                // The limits of an agent of another program are in the table of the agent.
                let table = split_name(called).map_or(called, |(agent, _)| agent);
                self.failures.last_errors.for_reason(reason).map(|said| said.cause(table, most))
            }
        }
    }

    /// The refused reply that stopped the run, if one did.
    pub(crate) fn stop_refusal(&self) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(&self.progress.closed.as_ref()?.reason)
    }

    /// The refused reply with this stop reason, if there was one.
    pub(crate) fn refusal(&self, reason: &StopReason) -> Option<&StopRefusal> {
        self.failures.refusals.for_reason(reason)
    }

    /// What to do about the end of the run, in one sentence; `None` for a success.
    pub fn stop_advice(&self) -> Option<&'static str> {
        let reason = &self.progress.closed.as_ref()?.reason;
        let said = self.failures.last_errors.for_reason(reason);
        match (reason, said.and_then(|said| said.limit)) {
            // The error of an agent has its own advice.
            (StopReason::ToolError(..), _) if said.is_some() => None,
            (
                StopReason::LlmError(LlmError::RateLimited),
                Some(RetryLimit::Deadline { requested: true, .. }),
            ) => Some("Start the run again after that time, or raise budget.max_seconds."),
            // Retries do not help if the server is not there.
            (
                StopReason::LlmError(LlmError::Connection) | StopReason::LlmTimeout,
                Some(RetryLimit::RetryBudget { .. }),
            ) => reason.advice(),
            (_, Some(RetryLimit::RetryBudget { .. })) => {
                Some("Start the run again later, or raise tools.llm.retry_budget.min.")
            }
            _ if self.stop_refusal().is_some_and(|stop| stop.refused.repeats > 0) => Some(
                "Asking the model again did not help: fix the prompt, set model.repair, or use another model.",
            ),
            _ => reason.advice(),
        }
    }

    fn opened_by(&self, tool: &ToolName) -> Option<Arc<str>> {
        let row = self.tools.get(tool.as_str())?;
        let opened =
            row.history.iter().rev().find(|it| it.opened_by.is_some() || it.by.is_some())?;
        let by = match (&opened.opened_by, opened.why) {
            (_, BreakerCause::Manual) | (None, _) => "manual override.".into(),
            (Some(text), why) => match opened.counted {
                Some(_) => format!("{}. Last failure: {text}", why.description(opened.counted)),
                None => text.to_string(),
            },
        };
        Some(
            format!("The breaker of {tool} was open, so it was not called. Opened by: {by}").into(),
        )
    }
}

impl LastError {
    /// The error, the wait that the endpoint requested, and what prevented another attempt; a call
    /// may have `most` attempts, by the limits of this table of [tools].
    fn cause(&self, table: &str, most: Option<u32>) -> Arc<str> {
        let mut text = self.text.to_string();
        // If the wait itself exceeded a limit, the text of that limit states it.
        let said = matches!(self.limit, Some(RetryLimit::Deadline { requested: true, .. }));
        if let Some(ms) = self.earlier_wait_ms.filter(|ms| *ms > 0 && !said) {
            text.push_str(&format!(" The endpoint asked to wait {}.", format_millis(ms)));
        }
        let made = self.attempts - self.adapted.min(self.attempts);
        match (&self.refused, &self.limit) {
            (Some((attempt, reason)), _) => {
                text.push_str(&format!(" Attempt {attempt} was not made: {reason}."));
            }
            (None, Some(limit)) => {
                text.push(' ');
                text.push_str(&limit.sentence(&ToolName::from(table)));
            }
            (None, None) if made > 1 && most == Some(made) => {
                text.push_str(&format!(" {made} attempts (tools.{table}.retries.max_attempts)."));
            }
            (None, None) if self.attempts > 1 => {
                text.push_str(&format!(" {} attempts.", self.attempts));
            }
            (None, None) => {}
        }
        text.into()
    }
}
