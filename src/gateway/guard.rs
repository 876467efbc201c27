//! The guard of one tool: its breaker, bulkhead, retry budget, cache of good values and injected
//! faults, with their limits; and why it refuses an attempt. It belongs to one run, or is shared by
//! all runs of the engine.
//!
//! Every state change of the breaker is published to the watching runs under the lock that made it,
//! so their logs have the changes in the order in which they happened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::attempt::CallTurn;
use super::breaker::{
    AttemptVerdict, Breaker, BreakerRefusal, BreakerState, BreakerView, Recorded, Ticket,
};
use super::bulkhead::{Bulkhead, BulkheadCounts, BulkheadFull, Permit, QueueFill};
use super::change;
use super::last_good::LastGood;
use super::retry::RetryBudget;
use crate::base::name::ToolName;
use crate::base::seeded_random::happens_with;
use crate::base::time::millis;
use crate::log::bus::Bus;
use crate::log::clock::Clock;
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    BreakerCause, BreakerStage, EventKind, Initiator, LimitChange, RetryLimit, SafeModeHead,
    SpanId, StopReason, ToolLimits, WindowCounts,
};
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// The period of a rate.
const MINUTE: Duration = Duration::from_secs(60);

/// Guards one tool.
pub struct CallGuard {
    name: ToolName,
    clock: Clock,
    bulkhead: Bulkhead,
    state: Mutex<GuardState>,
}

/// State of a guard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardSnapshot {
    /// Name of the tool.
    pub tool: ToolName,
    /// State of the breaker.
    pub breaker: BreakerView,
    /// The calls in the breaker's window, if it has one.
    pub window: Option<WindowCounts>,
    /// Load of the bulkhead.
    pub fill: QueueFill,
    /// Counters of the bulkhead.
    pub counts: BulkheadCounts,
    /// Retries in the window and the allowed number; `None` without a budget.
    pub retries: Option<(u64, u64)>,
    /// Faults injected at the moment.
    pub faults: Arc<[InjectedFault]>,
}

/// Permission for one attempt: the breaker's ticket and the bulkhead's permit. Dropping it returns
/// both without a verdict.
pub struct CallPermit<'a> {
    breaker: BreakerPermit<'a>,
    _permit: Permit,
    /// Time spent in the queue of the bulkhead, and waiting for the rate.
    pub waited: Duration,
}

/// The breaker's ticket of an attempt. Dropping it returns the ticket without a verdict.
pub struct BreakerPermit<'a> {
    guard: &'a CallGuard,
    ticket: Option<Ticket>,
    /// Whether this attempt is a probe of a half-open breaker.
    probe: bool,
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.guard.record(ticket, AttemptVerdict::Neither);
        }
    }
}

impl<'a> CallPermit<'a> {
    /// Returns the permit when the attempt has ended. The verdict is still to be recorded.
    pub fn end(self) -> BreakerPermit<'a> {
        self.breaker
    }

    /// Returns the probe of a half-open breaker without a verdict: while it is out, the breaker
    /// refuses all other attempts.
    pub fn give_back_probe(&mut self) {
        if self.breaker.probe
            && let Some(ticket) = self.breaker.ticket.take()
        {
            self.breaker.guard.record(ticket, AttemptVerdict::Neither);
        }
    }

    /// Records the verdict and returns the permit.
    pub fn settle(self, verdict: AttemptVerdict) -> Recorded {
        self.end().settle(verdict)
    }

    /// Whether this attempt is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.breaker.probe
    }
}

/// The start of an attempt that waits for it. It is cancelled if this is dropped before.
struct ReservedStart<'a> {
    guard: &'a CallGuard,
    /// `None`: the attempt has started.
    start: Option<Instant>,
}

impl Drop for ReservedStart<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.guard.lock().cancel_start(start);
        }
    }
}

impl BreakerPermit<'_> {
    /// Records the verdict.
    pub fn settle(mut self, verdict: AttemptVerdict) -> Recorded {
        let ticket = self.ticket.take();
        ticket.map_or(Recorded::Counted, |ticket| self.guard.record(ticket, verdict))
    }

    /// Whether this attempt is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

