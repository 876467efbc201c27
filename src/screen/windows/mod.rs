//! Windows over a screen, and the actions in them.

pub mod card;
pub mod commands;
pub mod confirm;
pub mod faults;
pub mod flags;
pub mod help;
pub mod inbox;
pub mod members;
pub mod message;
pub mod picker;
pub mod templates;

use ratatui::layout::Rect;

use self::card::Card;
use self::commands::CommandList;
use self::confirm::{Confirm, OnYes};
use self::faults::{FaultsDrawer, ToolSetting};
use self::flags::{FLAG_ROWS, FlagsDrawer};
use self::help::{Help, help_rows, help_window};
use self::inbox::Inbox;
use self::members::{MembersDrawer, MembersRow, member_rows};
use self::message::MessageBox;
use self::templates::TemplateList;
use super::action::Action;
use super::comparison::ComparisonView;
use super::effect::{Effect, Update};
use super::form::{FieldId, LaunchForm};
use super::home::history::RunList;
use super::key_hints::refusal;
use super::keymap::{Context, key_of};
use super::launch;
use super::launch::start;
use super::layout::{DrawerParts, SearchParts, Size, inside};
use super::list::ListState;
use super::notice::{ACTS_ON_LIVE_RUN, NoticeKind};
use super::state::AppState;
use crate::log::event::{Command, RunId};

/// A window over a screen; it receives the keys.
#[derive(Debug)]
pub enum Overlay {
    Form(Box<LaunchForm>),
    Flags(FlagsDrawer),
    Faults(FaultsDrawer),
    Members(MembersDrawer),
    Message(Box<MessageBox>),
    Inbox(Inbox),
    Card(Box<Card>),
    Templates(TemplateList),
    Comparison(Box<ComparisonView>),
    Help(Help),
    Commands(CommandList),
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
            Self::Message(message) if message.is_input() => Context::ProgramLine,
            Self::Message(_) => Context::Message,
            Self::Inbox(_) => Context::Inbox,
            Self::Card(card) => card.context(),
            Self::Templates(_) => Context::Templates,
            Self::Comparison(_) => Context::Comparison,
            Self::Help(_) => Context::Help,
            Self::Commands(_) => Context::Commands,
            Self::Confirm(_) => Context::Confirm,
        }
    }
}

/// The list of an open window.
pub(super) struct OpenList<'a> {
    state: &'a mut ListState,
    /// The lines that can be selected.
    choices: Vec<usize>,
    /// A click outside this area closes the window.
    pub window: Rect,
    pub area: Rect,
    top: usize,
    line_rows: u16,
    /// Lines that a page key moves.
    page: usize,
    /// The lines of a list that the wheel scrolls; `None`: the wheel moves the selection.
    scrolled: Option<usize>,
    /// The action of a click on the selected line.
    pub take: Option<Action>,
}

impl<'a> OpenList<'a> {
    fn of_drawer(parts: DrawerParts, choices: Vec<usize>, state: &'a mut ListState) -> Self {
        let DrawerParts { window, list: area, top, .. } = parts;
        let (page, take) = (usize::from(area.height).max(1), Some(Action::Toggle));
        Self { state, choices, window, area, top, line_rows: 1, page, scrolled: None, take }
    }

    fn of_search(parts: SearchParts, choices: Vec<usize>, state: &'a mut ListState) -> Self {
        let SearchParts { window, list, note, .. } = parts;
        let parts = DrawerParts { window, list, note, top: state.top };
        Self { take: Some(Action::Choose), ..Self::of_drawer(parts, choices, state) }
    }

    /// Selects the line at a row of the list; returns whether it was selected before.
    pub(super) fn click(&mut self, row: u16) -> Option<bool> {
        let line = self.top + usize::from(row / self.line_rows);
        self.state.select(line, &self.choices)
    }

    /// Scrolls by one line; returns whether the wheel scrolls this list.
    pub(super) fn scroll(&mut self, up: bool) -> bool {
        if let Some(len) = self.scrolled {
            self.state.scroll(up, len, self.page);
        }
        self.scrolled.is_some()
    }
}

