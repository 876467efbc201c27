//! The mouse: a click focuses and selects, a click on the selection opens it, the wheel scrolls the pane
//! or window under it. Everything works without a mouse.

use std::time::Duration;

use super::action::Action;
use super::effect::Update;
use super::form::{FieldId, FieldValue};
use super::home::history::RunList;
use super::home::{HomePane, HomeParts, arrange_home, preview, tab_labels};
use super::input::on_action;
use super::key_hints;
use super::layout::{ScreenParts, hits, inside, too_small};
use super::msg::{Mouse, MouseKind};
use super::state::{ActiveScreen, AppState, visible_run_mut};
use super::windows::{Overlay, card};

/// Two clicks within this time are one double click.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

pub(crate) fn on_mouse(state: &mut AppState, mouse: Mouse) -> Update {
    if too_small(state.size.area()) {
        return Update::idle();
    }
    let keys = ScreenParts::with_strip(state.terminal.area(), state.strip_rows()).keys;
    if mouse.kind == MouseKind::Down && hits(keys, mouse.col, mouse.row) {
        return match key_hints::action_at(state, keys.width, mouse.col) {
            Some(action) => on_action(state, action),
            None => Update::idle(),
        };
    }
    match state.overlays.last() {
        Some(Overlay::Form(form)) if form.picker.is_none() => on_form(state, mouse),
        Some(Overlay::Comparison(_)) => on_comparison(state, mouse),
        Some(Overlay::Message(message)) => match mouse.kind {
            MouseKind::Down if !hits(message.window(state.size), mouse.col, mouse.row) => {
                on_action(state, Action::Cancel)
            }
            _ => Update::idle(),
        },
        Some(Overlay::Card(_)) => match mouse.kind {
            MouseKind::WheelUp => card::scroll(state, Action::Up),
            MouseKind::WheelDown => card::scroll(state, Action::Down),
            _ => Update::idle(),
        },
        Some(Overlay::Confirm(confirm)) => match mouse.kind {
            MouseKind::WheelUp => on_action(state, Action::Up),
            MouseKind::WheelDown => on_action(state, Action::Down),
            MouseKind::Down => {
                let parts = confirm.parts(state.size);
                if hits(parts.yes, mouse.col, mouse.row) {
                    on_action(state, Action::Confirm)
                } else if hits(parts.no, mouse.col, mouse.row) {
                    on_action(state, Action::Decline)
                } else if hits(parts.later, mouse.col, mouse.row) {
                    on_action(state, Action::Later)
                } else {
                    Update::idle()
                }
            }
            _ => Update::idle(),
        },
        Some(_) => on_list(state, mouse),
        None => match state.screen {
            ActiveScreen::Home => on_home(state, mouse),
            ActiveScreen::Run(_) => {
                let (size, now) = (state.size, state.now);
                match visible_run_mut(state) {
                    Some(page) => page.on_mouse(mouse, size, now).into(),
                    None => Update::idle(),
                }
            }
        },
    }
}

/// The comparison: a click selects, the wheel moves.
fn on_comparison(state: &mut AppState, mouse: Mouse) -> Update {
    let size = state.size;
    let Some(Overlay::Comparison(view)) = state.overlays.last_mut() else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp => on_action(state, Action::Up),
        MouseKind::WheelDown => on_action(state, Action::Down),
        MouseKind::Down => Update::when(view.select_cell(mouse.col, mouse.row, size)),
        MouseKind::Drag | MouseKind::Up => Update::idle(),
    }
}

/// Whether this click is the second of two on one cell.
fn is_double(state: &mut AppState, mouse: Mouse) -> bool {
    let at = (state.now, mouse.col, mouse.row);
    let before = state.last_click.replace(at);
    before.is_some_and(|(then, col, row)| {
        (col, row) == (mouse.col, mouse.row) && at.0.saturating_sub(then) <= DOUBLE_CLICK
    })
}

