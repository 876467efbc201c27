//! Keys: from the binding table to what they do on the screen or the overlay that is focused.

use super::action::Action;
use super::confirm::{Confirm, Then};
use super::effect::{Effect, LaunchRequest, ModelWanted};
use super::entry::Entry;
use super::flags::Drawer;
use super::form::{FieldId, Form, Typed};
use super::help::Help;
use super::home::HomePane;
use super::key::Key;
use super::keymap;
use super::layout::{Parts, inside};
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::preview;
use super::run::{Outcome, RunPage};
use super::state::{Screen, Size, Starting, State};
use super::update::{Update, arrange_home};
use crate::event::kind::By;
use crate::event::world::Stage;
use crate::event::{Command, RunId};

/// The window of the help at this size.
pub fn help_window(size: Size) -> ratatui::layout::Rect {
    super::layout::centred(Parts::of(size.area()).body, 100, 40)
}

/// The rows of the help's list: its window without border, the line that is typed and the legend.
pub fn help_rows(size: Size) -> usize {
    usize::from(inside(help_window(size)).height.saturating_sub(4)).max(1)
}

pub(super) fn on_key(state: &mut State, key: Key) -> Update {
    if let Some(action) = keymap::lookup(state.context(), key) {
        return on_action(state, action);
    }
    let size = state.size;
    match state.overlays.last_mut() {
        Some(Overlay::Form(form)) => {
            let taken = form.on_key(key) == Typed::Taken;
            form.arrange(size);
            Update::when(taken)
        }
        Some(Overlay::Help(help)) => Update::when(help.on_key(key)),
        Some(Overlay::Flags(_) | Overlay::Confirm(_)) => Update::idle(),
        None => match watched(state) {
            Some(page) => page.on_key(key).into(),
            None => Update::idle(),
        },
    }
}

pub(super) fn on_paste(state: &mut State, text: &str) -> Update {
    let size = state.size;
    match state.overlays.last_mut() {
        Some(Overlay::Form(form)) => {
            let said = form.on_paste(text);
            form.arrange(size);
            if let Err(said) = said {
                state.say(NoticeKind::Info, said);
            }
            Update::redraw()
        }
        Some(Overlay::Help(help)) => {
            help.on_paste(text);
            Update::redraw()
        }
        Some(Overlay::Flags(_) | Overlay::Confirm(_)) => Update::idle(),
        None => match watched(state) {
            Some(page) => page.on_paste(text).into(),
            None => Update::idle(),
        },
    }
}

pub(super) fn watched(state: &mut State) -> Option<&mut RunPage> {
    let Screen::Run(id) = &state.screen else { return None };
    let id = id.clone();
    state.run_mut(&id)
}

/// Does what an action means where the focus is.
pub(super) fn on_action(state: &mut State, action: Action) -> Update {
    if action != Action::Interrupt {
        state.interrupted = None;
    }
    match action {
        Action::Interrupt => return interrupt(state),
        Action::Redraw => return Update::effect(Effect::Redraw),
        Action::Suspend => return suspend(state),
        Action::Help if !matches!(state.overlays.last(), Some(Overlay::Help(_))) => {
            state.overlays.push(Overlay::Help(Help::over(state.context())));
            return Update::redraw();
        }
        _ => {}
    }
    match state.overlays.last() {
        Some(Overlay::Form(_)) => on_form(state, action),
        Some(Overlay::Flags(_)) => on_flags(state, action),
        Some(Overlay::Help(_)) => on_help(state, action),
        Some(Overlay::Confirm(_)) => on_confirm(state, action),
        None => on_screen(state, action),
    }
}