impl Overlay {
    /// The run that a drawer is over.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Flags(drawer) => Some(&drawer.run),
            Self::Faults(drawer) => Some(&drawer.run),
            Self::Members(drawer) => Some(&drawer.run),
            Self::Card(card) => Some(&card.run),
            _ => None,
        }
    }

    /// The list of the window, if it has one.
    pub(super) fn open_list(&mut self, size: Size, listed: RunList<'_>) -> Option<OpenList<'_>> {
        let run = self.run();
        let page = listed.runs.iter().find(|page| Some(page.id()) == run);
        let world = page.map(|page| page.world());
        let search = SearchParts::split(help_window(size));
        Some(match self {
            Self::Flags(drawer) => {
                let (parts, flags) = (drawer.parts(size, world?), world?.settings.flags.len());
                let list = OpenList::of_drawer(parts, (0..flags).collect(), &mut drawer.list);
                OpenList { line_rows: FLAG_ROWS, page: 5, ..list }
            }
            Self::Faults(drawer) => {
                let lines = drawer.lines(world?);
                let choices = (0..lines.len()).filter(|at| lines[*at].is_some()).collect();
                let switches = matches!(drawer.selected(world?), Some(ToolSetting::Fault(_)));
                let parts = drawer.parts(size, world?);
                let list = OpenList::of_drawer(parts, choices, &mut drawer.list);
                OpenList { page: 5, take: list.take.filter(|_| switches), ..list }
            }
            Self::Members(drawer) => {
                let rows = member_rows(world?);
                let is_agent = |at: &usize| matches!(rows[*at], MembersRow::Agent(_));
                let choices = (0..rows.len()).filter(is_agent).collect();
                OpenList::of_drawer(drawer.parts(size, world?), choices, &mut drawer.list)
            }
            Self::Templates(templates) => {
                let choices = (0..templates.templates.len()).collect();
                let list = OpenList::of_drawer(templates.parts(size), choices, &mut templates.list);
                OpenList { take: Some(Action::WriteTemplate), ..list }
            }
            Self::Help(help) => {
                let lines = help.lines();
                let list = OpenList::of_search(search, help::choices(&lines), &mut help.list);
                OpenList { window: inside(list.window), scrolled: Some(lines.len()), ..list }
            }
            Self::Commands(commands) => {
                let len = commands.count();
                let list = OpenList::of_search(search, (0..len).collect(), &mut commands.list);
                OpenList { window: inside(list.window), scrolled: Some(len), ..list }
            }
            Self::Form(form) => {
                let picker = form.picker.as_mut()?;
                let parts = SearchParts::split(picker::window(size));
                let list = OpenList::of_search(parts, picker.choices(), &mut picker.list);
                OpenList { take: Some(Action::Take), ..list }
            }
            Self::Inbox(inbox) => {
                let lines = inbox::lines(listed);
                let (parts, choices) = (inbox.parts(size, lines.len()), inbox::choices(&lines));
                let list = OpenList::of_drawer(parts, choices, &mut inbox.list);
                OpenList { take: Some(Action::OpenCard), ..list }
            }
            Self::Message(_) | Self::Card(_) | Self::Comparison(_) | Self::Confirm(_) => {
                return None;
            }
        })
    }

    /// Moves the selection of its list; returns whether the action was a movement.
    fn on_move(&mut self, action: Action, size: Size, listed: RunList<'_>) -> bool {
        let Some(list) = self.open_list(size, listed) else { return false };
        let moved = list.state.on_move(action, &list.choices, list.page);
        if moved {
            self.arrange(size);
        }
        moved
    }

    /// Keeps the scroll position valid at this size, and the selection in view.
    pub(super) fn arrange(&mut self, size: Size) {
        match self {
            Self::Form(form) => form.arrange(size),
            Self::Help(help) => help.arrange(help_rows(size)),
            Self::Commands(list) => list.list.arrange(list.count(), help_rows(size)),
            Self::Confirm(confirm) => confirm.arrange(size),
            Self::Comparison(view) => view.arrange(size),
            Self::Flags(_)
            | Self::Faults(_)
            | Self::Members(_)
            | Self::Templates(_)
            | Self::Inbox(_)
            | Self::Card(_)
            | Self::Message(_) => {}
        }
    }
}

/// Moves the selection in the list of the top window.
pub(super) fn move_in_list(state: &mut AppState, action: Action) -> Update {
    let AppState { overlays, runs, history, size, .. } = state;
    let listed = RunList { runs, history };
    Update::when(overlays.last_mut().is_some_and(|top| top.on_move(action, *size, listed)))
}