fn on_home(state: &mut AppState, mouse: Mouse) -> Update {
    let lines = state.listed().all_lines();
    let parts = HomeParts::split(state.size.body(), state.home.focus, lines);
    let labels = tab_labels(state.scenarios.len(), state.listed().len());
    let tab = HomePane::ALL
        .into_iter()
        .find(|pane| hits(parts.tab(*pane, &labels), mouse.col, mouse.row));
    if let (Some(pane), MouseKind::Down) = (tab, mouse.kind) {
        state.home.focus(pane);
        arrange_home(state);
        return Update::redraw();
    }
    let Some(pane) = HomePane::ALL
        .into_iter()
        .find(|pane| hits(inside(parts.pane(*pane)), mouse.col, mouse.row))
    else {
        return Update::idle();
    };
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown => {
            let items = preview::items(state).lines.len();
            let runs = RunList { runs: &state.runs, history: &state.history };
            let up = mouse.kind == MouseKind::WheelUp;
            state.home.scroll(pane, up, &state.scenarios, runs, (items, state.size));
            Update::redraw()
        }
        MouseKind::Down => {
            let double = is_double(state, mouse);
            let focused = state.home.focus == pane;
            state.home.focus(pane);
            let rows = parts.rows(pane);
            if !hits(rows, mouse.col, mouse.row) {
                return Update::redraw();
            }
            let down = usize::from(mouse.row - rows.y);
            let was_selected = match pane {
                HomePane::Preview => return Update::redraw(),
                HomePane::Scenarios => {
                    let lines = state.home.lines(&state.scenarios);
                    let index = lines.entry_on(state.home.scenarios_top + down);
                    let Some(entry) = index.and_then(|at| state.scenarios.get(at)) else {
                        return Update::redraw();
                    };
                    let was = state.home.scenario.as_ref() == Some(&entry.path);
                    state.home.select_scenario(entry);
                    was
                }
                HomePane::Runs => {
                    let Some(run) = state.listed().on_line(state.home.runs_top + down) else {
                        return Update::redraw();
                    };
                    let id = run.id().clone();
                    let was = state.home.run.as_ref() == Some(&id);
                    state.home.select_run(&id);
                    was
                }
            };
            if double || (was_selected && focused) {
                state.last_click = None;
                return on_action(state, Action::Open);
            }
            Update::redraw()
        }
        MouseKind::Drag | MouseKind::Up => Update::idle(),
    }
}

fn on_form(state: &mut AppState, mouse: Mouse) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown => {
            form.scroll(mouse.kind == MouseKind::WheelUp, size);
            Update::redraw()
        }
        MouseKind::Down => {
            let Some(id) = form.layout(size).field_at(mouse.col, mouse.row) else {
                return Update::idle();
            };
            form.fields.focus(id.clone());
            match form.fields.get(&id).map(|field| &field.value) {
                Some(FieldValue::Button) => on_action(
                    state,
                    if id == FieldId::Start { Action::Start } else { Action::Cancel },
                ),
                Some(FieldValue::Text(_)) => {
                    form.place_cursor(size, mouse.col, mouse.row);
                    Update::redraw()
                }
                Some(FieldValue::Model { .. }) => on_action(state, Action::Press),
                _ => {
                    form.change_focused(true);
                    Update::redraw()
                }
            }
        }
        MouseKind::Drag | MouseKind::Up => Update::idle(),
    }
}

/// The list of a window: a click selects a line, a click on the selected one takes it, a click outside
/// the window closes it, the wheel scrolls the list or moves the selection.
fn on_list(state: &mut AppState, mouse: Mouse) -> Update {
    let AppState { overlays, runs, history, size, .. } = state;
    let listed = RunList { runs, history };
    let top = overlays.last_mut().and_then(|top| top.open_list(*size, listed));
    let Some(mut list) = top else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown => {
            let up = mouse.kind == MouseKind::WheelUp;
            match list.scroll(up) {
                true => Update::redraw(),
                false => on_action(state, if up { Action::Up } else { Action::Down }),
            }
        }
        MouseKind::Down if hits(list.area, mouse.col, mouse.row) => {
            let take = list.take;
            match (list.click(mouse.row - list.area.y), take) {
                (Some(true), Some(take)) => on_action(state, take),
                (clicked, _) => Update::when(clicked.is_some()),
            }
        }
        MouseKind::Down if !hits(list.window, mouse.col, mouse.row) => {
            on_action(state, Action::Cancel)
        }
        _ => Update::idle(),
    }
}
