//! Projection of the gateway: the counts of each tool, and the state of its breaker and bulkhead
//! (cascading failures source document). It is the same for every pattern.
//!
//! What a run that puts load on tools adds to the figures of the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::progress::RunProgress;
use super::spans::Spans;
use super::tool_row::{BreakerMove, CallMark, HISTORY, ToolRow};
use crate::base::name::ToolName;
use crate::log::event::{
    AttemptFailed, BreakerStage, CallStarted, Elapsed, Event, EventKind, FailureClass,
    FallbackKind, Reply, Seq, SpanId, StepState, StopReason, ToolHead,
};
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole};
use crate::scenario::tools::mcp::split_name;

/// Most tools of another program.
const MAX_OBSERVED: usize = 64;

/// Every tool behind the gateway, or of a program that is watched.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    rows: Vec<ToolRow>,
    /// Index of the tool of each open call.
    open: BTreeMap<SpanId, usize>,
    /// Calls with an attempt in the bulkhead's queue.
    queued_calls: BTreeSet<SpanId>,
    /// Index of the tool whose call was closed last.
    closed: Option<usize>,
    /// Open calls with a failed last attempt, where the breaker counts calls; `true`: the attempt was
    /// slow.
    undecided: BTreeMap<SpanId, (Seq, bool)>,
    /// How far open calls are, by span.
    progress: BTreeMap<SpanId, CallProgress>,
}

/// How far an open call is, in the words and the unit of its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    /// What it does; may be empty.
    pub text: String,
    pub done: f64,
    /// How much there is to do.
    pub total: Option<f64>,
}

impl Tools {
    /// Whether an attempt of this call is in a bulkhead's queue now.
    pub fn is_queued(&self, call: SpanId) -> bool {
        self.queued_calls.contains(&call)
    }

    /// The tools in the order of the log's head; tools that it does not name come last.
    pub fn rows(&self) -> &[ToolRow] {
        &self.rows
    }

    /// The tool with this name.
    pub fn get(&self, name: &str) -> Option<&ToolRow> {
        self.rows.iter().find(|row| row.head.name.as_str() == name)
    }

    /// How far an open call is, if its tool has said it.
    pub fn progress_of(&self, call: SpanId) -> Option<&CallProgress> {
        self.progress.get(&call)
    }

    /// The tool of an open call.
    pub fn for_call(&self, call: SpanId) -> Option<&ToolRow> {
        self.rows.get(*self.open.get(&call)?)
    }

    /// Requests per call, over all tools except the model.
    pub fn amplification(&self) -> Option<f64> {
        let tools = self.rows.iter().filter(|row| row.head.name.as_str() != "llm");
        let (asked, requests) = tools.fold((0, 0), |(asked, requests), row| {
            (asked + row.tally.calls, requests + row.tally.requests())
        });
        (asked > 0).then(|| requests as f64 / asked as f64)
    }

    /// The tool whose call was closed last.
    pub(super) fn last_closed(&self) -> Option<&ToolRow> {
        self.rows.get(self.closed?)
    }

    pub(crate) fn begin(&mut self, heads: &[ToolHead]) {
        self.rows.reserve_exact(heads.len());
        for head in heads {
            if self.get(head.name.as_str()).is_none() {
                self.rows.push(ToolRow::new(head.clone()));
            }
        }
    }

    fn named(&mut self, name: &ToolName) -> Option<&mut ToolRow> {
        self.rows.iter_mut().find(|row| row.head.name == *name)
    }

    fn asked(&mut self, span: SpanId, call: &CallStarted) {
        let place = |name: &str| self.rows.iter().position(|row| row.head.name.as_str() == name);
        // A tool of an MCP server may share the limits of the server.
        let named = call.tool.as_str();
        let Some(place) = place(named).or_else(|| place(split_name(named)?.0)) else { return };
        if self.open.insert(span, place).is_none() {
            let tally = &mut self.rows[place].tally;
            if call.purpose.is_repeat() { tally.repeats += 1 } else { tally.calls += 1 }
        }
    }

    fn row(&mut self, call: SpanId) -> Option<&mut ToolRow> {
        let place = *self.open.get(&call)?;
        self.rows.get_mut(place)
    }

