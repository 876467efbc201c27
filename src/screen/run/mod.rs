//! The page of one run: its data, and the operator's focus, selections and scroll positions.
//! Drawing it is a pure function of the page.

mod actions;
pub mod copy;
pub mod data;
pub mod earlier;
pub mod events;
pub mod filter;
pub mod header;
pub mod inspector;
pub mod layout;
pub mod origin;
pub(super) mod pane_text;
mod scrubber;
mod speech;
mod timeline;
pub mod views;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::data::RunData;
use self::earlier::EarlierRequest;
use self::inspector::calls::call_of;
use super::DrawContext;
use super::effect::Effect;
use super::key::KeyPress;
use super::keymap::Context;
use super::layout::Size;
use super::msg::PartialText;
use super::questions::QuestionKey;
use super::text::{Pen, clear};
use crate::log::event::{Event, RunId, Seq, SpanId, World};
use crate::log::world::{Projection, RunState};
use crate::words::patterns::{Progress, closest_limit, words_of};
use crate::words::styled::StyleRole;

pub use self::data::EventWindow;
pub use self::events::EventList;
pub use self::inspector::Inspector;
pub use self::layout::{Areas, PageShape, Pane};
pub use self::origin::NextMessage;
pub use self::views::PageViews;

/// Interval at which a running clock is redrawn.
const TICK: Duration = Duration::from_millis(100);
/// The interval with decorative motion switched off.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// Maximum number of new events that are filtered as soon as they arrive; larger batches wait for a
/// tick.
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

    /// Whether it is live and a question to a person is open.
    pub fn waits_for_person(&self) -> bool {
        let world = self.world();
        world.progress.is_live() && world.questions.oldest().is_some()
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
            // Every branch waits for a person: only the age of a question changes.
            _ if self.run.world().progress.stopped_since().is_some() => false,
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

/// What the page did with an input.
#[derive(Debug)]
pub enum InputOutcome {
    Handled {
        /// Whether the screen must be redrawn.
        redraw: bool,
    },
    /// The page handled it; the shell has to carry out these effects.
    Emit(Vec<Effect>),
    /// The page handled it, with a message for the operator.
    Say(String),
    /// The page handled it: the card of this open question opens.
    OpenCard(QuestionKey),
    /// The page handled it, and needs events that left memory.
    Earlier(EarlierRequest),
    /// The page has no use for it; the dashboard may.
    Ignored,
}

impl InputOutcome {
    pub(crate) fn redraw() -> Self {
        Self::Handled { redraw: true }
    }
}

pub fn progress_of(world: &World) -> Progress {
    let pattern = words_of(world).map(|words| words.progress(world)).unwrap_or_default();
    Progress { spending: closest_limit(world), ..pattern }
}

impl RunPage {
    /// The progress in the world that is shown.
    pub fn progress(&self) -> Progress {
        progress_of(self.shown())
    }
}

/// Draws a run in the area between the header and the key row.
pub fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    clear(buf, area);
    if page.inspector().is_some() {
        inspector::render(page, cx, area, buf);
        return;
    }
    let areas = page.areas(area);
    let view = page.views.shown();
    goal(page, cx, areas.goal, buf);
    layout::render(page, view, cx, area, &areas, buf);
    for pane in Pane::ALL {
        let Some(inside) = areas.pane(pane) else { continue };
        match pane {
            Pane::Events => events::render(page, cx, inside, buf),
            _ => view.pane(page, pane, cx, inside, buf),
        }
    }
    scrubber::render(page, cx, areas.scrubber, buf);
}

/// Draws the purpose of the run: its goal, or the message that it answers.
fn goal(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some(head) = world.head.as_deref() else { return };
    let session = world.projection().and_then(Projection::session);
    let (label, text) = match session.filter(|session| session.message > 1) {
        Some(session) => ("message", &*session.text),
        None if world.observed().is_some_and(|of| of.named.input.is_some()) => {
            ("input", head.goal.as_str())
        }
        None if world.observed().is_some() => ("program", head.goal.as_str()),
        None => ("goal", head.goal.as_str()),
    };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(1).put(label, cx.theme.style(StyleRole::Dim)).space(1);
    let room = pen.left().saturating_sub(1);
    pen.put_within(text, room, cx.theme.style(StyleRole::Text));
}
