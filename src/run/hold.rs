//! The state of a run's control: its branches, its holds, and its clock, which is stopped while the run
//! is paused or suspended, or while all branches wait for people.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::base::name::FlagName;
use crate::log::clock::Clock;
use crate::log::event::{Boundary, BoundaryId, Initiator, SpanId, StopReason};

/// A span with a timeout, and how long somebody inside it waited for a person.
pub(super) struct EnclosingScope {
    pub parent: SpanId,
    /// How many branches inside it wait now.
    pub waiting: u32,
    /// Since when, in active time of the run.
    pub since: Option<Duration>,
    /// For how long before, in active time of the run.
    pub stood: Duration,
}

pub(crate) struct RunControlState {
    pub(super) clock: Clock,
    pub(crate) started: Instant,
    /// Time that the clock has been stopped so far.
    pub(crate) paused: Duration,
    pub(crate) hold: PauseState,
    /// Set while the process is suspended: the clock stops at once, even if branches are still
    /// active.
    pub(super) suspended_since: Option<Instant>,
    /// The program itself, or a question without an answer, holds the run: the hold ends with its reasons.
    pub(super) program_hold: Option<ProgramHold>,
    /// A running run pauses at the next boundary that ends a round.
    pub(super) pause_at_round: bool,
    /// Number of active branches: neither waiting at a boundary or for a person nor done.
    pub(super) active_branches: u32,
    /// Number of branches that wait for a person.
    pub(super) asking: u32,
    /// Number of calls of tools in which a person is asked.
    pub(super) kept_calls: u32,
    /// Set while all branches wait for people: the clock is stopped.
    pub(super) all_wait_since: Option<Instant>,
    pub(super) scopes: BTreeMap<SpanId, EnclosingScope>,
    /// Branches that wait at a boundary, in the order of their arrival.
    pub(crate) waiting: BTreeMap<u64, BoundaryId>,
    pub(crate) arrivals: u64,
    pub(crate) breaks: BTreeSet<BoundaryId>,
    pub(crate) flags: BTreeMap<FlagName, bool>,
    pub(crate) pending_flags: Vec<(FlagName, bool, Initiator)>,
    pub(super) scheduled: Vec<(BoundaryId, FlagName, bool, Initiator)>,
    /// Boundaries to pause at that were given before the run began and were not reached so far.
    pub(super) unreached_pauses: BTreeSet<BoundaryId>,
    /// The last boundary that was passed.
    pub(crate) last: Option<Boundary>,
    pub(crate) cancelled: bool,
    /// Set if the run must stop, with the reason.
    pub(crate) stopped: Option<StopReason>,
    /// The reason for which the run will end, while it still finishes what it has begun.
    pub(crate) settled: Option<StopReason>,
    /// The run begins no further attempt of a call.
    pub(crate) only_finishes: bool,
    pub(crate) closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseState {
    /// Branches pass boundaries.
    Running,
    /// Branches wait at boundaries; some are still active.
    Pausing,
    /// Every branch waits; the clock has been stopped since then.
    Paused(Instant),
}

/// A pause by the program itself or by questions, for one or more reasons.
pub(crate) struct ProgramHold {
    /// The reason that began it, which its events name.
    pub first: Initiator,
    pub reasons: Vec<Initiator>,
}

impl RunControlState {
    /// The state at the start of a run with one branch. It begins now, by this clock.
    pub(crate) fn new(flags: BTreeMap<FlagName, bool>, clock: Clock) -> Self {
        Self {
            started: clock.now(),
            clock,
            paused: Duration::ZERO,
            hold: PauseState::Running,
            suspended_since: None,
            program_hold: None,
            pause_at_round: false,
            active_branches: 1,
            asking: 0,
            kept_calls: 0,
            all_wait_since: None,
            scopes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
            breaks: BTreeSet::new(),
            flags,
            pending_flags: Vec::new(),
            scheduled: Vec::new(),
            unreached_pauses: BTreeSet::new(),
            last: None,
            cancelled: false,
            stopped: None,
            settled: None,
            only_finishes: false,
            closed: false,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether the next boundary needs no check at all.
    pub(super) fn has_nothing_pending(&self) -> bool {
        self.hold == PauseState::Running
            && !self.pause_at_round
            && self.breaks.is_empty()
            && self.unreached_pauses.is_empty()
            && self.pending_flags.is_empty()
            && self.scheduled.is_empty()
    }

    /// The moment when the clock stopped, if it is stopped.
    pub(crate) fn stopped_since(&self) -> Option<Instant> {
        match self.hold {
            PauseState::Paused(since) => Some(since),
            PauseState::Running | PauseState::Pausing => {
                [self.suspended_since, self.all_wait_since].into_iter().flatten().min()
            }
        }
    }

    pub(super) fn add_active(&mut self, branches: u32) {
        self.active_branches += branches;
        self.follow_waits();
    }

    pub(super) fn remove_active(&mut self, branches: u32) {
        self.active_branches -= branches;
        self.follow_waits();
    }

    /// Stops the clock while all branches wait for people, and starts it again.
    pub(super) fn follow_waits(&mut self) {
        let paused = matches!(self.hold, PauseState::Paused(_));
        let all_wait = self.asking > 0 && self.active_branches == 0 && !paused;
        match (all_wait, self.all_wait_since) {
            (true, None) => self.all_wait_since = Some(self.now()),
            (false, Some(since)) => {
                self.all_wait_since = None;
                match &mut self.suspended_since {
                    // The clock stays stopped, since the earlier of both.
                    Some(suspended) => *suspended = since.min(*suspended),
                    None => self.paused += self.clock.since(since),
                }
            }
            _ => {}
        }
    }

    /// A branch in this span starts or stops waiting for a person.
    pub(super) fn enter_scopes(&mut self, span: SpanId, begins: bool) {
        let now = self.active();
        let mut next = Some(span);
        while let Some(scope) = next.and_then(|span| self.scopes.get_mut(&span)) {
            if begins {
                scope.waiting += 1;
                scope.since.get_or_insert(now);
            } else {
                scope.waiting = scope.waiting.saturating_sub(1);
                if scope.waiting == 0
                    && let Some(since) = scope.since.take()
                {
                    scope.stood += now.saturating_sub(since);
                }
            }
            next = Some(scope.parent);
        }
    }

    pub(super) fn active_in(&self, span: SpanId) -> Duration {
        let now = self.active();
        let stood = self.scopes.get(&span).map(|scope| {
            scope.stood + scope.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
        });
        now.saturating_sub(stood.unwrap_or_default())
    }

    pub(crate) fn active(&self) -> Duration {
        let standing = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        self.clock.since(self.started).saturating_sub(self.paused).saturating_sub(standing)
    }

    /// Starts the clock again; returns how long it was stopped.
    pub(super) fn start_clock(&mut self) -> Duration {
        let stood = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        (self.suspended_since, self.all_wait_since) = (None, None);
        self.paused += stood;
        stood
    }

    /// Starts a clock again that only the suspension had stopped.
    pub(super) fn unfreeze(&mut self) {
        if let Some(since) = self.suspended_since.take() {
            match &mut self.all_wait_since {
                Some(waits) => *waits = since.min(*waits),
                None => self.paused += self.clock.since(since),
            }
        }
    }

    /// Makes a waiting branch active again.
    pub(super) fn reactivate(&mut self, arrival: u64) {
        if self.waiting.remove(&arrival).is_some() {
            self.add_active(1);
        }
    }

    /// Whether every branch waits for people, and no call of a tool is open meanwhile.
    pub(super) fn can_be_released(&self) -> bool {
        self.all_wait_since.is_some() && self.kept_calls == 0
    }

    pub(super) fn first_waiting(&self) -> Option<(u64, BoundaryId)> {
        self.waiting.iter().next().map(|(arrival, boundary)| (*arrival, boundary.clone()))
    }
}
