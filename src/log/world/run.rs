//! The part of the fold that all patterns share: the course of the run (how far it is, what it has
//! used, how it ended), which is all that a row in the list of runs needs; what the operator has
//! set; counts, marks, tools, alerts, failures.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::alerts::Alerts;
use super::failures::{CutReply, Failures};
use super::over_time::{MarkKind, RunOverTime};
use super::progress::{RunProgress, RunState};
use super::questions::{OpenQuestion, Questions};
use super::spans::{Span, SpanKind, Spans};
use super::spending::{ModelsByCaller, SpendingUsed};
use super::tools::Tools;
use crate::base::name::FlagName;
use crate::log::event::tool::FallbackKind;
use crate::log::event::{
    Asks, BoundaryId, CallStarted, Command, Elapsed, Event, EventKind, FlagAt, Initiator, Purpose,
    RunStarted, Seq, SpanId, StepSize, StopReason, Usage,
};
use crate::log::facts::EndedCall;
use crate::log::facts::observed::{ObservedFact, TraceAbout};
use crate::scenario::spec::Price;

/// The part of the fold that all patterns share.
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
    /// The questions to people.
    pub questions: Questions,
    /// Open calls of models and tools.
    leaf_calls: u64,
    /// The number of open spans of a watched program.
    open_observed: u64,
    /// The models of the run.
    pub models: ModelsByCaller,
    /// The run over time, for the scrubber.
    pub over_time: RunOverTime,
    /// The tools behind the gateway.
    pub tools: Tools,
    /// Alerts to the operator.
    pub alerts: Alerts,
    pub(crate) failures: Failures,
}

