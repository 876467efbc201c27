//! Events of a run of this session that left memory. They are read back from the store when the
//! operator wants to see them: the whole log is folded again on its own, the page takes it over,
//! and lets the events go again.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::data::RunData;
use super::events::EventList;
use super::inspector::InspectTarget;
use super::timeline::Timeline;
use super::{EventWindow, InputOutcome, Pane, RunPage};
use crate::log::event::{Elapsed, Event, EventKind, RunId, Seq, SpanId, World};
use crate::screen::action::Action;
use crate::screen::effect::{Effect, RequestId, Update};
use crate::screen::layout::Size;
use crate::screen::notice::NoticeKind;
use crate::screen::state::{ActiveScreen, AppState, visible_run_mut};
use crate::words::format;

/// What the operator wants to see once the events are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRequest {
    /// The run after this many events.
    Playhead(usize),
    /// This event in the list of events.
    Event(Seq),
    /// What the inspector shows.
    Inspected,
    /// The whole run: all of its events left memory.
    All,
}

/// The events that left memory: stored, being read, or in memory again.
#[derive(Debug, Default)]
pub struct EarlierEvents {
    /// Whether the store may have them.
    is_stored: bool,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Not in memory, if any left it.
    #[default]
    Away,
    /// They are being read.
    Reading(Box<ReadLog>),
    /// They are in memory, as long as the operator looks at them.
    Here {
        /// The events before this one leave memory then; `None`: all.
        before: Option<Seq>,
    },
}

/// A log while it is read back.
#[derive(Debug)]
pub(crate) struct ReadLog {
    request: RequestId,
    pub wish: EarlierRequest,
    pub log: EventWindow,
    pub world: World,
    pub past: Timeline,
}

impl ReadLog {
    /// Takes the next event of the log; ignores any other one.
    pub fn apply(&mut self, event: &Arc<Event>) {
        if event.seq.0 == self.log.len() as u64 {
            self.world.apply(event);
            self.log.push(event);
            self.past.record(self.log.len(), &self.world);
        }
    }
}

impl EarlierEvents {
    /// Whether the store may have the events that left memory.
    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Events leave memory; whether the store may have them.
    pub(crate) fn set_stored(&mut self, is_stored: bool) {
        self.is_stored = is_stored;
    }

    /// Whether they are being read.
    pub fn is_reading(&self) -> bool {
        matches!(self.place, Place::Reading(_))
    }

    /// They cannot be read.
    pub(crate) fn give_up(&mut self) {
        *self = Self::default();
    }

    /// They are requested from the store.
    pub(crate) fn begin(&mut self, request: RequestId, wish: EarlierRequest) {
        self.place = Place::Reading(Box::new(ReadLog {
            request,
            wish,
            log: EventWindow::default(),
            world: World::new(),
            past: Timeline::default(),
        }));
    }

    /// The operator wants to see something else, while they are read.
    fn set_wish(&mut self, new: EarlierRequest) {
        if let Place::Reading(read) = &mut self.place {
            read.wish = new;
        }
    }

    /// Whether they are read by this request.
    fn is_answered_by(&self, request: RequestId) -> bool {
        matches!(&self.place, Place::Reading(read) if read.request == request)
    }

    /// Takes events that were read.
    pub(crate) fn take(&mut self, events: &[Arc<Event>]) {
        if let Place::Reading(read) = &mut self.place {
            events.iter().for_each(|event| read.apply(event));
        }
    }

    /// Requests that the events before this one, or all, leave memory. Returns whether they stay for
    /// now.
    pub(crate) fn hold(&mut self, drop_before: Option<Seq>) -> bool {
        let Place::Here { before } = &mut self.place else { return false };
        *before = drop_before;
        true
    }

    /// Ends the reading; `None`: nothing is being read.
    pub(crate) fn end_reading(&mut self) -> Option<ReadLog> {
        match std::mem::take(&mut self.place) {
            Place::Reading(read) => Some(*read),
            place => {
                self.place = place;
                None
            }
        }
    }

    /// They are in memory. The events before this one, or all, are to leave it again.
    pub(crate) fn arrive(&mut self, before: Option<Seq>) {
        self.place = Place::Here { before };
    }

    /// The events that have to leave memory again: those before the inner event, or all; `None`: no
    /// events.
    pub(crate) fn leaving(&self) -> Option<Option<Seq>> {
        match self.place {
            Place::Here { before } => Some(before),
            _ => None,
        }
    }

    /// They leave memory again.
    pub(crate) fn leave(&mut self) {
        self.place = Place::Away;
    }
}

