//! The guard of one tool: its breaker, bulkhead, retry budget, cache of good values and injected
//! faults, with their limits. It belongs to one run, or is shared by all runs of a session.
//!
//! Every state change of the breaker is published to the watching runs under the lock that made it,
//! so their logs have the changes in the order in which they happened.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::breaker::{Breaker, BreakerState, BreakerView, Recorded, Refused, Ticket, Verdict};
use super::budget::RetryBudget;
use super::bulkhead::{Bulkhead, Counts, Fill, Full, Permit};
use super::change;
use super::last_good::LastGood;
use crate::bus::Bus;
use crate::event::command::BreakerHand;
use crate::event::id::millis;
use crate::event::kind::{
    BreakerHead, BreakerStage, BreakerWhy, BulkheadHead, By, LimitChange, RetryLimit, SafeModeHead,
    ToolLimits,
};
use crate::event::{EventKind, SpanId};
use crate::scenario::model::CallPolicy;
use crate::scenario::name::ToolName;
use crate::scenario::tool::{Fault, FaultKind};

/// Guards one tool.
pub struct Guard {
    name: ToolName,
    bulkhead: Bulkhead,
    state: Mutex<State>,
}

struct State {
    policy: Arc<CallPolicy>,
    timeout: Duration,
    breaker: Breaker,
    budget: RetryBudget,
    last_good: LastGood,
    faults: Arc<[Fault]>,
    /// Last published state of the breaker.
    told: Told,
    watchers: Vec<(u64, Bus)>,
    watched: u64,
}

/// State of the breaker as last published to the logs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Told {
    stage: BreakerStage,
    /// Time when the breaker allows a call again, if time decides that.
    until: Option<Instant>,
    why: BreakerWhy,
    by: Option<By>,
}

/// State of a guard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardSnapshot {
    /// Name of the tool.
    pub tool: ToolName,
    /// State of the breaker.
    pub breaker: BreakerView,
    /// Load of the bulkhead.
    pub fill: Fill,
    /// Counters of the bulkhead.
    pub counts: Counts,
    /// Retries in the window and the allowed number; `None` without a budget.
    pub retries: Option<(u64, u64)>,
    /// Faults injected at the moment.
    pub faults: Arc<[Fault]>,
}

/// Why an attempt was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The breaker is open.
    CircuitOpen {
        /// Time until a new attempt makes sense, if time decides that.
        retry_in: Option<Duration>,
    },
    /// The bulkhead is full.
    BulkheadFull,
}

/// Permission for one attempt: the breaker's ticket and the bulkhead's permit. Dropping it returns
/// both without a verdict.
pub struct Pass<'a> {
    leave: Leave<'a>,
    _permit: Permit,
    /// Time spent in the bulkhead's queue.
    pub waited: Duration,
}

/// The breaker's ticket of an attempt. Dropping it returns the ticket without a verdict.
pub struct Leave<'a> {
    guard: &'a Guard,
    ticket: Option<Ticket>,
    /// Whether this attempt is a probe of a half-open breaker.
    probe: bool,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.guard.record(ticket, Verdict::Neither);
        }
    }
}

impl<'a> Pass<'a> {
    /// Returns the permit when the attempt has ended. The verdict is still to be recorded.
    pub fn end(self) -> Leave<'a> {
        self.leave
    }

    /// Records the verdict and returns the permit.
    pub fn settle(self, verdict: Verdict) -> Recorded {
        self.end().settle(verdict)
    }

    /// Whether this attempt is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.leave.probe
    }
}

impl Leave<'_> {
    /// Records the verdict.
    pub fn settle(mut self, verdict: Verdict) -> Recorded {
        let ticket = self.ticket.take();
        ticket.map_or(Recorded::Counted, |ticket| self.guard.record(ticket, verdict))
    }

    /// Whether this attempt is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