impl CallGuard {
    /// A guard in its initial state, in real time. `timeout` applies to an attempt if the policy
    /// sets none.
    pub fn new(
        name: ToolName,
        policy: impl Into<Arc<CallPolicy>>,
        timeout: Duration,
        faults: &[InjectedFault],
    ) -> Self {
        let policy = policy.into();
        let permits = policy.bulkhead.map_or(u32::MAX, |bulkhead| bulkhead.max_in_flight);
        let state = Mutex::new(GuardState::new(policy, timeout, faults));
        Self { name, clock: Clock::real(), bulkhead: Bulkhead::new(permits), state }
    }

    /// The same guard by the clock of the run that it belongs to.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Name of the tool.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Current policy, and the timeout of one attempt.
    pub fn policy(&self) -> (Arc<CallPolicy>, Duration) {
        let state = self.lock();
        (Arc::clone(&state.policy), state.timeout)
    }

    /// Faults injected at the moment.
    pub fn faults(&self) -> Arc<[InjectedFault]> {
        Arc::clone(&self.lock().faults)
    }

    /// The faults of one attempt, with the random bits of `draw`; `None`: there are none. Counts the attempt if a fault has
    /// `times`.
    pub fn faults_of(&self, draw: impl FnOnce() -> u64) -> Option<(Arc<[InjectedFault]>, u64)> {
        let mut state = self.lock();
        let faults = Arc::clone(&state.faults);
        if faults.is_empty() {
            return None;
        }
        let draw = draw();
        let counted = faults.iter().filter_map(|fault| match *fault {
            InjectedFault::Errors { percent, status, times: Some(times) }
                if happens_with(f64::from(percent) / 100.0, draw) =>
            {
                let times = times.checked_sub(1).filter(|left| *left > 0)?;
                Some(InjectedFault::Errors { percent, status, times: Some(times) })
            }
            fault => Some(fault),
        });
        let left: Arc<[InjectedFault]> = counted.collect();
        if left.len() < faults.len() {
            let (tool, fault, by) = (&self.name, FaultKind::Errors, Initiator::Schedule);
            state.publish(|| EventKind::FaultRemoved { tool: tool.clone(), fault, by });
        }
        state.faults = left;
        Some((faults, draw))
    }

    /// Publishes every change to this log from now on, until [`CallGuard::unwatch`] with the returned
    /// number. If the breaker is not in its initial state, its state is published at once.
    pub fn watch(&self, bus: &Bus) -> u64 {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.published.stage != initial_stage(&state.policy) {
            bus.publish(SpanId::RUN, state.breaker_event(&self.name, now));
        }
        state.last_watcher += 1;
        let number = state.last_watcher;
        // Most tools have one run only.
        state.watchers.reserve_exact(1);
        state.watchers.push((number, bus.clone()));
        number
    }

    /// Stops publishing to the log with this number.
    pub fn unwatch(&self, number: u64) {
        let mut state = self.lock();
        state.watchers.retain(|(watcher, _)| *watcher != number);
        // The guard of a finished run is kept with its log.
        if state.watchers.is_empty() {
            state.watchers = Vec::new();
        }
    }

    /// State at this moment.
    pub fn snapshot(&self) -> GuardSnapshot {
        let now = self.clock.now();
        let state = self.lock();
        GuardSnapshot {
            tool: self.name.clone(),
            breaker: state.breaker.view(now),
            window: state.breaker.window_counts(now),
            fill: self.bulkhead.fill(),
            counts: self.bulkhead.counts(),
            retries: state.policy.retry_budget.map(|limits| state.budget.usage(now, limits)),
            faults: Arc::clone(&state.faults),
        }
    }

