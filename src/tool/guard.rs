//! What stands before one tool: its breaker, its bulkhead, its retry budget, its last good values
//! and the faults that are injected into it, with the limits they keep to. One run has it for
//! itself, or all runs of a session share it.
//!
//! Every move of the breaker is told to the runs that watch, under the lock that made it, so their
//! logs have the moves in the order in which they happened.

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

/// What stands before one tool.
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
    /// How the watching logs know the breaker.
    told: Told,
    watchers: Vec<(u64, Bus)>,
    watched: u64,
}

/// What the logs were told of the breaker.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Told {
    stage: BreakerStage,
    /// When it lets a call through again, where a clock decides that.
    until: Option<Instant>,
    why: BreakerWhy,
    by: Option<By>,
}

/// Everything of a guard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardSnapshot {
    /// Its tool.
    pub tool: ToolName,
    /// The breaker.
    pub breaker: BreakerView,
    /// How full the bulkhead is.
    pub fill: Fill,
    /// What became of all that asked for a permit.
    pub counts: Counts,
    /// Retries in the window, and how many may be; `None` without a budget.
    pub retries: Option<(u64, u64)>,
    /// Faults that are injected now.
    pub faults: Arc<[Fault]>,
}

/// Why an attempt was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The breaker is open.
    CircuitOpen {
        /// When it is worth asking again, where a clock decides that.
        retry_in: Option<Duration>,
    },
    /// The bulkhead is full.
    BulkheadFull,
}

/// Leave for one attempt: the breaker's ticket and the bulkhead's permit. Dropped, both go back
/// unrecorded.
pub struct Pass<'a> {
    leave: Leave<'a>,
    _permit: Permit,
    /// How long it stood in line.
    pub waited: Duration,
}

/// The breaker's ticket of an attempt. It goes back unrecorded when it is dropped.
pub struct Leave<'a> {
    guard: &'a Guard,
    ticket: Option<Ticket>,
    /// A half-open breaker lets it through to find out.
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
    /// The attempt has ended: gives its permit back. What is left is its verdict.
    pub fn end(self) -> Leave<'a> {
        self.leave
    }

    /// Gives the attempt's verdict, and the permit back.
    pub fn settle(self, verdict: Verdict) -> Recorded {
        self.end().settle(verdict)
    }

    /// Whether a half-open breaker lets it through to find out.
    pub fn is_probe(&self) -> bool {
        self.leave.probe
    }
}

impl Leave<'_> {
    /// Gives the attempt's verdict.
    pub fn settle(mut self, verdict: Verdict) -> Recorded {
        let ticket = self.ticket.take();
        ticket.map_or(Recorded::Counted, |ticket| self.guard.record(ticket, verdict))
    }

    /// Whether a half-open breaker lets it through to find out.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

impl Guard {
    /// A guard at rest. `timeout` bounds an attempt where the policy sets none.
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

    /// Its tool.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The policy and the bound of one attempt, as of now.
    pub fn policy(&self) -> (Arc<CallPolicy>, Duration) {
        let state = self.lock();
        (Arc::clone(&state.policy), state.timeout)
    }

    /// The faults that are injected now.
    pub fn faults(&self) -> Arc<[Fault]> {
        Arc::clone(&self.lock().faults)
    }

    /// A log that is told of every move from now on, until [`Guard::unwatch`] with the number; and
    /// at once how the breaker stands, where that is not how one at rest does.
    pub fn watch(&self, bus: &Bus) -> u64 {
        let now = Instant::now();
        let mut state = self.lock();
        if state.told.stage != at_rest(&state.policy) {
            bus.publish(SpanId::RUN, state.fact(&self.name, now));
        }
        state.watched += 1;
        let number = state.watched;
        // Most tools are one run's own.
        state.watchers.reserve_exact(1);
        state.watchers.push((number, bus.clone()));
        number
    }

    /// The log of this number is told no more.
    pub fn unwatch(&self, number: u64) {
        self.lock().watchers.retain(|(watcher, _)| *watcher != number);
    }

    /// Everything at this moment.
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

