//! Why an action cannot be carried out now, as the list of commands and notices say it.

use super::action::Action;
use super::compare::parent_of;
use super::effect::Update;
use super::forks::chosen_run;
use super::history::ListedRun;
use super::home::HomePane;
use super::kept_actions;
use super::key::KeyPress;
use super::keymap::{BINDINGS, Binding, Context, binding_of};
use super::keys_in_use::{in_use, key_of};
use super::notice::NoticeKind;
use super::run::{Pane, RunPage};
use super::state::AppState;
use crate::event::world::RunState;

/// The contexts of whole pages.
const PAGES: [Context; 3] = [Context::Home, Context::Run, Context::Inspector];

/// Why an action does nothing in the focused context, as the part of a sentence after a colon;
/// `None`: it does something, or says itself why not.
pub(super) fn refusal(state: &AppState, action: Action) -> Option<String> {
    let context = state.context();
    let binding = binding_of(action)?;
    if !binding.contexts.contains(&context) {
        return Some(format!("only in {}", binding.places()));
    }
    match action {
        Action::Pane(0) => return Some("press the number of the pane".to_owned()),
        Action::Pane(number) => {
            let is_there = match state.visible_run() {
                Some(_) => Pane::from_number(number).is_some(),
                None => usize::from(number) <= HomePane::ALL.len(),
            };
            return (!is_there).then(|| format!("there is no pane {number}"));
        }
        _ => {}
    }
    if let Some(run) = kept_actions::refused_run(state, action)
        && action != Action::PauseResume
    {
        return Some(format!("{run} is a kept run, which does not change"));
    }
    let why = match context {
        Context::Home => on_home(state, action),
        Context::Run | Context::Inspector => return in_run(state, action),
        _ => None,
    };
    why.map(str::to_owned)
}

fn on_home(state: &AppState, action: Action) -> Option<&'static str> {
    let selected = state.selected_run();
    let lists_runs = state.home.preview_source == HomePane::Runs;
    let is_empty = state.runs.is_empty() && state.history.rows().is_empty();
    let unless = |is_so: bool, why| (!is_so).then_some(why);
    match action {
        Action::Filter if lists_runs => unless(!is_empty, "there are no runs yet"),
        Action::Sort => unless(!is_empty, "there are no runs yet"),
        Action::Compare if is_empty => Some("there are no runs yet"),
        Action::Fork | Action::Rerun | Action::Compare => {
            unless(chosen_run(state).is_some(), "no run is selected")
        }
        Action::PauseResume if lists_runs && matches!(selected, Some(ListedRun::Kept(_))) => None,
        Action::PauseResume | Action::Step | Action::StepRound => live(state.target_run()),
        Action::Flags => unless(state.target_run().is_some(), "no run is selected"),
        Action::Kill | Action::PauseAll => {
            unless(state.live_runs().next().is_some(), "no run is live")
        }
        Action::Pin => unless(
            selected.is_some_and(|run| state.history.row(run.id()).is_some()),
            "no kept run is selected",
        ),
        Action::Remove => {
            unless(matches!(selected, Some(ListedRun::Kept(_))), "no kept run is selected")
        }
        Action::Undo => unless(state.history.last_removed().is_some(), "no run was removed"),
        Action::Open if lists_runs => unless(selected.is_some(), "no run is selected"),
        Action::Edit | Action::NewRun | Action::Open => {
            let scenario = state.home.selected_scenario(&state.scenarios);
            unless(scenario.is_some(), "no scenario is selected")
        }
        _ => None,
    }
}

fn in_run(state: &AppState, action: Action) -> Option<String> {
    let page = state.visible_run()?;
    let is_kept = page.kept.is_some();
    let why = match action {
        Action::PauseResume if page.is_scrubbed() || is_kept => None,
        Action::PauseResume | Action::Step | Action::StepRound | Action::Kill => live(Some(page)),
        Action::Compare => {
            let is_marked = state.to_compare.marked.is_some();
            let second = state.listed().len() > 1 || parent_of(state, page.id()).is_some();
            (!is_marked && !second).then_some("there is no second run")
        }
        Action::Message if !page.views.own_offers(page, action) => {
            Some("only teams and swarms take follow-ups")
        }
        Action::Members if !page.views.own_offers(page, action) => {
            Some("no swarm in this run changes its members")
        }
        Action::Faults if page.views.can_inject(page) => None,
        action => return page.views.unavailable_reason(page, action).map(part_of_sentence),
    };
    why.map(str::to_owned)
}

/// A sentence as the end of another one: without its period.
fn part_of_sentence(mut text: String) -> String {
    if text.ends_with('.') {
        text.pop();
    }
    text
}

fn live(page: Option<&RunPage>) -> Option<&'static str> {
    match page.map(|page| &page.world().progress.stage) {
        None => Some("no run is selected"),
        Some(RunState::Closed) => Some("the run has ended"),
        Some(_) => None,
    }
}

/// Says why an action did nothing, if there is a reason.
pub(super) fn explain(state: &mut AppState, action: Action, update: Update) -> Update {
    let is_idle = !update.redraw && update.effects.is_empty();
    // The page itself says where there is no cause to jump to.
    let is_told = action == Action::Cause;
    let why = if is_idle && !is_told { refusal(state, action) } else { None };
    let Some(why) = why else { return update };
    state.notify(NoticeKind::Info, format!("{}: {why}.", action.name()));
    Update::redraw()
}

/// Says that a key does nothing on this screen, and where it does something. A key without any
/// action, such as F7, is only told if it is a character.
pub(super) fn explain_key(state: &mut AppState, key: KeyPress) -> Update {
    let has = |row: &&Binding| in_use().keys(row.action).contains(&key);
    // A page has more use for the key than a window.
    let on_page = |row: &&Binding| row.contexts.iter().any(|it| PAGES.contains(it));
    let typed = |row: &&Binding| row.contexts.iter().all(|context| context.takes_text());
    let elsewhere = BINDINGS.iter().filter(has).find(on_page);
    let elsewhere = elsewhere.or_else(|| BINDINGS.iter().filter(has).find(|row| !typed(row)));
    let (name, help) = (key.label(true), key_of(Action::Help));
    let text = match elsewhere {
        Some(row) => format!("{name} ({}): only in {}.", row.action.name(), row.places()),
        None if key.typed_char().is_none_or(char::is_control) => return Update::idle(),
        None => format!("{name} does nothing here; {help} shows the keys."),
    };
    state.notify(NoticeKind::Info, text);
    Update::redraw()
}