impl RunFold {
    pub(crate) fn apply(&mut self, event: &Event) {
        let has_head = self.head.is_some();
        let was_paused = matches!(self.progress.stage, RunState::Paused { .. });
        self.over_time.count(event, &self.progress);
        self.apply_course(event);
        self.failures.back_off.apply(event, &self.spans);
        self.tally.retrying = self.failures.back_off.len();
        match &event.kind {
            EventKind::RunStarted(_) if has_head => return,
            EventKind::RunStarted(head) => {
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
            EventKind::FlagChanged { flag, on, .. } => {
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
            EventKind::CallFailed {
                reason: StopReason::Cancelled | StopReason::ApprovalDenied(_),
                ..
            } => {}
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
            EventKind::QuestionAsked(asked) => {
                self.over_time.mark(event, MarkKind::Asked(asked.who.clone()));
            }
            _ => {}
        }
        // A call of a watched program is counted at its span.
        let is_observed = self.head.as_ref().is_some_and(|it| it.model.is_observed());
        if !is_observed || !self.is_watched(event.span) {
            self.tools.apply(event, &self.spans, &self.progress);
            self.alerts.apply(event, &self.tools, &self.spans);
        }
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

/// Deepest spans that are looked through.
const MAX_NESTING: u32 = 10_000;

/// Ended calls leave the fold of a host that follows an endless run this many events later.
const KEPT_EVENTS: u64 = 4_096;

impl RunFold {
    /// The course of a run with these events.
    pub(crate) fn course_of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut run = Self::default();
        events.into_iter().for_each(|event| run.apply_course(event));
        run
    }

    /// Processes one event for the course of the run alone: its head, flags, progress, spans, counts,
    /// models, last errors and refused replies. The row of the run in a list needs no more; all else stays unchanged.
    pub(crate) fn apply_course(&mut self, event: &Event) {
        self.tally.events += 1;
        self.progress.count(event);
        self.spans.apply(event);
        self.failures.last_errors.apply(event, &self.spans);
        let limits = self.head.as_ref().map(|head| head.spending).unwrap_or_default();
        self.questions.apply(event, limits);
        match &event.kind {
            EventKind::RunStarted(head) => {
                if self.head.is_some() {
                    return;
                }
                self.progress.start();
                self.settings.set_flags(&head.flags);
                self.models.spending.set_models(head.first_prices());
                self.head = Some(Arc::clone(head));
                if head.model.is_observed() {
                    self.progress.quiet_since = Some(event.at);
                }
            }
            EventKind::RunClosed(closed) => {
                // The run waited for more spans, and none came.
                if let Some(since) =
                    self.progress.quiet_since.take().filter(|_| !self.spans_are_few())
                {
                    self.progress.stand(since, event.at);
                }
                self.progress.close(closed, event.at);
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
            EventKind::QuestionAnswered(answered) => {
                if answered.stood_ms > 0 {
                    self.progress.waited_for_people(event.at, answered.stood_ms);
                }
                if let Some((_, decision, _)) = self.questions.decision_of(answered) {
                    self.progress.result = Some(decision.word().into());
                }
            }
            EventKind::FlagChanged { flag, on, by, boundary } => {
                self.settings.switch(flag, *on, (event.at, boundary.clone(), *by));
            }
            EventKind::CommandTaken { command, .. } => {
                if let Command::Message { text, .. } = &**command {
                    self.progress.queued.push(Arc::clone(text));
                }
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
                    self.progress.result = Some(match self.questions.fallback_turns.contains(by) {
                        true => format!("fallback of {by}").into(),
                        false => by.as_str().into(),
                    });
                }
            }
            EventKind::Pattern(fact) => {
                if let Some(fact) = fact.observed() {
                    self.apply_observed(fact, event);
                }
                if let Some(call) = fact.get().ended_call() {
                    self.count_call(&call);
                }
                if let Some(head) = &self.head
                    && let Some(result) = fact.get().result(&head.plan)
                {
                    self.progress.result = Some(result.into());
                }
            }
            EventKind::ToolAdded { tool, price } => {
                self.models.spending.add_model(tool.name.as_str(), *price);
            }
            // It is counted at its span.
            EventKind::CallStarted(call) if call.purpose == Purpose::Watched => {}
            EventKind::CallStarted(call) => {
                self.tally.calls += 1;
                self.leaf_calls += u64::from(call.purpose.asks() != Asks::Agent);
                let is_person =
                    self.tools.get(call.tool.as_str()).is_some_and(|it| it.head.is_person());
                match call.purpose.asks() {
                    _ if is_person => self.tally.person_calls += 1,
                    Asks::Model => {}
                    Asks::Tool => self.tally.tool_calls += 1,
                    Asks::Agent => self.tally.agent_calls += 1,
                }
                self.models.spending.call_started(event.span, call.model.as_deref());
                self.models.record(call);
            }
            EventKind::CallAnswered { .. } => self.tally.answered += 1,
            EventKind::CallFailed { .. } | EventKind::AttemptAnswered(_)
                if self.is_watched(event.span) => {}
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.tally.cancelled += 1;
            }
            EventKind::CallFailed { reason: StopReason::ApprovalDenied(_), .. } => {
                self.tally.denied += 1;
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
            // What an agent of another program says of its cost.
            EventKind::AttemptAnswered(reply) if reply.cost_usd.is_some() => {
                self.tally.usage.add(reply.usage.unwrap_or_default());
                self.models.spending.add_cost(reply.cost_usd);
            }
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
            if let Some(SpanKind::Call(purpose)) = self.spans.get(event.span).map(|it| &it.kind) {
                let leaf = u64::from(purpose.asks() != Asks::Agent);
                self.leaf_calls = self.leaf_calls.saturating_sub(leaf);
            }
            self.models.spending.span_ended(event.span);
        }
        if !self.questions.is_empty() {
            self.follow_waits(event);
        }
    }

    /// Whether no span was reported.
    fn spans_are_few(&self) -> bool {
        self.spans.opened() <= 1
    }

    /// Updates the clock, which runs from the first span to the last one, and the title of a watched run.
    fn apply_observed(&mut self, fact: &ObservedFact, event: &Event) {
        match fact {
            ObservedFact::Opened { about, .. } => {
                if let Some(since) = self.progress.quiet_since.take()
                    && self.spans.opened() == 2
                {
                    self.progress.stand(since, self.time_in_log(about.from_us, since, event.at));
                }
                self.open_observed +=
                    u64::from(self.spans.opened_by(event.span) == Some(event.seq));
            }
            ObservedFact::Closed { about, .. } => {
                self.open_observed = self.open_observed.saturating_sub(1);
                if self.open_observed == 0 {
                    let since = self.time_in_log(about.until_us, Elapsed(0), event.at);
                    self.progress.quiet_since = Some(since);
                }
            }
            ObservedFact::Named { about } => {
                let TraceAbout { part, input, .. } = &**about;
                let Some(head) = &mut self.head else { return };
                let head = Arc::make_mut(head);
                if let Some(part) = part {
                    head.title = part.to_string();
                } else if let Some(input) = input {
                    let first = input.lines().map(str::trim).find(|line| !line.is_empty());
                    head.title = format!("{}: {}", head.scenario, first.unwrap_or_default());
                }
                input.iter().for_each(|input| head.goal = input.to_string());
            }
            _ => {}
        }
    }

    /// A time of the program's clock as a time of the log. `most` if it is not between `least` and `most`: then the clocks
    /// differ.
    fn time_in_log(&self, time_us: Option<u64>, least: Elapsed, most: Elapsed) -> Elapsed {
        let start_us = self.head.as_ref().map_or(0, |head| head.wall_ms.saturating_mul(1_000));
        let time = time_us.and_then(|time| time.checked_sub(start_us)).map(Elapsed);
        time.filter(|time| (least..=most).contains(time)).unwrap_or(most)
    }

    /// Whether a span is the call of a program that is watched.
    pub(crate) fn is_watched(&self, span: SpanId) -> bool {
        let kind = self.spans.get(span).map(|it| &it.kind);
        matches!(kind, Some(SpanKind::Call(Purpose::Watched)))
    }

    /// Counts a call that another program made.
    fn count_call(&mut self, call: &EndedCall) {
        let tally = &mut self.tally;
        if let Some(asks) = call.asks {
            tally.calls += 1;
            match asks {
                Asks::Model => {}
                Asks::Tool => tally.tool_calls += 1,
                Asks::Agent => tally.agent_calls += 1,
            }
            match &call.failed {
                None => tally.answered += 1,
                Some(StopReason::Cancelled) => tally.cancelled += 1,
                Some(_) => tally.failed += 1,
            }
        }
        call.usage.inspect(|usage| tally.usage.add(*usage));
        if call.usage.is_some() || call.cost_usd.is_some() {
            self.models.spending.add_cost(call.cost_usd);
        }
    }

    /// Follows whether every branch waits for a person: a question is open, and no call of a model or
    /// tool is being made.
    fn follow_waits(&mut self, event: &Event) {
        let of_call = |open: &&OpenQuestion| self.leaf_call_of(open.span).is_some();
        let asked = self.questions.open().filter(of_call).count() as u64;
        let waits = self.questions.open().len() > 0 && self.leaf_calls <= asked;
        let since = waits.then(|| self.progress.waits_since.unwrap_or(event.at));
        self.progress.waits_since = since.filter(|_| self.progress.is_live());
    }

    /// The call of a model or tool that a span is, or is an attempt of.
    fn leaf_call_of(&self, span: SpanId) -> Option<&Span> {
        let span = self.spans.get(span)?;
        let call = match span.kind {
            SpanKind::Attempt(_) => self.spans.get(span.parent)?,
            _ => span,
        };
        match &call.kind {
            SpanKind::Call(purpose) if purpose.asks() != Asks::Agent => Some(call),
            _ => None,
        }
    }

    /// The open question of a span, or of one within it.
    pub fn question_within(&self, span: SpanId) -> Option<&OpenQuestion> {
        self.questions.open().find(|question| self.is_within(question.span, span))
    }

    /// The times in which a span, or one within it, waited for people: those that have ended, then the open
    /// ones.
    pub fn waits_within(&self, span: SpanId) -> Vec<(Elapsed, Option<Elapsed>)> {
        let questions = &self.questions;
        let ended = questions.ended().iter().map(|it| (&it.question, Some(it.at)));
        let all = ended.chain(questions.open().map(|question| (question, None)));
        all.filter(|(question, _)| self.is_within(question.span, span))
            .map(|(question, until)| (question.at, until))
            .collect()
    }

    pub(crate) fn is_within(&self, span: SpanId, outer: SpanId) -> bool {
        let (mut at, mut left) = (Some(span), MAX_NESTING);
        // A file may have spans that enclose each other.
        while let Some(span) = at.filter(|span| *span != outer && left > 0) {
            left -= 1;
            at = self.spans.get(span).map(|it| it.parent).filter(|parent| *parent != span);
        }
        at.is_some_and(|span| span == outer)
    }

    /// How much of each spending limit the run has used.
    pub(crate) fn spending_used(&self) -> Vec<SpendingUsed> {
        let limits = self.head.as_ref().map(|head| head.spending).unwrap_or_default();
        let (more_tokens, more_usd) = self.questions.extended;
        let tokens = limits.max_total_tokens.map(|limit| SpendingUsed::Tokens {
            used: self.tally.usage.total(),
            limit: limit.saturating_mul(u64::from(more_tokens) + 1),
        });
        let cost = limits.max_cost_usd.and_then(|limit| {
            let limit = limit * (f64::from(more_usd) + 1.0);
            Some(SpendingUsed::Cost { used: self.cost_usd()?, limit })
        });
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

    /// Estimated cost in US dollars, without the calls whose cost is unknown.
    pub(crate) fn known_cost_usd(&self) -> f64 {
        match self.head.as_ref().and_then(|head| head.prices) {
            Some(prices) => Price::from(prices).cost(&self.tally.usage),
            None => self.models.spending.known_part(),
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

    /// Adds the estimated use of an attempt.
    fn add_estimate(&mut self, attempt: SpanId, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.tally.usage.add(usage);
            self.tally.estimated += 1;
            let call = self.spans.get(attempt).map(|it| it.parent);
            self.models.spending.add_usage(call, usage);
        }
    }

    /// See [`World::forget_before`](crate::log::world::World::forget_before).
    pub(crate) fn forget_before(&mut self, event: Seq) {
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

/// What the operator has set in a run.
#[derive(Clone, Debug, Default)]
pub struct OperatorSettings {
    /// The flags, in the scenario's order.
    pub flags: Vec<FlagNow>,
    /// Boundaries at which the run will pause.
    pub breakpoints: BTreeSet<BoundaryId>,
    /// Whether the last step was one to the next round, where the run will pause.
    pub pauses_at_next_round: bool,
}

/// A flag and its current position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagNow {
    pub name: FlagName,
    /// What the flag does, for display.
    pub label: String,
    /// The current position.
    pub on: bool,
    /// The position at the start.
    pub at_start: bool,
    /// The last change: its time, its boundary, and who made it.
    pub changed: Option<(Elapsed, BoundaryId, Initiator)>,
}

impl OperatorSettings {
    /// Sets the flags at the start of the run.
    fn set_flags(&mut self, flags: &[FlagAt]) {
        let now = flags.iter().map(|flag| FlagNow {
            name: flag.name.clone(),
            label: flag.label.clone(),
            on: flag.on,
            at_start: flag.on,
            changed: None,
        });
        self.flags = now.collect();
    }

    /// The flags and their positions, as a launch takes them.
    pub(crate) fn flag_positions(&self) -> Vec<(FlagName, bool)> {
        self.flags.iter().map(|flag| (flag.name.clone(), flag.on)).collect()
    }

    pub(crate) fn switch(
        &mut self,
        flag: &FlagName,
        on: bool,
        changed: (Elapsed, BoundaryId, Initiator),
    ) {
        if let Some(row) = self.flags.iter_mut().find(|row| row.name == *flag) {
            row.on = on;
            row.changed = Some(changed);
        }
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub events: u64,
    pub calls: u64,
    /// Those of them that called a tool.
    pub tool_calls: u64,
    /// Those of them that called another agent.
    pub agent_calls: u64,
    /// Those of them that asked a person.
    pub person_calls: u64,
    /// Calls with a reply or result.
    pub answered: u64,
    /// Calls without a result.
    pub failed: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Those of them that have neither a result nor a fallback value.
    pub omitted: u64,
    /// Calls that a person or a rule did not approve.
    pub denied: u64,
    /// Calls that were cancelled because the run stopped.
    pub cancelled: u64,
    pub attempts: u64,
    pub failed_attempts: u64,
    /// Attempts after the first of their call that were made.
    pub retries: u64,
    pub refused_replies: u64,
    /// Calls that wait for their next attempt now.
    pub retrying: u64,
    /// Tokens of the replies, counted or estimated.
    pub usage: Usage,
    /// Replies whose tokens are estimated because the endpoint did not count them.
    pub estimated: u64,
    /// Replies whose tokens are unknown; only in logs of earlier versions.
    pub uncounted: u64,
    /// Events of kinds that this version does not know.
    pub unknown: u64,
    /// The part of these counts that another run has used; `None`: the run is not a fork.
    pub reused: Option<ReusedPart>,
}

/// The part of a fork that another run has executed and paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReusedPart {
    pub events: u64,
    /// Tokens of the replies.
    pub tokens: u64,
    /// Estimated US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
}

impl Tally {
    /// Number of calls that called a model.
    pub fn model_calls(&self) -> u64 {
        self.calls.saturating_sub(self.tool_calls + self.agent_calls + self.person_calls)
    }

    /// Number of open calls.
    pub fn open(&self) -> u64 {
        let over = self.answered + self.failed + self.degraded + self.denied + self.cancelled;
        self.calls.saturating_sub(over)
    }
}
