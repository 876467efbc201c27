//! Two runs compared: the run that is marked, the request to the shell, and the keys of the
//! comparison.

use super::action::Action;
use super::comparison_view::{AwaitedComparison, ComparisonView};
use super::effect::{Effect, Update};
use super::forks::{chosen_run, source};
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::request::RequestId;
use super::state::{ActiveScreen, AppState};
use crate::app::keys_in_use::key_of;
use crate::event::RunId;
use crate::event::run_row::RunStatus;
use crate::narrate::comparison::compared_run::ComparedRun;
use crate::narrate::comparison::compared_runs::ComparedRuns;

/// The run that a run was forked from.
pub(super) fn parent_of(state: &AppState, run: &RunId) -> Option<RunId> {
    let page = state.run(run).and_then(|page| page.world().head.as_ref());
    let forked = page.and_then(|head| head.launch.as_ref()?.forked.as_ref());
    let row = || state.history.row(run).and_then(|row| row.parent.as_ref());
    forked.map(|forked| &forked.parent).or_else(row).cloned()
}

/// Marks the chosen run, or compares it: with the marked one, with its parent where it is on the screen
/// or marked already.
pub(super) fn compare(state: &mut AppState) -> Update {
    let said = match (chosen_run(state), state.to_compare.marked.clone()) {
        (None, _) => "No run is selected: select one in pane 2.".to_owned(),
        (Some((run, _)), Some(marked)) if marked != run => {
            clear_mark(state);
            return request(state, marked, run);
        }
        (Some((run, _)), marked) => {
            let on_page = matches!(state.screen, ActiveScreen::Run(_));
            match parent_of(state, &run) {
                Some(parent) if on_page || marked.is_some() => {
                    clear_mark(state);
                    return request(state, parent, run);
                }
                _ if marked.is_some() => {
                    clear_mark(state);
                    format!("{run} is no longer marked.")
                }
                parent => {
                    state.to_compare.marked = Some(run.clone());
                    let key = key_of(Action::Compare);
                    match parent {
                        Some(parent) => format!(
                            "{run} marked: {key} on another run compares them, {key} again compares \
                             it with its parent {parent}."
                        ),
                        None => format!("{run} marked: {key} on another run compares the two."),
                    }
                }
            }
        }
    };
    if state.to_compare.marked.is_some() {
        state.to_compare.said = said.clone();
    }
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

/// Takes the mark and its notice away; returns whether there was one.
pub(super) fn clear_mark(state: &mut AppState) -> bool {
    let said = std::mem::take(&mut state.to_compare.said);
    state.notices.remove_text(&said);
    state.to_compare.marked.take().is_some()
}

/// Whether a run is still running.
fn is_live(state: &AppState, run: &RunId) -> bool {
    match state.run(run) {
        Some(page) if page.kept.is_none() => page.world().progress.is_live(),
        _ => state.history.row(run).is_some_and(|row| row.status == RunStatus::Running),
    }
}

fn request(state: &mut AppState, left: RunId, right: RunId) -> Update {
    let request = state.next_request();
    let live = [is_live(state, &left), is_live(state, &right)];
    let sources = [source(state, left.clone(), request), source(state, right.clone(), request)];
    state.to_compare.awaited = Some(AwaitedComparison { request, runs: [left, right], live });
    Update::effect(Effect::Compare { request, runs: Box::new(sources) })
}

/// Updates the figures of live runs in the open comparison. Each of them that has ended is compared
/// again, now whole.
pub(super) fn follow_live(state: &mut AppState) -> Update {
    let Some(Overlay::Comparison(view)) = state.overlays.last() else { return Update::idle() };
    let figures = [0, 1].map(|side| {
        let run = RunId::new(view.compared.runs[side].run.as_str());
        let page = state.run(&run).filter(|page| view.live[side] && page.kept.is_none())?;
        let progress = &page.world().progress;
        let at = match progress.is_live() {
            true => state.elapsed(page).max(progress.at),
            false => progress.at,
        };
        Some((ComparedRun::of_world(page.world(), at), progress.is_live()))
    });
    let Some(Overlay::Comparison(view)) = state.overlays.last_mut() else { return Update::idle() };
    let was_live = view.live;
    for (side, figures) in figures.into_iter().enumerate() {
        if let Some((figures, is_live)) = figures {
            view.compared.runs[side] = figures;
            view.live[side] = is_live;
        }
    }
    let [left, right] = [0, 1].map(|side| RunId::new(view.compared.runs[side].run.as_str()));
    match (was_live, view.live) {
        ([false, false], _) => Update::idle(),
        (was, now) if was == now => Update::redraw(),
        _ => Update { redraw: true, ..request(state, left, right) },
    }
}

/// The shell has compared two runs, or cannot.
pub(super) fn on_compared(
    state: &mut AppState,
    request: RequestId,
    result: Result<Box<ComparedRuns>, String>,
) -> Update {
    // Somebody who did something else meanwhile is not taken to the comparison.
    let is_wanted = |it: &mut AwaitedComparison| it.request == request;
    let Some(awaited) = state.to_compare.awaited.take_if(is_wanted) else {
        return Update::idle();
    };
    match result {
        Ok(compared) => {
            let is_open = match state.overlays.last() {
                None => true,
                Some(Overlay::Comparison(view)) => {
                    let is_same = |(run, id): (&ComparedRun, &RunId)| run.run == id.as_str();
                    view.compared.runs.iter().zip(&awaited.runs).all(is_same)
                }
                Some(_) => false,
            };
            if is_open {
                let view = ComparisonView::new(compared, awaited.live, state.size);
                state.overlays.clear();
                state.overlays.push(Overlay::Comparison(Box::new(view)));
            }
        }
        Err(why) => {
            let [left, right] = &awaited.runs;
            let text = format!("{left} and {right} cannot be compared: {why}");
            state.notify(NoticeKind::Error, text);
        }
    }
    Update::redraw()
}

/// Carries out an action in the comparison.
pub(super) fn on_action(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Comparison(view)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Cancel | Action::Back if view.full => {
            view.full = false;
            view.arrange(size);
            Update::redraw()
        }
        Action::Cancel | Action::Back => {
            state.overlays.pop();
            Update::redraw()
        }
        Action::Copy => {
            let text = view.compared.text.clone();
            state.notify(NoticeKind::Info, "Copied the comparison as text.");
            Update::effect(Effect::Copy(text))
        }
        action => Update::when(view.on_action(action, size)),
    }
}
