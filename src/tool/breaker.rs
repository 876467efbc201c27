//! The breaker of a tool: fails at once while the tool is in trouble (source `003`, spec section 5).
//! Pure: the time is passed in, there is no lock and nothing is awaited. Its clock is tokio's, so no
//! jump of the wall clock moves it.

use std::time::Duration;

use tokio::time::Instant;

use crate::scenario::resilience::{BreakerLimits, BreakerMode};

/// An open time too long for the clock is cut to this, about 30 years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The breaker of one tool.
#[derive(Debug)]
pub struct Breaker {
    limits: BreakerLimits,
    state: BreakerState,
    /// Counts the changes of state; a ticket carries that of its time.
    epoch: u64,
    /// A `Retry-After` that reaches past the deadline: nobody passes before then.
    gate: Option<Instant>,
}

/// What a breaker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Attempts go through.
    Closed {
        /// Failures in a row so far.
        failures: u32,
    },
    /// Attempts fail at once.
    Open {
        /// When it opened.
        since: Instant,
        /// When the open time ends; `None` while it is held open by hand.
        until: Option<Instant>,
    },
    /// A few attempts go through and decide.
    HalfOpen {
        /// Probes that have not come back.
        out: u32,
    },
    /// Switched off by hand: attempts go through and nothing is counted.
    Disabled,
}

/// Leave for one attempt. It has to come back through [`Breaker::record`], with
/// [`Verdict::Neither`] when the attempt was not made or was cancelled: a probe's place stays taken
/// until then.
#[derive(Debug)]
#[must_use = "a probe's place stays taken until its ticket is recorded"]
pub struct Ticket {
    epoch: u64,
}

/// What an attempt says of its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The tool works.
    Success,
    /// The tool is in trouble.
    Failure,
    /// Nothing: rejected, cancelled, or refused for the caller's own fault.
    Neither,
}

/// What a verdict did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Taken; the state is what it was.
    Counted,
    /// It opened the breaker: no wait and no further attempt.
    Opened,
    /// It closed the breaker.
    Closed,
    /// It came after the breaker had moved on, and changed nothing.
    Stale,
}

/// An attempt that was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: RefusedWhy,
    /// When it is worth asking again; `None` where no clock decides it.
    pub retry_in: Option<Duration>,
}

/// Why an attempt was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedWhy {
    /// Open, the time is running.
    Open,
    /// Half-open, and every probe is out.
    Probing,
    /// Held open by hand.
    Held,
    /// The tool asked to be left alone until then (`Retry-After`); no failures opened it.
    Gated,
}

/// A breaker as the screen shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerView {
    /// Attempts go through.
    Closed {
        /// Failures in a row so far.
        failures: u32,
        /// Failures in a row that open it.
        of: u32,
    },
    /// Attempts fail at once.
    Open {
        /// What is left of the open time: zero once it is over and nobody has asked yet, `None`
        /// while held.
        left: Option<Duration>,
        /// Held by hand.
        held: bool,
    },
    /// Probes decide.
    HalfOpen {
        /// Probes that have not come back; more than `permits` just after that was lowered.
        out: u32,
        /// Probes that may be out at once.
        permits: u32,
    },
    /// Switched off by hand.
    Disabled,
}

impl Breaker {
    /// A closed breaker with a clean count.
    pub fn new(limits: BreakerLimits) -> Self {
        Self { limits, state: BreakerState::Closed { failures: 0 }, epoch: 0, gate: None }
    }

    /// The limits in force.
    pub fn limits(&self) -> BreakerLimits {
        self.limits
    }

    /// What it is at. An open breaker stays open past its time until an attempt asks.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// Asks leave for one attempt. The first to ask after the open time makes it half-open (in
    /// [`BreakerMode::Source`]: closes it). The source compares with `>`; the instant itself is let
    /// through here, so that who waits exactly `retry_in` is not sent away with a wait of nothing.
    pub fn allow(&mut self, now: Instant) -> Result<Ticket, Refused> {
        let refused = self.refusal(now);
        if let Some(gate_left) = self.gate_left(now) {
            // Whichever ends later is what the caller has to wait for; who is held waits for a
            // hand, and no probe starts behind the gate.
            return Err(match refused {
                Some(held @ Refused { why: RefusedWhy::Held, .. }) => held,
                Some(open @ Refused { retry_in: Some(left), .. }) if left > gate_left => open,
                _ => Refused { why: RefusedWhy::Gated, retry_in: Some(gate_left) },
            });
        }
        self.gate = None;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let BreakerState::Open { .. } = self.state {
            self.enter(match self.limits.mode {
                BreakerMode::HalfOpen => BreakerState::HalfOpen { out: 0 },
                BreakerMode::Source => BreakerState::Closed { failures: 0 },
            });
        }
        if let BreakerState::HalfOpen { out } = &mut self.state {
            *out += 1;
        }
        Ok(Ticket { epoch: self.epoch })
    }

    /// Takes an attempt's verdict. [`Recorded::Stale`] when the breaker has moved on since; not so
    /// in [`BreakerMode::Source`], where every result counts unless a hand holds or disabled it.
    pub fn record(&mut self, ticket: Ticket, verdict: Verdict, now: Instant) -> Recorded {
        let stale = ticket.epoch != self.epoch;
        match self.limits.mode {
            BreakerMode::HalfOpen if stale => Recorded::Stale,
            BreakerMode::HalfOpen => self.judge(verdict, now),
            BreakerMode::Source => match self.state {
                BreakerState::Open { until: None, .. } | BreakerState::Disabled if stale => {
                    Recorded::Stale
                }
                _ => self.judge(verdict, now),
            },
        }
    }

