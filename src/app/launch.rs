//! The start of a run.

use super::effect::{Effect, LaunchRequest, Update};
use super::state::{AppState, PendingStart};

/// Requests a run; its screen opens when it starts.
pub(super) fn start(state: &mut AppState, request: LaunchRequest) -> Update {
    state.starting.iter_mut().for_each(|starting| starting.open = false);
    state.starting.push(PendingStart {
        request: request.id,
        title: request.scenario.title.clone(),
        open: true,
    });
    Update::effect(Effect::Start(Box::new(request)))
}