/// Hands the events that were read from the store over to the page, and shows what the operator wanted
/// to see. The events read end where those in memory begin.
fn end_reading_back(page: &mut RunPage, size: Size) -> Result<(), String> {
    let data = &mut page.run;
    let Some(mut read) = data.earlier.end_reading() else { return Ok(()) };
    data.log.iter().for_each(|event| read.apply(event));
    let events = usize::try_from(data.world.tally.events).unwrap_or(usize::MAX);
    if read.log.len() < data.log.len().max(events) {
        let missing = format::exact(read.log.len() as u64 + 1);
        return Err(format!("the store has no event {missing}"));
    }
    let first = data.log.first().map(|event| event.seq);
    let playhead = data.past.event_count();
    let ReadLog { log, world, past, wish, .. } = read;
    (data.log, data.world, data.past) = (log, world, past);
    data.earlier.arrive(first);
    if let Some(events) = playhead {
        data.past.seek(events, &data.log);
    }
    page.list.on_read_back();
    show_wish(page, wish, size);
    Ok(())
}

/// Shows the place that the operator wanted to see before the events were read.
fn show_wish(page: &mut RunPage, wish: EarlierRequest, size: Size) {
    match wish {
        EarlierRequest::Inspected | EarlierRequest::All => {}
        EarlierRequest::Playhead(events) => drop(page.seek(events, size)),
        EarlierRequest::Event(seq) => {
            page.views.panes.focus_on(Pane::Events);
            let height = page.list_height(&page.areas_in(size));
            page.list.select(page.run.place(seq), page.run.log(), height);
        }
    }
    page.views.own.follow(&page.run.world().pattern);
    page.refresh_inspector();
    page.views.refresh(&page.run);
}

/// The events that were read back leave memory again unless the operator looks at them: where the page
/// is not on the screen, or shows the newest events. Returns whether they left.
fn let_earlier_go(page: &mut RunPage, on_screen: bool) -> bool {
    let Some(before) = page.run.earlier.leaving() else { return false };
    let at_end = !page.is_scrubbed() && page.list.follows() && page.inspector.is_none();
    if on_screen && (!at_end || before.is_none()) {
        return false;
    }
    page.run.earlier.leave();
    match before {
        Some(before) => drop(page.drop_before(before)),
        None => page.drop_log(),
    }
    true
}

/// Requests the events of the inspected target, if they left memory.
pub(super) fn read_inspected(run: &RunData, target: InspectTarget) -> InputOutcome {
    if run.is_target_dropped(target) && run.earlier.is_stored() {
        return InputOutcome::Earlier(EarlierRequest::Inspected);
    }
    InputOutcome::redraw()
}

/// The place of the event that a movement in the list selects, if that event left memory. A filtered
/// list has only events in memory.
pub(super) fn moves_before(
    list: &EventList,
    action: Action,
    log: &EventWindow,
    height: usize,
) -> Option<usize> {
    let first = log.dropped_count();
    if first == 0 || list.is_filtered() {
        return None;
    }
    let page = height.saturating_sub(1).max(1);
    let at = list.selected(log).unwrap_or(first);
    let to = match action {
        Action::Up => at.checked_sub(1)?,
        Action::PageUp if at == first => at.saturating_sub(page),
        Action::Top => 0,
        _ => return None,
    };
    (to < first).then_some(to)
}

/// Where the whole log is: in the store of this machine, or in the cluster of a watched run.
fn log_place(run: &RunData) -> &'static str {
    if run.is_of_cluster() { "cluster" } else { "store" }
}

impl RunData {
    /// Whether an event has happened and was dropped.
    pub fn is_dropped(&self, seq: Seq) -> bool {
        self.log().first().is_none_or(|first| seq < first.seq) && seq < self.world().progress.next
    }

    /// Whether all events of the inspected target were dropped.
    pub(super) fn is_target_dropped(&self, target: InspectTarget) -> bool {
        match target {
            InspectTarget::Event(seq) => self.is_dropped(seq),
            InspectTarget::Call(call) => match self.world().spans.get(call) {
                Some(span) => span.closed_by.is_some_and(|last| self.is_dropped(last)),
                None => self.log().dropped_count() > 0,
            },
        }
    }

    /// The notice that events were dropped, and why.
    pub fn dropped_notice(&self) -> String {
        let first = format::exact(self.log().dropped_count() as u64 + 1);
        if self.earlier.is_stored() {
            let place = log_place(self);
            return format!("The events before event {first} left memory; the {place} has them.");
        }
        format!("The events before event {first} were dropped to bound memory.")
    }

