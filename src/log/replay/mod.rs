//! A log that continues a recording. The run is executed again from its start; models and tools are
//! not called. Each event that it publishes is matched with the recorded one, until the recording
//! is used up. The driver, which says what comes next from outside, is `run/replay.rs`.
//!
//! An event that opens a span is matched by its parent and what it opens, and gets its recorded id.
//! All others are matched by span and kind, in their order; measured values may differ, the content
//! of a call may not. An event that the recording does not have is held until the recording is used
//! up, because it may have been published and not stored.
//!
//! Calls that become ready at the same moment take slots, places in queues and permissions of
//! breakers in their recorded order: each waits for its turn. A run that differs from its log
//! (`Divergence`) is not continued, and its log stays as it was.

pub mod recording;
mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use self::recording::Recording;
use self::state::{EventKey, ForkLog, ReplayState, describe_event, key_of, opening_key, same_call};
use super::clock::{Clock, ClockDriver};
use super::event::{
    Boundary, BoundaryId, Command, Elapsed, Event, EventKind, Seq, SpanId, StopReason,
};

pub use self::recording::{Divergence, PassedBoundary, ReplayError};

/// Events that are recorded within this time of each other happened at the same moment: the run may
/// not have waited between them.
const SAME_MOMENT: Duration = Duration::from_millis(1);

/// A recording, and how much of it was executed again.
pub(crate) struct Replay {
    driver: ClockDriver,
    clock: Clock,
    started: Instant,
    recording: Recording,
    live: AtomicBool,
    state: Mutex<ReplayState>,
}

impl Replay {
    /// A recording that is to be continued; `fork`: in a log of its own, from this boundary on.
    pub(crate) fn new(
        recording: Recording,
        fork: Option<BoundaryId>,
        (clock, driver): (Clock, ClockDriver),
    ) -> Self {
        let mut unmatched: HashMap<EventKey, VecDeque<usize>> = HashMap::new();
        for (place, event) in recording.events().iter().enumerate() {
            unmatched.entry(key_of(event)).or_default().push_back(place);
        }
        let matched = vec![false; recording.events().len()];
        let fork = fork.map(ForkLog::new);
        let state = Mutex::new(ReplayState { matched, unmatched, fork, ..ReplayState::default() });
        let started = clock.now();
        Self { driver, clock, started, recording, live: AtomicBool::new(false), state }
    }

    fn lock(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(crate) fn clock(&self) -> &ClockDriver {
        &self.driver
    }

    /// Whether the recording is used up, and the run continues.
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Where the run left its recording, if it did.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        self.lock().divergence.clone()
    }

    /// Moves the time of the run forward to that of a recorded event.
    fn advance(&self, at: Elapsed) {
        self.driver.advance(self.started + at.duration());
    }

    /// Matches an event, or holds it. `None` if it is to be appended: the recording is used up.
    pub(crate) fn publish(&self, span: SpanId, kind: &mut Option<EventKind>) -> Option<Seq> {
        let mut state = self.lock();
        if self.is_live() {
            return None;
        }
        let kind = kind.take()?;
        let Some(place) = state.take(&EventKey::new(span, &kind), self.recording.events()) else {
            state.hold(span, kind);
            return Some(Seq(self.recording.events().len() as u64));
        };
        if span != SpanId::RUN && state.held_spans.contains(&span) {
            let held = state.held.iter().find(|(it, _)| *it == span);
            let executed = held.map_or_else(String::new, |(_, kind)| describe_event(kind));
            state.diverge(self.recording.events(), place, executed);
        }
        if place == 0
            && let Some(fork) = &mut state.fork
        {
            fork.set_head(kind);
        }
        Some(Seq(place as u64))
    }

