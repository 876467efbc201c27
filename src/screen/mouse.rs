//! The mouse: a click focuses and selects, a click on the selection opens it, the wheel scrolls
//! what is under it. Everything works without a mouse.

use std::time::Duration;

use ratatui::layout::Rect;

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
use super::windows::Overlay;
use super::windows::help::{help_rows, help_window};
use super::windows::picker::PickerParts;
use crate::log::event::RunId;

/// Two clicks within this time are one double click.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

pub(crate) fn on_mouse(state: &mut AppState, mouse: Mouse) -> Update {
    if too_small(state.size.area()) {
        return Update::idle();
    }
    let keys = ScreenParts::split(state.size.area()).keys;
    if mouse.kind == MouseKind::Down && hits(keys, mouse.col, mouse.row) {
        return match key_hints::action_at(state, keys.width, mouse.col) {
            Some(action) => on_action(state, action),
            None => Update::idle(),
        };
    }
    match state.overlays.last() {
        Some(Overlay::Form(_)) => on_form(state, mouse),
        Some(Overlay::Help(_)) => on_help(state, mouse),
        Some(Overlay::Commands(_)) => on_commands(state, mouse),
        Some(
            Overlay::Flags(_) | Overlay::Faults(_) | Overlay::Members(_) | Overlay::Templates(_),
        ) => on_drawer(state, mouse),
        Some(Overlay::Comparison(_)) => on_comparison(state, mouse),
        Some(Overlay::Message(message)) => match mouse.kind {
            MouseKind::Down if !hits(message.window(state.size), mouse.col, mouse.row) => {
                on_action(state, Action::Cancel)
            }
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
                } else {
                    Update::idle()
                }
            }
            _ => Update::idle(),
        },
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

/// The list of models: a click selects, a click on the selection chooses it.
fn on_picker(state: &mut AppState, mouse: Mouse) -> Update {
    let parts = PickerParts::split(state.size);
    let double = mouse.kind == MouseKind::Down && is_double(state, mouse);
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp => on_action(state, Action::Up),
        MouseKind::WheelDown => on_action(state, Action::Down),
        MouseKind::Down if hits(parts.list, mouse.col, mouse.row) => {
            match form.click_picker(usize::from(mouse.row - parts.list.y)) {
                Some(was) if was || double => on_action(state, Action::Take),
                clicked => Update::when(clicked.is_some()),
            }
        }
        MouseKind::Down if !hits(parts.window, mouse.col, mouse.row) => {
            on_action(state, Action::Cancel)
        }
        _ => Update::idle(),
    }
}

fn on_form(state: &mut AppState, mouse: Mouse) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    if form.picker.is_some() {
        return on_picker(state, mouse);
    }
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

fn on_help(state: &mut AppState, mouse: Mouse) -> Update {
    let rows = help_rows(state.size);
    let inner = inside(help_window(state.size));
    let double = mouse.kind == MouseKind::Down && is_double(state, mouse);
    let Some(Overlay::Help(help)) = state.overlays.last_mut() else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown => {
            help.scroll(mouse.kind == MouseKind::WheelUp, rows);
            Update::redraw()
        }
        MouseKind::Down if hits(inner, mouse.col, mouse.row) => {
            let Some(line) = (mouse.row - inner.y).checked_sub(2) else { return Update::idle() };
            if usize::from(line) >= rows {
                return Update::idle();
            }
            let was = help.selected;
            let now = help.select_line(usize::from(line));
            if now.is_some() && (double || now == was) {
                return on_action(state, Action::Choose);
            }
            Update::redraw()
        }
        MouseKind::Down => {
            state.overlays.pop();
            Update::redraw()
        }
        MouseKind::Drag | MouseKind::Up => Update::idle(),
    }
}

/// The list of commands: a click selects, a click on the selection runs it.
fn on_commands(state: &mut AppState, mouse: Mouse) -> Update {
    let rows = help_rows(state.size);
    let inner = inside(help_window(state.size));
    let double = mouse.kind == MouseKind::Down && is_double(state, mouse);
    let Some(Overlay::Commands(list)) = state.overlays.last_mut() else { return Update::idle() };
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown => {
            list.scroll(mouse.kind == MouseKind::WheelUp, rows);
            Update::redraw()
        }
        MouseKind::Down if hits(inner, mouse.col, mouse.row) => {
            let line = usize::from(mouse.row - inner.y).checked_sub(2).filter(|it| *it < rows);
            match line.and_then(|line| list.select_line(line)) {
                Some(was) if was || double => on_action(state, Action::Choose),
                clicked => Update::when(clicked.is_some()),
            }
        }
        MouseKind::Down => {
            state.overlays.pop();
            Update::redraw()
        }
        MouseKind::Drag | MouseKind::Up => Update::idle(),
    }
}

/// A drawer over a run or a list: a click selects a row, a click on the selected one switches or takes it, a click
/// outside the window closes it, the wheel moves.
fn on_drawer(state: &mut AppState, mouse: Mouse) -> Update {
    let size = state.size;
    let AppState { overlays, runs, .. } = state;
    let world_of = |run: &RunId| runs.iter().find(|page| page.id() == run).map(|page| page.world());
    let line = |list: Rect| {
        let clicked = mouse.kind == MouseKind::Down && hits(list, mouse.col, mouse.row);
        clicked.then(|| usize::from(mouse.row - list.y))
    };
    let mut pressed = Action::Toggle;
    let (window, clicked) = match overlays.last_mut() {
        Some(Overlay::Flags(drawer)) => {
            let Some(world) = world_of(&drawer.run) else { return Update::idle() };
            let parts = drawer.parts(size, world);
            let clicked = line(parts.list).map(|line| drawer.select_line(line, parts.top, world));
            (parts.window, clicked)
        }
        Some(Overlay::Faults(drawer)) => {
            let Some(world) = world_of(&drawer.run) else { return Update::idle() };
            let parts = drawer.parts(size, world);
            let clicked = line(parts.list).map(|line| drawer.select_line(line, parts.top, world));
            (parts.window, clicked)
        }
        Some(Overlay::Members(drawer)) => {
            let Some(world) = world_of(&drawer.run) else { return Update::idle() };
            let parts = drawer.parts(size, world);
            let clicked = line(parts.list).map(|line| drawer.select_line(line, parts.top, world));
            (parts.window, clicked)
        }
        Some(Overlay::Templates(list)) => {
            let parts = list.parts(size);
            pressed = Action::WriteTemplate;
            (parts.window, line(parts.list).map(|line| list.select_line(line, parts.top)))
        }
        _ => return Update::idle(),
    };
    match (clicked, mouse.kind) {
        (Some(None), _) => Update::idle(),
        (Some(Some(true)), _) => on_action(state, pressed),
        (Some(Some(false)), _) => Update::redraw(),
        (None, MouseKind::Down) if !hits(window, mouse.col, mouse.row) => {
            state.overlays.pop();
            Update::redraw()
        }
        (None, MouseKind::WheelUp) => on_action(state, Action::Up),
        (None, MouseKind::WheelDown) => on_action(state, Action::Down),
        _ => Update::idle(),
    }
}
