//! What the operator does with kept runs: open, pin, remove and bring back. The store answers with
//! the rows as they are then.

use std::sync::Arc;

use super::history::ListedRun;
use super::{HomePane, arrange_home};
use crate::log::event::{Event, RunId};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::screen::action::Action;
use crate::screen::effect::{Effect, KeptChange, RequestId, Update};
use crate::screen::keymap::key_of;
use crate::screen::notice::NoticeKind;
use crate::screen::run::origin::{KeptRun, end_reading, kept_page};
use crate::screen::run::{RunPage, earlier};
use crate::screen::state::{ActiveScreen, AppState};

/// Bytes of stored logs that opened runs may have together; beyond, the run that was shown longest
/// ago is dropped.
const MAX_OPENED_BYTES: u64 = 256 << 20;

/// Whether an action changes a run, which a kept run does not allow.
fn changes_run(action: Action) -> bool {
    matches!(
        action,
        Action::PauseResume
            | Action::Step
            | Action::StepRound
            | Action::Breakpoint
            | Action::Flags
            | Action::Faults
            | Action::Members
            | Action::Message
            | Action::Kill
            | Action::More
            | Action::Less
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable
    )
}

/// The kept run that an action would change: the one on the screen, else the selected one.
pub(crate) fn refused_run(state: &AppState, action: Action) -> Option<&RunId> {
    if !changes_run(action) {
        return None;
    }
    match &state.screen {
        ActiveScreen::Run(id) => {
            let page = state.run(id).filter(|page| page.kept.is_some())?;
            // While the past is shown, this key leads back to the end.
            let moves = action == Action::PauseResume && page.is_scrubbed();
            (!moves).then_some(page.id())
        }
        // On the first screen the kill switch is about all live runs.
        ActiveScreen::Home if action == Action::Kill => None,
        // A run is selected where the runs are listed, not while a scenario is.
        ActiveScreen::Home if state.home.preview_source != HomePane::Runs => None,
        ActiveScreen::Home => match state.selected_run()? {
            ListedRun::Kept(row) => Some(&row.id),
            ListedRun::Session(_) => None,
        },
    }
}

/// Whether the model calls of another program go through the proxy.
fn is_guarded(page: &RunPage) -> bool {
    let world = page.world();
    let is_steered = || world.head.as_ref().is_some_and(|head| head.model.is_steered());
    world.observed().is_some() && is_steered()
}

/// Whether an action would change an observed run. The kill switch interrupts its program, a message is a line of
/// its input.
pub(crate) fn is_only_watched(state: &AppState, action: Action) -> bool {
    let changes = changes_run(action) || matches!(action, Action::Fork | Action::Restart);
    let page = state.visible_run().or_else(|| state.target_run());
    let is_observed = page.is_some_and(|page| {
        let leads_back = action == Action::PauseResume && page.is_scrubbed();
        page.world().observed().is_some() && !leads_back && !is_guarded(page)
    });
    let begins_again = matches!(action, Action::Fork | Action::Restart);
    let is_guarded = page.is_some_and(|page| begins_again && is_guarded(page));
    changes && !matches!(action, Action::Kill | Action::Message) && (is_observed || is_guarded)
}

/// Says that a kept run cannot be changed.
pub(crate) fn refuse(state: &mut AppState, run: &RunId) -> Update {
    let text = format!("{run} is a kept run: nothing of it can be changed.");
    state.notify(NoticeKind::Info, text);
    Update::redraw()
}

/// Takes the rows of the store, and the change that led to them.
pub(crate) fn on_rows(
    state: &mut AppState,
    rows: Vec<RunRow>,
    wall_ms: u64,
    change: Option<KeptChange>,
) -> Update {
    let at = state.home.run.as_ref().and_then(|id| state.listed().position(id));
    state.history.set_rows(rows, wall_ms, state.now);
    state.remove_stored_pages();
    let known = |id: &mut RunId| !state.history.rows().iter().any(|row| row.id == *id);
    let in_session = |id: &RunId| state.runs.iter().any(|page| page.id() == id);
    state.to_compare.marked.take_if(|id| known(id) && !in_session(id));
    let notice = match change {
        None => None,
        Some(KeptChange::Removed(run)) => {
            let text = format!("{run} removed; {} brings it back.", key_of(Action::Undo));
            state.opened.retain(|page| *page.id() != run);
            state.history.add_removed(run);
            Some(text)
        }
        Some(KeptChange::Restored(run)) => {
            state.history.drop_removed(&run);
            state.home.select_run(&run);
            Some(format!("{run} is back."))
        }
        Some(KeptChange::Pinned(run, true)) => {
            Some(format!("{run} is pinned: it is never removed by itself."))
        }
        Some(KeptChange::Pinned(run, false)) => Some(format!("{run} is no longer pinned.")),
        Some(KeptChange::Refused(why)) => Some(why),
    };
    if let Some(notice) = notice {
        state.notify(NoticeKind::Info, notice);
    }
    state.history.arrange(&state.runs);
    // The row after a removed one is selected, not the first one of the list.
    let gone = state.home.run.as_ref().is_some_and(|id| state.listed().position(id).is_none());
    if let Some(at) = at.filter(|_| gone) {
        let last = state.listed().len().saturating_sub(1);
        state.home.run = state.listed().get(at.min(last)).map(|run| run.id().clone());
    }
    arrange_home(state);
    Update::redraw()
}

