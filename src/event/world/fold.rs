//! The part of the fold that is the same for all patterns: progress, settings, spans, counts, models,
//! marks, tools, alerts, failures.

use std::sync::Arc;

use super::alerts::Alerts;
use super::failures::Failures;
use super::marks::MarkKind;
use super::models::ModelsByCaller;
use super::operator_settings::OperatorSettings;
use super::over_time::RunOverTime;
use super::progress::{RunProgress, RunState};
use super::spans::{SpanKind, Spans};
use super::spending::SpendingUsed;
use super::tally::{ReusedPart, Tally};
use super::tools::Tools;
use crate::event::kind::{Asks, CallStarted, Initiator, Purpose, RunStarted, StepSize, Usage};
use crate::event::tool::FallbackKind;
use crate::event::{Event, EventKind, SpanId, StopReason};
use crate::scenario::spec::price::Price;

/// What the fold knows of every run, whatever its pattern.
#[derive(Clone, Debug, Default)]
pub struct RunFold {
    /// The setup of the run; `None` before the first event.
    pub head: Option<Arc<RunStarted>>,
    /// How far the run is.
    pub progress: RunProgress,
    /// What the operator has set.
    pub settings: OperatorSettings,
    /// The tree of spans.
    pub spans: Spans,
    /// Counts.
    pub tally: Tally,
    /// The models of the run.
    pub models: ModelsByCaller,
    /// The run over time, for the scrubber.
    pub over_time: RunOverTime,
    /// The tools behind the gateway.
    pub tools: Tools,
    /// Alerts to the operator.
    pub alerts: Alerts,
    pub(super) failures: Failures,
}

impl RunFold {
    /// Processes one event.
    pub(super) fn apply(&mut self, event: &Event) {
        self.tally.events += 1;
        self.over_time.count(event, &self.progress);
        self.progress.count(event);
        self.spans.apply(event);
        self.failures.back_off.apply(event, &self.spans);
        self.tally.retrying = self.failures.back_off.len();
        match &event.kind {
            EventKind::RunStarted(head) => {
                if self.head.is_some() {
                    return;
                }
                self.progress.start();
                self.settings.set_flags(&head.flags);
                self.models.spending.set_models(head.first_prices());
                self.tools.begin(&head.tools);
                self.alerts.begin(head.alerts);
                self.head = Some(Arc::clone(head));
            }
            EventKind::RunClosed(closed) => {
                self.progress.close(closed, event.at);
                self.settings.pauses_at_next_round = false;
                self.over_time.mark(event, MarkKind::Closed);
            }
            EventKind::RunForked { prices, .. } => {
                let reused = ReusedPart {
                    events: event.seq.0,
                    tokens: self.tally.usage.total(),
                    cost_usd: self.cost_usd(),
                };
                self.tally.reused = Some(reused);
                self.models.spending.fork(prices);
            }
            EventKind::Pausing { by, .. } => {
                self.progress.request_pause(*by, event.at);
            }
            EventKind::Paused { at } => {
                self.settings.pauses_at_next_round = false;
                if self.progress.pause(at, event.at) {
                    self.over_time.mark(event, MarkKind::Paused);
                }
            }
            EventKind::Resumed { paused_ms, .. } => {
                self.settings.pauses_at_next_round = false;
                self.progress.resume(event.at, *paused_ms, RunState::Running);
            }
            EventKind::Stepped { paused_ms, step, .. } => {
                self.settings.pauses_at_next_round = matches!(step, StepSize::Round);
                let stage = match step {
                    StepSize::Boundary => RunState::Pausing { by: Initiator::You, since: None },
                    StepSize::Round => RunState::Running,
                };
                self.progress.resume(event.at, *paused_ms, stage);
            }
            EventKind::FlagChanged { flag, on, by, boundary } => {
                self.settings.switch(flag, *on, (event.at, boundary.clone(), *by));
                self.over_time.mark(event, MarkKind::Flag(flag.clone(), *on));
            }
            EventKind::BreakpointChanged { at, set: true } => {
                self.settings.breakpoints.insert(at.clone());
            }
            EventKind::BreakpointChanged { at, set: false } => {
                self.settings.breakpoints.remove(at);
            }
            EventKind::BudgetReached(reached) => {
                self.failures.budget_reached = Some(*reached);
                self.over_time.mark(event, MarkKind::Failed);
            }
            EventKind::AnswerComposed { text, .. } => self.progress.answer = Some(Arc::clone(text)),
            EventKind::CallStarted(call) => {
                self.tally.calls += 1;
                self.models.spending.call_started(event.span, call.model.as_deref());
                self.models.record(call);
                self.mark_call(event, call);
            }
            EventKind::CallAnswered { .. } => self.tally.answered += 1,
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.tally.cancelled += 1;
            }
            EventKind::CallFailed { .. } => {
                self.tally.failed += 1;
                self.over_time.mark(event, MarkKind::Failed);
            }
            EventKind::CallDegraded { by, .. } => {
                self.tally.degraded += 1;
                self.tally.omitted += u64::from(matches!(by, FallbackKind::Omitted));
            }
            EventKind::ReplyRefused(_) => self.tally.refused_replies += 1,
            EventKind::AttemptRefused { .. } => self.tally.refused += 1,
            EventKind::PlanRefused { .. } => self.over_time.mark(event, MarkKind::Failed),
            EventKind::BreakerChanged { tool, to, .. } => {
                self.over_time.mark(event, MarkKind::Breaker(tool.clone(), *to));
            }
            EventKind::FaultInjected { tool, .. } => {
                self.over_time.mark(event, MarkKind::Fault(tool.clone(), true));
            }
            EventKind::FaultRemoved { tool, .. } => {
                self.over_time.mark(event, MarkKind::Fault(tool.clone(), false));
            }
            EventKind::CallRetried { .. } => {
                self.tally.retries += 1;
                self.over_time.mark(event, MarkKind::Retry);
            }
            EventKind::AttemptStarted { .. } => self.tally.attempts += 1,
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
        self.tools.apply(event, &self.spans, &self.progress);
        self.alerts.apply(event, &self.tools, &self.spans);
        if let EventKind::AttemptAnswered(_) = &event.kind {
            for used in self.spending_used() {
                self.alerts.check_spending(event, used);
            }
        }
        self.failures.apply(event, &self.spans);
    }

    /// How much of each spending limit the run has used.
    pub fn spending_used(&self) -> Vec<SpendingUsed> {
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

    /// Whether an attempt is a model call, whose tokens count: not that of a tool or an agent,
    /// because an agent's own calls are counted.
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

    fn mark_call(&mut self, event: &Event, call: &CallStarted) {
        if matches!(call.purpose, Purpose::Finalize | Purpose::Synthesize) {
            self.over_time.mark(event, MarkKind::Finalize);
        }
        if let (Purpose::Member { agent, .. }, SpanId::RUN) = (&call.purpose, call.parent) {
            self.over_time.mark(event, MarkKind::Consulted(agent.clone()));
        }
    }
}