    /// Asks the breaker for permission.
    fn ask_breaker(&self, turn: CallTurn<'_>) -> Result<BreakerPermit<'_>, GuardRefusal> {
        let mut state = self.lock();
        let now = turn.decided_at(self.clock.now(), state.breaker.refuses_until());
        let allowed = state.breaker.allow(now);
        state.publish_change(&self.name, now, BreakerCause::CooldownOver, None);
        match allowed {
            Ok(ticket) => {
                let probe = matches!(state.breaker.state(), BreakerState::HalfOpen { .. });
                Ok(BreakerPermit { guard: self, ticket: Some(ticket), probe })
            }
            Err(BreakerRefusal { retry_in, .. }) => Err(GuardRefusal::CircuitOpen { retry_in }),
        }
    }

    /// The refusal of an attempt by the breaker, if it refuses one now. Takes no permit.
    pub fn refusal(&self, turn: CallTurn<'_>) -> Option<GuardRefusal> {
        let mut state = self.lock();
        let now = turn.decided_at(self.clock.now(), state.breaker.refuses_until());
        if !state.breaker.would_refuse(now) {
            return None;
        }
        let BreakerRefusal { retry_in, .. } = state.breaker.allow(now).err()?;
        Some(GuardRefusal::CircuitOpen { retry_in })
    }

    /// Asks the breaker, then the bulkhead, for one attempt, and keeps to the rate of the policy. Without a free
    /// permit, it waits in the queue as long as the policy and `remaining` allow: `queued` gets that time, and may
    /// return a future to use instead of the guard's timer. If it need not wait, neither `remaining` nor `queued`
    /// is called.
    ///
    /// # Errors
    /// [`GuardRefusal`] if the breaker, the bulkhead or the rate refuses.
    pub async fn enter<'t>(
        &self,
        remaining: impl FnOnce() -> Duration,
        turn: CallTurn<'t>,
        queued: impl FnOnce(Duration) -> Option<BoxFuture<'t, ()>>,
    ) -> Result<CallPermit<'_>, GuardRefusal> {
        let leave = self.ask_breaker(turn)?;
        if let Some(permit) = self.bulkhead.enter_at_once() {
            let now = self.clock.now();
            let start = self.lock().next_start(now);
            if start <= now {
                return Ok(self.permit(leave, permit, Duration::ZERO));
            }
            drop(leave);
            return Box::pin(self.wait_for_start(permit, (now, start), remaining(), turn, queued))
                .await;
        }
        // Boxed because it is rare: otherwise the future of every attempt would be as large.
        Box::pin(self.enter_queue(leave, remaining(), turn, queued)).await
    }

    /// Queues for a permit of the bulkhead.
    async fn enter_queue<'a, 't>(
        &'a self,
        leave: BreakerPermit<'a>,
        remaining: Duration,
        turn: CallTurn<'t>,
        queued: impl FnOnce(Duration) -> Option<BoxFuture<'t, ()>>,
    ) -> Result<CallPermit<'a>, GuardRefusal> {
        let max_wait = self.lock().policy.bulkhead.map_or(Some(Duration::ZERO), |it| it.max_wait);
        let max_wait = max_wait.unwrap_or(remaining).min(remaining);
        let mut since = None;
        let stands = || {
            since = Some(self.clock.now());
            let clock = || Box::pin(self.clock.sleep(max_wait)) as BoxFuture<'_, ()>;
            Some(turn.give_up(queued(max_wait).unwrap_or_else(clock)))
        };
        let permit = match self.bulkhead.enter_with(Some(max_wait), stands).await {
            Ok(permit) => permit,
            Err(BulkheadFull(_)) => return Err(GuardRefusal::BulkheadFull),
        };
        let now = self.clock.now();
        let start = self.lock().next_start(now);
        let Some(since) = since else {
            if start <= now {
                return Ok(self.permit(leave, permit, Duration::ZERO));
            }
            drop(leave);
            return self.wait_for_start(permit, (now, start), remaining, turn, |_| None).await;
        };
        turn.wait().await;
        // The breaker may have changed while this attempt was queued: ask it again.
        drop(leave);
        let remaining = remaining.saturating_sub(self.clock.since(since));
        self.wait_for_start(permit, (since, start), remaining, turn, |_| None).await
    }

    /// Waits for the reserved start of an attempt, which has waited since the first of these times. Asks the breaker
    /// again, which may have changed meanwhile. A replayed run does not wait.
    async fn wait_for_start<'a, 't>(
        &'a self,
        permit: Permit,
        (since, start): (Instant, Instant),
        remaining: Duration,
        turn: CallTurn<'t>,
        queued: impl FnOnce(Duration) -> Option<BoxFuture<'t, ()>>,
    ) -> Result<CallPermit<'a>, GuardRefusal> {
        let mut reserved = ReservedStart { guard: self, start: Some(start) };
        let wait = start.saturating_duration_since(self.clock.now());
        if !wait.is_zero() {
            let max_wait = self.lock().policy.bulkhead.and_then(|it| it.max_wait);
            let is_too_long = wait > max_wait.unwrap_or(remaining).min(remaining);
            if turn.is_refused_by_rate().unwrap_or(is_too_long) {
                return Err(GuardRefusal::RateReached { retry_in: wait });
            }
            let clock = || Box::pin(self.clock.sleep(wait)) as BoxFuture<'_, ()>;
            turn.wait_or(queued(wait).unwrap_or_else(clock)).await;
        }
        let leave = self.ask_breaker(turn)?;
        reserved.start = None;
        Ok(self.permit(leave, permit, self.clock.since(since)))
    }

    fn permit<'a>(
        &self,
        leave: BreakerPermit<'a>,
        permit: Permit,
        waited: Duration,
    ) -> CallPermit<'a> {
        self.lock().budget.count_attempt(self.clock.now());
        CallPermit { breaker: leave, _permit: permit, waited }
    }

    fn record(&self, ticket: Ticket, verdict: AttemptVerdict) -> Recorded {
        let now = self.clock.now();
        let mut state = self.lock();
        let was = state.breaker.state();
        let recorded = state.breaker.record(ticket, verdict, now);
        let by_state = match (verdict.is_failure(), was) {
            (Some(true), BreakerState::HalfOpen { .. }) => BreakerCause::ProbeFailed,
            (Some(true), BreakerState::Open { .. }) => BreakerCause::LateFailure,
            (Some(true), _) => BreakerCause::Failures,
            (_, BreakerState::HalfOpen { .. }) if recorded == Recorded::Opened => {
                BreakerCause::ProbeSlow
            }
            (_, BreakerState::HalfOpen { .. }) => BreakerCause::ProbeAnswered,
            (Some(false), BreakerState::Open { .. }) => BreakerCause::LateSuccess,
            _ => BreakerCause::CooldownOver,
        };
        let by_window = state.breaker.opened_by_window();
        let by_window = by_window.filter(|_| recorded == Recorded::Opened);
        let why = by_window.map_or(by_state, |(cause, _)| cause);
        state.publish_change(&self.name, now, why, None);
        recorded
    }

    /// Counts one more retry if the budget allows it.
    ///
    /// # Errors
    /// [`RetryLimit::RetryBudget`] if it does not.
    pub fn take_retry(&self) -> Result<(), RetryLimit> {
        let mut state = self.lock();
        let Some(limits) = state.policy.retry_budget else { return Ok(()) };
        let now = self.clock.now();
        if state.budget.take_retry(now, limits) {
            return Ok(());
        }
        let (used, allowed) = state.budget.usage(now, limits);
        Err(RetryLimit::RetryBudget { used, allowed })
    }

    /// Refuses all attempts for this time, as the tool requested (`Retry-After`).
    pub fn block_for(&self, wait: Duration) {
        let now = self.clock.now();
        let mut state = self.lock();
        if let Some(until) = now.checked_add(wait) {
            state.breaker.set_retry_after(until);
        }
        state.publish_change(&self.name, now, BreakerCause::RetryAfter, None);
    }

    /// Caches a good value for safe mode, if the policy has a cache.
    pub fn cache_good(&self, key: &str, value: &Arc<Value>) {
        let mut state = self.lock();
        if state.policy.safe_mode.cache_ttl.is_some() {
            state.last_good.insert(key, Arc::clone(value), self.clock.now());
        }
    }

    /// The cached value for these arguments and its age, if it is within the time to live.
    pub fn last_good(&self, key: &str) -> Option<(Arc<Value>, Duration)> {
        let state = self.lock();
        let ttl = state.policy.safe_mode.cache_ttl?;
        state.last_good.get(key, self.clock.now()).filter(|(_, age)| *age <= ttl)
    }

    /// Whether the breaker refuses everything for this time: held manually, or open for longer.
    pub fn is_blocked_for(&self, time: Duration) -> bool {
        let state = self.lock();
        let until = self.clock.now().checked_add(time);
        match state.published.stage {
            BreakerStage::Held => true,
            BreakerStage::Open => state.published.until.is_some_and(|opens| Some(opens) > until),
            _ => false,
        }
    }

    /// Overrides the breaker manually, if the policy has one.
    pub fn override_breaker(&self, action: BreakerOverride, by: Initiator) {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.policy.breaker.is_none() {
            return;
        }
        match action {
            BreakerOverride::Trip => state.breaker.trip(now),
            BreakerOverride::Hold => state.breaker.hold_open(now),
            BreakerOverride::Disable => state.breaker.disable(),
            BreakerOverride::Reset => state.breaker.reset(),
        }
        state.publish_change(&self.name, now, BreakerCause::Manual, Some(by));
    }

    /// Changes a limit; takes effect on the next attempt, and counts are kept. Values are clamped
    /// to what a scenario file allows. A limit of a breaker, retry budget or queue that the policy
    /// does not have is ignored.
    pub fn change(&self, change: LimitChange, by: Initiator) {
        let mut state = self.lock();
        let mut policy = (*state.policy).clone();
        let Some(change) = change::apply_change(change, &mut policy) else { return };
        if let LimitChange::TimeoutMs(limit) = change {
            state.timeout = Duration::from_millis(limit);
        }
        if let Some(limits) = policy.breaker {
            state.breaker.set_limits(limits);
        }
        if let Some(limits) = policy.bulkhead {
            self.bulkhead.resize(limits.max_in_flight);
        }
        state.policy = Arc::new(policy);
        let limits = limits_of(&state.policy, state.timeout);
        let tool = &self.name;
        state.publish(|| EventKind::LimitsChanged {
            tool: tool.clone(),
            limits: Box::new(limits.clone()),
            change,
            by,
        });
        state.publish_change(&self.name, self.clock.now(), BreakerCause::Manual, Some(by));
    }

    /// The limits as events carry them.
    pub fn limits(&self) -> ToolLimits {
        let state = self.lock();
        limits_of(&state.policy, state.timeout)
    }

    /// Injects a fault; replaces one of the same kind.
    pub fn inject(&self, fault: InjectedFault, by: Initiator) {
        let Some(fault) = change::clamp_fault(fault) else { return };
        let mut state = self.lock();
        let others = state.faults.iter().filter(|had| had.kind() != fault.kind());
        state.faults = others.copied().chain([fault]).collect();
        let tool = &self.name;
        state.publish(|| EventKind::FaultInjected { tool: tool.clone(), fault, by });
    }

    /// Removes an injected fault.
    pub fn remove_fault(&self, kind: FaultKind, by: Initiator) {
        let mut state = self.lock();
        if state.faults.iter().all(|had| had.kind() != kind) {
            return;
        }
        state.faults = state.faults.iter().filter(|had| had.kind() != kind).copied().collect();
        let tool = &self.name;
        state.publish(|| EventKind::FaultRemoved { tool: tool.clone(), fault: kind, by });
    }
}

