//! The lists of the first screen after a change of their contents.

use super::effect::Update;
use super::history::RunList;
use super::home::HomePane;
use super::list_filter::ListFilter;
use super::preview;
use super::state::AppState;

/// Keeps the lists of the first screen valid after any change of their contents.
pub(super) fn arrange_home(state: &mut AppState) {
    let items = preview::items(state).lines.len();
    let runs = RunList { runs: &state.runs, history: &state.history };
    state.home.arrange(&state.scenarios, runs, items, state.size);
}

/// The filter of the list on the first screen that has the focus, or had it last.
pub(super) fn home_filter(state: &mut AppState) -> &mut ListFilter {
    match state.home.preview_source {
        HomePane::Runs => &mut state.history.filter,
        HomePane::Scenarios | HomePane::Preview => &mut state.home.filter,
    }
}

/// Lists what passes the filter, if it has changed.
pub(super) fn when_filtered(state: &mut AppState, changed: bool) -> Update {
    if changed {
        state.history.arrange(&state.runs);
        arrange_home(state);
    }
    Update::when(changed)
}
