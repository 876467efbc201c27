//! The data of a run on the dashboard: its events, the world that they fold to, the playhead, and
//! the texts that are being streamed. Panes and the inspector read it; nothing in it is a selection
//! or a scroll position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::earlier::EarlierEvents;
use super::event_window::EventWindow;
use super::kept_run::KeptRun;
use super::next_message::{NextMessage, RunSession};
use super::pending_changes::PendingChanges;
use super::remote_run::RemoteRun;
use super::timeline::Timeline;
use crate::app::effect::LaunchRequest;
use crate::app::msg::PartialText;
use crate::event::{Command, Elapsed, Event, RunId, Seq, SpanId, World};

/// The data of one run.
#[derive(Debug)]
pub struct RunData {
    id: RunId,
    zero: Duration,
    pub(super) log: EventWindow,
    pub(super) world: World,
    pub(super) past: Timeline,
    /// Where the events are that left memory.
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

    /// The id of the run.
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

    /// The event that opened a span.
    pub fn opening_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world.spans.get(span)?.opened_by)
    }

    /// The event that closed a span.
    pub fn closing_event(&self, span: SpanId) -> Option<&Event> {
        self.event(self.world.spans.get(span)?.closed_by?)
    }

    /// The text that a span has received so far; `None` while the past is shown.
    pub fn live(&self, span: SpanId) -> Option<&PartialText> {
        if self.is_scrubbed() { None } else { self.live.get(&span) }
    }

    /// Whether all of the run's events were dropped to bound memory.
    pub fn is_log_dropped(&self) -> bool {
        self.log.is_empty() && self.world.tally.events > 0
    }

    /// The request that started the run, if known.
    pub fn launch(&self) -> Option<&LaunchRequest> {
        self.session.launch.as_deref()
    }

    /// Stores the request that started the run, if it is known.
    pub(in crate::app) fn set_launch(&mut self, launch: Option<Box<LaunchRequest>>) {
        self.session.launch = launch.or(self.session.launch.take());
    }

    /// The next message of the session.
    pub fn next_message(&self) -> &NextMessage {
        &self.session.next
    }

    /// Replaces the next message of the session; returns the previous one.
    pub(in crate::app) fn replace_message(&mut self, next: NextMessage) -> NextMessage {
        std::mem::replace(&mut self.session.next, next)
    }

    /// Records that this command was sent to the run.
    pub(in crate::app) fn record_command(&mut self, command: &Command) {
        self.pending.record(command);
    }

    /// Adds new events.
    pub(super) fn apply(&mut self, events: &[Arc<Event>]) {
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
    pub(super) fn set_live(&mut self, span: SpanId, text: Option<PartialText>) -> bool {
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
    pub(super) fn seek(&mut self, events: usize) {
        self.past.seek(events, &self.log);
    }

    /// Moves the playhead back to the head of the log.
    pub(super) fn go_live(&mut self) {
        self.past.go_live();
    }

    /// Drops the events before this one, or nearly all of them; returns the place of the first event that
    /// is left, if any event was dropped.
    pub(super) fn drop_before(&mut self, before: Seq) -> Option<usize> {
        let place = self.log.place(before).min(self.log.len().saturating_sub(1));
        let place = self.past.drop_before(place, &self.log)?;
        self.log.drop_before(place);
        if let Some(first) = self.log.first() {
            self.world.forget_before(first.seq);
        }
        Some(place)
    }

    /// Drops all events, and everything kept for scrubbing. The world stays.
    pub(super) fn drop_log(&mut self) {
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

/// The own clock of a run was zero then.
pub(in crate::app) fn set_zero(run: &mut RunData, zero: Duration) {
    run.zero = zero;
}
