//! The data of a run on the dashboard: its last events, the world that they fold to, the playhead,
//! the texts that are being streamed, and manual changes that no event has confirmed yet. Nothing
//! in it is a selection or a scroll position.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::earlier::EarlierEvents;
use super::origin::{KeptRun, NextMessage, RemoteRun, RunSession};
use super::timeline::Timeline;
use crate::base::name::{FlagName, ToolName};
use crate::log::event::{
    Command, Elapsed, Event, EventKind, LimitChange, RunId, Seq, SpanId, World,
};
use crate::log::facts::agents::MemberChange;
use crate::log::world::{EventLog, RunState};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::screen::effect::{LaunchRequest, RunBeginning};
use crate::screen::msg::PartialText;

/// The data of one run.
#[derive(Debug)]
pub struct RunData {
    id: RunId,
    zero: Duration,
    pub(crate) log: EventWindow,
    pub(crate) world: World,
    pub(crate) past: Timeline,
    pub earlier: EarlierEvents,
    live: BTreeMap<SpanId, PartialText>,
    pending: PendingChanges,
    session: RunSession,
    /// The kept run that this is; `None` for a run of this session.
    pub kept: Option<Box<KeptRun>>,
    /// The runner that plays it; `None` for a run of this program.
    pub remote: Option<Box<RemoteRun>>,
}

