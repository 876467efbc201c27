//! Windows over a screen.
//!
//! Actions in an overlay: the launch form, the flags and faults drawers, the help, a question.

pub mod commands;
pub mod confirm;
pub mod faults;
pub mod flags;
pub mod help;
pub mod members;
pub mod message;
pub mod picker;
pub mod templates;

use self::commands::CommandList;
use self::confirm::{Confirm, OnYes};
use self::faults::FaultsDrawer;
use self::flags::FlagsDrawer;
use self::help::{Help, help_rows};
use self::members::MembersDrawer;
use self::message::MessageBox;
use self::templates::TemplateList;
use super::action::Action;
use super::comparison::ComparisonView;
use super::effect::{Effect, Update};
use super::form::{FieldId, LaunchForm};
use super::key_hints::refusal;
use super::keymap::{Context, key_of};
use super::launch;
use super::launch::start;
use super::notice::{ACTS_ON_LIVE_RUN, NoticeKind};
use super::state::AppState;
use crate::log::event::Command;

/// A window over a screen; it receives the keys.
#[derive(Debug)]
pub enum Overlay {
    /// The launch form.
    Form(Box<LaunchForm>),
    /// The flags of a run.
    Flags(FlagsDrawer),
    /// Faults and limits of a tool.
    Faults(FaultsDrawer),
    /// The members of the swarms of a team.
    Members(MembersDrawer),
    /// The session's next message.
    Message(Box<MessageBox>),
    /// The templates of new scenarios.
    Templates(TemplateList),
    /// The comparison of two runs.
    Comparison(Box<ComparisonView>),
    /// The help.
    Help(Help),
    /// The list of commands.
    Commands(CommandList),
    /// A question.
    Confirm(Confirm),
}

impl Overlay {
    /// The focused context in it, as the binding table knows it.
    pub fn context(&self) -> Context {
        match self {
            Self::Form(form) if form.picker.is_some() => Context::Models,
            Self::Form(form) if form.fields.is_editing() => Context::FormText,
            Self::Form(_) => Context::Form,
            Self::Flags(_) => Context::Flags,
            Self::Faults(_) => Context::Faults,
            Self::Members(_) => Context::Members,
            Self::Message(_) => Context::Message,
            Self::Templates(_) => Context::Templates,
            Self::Comparison(_) => Context::Comparison,
            Self::Help(_) => Context::Help,
            Self::Commands(_) => Context::Commands,
            Self::Confirm(_) => Context::Confirm,
        }
    }
}

pub(super) fn on_form(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    if form.picker.is_some() {
        let taken = form.on_picker(action, size);
        form.arrange(size);
        return Update::when(taken);
    }
    match action {
        Action::Start => return start_form(state),
        Action::Press if form.fields.focus == FieldId::Start => return start_form(state),
        Action::Press if form.fields.focus == FieldId::Cancel => return close_form(state),
        Action::Cancel if form.fields.is_editing() => {
            form.fields.leave_text();
            return Update::redraw();
        }
        Action::Cancel | Action::Back => return close_form(state),
        Action::Copy if !form.is_startable() => {
            state.notify(NoticeKind::Info, "Not copied: fix the marked fields first.");
            return Update::redraw();
        }
        Action::Copy => {
            let line = form.command_line();
            state.notify(NoticeKind::Info, "Copied the command line.");
            return Update::effect(Effect::Copy(line));
        }
        _ => {}
    }
    let taken = form.on_action(action);
    form.arrange(size);
    Update::when(taken)
}

fn close_form(state: &mut AppState) -> Update {
    match state.overlays.last() {
        Some(Overlay::Form(form)) if form.fields.changed() => {
            state.overlays.push(Overlay::Confirm(Confirm::discard()));
        }
        _ => {
            state.overlays.pop();
        }
    }
    Update::redraw()
}

fn start_form(state: &mut AppState) -> Update {
    let (id, size) = (state.next_request(), state.size);
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    let Some(request) = form.request(id) else {
        form.refused = true;
        form.focus_first_error();
        form.arrange(size);
        let count = form.problems.iter().filter(|fault| fault.error).count();
        let plural = if count == 1 { "" } else { "s" };
        state
            .notify(NoticeKind::Form, format!("Not started: {count} problem{plural} in the form."));
        return Update::redraw();
    };
    state.overlays.pop();
    start(state, request)
}

pub(super) fn on_flags(state: &mut AppState, action: Action) -> Update {
    let AppState { overlays, pending_flags: asked, runs, notices, now, .. } = state;
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
                    let why = if world.progress.is_live() {
                        "This run has no flags."
                    } else {
                        "The run has ended: its flags can no longer change."
                    };
                    notices.add(*now, NoticeKind::Info, why.to_owned());
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
                notices.add(*now, NoticeKind::Info, "You have no flag change to undo.".to_owned());
                Update::redraw()
            }
        },
        _ => Update::when(drawer.on_move(action, world, 5)),
    }
}