    /// Matches an event that opens a span, and returns the span; or holds it, with a new id of a
    /// span. `None` if it is to be appended: the recording is used up.
    pub(crate) fn open(
        &self,
        kind: &mut Option<EventKind>,
        new: impl FnOnce() -> SpanId,
    ) -> Option<SpanId> {
        let mut state = self.lock();
        if self.is_live() {
            return None;
        }
        let kind = kind.take()?;
        let events = self.recording.events();
        let found = opening_key(&kind).and_then(|key| state.take(&key, events));
        let Some((place, event)) = found.and_then(|place| Some((place, events.get(place)?))) else {
            let span = new();
            state.hold(span, kind);
            return Some(span);
        };
        // The settings of a fork may have led to other texts before this call.
        let may_differ = state.fork.is_some() || (place as u64) < self.recording.forked_at().0;
        if let Err(part) = same_call(&event.kind, &kind)
            && !may_differ
        {
            let executed = format!("{} with {part}", describe_event(&kind));
            state.diverge(events, place, executed);
        }
        Some(event.span)
    }

    /// How this attempt of a model or tool continues. Waits until it is its turn, or until the
    /// recording is used up. An attempt that was in flight where a fork begins returns its recorded
    /// result at the recorded time.
    pub(crate) async fn recorded_step(&self, span: SpanId) -> RecordedAttemptStep {
        let step = poll_fn(|cx| {
            let mut state = self.lock();
            let attempt = self.recording.attempt(span);
            let steps = attempt.into_iter().flat_map(|it| &it.steps).copied();
            let next = steps.into_iter().find(|place| state.matched.get(*place) == Some(&false));
            let event = next.and_then(|place| Some((place, self.recording.events().get(place)?)));
            if self.is_live() {
                let Some((place, event)) = event else {
                    let in_doubt = attempt.is_some();
                    return Poll::Ready(RecordedAttemptStep::Unknown { in_doubt });
                };
                state.matched[place] = true;
                return Poll::Ready(RecordedAttemptStep::Event(Arc::clone(event)));
            }
            if let Some((place, event)) = event
                && (state.delivered.remove(&span) || self.is_due_now(&mut state, span, place))
            {
                state.waiting.remove(&span);
                return Poll::Ready(RecordedAttemptStep::Event(Arc::clone(event)));
            }
            state.waiting.insert(span, cx.waker().clone());
            Poll::Pending
        })
        .await;
        if let RecordedAttemptStep::Event(event) = &step
            && self.is_live()
        {
            self.clock.sleep_until(self.started + event.at.duration()).await;
        }
        step
    }

    /// Whether the end of an attempt is the next recorded event, at the same moment: then the run
    /// did not wait for it, and does nothing else before it.
    fn is_due_now(&self, state: &mut ReplayState, span: SpanId, place: usize) -> bool {
        let events = self.recording.events();
        let Some(end) = events.get(place) else { return false };
        let now = self.driver.now().saturating_duration_since(self.started);
        if end.at.duration().saturating_sub(now) >= SAME_MOMENT {
            return false;
        }
        let open: Vec<usize> = (state.next..place).filter(|place| !state.matched[*place]).collect();
        if !open.iter().all(|place| self.is_inside(&events[*place], Some(span))) {
            return false;
        }
        for place in open {
            state.skip(place, events);
        }
        self.advance(end.at);
        true
    }

    /// Whether a model or tool published this event inside an attempt; `only`: inside this one.
    fn is_inside(&self, event: &Event, only: Option<SpanId>) -> bool {
        match event.kind {
            EventKind::ClientRetried { .. }
            | EventKind::AttemptProgressed { .. }
            | EventKind::AgentStep(_) => only.is_none_or(|span| event.span == span),
            EventKind::ConditionFailed { .. } => match only {
                Some(span) => self.recording.attempt(span).is_some_and(|it| it.call == event.span),
                None => event.span != SpanId::RUN,
            },
            _ => false,
        }
    }