    /// Asks the breaker.
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

    /// Asks the breaker, then the bulkhead, for one attempt. Where all permits are out it stands in
    /// line as long as the policy and `remaining` let it, and calls `queued` with that time first: it may
    /// give a clock of its own.
    ///
    /// # Errors
    /// [`NotNow`] when the tool must not be asked now.
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
        // The breaker may have moved while this one stood in line: it is asked again.
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

    /// Notes one more retry where it is within the budget.
    ///
    /// # Errors
    /// [`RetryLimit::RetryBudget`] where it is not.
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

    /// Nobody asks the tool before so much time is over: it said so itself (`Retry-After`).
    pub fn gate_for(&self, wait: Duration) {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some(until) = now.checked_add(wait) {
            state.breaker.gate_until(until);
        }
        state.tell_moves(&self.name, now, BreakerWhy::RetryAfter, None);
    }

    /// Keeps a good value for when the tool cannot be had, where the policy keeps any.
    pub fn keep_good(&self, key: &str, value: &Arc<Value>) {
        let mut state = self.lock();
        if state.policy.safe_mode.cache_ttl.is_some() {
            state.last_good.keep(key, Arc::clone(value), Instant::now());
        }
    }

    /// The last good value for these arguments with its age, where it is young enough.
    pub fn last_good(&self, key: &str) -> Option<(Arc<Value>, Duration)> {
        let state = self.lock();
        let ttl = state.policy.safe_mode.cache_ttl?;
        state.last_good.get(key, Instant::now()).filter(|(_, age)| *age <= ttl)
    }

    /// Whether nobody gets through for so long: held by hand, or open until later.
    pub fn is_shut_for(&self, time: Duration) -> bool {
        let state = self.lock();
        let until = Instant::now().checked_add(time);
        match state.told.stage {
            BreakerStage::Held => true,
            BreakerStage::Open => state.told.until.is_some_and(|opens| Some(opens) > until),
            _ => false,
        }
    }

    /// Moves the breaker by hand, where the policy has one.
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

    /// Changes a limit; it takes effect on the next attempt, and counts are kept. Amounts are kept
    /// within what a file may say; a limit of a breaker, a retry budget or a line that the policy
    /// does not have is not changed.
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

    /// The limits as facts carry them.
    pub fn limits(&self) -> ToolLimits {
        let state = self.lock();
        limits(&state.policy, state.timeout)
    }

    /// Injects a fault, in place of one of its kind.
    pub fn inject(&self, fault: Fault, by: By) {
        let Some(fault) = change::within(fault) else { return };
        let mut state = self.lock();
        let others = state.faults.iter().filter(|had| had.kind() != fault.kind());
        state.faults = others.copied().chain([fault]).collect();
        let tool = &self.name;
        state.tell(|| EventKind::FaultInjected { tool: tool.clone(), fault, by });
    }

    /// Takes an injected fault away.
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

    /// Tells the logs how the breaker stands, where they know it otherwise.
    fn tell_moves(&mut self, tool: &ToolName, now: Instant, why: BreakerWhy, by: Option<By>) {
        let (stage, until) = stands(&self.breaker, now);
        if (stage, until) == (self.told.stage, self.told.until) {
            return;
        }
        self.told = Told { stage, until, why, by };
        self.tell(|| self.fact(tool, now));
    }

    /// How the breaker stands, as a fact.
    fn fact(&self, tool: &ToolName, now: Instant) -> EventKind {
        let Told { stage, until, why, by } = self.told;
        let open_for_ms = until.map(|until| millis(until.saturating_duration_since(now)));
        EventKind::BreakerChanged { tool: tool.clone(), to: stage, why, open_for_ms, by }
    }
}

/// How a breaker stands, and until when where a clock decides that: a gate that `Retry-After` shut,
/// or its open time, whichever is later.
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

/// How the breaker of a tool stands that was not asked yet.
fn at_rest(policy: &CallPolicy) -> BreakerStage {
    if policy.breaker.is_some() { BreakerStage::Closed } else { BreakerStage::Disabled }
}

/// A policy as facts carry it.
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