    /// The tool of an open attempt.
    fn row_of_attempt(&mut self, attempt: SpanId, spans: &Spans) -> Option<&mut ToolRow> {
        self.row(spans.get(attempt)?.parent)
    }

    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans, run: &RunProgress) {
        let at = run.run_time_us(event.at);
        match &event.kind {
            EventKind::CallStarted(call) => self.asked(event.span, call),
            EventKind::CallAnswered { .. } => {
                let took = spans.get(event.span).map(|span| {
                    // A call may wait at the boundary of its next attempt while the run is paused.
                    run.active_between(span.opened, event.at)
                });
                let took = took.unwrap_or_default();
                self.close(event, at, |row| {
                    row.tally.answered += 1;
                    row.latencies.add(took);
                    row.timeline.count_answer(at, took);
                });
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.close(event, at, |row| row.tally.cancelled += 1);
            }
            EventKind::CallFailed { reason: StopReason::ApprovalDenied(_), .. } => {
                self.close(event, at, |row| row.tally.denied += 1);
            }
            EventKind::CallFailed { attempts, reason } => self.close(event, at, |row| {
                row.tally.failed += 1;
                if *attempts == 0 {
                    row.last_failure.get_or_insert_with(|| reason.phrase().into());
                }
            }),
            EventKind::CallDegraded { by, .. } => self.close(event, at, |row| match by {
                FallbackKind::Cached { age_ms } => {
                    row.tally.cached += 1;
                    row.oldest_cached_ms = row.oldest_cached_ms.max(*age_ms);
                }
                FallbackKind::Default => row.tally.fallback += 1,
                FallbackKind::Omitted => row.tally.omitted += 1,
            }),
            EventKind::AttemptQueued { .. } => {
                let is_new = self.queued_calls.insert(event.span);
                if let Some(row) = self.row(event.span).filter(|_| is_new) {
                    row.queued += 1;
                    row.record_level(at);
                }
            }
            EventKind::AttemptRefused { reason, .. } => {
                self.leave_line(event.span, at);
                let Some(row) = self.row(event.span) else { return };
                match reason {
                    StopReason::CircuitOpen(_) => row.tally.circuit_open += 1,
                    StopReason::BulkheadFull(_) => row.tally.bulkhead_full += 1,
                    StopReason::RateReached(_) => {}
                    _ => return,
                }
                row.mark(CallMark::Refused);
            }
            EventKind::AttemptStarted { parent, attempt, waited_ms, .. } => {
                self.leave_line(*parent, at);
                let Some(row) = self.row(*parent) else { return };
                row.tally.attempts += 1;
                row.tally.retries += u64::from(*attempt > 1);
                row.tally.waited_ms = row.tally.waited_ms.saturating_add(*waited_ms);
                row.in_flight += 1;
                row.peak = row.peak.max(row.in_flight);
                row.timeline.count_request(at);
                row.record_level(at);
            }
            EventKind::ClientRetried { .. } => {
                if let Some(row) = self.row_of_attempt(event.span, spans) {
                    row.tally.client_retries += 1;
                    row.timeline.count_request(at);
                }
            }
            EventKind::AttemptProgressed { text, done, total } => {
                if let Some(attempt) = spans.get(event.span).filter(|it| it.closed.is_none()) {
                    let (text, done, total) = (text.clone(), *done, *total);
                    self.progress.insert(attempt.parent, CallProgress { text, done, total });
                }
            }
            EventKind::AgentStep(step) if step.state == StepState::Started => {
                if let Some(attempt) = spans.get(event.span).filter(|it| it.closed.is_none()) {
                    let text = step.title.to_string();
                    let progress = CallProgress { text, done: 0.0, total: None };
                    self.progress.insert(attempt.parent, progress);
                }
            }
            EventKind::CallRetried { .. } => {
                self.progress.remove(&event.span);
                self.undecided.remove(&event.span);
            }
            EventKind::AttemptAnswered(reply) => self.attempt_answered(reply, event, at, spans),
            EventKind::AttemptFailed(failed) => self.attempt_failed(failed, event, at, spans),
            EventKind::BreakerChanged { .. } => self.breaker_changed(event, at),
            EventKind::ToolAdded { tool, .. } => self.begin(std::slice::from_ref(tool)),
            EventKind::ResultIgnored { tool, .. } => {
                if let Some(row) = self.named(tool) {
                    row.tally.stale += 1;
                }
            }
            EventKind::LimitsChanged { tool, limits, .. } => {
                if let Some(row) = self.named(tool) {
                    row.head.limits = (**limits).clone();
                    row.limit_window();
                }
            }
            EventKind::FaultInjected { tool, fault, .. } => {
                if let Some(row) = self.named(tool) {
                    row.faults.retain(|had| had.kind() != fault.kind());
                    row.faults.push(*fault);
                }
            }
            EventKind::FaultRemoved { tool, fault, .. } => {
                if let Some(row) = self.named(tool) {
                    row.faults.retain(|had| had.kind() != *fault);
                }
            }
            kind => {
                if let Some(fact) = ObservedFact::of(kind) {
                    self.observe(fact, event, spans, at);
                }
            }
        }
    }

    fn attempt_answered(&mut self, reply: &Reply, event: &Event, at: Elapsed, spans: &Spans) {
        let took = spans.get(event.span).map_or(Duration::ZERO, |it| it.duration(event.at));
        let started = spans.opened_by(event.span).unwrap_or_default();
        let Some(row) = self.row_of_attempt(event.span, spans) else { return };
        row.in_flight = row.in_flight.saturating_sub(1);
        row.tally.good += 1;
        row.failures = 0;
        row.timeline.count_attempt(at, true);
        row.record_level(at);
        let slow = match row.head.limits.breaker.and_then(|it| it.window?.slow_call_ms) {
            Some(_) => reply.slow,
            None => took > Duration::from_millis(row.head.limits.timeout_ms / 2),
        };
        row.mark(if slow { CallMark::Slow } else { CallMark::Good });
        row.count_in_window(started, false, reply.slow, event.at);
    }

    fn attempt_failed(
        &mut self,
        failed: &AttemptFailed,
        event: &Event,
        at: Elapsed,
        spans: &Spans,
    ) {
        let started = spans.opened_by(event.span).unwrap_or_default();
        let call = spans.get(event.span).map(|span| span.parent);
        let Some(row) = self.row_of_attempt(event.span, spans) else { return };
        row.in_flight = row.in_flight.saturating_sub(1);
        row.record_level(at);
        if failed.class != FailureClass::Cancelled && failed.adapted.is_none() {
            row.last_failure = Some(failed.text.as_str().into());
        }
        if failed.class.is_failure_of_tool(failed.status) {
            row.tally.bad += 1;
            row.failures += 1;
            row.timeline.count_attempt(at, false);
            row.mark(CallMark::Bad);
            let by_call = row.counts_calls() && row.breaker != BreakerStage::HalfOpen;
            match call.filter(|_| by_call && row.window.is_some()) {
                Some(call) => {
                    self.undecided.insert(call, (started, failed.slow));
                }
                None if failed.adapted.is_some() => {}
                None => row.count_in_window(started, true, failed.slow, event.at),
            }
        } else {
            row.mark(CallMark::NotCounted);
        }
    }

    fn breaker_changed(&mut self, event: &Event, at: Elapsed) {
        let EventKind::BreakerChanged { tool, to, cause: why, open_for_ms, by, counted } =
            &event.kind
        else {
            return;
        };
        let Some(row) = self.named(tool) else { return };
        let opens = |stage| matches!(stage, BreakerStage::Open | BreakerStage::Held);
        if opens(*to) && !opens(row.breaker) {
            row.tally.openings += 1;
        }
        let before = std::mem::replace(&mut row.breaker, *to);
        row.change_window(before, *why, event.seq);
        row.record_level(at);
        row.since = event.at;
        row.until =
            open_for_ms.map(|ms| Elapsed(event.at.0.saturating_add(ms.saturating_mul(1_000))));
        if *to == BreakerStage::Closed {
            row.failures = 0;
        }
        if row.history.len() == HISTORY {
            row.history.pop_front();
        }
        row.history.push_back(BreakerMove {
            at: event.at,
            seq: event.seq,
            to: *to,
            why: *why,
            by: *by,
            opened_by: match to {
                BreakerStage::Open if by.is_none() => row.last_failure.clone(),
                _ => None,
            },
            counted: *counted,
        });
    }

    /// A span of another program: a call of a tool or a model is one attempt.
    fn observe(&mut self, fact: &ObservedFact, event: &Event, spans: &Spans, at: Elapsed) {
        let (ObservedFact::Opened { about, .. } | ObservedFact::Closed { about, .. }) = fact else {
            return;
        };
        if !self.open.contains_key(&event.span) {
            let Some(place) = self.observed_place(about) else { return };
            self.open.insert(event.span, place);
            let Some(row) = self.rows.get_mut(place) else { return };
            row.tally.calls += 1;
            row.tally.attempts += 1;
            row.in_flight += 1;
            row.peak = row.peak.max(row.in_flight);
            row.timeline.count_request(at);
            row.record_level(at);
        }
        let ObservedFact::Closed { end, .. } = fact else { return };
        self.rename_observed(about, event.span);
        let seen = || spans.get(event.span).map(|span| event.at.since(span.opened));
        let took = about.took_us().map(Duration::from_micros).or_else(seen).unwrap_or_default();
        self.close(event, at, |row| {
            row.in_flight = row.in_flight.saturating_sub(1);
            row.record_level(at);
            match end {
                SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => {
                    row.tally.answered += 1;
                    row.tally.good += 1;
                    row.failures = 0;
                    row.latencies.add(took);
                    row.timeline.count_answer(at, took);
                    row.timeline.count_attempt(at, true);
                    row.mark(CallMark::Good);
                }
                SpanEnd::Failed => {
                    row.tally.failed += 1;
                    row.tally.bad += 1;
                    row.failures += 1;
                    row.last_failure = about
                        .error
                        .as_deref()
                        .and_then(|error| error.lines().next())
                        .map(Into::into);
                    row.timeline.count_attempt(at, false);
                    row.mark(CallMark::Bad);
                }
                SpanEnd::Lost => {
                    row.tally.cancelled += 1;
                    row.mark(CallMark::NotCounted);
                }
            }
        });
    }

    /// A call has another name at its end: it counts for that tool.
    fn rename_observed(&mut self, about: &SpanAbout, span: SpanId) {
        let (Some(before), Some(now)) = (self.open.get(&span).copied(), self.observed_place(about))
        else {
            return;
        };
        if before == now {
            return;
        }
        self.open.insert(span, now);
        for (place, counts) in [(before, false), (now, true)] {
            let Some(row) = self.rows.get_mut(place) else { continue };
            let moved = |count: u64| if counts { count + 1 } else { count.saturating_sub(1) };
            row.tally.calls = moved(row.tally.calls);
            row.tally.attempts = moved(row.tally.attempts);
            row.in_flight = moved(row.in_flight.into()) as u32;
        }
    }

    /// The row of a call of another program: that of its tool, or of all its models. Beyond a limit tools share a
    /// row. `None`: the span is no call.
    fn observed_place(&mut self, about: &SpanAbout) -> Option<usize> {
        let name = match about.role {
            SpanRole::Model => "llm",
            SpanRole::Tool | SpanRole::Retriever if !about.name.is_empty() => &*about.name,
            _ => return None,
        };
        let row_of = |rows: &[ToolRow], name: &str| {
            rows.iter().position(|row| row.head.name.as_str() == name)
        };
        if let Some(known) = row_of(&self.rows, name) {
            return Some(known);
        }
        let name = if self.rows.len() < MAX_OBSERVED { name } else { "others" };
        let place = row_of(&self.rows, name).unwrap_or(self.rows.len());
        if place == self.rows.len() {
            self.rows.push(ToolRow::new(ToolHead::observed(name)));
        }
        Some(place)
    }

    fn leave_line(&mut self, call: SpanId, at: Elapsed) {
        if self.queued_calls.remove(&call)
            && let Some(row) = self.row(call)
        {
            row.queued = row.queued.saturating_sub(1);
            row.record_level(at);
        }
    }

    fn close(&mut self, call: &Event, at: Elapsed, how: impl FnOnce(&mut ToolRow)) {
        self.leave_line(call.span, at);
        let undecided = self.undecided.remove(&call.span);
        self.progress.remove(&call.span);
        let Some(place) = self.open.remove(&call.span) else { return };
        self.closed = Some(place);
        if let Some(row) = self.rows.get_mut(place) {
            if let Some((started, slow)) = undecided {
                row.count_in_window(started, true, slow, call.at);
            }
            how(row);
        }
    }
}