pub(crate) struct GuardState {
    pub(crate) policy: Arc<CallPolicy>,
    pub(crate) timeout: Duration,
    pub(crate) breaker: Breaker,
    pub(crate) budget: RetryBudget,
    /// The starts of the last minute, and those that attempts wait for; empty without a rate.
    starts: VecDeque<Instant>,
    pub(super) last_good: LastGood,
    pub(crate) faults: Arc<[InjectedFault]>,
    /// Last published state of the breaker.
    pub(crate) published: PublishedState,
    watchers: Vec<(u64, Bus)>,
    last_watcher: u64,
}

/// State of the breaker as last published to the logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublishedState {
    pub(crate) stage: BreakerStage,
    /// Time when the breaker allows a call again, if time decides that.
    pub(crate) until: Option<Instant>,
    pub(crate) why: BreakerCause,
    pub(crate) by: Option<Initiator>,
    /// The counts of the breaker's window when it opened the breaker.
    pub(crate) counted: Option<WindowCounts>,
}

impl GuardState {
    /// The state at the start. `timeout` applies to an attempt if the policy sets none.
    pub(crate) fn new(
        policy: Arc<CallPolicy>,
        timeout: Duration,
        faults: &[InjectedFault],
    ) -> Self {
        let mut breaker = Breaker::new(policy.breaker.unwrap_or_default());
        if policy.breaker.is_none() {
            breaker.disable();
        }
        let (stage, until) = breaker_stage(&breaker, Instant::now());
        let why = BreakerCause::CooldownOver;
        let published = PublishedState { stage, until, why, by: None, counted: None };
        Self {
            timeout: policy.timeout.unwrap_or(timeout),
            policy,
            breaker,
            budget: RetryBudget::default(),
            starts: VecDeque::new(),
            last_good: LastGood::default(),
            faults: faults.into(),
            published,
            watchers: Vec::new(),
            last_watcher: 0,
        }
    }

