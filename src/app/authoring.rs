//! Scenario files on the first screen: a new one from a template, the selected one in the editor, and
//! what changed in them.

use super::action::Action;
use super::arrange::arrange_home;
use super::effect::{Effect, Update};
use super::home::HomePane;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::selection::moved_index;
use super::state::AppState;
use super::template_list::TemplateList;
use crate::app::keys_in_use::key_of;
use crate::narrate::format;
use crate::scenario::catalogue::{ScenarioEntry, sort_in_groups};

/// Opens the list of templates.
pub(super) fn new_scenario(state: &mut AppState) -> Update {
    state.overlays.push(Overlay::Templates(TemplateList::new()));
    Update::redraw()
}

/// An action in the list of templates.
pub(super) fn on_templates(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Templates(list)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Cancel | Action::Back => {
            state.overlays.pop();
            Update::redraw()
        }
        Action::WriteTemplate => {
            let pattern = list.templates.get(list.selected).map(|it| it.pattern.clone());
            state.overlays.pop();
            let effects = pattern.map(|pattern| Effect::NewScenario { pattern });
            Update { redraw: true, effects: effects.into_iter().collect() }
        }
        _ => {
            let page = usize::from(list.parts(size).list.height).max(1);
            let to = moved_index(action, Some(list.selected), list.templates.len(), page);
            if let Some(to) = to {
                list.selected = to;
            }
            Update::when(to.is_some())
        }
    }
}

/// Opens the file of the selected scenario in the editor.
pub(super) fn edit(state: &mut AppState) -> Update {
    let entry = state.home.selected_scenario(&state.scenarios);
    match entry.filter(|_| state.home.preview_source == HomePane::Scenarios) {
        Some(entry) => Update::effect(Effect::Edit(entry.origin.clone())),
        None => {
            let said = format!("Select a scenario first: {} edits its file.", key_of(Action::Edit));
            state.notify(NoticeKind::Info, said);
            Update::redraw()
        }
    }
}

/// A new file was written: selects it.
pub(super) fn on_written(state: &mut AppState, path: &str) -> Update {
    if let Some(entry) = state.scenarios.iter().find(|entry| entry.path == path) {
        state.home.select_scenario(entry);
        state.home.focus(HomePane::Scenarios);
    }
    arrange_home(state);
    let (open, edit) = (key_of(Action::Open), key_of(Action::Edit));
    state.notify(NoticeKind::Info, format!("{path} is written: {open} runs it, {edit} edits it."));
    Update::redraw()
}

/// The scenarios were read: shows them, and says which files changed.
pub(super) fn on_scenarios(state: &mut AppState, mut scenarios: Vec<ScenarioEntry>) -> Update {
    sort_in_groups(&mut scenarios);
    state.home.is_read = true;
    let before = std::mem::replace(&mut state.scenarios, scenarios);
    // What was selected stays selected, even if a file now replaces a shipped scenario.
    let was = before.iter().find(|entry| Some(&entry.path) == state.home.scenario.as_ref());
    let is_gone = state.home.selected_scenario(&state.scenarios).is_none();
    if let Some(was) = was.filter(|_| is_gone)
        && let Some(now) = state.scenarios.iter().find(|entry| entry.name == was.name)
    {
        state.home.select_scenario(now);
    }
    arrange_home(state);
    let changed: Vec<&ScenarioEntry> = state
        .scenarios
        .iter()
        .filter(|now| {
            let was = before.iter().find(|was| was.path == now.path);
            was.is_some_and(|was| was.text != now.text)
        })
        .collect();
    let notice = match changed[..] {
        [] => None,
        [one] => Some(match one.first_error() {
            Some(error) => (NoticeKind::Error, format!("{}: {error}", one.path)),
            None => (NoticeKind::Info, format!("{} was reloaded.", one.path)),
        }),
        _ => Some((NoticeKind::Info, format!("{} scenario files were reloaded.", changed.len()))),
    };
    if let Some((kind, text)) = notice {
        state.notify(kind, text);
    }
    if std::mem::take(&mut state.is_rescanning) {
        let broken = state.scenarios.iter().filter(|entry| entry.loaded.is_err()).count();
        let read = format::count_noun(state.scenarios.len() as u64, "scenario");
        let broken = if broken == 0 { String::new() } else { format!(", {broken} broken") };
        state.notify(NoticeKind::Info, format!("{read} read{broken}."));
    }
    Update::redraw()
}