/// Opens a kept run: its page, if its log was read before, else the log is requested.
pub(crate) fn open(state: &mut AppState, row: RunRow) -> Update {
    let run = row.id.clone();
    // An exported log may have the id of a run in the store.
    if !state.opened_file(&run) && state.show_opened(&run) {
        return Update::redraw();
    }
    if row.runner.is_some() || row.status == RunStatus::Waiting {
        if state.runs.iter().any(|page| *page.id() == run) {
            state.screen = ActiveScreen::Run(run);
            return Update::redraw();
        }
        let request = state.next_request();
        state.expect_opening(request, &run);
        return Update { redraw: true, ..Update::effect(Effect::Attach { request, run }) };
    }
    let (request, follows) = (state.next_request(), row.status == RunStatus::Running);
    let wall_ms = state.history.wall_ms(state.now);
    open_page(state, KeptRun::new(row, request, wall_ms, state.now));
    Update::effect(Effect::OpenKept { request, run, follows })
}

/// Shows the page of a kept run. It is empty until the events are read.
pub(crate) fn open_page(state: &mut AppState, kept: KeptRun) {
    let run = kept.row.id.clone();
    let mut bytes = kept.row.bytes;
    let page = kept_page(kept);
    state.opened.retain(|page| *page.id() != run);
    state.opened.push(page);
    // From the end: the run that is shown now stays, however large it is.
    for at in (0..state.opened.len().saturating_sub(1)).rev() {
        let size = state.opened[at].kept.as_deref().map_or(0, |kept| kept.row.bytes);
        bytes = bytes.saturating_add(size);
        if bytes > MAX_OPENED_BYTES {
            state.opened.drain(..=at);
            break;
        }
    }
    state.home.select_run(&run);
    state.home.preview_source = HomePane::Runs;
    state.screen = ActiveScreen::Run(run);
    arrange_home(state);
}

fn page_of<'a>(
    state: &'a mut AppState,
    run: &RunId,
    request: RequestId,
) -> Option<&'a mut RunPage> {
    let page = state.opened.iter_mut().find(|page| page.id() == run)?;
    // An answer to an earlier request would repeat events.
    page.kept.as_deref().is_some_and(|kept| kept.request == request).then_some(page)
}

/// Adds events of a kept log to its page.
pub(crate) fn on_events(
    state: &mut AppState,
    run: &RunId,
    request: RequestId,
    events: &[Arc<Event>],
) -> Update {
    let shown = state.visible_run().is_some_and(|page| page.id() == run);
    if earlier::take(state, run, request, events) {
        return Update::idle();
    }
    match page_of(state, run, request) {
        Some(page) => {
            page.apply(events);
            Update::when(shown)
        }
        // Its page was closed, or reads the log with another request.
        None => Update { redraw: false, ..Update::effect(Effect::StopReading(request)) },
    }
}

/// All of a kept log has been read, or it cannot be read further.
pub(crate) fn on_read(
    state: &mut AppState,
    run: &RunId,
    request: RequestId,
    problem: Option<String>,
) -> Update {
    if earlier::is_reading(state, run, request) {
        return earlier::on_read(state, run, problem);
    }
    let Some(page) = page_of(state, run, request) else { return Update::idle() };
    end_reading(page);
    let is_empty = page.world().head.is_none();
    if let Some(problem) = problem {
        state.notify(NoticeKind::Error, format!("{run} cannot be read: {problem}"));
    }
    if is_empty {
        state.opened.retain(|page| page.id() != run);
        if matches!(&state.screen, ActiveScreen::Run(id) if id == run) {
            state.screen = ActiveScreen::Home;
        }
    }
    arrange_home(state);
    Update::redraw()
}

/// Pins the selected run, or takes its pin away.
pub(crate) fn pin(state: &mut AppState) -> Update {
    let row = state.selected_run().and_then(|run| state.history.row(run.id()));
    let Some(row) = row.filter(|_| state.home.preview_source == HomePane::Runs) else {
        return no_kept_run(state);
    };
    let (run, pinned) = (row.id.clone(), !row.pinned);
    Update::effect(Effect::PinKept { run, pinned })
}

/// Removes the selected run; it can be brought back.
pub(crate) fn remove(state: &mut AppState) -> Update {
    let selected = state.selected_run().filter(|_| state.home.preview_source == HomePane::Runs);
    let why = match selected {
        Some(ListedRun::Kept(row)) if row.status == RunStatus::Running => {
            format!("{} is still running in another process: it cannot be removed.", row.id)
        }
        Some(ListedRun::Kept(row)) => return Update::effect(Effect::RemoveKept(row.id.clone())),
        Some(ListedRun::Session(page)) => {
            format!(
                "{} belongs to this session: it can be removed after the next start.",
                page.id()
            )
        }
        None => return no_kept_run(state),
    };
    state.notify(NoticeKind::Info, why);
    Update::redraw()
}

/// Brings back the run that was removed last.
pub(crate) fn restore(state: &mut AppState) -> Update {
    match state.history.last_removed() {
        Some(run) => Update::effect(Effect::RestoreKept(run.clone())),
        None => {
            state.notify(NoticeKind::Info, "No run was removed.");
            Update::redraw()
        }
    }
}

fn no_kept_run(state: &mut AppState) -> Update {
    state.notify(NoticeKind::Info, "No kept run is selected: select one in pane 2.");
    Update::redraw()
}
