//! What a typed word changes, for plain mode (`cli/plain/`): it names the run, the field or the question that
//! keys would reach through a window. What has no window is an [`Action`] as for a key.

use std::sync::Arc;

use super::action::Action;
use super::effect::{Effect, Update};
use super::form::FieldId;
use super::home::{HomePane, home_filter, when_filtered};
use super::input::{on_action, on_paste};
use super::notice::NoticeKind;
use super::questions::{self, QuestionKey, open_questions};
use super::run::earlier::{self, EarlierRequest};
use super::state::{ActiveScreen, AppState, visible_run_mut};
use super::windows::Overlay;
use super::{comparison, session};
use crate::base::name::FlagName;
use crate::log::event::{Answer, RunId};

/// What a word asks for.
#[derive(Debug)]
pub enum ByWord {
    /// An action, as its key would be pressed now.
    Act(Action),
    /// An action on a run of the list of runs.
    ActOn(RunId, Action),
    /// An action on the scenario with this path.
    ActOnScenario(String, Action),
    /// Show a run; a kept one is read.
    Show(RunId),
    /// Compare two runs.
    Compare(RunId, RunId),
    /// Give a field of the launch form a value.
    Field(FieldId, String),
    /// Switch a flag of a run to a position.
    Flag(RunId, FlagName, bool),
    /// Undo the last flag change of a run.
    UndoFlag(RunId),
    /// Sort the list of runs by the next order.
    SortRuns,
    /// Send the next message of the session; empty: withdraw the queued one.
    Message(String),
    Answer {
        key: QuestionKey,
        answer: Answer,
        /// Whether equal calls are approved from now on.
        remember: bool,
    },
    /// Approve all open questions of the same agent, tool and rule.
    ApproveAlike(QuestionKey),
    /// Show the run after this many events.
    Seek(usize),
    /// Read events that left memory.
    ReadEarlier(EarlierRequest),
    /// List the runs that pass a filter.
    FilterRuns(String),
    /// Carry out a job that needs no window.
    Do(Effect),
}

pub(super) fn on_word(state: &mut AppState, word: ByWord) -> Update {
    match word {
        ByWord::Act(action) => on_action(state, action),
        ByWord::ActOn(run, action) => {
            if !matches!(&state.screen, ActiveScreen::Run(shown) if *shown == run)
                || matches!(action, Action::Pin | Action::Remove)
            {
                state.screen = ActiveScreen::Home;
                state.home.select_run(&run);
                state.home.focus(HomePane::Runs);
            }
            on_action(state, action)
        }
        ByWord::ActOnScenario(path, action) => {
            let entry = state.scenarios.iter().find(|entry| entry.path == path);
            if let Some(entry) = entry {
                state.home.select_scenario(entry);
            }
            state.home.focus(HomePane::Scenarios);
            state.screen = ActiveScreen::Home;
            on_action(state, action)
        }
        ByWord::Show(run) => session::show(state, &run),
        ByWord::Compare(left, right) => comparison::request(state, left, right),
        ByWord::Field(id, text) => field(state, &id, &text),
        ByWord::Flag(run, flag, on) => switch_flag(state, &run, &flag, on),
        ByWord::UndoFlag(run) => {
            let AppState { runs, pending_flags, .. } = state;
            let world = runs.iter().find(|page| *page.id() == run).map(|page| page.world());
            let undone = world.and_then(|world| pending_flags.undo(&run, world));
            match undone {
                Some((_, command)) => Update::effect(Effect::Command { run, command }),
                None => Update::idle(),
            }
        }
        ByWord::SortRuns => {
            state.history.sort_next();
            when_filtered(state, true)
        }
        ByWord::Message(text) => message(state, &text),
        ByWord::Answer { key, answer, remember } => {
            let asked = open_questions(&state.runs).find(|it| it.key() == key);
            let Some(asked) = asked.map(|it| Arc::clone(&it.question.asked)) else {
                state.notify(NoticeKind::Info, format!("{} is not open any more.", key.id));
                return Update::redraw();
            };
            Update::effect(questions::answer(state, key, &asked, answer, remember))
        }
        ByWord::ApproveAlike(key) => {
            let marked = questions::mark(state, &key);
            match state.inbox.is_marked(&key) {
                true => questions::approve_marked(state),
                false => marked,
            }
        }
        ByWord::Seek(events) => {
            let size = state.size;
            let Some(page) = visible_run_mut(state) else { return Update::idle() };
            let outcome = page.seek(events, size);
            earlier::after(state, outcome)
        }
        ByWord::ReadEarlier(wish) => earlier::read(state, wish),
        ByWord::FilterRuns(text) => {
            state.home.focus(HomePane::Runs);
            let filter = home_filter(state);
            filter.clear();
            filter.begin();
            filter.on_paste(&text);
            filter.keep();
            when_filtered(state, true)
        }
        ByWord::Do(effect) => Update::effect(effect),
    }
}

/// Fills in a field of the open launch form.
fn field(state: &mut AppState, id: &FieldId, text: &str) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    let done = form.set(id, text);
    form.arrange(size);
    if let Err(why) = done {
        state.notify(NoticeKind::Error, format!("not set: {why}"));
    }
    Update::redraw()
}

/// Switches a flag, unless it has this position or will have it.
fn switch_flag(state: &mut AppState, run: &RunId, flag: &FlagName, on: bool) -> Update {
    let word = if on { "on" } else { "off" };
    let AppState { runs, pending_flags, .. } = state;
    let Some(world) = runs.iter().find(|page| page.id() == run).map(|page| page.world()) else {
        return Update::idle();
    };
    let said = match pending_flags.next_position(run, flag, world) == on {
        false => format!("{flag} is {word} already, or will be at the next boundary."),
        true => match pending_flags.switch(run, flag, world) {
            Ok(command) => {
                return Update::effect(Effect::Command { run: run.clone(), command });
            }
            Err(why) => why.sentence(),
        },
    };
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

/// Opens the message box, fills it and sends it; where it cannot be opened, a notice says why.
fn message(state: &mut AppState, text: &str) -> Update {
    let mut update = on_action(state, Action::Message);
    let has_box = |state: &AppState| matches!(state.overlays.last(), Some(Overlay::Message(_)));
    if !has_box(state) {
        return update;
    }
    for step in [on_action(state, Action::Clear), on_paste(state, text)] {
        update.effects.extend(step.effects);
    }
    update.effects.extend(on_action(state, Action::Send).effects);
    if has_box(state) {
        state.overlays.pop();
    }
    Update { redraw: true, ..update }
}
