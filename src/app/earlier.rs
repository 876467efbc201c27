//! Reads the events of a run of this session back from the store, when somebody wants to see what left
//! memory, and lets them go again.

use std::sync::Arc;

use super::effect::{Effect, Update};
use super::notice::NoticeKind;
use super::request::RequestId;
use super::run::dropped_events::log_place;
use super::run::earlier::EarlierWish;
use super::run::read_back::{end_reading_back, let_earlier_go};
use super::run::{InputOutcome, RunPage};
use super::state::{ActiveScreen, AppState, visible_run_mut};
use crate::event::{Event, RunId};
use crate::narrate::format;

/// What an input on the page on the screen led to.
pub(super) fn after(state: &mut AppState, outcome: InputOutcome) -> Update {
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
pub(super) fn read(state: &mut AppState, wish: EarlierWish) -> Update {
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
pub(super) fn is_reading(state: &AppState, run: &RunId, request: RequestId) -> bool {
    let mut pages = state.runs.iter().filter(|page| page.id() == run);
    pages.any(|page| page.earlier.is_answered_by(request))
}

/// Takes events that were read back; `false`: the request is about something else.
pub(super) fn take(
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

/// All that the store has was read.
pub(super) fn on_read(state: &mut AppState, run: &RunId, problem: Option<String>) -> Update {
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
pub(super) fn follow_screen(state: &mut AppState, update: &mut Update) {
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
        let reading = read(state, EarlierWish::All);
        update.effects.extend(reading.effects);
        update.redraw = true;
    }
}