fn on_screen(state: &mut State, action: Action) -> Update {
    if action != Action::Redraw {
        // Whoever does something else in the meantime is not taken to the run that starts.
        state.starting.iter_mut().for_each(|starting| starting.open = false);
    }
    let size = state.size;
    if let Some(page) = watched(state) {
        match page.on_action(action, size) {
            Outcome::Ignored => {}
            outcome => return outcome.into(),
        }
    } else {
        let items = preview::items(state).len();
        if state.home.on_move(action, &state.scenarios, &state.runs, items, size) {
            arrange_home(state);
            return Update::redraw();
        }
    }
    match action {
        Action::Open => open(state),
        Action::NewRun => new_run(state),
        Action::Flags => flags(state),
        Action::PauseResume => to_subject(state, |page| match page.world().stage {
            Stage::Pausing { .. } | Stage::Paused { .. } => Command::Resume { by: By::You },
            _ => Command::Pause { by: By::You },
        }),
        Action::Step => to_subject(state, |_| Command::Step),
        Action::StepRound => to_subject(state, |_| Command::StepRound),
        Action::Kill => kill(state),
        Action::Copy => copy(state),
        Action::Rescan => Update::effect(Effect::Rescan),
        Action::Back => {
            if let Screen::Run(id) = &state.screen {
                let id = id.clone();
                state.home.select_run(&id);
                state.home.focus(HomePane::Runs);
            }
            state.screen = Screen::Home;
            arrange_home(state);
            Update::redraw()
        }
        Action::Quit => quit(state, 0),
        Action::Cancel => Update::when(state.notices.dismiss()),
        _ => Update::idle(),
    }
}

fn on_form(state: &mut State, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Start => return start_form(state),
        Action::Press if form.focus == FieldId::Start => return start_form(state),
        Action::Press if form.focus == FieldId::Cancel => return close_form(state),
        Action::Cancel | Action::Back => return close_form(state),
        Action::Copy => {
            let line = form.command_line();
            state.say(NoticeKind::Info, "Copied the command line.");
            return Update::effect(Effect::Copy(line));
        }
        _ => {}
    }
    let taken = form.on_action(action);
    form.arrange(size);
    Update::when(taken)
}

fn close_form(state: &mut State) -> Update {
    match state.overlays.last() {
        Some(Overlay::Form(form)) if form.changed() => {
            state.overlays.push(Overlay::Confirm(Confirm::discard()));
        }
        _ => {
            state.overlays.pop();
        }
    }
    Update::redraw()
}

fn start_form(state: &mut State) -> Update {
    let (id, size) = (state.next_request(), state.size);
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    let Some(request) = form.request(id) else {
        form.focus_fault();
        form.arrange(size);
        let count = form.faults.iter().filter(|fault| fault.error).count();
        let plural = if count == 1 { "" } else { "s" };
        state.say(NoticeKind::Error, format!("Not started: {count} problem{plural} in the form."));
        return Update::redraw();
    };
    state.overlays.pop();
    start(state, request)
}

fn start(state: &mut State, request: LaunchRequest) -> Update {
    state.starting.iter_mut().for_each(|starting| starting.open = false);
    state.starting.push(Starting {
        request: request.id,
        title: request.scenario.title.clone(),
        open: true,
    });
    Update::effect(Effect::Start(Box::new(request)))
}

fn open(state: &mut State) -> Update {
    match state.home.about {
        HomePane::Runs => {
            let Some(page) = state.home.selected_run(&state.runs) else { return Update::idle() };
            state.screen = Screen::Run(page.id().clone());
            Update::redraw()
        }
        HomePane::Scenarios | HomePane::Preview => {
            let id = state.next_request();
            match state.home.selected_scenario(&state.scenarios).map(|entry| &entry.loaded) {
                Some(Ok(scenario)) => {
                    let request = LaunchRequest {
                        id,
                        scenario: scenario.clone(),
                        model: ModelWanted::Scripted { instant: false },
                        flags: Vec::new(),
                        seed: None,
                    };
                    start(state, request)
                }
                Some(Err(_)) => broken(state),
                None => Update::idle(),
            }
        }
    }
}

fn broken(state: &mut State) -> Update {
    state.say(
        NoticeKind::Error,
        "This scenario cannot be run: the preview says why. Mend it, then r reads it again.",
    );
    Update::redraw()
}

