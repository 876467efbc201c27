//! A log that continues a recording: the run is executed again from its start, and each event that
//! it publishes is matched with the recorded one, until the recording is used up.
//!
//! An event that opens a span is matched by its parent and what it opens, so the span gets its
//! recorded id. All other events are matched by their span and kind, in their order; measured values
//! may differ. A call must be the same in content. What a call returned is taken from the recording.
//!
//! An event that the recording does not have is held until the recording is used up: the run may
//! have published it before its end without it being stored.

mod keys;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use self::keys::{EventKey, describe, key_of, opening_key, same_call};
use super::recording::Recording;
use crate::clock::ClockDriver;
use crate::event::{Command, Elapsed, Event, EventKind, Seq, SpanId};

/// Events that are recorded within this time of each other happened at the same moment: the run may
/// not have waited between them.
const SAME_MOMENT: Duration = Duration::from_millis(1);

/// The run does something else than its log says, so it cannot be continued from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {} of the log is {recorded}, but the run has {executed} there", .seq.0)]
pub struct Divergence {
    /// The first event of the log that differs.
    pub seq: Seq,
    /// What the log has.
    pub recorded: String,
    /// What the run does.
    pub executed: String,
}

/// A recording, and what was executed of it.
pub(crate) struct Replay {
    clock: ClockDriver,
    started: Instant,
    recording: Recording,
    live: AtomicBool,
    state: Mutex<ReplayState>,
}

#[derive(Default)]
struct ReplayState {
    /// Which recorded events were matched; the first that was not.
    matched: Vec<bool>,
    next: usize,
    /// The indices of the events that were not matched, by what they are matched by.
    unmatched: HashMap<EventKey, VecDeque<usize>>,
    /// Events that the recording does not have, in their order.
    held: Vec<(SpanId, EventKind)>,
    /// Spans that have such an event.
    held_spans: BTreeSet<SpanId>,
    /// Attempts that continue as their next recorded event says.
    delivered: BTreeSet<SpanId>,
    /// Attempts that wait for this, or for the recording to be used up.
    waiting: BTreeMap<SpanId, Waker>,
    divergence: Option<Divergence>,
    /// Commands that were sent before the recording was used up.
    commands: Vec<Command>,
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
    /// The recording is used up.
    Over,
    /// A model or tool returned; the attempts continue.
    Delivered,
    /// An event that nothing in the run publishes again was skipped.
    Skipped,
    /// Any other event. A command or a timer has to lead to it.
    Event(Arc<Event>),
}

impl Replay {
    pub(super) fn new(recording: Recording, clock: ClockDriver, started: Instant) -> Self {
        let mut unmatched: HashMap<EventKey, VecDeque<usize>> = HashMap::new();
        for (place, event) in recording.events().iter().enumerate() {
            unmatched.entry(key_of(event)).or_default().push_back(place);
        }
        let matched = vec![false; recording.events().len()];
        let state = Mutex::new(ReplayState { matched, unmatched, ..ReplayState::default() });
        Self { clock, started, recording, live: AtomicBool::new(false), state }
    }