impl Guard {
    /// A guard in its initial state. `timeout` applies to an attempt if the policy sets none.
    pub fn new(name: ToolName, policy: CallPolicy, timeout: Duration, faults: &[Fault]) -> Self {
        let mut breaker = Breaker::new(policy.breaker.unwrap_or_default());
        if policy.breaker.is_none() {
            breaker.disable();
        }
        let permits = policy.bulkhead.map_or(u32::MAX, |bulkhead| bulkhead.max_in_flight);
        let (stage, until) = stands(&breaker, Instant::now());
        let told = Told { stage, until, why: BreakerWhy::Cooled, by: None };
        Self {
            name,
            bulkhead: Bulkhead::new(permits),
            state: Mutex::new(State {
                timeout: policy.timeout.unwrap_or(timeout),
                policy: Arc::new(policy),
                breaker,
                budget: RetryBudget::default(),
                last_good: LastGood::default(),
                faults: faults.into(),
                told,
                watchers: Vec::new(),
                watched: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
    pub fn faults(&self) -> Arc<[Fault]> {
        Arc::clone(&self.lock().faults)
    }

    /// Publishes every change to this log from now on, until [`Guard::unwatch`] with the returned
    /// number. If the breaker is not in its initial state, its state is published at once.
    pub fn watch(&self, bus: &Bus) -> u64 {
        let now = Instant::now();
        let mut state = self.lock();
        if state.told.stage != at_rest(&state.policy) {
            bus.publish(SpanId::RUN, state.fact(&self.name, now));
        }
        state.watched += 1;
        let number = state.watched;
        // Most tools have one run only.
        state.watchers.reserve_exact(1);
        state.watchers.push((number, bus.clone()));
        number
    }

    /// Stops publishing to the log with this number.
    pub fn unwatch(&self, number: u64) {
        self.lock().watchers.retain(|(watcher, _)| *watcher != number);
    }

    /// State at this moment.
    pub fn snapshot(&self) -> GuardSnapshot {
        let now = Instant::now();
        let state = self.lock();
        GuardSnapshot {
            tool: self.name.clone(),
            breaker: state.breaker.view(now),
            fill: self.bulkhead.fill(),
            counts: self.bulkhead.counts(),
            retries: state.policy.retry_budget.map(|limits| state.budget.used(now, limits)),
            faults: Arc::clone(&state.faults),
        }
    }

    /// Asks the breaker for permission.
    fn leave(&self) -> Result<Leave<'_>, NotNow> {
        let now = Instant::now();
        let mut state = self.lock();
        let allowed = state.breaker.allow(now);
        state.tell_moves(&self.name, now, BreakerWhy::Cooled, None);
        match allowed {
            Ok(ticket) => {
                let probe = matches!(state.breaker.state(), BreakerState::HalfOpen { .. });
                Ok(Leave { guard: self, ticket: Some(ticket), probe })
            }
            Err(Refused { retry_in, .. }) => Err(NotNow::CircuitOpen { retry_in }),
        }
    }

    /// Asks the breaker, then the bulkhead, for one attempt. If all permits are in use, the attempt
    /// is queued as long as the policy and `remaining` allow; `queued` is called with that time
    /// first and may return a clock of its own.
    ///
    /// # Errors
    /// [`NotNow`] if the breaker or the bulkhead refuses.
    pub async fn enter<'t>(
        &self,
        remaining: Duration,
        queued: impl FnOnce(Duration) -> Option<BoxFuture<'t, ()>>,
    ) -> Result<Pass<'_>, NotNow> {
        let leave = self.leave()?;
        let max_wait = self.lock().policy.bulkhead.map_or(Some(Duration::ZERO), |it| it.max_wait);
        let max_wait = max_wait.unwrap_or(remaining).min(remaining);
        let mut since = None;
        let stands = || {
            since = Some(Instant::now());
            queued(max_wait)
        };
        let permit = match self.bulkhead.enter_telling(Some(max_wait), stands).await {
            Ok(permit) => permit,
            Err(Full(_)) => return Err(NotNow::BulkheadFull),
        };
        let Some(since) = since else { return Ok(self.pass(leave, permit, Duration::ZERO)) };
        // The breaker may have changed while this attempt was queued: ask it again.
        drop(leave);
        Ok(self.pass(self.leave()?, permit, since.elapsed()))
    }

    fn pass<'a>(&self, leave: Leave<'a>, permit: Permit, waited: Duration) -> Pass<'a> {
        self.lock().budget.attempt(Instant::now());
        Pass { leave, _permit: permit, waited }
    }

    fn record(&self, ticket: Ticket, verdict: Verdict) -> Recorded {
        let now = Instant::now();
        let mut state = self.lock();
        let was = state.breaker.state();
        let recorded = state.breaker.record(ticket, verdict, now);
        let why = match (verdict, was) {
            (Verdict::Failure, BreakerState::HalfOpen { .. }) => BreakerWhy::ProbeFailed,
            (Verdict::Failure, BreakerState::Open { .. }) => BreakerWhy::LateFailure,
            (Verdict::Failure, _) => BreakerWhy::Failures,
            (_, BreakerState::HalfOpen { .. }) => BreakerWhy::ProbeAnswered,
            (Verdict::Success, BreakerState::Open { .. }) => BreakerWhy::LateAnswer,
            _ => BreakerWhy::Cooled,
        };
        state.tell_moves(&self.name, now, why, None);
        recorded
    }

    /// Counts one more retry if the budget allows it.
    ///
    /// # Errors
    /// [`RetryLimit::RetryBudget`] if it does not.
    pub fn take_retry(&self) -> Result<(), RetryLimit> {
        let mut state = self.lock();
        let Some(limits) = state.policy.retry_budget else { return Ok(()) };
        let now = Instant::now();
        if state.budget.take(now, limits) {
            return Ok(());
        }
        let (used, allowed) = state.budget.used(now, limits);
        Err(RetryLimit::RetryBudget { used, allowed })
    }

    /// Refuses all attempts for this time, as the tool requested (`Retry-After`).
    pub fn gate_for(&self, wait: Duration) {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some(until) = now.checked_add(wait) {
            state.breaker.gate_until(until);
        }
        state.tell_moves(&self.name, now, BreakerWhy::RetryAfter, None);
    }

    /// Caches a good value for safe mode, if the policy has a cache.
    pub fn keep_good(&self, key: &str, value: &Arc<Value>) {
        let mut state = self.lock();
        if state.policy.safe_mode.cache_ttl.is_some() {
            state.last_good.keep(key, Arc::clone(value), Instant::now());
        }
    }

    /// The cached value for these arguments and its age, if it is within the time to live.
    pub fn last_good(&self, key: &str) -> Option<(Arc<Value>, Duration)> {
        let state = self.lock();
        let ttl = state.policy.safe_mode.cache_ttl?;
        state.last_good.get(key, Instant::now()).filter(|(_, age)| *age <= ttl)
    }

    /// Whether the breaker refuses everything for this time: held manually, or open for longer.
    pub fn is_shut_for(&self, time: Duration) -> bool {
        let state = self.lock();
        let until = Instant::now().checked_add(time);
        match state.told.stage {
            BreakerStage::Held => true,
            BreakerStage::Open => state.told.until.is_some_and(|opens| Some(opens) > until),
            _ => false,
        }
    }

    /// Overrides the breaker manually, if the policy has one.
    pub fn by_hand(&self, hand: BreakerHand, by: By) {
        let now = Instant::now();
        let mut state = self.lock();
        if state.policy.breaker.is_none() {
            return;
        }
        match hand {
            BreakerHand::Trip => state.breaker.trip(now),
            BreakerHand::Hold => state.breaker.hold_open(now),
            BreakerHand::Disable => state.breaker.disable(),
            BreakerHand::Reset => state.breaker.reset(),
        }
        state.tell_moves(&self.name, now, BreakerWhy::ByHand, Some(by));
    }

    /// Changes a limit; takes effect on the next attempt, and counts are kept. Values are clamped
    /// to what a scenario file allows. A limit of a breaker, retry budget or queue that the policy
    /// does not have is ignored.
    pub fn change(&self, change: LimitChange, by: By) {
        let mut state = self.lock();
        let mut policy = (*state.policy).clone();
        let Some(change) = change::apply(change, &mut policy) else { return };
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
        let limits = limits(&state.policy, state.timeout);
        let tool = &self.name;
        state.tell(|| EventKind::LimitsChanged {
            tool: tool.clone(),
            limits: Box::new(limits.clone()),
            change,
            by,
        });
        state.tell_moves(&self.name, Instant::now(), BreakerWhy::ByHand, Some(by));
    }

    /// The limits as events carry them.
    pub fn limits(&self) -> ToolLimits {
        let state = self.lock();
        limits(&state.policy, state.timeout)
    }

    /// Injects a fault; replaces one of the same kind.
    pub fn inject(&self, fault: Fault, by: By) {
        let Some(fault) = change::within(fault) else { return };
        let mut state = self.lock();
        let others = state.faults.iter().filter(|had| had.kind() != fault.kind());
        state.faults = others.copied().chain([fault]).collect();
        let tool = &self.name;
        state.tell(|| EventKind::FaultInjected { tool: tool.clone(), fault, by });
    }

    /// Removes an injected fault.
    pub fn heal(&self, kind: FaultKind, by: By) {
        let mut state = self.lock();
        if state.faults.iter().all(|had| had.kind() != kind) {
            return;
        }
        state.faults = state.faults.iter().filter(|had| had.kind() != kind).copied().collect();
        let tool = &self.name;
        state.tell(|| EventKind::FaultHealed { tool: tool.clone(), fault: kind, by });
    }
}