    /// Takes a verdict that counts in the present state.
    fn judge(&mut self, verdict: Verdict, now: Instant) -> Recorded {
        match (self.state, verdict) {
            (BreakerState::Closed { .. }, Verdict::Success) => {
                self.state = BreakerState::Closed { failures: 0 };
                Recorded::Counted
            }
            (BreakerState::Closed { failures }, Verdict::Failure) => {
                let failures = failures.saturating_add(1);
                if failures >= self.limits.fail_threshold {
                    self.trip(now);
                    return Recorded::Opened;
                }
                self.state = BreakerState::Closed { failures };
                Recorded::Counted
            }
            (BreakerState::HalfOpen { .. }, Verdict::Failure) => {
                self.trip(now);
                Recorded::Opened
            }
            (BreakerState::HalfOpen { .. }, Verdict::Success)
            | (BreakerState::Open { until: Some(_), .. }, Verdict::Success) => {
                self.enter(BreakerState::Closed { failures: 0 });
                Recorded::Closed
            }
            (BreakerState::HalfOpen { out }, Verdict::Neither) => {
                self.state = BreakerState::HalfOpen { out: out.saturating_sub(1) };
                Recorded::Counted
            }
            // Only in the source's mode: a late failure starts the open time anew (`opened_at`),
            // which is no second opening.
            (BreakerState::Open { until: Some(_), .. }, Verdict::Failure) => {
                self.state = self.open_from(now);
                Recorded::Counted
            }
            (BreakerState::Open { .. } | BreakerState::Disabled, _)
            | (BreakerState::Closed { .. }, Verdict::Neither) => Recorded::Counted,
        }
    }

    /// Opens it by hand for the usual open time, from now on.
    pub fn trip(&mut self, now: Instant) {
        let open = self.open_from(now);
        self.enter(open);
    }

    /// Opens it by hand until a hand changes that again.
    pub fn hold_open(&mut self, now: Instant) {
        self.enter(BreakerState::Open { since: now, until: None });
    }

    /// Switches it off: attempts go through and nothing is counted. A gate stays shut, for it is
    /// the tool's own word and not the breaker's judgement.
    pub fn disable(&mut self) {
        self.enter(BreakerState::Disabled);
    }

    /// Closes it by hand with a clean count, and opens the gate.
    pub fn reset(&mut self) {
        self.gate = None;
        self.enter(BreakerState::Closed { failures: 0 });
    }

    /// Refuses everybody until then, without a failure being counted. Of two such times the later
    /// one stands.
    pub fn gate_until(&mut self, until: Instant) {
        self.gate = self.gate.max(Some(until));
    }

    /// Until when the gate stays shut; `None` when it is not.
    pub fn gate_until_at(&self, now: Instant) -> Option<Instant> {
        self.gate.filter(|until| *until > now)
    }

    /// How long the gate stays shut; `None` when it is not.
    pub fn gate_left(&self, now: Instant) -> Option<Duration> {
        self.gate_until_at(now).map(|until| until.saturating_duration_since(now))
    }

    /// Takes new limits live. Counts are kept: a lower threshold shows at the next failure that is
    /// recorded. A running open time is counted anew from when it began.
    pub fn set_limits(&mut self, limits: BreakerLimits) {
        self.limits = limits;
        match (self.state, limits.mode) {
            (BreakerState::Open { since, until: Some(_) }, _) => {
                self.state = self.open_from(since);
            }
            // The source knows no half-open: its breaker would have closed by now.
            (BreakerState::HalfOpen { .. }, BreakerMode::Source) => {
                self.enter(BreakerState::Closed { failures: 0 });
            }
            _ => {}
        }
    }

    /// How it looks at this moment. Nothing in it is ever negative, whatever the clock did.
    pub fn view(&self, now: Instant) -> BreakerView {
        match self.state {
            BreakerState::Closed { failures } => {
                BreakerView::Closed { failures, of: self.limits.fail_threshold.max(1) }
            }
            BreakerState::Open { until, .. } => BreakerView::Open {
                left: until.map(|until| until.saturating_duration_since(now)),
                held: until.is_none(),
            },
            BreakerState::HalfOpen { out } => BreakerView::HalfOpen { out, permits: self.probes() },
            BreakerState::Disabled => BreakerView::Disabled,
        }
    }

    /// Why the state, the gate aside, lets nobody through at this moment.
    fn refusal(&self, now: Instant) -> Option<Refused> {
        match self.state {
            BreakerState::Open { until: None, .. } => {
                Some(Refused { why: RefusedWhy::Held, retry_in: None })
            }
            BreakerState::Open { until: Some(until), .. } if now < until => {
                let left = until.saturating_duration_since(now);
                Some(Refused { why: RefusedWhy::Open, retry_in: Some(left) })
            }
            BreakerState::HalfOpen { out } if out >= self.probes() => {
                Some(Refused { why: RefusedWhy::Probing, retry_in: None })
            }
            _ => None,
        }
    }

    fn probes(&self) -> u32 {
        self.limits.probe_permits.max(1)
    }

    fn open_from(&self, since: Instant) -> BreakerState {
        let until = since.checked_add(self.limits.open_for).unwrap_or_else(|| since + FAR);
        BreakerState::Open { since, until: Some(until) }
    }

    /// Every change of state is a new epoch, so what was asked before it is stale.
    fn enter(&mut self, state: BreakerState) {
        self.state = state;
        self.epoch += 1;
    }
}