    /// The earliest start of the next attempt. It is reserved.
    fn next_start(&mut self, now: Instant) -> Instant {
        let Some(rate) = self.policy.rate else { return now };
        let minute_ago = now.checked_sub(MINUTE);
        while self.starts.front().is_some_and(|start| Some(*start) <= minute_ago) {
            self.starts.pop_front();
        }
        let before = self.starts.len().checked_sub(rate.max(1) as usize);
        let earliest = before.and_then(|at| self.starts.get(at)).map_or(now, |it| *it + MINUTE);
        let start = earliest.max(now);
        // A cancelled start may leave room before a later one.
        let place = self.starts.partition_point(|known| *known <= start);
        self.starts.insert(place, start);
        start
    }

    /// Cancels a reserved start.
    fn cancel_start(&mut self, start: Instant) {
        if let Some(at) = self.starts.iter().rposition(|known| *known == start) {
            self.starts.remove(at);
        }
    }

    pub(crate) fn publish(&self, fact: impl Fn() -> EventKind) {
        for (_, bus) in &self.watchers {
            bus.publish(SpanId::RUN, fact());
        }
    }

    /// Publishes the breaker's state if it differs from the published one.
    fn publish_change(
        &mut self,
        tool: &ToolName,
        now: Instant,
        why: BreakerCause,
        by: Option<Initiator>,
    ) {
        let (stage, until) = breaker_stage(&self.breaker, now);
        if (stage, until) == (self.published.stage, self.published.until) {
            return;
        }
        let by_window = self.breaker.opened_by_window().filter(|(cause, _)| *cause == why);
        let counted = by_window.map(|(_, counts)| counts);
        self.published = PublishedState { stage, until, why, by, counted };
        self.publish(|| self.breaker_event(tool, now));
    }