    /// Takes what has to happen next. The run must be idle. Time moves forward to that event.
    pub(crate) fn next_input(&self) -> RecordedInput {
        let mut state = self.lock();
        let events = self.recording.events();
        let Some(event) = events.get(state.next) else { return RecordedInput::Over };
        self.advance(event.at);
        if self.is_inside(event, None) || state::is_never_repeated(&event.kind) {
            let place = state.next;
            state.skip(place, events);
            return RecordedInput::Skipped;
        }
        let first = state.next;
        if let Some(waker) = state.turns.give(first) {
            drop(state);
            waker.wake();
            return RecordedInput::Delivered;
        }
        let is_end = |place: usize| {
            let span = events.get(place)?.span;
            let attempt = self.recording.attempt(span).filter(|it| it.steps.contains(&place))?;
            Some((span, attempt.call))
        };
        if is_end(first).is_none() {
            return RecordedInput::Event(Arc::clone(event));
        }
        // Attempts that ended at the same moment end together, unless something else happened
        // between them.
        let mut ended = BTreeSet::new();
        let mut wakers = Vec::new();
        for (place, later) in events.iter().enumerate().skip(first) {
            if later.at.since(event.at) >= SAME_MOMENT {
                break;
            }
            if state.matched[place] || ended.contains(&later.span) {
                continue;
            }
            let Some((span, call)) = is_end(place) else { break };
            if !state.waiting.contains_key(&span) {
                break;
            }
            ended.extend([span, call]);
            state.delivered.insert(span);
            wakers.extend(state.waiting.remove(&span));
        }
        drop(state);
        if wakers.is_empty() {
            // The attempt was not started, or was ended before.
            return RecordedInput::Event(Arc::clone(event));
        }
        for waker in wakers {
            waker.wake();
        }
        RecordedInput::Delivered
    }

    /// Keeps a command until the recording is used up; returns it if it is.
    pub(crate) fn queue_command(&self, command: Command) -> Option<Command> {
        let mut state = self.lock();
        if self.is_live() {
            return Some(command);
        }
        state.commands.push(command);
        None
    }

    /// Skips the next event, which has no effect on the run.
    pub(crate) fn skip_next(&self) {
        let mut state = self.lock();
        let place = state.next;
        state.skip(place, self.recording.events());
    }

    /// The first event that was not matched.
    pub(crate) fn next_event(&self) -> Option<Arc<Event>> {
        self.recording.events().get(self.lock().next).cloned()
    }

    /// Whether every recorded event was matched.
    pub(crate) fn is_used_up(&self) -> bool {
        self.next_event().is_none()
    }

    /// Sequence number of the first event that was not matched.
    pub(crate) fn position(&self) -> Seq {
        Seq(self.lock().next as u64)
    }

    /// Nothing in the run leads to the next recorded event.
    pub(crate) fn diverge(&self) -> Option<Divergence> {
        let mut state = self.lock();
        let executed = state.held.first().map(|(_, kind)| describe_event(kind));
        let (place, none) = (state.next, || "nothing left to do".to_owned());
        state.diverge(self.recording.events(), place, executed.unwrap_or_else(none));
        state.divergence.clone()
    }

    /// The recording is used up, or a fork has reached its boundary: time becomes real, `append` gets
    /// the events that the log does not have yet, and attempts that wait for their end continue.
    /// Returns the commands that were sent before.
    pub(crate) fn go_live(&self, first: EventKind, append: impl Fn(ReplayedEvent)) -> Vec<Command> {
        let mut state = self.lock();
        if self.is_live() || state.divergence.is_some() {
            return Vec::new();
        }
        let fork = state.fork.take();
        let is_fork = fork.is_some();
        let (events, branches) = fork.map(ForkLog::into_events).unwrap_or_default();
        // It may have been recorded later than the run has published it now, and no event of a log is
        // before the one that it follows.
        self.advance(match is_fork {
            true => events.last().map_or(Elapsed(0), |last| last.at),
            false => self.recording.last_at(),
        });
        self.driver.go_live();
        events.into_iter().map(ReplayedEvent::Recorded).for_each(&append);
        append(ReplayedEvent::New(SpanId::RUN, first));
        for (span, kind) in std::mem::take(&mut state.held) {
            append(ReplayedEvent::New(span, kind));
        }
        self.live.store(true, Ordering::Release);
        let ReplayState { matched, waiting, turns, commands, .. } = std::mem::take(&mut *state);
        if is_fork {
            // Attempts in flight still return their recorded results.
            state.matched = matched;
        }
        drop(state);
        for waker in waiting.into_values().chain(turns.into_wakers()).chain(branches) {
            waker.wake();
        }
        commands
    }