fn new_run(state: &mut State) -> Update {
    let entry: Option<&Entry> = match state.watched().and_then(|page| page.world().head.as_ref()) {
        Some(head) => state.scenarios.iter().find(|entry| entry.name == head.scenario),
        None => state.home.selected_scenario(&state.scenarios),
    };
    let Some(entry) = entry else {
        state.say(NoticeKind::Info, "No scenario is selected: choose one on the first screen.");
        return Update::redraw();
    };
    let Some(mut form) = Form::new(entry) else { return broken(state) };
    form.arrange(state.size);
    state.overlays.push(Overlay::Form(Box::new(form)));
    Update::redraw()
}

fn flags(state: &mut State) -> Update {
    let Some(page) = state.subject() else {
        state.say(NoticeKind::Info, "No run is selected: flags belong to a run.");
        return Update::redraw();
    };
    let drawer = Drawer::of(page.id().clone(), page.world());
    state.overlays.push(Overlay::Flags(drawer));
    Update::redraw()
}

fn on_flags(state: &mut State, action: Action) -> Update {
    let State { overlays, asked, runs, notices, now, .. } = state;
    let Some(Overlay::Flags(drawer)) = overlays.last_mut() else { return Update::idle() };
    let Some(page) = runs.iter().find(|page| *page.id() == drawer.run) else {
        overlays.pop();
        return Update::redraw();
    };
    let world = page.world();
    match action {
        Action::Cancel | Action::Back | Action::Flags => {
            overlays.pop();
            Update::redraw()
        }
        Action::Toggle => {
            let run = drawer.run.clone();
            let command = drawer.selected.as_ref().and_then(|flag| asked.switch(&run, flag, world));
            match command {
                Some(command) => Update::effect(Effect::Command { run, command }),
                None => {
                    let why = if world.is_live() {
                        "This run has no flags."
                    } else {
                        "The run has ended: its flags stay as they are."
                    };
                    notices.say(*now, NoticeKind::Info, why.to_owned());
                    Update::redraw()
                }
            }
        }
        Action::Undo => match asked.undo(&drawer.run, world) {
            Some((flag, command)) => {
                drawer.selected = Some(flag);
                Update::effect(Effect::Command { run: drawer.run.clone(), command })
            }
            None => {
                notices.say(*now, NoticeKind::Info, "No switch of yours to take back.".to_owned());
                Update::redraw()
            }
        },
        _ => Update::when(drawer.on_move(action, world, 5)),
    }
}

fn on_help(state: &mut State, action: Action) -> Update {
    let rows = help_rows(state.size);
    let Some(Overlay::Help(help)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Cancel => {
            state.overlays.pop();
            Update::redraw()
        }
        Action::Choose => {
            let Some(row) = help.chosen() else { return Update::idle() };
            if !help.here(row) {
                let places: Vec<_> = row.contexts.iter().map(|it| it.word()).collect();
                let said = format!("Not here: it works in {}.", places.join(", "));
                state.say(NoticeKind::Info, said);
                return Update::redraw();
            }
            let action = row.action;
            state.overlays.pop();
            let mut update = on_action(state, action);
            update.redraw = true;
            update
        }
        action => Update::when(help.on_move(action, rows)),
    }
}

fn on_confirm(state: &mut State, action: Action) -> Update {
    match action {
        Action::Confirm => {
            let Some(Overlay::Confirm(confirm)) = state.overlays.pop() else {
                return Update::idle();
            };
            let cancel = |run| Effect::Command { run, command: Command::Cancel };
            match confirm.then {
                Then::Kill(runs) => {
                    Update { redraw: true, effects: runs.into_iter().map(cancel).collect() }
                }
                Then::Quit { code } => Update::effect(Effect::Quit { code }),
                Then::Discard => {
                    state.overlays.pop();
                    Update::redraw()
                }
                Then::Trust(request) => {
                    let (hash, title) =
                        (request.scenario.hash.clone(), request.scenario.title.clone());
                    let effects = vec![Effect::Trust { hash, title }, Effect::Start(request)];
                    Update { redraw: true, effects }
                }
            }
        }
        Action::Decline | Action::Cancel => {
            if let Some(Overlay::Confirm(Confirm { then: Then::Trust(request), .. })) =
                state.overlays.pop()
            {
                state.starting.retain(|starting| starting.request != request.id);
            }
            Update::redraw()
        }
        _ => Update::idle(),
    }
}

