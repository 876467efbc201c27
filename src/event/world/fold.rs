//! The part of the fold that is the same for all patterns: the course of the run (`course.rs`), and
//! settings, marks, tools, alerts, failures.

use std::sync::Arc;

use super::alerts::Alerts;
use super::failures::{CutReply, Failures};
use super::marks::MarkKind;
use super::models::ModelsByCaller;
use super::operator_settings::OperatorSettings;
use super::over_time::RunOverTime;
use super::progress::{RunProgress, RunState};
use super::spans::Spans;
use super::tally::Tally;
use super::tools::Tools;
use crate::event::kind::{CallStarted, Purpose, RunStarted, StepSize};
use crate::event::{Event, EventKind, SpanId, StopReason};

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
        let has_head = self.head.is_some();
        let was_paused = matches!(self.progress.stage, RunState::Paused { .. });
        self.over_time.count(event, &self.progress);
        self.apply_course(event);
        self.failures.back_off.apply(event, &self.spans);
        self.tally.retrying = self.failures.back_off.len();
        match &event.kind {
            EventKind::RunStarted(_) if has_head => return,
            EventKind::RunStarted(head) => {
                self.settings.set_flags(&head.flags);
                self.tools.begin(&head.tools);
                self.alerts.begin(head.alerts);
            }
            EventKind::RunClosed(_) => {
                self.settings.pauses_at_next_round = false;
                self.over_time.mark(event, MarkKind::Closed);
            }
            EventKind::Paused { .. } => {
                self.settings.pauses_at_next_round = false;
                if !was_paused {
                    self.over_time.mark(event, MarkKind::Paused);
                }
            }
            EventKind::Resumed { .. } => self.settings.pauses_at_next_round = false,
            EventKind::Stepped { step, .. } => {
                self.settings.pauses_at_next_round = matches!(step, StepSize::Round);
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
            EventKind::CallStarted(call) => self.mark_call(event, call),
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {}
            EventKind::CallFailed { .. } | EventKind::PlanRefused { .. } => {
                self.over_time.mark(event, MarkKind::Failed);
            }
            EventKind::BreakerChanged { tool, to, .. } => {
                self.over_time.mark(event, MarkKind::Breaker(tool.clone(), *to));
            }
            EventKind::FaultInjected { tool, .. } => {
                self.over_time.mark(event, MarkKind::Fault(tool.clone(), true));
            }
            EventKind::FaultRemoved { tool, .. } => {
                self.over_time.mark(event, MarkKind::Fault(tool.clone(), false));
            }
            EventKind::CallRetried { .. } => self.over_time.mark(event, MarkKind::Retry),
            _ => {}
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

    /// The replies that are used though they are not whole, in the order in which they arrived.
    pub(crate) fn cut_replies(&self) -> &[CutReply] {
        &self.failures.cut
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
