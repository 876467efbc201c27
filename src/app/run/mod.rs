//! The page of one run: its data, and the operator's focus, selections and scroll positions.
//! `ui/run` draws it.

mod actions;
mod comparison;
pub mod controls;
mod copy;
pub mod data;
mod dropped_events;
pub mod filter;
mod filter_input;
mod focus;
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
mod text_window;
mod timeline;
pub mod tool_summary;
mod tools;
pub mod view;
pub mod waterfall;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub use self::comparison::RunComparison;
pub use self::inspect::Inspector;
pub use self::inspect::target::{CalleeKind, InspectTarget, Tab};
pub use self::layout::{Areas, PageShape, Pane};
pub use self::list::EventList;
pub use self::next_message::NextMessage;
pub use self::pending_changes::PendingChanges;
pub use self::run_log::RunLog;
pub use self::subject::Subject;
pub use self::view::View;
pub use self::waterfall::WaterfallRow;

use self::data::RunData;
use self::focus::PaneFocus;
use self::inspect::calls::call_of;
use self::next_message::RunSession;
use self::scroll::Scroll;
use self::tools::ToolsView;
use super::effect::{Effect, LaunchRequest};
use super::key::KeyPress;
use super::keymap::Context;
use super::msg::PartialText;
use crate::event::world::RunState;
use crate::event::{Event, RunId, Seq, SpanId};

/// Interval at which a running clock is redrawn.
const TICK: Duration = Duration::from_millis(100);
/// The interval with decorative motion switched off.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// Most new events that are filtered as soon as they arrive; larger batches wait for a tick.
const MAX_UNDELAYED: usize = 64;

/// One run on the dashboard. It reads as its data; what else it has is where the operator looks.
#[derive(Debug)]
pub struct RunPage {
    run: RunData,
    selection: Selection,
    round: Option<u32>,
    /// The selected row of the waterfall; `None` follows the run.
    row: Option<WaterfallRow>,
    /// Selections and scroll positions in the panes of a team.
    team: team::TeamView,
    /// Selections and scroll positions in the panes of research.
    research: research::ResearchView,
    /// First row in view of the subject's text; `None` follows its newest words.
    text_scroll: Option<Scroll>,
    tools: ToolsView,
    panes: PaneFocus,
    list: EventList,
    inspector: Option<Inspector>,
    session: RunSession,
}

impl Deref for RunPage {
    type Target = RunData;

    fn deref(&self) -> &RunData {
        &self.run
    }
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
            run: RunData::new(id, zero),
            selection: Selection::Follow,
            round: None,
            row: None,
            team: team::TeamView::default(),
            research: research::ResearchView::default(),
            text_scroll: None,
            tools: ToolsView::default(),
            panes: PaneFocus::default(),
            list: EventList::default(),
            inspector: None,
            session: RunSession::default(),
        }
    }

    /// The data of the run, for changes.
    pub(super) fn data_mut(&mut self) -> &mut RunData {
        &mut self.run
    }

    /// The focused pane.
    pub fn focus(&self) -> Pane {
        self.panes.focus
    }

    /// The view of the page: its pattern's own, or the tools over it.
    pub fn view(&self) -> View {
        if self.tools.is_open { View::Tools } else { View::of_world(self.world()) }
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

    /// The request that started the run, if known.
    pub fn launch(&self) -> Option<&LaunchRequest> {
        self.session.launch.as_deref()
    }

    /// Stores the request that started the run, if it is known.
    pub(super) fn set_launch(&mut self, launch: Option<Box<LaunchRequest>>) {
        self.session.launch = launch.or(self.session.launch.take());
    }

    /// The next message of the session.
    pub fn next_message(&self) -> &NextMessage {
        &self.session.next
    }

    /// Replaces the next message of the session; returns the previous one.
    pub(super) fn replace_message(&mut self, next: NextMessage) -> NextMessage {
        std::mem::replace(&mut self.session.next, next)
    }

    /// Adds new events.
    pub fn apply(&mut self, events: &[Arc<Event>]) {
        self.run.apply(events);
        if events.len() <= MAX_UNDELAYED && self.list.is_behind(self.run.log()) {
            self.list.scan(self.run.log(), self.run.world());
        }
        if self.inspector.as_ref().is_some_and(|open| self.concerns(open.target, events)) {
            self.refresh_inspector();
        }
        self.refresh_page_layout();
    }

    /// Whether new events may change what is known of a target.
    fn concerns(&self, target: InspectTarget, events: &[Arc<Event>]) -> bool {
        let Some(call) = call_of(&self.run, target) else { return false };
        let of_call = |event: &Arc<Event>| {
            event.span == call
                || self.world().spans.get(event.span).is_some_and(|span| span.parent == call)
        };
        events.iter().any(of_call)
    }

    /// Fills the open tab of the inspector again.
    fn refresh_inspector(&mut self) {
        if let Some(inspector) = &mut self.inspector {
            inspector.refresh(&self.run);
        }
    }

    /// Sets the text that a span has received so far.
    pub fn set_live(&mut self, span: SpanId, text: Option<PartialText>) -> InputOutcome {
        let changed = self.run.set_live(span, text);
        let parent = self.world().spans.get(span).map(|span| span.parent);
        let inspected = self.inspector.as_ref().and_then(|open| call_of(&self.run, open.target));
        if changed && inspected.is_some() && inspected == parent {
            self.refresh_inspector();
        }
        InputOutcome::Handled { redraw: changed && !self.is_scrubbed() }
    }

    /// Drops the events before this one, as the run's own log did; the world stays. A playhead
    /// among them moves to the first event that is left. Returns whether any event was dropped.
    pub fn drop_before(&mut self, before: Seq) -> bool {
        let place = self.run.drop_before(before);
        if let Some(place) = place {
            self.list.drop_before(place);
        }
        place.is_some()
    }

    /// Drops the events of a run that has ended, and everything kept for scrubbing. The world
    /// stays.
    pub fn drop_log(&mut self) {
        self.inspector = None;
        self.list = EventList::default();
        self.run.drop_log();
    }

    /// Filters another slice of the log.
    pub fn on_tick(&mut self) {
        if self.list.is_behind(self.run.log()) {
            self.list.scan(self.run.log(), self.run.world());
        }
    }

    /// Time until the page needs the next tick; `None` while nothing on it moves by itself.
    /// `animation`: whether decorative motion is on.
    pub fn next_tick(&self, now: Duration, animation: bool) -> Option<Duration> {
        if self.list.is_behind(self.run.log()) {
            return Some(Duration::ZERO);
        }
        let moves = match self.run.world().stage {
            RunState::Empty | RunState::Closed | RunState::Paused { .. } => false,
            RunState::Running | RunState::Pausing { .. } => !self.is_scrubbed(),
        };
        let step = if animation { TICK } else { SLOW_TICK };
        // Ticks are aligned to full steps of the run's own clock.
        let into = now.saturating_sub(self.run.zero()).as_micros() % step.as_micros();
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
        self.list.apply_typed(self.run.log());
        self.list.scan(self.run.log(), self.run.world());
    }
}
