//! The start of a run, and of the launch form: also from a recorded run, which is forked, started
//! again with the same settings, or continued.

use std::sync::Arc;

use super::action::Action;
use super::effect::{Effect, LaunchRequest, RecordedSource, RequestId, Update};
use super::form::LaunchForm;
use super::form::fork::ForkOffer;
use super::home::HomePane;
use super::home::history::ListedRun;
use super::keymap::key_of;
use super::notice::NoticeKind;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState, PendingStart};
use super::windows::Overlay;
use super::windows::confirm::Confirm;
use crate::log::event::{ModelLabel, RunId, Seq};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::scenario::catalogue::{RequestedModel, ScenarioEntry};
use crate::words::format;

/// Requests a run; its screen opens when it starts.
pub(crate) fn start(state: &mut AppState, request: LaunchRequest) -> Update {
    state.starting.iter_mut().for_each(|starting| starting.open = false);
    state.starting.push(PendingStart {
        doing: "starting",
        request: request.id,
        title: request.scenario.title.clone(),
        open: true,
    });
    Update::effect(Effect::Start(Box::new(request)))
}

/// Says that the selected scenario is broken.
pub(super) fn refuse_broken_scenario(state: &mut AppState) -> Update {
    let reload = key_of(Action::Rescan);
    let text = format!(
        "This scenario cannot be run: its preview says why. Fix the file; {reload} reads it again."
    );
    state.notify(NoticeKind::Error, text);
    Update::redraw()
}

/// Opens the launch form for the selected scenario, or for that of the run on the screen.
pub(crate) fn new_run(state: &mut AppState) -> Update {
    let entry: Option<&ScenarioEntry> =
        match state.visible_run().and_then(|page| page.world().head.as_ref()) {
            Some(head) => state.scenarios.iter().find(|entry| entry.name == head.scenario),
            None => state.home.selected_scenario(&state.scenarios),
        };
    let Some(entry) = entry else {
        let why = match (state.scenarios.is_empty(), state.visible_run()) {
            (true, _) => {
                let key = key_of(Action::NewRun);
                format!("Still reading the scenarios: press {key} again in a moment.")
            }
            (false, Some(_)) => "The scenario of this run is no longer on the list.".to_owned(),
            (false, None) => "No scenario is selected: choose one on the first screen.".to_owned(),
        };
        state.notify(NoticeKind::Info, why);
        return Update::redraw();
    };
    // A new launch of a run with a chosen model keeps that model.
    let before = state.visible_run().and_then(|page| match &page.launch()?.model {
        RequestedModel::Live(Some(model)) => {
            Some((Arc::clone(model), format!("as in {}", page.id())))
        }
        _ => None,
    });
    let named = || Some((Arc::clone(state.model.as_ref()?), "from the command line".to_owned()));
    let model = before.or_else(named);
    let entry = entry.clone();
    let id = state.next_request();
    let model = model.as_ref().map(|(model, given)| (&**model, given.clone()));
    let Some(mut form) = LaunchForm::new(&entry, id, model) else {
        return refuse_broken_scenario(state);
    };
    form.arrange(state.size);
    state.overlays.push(Overlay::Form(Box::new(form)));
    Update::redraw()
}

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
pub(crate) fn source(state: &AppState, run: RunId, request: RequestId) -> RecordedSource {
    let page = state.run(&run);
    let kept = page.and_then(|page| page.kept.as_deref());
    let imported = kept.is_some_and(|kept| kept.is_file || kept.row.imported);
    let is_kept = match kept {
        Some(_) => stored_row(state, &run).is_some(),
        None if page.is_some_and(|page| page.is_of_tour()) => false,
        None => state.history.is_known() || page.is_some_and(|page| page.is_of_cluster()),
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
pub(crate) fn fork(state: &mut AppState) -> Update {
    let Some((run, title)) = chosen_run(state) else { return no_run(state) };
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::ReadFork(source(state, run, request)))
}

/// Starts a run with the settings of the chosen one; asks first where that costs money.
pub(crate) fn restart(state: &mut AppState) -> Update {
    let Some((run, title)) = chosen_run(state) else { return no_run(state) };
    let Some(cost) = live_cost(state, &run) else { return restart_now(state, run, title) };
    ask(state, Confirm::restart(&run, &title, &cost))
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
pub(super) fn restart_now(state: &mut AppState, run: RunId, title: String) -> Update {
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::Restart(source(state, run, request)))
}

/// A run was read to fork it: opens the form of the fork.
pub(super) fn on_fork_ready(state: &mut AppState, request: RequestId, offer: ForkOffer) -> Update {
    let waiting = state.starting.iter().position(|starting| starting.request == request);
    let waits = waiting.is_some_and(|at| state.starting.remove(at).open);
    if !waits || !state.overlays.is_empty() {
        return Update::redraw();
    }
    // The form selects the last boundary before the playhead, if the run is on the screen.
    let shown = state.visible_run().filter(|page| *page.id() == offer.run);
    let before = shown.map_or(Seq(u64::MAX), |page| page.shown().progress.next);
    let is_unkept = state.run(&offer.run).is_some_and(|page| page.is_of_tour());
    match LaunchForm::of_fork(offer, before, request) {
        Some(mut form) => {
            form.fork.iter_mut().for_each(|fork| fork.is_unkept = is_unkept);
            form.arrange(state.size);
            state.overlays.push(Overlay::Form(Box::new(form)));
        }
        None => state.notify(NoticeKind::Error, "This run cannot be forked."),
    }
    Update::redraw()
}

/// Continues a kept run that was interrupted; asks first where that may cost money.
pub(crate) fn resume(state: &mut AppState, run: &RunId) -> Update {
    let page = state.run(run).and_then(|page| page.kept.as_deref()).map(|kept| &kept.row);
    let stored = stored_row(state, run);
    // Until the runs of the store are known, only an exported log is surely not there.
    let is_stored = stored.is_some() || !(state.history.is_known() || state.opened_file(run));
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
            let (restart, fork) = (key_of(Action::Restart), key_of(Action::Fork));
            let text = format!("{run} has ended: {restart} starts it again, {fork} forks it.");
            state.notify(NoticeKind::Info, text);
        }
    }
    Update::redraw()
}

/// Continues a kept run.
pub(crate) fn resume_now(state: &mut AppState, run: RunId) -> Update {
    let title = state.history.row(&run).map(|row| row.title.to_string()).unwrap_or_default();
    let request = state.next_request();
    expect_start(state, request, title);
    Update::effect(Effect::Resume { request, run })
}
