//! What a guard keeps under its lock: limits, breaker, budget, faults, and the logs that watch it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::name::ToolName;
use crate::bus::Bus;
use crate::event::id::millis;
use crate::event::kind::{
    BreakerCause, BreakerHead, BreakerStage, BulkheadHead, Initiator, SafeModeHead, ToolLimits,
    WindowCounts,
};
use crate::event::{EventKind, SpanId};
use crate::gateway::breaker::{Breaker, BreakerState};
use crate::gateway::budget::RetryBudget;
use crate::gateway::last_good::LastGood;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::InjectedFault;

pub(super) struct GuardState {
    pub(super) policy: Arc<CallPolicy>,
    pub(super) timeout: Duration,
    pub(super) breaker: Breaker,
    pub(super) budget: RetryBudget,
    pub(super) last_good: LastGood,
    pub(super) faults: Arc<[InjectedFault]>,
    /// Last published state of the breaker.
    pub(super) published: PublishedState,
    pub(super) watchers: Vec<(u64, Bus)>,
    pub(super) last_watcher: u64,
}

/// State of the breaker as last published to the logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PublishedState {
    pub(super) stage: BreakerStage,
    /// Time when the breaker allows a call again, if time decides that.
    pub(super) until: Option<Instant>,
    pub(super) why: BreakerCause,
    pub(super) by: Option<Initiator>,
    /// What the breaker's window had when it opened the breaker.
    pub(super) counted: Option<WindowCounts>,
}

impl GuardState {
    /// The state at the start. `timeout` applies to an attempt if the policy sets none.
    pub(super) fn new(
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
            last_good: LastGood::default(),
            faults: faults.into(),
            published,
            watchers: Vec::new(),
            last_watcher: 0,
        }
    }

    pub(super) fn publish(&self, fact: impl Fn() -> EventKind) {
        for (_, bus) in &self.watchers {
            bus.publish(SpanId::RUN, fact());
        }
    }

    /// Publishes the breaker's state if it differs from the published one.
    pub(super) fn publish_change(
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
    pub(super) fn breaker_event(&self, tool: &ToolName, now: Instant) -> EventKind {
        let PublishedState { stage, until, why, by, counted } = self.published;
        let open_for_ms = until.map(|until| millis(until.saturating_duration_since(now)));
        let tool = tool.clone();
        EventKind::BreakerChanged { tool, to: stage, cause: why, open_for_ms, by, counted }
    }
}

/// State of a breaker, and when it ends if time decides that: the end of `Retry-After` or of the
/// open time, whichever is later.
pub(super) fn breaker_stage(breaker: &Breaker, now: Instant) -> (BreakerStage, Option<Instant>) {
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
pub(super) fn initial_stage(policy: &CallPolicy) -> BreakerStage {
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
        breaker: policy.breaker.map(|it| BreakerHead {
            fail_threshold: it.fail_threshold,
            open_for_ms: millis(it.open_for),
            probe_permits: it.probe_permits,
            mode: it.mode,
            counts: it.counts,
            window: it.window,
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