fn to_subject(state: &mut State, command: impl Fn(&RunPage) -> Command) -> Update {
    let said = match state.subject() {
        Some(page) if matches!(page.world().stage, Stage::Closed) => {
            format!("{} has ended.", page.id())
        }
        Some(page) => {
            let (run, command) = (page.id().clone(), command(page));
            return Update::effect(Effect::Command { run, command });
        }
        None => "No run is selected.".to_owned(),
    };
    state.say(NoticeKind::Info, said);
    Update::redraw()
}

fn kill(state: &mut State) -> Update {
    let live: Vec<RunId> = match state.watched() {
        Some(page) if page.world().is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            let ask = Confirm::kill(page.id(), title);
            state.overlays.push(Overlay::Confirm(ask));
            return Update::redraw();
        }
        Some(_) => Vec::new(),
        None => state.live_runs().map(|page| page.id().clone()).collect(),
    };
    if live.is_empty() {
        state.say(NoticeKind::Info, "No run is live.");
    } else {
        state.overlays.push(Overlay::Confirm(Confirm::kill_all(live)));
    }
    Update::redraw()
}

/// On the first screen: the command line that starts the selected scenario as it is, or a run's id.
fn copy(state: &mut State) -> Update {
    let text = match state.home.about {
        HomePane::Runs => {
            state.home.selected_run(&state.runs).map(|page| page.id().as_str().to_owned())
        }
        _ => state
            .home
            .selected_scenario(&state.scenarios)
            .map(|entry| format!("roundtable run {}", super::form::quoted(&entry.path))),
    };
    let Some(text) = text else { return Update::idle() };
    state.say(NoticeKind::Info, format!("Copied: {text}"));
    Update::effect(Effect::Copy(text))
}

pub(super) fn quit(state: &mut State, code: u8) -> Update {
    match state.live_runs().count() {
        0 => Update::effect(Effect::Quit { code }),
        live => {
            state.overlays.push(Overlay::Confirm(Confirm::quit(live, code)));
            Update::redraw()
        }
    }
}

/// Ctrl-C: asks to stop the run (on the first screen, to leave); twice quits.
fn interrupt(state: &mut State) -> Update {
    if state.interrupted.is_some() {
        return Update::effect(Effect::Quit { code: 130 });
    }
    state.interrupted = Some(state.now);
    let ask = match state.watched() {
        Some(page) if page.world().is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            Some(Confirm::kill(page.id(), title))
        }
        _ => None,
    };
    match (ask, state.live_runs().count()) {
        (Some(ask), _) => state.overlays.push(Overlay::Confirm(ask)),
        (None, 0) => {}
        (None, live) => state.overlays.push(Overlay::Confirm(Confirm::quit(live, 130))),
    }
    state.say(NoticeKind::Info, "Ctrl-C again quits.");
    Update::redraw()
}

/// Ctrl-Z: what is going is paused first, or its time would go on.
fn suspend(state: &mut State) -> Update {
    let going: Vec<RunId> = state
        .runs
        .iter()
        .filter(|page| matches!(page.world().stage, Stage::Running | Stage::Empty))
        .map(|page| page.id().clone())
        .collect();
    let pause = |run: &RunId| Effect::Command {
        run: run.clone(),
        command: Command::Pause { by: By::Suspend },
    };
    let mut effects: Vec<_> = going.iter().map(pause).collect();
    effects.push(Effect::Suspend);
    state.suspended = going;
    Update { redraw: true, effects }
}