impl RunData {
    /// A run before its first event. `zero` is the time at which the run's own clock was zero,
    /// counted from the start of the program.
    pub fn new(id: RunId, zero: Duration) -> Self {
        Self {
            id,
            zero,
            log: EventWindow::default(),
            world: World::new(),
            past: Timeline::default(),
            earlier: EarlierEvents::default(),
            live: BTreeMap::new(),
            pending: PendingChanges::default(),
            session: RunSession::default(),
            kept: None,
            remote: None,
        }
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// When the run's own clock was zero, since the start of the program.
    pub fn zero(&self) -> Duration {
        self.zero
    }

    /// The run's events so far; only the last ones are in memory.
    pub fn log(&self) -> &EventWindow {
        &self.log
    }

    /// The world at the head of the log.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world at the playhead.
    pub fn shown(&self) -> &World {
        self.past.world().unwrap_or(&self.world)
    }

    /// Pending changes: limits and faults that were sent and not confirmed by an event yet.
    pub fn pending_changes(&self) -> &PendingChanges {
        &self.pending
    }

    /// The number of events that the shown world is folded from.
    pub fn shown_event_count(&self) -> usize {
        self.past.event_count().unwrap_or(self.log.len())
    }

    /// Whether the playhead is before the head of the log.
    pub fn is_scrubbed(&self) -> bool {
        self.past.event_count().is_some()
    }

    /// The run's own time: that of the clock while the head is shown, else that of the playhead.
    /// `now` is the time since the start of the program.
    pub fn time(&self, now: Duration) -> Elapsed {
        let world = self.shown();
        if self.is_scrubbed() || self.kept.is_some() || !world.progress.is_live() {
            return world.progress.at;
        }
        Elapsed::from_duration(now.saturating_sub(self.zero)).max(world.progress.at)
    }

    /// The run's own time at the head of its log, wherever the playhead is.
    pub fn head_time(&self, now: Duration) -> Elapsed {
        // The clock of a paused run is stopped.
        let rests = self.world.progress.stopped_since().is_some();
        if rests || self.is_scrubbed() { self.world.progress.at } else { self.time(now) }
    }

    /// The moment up to which bars are drawn; for a paused run, the moment of the pause.
    pub fn drawn_to(&self, now: Duration) -> Elapsed {
        self.shown().progress.stopped_since().unwrap_or_else(|| self.time(now))
    }

    /// The event with this number, if it is in memory.
    pub fn event(&self, seq: Seq) -> Option<&Event> {
        self.log.get(self.log.place(seq)).map(|event| &**event).filter(|event| event.seq == seq)
    }

    /// The last shown event that matches.
    pub fn last_shown(&self, so: impl Fn(&Event) -> bool) -> Option<&Event> {
        let mut shown = self.log.between(0, self.shown_event_count()).rev();
        shown.find(|event| so(event)).map(|event| &**event)
    }

    /// The place of an event in the log, or the place where it would be.
    pub fn place(&self, seq: Seq) -> usize {
        self.log.place(seq)
    }

    pub fn opening_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world.spans.get(span)?.opened_by)
    }

    pub fn closing_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world.spans.get(span)?.closed_by?)
    }

    /// The text that a span has received so far; `None` while the past is shown.
    pub fn live(&self, span: SpanId) -> Option<&PartialText> {
        if self.is_scrubbed() { None } else { self.live.get(&span) }
    }

    /// The spans with such a text.
    pub fn live_spans(&self) -> impl Iterator<Item = SpanId> {
        self.live.keys().copied().filter(|span| self.live(*span).is_some())
    }

    /// Whether all of the run's events were dropped to bound memory.
    pub fn is_log_dropped(&self) -> bool {
        self.log.is_empty() && self.world.tally.events > 0
    }

    /// The request that started the run, if known.
    pub fn launch(&self) -> Option<&LaunchRequest> {
        self.session.launch.as_deref()
    }

    /// Whether it is the run of the tour, which is not kept.
    pub fn is_of_tour(&self) -> bool {
        self.launch().is_some_and(|launch| launch.begins == RunBeginning::Tour)
    }

    /// Stores the request that started the run, if it is known.
    pub(crate) fn set_launch(&mut self, launch: Option<Box<LaunchRequest>>) {
        self.session.launch = launch.or(self.session.launch.take());
    }

    /// The next message of the session.
    pub fn next_message(&self) -> &NextMessage {
        &self.session.next
    }

    /// Replaces the next message of the session; returns the previous one.
    pub(crate) fn replace_message(&mut self, next: NextMessage) -> NextMessage {
        std::mem::replace(&mut self.session.next, next)
    }

    /// Records that this command was sent to the run.
    pub(crate) fn record_command(&mut self, command: &Command) {
        self.pending.record(command);
    }

    /// Adds new events.
    pub(crate) fn apply(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.world.apply(event);
            self.pending.confirm(&event.kind);
            self.log.push(event);
            self.past.record(self.log.len(), &self.world);
            if event.kind.closes().is_some() {
                self.live.remove(&event.span);
            }
        }
    }

    /// Sets the text that a span has received so far; returns whether it changed.
    pub(crate) fn set_live(&mut self, span: SpanId, text: Option<PartialText>) -> bool {
        let closed = self.world.spans.get(span).is_some_and(|span| span.closed.is_some());
        match text.filter(|_| !closed) {
            // The text only grows, so its length tells whether there is more.
            Some(text) if self.live.get(&span).is_some_and(|had| is_unchanged(had, &text)) => false,
            Some(text) => {
                self.live.insert(span, text);
                true
            }
            // The last text stays until the event that closes the span arrives.
            None if !closed => false,
            None => self.live.remove(&span).is_some(),
        }
    }

    /// Moves the playhead after this many events of the log.
    pub(crate) fn seek(&mut self, events: usize) {
        self.past.seek(events, &self.log);
    }

    /// Moves the playhead back to the head of the log.
    pub(crate) fn go_live(&mut self) {
        self.past.go_live();
    }

    /// Drops the events before this one, or nearly all of them; returns the place of the first event that
    /// is left, if any event was dropped.
    pub(crate) fn drop_before(&mut self, before: Seq) -> Option<usize> {
        let place = self.log.place(before).min(self.log.len().saturating_sub(1));
        let place = self.past.drop_before(place, &self.log)?;
        self.log.drop_before(place);
        if let Some(first) = self.log.first() {
            self.world.forget_before(first.seq);
        }
        Some(place)
    }

    /// Whether a runner of a cluster plays it.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.pid.is_none())
    }

    /// Whether another process of this user plays it.
    pub(crate) fn is_of_process(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.pid.is_some())
    }

    /// The process that plays it is gone: nothing moves any more, whether or not the run has ended.
    pub(crate) fn lose(&mut self) {
        self.world.progress.stage = RunState::Closed;
        self.live = BTreeMap::new();
        if let Some(remote) = &mut self.remote {
            remote.is_reached = self.world.progress.closed.is_some();
        }
    }

    /// Drops all events, and everything kept for scrubbing. The world stays.
    pub(crate) fn drop_log(&mut self) {
        self.past = Timeline::default();
        self.log = EventWindow::default();
        self.live = BTreeMap::new();
        // The list shows how far it came and what it used, not its calls.
        self.world.forget_before(Seq(u64::MAX));
    }
}