impl State {
    fn tell(&self, fact: impl Fn() -> EventKind) {
        for (_, bus) in &self.watchers {
            bus.publish(SpanId::RUN, fact());
        }
    }

    /// Publishes the breaker's state if it differs from the published one.
    fn tell_moves(&mut self, tool: &ToolName, now: Instant, why: BreakerWhy, by: Option<By>) {
        let (stage, until) = stands(&self.breaker, now);
        if (stage, until) == (self.told.stage, self.told.until) {
            return;
        }
        self.told = Told { stage, until, why, by };
        self.tell(|| self.fact(tool, now));
    }

    /// The published state as an event.
    fn fact(&self, tool: &ToolName, now: Instant) -> EventKind {
        let Told { stage, until, why, by } = self.told;
        let open_for_ms = until.map(|until| millis(until.saturating_duration_since(now)));
        EventKind::BreakerChanged { tool: tool.clone(), to: stage, why, open_for_ms, by }
    }
}

/// State of a breaker, and when it ends if time decides that: the end of `Retry-After` or of the
/// open time, whichever is later.
fn stands(breaker: &Breaker, now: Instant) -> (BreakerStage, Option<Instant>) {
    let gate = breaker.gate_until_at(now);
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
fn at_rest(policy: &CallPolicy) -> BreakerStage {
    if policy.breaker.is_some() { BreakerStage::Closed } else { BreakerStage::Disabled }
}

/// A policy as events carry it.
pub fn limits(policy: &CallPolicy, timeout: Duration) -> ToolLimits {
    let safe = &policy.safe_mode;
    ToolLimits {
        timeout_ms: millis(timeout),
        max_attempts: policy.max_attempts,
        backoff_ms: policy.backoff.iter().copied().map(millis).collect(),
        jitter: policy.jitter,
        breaker: policy.breaker.map(|it| BreakerHead {
            fail_threshold: it.fail_threshold,
            open_for_ms: millis(it.open_for),
            probe_permits: it.probe_permits,
            mode: it.mode,
            counts: it.counts,
        }),
        bulkhead: policy.bulkhead.map(|it| BulkheadHead {
            max_in_flight: it.max_in_flight,
            max_wait_ms: it.max_wait.map(millis),
        }),
        retry_budget: policy.retry_budget,
        safe_mode: safe.enabled.then(|| SafeModeHead {
            allow_partial: safe.allow_partial,
            cache_ttl_ms: safe.cache_ttl.map(millis),
            fallback: safe.fallback.is_some(),
        }),
    }
}