/// The callers of a run that puts load on tools, and how they may call.
#[derive(Clone, Copy, Debug)]
pub struct ToolLoad<'w> {
    /// The agents in order.
    pub agents: &'w [LoadAgent],
    /// Turns of each agent.
    pub turns: u32,
    /// The tools that an agent calls in each turn, in order.
    pub steps: &'w [ToolName],
    /// The call slots that all agents share.
    pub slots: CallSlots,
    /// Max attempts of one step if the calls bypass the tools' policies; `None` if they do not.
    pub naive_attempts: Option<u32>,
}

/// Call slots that all agents of a run share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSlots {
    pub pool: u32,
    pub in_use: u32,
    /// Most slots in use at the same time.
    pub peak: u32,
    /// Number of calls that wait for a slot now.
    pub waiting: u32,
    /// Most calls that waited at the same time.
    pub peak_waiting: u32,
}

/// An agent that calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadAgent {
    /// Number of its current turn, from 1; 0 before the first.
    pub turn: u32,
    /// The tool it calls now.
    pub calling: Option<ToolName>,
    /// Whether that call waits for a slot.
    pub waits_for_slot: bool,
    /// Its calls with a result.
    pub answered: u32,
    /// Its calls with a fallback or an omitted result.
    pub degraded: u32,
    /// Its calls without a result.
    pub failed: u32,
}
