//! The lists of the first screen after a change of their contents.

use super::history::RunList;
use super::preview;
use super::state::AppState;

/// Keeps the lists of the first screen valid after any change of their contents.
pub(super) fn arrange_home(state: &mut AppState) {
    let items = preview::items(state).lines.len();
    let runs = RunList { runs: &state.runs, history: &state.history };
    state.home.arrange(&state.scenarios, runs, items, state.size);
}
