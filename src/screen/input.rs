//! Keys: from the binding table to their effect on the screen or the focused overlay.

use super::action::Action;
use super::effect::{Effect, LaunchRequest, RunBeginning, Update};
use super::form::KeyOutcome;
use super::home::history::RunList;
use super::home::{HomePane, arrange_home, home_filter, kept, preview, scenarios, when_filtered};
use super::key::{KeyCode, KeyPress};
use super::key_hints::Why;
use super::keymap::Context;
use super::launch::{new_run, refuse_broken_scenario, start};
use super::layout::too_small;
use super::list::ListState;
use super::notice::{ACTS_ON_LIVE_RUN, NoticeKind};
use super::run::copy::copied;
use super::run::{InputOutcome, RunPage, earlier};
use super::session::{interrupt, kill, quit, suspend};
use super::state::{ActiveScreen, AppState, visible_run_mut};
use super::windows::commands::CommandList;
use super::windows::faults::FaultsDrawer;
use super::windows::flags::FlagsDrawer;
use super::windows::help::Help;
use super::windows::{Overlay, card, inbox, on_commands, on_confirm, on_drawer, on_form, on_help};
use super::{comparison, key_hints, keymap, launch, questions, session, strip, tour};
use crate::log::event::{Command, Initiator};
use crate::log::world::RunState;
use crate::log::world::available::Unavailable;
use crate::scenario::catalogue::RequestedModel;

pub(crate) fn on_key(state: &mut AppState, key: KeyPress) -> Update {
    let action = keymap::lookup(state.context(), key);
    if action.is_none() && key.alt && !state.context().takes_text() {
        return on_escape_and_key(state, KeyPress { alt: false, ..key });
    }
    if too_small(state.size.area()) && !action.is_some_and(is_allowed_when_too_small) {
        return Update::idle();
    }
    if questions::is_too_late(state, key) {
        let said = "Too late: the card has closed. The key did nothing.";
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    if let Some(action) = action {
        return on_action(state, action);
    }
    let (size, now) = (state.size, state.now);
    match state.overlays.last_mut() {
        Some(Overlay::Form(form)) => {
            let typed = form.on_key(key);
            form.arrange(size);
            if typed == KeyOutcome::NotEditing {
                state.notify(NoticeKind::Info, "Press Enter to edit this field.");
            }
            Update::when(typed != KeyOutcome::Ignored)
        }
        Some(Overlay::Help(help)) => Update::when(help.on_key(key)),
        Some(Overlay::Commands(list)) => Update::when(list.on_key(key)),
        Some(Overlay::Message(message)) => Update::when(message.on_key(key)),
        Some(Overlay::Card(card)) => Update::when(card.on_key(key, now)),
        Some(_) => Update::idle(),
        None => {
            let update = match visible_run_mut(state) {
                Some(page) => page.on_key(key).into(),
                None => {
                    let typed = home_filter(state).on_key(key);
                    when_filtered(state, typed)
                }
            };
            if update.redraw || state.context().takes_text() {
                return update;
            }
            key_hints::explain_key(state, key)
        }
    }
}

/// Escape and a key right after it: the terminal sends the same bytes for that key with Alt, which has no action here.
fn on_escape_and_key(state: &mut AppState, key: KeyPress) -> Update {
    let mut update = on_key(state, KeyPress::new(KeyCode::Esc));
    let second = on_key(state, key);
    update.redraw |= second.redraw;
    update.effects.extend(second.effects);
    update
}

/// Whether an action is allowed while the screen is too small to show its effect.
fn is_allowed_when_too_small(action: Action) -> bool {
    matches!(action, Action::Quit | Action::Interrupt | Action::Suspend | Action::Redraw)
}

pub(super) fn on_paste(state: &mut AppState, text: &str) -> Update {
    let (size, now) = (state.size, state.now);
    if too_small(size.area()) {
        return Update::idle();
    }
    match state.overlays.last_mut() {
        Some(Overlay::Form(form)) => {
            let said = form.on_paste(text);
            form.arrange(size);
            if let Err(said) = said {
                state.notify(NoticeKind::Info, said);
            }
            Update::redraw()
        }
        Some(Overlay::Help(help)) => {
            help.on_paste(text);
            Update::redraw()
        }
        Some(Overlay::Commands(list)) => {
            list.on_paste(text);
            Update::redraw()
        }
        Some(Overlay::Message(message)) => {
            if let Some(said) = message.on_paste(text) {
                state.notify(NoticeKind::Info, said);
            }
            Update::redraw()
        }
        Some(Overlay::Card(card)) => {
            if let Some(said) = card.on_paste(text, now) {
                state.notify(NoticeKind::Info, said);
            }
            Update::redraw()
        }
        Some(_) => Update::idle(),
        None => match visible_run_mut(state) {
            Some(page) => page.on_paste(text).into(),
            None => {
                let typed = home_filter(state).on_paste(text);
                when_filtered(state, typed)
            }
        },
    }
}

/// Carries out an action in the focused context.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    if action != Action::Interrupt {
        state.interrupted_at = None;
    }
    match action {
        Action::Interrupt => return interrupt(state),
        Action::Redraw => return Update::effect(Effect::Redraw),
        Action::Picture => return Update::effect(Effect::Picture),
        Action::Theme => return Update::effect(Effect::NextTheme),
        Action::Suspend => return suspend(state),
        Action::Help if !matches!(state.overlays.last(), Some(Overlay::Help(_))) => {
            state.overlays.push(Overlay::Help(Help::open(state.context())));
            return Update::redraw();
        }
        Action::Commands => {
            let list = CommandList::new(|action| key_hints::refusal(state, action));
            state.overlays.push(Overlay::Commands(list));
            return Update::redraw();
        }
        _ => {}
    }
    match state.overlays.last() {
        Some(Overlay::Form(_)) => on_form(state, action),
        Some(Overlay::Flags(_) | Overlay::Faults(_) | Overlay::Members(_)) => {
            on_drawer(state, action)
        }
        Some(Overlay::Message(_)) => super::windows::message::on_action(state, action),
        Some(Overlay::Inbox(_)) => inbox::on_action(state, action),
        Some(Overlay::Card(_)) => card::on_action(state, action),
        Some(Overlay::Help(_)) => match on_help(state, action) {
            Ok(update) => update,
            Err(chosen) => Update { redraw: true, ..on_action(state, chosen) },
        },
        Some(Overlay::Commands(_)) => match on_commands(state, action) {
            Ok(update) => update,
            Err(chosen) => Update { redraw: true, ..on_action(state, chosen) },
        },
        Some(Overlay::Templates(_)) => scenarios::on_templates(state, action),
        Some(Overlay::Comparison(_)) => comparison::on_action(state, action),
        Some(Overlay::Confirm(_)) => on_confirm(state, action),
        None => {
            let update = on_screen(state, action);
            key_hints::explain(state, action, update)
        }
    }
}

