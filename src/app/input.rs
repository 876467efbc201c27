//! Keys: from the binding table to their effect on the screen or the focused overlay.

use std::sync::Arc;

use super::action::Action;
use super::effect::{Effect, LaunchRequest, ModelWanted};
use super::entry::Entry;
use super::faults::FaultsDrawer;
use super::flags::Drawer;
use super::form::{Form, Typed};
use super::help::Help;
use super::home::HomePane;
use super::key::Key;
use super::keymap;
use super::layout::{Parts, inside, too_small};
use super::leave::{interrupt, kill, quit, suspend};
use super::notice::NoticeKind;
use super::over::{PRESENT, on_confirm, on_faults, on_flags, on_form, on_help};
use super::overlay::Overlay;
use super::preview;
use super::run::{Outcome, RunPage};
use super::state::{Screen, Size, Starting, State};
use super::update::{Update, arrange_home};
use super::{members, message};
use crate::event::Command;
use crate::event::kind::By;
use crate::event::world::Stage;

/// The window of the help at this size.
pub fn help_window(size: Size) -> ratatui::layout::Rect {
    super::layout::centred(Parts::of(size.area()).body, 100, 40)
}

/// Rows of the help's list: its window without border, search line and legend.
pub fn help_rows(size: Size) -> usize {
    usize::from(inside(help_window(size)).height.saturating_sub(4)).max(1)
}

pub(super) fn on_key(state: &mut State, key: Key) -> Update {
    let action = keymap::lookup(state.context(), key);
    if too_small(state.size.area()) && !action.is_some_and(goes_unseen) {
        return Update::idle();
    }
    if let Some(action) = action {
        return on_action(state, action);
    }
    let size = state.size;
    match state.overlays.last_mut() {
        Some(Overlay::Form(form)) => {
            let typed = form.on_key(key);
            form.arrange(size);
            if typed == Typed::Outside {
                state.say(NoticeKind::Info, "Press Enter to edit this field.");
            }
            Update::when(typed != Typed::Ignored)
        }
        Some(Overlay::Help(help)) => Update::when(help.on_key(key)),
        Some(Overlay::Message(message)) => Update::when(message.on_key(key)),
        Some(
            Overlay::Flags(_) | Overlay::Faults(_) | Overlay::Members(_) | Overlay::Confirm(_),
        ) => Update::idle(),
        None => match watched(state) {
            Some(page) => page.on_key(key).into(),
            None => Update::idle(),
        },
    }
}

/// Whether an action is allowed while the screen is too small to show its effect.
fn goes_unseen(action: Action) -> bool {
    matches!(action, Action::Quit | Action::Interrupt | Action::Suspend | Action::Redraw)
}

pub(super) fn on_paste(state: &mut State, text: &str) -> Update {
    let size = state.size;
    if too_small(size.area()) {
        return Update::idle();
    }
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
        Some(Overlay::Message(message)) => {
            if let Some(said) = message.on_paste(text) {
                state.say(NoticeKind::Info, said);
            }
            Update::redraw()
        }
        Some(
            Overlay::Flags(_) | Overlay::Faults(_) | Overlay::Members(_) | Overlay::Confirm(_),
        ) => Update::idle(),
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

/// Carries out an action in the focused context.
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
        Some(Overlay::Faults(_)) => on_faults(state, action),
        Some(Overlay::Members(_)) => members::on_action(state, action),
        Some(Overlay::Message(_)) => message::on_action(state, action),
        Some(Overlay::Help(_)) => on_help(state, action),
        Some(Overlay::Confirm(_)) => on_confirm(state, action),
        None => on_screen(state, action),
    }
}

fn on_screen(state: &mut State, action: Action) -> Update {
    if action != Action::Redraw {
        // Somebody who does something else meanwhile is not taken to the new run's screen.
        state.starting.iter_mut().for_each(|starting| starting.open = false);
    }
    let size = state.size;
    if let Some(page) = watched(state) {
        match page.on_action(action, size) {
            Outcome::Ignored => {
                if let Some(why) = by_hand_refused(page, action) {
                    state.say(NoticeKind::Info, why);
                    return Update::redraw();
                }
            }
            Outcome::Emit(effects) if page.is_scrubbed() && is_by_hand(action) => {
                state.say(NoticeKind::Info, PRESENT);
                return Update { redraw: true, effects };
            }
            Outcome::Say(text) => {
                state.say(NoticeKind::Info, text);
                return Update::redraw();
            }
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
        Action::Faults => faults(state),
        Action::Members => members::open(state),
        Action::Message => message::open(state),
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

/// Whether an action changes a tool or the concurrency of a run.
fn is_by_hand(action: Action) -> bool {
    matches!(
        action,
        Action::More
            | Action::Less
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable
    )
}

/// Why a key for the tools does nothing here; `None` for `!` where its drawer can be opened.
fn by_hand_refused(page: &RunPage, action: Action) -> Option<String> {
    match action {
        Action::Faults if page.can_inject() => None,
        action => page.why_not_by_hand(action),
    }
}

pub(super) fn start(state: &mut State, request: LaunchRequest) -> Update {
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
                        follows: None,
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
        "This scenario cannot be run: see the preview. Fix the file, then press r to reload.",
    );
    Update::redraw()
}

fn new_run(state: &mut State) -> Update {
    let entry: Option<&Entry> = match state.watched().and_then(|page| page.world().head.as_ref()) {
        Some(head) => state.scenarios.iter().find(|entry| entry.name == head.scenario),
        None => state.home.selected_scenario(&state.scenarios),
    };
    let Some(entry) = entry else {
        let why = match (state.scenarios.is_empty(), state.watched()) {
            (true, _) => "Still reading the scenarios: press n again in a moment.",
            (false, Some(_)) => "The scenario of this run is no longer on the list.",
            (false, None) => "No scenario is selected: choose one on the first screen.",
        };
        state.say(NoticeKind::Info, why);
        return Update::redraw();
    };
    // A new launch of a run with a chosen model keeps that model.
    let before = state.watched().and_then(|page| match &page.launch()?.model {
        ModelWanted::Live(Some(model)) => Some((Arc::clone(model), format!("as in {}", page.id()))),
        _ => None,
    });
    let named = || Some((Arc::clone(state.model.as_ref()?), "from the command line".to_owned()));
    let model = before.or_else(named);
    let entry = entry.clone();
    let id = state.next_request();
    let model = model.as_ref().map(|(model, given)| (&**model, given.clone()));
    let Some(mut form) = Form::new(&entry, id, model) else { return broken(state) };
    form.arrange(state.size);
    state.overlays.push(Overlay::Form(Box::new(form)));
    Update::redraw()
}

fn flags(state: &mut State) -> Update {
    let Some(page) = state.subject() else {
        state.say(NoticeKind::Info, "No run is selected: flags belong to a run. Select one.");
        return Update::redraw();
    };
    let drawer = Drawer::of(page.id().clone(), page.world());
    state.overlays.push(Overlay::Flags(drawer));
    Update::redraw()
}

fn faults(state: &mut State) -> Update {
    let Some((run, tool)) =
        state.watched().and_then(|page| Some((page.id().clone(), page.tool()?.name().clone())))
    else {
        return Update::idle();
    };
    state.overlays.push(Overlay::Faults(FaultsDrawer::of(run, tool)));
    Update::redraw()
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

/// On the first screen: copies the command line of the selected scenario, or the id of a run.
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