/// Whether no more text has arrived.
fn is_unchanged(had: &PartialText, text: &PartialText) -> bool {
    let of = |live: &PartialText| (live.text.len(), live.pieces, live.first_at, live.last_at);
    of(had) == of(text)
}

/// Sets when the run's own clock was zero.
pub(crate) fn set_zero(run: &mut RunData, zero: Duration) {
    run.zero = zero;
}

/// The events of a run, of which only the last are in memory. A place counts from the first event
/// of the run, so the place of an event never changes.
#[derive(Clone, Debug, Default)]
pub struct EventWindow {
    events: VecDeque<Arc<Event>>,
    dropped: usize,
}

impl EventWindow {
    /// Number of events so far, that is the place after the last one.
    pub fn len(&self) -> usize {
        self.dropped + self.events.len()
    }

    /// Whether no event is in memory.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of dropped events, that is the place of the first one in memory.
    pub fn dropped_count(&self) -> usize {
        self.dropped
    }

    /// The event at this place, if it is in memory.
    pub fn get(&self, place: usize) -> Option<&Arc<Event>> {
        self.events.get(place.checked_sub(self.dropped)?)
    }

    /// The first event in memory.
    pub fn first(&self) -> Option<&Arc<Event>> {
        self.events.front()
    }

    pub fn last(&self) -> Option<&Arc<Event>> {
        self.events.back()
    }

    /// The events in memory, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.events.iter()
    }

    /// The events in memory at the places `from..to`.
    pub fn between(&self, from: usize, to: usize) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let place = |place: usize| place.saturating_sub(self.dropped).min(self.events.len());
        let (from, to) = (place(from), place(to));
        self.events.range(from.min(to)..to)
    }

    /// The place of the first event that does not match, if all that match come before it.
    pub fn partition_point(&self, so: impl Fn(&Event) -> bool) -> usize {
        self.dropped + self.events.partition_point(|event| so(event))
    }

    /// The place of an event, or the place where it would be.
    pub(crate) fn place(&self, seq: Seq) -> usize {
        let place = usize::try_from(seq.0).unwrap_or(usize::MAX);
        if self.get(place).is_some_and(|event| event.seq == seq) {
            return place;
        }
        self.partition_point(|event| event.seq < seq)
    }

    pub(crate) fn push(&mut self, event: &Arc<Event>) {
        self.events.push_back(Arc::clone(event));
    }

    /// Drops the events before this place.
    pub(crate) fn drop_before(&mut self, place: usize) {
        let gone = place.saturating_sub(self.dropped).min(self.events.len());
        self.events.drain(..gone);
        self.dropped += gone;
        // Many small events may have made the buffer long.
        if self.events.capacity() > 4 * self.events.len().max(1_024) {
            self.events.shrink_to(2 * self.events.len());
        }
    }

    /// The events in memory, for an export.
    pub(crate) fn to_vec(&self) -> Vec<Arc<Event>> {
        self.events.iter().cloned().collect()
    }
}

impl EventLog for EventWindow {
    fn find_before(&self, seq: Seq, so: &dyn Fn(&Event) -> bool) -> Option<Seq> {
        let mut before = self.between(0, self.place(seq)).rev();
        before.find(|event| so(event)).map(|event| event.seq)
    }

    fn last_dropped(&self) -> Option<Seq> {
        Some(Seq(self.dropped.checked_sub(1)? as u64))
    }
}

/// One pending change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PendingChange {
    Parallel(u32),
    Limit(ToolName, LimitChange),
    Fault(ToolName, FaultKind, Option<InjectedFault>),
    Member(MemberChange),
    Flag(FlagName, bool),
}