    fn lock(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recording that is executed again.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The clock of the run.
    pub(crate) fn clock(&self) -> &ClockDriver {
        &self.clock
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
        self.clock.advance(self.started + at.duration());
    }

    /// Matches an event, or holds it. `None` if it is to be appended: the recording is used up.
    pub(super) fn publish(&self, span: SpanId, kind: &mut Option<EventKind>) -> Option<Seq> {
        let mut state = self.lock();
        if self.is_live() {
            return None;
        }
        let kind = kind.take()?;
        let Some(place) = state.take(&EventKey::new(span, &kind)) else {
            state.hold(span, kind);
            return Some(Seq(self.recording.events().len() as u64));
        };
        if span != SpanId::RUN && state.held_spans.contains(&span) {
            let held = state.held.iter().find(|(it, _)| *it == span);
            let executed = held.map_or_else(String::new, |(_, kind)| describe(kind));
            state.diverge(self.recording.events(), place, executed);
        }
        Some(Seq(place as u64))
    }

    /// Matches an event that opens a span, and returns the span; or holds it, with a new id of a
    /// span. `None` if it is to be appended: the recording is used up.
    pub(super) fn open(
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
        let found = opening_key(&kind).and_then(|key| state.take(&key));
        let Some((place, event)) = found.and_then(|place| Some((place, events.get(place)?))) else {
            let span = new();
            state.hold(span, kind);
            return Some(span);
        };
        if let Err(part) = same_call(&event.kind, &kind) {
            let executed = format!("{} with {part}", describe(&kind));
            state.diverge(events, place, executed);
        }
        Some(event.span)
    }

    /// How this attempt of a model or tool continues. Waits until it is its turn, or until the
    /// recording is used up.
    pub(crate) async fn recorded_step(&self, span: SpanId) -> RecordedAttemptStep {
        poll_fn(|cx| {
            let mut state = self.lock();
            let attempt = self.recording.attempt(span);
            if self.is_live() {
                return Poll::Ready(RecordedAttemptStep::Unknown { in_doubt: attempt.is_some() });
            }
            let steps = attempt.into_iter().flat_map(|it| &it.steps);
            if let Some(place) = steps.copied().find(|place| !state.matched[*place])
                && let Some(event) = self.recording.events().get(place)
                && (state.delivered.remove(&span) || self.is_due_now(&mut state, span, place))
            {
                state.waiting.remove(&span);
                return Poll::Ready(RecordedAttemptStep::Event(Arc::clone(event)));
            }
            state.waiting.insert(span, cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether the end of an attempt is the next recorded event, at the same moment: then the run
    /// did not wait for it, and does nothing else before it.
    fn is_due_now(&self, state: &mut ReplayState, span: SpanId, place: usize) -> bool {
        let events = self.recording.events();
        let Some(end) = events.get(place) else { return false };
        let now = self.clock.now().saturating_duration_since(self.started);
        if end.at.duration().saturating_sub(now) >= SAME_MOMENT {
            return false;
        }
        let open: Vec<usize> = (state.next..place).filter(|place| !state.matched[*place]).collect();
        if !open.iter().all(|place| self.is_inside(&events[*place], Some(span))) {
            return false;
        }
        for place in open {
            state.skip(place, &events[place]);
        }
        self.advance(end.at);
        true
    }

    /// Whether a model or tool published this event inside an attempt; `only`: inside this one.
    fn is_inside(&self, event: &Event, only: Option<SpanId>) -> bool {
        match event.kind {
            EventKind::ClientRetried { .. } => only.is_none_or(|span| event.span == span),
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
        if self.is_inside(event, None) || keys::is_never_repeated(&event.kind) {
            let place = state.next;
            state.skip(place, event);
            return RecordedInput::Skipped;
        }
        let first = state.next;
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
        if let Some(event) = self.recording.events().get(place) {
            state.skip(place, event);
        }
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
        let executed = state.held.first().map(|(_, kind)| describe(kind));
        let (place, none) = (state.next, || "nothing left to do".to_owned());
        state.diverge(self.recording.events(), place, executed.unwrap_or_else(none));
        state.divergence.clone()
    }

    /// The recording is used up: time becomes real, `first` and the events that were held are
    /// appended, and attempts that wait for their end continue. Returns the commands that were sent
    /// before.
    pub(super) fn go_live(
        &self,
        first: EventKind,
        append: impl Fn(SpanId, EventKind),
    ) -> Vec<Command> {
        let mut state = self.lock();
        if self.is_live() || state.divergence.is_some() {
            return Vec::new();
        }
        self.clock.go_live();
        append(SpanId::RUN, first);
        for (span, kind) in std::mem::take(&mut state.held) {
            append(span, kind);
        }
        self.live.store(true, Ordering::Release);
        let ReplayState { waiting, commands, .. } = std::mem::take(&mut *state);
        drop(state);
        for waker in waiting.into_values() {
            waker.wake();
        }
        commands
    }
}

impl ReplayState {
    /// Matches an event with the first recorded one of this key.
    fn take(&mut self, key: &EventKey) -> Option<usize> {
        let place = self.unmatched.get_mut(key)?.pop_front()?;
        self.mark(place);
        Some(place)
    }

    fn mark(&mut self, place: usize) {
        self.matched[place] = true;
        while self.matched.get(self.next) == Some(&true) {
            self.next += 1;
        }
    }

    /// Marks an event as matched that the run does not publish.
    fn skip(&mut self, place: usize, event: &Event) {
        if let Some(places) = self.unmatched.get_mut(&key_of(event)) {
            places.retain(|it| *it != place);
        }
        self.mark(place);
    }

    fn hold(&mut self, span: SpanId, kind: EventKind) {
        if self.divergence.is_none() {
            self.held_spans.insert(span);
            self.held.push((span, kind));
        }
    }

    /// The run leaves its recording at this event. The first one counts.
    fn diverge(&mut self, events: &[Arc<Event>], place: usize, executed: String) {
        let seq = Seq(place as u64);
        if self.divergence.as_ref().is_none_or(|known| seq < known.seq) {
            let recorded = events.get(place).map_or_else(String::new, |it| describe(&it.kind));
            self.divergence = Some(Divergence { seq, recorded, executed });
        }
    }
}