    /// The published state as an event.
    fn breaker_event(&self, tool: &ToolName, now: Instant) -> EventKind {
        let PublishedState { stage, until, why, by, counted } = self.published;
        let open_for_ms = until.map(|until| millis(until.saturating_duration_since(now)));
        let tool = tool.clone();
        EventKind::BreakerChanged { tool, to: stage, cause: why, open_for_ms, by, counted }
    }
}

/// State of a breaker, and when it ends if time decides that: the end of `Retry-After` or of the
/// open time, whichever is later.
fn breaker_stage(breaker: &Breaker, now: Instant) -> (BreakerStage, Option<Instant>) {
    let gate = breaker.retry_after_end(now);
    match breaker.state() {
        BreakerState::Open { until: None, .. } => (BreakerStage::Held, None),
        BreakerState::Open { until, .. } => (BreakerStage::Open, until.max(gate)),
        _ if gate.is_some() => (BreakerStage::Open, gate),
        BreakerState::Closed { .. } => (BreakerStage::Closed, None),
        BreakerState::HalfOpen { .. } => (BreakerStage::HalfOpen, None),
        BreakerState::Disabled => (BreakerStage::Disabled, None),
    }
}

/// Initial state of a tool's breaker.
fn initial_stage(policy: &CallPolicy) -> BreakerStage {
    if policy.breaker.is_some() { BreakerStage::Closed } else { BreakerStage::Disabled }
}

/// A policy as events carry it.
pub fn limits_of(policy: &CallPolicy, timeout: Duration) -> ToolLimits {
    let safe = &policy.safe_mode;
    ToolLimits {
        timeout_ms: millis(timeout),
        max_attempts: policy.max_attempts,
        backoff_ms: policy.backoff.iter().copied().map(millis).collect(),
        jitter: policy.jitter,
        breaker: policy.breaker,
        bulkhead: policy.bulkhead,
        rate: policy.rate,
        retry_budget: policy.retry_budget,
        safe_mode: safe.enabled.then(|| SafeModeHead {
            allow_partial: safe.allow_partial,
            cache_ttl_ms: safe.cache_ttl.map(millis),
            fallback: safe.fallback.is_some(),
        }),
    }
}

/// Why an attempt was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardRefusal {
    /// The breaker is open.
    CircuitOpen {
        /// Time until a new attempt makes sense, if time decides that.
        retry_in: Option<Duration>,
    },
    BulkheadFull,
    /// Too many attempts start in a minute.
    RateReached {
        retry_in: Duration,
    },
}

impl GuardRefusal {
    /// The stop reason of a run that cannot continue without this tool.
    pub fn stop_reason(self, tool: &ToolName) -> StopReason {
        match self {
            Self::CircuitOpen { .. } => StopReason::CircuitOpen(tool.clone()),
            Self::BulkheadFull => StopReason::BulkheadFull(tool.clone()),
            Self::RateReached { .. } => StopReason::RateReached(tool.clone()),
        }
    }

    /// Time until a new attempt makes sense, if time decides that.
    pub fn retry_in(self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_in } => retry_in,
            Self::BulkheadFull => None,
            Self::RateReached { retry_in } => Some(retry_in),
        }
    }
}
