//! The page of one run: its data, and the operator's focus, selections and scroll positions.
//! `ui/run` draws it.

mod actions;
pub(crate) mod active_filter;
pub mod controls;
pub(super) mod copy;
pub mod data;
pub(in crate::app) mod dropped_events;
pub mod earlier;
pub mod event_window;
pub mod filter;
pub(in crate::app) mod filter_input;
mod input_outcome;
pub mod inspect;
pub mod kept_run;
pub mod layout;
pub mod list;
pub mod list_cursor;
pub mod markdown;
mod marks;
mod mouse;
pub mod next_message;
pub(in crate::app) mod opened;
mod pane_focus;
mod pending_changes;
pub mod progress;
pub(in crate::app) mod read_back;
pub mod remote_run;
pub mod run_view;
pub mod scroll;
pub mod speech;
pub mod subject_text;
pub(crate) mod text_window;
pub(crate) mod time_track;
mod timeline;
pub mod tool_summary;
pub mod views;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Rect;

pub use self::event_window::EventWindow;
pub use self::input_outcome::InputOutcome;
pub use self::inspect::Inspector;
pub use self::inspect::target::{InspectTarget, Tab};
pub use self::layout::{Areas, PageShape, Pane};
pub use self::list::EventList;
pub use self::next_message::NextMessage;
pub use self::views::PageViews;

use self::data::RunData;
use self::inspect::calls::call_of;
use super::key::KeyPress;
use super::keymap::Context;
use super::layout::Size;
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
    /// The views in its panes.
    pub views: PageViews,
    list: EventList,
    inspector: Option<Inspector>,
}

impl Deref for RunPage {
    type Target = RunData;

    fn deref(&self) -> &RunData {
        &self.run
    }
}

impl RunPage {
    /// A page before its first event. `zero` is the time at which the run's own clock was zero,
    /// counted from the start of the program.
    pub fn new(id: RunId, zero: Duration) -> Self {
        Self {
            run: RunData::new(id, zero),
            views: PageViews::default(),
            list: EventList::default(),
            inspector: None,
        }
    }

    /// The data of the run, for changes.
    pub(super) fn data_mut(&mut self) -> &mut RunData {
        &mut self.run
    }

    /// The areas of everything on a page of this size.
    pub fn areas(&self, page: Rect) -> Areas {
        self.views.areas(&self.run, page)
    }

    fn areas_in(&self, size: Size) -> Areas {
        self.areas(layout::page(size))
    }

    /// The focused pane.
    pub fn focus(&self) -> Pane {
        self.views.panes.focus
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
        self.run.apply(events);
        self.views.own.follow(&self.run.world().pattern);
        // The level of events costs next to nothing.
        if events.len() <= MAX_UNDELAYED || !self.list.is_filtered() {
            self.list.catch_up(self.run.log(), self.run.world());
        }
        if self.inspector.as_ref().is_some_and(|open| open.concerns(&self.run, events)) {
            self.refresh_inspector();
        }
        self.views.refresh(&self.run);
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

    /// Drops the events before this one, which the run's own log has dropped, or nearly all of them. The
    /// world stays. A playhead among them moves to the first event that is left. Returns whether any event
    /// was dropped.
    pub fn drop_before(&mut self, before: Seq) -> bool {
        if self.run.earlier.hold(Some(before)) {
            return false;
        }
        let place = self.run.drop_before(before);
        if let Some(place) = place {
            self.list.drop_before(place);
        }
        place.is_some()
    }

    /// Drops the events of a run that has ended, and everything kept for scrubbing. The world
    /// stays.
    pub fn drop_log(&mut self) {
        if self.run.earlier.hold(None) {
            return;
        }
        self.inspector = None;
        self.list = EventList::default();
        self.run.drop_log();
    }

    /// Filters another slice of the log.
    pub fn on_tick(&mut self) {
        self.list.catch_up(self.run.log(), self.run.world());
    }

    /// Time until the page needs the next tick; `None` while nothing on it moves by itself.
    /// `animation`: whether decorative motion is on.
    pub fn next_tick(&self, now: Duration, animation: bool) -> Option<Duration> {
        if self.list.is_behind(self.run.log()) {
            return Some(Duration::ZERO);
        }
        let moves = match self.run.world().progress.stage {
            RunState::Empty | RunState::Closed | RunState::Paused { .. } => false,
            RunState::Running | RunState::Pausing { .. } => {
                !self.is_scrubbed() && self.kept.is_none()
            }
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
        self.list.filter_typed(self.run.log(), self.run.world());
        InputOutcome::redraw()
    }

    /// Handles a paste into the filter.
    pub fn on_paste(&mut self, text: &str) -> InputOutcome {
        match &mut self.list.typing {
            Some(typed) => {
                typed.insert(text);
                self.list.filter_typed(self.run.log(), self.run.world());
                InputOutcome::redraw()
            }
            None => InputOutcome::Ignored,
        }
    }
}
