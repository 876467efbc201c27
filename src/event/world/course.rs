//! The course of a run: how far it is, what it has used, how it ended. It is the part of the fold that a
//! list of runs shows.

use std::sync::Arc;

use super::fold::RunFold;
use super::progress::RunState;
use super::spans::SpanKind;
use super::spending::SpendingUsed;
use super::tally::ReusedPart;
use crate::event::kind::{Asks, Initiator, StepSize, Usage};
use crate::event::tool::FallbackKind;
use crate::event::{Event, EventKind, Seq, SpanId, StopReason};
use crate::scenario::spec::price::Price;

/// Ended calls leave the fold of a host that follows an endless run this many events later.
const KEPT_EVENTS: u64 = 4_096;

impl RunFold {
    /// The course of a run with these events.
    pub(crate) fn course_of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut run = Self::default();
        events.into_iter().for_each(|event| run.apply_course(event));
        run
    }

    /// Processes one event for the course of the run alone: its head, progress, spans, counts, models and
    /// refused replies.
    /// Its row in a list of runs says no more, and all else stays as it was.
    pub(crate) fn apply_course(&mut self, event: &Event) {
        self.tally.events += 1;
        self.progress.count(event);
        self.spans.apply(event);
        match &event.kind {
            EventKind::RunStarted(head) => {
                if self.head.is_some() {
                    return;
                }
                self.progress.start();
                self.models.spending.set_models(head.first_prices());
                self.head = Some(Arc::clone(head));
            }
            EventKind::RunClosed(closed) => self.progress.close(closed, event.at),
            EventKind::RunForked { prices, .. } => {
                let reused = ReusedPart {
                    events: event.seq.0,
                    tokens: self.tally.usage.total(),
                    cost_usd: self.cost_usd(),
                };
                self.tally.reused = Some(reused);
                self.models.spending.fork(prices);
            }
            EventKind::Pausing { by, .. } => self.progress.request_pause(*by, event.at),
            EventKind::Paused { at } => self.progress.pause(at, event.at),
            EventKind::Resumed { paused_ms, .. } => {
                self.progress.resume(event.at, *paused_ms, RunState::Running);
            }
            EventKind::Stepped { paused_ms, step, .. } => {
                let stage = match step {
                    StepSize::Boundary => RunState::Pausing { by: Initiator::You, since: None },
                    StepSize::Round => RunState::Running,
                };
                self.progress.resume(event.at, *paused_ms, stage);
            }
            EventKind::AnswerComposed { text, by, end, .. } => {
                self.progress.answer = Some(Arc::clone(text));
                self.progress.answer_end = *end;
                if let (Some(by), None) = (by, &self.progress.result) {
                    self.progress.result = Some(by.as_str().into());
                }
            }
            EventKind::Pattern(fact) => {
                if let Some(head) = &self.head
                    && let Some(result) = fact.get().result(&head.plan)
                {
                    self.progress.result = Some(result.into());
                }
            }
            EventKind::CallStarted(call) => {
                self.tally.calls += 1;
                match call.purpose.asks() {
                    Asks::Model => {}
                    Asks::Tool => self.tally.tool_calls += 1,
                    Asks::Agent => self.tally.agent_calls += 1,
                }
                self.models.spending.call_started(event.span, call.model.as_deref());
                self.models.record(call);
            }
            EventKind::CallAnswered { .. } => self.tally.answered += 1,
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.tally.cancelled += 1;
            }
            EventKind::CallFailed { .. } => self.tally.failed += 1,
            EventKind::CallDegraded { by, .. } => {
                self.tally.degraded += 1;
                self.tally.omitted += u64::from(matches!(by, FallbackKind::Omitted));
            }
            EventKind::ReplyRefused(_) => {
                self.tally.refused_replies += 1;
                self.failures.refusals.apply(event, &self.spans);
            }
            EventKind::AttemptStarted { attempt, .. } => {
                self.tally.attempts += 1;
                self.tally.retries += u64::from(*attempt > 1);
            }
            EventKind::AttemptAnswered(reply)
                if reply.result.is_some() || !self.is_model_attempt(event.span) => {}
            EventKind::AttemptAnswered(reply) => match reply.usage {
                Some(usage) => {
                    self.tally.usage.add(usage);
                    self.tally.estimated += u64::from(reply.estimated);
                    self.models
                        .spending
                        .add_usage(self.spans.get(event.span).map(|it| it.parent), usage);
                }
                None => self.tally.uncounted += 1,
            },
            // The request is repeated without a parameter: nothing has failed.
            EventKind::AttemptFailed(failed) if failed.adapted.is_some() => {}
            EventKind::AttemptFailed(failed) => {
                self.tally.failed_attempts += 1;
                self.add_estimate(event.span, failed.usage);
            }
            EventKind::CallInDoubt { usage, .. } => self.add_estimate(event.span, *usage),
            EventKind::Unknown { .. } => self.tally.unknown += 1,
            _ => {}
        }
        if event.kind.closes().is_some() {
            self.models.spending.span_ended(event.span);
        }
    }

    /// How much of each spending limit the run has used.
    pub(crate) fn spending_used(&self) -> Vec<SpendingUsed> {
        let limits = self.head.as_ref().map(|head| head.spending).unwrap_or_default();
        let tokens = limits
            .max_total_tokens
            .map(|limit| SpendingUsed::Tokens { used: self.tally.usage.total(), limit });
        let cost = limits
            .max_cost_usd
            .and_then(|limit| Some(SpendingUsed::Cost { used: self.cost_usd()?, limit }));
        tokens.into_iter().chain(cost).collect()
    }

    /// Estimated cost of the run so far in US dollars; `None` if a model that it may use has no
    /// price, or the tokens of a reply are unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        let head = self.head.as_ref()?;
        if self.tally.uncounted > 0 {
            return None;
        }
        match head.prices {
            Some(prices) => Some(Price::from(prices).cost(&self.tally.usage)),
            None => self.models.spending.cost(),
        }
    }

    /// Whether an attempt is a call of a model. Only the tokens of these count: an agent's tokens are those
    /// of its own model calls, and a tool has none.
    fn is_model_attempt(&self, attempt: SpanId) -> bool {
        let call = self.spans.get(attempt).and_then(|span| self.spans.get(span.parent));
        match call.map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => purpose.asks() == Asks::Model,
            _ => true,
        }
    }

    /// Adds what an attempt is estimated to have used.
    fn add_estimate(&mut self, attempt: SpanId, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.tally.usage.add(usage);
            self.tally.estimated += 1;
            let call = self.spans.get(attempt).map(|it| it.parent);
            self.models.spending.add_usage(call, usage);
        }
    }

    /// See [`World::forget_before`](super::World::forget_before).
    pub(super) fn forget_before(&mut self, event: Seq) {
        self.spans.forget_before(event);
    }

    /// The same, a bounded number of events back. `new` events were applied since the last call.
    pub(crate) fn forget_old(&mut self, new: usize) {
        let next = self.progress.next.0;
        if next % KEPT_EVENTS < new as u64 {
            self.forget_before(Seq(next.saturating_sub(KEPT_EVENTS)));
        }
    }
}
