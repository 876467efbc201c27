//! New runs from recorded ones: fork at a boundary, start again with the same settings, continue what
//! was interrupted.

use super::confirm::Confirm;
use super::effect::{Effect, RecordedSource, Update};
use super::form::LaunchForm;
use super::form::fork_offer::ForkOffer;
use super::history::ListedRun;
use super::home::HomePane;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::request::RequestId;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState, PendingStart};
use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use crate::event::kind::ModelLabel;
use crate::event::run_row::{RunRow, RunStatus};
use crate::event::{RunId, Seq};
use crate::narrate::format;

/// The run on the screen, else the selected one, with its title.
pub(super) fn chosen_run(state: &AppState) -> Option<(RunId, String)> {
    let of_page = |page: &RunPage| {
        let title = page.world().head.as_ref().map(|head| head.title.clone());
        (page.id().clone(), title.unwrap_or_default())
    };
    match &state.screen {
        ActiveScreen::Run(id) => state.run(id).map(of_page),
        ActiveScreen::Home if state.home.preview_source != HomePane::Runs => None,
        ActiveScreen::Home => state.selected_run().map(|run| match run {
            ListedRun::Session(page) => of_page(page),
            ListedRun::Kept(row) => (row.id.clone(), row.title.to_string()),
        }),
    }
}

/// The row of a run in the store. An exported log on the screen is not in the store, even if a run there
/// has its id.
fn stored_row<'a>(state: &'a AppState, run: &RunId) -> Option<&'a RunRow> {
    let on_screen = matches!(&state.screen, ActiveScreen::Run(id) if id == run);
    let is_file = on_screen && state.opened_file(run);
    state.history.row(run).filter(|_| !is_file)
}

/// How the shell reads a run: from the store, or the events of its page.
pub(super) fn source(state: &AppState, run: RunId, request: RequestId) -> RecordedSource {
    let page = state.run(&run);
    let kept = page.and_then(|page| page.kept.as_deref());
    let imported = kept.is_some_and(|kept| kept.is_file || kept.row.imported);
    let is_kept = match kept {
        Some(_) => stored_row(state, &run).is_some(),
        None => state.history.is_known() || page.is_some_and(|page| page.remote.is_some()),
    };
    let events = page.filter(|_| !is_kept).map(|page| page.log().to_vec());
    RecordedSource { request, run, events, imported }
}

fn no_run(state: &mut AppState) -> Update {
    state.notify(NoticeKind::Info, "No run is selected: select one in pane 2.");
    Update::redraw()
}

/// Says that a run is about to start; its screen opens then.
fn expect_start(state: &mut AppState, request: RequestId, title: String) {
    state.starting.push(PendingStart { doing: "starting", request, title, open: true });
}

/// Reads the chosen run to fork it; the form opens when it was read.
pub(super) fn fork(state: &mut AppState) -> Update {
    let Some((run, title)) = chosen_run(state) else { return no_run(state) };
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::ReadFork(source(state, run, request)))
}

/// Starts a run with the settings of the chosen one; asks first where that costs money.
pub(super) fn rerun(state: &mut AppState) -> Update {
    let Some((run, title)) = chosen_run(state) else { return no_run(state) };
    let Some(cost) = live_cost(state, &run) else { return rerun_now(state, run, title) };
    ask(state, Confirm::rerun(&run, &title, &cost))
}

/// What a run that called live models has cost, for display; `None`: it called none.
fn live_cost(state: &AppState, run: &RunId) -> Option<String> {
    let world = state.run(run).map(|page| page.world()).filter(|world| world.head.is_some());
    let (live, cost) = match (world, state.history.row(run)) {
        (Some(world), _) => {
            let model = world.head.as_ref().map(|head| &head.model);
            (matches!(model, Some(ModelLabel::Live { .. })), world.cost_usd())
        }
        (None, Some(row)) => (row.live, row.cost_usd),
        (None, None) => (false, None),
    };
    live.then(|| cost.map_or_else(|| "an unknown amount".to_owned(), format::usd))
}

fn ask(state: &mut AppState, mut question: Confirm) -> Update {
    question.arrange(state.size);
    state.overlays.push(Overlay::Confirm(question));
    Update::redraw()
}

/// Starts a run with the settings of this one.
pub(super) fn rerun_now(state: &mut AppState, run: RunId, title: String) -> Update {
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::Rerun(source(state, run, request)))
}

/// A run was read: its fork is described in a form.
pub(super) fn on_fork_ready(state: &mut AppState, request: RequestId, offer: ForkOffer) -> Update {
    let waiting = state.starting.iter().position(|starting| starting.request == request);
    let waits = waiting.is_some_and(|at| state.starting.remove(at).open);
    if !waits || !state.overlays.is_empty() {
        return Update::redraw();
    }
    // The place that is looked at: the playhead of the run on the screen.
    let shown = state.visible_run().filter(|page| *page.id() == offer.run);
    let before = shown.map_or(Seq(u64::MAX), |page| page.shown().progress.next);
    match LaunchForm::of_fork(offer, before, request) {
        Some(mut form) => {
            form.arrange(state.size);
            state.overlays.push(Overlay::Form(Box::new(form)));
        }
        None => state.notify(NoticeKind::Error, "This run cannot be forked."),
    }
    Update::redraw()
}

/// Continues a kept run that was interrupted; asks first where that may cost money.
pub(super) fn resume(state: &mut AppState, run: &RunId) -> Update {
    let page = state.run(run).and_then(|page| page.kept.as_deref()).map(|kept| &kept.row);
    let stored = stored_row(state, run);
    let is_stored = stored.is_some();
    let Some(row) = stored.or(page).cloned() else { return Update::idle() };
    match &row.status {
        RunStatus::Interrupted if !is_stored => {
            let text = format!("{run} is not in the store: `roundtable import` puts it there.");
            state.notify(NoticeKind::Info, text);
        }
        RunStatus::Interrupted if row.live => {
            let cost = row.cost_usd.map_or_else(|| "an unknown amount".to_owned(), format::usd);
            return ask(state, Confirm::resume(run, &row.title, &cost));
        }
        RunStatus::Interrupted => return resume_now(state, run.clone()),
        RunStatus::Waiting => {
            state.notify(NoticeKind::Info, format!("{run} waits for a runner."));
        }
        RunStatus::Running => {
            state.notify(NoticeKind::Info, format!("{run} is played by another process."));
        }
        RunStatus::Ended(_) => {
            let (rerun, fork) = (key_of(Action::Rerun), key_of(Action::Fork));
            let text = format!("{run} has ended: {rerun} starts it again, {fork} forks it.");
            state.notify(NoticeKind::Info, text);
        }
    }
    Update::redraw()
}

/// Continues a kept run.
pub(super) fn resume_now(state: &mut AppState, run: RunId) -> Update {
    let title = state.history.row(&run).map(|row| row.title.to_string()).unwrap_or_default();
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::Resume { request, run })
}
