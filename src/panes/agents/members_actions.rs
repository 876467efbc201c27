//! Actions in the members drawer.

use super::members::MembersDrawer;
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::effect::Update;
use crate::app::notice::ACTS_ON_LIVE_RUN;
use crate::app::notice::NoticeKind;
use crate::app::overlay::Overlay;
use crate::app::state::AppState;

/// Opens the drawer of the run on the screen.
pub(crate) fn open(state: &mut AppState) -> Update {
    let Some(page) = state.visible_run() else { return Update::idle() };
    let swarms = page.world().agents().is_some_and(|team| !team.swarms.is_empty());
    if !swarms {
        let why = "No swarm in this run: only members of a swarm join or leave.";
        state.notify(NoticeKind::Info, why);
        return Update::redraw();
    }
    let drawer = MembersDrawer::new(page.id().clone(), page.world());
    state.overlays.push(Overlay::Members(drawer));
    Update::redraw()
}

/// Handles an action in the drawer.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    let AppState { overlays, runs, notices, now, size, .. } = state;
    let Some(Overlay::Members(drawer)) = overlays.last_mut() else { return Update::idle() };
    let Some(page) = runs.iter().find(|page| *page.id() == drawer.run) else {
        overlays.pop();
        return Update::redraw();
    };
    match action {
        Action::Cancel | Action::Back | Action::Members => {
            overlays.pop();
            Update::redraw()
        }
        Action::Toggle => match drawer.command(page) {
            Ok(command) => {
                if page.is_scrubbed() {
                    notices.add(*now, NoticeKind::Info, ACTS_ON_LIVE_RUN.to_owned());
                }
                Update::effect(Effect::Command { run: drawer.run.clone(), command })
            }
            Err(why) => {
                notices.add(*now, NoticeKind::Info, why);
                Update::redraw()
            }
        },
        action => {
            let rows = usize::from(drawer.parts(*size, page.world()).list.height).max(1);
            Update::when(drawer.on_move(action, page.world(), rows))
        }
    }
}