impl PendingChange {
    fn from_command(command: &Command) -> Option<Self> {
        Some(match command {
            Command::SetParallel { max_parallel, .. } => Self::Parallel(*max_parallel),
            Command::SetLimit { tool, change, .. } => Self::Limit(tool.clone(), *change),
            Command::Inject { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            Command::RemoveFault { tool, kind, .. } => Self::Fault(tool.clone(), *kind, None),
            Command::Roster(command) => Self::Member(command.member_change()?),
            Command::SetFlag { flag, on, .. } => Self::Flag(flag.clone(), *on),
            _ => return None,
        })
    }

    fn from_event(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::ConcurrencyChanged { max_parallel, .. } => Self::Parallel(*max_parallel),
            EventKind::LimitsChanged { tool, change, .. } => Self::Limit(tool.clone(), *change),
            EventKind::FaultInjected { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            EventKind::FaultRemoved { tool, fault, .. } => Self::Fault(tool.clone(), *fault, None),
            EventKind::FlagChanged { flag, on, .. } => Self::Flag(flag.clone(), *on),
            EventKind::Pattern(fact) => Self::from_command(&fact.get().confirms()?)?,
            _ => return None,
        })
    }

    /// Whether both change the same setting, to the same value or to another.
    fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Parallel(_), Self::Parallel(_)) => true,
            (Self::Limit(tool, one), Self::Limit(same, other)) => {
                tool == same && std::mem::discriminant(one) == std::mem::discriminant(other)
            }
            (Self::Fault(tool, kind, _), Self::Fault(same, other, _)) => {
                tool == same && kind == other
            }
            (Self::Member(one), Self::Member(other)) => one.is_about_same_member(other),
            (Self::Flag(flag, _), Self::Flag(same, _)) => flag == same,
            _ => false,
        }
    }
}

/// The pending changes, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingChanges {
    changes: Vec<PendingChange>,
}

impl PendingChanges {
    /// Records a command that was sent to the run.
    pub fn record(&mut self, command: &Command) {
        let Some(change) = PendingChange::from_command(command) else { return };
        // The run switches a flag once, at its next boundary, to the position that was set last.
        if matches!(change, PendingChange::Flag(..)) {
            self.changes.retain(|before| !before.is_about(&change));
        }
        self.changes.push(change);
    }

    /// Removes the change that this event confirms; the end of the run removes them all.
    pub fn confirm(&mut self, kind: &EventKind) {
        if matches!(kind, EventKind::RunClosed(_)) {
            self.changes.clear();
        }
        let Some(done) = PendingChange::from_event(kind) else { return };
        if let Some(at) = self.changes.iter().position(|asked| asked.is_about(&done)) {
            self.changes.remove(at);
        }
    }

    /// The pending changes of members, newest first.
    pub fn members(&self) -> impl Iterator<Item = &MemberChange> {
        self.changes.iter().rev().filter_map(|turn| match turn {
            PendingChange::Member(change) => Some(change),
            _ => None,
        })
    }

    /// The pending position of a flag; `now` if none is pending.
    pub fn flag(&self, flag: &FlagName, now: bool) -> bool {
        let asked = self.changes.iter().rev().find_map(|turn| match turn {
            PendingChange::Flag(name, on) if name == flag => Some(*on),
            _ => None,
        });
        asked.unwrap_or(now)
    }

    /// The pending limit on parallel tasks; `now` if none is pending.
    pub fn parallel(&self, now: u32) -> u32 {
        let asked = self.changes.iter().rev().find_map(|turn| match turn {
            PendingChange::Parallel(most) => Some(*most),
            _ => None,
        });
        asked.unwrap_or(now)
    }

    /// The pending value of this limit of a tool; `now` if none is pending.
    pub fn limit(&self, tool: &ToolName, now: LimitChange) -> LimitChange {
        let wanted = PendingChange::Limit(tool.clone(), now);
        let asked = self.changes.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(PendingChange::Limit(_, change)) => *change,
            _ => now,
        }
    }

    /// The pending fault of this kind; `now` if none is pending.
    pub fn fault(
        &self,
        tool: &ToolName,
        kind: FaultKind,
        now: Option<InjectedFault>,
    ) -> Option<InjectedFault> {
        let wanted = PendingChange::Fault(tool.clone(), kind, now);
        let asked = self.changes.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(PendingChange::Fault(.., fault)) => *fault,
            _ => now,
        }
    }
}
