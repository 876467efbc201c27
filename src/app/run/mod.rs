//! The page of one run: its events, the world that they fold to, and the operator's focus,
//! selections and scroll positions. `ui/run` draws it.

mod actions;
mod cause;
mod comparison;
pub mod controls;
mod copy;
pub mod document;
mod dropped_events;
pub mod filter;
mod filter_input;
pub mod inspect;
pub mod layout;
pub mod list;
pub mod list_cursor;
mod markdown;
mod mouse;
mod next_message;
mod pending_changes;
pub mod progress;
pub mod research;
pub mod results;
pub mod run_log;
pub mod scroll;
pub mod speech;
pub mod subject;
pub mod subject_text;
pub mod table;
pub mod task;
pub mod team;
mod timeline;
pub mod timing;
mod tool_calls;
pub mod tool_summary;
pub mod view;
pub mod waterfall;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use self::comparison::RunComparison;
pub use self::inspect::{CalleeKind, InspectTarget, Inspector, Tab};
pub use self::layout::{Areas, PageShape, Pane};
pub use self::list::EventList;
pub use self::next_message::NextMessage;
pub use self::pending_changes::PendingChanges;
pub use self::run_log::RunLog;
pub use self::subject::Subject;
pub use self::view::View;
pub use self::waterfall::WaterfallRow;

use self::scroll::Scroll;
use self::timeline::Timeline;
use super::effect::{Effect, LaunchRequest};
use super::key::KeyPress;
use super::keymap::Context;
use super::msg::PartialText;
use crate::base::name::ToolName;
use crate::event::world::RunState;
use crate::event::{Command, Elapsed, Event, RunId, Seq, SpanId, World};

/// Interval at which a running clock is redrawn.
const TICK: Duration = Duration::from_millis(100);
/// The interval with decorative motion switched off.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// Most new events that are filtered as soon as they arrive; larger batches wait for a tick.
const MAX_UNDELAYED: usize = 64;

/// One run on the dashboard.
#[derive(Debug)]
pub struct RunPage {
    id: RunId,
    zero: Duration,
    log: RunLog,
    world: World,
    past: Timeline,
    live: BTreeMap<SpanId, PartialText>,
    /// The view that covers the one of the run's own pattern, if any.
    overlay: Option<View>,
    focus: Pane,
    zoom: bool,
    upper: Pane,
    middle: Pane,
    selection: Selection,
    round: Option<u32>,
    /// The selected row of the waterfall; `None` follows the run.
    row: Option<WaterfallRow>,
    /// The selected tool.
    tool: Option<ToolName>,
    /// The latest run of the same scenario under the other policy.
    comparison: Option<RunComparison>,
    pending: PendingChanges,
    /// Selections and scroll positions in the panes of a team.
    team: team::TeamView,
    /// Selections and scroll positions in the panes of research.
    research: research::ResearchView,
    /// The request that started the run, if known.
    launch: Option<Box<LaunchRequest>>,
    /// The next message of the session, if any.
    next: NextMessage,
    list: EventList,
    /// First row in view of the subject's text; `None` follows its newest words.
    text_scroll: Option<Scroll>,
    inspector: Option<Inspector>,
    /// Whether the operator is dragging, from the scrubber.
    dragging: bool,
}

/// The selected seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// None: the page follows the current speaker.
    #[default]
    Follow,
    /// A seat of the sequence, from 0.
    Seat(usize),
    /// The model call at the end that composes the answer.
    Finalize,
}

/// What the page did with an input.
#[derive(Debug)]
pub enum InputOutcome {
    /// The page handled it.
    Handled {
        /// Whether the screen must be redrawn.
        redraw: bool,
    },
    /// The page handled it; the shell has to carry out these effects.
    Emit(Vec<Effect>),
    /// The page handled it, with a message for the operator.
    Say(String),
    /// The page has no use for it; the dashboard may.
    Ignored,
}

impl InputOutcome {
    fn redraw() -> Self {
        Self::Handled { redraw: true }
    }
}