fn on_screen(state: &mut AppState, action: Action) -> Update {
    if action != Action::Redraw {
        // If the operator does something else meanwhile, stay on the current screen.
        state.starting.iter_mut().for_each(|starting| starting.open = false);
        state.to_compare.awaited = None;
    }
    let size = state.size;
    if action == Action::Cancel && tour::leave(state) {
        return Update::redraw();
    }
    if kept::is_only_watched(state, action) {
        state.notify(NoticeKind::Info, Unavailable::Watched.sentence());
        return Update::redraw();
    }
    if let Some(run) = kept::refused_run(state, action).cloned() {
        return match action {
            Action::PauseResume => launch::resume(state, &run),
            _ => kept::refuse(state, &run),
        };
    }
    if let Some(page) = visible_run_mut(state) {
        let outcome = page.on_action(action, size);
        if let InputOutcome::Emit(effects) = &outcome
            && let [Effect::Copy(text)] = &effects[..]
        {
            let said = copied(page, action, text);
            state.notify(NoticeKind::Info, said);
            return Update::from(outcome);
        }
        match outcome {
            InputOutcome::Ignored => {
                if let Err(Why::Because(why)) = page.views.available(page, action) {
                    state.notify(NoticeKind::Info, why);
                    return Update::redraw();
                }
            }
            InputOutcome::Emit(effects) if page.is_scrubbed() && is_manual_control(action) => {
                state.notify(NoticeKind::Info, ACTS_ON_LIVE_RUN);
                return Update { redraw: true, effects };
            }
            InputOutcome::OpenCard(key) => return card::open(state, &key),
            outcome => return earlier::after(state, outcome),
        }
    } else {
        let items = preview::items(state).lines.len();
        let runs = RunList { runs: &state.runs, history: &state.history };
        if state.home.on_move(action, &state.scenarios, runs, items, size) {
            arrange_home(state);
            return Update::redraw();
        }
    }
    match action {
        Action::Open => open(state),
        Action::Tour => tour::start(state),
        Action::NewRun => new_run(state),
        Action::NewScenario => scenarios::new_scenario(state),
        Action::Edit => scenarios::edit(state),
        Action::Flags => flags(state),
        Action::Faults => faults(state),
        Action::Members => super::windows::members::open(state),
        Action::Message => super::windows::message::open(state),
        Action::Inbox => inbox::open(state),
        Action::Fork => launch::fork(state),
        Action::Compare => comparison::compare(state),
        Action::Restart => launch::restart(state),
        Action::PauseResume => send_to_target(state, |page| match page.world().progress.stage {
            RunState::Pausing { .. } | RunState::Paused { .. } => {
                Command::Resume { by: Initiator::You }
            }
            _ => Command::Pause { by: Initiator::You },
        }),
        Action::PrevRun => session::show_neighbour(state, 1),
        Action::NextRun => session::show_neighbour(state, -1),
        Action::PauseAll => session::pause_or_resume_all(state),
        Action::Step => send_to_target(state, |_| Command::Step),
        Action::StepRound => send_to_target(state, |_| Command::StepRound),
        Action::Kill => kill(state),
        Action::Copy => copy(state),
        Action::Filter | Action::Sort if key_hints::refusal(state, action).is_some() => {
            Update::idle()
        }
        Action::Filter => {
            if state.home.preview_source == HomePane::Runs {
                state.home.focus(HomePane::Runs);
            } else {
                state.home.focus(HomePane::Scenarios);
            }
            home_filter(state).begin();
            when_filtered(state, true)
        }
        Action::Apply => {
            home_filter(state).keep();
            when_filtered(state, true)
        }
        Action::Sort => {
            state.home.focus(HomePane::Runs);
            state.history.sort_next();
            when_filtered(state, true)
        }
        Action::Pin => kept::pin(state),
        Action::Remove => kept::remove(state),
        Action::Undo => kept::restore(state),
        Action::Rescan => {
            let mut effects = list_kept(state);
            state.is_rescanning = true;
            effects.push(Effect::Rescan);
            Update { redraw: true, effects }
        }
        Action::Back => {
            if let ActiveScreen::Run(id) = &state.screen {
                let id = id.clone();
                state.home.select_run(&id);
                state.home.focus(HomePane::Runs);
            }
            state.screen = ActiveScreen::Home;
            arrange_home(state);
            let effects = list_kept(state);
            Update { redraw: true, effects }
        }
        Action::Quit => quit(state, 0),
        Action::Cancel
            if state.screen_context() == Context::Home && comparison::clear_mark(state) =>
        {
            Update::redraw()
        }
        Action::Cancel if state.visible_run().is_none() && home_filter(state).clear() => {
            when_filtered(state, true)
        }
        Action::Cancel => Update::when(strip::dismiss(state) || state.notices.dismiss()),
        _ => Update::idle(),
    }
}

