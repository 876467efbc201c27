//! The one place where the dashboard's state changes: a message in, effects out, no I/O.

use std::time::Duration;

use super::action::Action;
use super::effect::Effect;
use super::key::Key;
use super::keymap;
use super::msg::{Mouse, Msg};
use super::run::{Outcome, RunPage};
use super::state::{Notice, NoticeKind, Screen, Size, State};
use crate::event::RunId;

/// What came of a message.
#[derive(Debug, Default)]
pub struct Update {
    /// Whether the screen has changed.
    pub redraw: bool,
    /// What the shell is asked to do, in this order.
    pub effects: Vec<Effect>,
}

impl Update {
    /// Nothing has changed.
    pub fn idle() -> Self {
        Self::default()
    }
    /// The screen has changed.
    pub fn redraw() -> Self {
        Self { redraw: true, effects: Vec::new() }
    }
    /// The screen may have changed, and the shell is asked for something.
    pub fn effect(effect: Effect) -> Self {
        Self { redraw: true, effects: vec![effect] }
    }
}

impl From<Outcome> for Update {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Handled { redraw } => Self { redraw, effects: Vec::new() },
            Outcome::Emit(effects) => Self { redraw: true, effects },
            Outcome::Ignored => Self::idle(),
        }
    }
}

/// Folds a message into the state. `now` is the time since the start of the program.
pub fn update(state: &mut State, now: Duration, msg: Msg) -> Update {
    state.now = now;
    match msg {
        Msg::Key(key) => on_key(state, key),
        Msg::Paste(text) => match watched(state) {
            Some(page) => page.on_paste(&text).into(),
            None => Update::idle(),
        },
        Msg::Mouse(mouse) => on_mouse(state, mouse),
        Msg::Resize { cols, rows } => {
            let size = Size { cols, rows };
            let changed = state.size != size;
            state.size = size;
            Update { redraw: changed, effects: Vec::new() }
        }
        Msg::Tick | Msg::Continued => Update::redraw(),
        Msg::Facts { run, events } => match state.run_mut(&run) {
            Some(page) => {
                page.apply(&events);
                Update::redraw()
            }
            None => Update::idle(),
        },
        Msg::Session(_) => Update::idle(),
        Msg::Live { run, span, text } => match state.run_mut(&run) {
            Some(page) => page.set_live(span, text).into(),
            None => Update::idle(),
        },
        Msg::Started { run, zero, .. } => {
            state.runs.push(RunPage::new(run.clone(), zero));
            state.screen = Screen::Run(run);
            Update::redraw()
        }
        Msg::StartFailed { text, .. } | Msg::EffectFailed { text, .. } => {
            say(state, NoticeKind::Error, text)
        }
        Msg::Untrusted { would, .. } => say(state, NoticeKind::Error, would.join("; ")),
        Msg::Notice(text) => say(state, NoticeKind::Info, text),
        Msg::Scenarios(scenarios) => {
            state.scenarios = scenarios;
            Update::redraw()
        }
        Msg::Terminate { code } => Update::effect(Effect::Quit { code }),
    }
}

fn say(state: &mut State, kind: NoticeKind, text: String) -> Update {
    state.notice = Some(Notice { at: state.now, kind, text });
    Update::redraw()
}

fn watched(state: &mut State) -> Option<&mut RunPage> {
    let id: RunId = match &state.screen {
        Screen::Home => return None,
        Screen::Run(id) => id.clone(),
    };
    state.run_mut(&id)
}

fn on_key(state: &mut State, key: Key) -> Update {
    match keymap::lookup(state.context(), key) {
        Some(action) => on_action(state, action),
        None => match watched(state) {
            Some(page) => page.on_key(key).into(),
            None => Update::idle(),
        },
    }
}

fn on_action(state: &mut State, action: Action) -> Update {
    let size = state.size;
    match action {
        Action::Quit => return Update::effect(Effect::Quit { code: 0 }),
        Action::Interrupt => return Update::effect(Effect::Quit { code: 130 }),
        Action::Redraw => return Update::effect(Effect::Redraw),
        Action::Suspend => return Update::effect(Effect::Suspend),
        _ => {}
    }
    let outcome = match watched(state) {
        Some(page) => page.on_action(action, size),
        None => Outcome::Ignored,
    };
    match (outcome, action) {
        (Outcome::Ignored, Action::Back) => {
            state.screen = Screen::Home;
            Update::redraw()
        }
        (outcome, _) => outcome.into(),
    }
}

fn on_mouse(state: &mut State, mouse: Mouse) -> Update {
    let size = state.size;
    match watched(state) {
        Some(page) => page.on_mouse(mouse, size).into(),
        None => Update::idle(),
    }
}