impl RunPage {
    /// A page before its first event. `zero` is the time at which the run's own clock was zero,
    /// counted from the start of the program.
    pub fn new(id: RunId, zero: Duration) -> Self {
        Self {
            id,
            zero,
            log: RunLog::default(),
            world: World::new(),
            past: Timeline::default(),
            live: BTreeMap::new(),
            overlay: None,
            focus: Pane::First,
            zoom: false,
            upper: Pane::First,
            middle: Pane::Third,
            selection: Selection::Follow,
            round: None,
            row: None,
            tool: None,
            comparison: None,
            pending: PendingChanges::default(),
            team: team::TeamView::default(),
            research: research::ResearchView::default(),
            launch: None,
            next: NextMessage::default(),
            list: EventList::default(),
            text_scroll: None,
            inspector: None,
            dragging: false,
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
    pub fn log(&self) -> &RunLog {
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

    /// Records that this command was sent to the run.
    pub fn record_command(&mut self, command: &Command) {
        self.pending.record(command);
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
        if self.is_scrubbed() || !world.is_live() {
            return world.at;
        }
        Elapsed::from_duration(now.saturating_sub(self.zero)).max(world.at)
    }

    /// The run's own time at the head of its log, wherever the playhead is.
    pub fn head_time(&self, now: Duration) -> Elapsed {
        // The clock of a paused run is stopped.
        let rests = matches!(self.world.stage, RunState::Paused { .. });
        if rests || self.is_scrubbed() { self.world.at } else { self.time(now) }
    }

    /// The event with this number, if it is in memory.
    pub fn event(&self, seq: Seq) -> Option<&Event> {
        self.log.get(self.log.place(seq)).map(|event| &**event).filter(|event| event.seq == seq)
    }

    /// The place of an event in the log, or the place where it would be.
    fn place(&self, seq: Seq) -> usize {
        self.log.place(seq)
    }

    /// The text that a span has received so far; `None` while the past is shown.
    pub fn live(&self, span: SpanId) -> Option<&PartialText> {
        if self.is_scrubbed() { None } else { self.live.get(&span) }
    }

    /// The focused pane.
    pub fn focus(&self) -> Pane {
        self.focus
    }

    /// The view of the page: its pattern's own, or the tools over it.
    pub fn view(&self) -> View {
        self.overlay.unwrap_or_else(|| View::of_world(&self.world))
    }

    /// The selected seat.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// The selected round among the stances.
    pub fn selected_round(&self) -> Option<u32> {
        self.round
    }

    /// The list of events.
    pub fn list(&self) -> &EventList {
        &self.list
    }

    /// The inspector, while it is open.
    pub fn inspector(&self) -> Option<&Inspector> {
        self.inspector.as_ref()
    }

    /// The context in which keys are looked up.
    pub fn context(&self) -> Context {
        if self.list.typing.is_some() {
            Context::Filter
        } else if self.inspector.is_some() {
            Context::Inspector
        } else {
            Context::Run
        }
    }

    /// Adds new events.
    pub fn apply(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.world.apply(event);
            self.pending.confirm(&event.kind);
            self.log.push(event);
            self.past.record(self.log.len(), &self.world);
            if event.kind.closes().is_some() {
                self.live.remove(&event.span);
            }
        }
        if events.len() <= MAX_UNDELAYED && self.list.is_behind(&self.log) {
            self.list.scan(&self.log, &self.world);
        }
        if self.inspector.as_ref().is_some_and(|open| self.concerns(open.target, events)) {
            self.refresh_inspector();
        }
        self.refresh_page_layout();
    }

    /// Whether new events may change what is known of a target.
    fn concerns(&self, target: InspectTarget, events: &[Arc<Event>]) -> bool {
        let Some(call) = self.call_of(target) else { return false };
        let of_call = |event: &Arc<Event>| {
            event.span == call
                || self.world.spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        events.iter().any(of_call)
    }

    /// Whether all of the run's events were dropped to bound memory.
    pub fn is_log_dropped(&self) -> bool {
        self.log.is_empty() && self.world.tally.events > 0
    }

    /// Sets the text that a span has received so far.
    pub fn set_live(&mut self, span: SpanId, text: Option<PartialText>) -> InputOutcome {
        let closed = self.world.spans.get(span).is_some_and(|span| span.closed.is_some());
        let changed = match text.filter(|_| !closed) {
            // The text only grows, so its length tells whether there is more.
            Some(text) if self.live.get(&span).is_some_and(|had| is_unchanged(had, &text)) => false,
            Some(text) => {
                self.live.insert(span, text);
                true
            }
            // The last text stays until the event that closes the span arrives.
            None if !closed => false,
            None => self.live.remove(&span).is_some(),
        };
        let parent = self.world.spans.get(span).map(|span| span.parent);
        let inspected = self.inspector.as_ref().and_then(|open| self.call_of(open.target));
        if changed && inspected.is_some() && inspected == parent {
            self.refresh_inspector();
        }
        InputOutcome::Handled { redraw: changed && !self.is_scrubbed() }
    }

    /// Drops the events of a run that has ended, and everything kept for scrubbing. The world
    /// stays.
    pub fn drop_log(&mut self) {
        self.inspector = None;
        self.list = EventList::default();
        self.past = Timeline::default();
        self.log = RunLog::default();
    }

    /// Filters another slice of the log.
    pub fn on_tick(&mut self) {
        if self.list.is_behind(&self.log) {
            self.list.scan(&self.log, &self.world);
        }
    }

    /// Time until the page needs the next tick; `None` while nothing on it moves by itself.
    /// `animation`: whether decorative motion is on.
    pub fn next_tick(&self, now: Duration, animation: bool) -> Option<Duration> {
        if self.list.is_behind(&self.log) {
            return Some(Duration::ZERO);
        }
        let moves = match self.world.stage {
            RunState::Empty | RunState::Closed | RunState::Paused { .. } => false,
            RunState::Running | RunState::Pausing { .. } => !self.is_scrubbed(),
        };
        let step = if animation { TICK } else { SLOW_TICK };
        // Ticks are aligned to full steps of the run's own clock.
        let into = now.saturating_sub(self.zero).as_micros() % step.as_micros();
        let into = Duration::from_micros(u64::try_from(into).unwrap_or(0));
        moves.then(|| step.saturating_sub(into).max(Duration::from_millis(1)))
    }

    /// Handles a key without a binding: text typed into a filter.
    pub fn on_key(&mut self, key: KeyPress) -> InputOutcome {
        let taken = self.list.typing.as_mut().is_some_and(|typed| typed.on_key(key));
        if !taken {
            return InputOutcome::Ignored;
        }
        self.filter_typed();
        InputOutcome::redraw()
    }

    /// Handles a paste into the filter.
    pub fn on_paste(&mut self, text: &str) -> InputOutcome {
        match &mut self.list.typing {
            Some(typed) => {
                typed.insert(text);
                self.filter_typed();
                InputOutcome::redraw()
            }
            None => InputOutcome::Ignored,
        }
    }

    fn filter_typed(&mut self) {
        self.list.apply_typed(&self.log);
        self.list.scan(&self.log, &self.world);
    }
}

/// Whether no more text has arrived.
fn is_unchanged(had: &PartialText, text: &PartialText) -> bool {
    let of = |live: &PartialText| (live.text.len(), live.pieces, live.first_at, live.last_at);
    of(had) == of(text)
}