    /// Where the scrubber begins: at the start of the run, or at the first event in memory.
    pub fn scrubber_start(&self) -> Elapsed {
        let first = self.log().first().filter(|_| self.log().dropped_count() > 0);
        first.map_or(Elapsed(0), |first| first.at)
    }

    /// The part of the events pane that holds their rows: below the line that says how many were
    /// dropped, if any were.
    pub fn list_area(&self, pane: Rect) -> Rect {
        let head = u16::from(self.log().dropped_count() > 0 && pane.height > 1);
        Rect { y: pane.y + head, height: pane.height - head, ..pane }
    }

    /// The events in memory. If earlier ones were dropped, the head of the run still comes first,
    /// then an event that says how many are missing.
    pub(super) fn events_for_export(&self) -> Vec<Arc<Event>> {
        let (Some(first), Some(head)) = (self.log().first(), &self.world().head) else {
            return self.log().to_vec();
        };
        let missing = (self.log().dropped_count() as u64).saturating_sub(1);
        if missing == 0 {
            return self.log().to_vec();
        }
        let fact = |seq, at, kind| Arc::new(Event { seq: Seq(seq), at, span: SpanId::RUN, kind });
        let head = fact(0, Elapsed(0), EventKind::RunStarted(Arc::clone(head)));
        let note = fact(1, first.at, EventKind::EventsDropped { events: missing });
        [head, note].into_iter().chain(self.log().iter().cloned()).collect()
    }
}

/// The update after an input on the visible page.
pub(crate) fn after(state: &mut AppState, outcome: InputOutcome) -> Update {
    match outcome {
        InputOutcome::Say(text) => {
            state.notify(NoticeKind::Info, text);
            Update::redraw()
        }
        InputOutcome::Earlier(wish) => read(state, wish),
        outcome => outcome.into(),
    }
}

/// Requests the events of the run on the screen that left memory.
pub(crate) fn read(state: &mut AppState, wish: EarlierRequest) -> Update {
    let request = state.next_request();
    let Some(page) = visible_run_mut(state) else { return Update::idle() };
    let (run, gone) = (page.id().clone(), page.log().dropped_count());
    let from = log_place(page);
    let earlier = &mut page.data_mut().earlier;
    if earlier.is_reading() {
        earlier.set_wish(wish);
        return Update::idle();
    }
    earlier.begin(request, wish);
    let text = match gone {
        0 => format!("Reading the events from the {from}."),
        _ => format!("Reading {} earlier events from the {from}.", format::exact(gone as u64)),
    };
    state.notify(NoticeKind::Info, text);
    let effect = Effect::OpenKept { request, run, follows: false };
    Update { redraw: true, ..Update::effect(effect) }
}

/// Whether this request reads events of a run of this session back.
pub(crate) fn is_reading(state: &AppState, run: &RunId, request: RequestId) -> bool {
    let mut pages = state.runs.iter().filter(|page| page.id() == run);
    pages.any(|page| page.earlier.is_answered_by(request))
}

/// Takes events that were read back; `false`: the request is about something else.
pub(crate) fn take(
    state: &mut AppState,
    run: &RunId,
    request: RequestId,
    events: &[Arc<Event>],
) -> bool {
    let is_reading = is_reading(state, run, request);
    if is_reading && let Some(page) = state.run_mut(run) {
        page.data_mut().earlier.take(events);
    }
    is_reading
}

/// The store has sent all of its events.
pub(crate) fn on_read(state: &mut AppState, run: &RunId, problem: Option<String>) -> Update {
    let size = state.size;
    let Some(page) = state.run_mut(run) else { return Update::idle() };
    let read = end_reading_back(page, size).map_err(|why| problem.unwrap_or(why));
    if let Err(why) = read {
        page.data_mut().earlier.give_up();
        let text = format!("The events of {run} that left memory cannot be read: {why}.");
        state.notify(NoticeKind::Error, text);
    }
    Update::redraw()
}

/// Lets go of events that were read back and are not looked at any more, and reads those of a run on the
/// screen that has none in memory.
pub(crate) fn follow_screen(state: &mut AppState, update: &mut Update) {
    let shown = match &state.screen {
        ActiveScreen::Run(id) => Some(id),
        ActiveScreen::Home => None,
    };
    for page in &mut state.runs {
        let on_screen = shown == Some(page.id());
        update.redraw |= let_earlier_go(page, on_screen) && on_screen;
    }
    let is_wanted = |page: &RunPage| {
        page.is_log_dropped() && page.earlier.is_stored() && !page.earlier.is_reading()
    };
    if state.visible_run().is_some_and(is_wanted) {
        let reading = read(state, EarlierRequest::All);
        update.effects.extend(reading.effects);
        update.redraw = true;
    }
}