    /// Whether a fork has reached its boundary.
    pub(crate) fn is_at_fork(&self) -> bool {
        self.lock().fork.as_ref().is_some_and(|fork| fork.is_reached)
    }

    /// Where a fork should have begun, and the boundaries that the run reached instead; `None`: the
    /// log continues the recording.
    pub(crate) fn not_reached(&self) -> Option<ReplayError> {
        let mut state = self.lock();
        let fork = state.fork.as_mut()?;
        Some(ReplayError::NotReached {
            at: fork.at.clone(),
            passed: std::mem::take(&mut fork.passed),
        })
    }

    /// The error of a run that left its recording. Where only its boundaries are listed, they are those until
    /// then: nothing in a run leads to the events of a cancellation.
    pub(crate) fn diverged(&self, divergence: Divergence) -> ReplayError {
        let mut state = self.lock();
        match state.fork.as_mut().filter(|fork| fork.at.as_str().is_empty()) {
            Some(fork) if !fork.passed.is_empty() => ReplayError::NotReached {
                at: fork.at.clone(),
                passed: std::mem::take(&mut fork.passed),
            },
            _ => divergence.into(),
        }
    }

    /// A branch has reached a boundary. If a fork begins there, the branch waits until the run is live.
    pub(crate) async fn arrive(&self, boundary: &Boundary) {
        let mut is_known = false;
        poll_fn(|cx| {
            let mut state = self.lock();
            let next = Seq(state.next as u64);
            let Some(fork) = state.fork.as_mut().filter(|_| !self.is_live()) else {
                return Poll::Ready(());
            };
            let id = boundary.id();
            let is_here = fork.at == id;
            if !is_known {
                is_known = true;
                let at = Elapsed::from_duration(self.clock.since(self.started));
                fork.passed.push(PassedBoundary { id, next, at });
            }
            if !is_here {
                return Poll::Ready(());
            }
            fork.is_reached = true;
            fork.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// What a call does next, in its turn.
#[derive(Clone, Copy)]
pub(crate) enum CallStep<'a> {
    Start(&'a EventKind),
    /// It has a slot of the pool, makes an attempt, or has left the queue of its tool with a permit.
    Continue(SpanId),
    /// It has waited too long in the queue of its tool.
    GiveUp(SpanId),
}

/// A call that waits for its turn; it stops waiting when this is dropped.
struct WaitingTurn<'a> {
    replay: &'a Replay,
    key: (usize, u64),
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.replay.lock().turns.leave(self.key);
    }
}

impl Replay {
    /// Waits until everything that is recorded before this step has happened. A step that is not
    /// recorded waits until the recording is used up.
    pub(crate) async fn turn(&self, step: CallStep<'_>) {
        if self.is_live() {
            return;
        }
        let number = self.lock().turns.next_number();
        let mut waits = WaitingTurn { replay: self, key: (NOT_RECORDED, number) };
        poll_fn(|cx| {
            let mut state = self.lock();
            if self.is_live() || state.turns.leave(waits.key) {
                return Poll::Ready(());
            }
            let place = self.place_of(&state, step);
            if place == state.next
                && let Some(event) = self.recording.events().get(place)
            {
                self.advance(event.at);
                return Poll::Ready(());
            }
            waits.key.0 = place;
            state.turns.wait(waits.key, cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The index of the event that this step leads to.
    fn place_of(&self, state: &ReplayState, step: CallStep<'_>) -> usize {
        let place = match step {
            CallStep::Start(kind) => {
                opening_key(kind).and_then(|key| state.unmatched.get(&key)?.front().copied())
            }
            CallStep::Continue(call) => self.next_step(state, call),
            CallStep::GiveUp(call) => self.next_step(state, call).filter(|place| {
                let event = self.recording.events().get(*place);
                event.is_some_and(|event| is_queue_left(&event.kind))
            }),
        };
        place.unwrap_or(NOT_RECORDED)
    }

    /// The index of the next recorded step of a call.
    fn next_step(&self, state: &ReplayState, call: SpanId) -> Option<usize> {
        let mut steps = self.recording.steps_of(call).iter().copied();
        steps.find(|place| state.matched.get(*place) == Some(&false))
    }

    /// The next recorded step of a call: `call.admitted`, or the start, queueing or refusal of an
    /// attempt. `None` if it is not recorded, or the recording is used up.
    pub(crate) fn recorded_turn(&self, call: SpanId) -> Option<Arc<Event>> {
        let state = self.lock();
        if self.is_live() {
            return None;
        }
        self.recording.events().get(self.next_step(&state, call)?).cloned()
    }

    /// Of the waiting calls, lets the one with the earliest recorded next step continue. If `any` is
    /// set, this may also be a call with a next step that is not recorded. Returns whether a call
    /// continues.
    pub(crate) fn give_turn(&self, any: bool) -> bool {
        let last = if any { NOT_RECORDED } else { NOT_RECORDED - 1 };
        let waker = self.lock().turns.give(last);
        waker.map(|waker| waker.wake()).is_some()
    }
}

/// Whether an attempt was refused because it found no permit in time.
fn is_queue_left(kind: &EventKind) -> bool {
    matches!(kind, EventKind::AttemptRefused { reason: StopReason::BulkheadFull(_), .. })
}

/// The calls that wait for their turn.
#[derive(Default)]
pub(crate) struct Turns {
    /// Ordered by the index of the event that each publishes next, then by its number.
    waiting: BTreeMap<(usize, u64), Waker>,
    /// Numbers of the calls that may continue and have not done so yet.
    given: BTreeSet<u64>,
    /// The number that was given out last.
    last: u64,
}

/// The index of an event that is not recorded.
const NOT_RECORDED: usize = usize::MAX;

impl Turns {
    /// The number for a call that starts to wait.
    pub fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A call waits until the event with this index is the next one.
    pub fn wait(&mut self, key: (usize, u64), waker: Waker) {
        self.waiting.insert(key, waker);
    }

    /// A call stops waiting. Returns whether it may continue.
    pub fn leave(&mut self, key: (usize, u64)) -> bool {
        self.waiting.remove(&key);
        self.given.remove(&key.1)
    }

    /// Lets the call with the earliest event continue, if the index of that event is at most `last`.
    pub fn give(&mut self, last: usize) -> Option<Waker> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= last)?;
        let ((_, number), waker) = first.remove_entry();
        self.given.insert(number);
        Some(waker)
    }

    /// The calls that still wait.
    pub fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.waiting.into_values()
    }
}

/// How an attempt of a model or tool continues.
pub(crate) enum RecordedAttemptStep {
    /// As this recorded event says: it returned, or was in doubt.
    Event(Arc<Event>),
    /// The recording is used up, so the attempt is made. If its start is recorded, it is not known
    /// whether it took effect.
    Unknown {
        /// Whether its start is recorded.
        in_doubt: bool,
    },
}

/// The first recorded event that was not matched, if the run is idle: what has to happen next.
pub(crate) enum RecordedInput {
    Over,
    /// A model or tool returned, or it is the turn of a call; the run continues.
    Delivered,
    /// An event that nothing in the run publishes again was skipped.
    Skipped,
    /// Any other event. A command or a timer has to lead to it.
    Event(Arc<Event>),
}

/// An event for a log that goes live.
pub enum ReplayedEvent {
    /// A recorded one, which a fork has from its parent.
    Recorded(Arc<Event>),
    New(SpanId, EventKind),
}