pub(super) fn on_faults(state: &mut AppState, action: Action) -> Update {
    let AppState { overlays, runs, notices, now, .. } = state;
    let Some(Overlay::Faults(drawer)) = overlays.last_mut() else { return Update::idle() };
    let Some(page) = runs.iter().find(|page| *page.id() == drawer.run) else {
        overlays.pop();
        return Update::redraw();
    };
    let world = page.world();
    match action {
        Action::Cancel | Action::Back | Action::Faults => {
            overlays.pop();
            return Update::redraw();
        }
        _ if drawer.on_move(action, world) => return Update::redraw(),
        _ => {}
    }
    if let Some(command) = drawer.command(action, page) {
        let run = drawer.run.clone();
        if page.is_scrubbed() {
            notices.add(*now, NoticeKind::Info, ACTS_ON_LIVE_RUN.to_owned());
        }
        return Update::effect(Effect::Command { run, command });
    }
    let why = match (world.progress.is_live(), action) {
        (false, _) => "The run has ended: its tools can no longer change.".to_owned(),
        (true, Action::Toggle) => {
            format!("Use {} and {} to change a limit.", key_of(Action::More), key_of(Action::Less))
        }
        (true, Action::More | Action::Less) => {
            "Nothing to change here, or the value is at its limit.".to_owned()
        }
        _ => "This tool has no breaker.".to_owned(),
    };
    notices.add(*now, NoticeKind::Info, why);
    Update::redraw()
}

/// Carries out an action in the help. Returns the action of a chosen key: the help has closed,
/// and the caller carries it out.
pub(super) fn on_help(state: &mut AppState, action: Action) -> Result<Update, Action> {
    let rows = help_rows(state.size);
    let Some(Overlay::Help(help)) = state.overlays.last_mut() else { return Ok(Update::idle()) };
    match action {
        Action::Cancel => {
            state.overlays.pop();
            Ok(Update::redraw())
        }
        Action::Choose => {
            let Some(row) = help.selected_binding() else { return Ok(Update::idle()) };
            if !help.is_available(row) {
                let said = format!("Not available here: it works in {}.", row.places());
                state.notify(NoticeKind::Info, said);
                return Ok(Update::redraw());
            }
            let action = row.action;
            state.overlays.pop();
            Err(action)
        }
        action => Ok(Update::when(help.on_move(action, rows))),
    }
}

/// Carries out an action in the list of commands. Returns the action of the chosen command: the list has
/// closed, and the caller carries it out.
pub(super) fn on_commands(state: &mut AppState, action: Action) -> Result<Update, Action> {
    let page = help_rows(state.size);
    let Some(Overlay::Commands(list)) = state.overlays.last_mut() else {
        return Ok(Update::idle());
    };
    match action {
        Action::Cancel => {
            state.overlays.pop();
            Ok(Update::redraw())
        }
        Action::Choose => {
            let Some(chosen) = list.selected().map(|command| command.binding.action) else {
                return Ok(Update::idle());
            };
            let list = state.overlays.pop();
            // The state may have changed since the list was opened.
            let Some(why) = refusal(state, chosen) else { return Err(chosen) };
            state.overlays.extend(list);
            state.notify(NoticeKind::Info, format!("{}: {why}.", chosen.name()));
            Ok(Update::redraw())
        }
        action => Ok(Update::when(list.on_move(action, page))),
    }
}

pub(super) fn on_confirm(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Confirm(asked)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Agree if asked.must_be_read() => {
            let (agree, yes) = (key_of(Action::Agree), key_of(Action::Confirm));
            let no = key_of(Action::Decline);
            let said =
                format!("{agree} does not answer this question: press {yes} for yes, {no} for no.");
            state.notify(NoticeKind::Info, said);
            Update::redraw()
        }
        Action::Confirm if !asked.accepts_yes() => {
            let keys = [Action::Down, Action::PageDown, Action::Bottom].map(key_of);
            let said = format!("Read to the end first: {}, {} or {}.", keys[0], keys[1], keys[2]);
            state.notify(NoticeKind::Info, said);
            Update::redraw()
        }
        Action::Confirm | Action::Agree => {
            let Some(Overlay::Confirm(confirm)) = state.overlays.pop() else {
                return Update::idle();
            };
            let cancel = |run| Effect::Command { run, command: Command::Cancel };
            match confirm.on_yes {
                OnYes::Kill(runs) => {
                    Update { redraw: true, effects: runs.into_iter().map(cancel).collect() }
                }
                OnYes::Quit { code } => Update::effect(Effect::Quit { code }),
                OnYes::Resume(run) => launch::resume_now(state, run),
                OnYes::Rerun(run, title) => launch::rerun_now(state, run, title),
                OnYes::Discard => {
                    state.overlays.pop();
                    Update::redraw()
                }
                OnYes::Trust { request, digest } => {
                    let title = request.scenario.title.clone();
                    let effects = vec![Effect::Trust { digest, title }, Effect::Start(request)];
                    Update { redraw: true, effects }
                }
            }
        }
        Action::Decline | Action::Cancel => {
            if let Some(Overlay::Confirm(Confirm {
                on_yes: OnYes::Trust { request, .. }, ..
            })) = state.overlays.pop()
            {
                state.starting.retain(|starting| starting.request != request.id);
            }
            Update::redraw()
        }
        action => Update::when(asked.on_move(action, size)),
    }
}
