//! The start of a run, and of the launch form.

use std::sync::Arc;

use super::action::Action;
use super::effect::{Effect, LaunchRequest, Update};
use super::form::LaunchForm;
use super::keys_in_use::key_of;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::state::{AppState, PendingStart};
use crate::scenario::catalogue::{RequestedModel, ScenarioEntry};

/// Requests a run; its screen opens when it starts.
pub(super) fn start(state: &mut AppState, request: LaunchRequest) -> Update {
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
        "This scenario cannot be run: see the preview. Fix the file, then press {reload} to reload."
    );
    state.notify(NoticeKind::Error, text);
    Update::redraw()
}

/// Opens the launch form for the selected scenario, or for that of the run on the screen.
pub(super) fn new_run(state: &mut AppState) -> Update {
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