/// Whether an action changes a tool or the concurrency of a run.
fn is_manual_control(action: Action) -> bool {
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

fn open(state: &mut AppState) -> Update {
    match state.home.preview_source {
        HomePane::Runs => match state.selected_run().map(|run| run.id().clone()) {
            Some(run) => session::show(state, &run),
            None => Update::idle(),
        },
        HomePane::Scenarios | HomePane::Preview => {
            let id = state.next_request();
            match state.home.selected_scenario(&state.scenarios).map(|entry| &entry.loaded) {
                Some(Ok(scenario)) => {
                    let request = LaunchRequest {
                        id,
                        scenario: scenario.clone(),
                        model: RequestedModel::Scripted { instant: false },
                        flags: Vec::new(),
                        seed: None,
                        begins: RunBeginning::New,
                    };
                    start(state, request)
                }
                Some(Err(_)) => refuse_broken_scenario(state),
                None => Update::idle(),
            }
        }
    }
}

/// Asks for the kept runs again, where runs are kept.
pub(crate) fn list_kept(state: &AppState) -> Vec<Effect> {
    if state.history.is_known() { vec![Effect::ListKept] } else { Vec::new() }
}

fn flags(state: &mut AppState) -> Update {
    let Some(page) = state.target_run() else {
        state.notify(NoticeKind::Info, "No run is selected: flags belong to a run. Select one.");
        return Update::redraw();
    };
    let drawer = FlagsDrawer { run: page.id().clone(), list: ListState::default() };
    state.overlays.push(Overlay::Flags(drawer));
    Update::redraw()
}

fn faults(state: &mut AppState) -> Update {
    let Some((run, tool)) = state
        .visible_run()
        .and_then(|page| Some((page.id().clone(), page.views.tools.tool(page)?.name().clone())))
    else {
        return Update::idle();
    };
    let drawer = FaultsDrawer { run, tool, list: ListState::default() };
    state.overlays.push(Overlay::Faults(drawer));
    Update::redraw()
}

fn send_to_target(state: &mut AppState, command: impl Fn(&RunPage) -> Command) -> Update {
    let said = match state.target_run() {
        Some(page) if matches!(page.world().progress.stage, RunState::Closed) => {
            format!("{} has ended.", page.id())
        }
        Some(page) => {
            let (run, command) = (page.id().clone(), command(page));
            return Update::effect(Effect::Command { run, command });
        }
        None => "No run is selected.".to_owned(),
    };
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

/// On the first screen: copies the command line of the selected scenario, or the id of a run.
fn copy(state: &mut AppState) -> Update {
    let text = match state.home.preview_source {
        HomePane::Runs => state.selected_run().map(|run| run.id().as_str().to_owned()),
        _ => state
            .home
            .selected_scenario(&state.scenarios)
            .map(|entry| format!("roundtable run {}", super::form::quoted(&entry.path))),
    };
    let Some(text) = text else { return Update::idle() };
    state.notify(NoticeKind::Info, format!("Copied: {text}"));
    Update::effect(Effect::Copy(text))
}