pub(super) fn on_form(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Form(form)) = state.overlays.last_mut() else { return Update::idle() };
    if form.picker.is_some() {
        if !form.on_picker(action) {
            return move_in_list(state, action);
        }
        form.arrange(size);
        return Update::redraw();
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
        Action::Copy if form.no_command().is_some() => {
            let why = form.no_command().unwrap_or_default();
            state.notify(NoticeKind::Info, why);
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

/// Carries out an action in a drawer over a run.
pub(super) fn on_drawer(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let AppState { overlays, pending_flags, runs, history, notices, now, .. } = state;
    let Some(overlay) = overlays.last_mut() else { return Update::idle() };
    let page = overlay.run().and_then(|run| runs.iter().find(|page| page.id() == run));
    let closes = matches!(
        (&overlay, action),
        (_, Action::Cancel | Action::Back)
            | (Overlay::Flags(_), Action::Flags)
            | (Overlay::Faults(_), Action::Faults)
            | (Overlay::Members(_), Action::Members)
    );
    let Some(page) = page.filter(|_| !closes) else {
        overlays.pop();
        return Update::redraw();
    };
    let world = page.world();
    if overlay.on_move(action, size, RunList { runs, history }) {
        return Update::redraw();
    }
    let change = match overlay {
        Overlay::Flags(drawer) => drawer.change(action, world, pending_flags),
        Overlay::Faults(drawer) => {
            if drawer.switch_tool(action, world) {
                return Update::redraw();
            }
            Some(drawer.change(action, page))
        }
        Overlay::Members(drawer) => (action == Action::Toggle).then(|| drawer.command(page)),
        _ => None,
    };
    match change {
        None => Update::idle(),
        Some(Ok(command)) => {
            if page.is_scrubbed() && !matches!(overlay, Overlay::Flags(_)) {
                notices.add(*now, NoticeKind::Info, ACTS_ON_LIVE_RUN.to_owned());
            }
            Update::effect(Effect::Command { run: page.id().clone(), command })
        }
        Some(Err(why)) => {
            notices.add(*now, NoticeKind::Info, why);
            Update::redraw()
        }
    }
}

/// Carries out an action in the help. Returns the action of a chosen key: the help has closed,
/// and the caller carries it out.
pub(super) fn on_help(state: &mut AppState, action: Action) -> Result<Update, Action> {
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
            if action.is_answer() {
                return Ok(say_own_key(state, action));
            }
            state.overlays.pop();
            Err(action)
        }
        action => Ok(move_in_list(state, action)),
    }
}

/// Says that only its own key answers a question.
fn say_own_key(state: &mut AppState, action: Action) -> Update {
    let said = format!("Only its own key answers a question: press {}.", key_of(action));
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

/// Carries out an action in the list of commands. Returns the action of the chosen command: the list has
/// closed, and the caller carries it out.
pub(super) fn on_commands(state: &mut AppState, action: Action) -> Result<Update, Action> {
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
        action => Ok(move_in_list(state, action)),
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
        Action::Later => match asked.on_yes {
            OnYes::Quit { code, later: true } => {
                Update { redraw: true, effects: vec![Effect::LeaveRuns, Effect::Quit { code }] }
            }
            _ => Update::idle(),
        },
        Action::Confirm | Action::Agree => {
            let Some(Overlay::Confirm(confirm)) = state.overlays.pop() else {
                return Update::idle();
            };
            let cancel = |run| Effect::Command { run, command: Command::Cancel };
            match confirm.on_yes {
                OnYes::Kill(runs) => {
                    Update { redraw: true, effects: runs.into_iter().map(cancel).collect() }
                }
                OnYes::Quit { code, .. } => Update::effect(Effect::Quit { code }),
                OnYes::Resume(run) => launch::resume_now(state, run),
                OnYes::Restart(run, title) => launch::restart_now(state, run, title),
                OnYes::Discard => {
                    state.overlays.pop();
                    Update::redraw()
                }
                OnYes::Trust { request, digests } => {
                    let title = request.scenario.title.clone();
                    let effects = vec![Effect::Trust { digests, title }, Effect::Start(request)];
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
