//! What a run's control keeps under its lock: the clock, the branches, the flags, and how the run
//! ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::base::name::FlagName;
use crate::clock::Clock;
use crate::event::kind::Initiator;
use crate::event::{Boundary, BoundaryId, StopReason};

pub(super) struct RunControlState {
    clock: Clock,
    pub(super) started: Instant,
    /// Time that the clock has been stopped so far.
    pub(super) paused: Duration,
    pub(super) hold: PauseState,
    /// Set while the process is suspended: the clock stops at once, even if branches are still
    /// active.
    pub(super) suspended_since: Option<Instant>,
    /// The program itself holds the run: the hold ends with its reasons.
    pub(super) program_hold: Option<ProgramHold>,
    /// A running run pauses at the next boundary that ends a round.
    pub(super) pause_at_round: bool,
    /// Number of active branches: neither waiting at a boundary nor done.
    pub(super) active_branches: u32,
    /// Branches that wait at a boundary, in the order of their arrival.
    pub(super) waiting: BTreeMap<u64, BoundaryId>,
    pub(super) arrivals: u64,
    pub(super) breaks: BTreeSet<BoundaryId>,
    pub(super) flags: BTreeMap<FlagName, bool>,
    pub(super) pending_flags: Vec<(FlagName, bool, Initiator)>,
    pub(super) scheduled: Vec<(BoundaryId, FlagName, bool, Initiator)>,
    /// Boundaries to pause at that were given before the run began and were not reached so far.
    pub(super) unreached_pauses: BTreeSet<BoundaryId>,
    /// The last boundary that was passed.
    pub(super) last: Option<Boundary>,
    pub(super) cancelled: bool,
    /// Set if the run must stop, with the reason.
    pub(super) stopped: Option<StopReason>,
    /// The reason for which the run will end, while it still finishes what it has begun.
    pub(super) settled: Option<StopReason>,
    /// The run begins no further attempt of a call.
    pub(super) only_finishes: bool,
    pub(super) closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseState {
    /// Branches pass boundaries.
    Running,
    /// Branches wait at boundaries; some are still active.
    Pausing,
    /// Every branch waits; the clock has been stopped since then.
    Paused(Instant),
}

/// A pause by the program itself, for one or more reasons.
pub(super) struct ProgramHold {
    /// The reason that began it, which its events name.
    pub first: Initiator,
    /// The reasons that last.
    pub reasons: Vec<Initiator>,
}

impl RunControlState {
    /// The state at the start of a run with one branch. It begins now, by this clock.
    pub(super) fn new(flags: BTreeMap<FlagName, bool>, clock: Clock) -> Self {
        Self {
            started: clock.now(),
            clock,
            paused: Duration::ZERO,
            hold: PauseState::Running,
            suspended_since: None,
            program_hold: None,
            pause_at_round: false,
            active_branches: 1,
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

    /// The present moment.
    pub(super) fn now(&self) -> Instant {
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
    pub(super) fn stopped_since(&self) -> Option<Instant> {
        match self.hold {
            PauseState::Paused(since) => Some(since),
            PauseState::Running | PauseState::Pausing => self.suspended_since,
        }
    }

    pub(super) fn active(&self) -> Duration {
        let standing = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        self.clock.since(self.started).saturating_sub(self.paused).saturating_sub(standing)
    }

    /// Starts the clock again; returns how long it was stopped.
    pub(super) fn start_clock(&mut self) -> Duration {
        let stood = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        self.suspended_since = None;
        self.paused += stood;
        stood
    }

    /// Starts a clock again that only the suspension had stopped.
    pub(super) fn unfreeze(&mut self) {
        if let Some(since) = self.suspended_since.take() {
            self.paused += self.clock.since(since);
        }
    }

    /// Makes a waiting branch active again.
    pub(super) fn reactivate(&mut self, arrival: u64) {
        if self.waiting.remove(&arrival).is_some() {
            self.active_branches += 1;
        }
    }

    pub(super) fn first_waiting(&self) -> Option<(u64, BoundaryId)> {
        self.waiting.iter().next().map(|(arrival, boundary)| (*arrival, boundary.clone()))
    }
}
