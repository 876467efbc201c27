//! The entries of the key row: bindings of this context that would do something now, with words
//! that fit the moment.
//!
//! Why an action cannot be carried out now, as the list of commands and notices say it.

use super::action::Action;
use super::comparison::parent_of;
use super::effect::Update;
use super::form::FieldId;
use super::home::history::ListedRun;
use super::home::{HomePane, kept};
use super::key::KeyPress;
use super::keymap::{BINDINGS, Binding, Context, binding_of, bindings, in_use, key_of};
use super::launch::chosen_run;
use super::notice::NoticeKind;
use super::run::views::tools::has_tools;
use super::run::{NextMessage, Pane, RunPage};
use super::state::AppState;
use super::windows::Overlay;
use crate::log::event::RunId;
use crate::log::world::RunState;
use crate::log::world::run_row::RunStatus;
use crate::words::measure::columns;

/// An entry of the key row: one or more keys with the same effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHint {
    /// The keys, each with its action. A blank separates them.
    pub keys: Vec<(String, Action)>,
    /// What they do.
    pub word: &'static str,
    /// Priority: 1 is the highest.
    pub rank: u8,
}

impl KeyHint {
    /// Its columns, without the gap after it.
    fn width(&self) -> usize {
        let keys: usize = self.keys.iter().map(|(key, _)| columns(key) + 1).sum();
        keys + columns(self.word)
    }

    /// The action at a column of it: that of the key there, or of the first one for the word.
    fn action_at(&self, column: usize) -> Option<Action> {
        let mut right = 0;
        for (key, action) in &self.keys {
            right += columns(key) + 1;
            if column < right {
                return Some(*action);
            }
        }
        self.keys.first().map(|(_, action)| *action)
    }
}

/// Columns between two entries, and before the first one.
pub const HINT_GAP: (u16, u16) = (2, 1);

/// The entries of a key row of this width; those of least priority are dropped if not all fit.
pub fn fitting_hints(state: &AppState, width: u16) -> Vec<KeyHint> {
    let mut hints = visible_hints(state, state.settings.ascii);
    let (gap, margin) = HINT_GAP;
    let room = usize::from(width.saturating_sub(margin)) + usize::from(gap);
    while hints.iter().map(|hint| hint.width() + usize::from(gap)).sum::<usize>() > room {
        // The last of those with the least priority is dropped first.
        let Some(least) = hints.iter().map(|hint| hint.rank).max() else { break };
        let Some(at) = hints.iter().rposition(|hint| hint.rank == least) else { break };
        hints.remove(at);
    }
    hints
}

/// The action of the entry at a column of a key row of this width.
pub(super) fn action_at(state: &AppState, width: u16, column: u16) -> Option<Action> {
    let (gap, margin) = HINT_GAP;
    let mut left = usize::from(margin);
    for hint in fitting_hints(state, width) {
        let right = left + hint.width();
        if (left..right).contains(&usize::from(column)) {
            return hint.action_at(usize::from(column) - left);
        }
        left = right + usize::from(gap);
    }
    None
}

/// The entries for the focused context, in the table's order.
pub fn visible_hints(state: &AppState, ascii: bool) -> Vec<KeyHint> {
    let context = state.context();
    let mut offers: Vec<KeyHint> = Vec::new();
    for row in bindings(context) {
        // In a text a letter is typed, so only the other keys count.
        let keys = row.keys_in_use();
        let key = keys.iter().find(|key| !context.takes_text() || key.typed_char().is_none());
        let Some(key) = key.filter(|_| row.rank > 0 && has_effect(state, row.action)) else {
            continue;
        };
        let (key, word) = ((key.label(ascii).into_owned(), row.action), hint_word(state, row));
        match offers.last_mut().filter(|last| last.word == word) {
            Some(last) => last.keys.push(key),
            None => {
                offers.push(KeyHint { keys: vec![key], word, rank: hint_rank(state, row) });
            }
        }
    }
    if context == Context::Filter {
        offers.push(KeyHint {
            keys: vec![("Esc".to_owned(), Action::Cancel)],
            word: "clear",
            rank: 1,
        });
    }
    if state.overlays.last().is_some() && context != Context::Confirm {
        let word = match context {
            Context::FormText => "leave text",
            Context::Comparison if shows_in_full(state) => "list",
            Context::Message if keeps_draft(state) => "keep the draft",
            _ => "close",
        };
        offers.push(KeyHint { keys: vec![("Esc".to_owned(), Action::Cancel)], word, rank: 1 });
    }
    offers
}

/// Whether an action would do anything now.
fn has_effect(state: &AppState, action: Action) -> bool {
    let on_home = state.context() == Context::Home;
    let subject =
        state.target_run().filter(|_| !on_home || state.home.preview_source == HomePane::Runs);
    if let Some(run) = kept::refused_run(state, action) {
        return action == Action::PauseResume && is_interrupted(state, run);
    }
    let lists_runs = on_home && state.home.preview_source == HomePane::Runs;
    match action {
        Action::Compare if on_home => lists_runs && state.listed().len() > 1,
        Action::Compare => {
            let fork = |page: &RunPage| parent_of(state, page.id()).is_some();
            state.to_compare.marked.is_some() || state.visible_run().is_some_and(fork)
        }
        Action::Fork | Action::Rerun => chosen_run(state).is_some(),
        Action::Filter if on_home => !lists_runs || !state.history.rows().is_empty(),
        Action::Sort if on_home => lists_runs && !state.history.rows().is_empty(),
        Action::Pin if on_home => {
            let row = state.selected_run().and_then(|run| state.history.row(run.id()));
            lists_runs && row.is_some()
        }
        Action::Remove => lists_runs && matches!(state.selected_run(), Some(ListedRun::Kept(_))),
        Action::Undo if on_home => lists_runs && state.history.last_removed().is_some(),
        Action::PauseResume if state.visible_run().is_some_and(|page| page.is_scrubbed()) => true,
        Action::PauseResume | Action::Step | Action::StepRound => {
            subject.is_some_and(|page| page.world().progress.is_live())
        }
        Action::Flags => subject.is_some_and(|page| !page.world().settings.flags.is_empty()),
        Action::PrevRun | Action::NextRun => state.listed().len() > 1,
        Action::PauseAll => state.live_runs().count() > 1,
        Action::MarkBack | Action::MarkForward => {
            state.visible_run().is_some_and(|page| page.is_scrubbed())
        }
        Action::Kill if on_home => state.live_runs().next().is_some(),
        Action::Kill => subject.is_some_and(|page| page.world().progress.is_live()),
        Action::Open if state.home.preview_source == HomePane::Runs => {
            state.selected_run().is_some()
        }
        Action::Open => can_start(state),
        Action::NewRun if on_home => can_start(state),
        Action::NewScenario | Action::Edit => state.home.focus == HomePane::Scenarios,
        Action::Tools => state.visible_run().is_some_and(|page| {
            !page.views.is_about_tools() && (has_tools(page) || page.views.shows_tools())
        }),
        Action::Toggle
        | Action::BreakerTrip
        | Action::BreakerHold
        | Action::BreakerReset
        | Action::BreakerDisable
        | Action::More
        | Action::Less
            if in_faults(state) =>
        {
            let Some(Overlay::Faults(drawer)) = state.overlays.last() else { return false };
            let page = state.run(&drawer.run);
            page.is_some_and(|page| drawer.command(action, page).is_some())
        }
        Action::Faults => state.visible_run().is_some_and(|page| page.views.can_inject(page)),
        Action::Message | Action::Members => {
            state.visible_run().is_some_and(|page| page.views.own_offers(page, action))
        }
        Action::Toggle if matches!(state.overlays.last(), Some(Overlay::Members(_))) => {
            state.visible_run().is_some_and(|page| page.world().progress.is_live())
        }
        Action::BreakerTrip
        | Action::BreakerHold
        | Action::BreakerReset
        | Action::BreakerDisable => {
            state.visible_run().is_some_and(|page| page.views.offers(page, action))
        }
        // Any run can be exported; the key row shows it where there is a report to hand on.
        Action::Export => state.visible_run().is_some_and(|page| page.has_report()),
        Action::Cause => {
            let page = state.visible_run().filter(|page| page.inspector().is_none());
            page.is_some_and(|page| page.views.offers(page, action))
        }
        Action::More | Action::Less => state
            .visible_run()
            .is_some_and(|page| page.world().progress.is_live() && page.views.offers(page, action)),
        Action::Toggle => {
            run_with_flags_open(state).is_some_and(|page| page.world().progress.is_live())
        }
        Action::Up | Action::Down | Action::Confirm => match state.overlays.last() {
            Some(Overlay::Confirm(confirm)) if action == Action::Confirm => confirm.accepts_yes(),
            Some(Overlay::Confirm(confirm)) => confirm.is_long(state.size),
            _ => true,
        },
        Action::Undo => run_with_flags_open(state)
            .is_some_and(|page| state.pending_flags.can_undo(page.id(), page.world())),
        _ => true,
    }
}

/// Whether a kept run was interrupted, so that it can be continued.
fn is_interrupted(state: &AppState, run: &RunId) -> bool {
    let kept = state.run(run).and_then(|page| page.kept.as_deref());
    let row = state.history.row(run).or(kept.map(|kept| &kept.row));
    row.is_some_and(|row| row.status == RunStatus::Interrupted)
}

/// The run whose flags are open.
fn run_with_flags_open(state: &AppState) -> Option<&RunPage> {
    match state.overlays.last() {
        Some(Overlay::Flags(drawer)) => state.run(&drawer.run),
        _ => None,
    }
}

/// Whether closing the message box would keep a draft.
fn keeps_draft(state: &AppState) -> bool {
    match state.overlays.last() {
        Some(Overlay::Message(message)) => {
            !message.is_untouched() && !message.text.text().trim().is_empty()
        }
        _ => false,
    }
}

/// Whether the comparison shows one difference in full.
fn shows_in_full(state: &AppState) -> bool {
    matches!(state.overlays.last(), Some(Overlay::Comparison(view)) if view.full)
}

fn in_faults(state: &AppState) -> bool {
    matches!(state.overlays.last(), Some(Overlay::Faults(_)))
}

fn can_start(state: &AppState) -> bool {
    let entry = state.home.selected_scenario(&state.scenarios);
    entry.is_some_and(|entry| entry.loaded.is_ok())
}

/// Priority in the key row now. The view of a run may know better which keys matter.
fn hint_rank(state: &AppState, row: &Binding) -> u8 {
    if row.action == Action::Compare && state.to_compare.marked.is_some() {
        return 2;
    }
    if row.action == Action::Commands && !state.overlays.is_empty() {
        return 8;
    }
    let page = state.visible_run().filter(|_| state.overlays.is_empty());
    let rank = page.and_then(|page| page.views.shown().rank(page, row.action));
    rank.unwrap_or(row.rank)
}

/// The word for an action now.
fn hint_word(state: &AppState, row: &Binding) -> &'static str {
    match row.action {
        Action::PauseResume if state.visible_run().is_some_and(|page| page.is_scrubbed()) => "live",
        Action::PauseResume if kept::refused_run(state, row.action).is_some() => "continue",
        Action::PauseResume => match state.target_run().map(|page| &page.world().progress.stage) {
            Some(RunState::Pausing { .. } | RunState::Paused { .. }) => "resume",
            _ => row.word,
        },
        Action::Tools if state.visible_run().is_some_and(|page| page.views.shows_tools()) => "back",
        Action::Message => match state.visible_run().map(|page| page.next_message()) {
            Some(NextMessage::Draft(_)) => "draft",
            Some(NextMessage::Waiting(_)) => "queued message",
            _ => row.word,
        },
        Action::Open if state.home.preview_source == HomePane::Runs => "open",
        Action::Toggle if matches!(state.overlays.last(), Some(Overlay::Members(_))) => {
            "join or leave"
        }
        Action::Press => match state.overlays.last() {
            Some(Overlay::Form(form)) if form.fields.is_on_text() => "edit",
            Some(Overlay::Form(form)) if form.fields.focus == FieldId::ModelName => "choose",
            _ => row.word,
        },
        Action::NextPane if matches!(state.context(), Context::Form | Context::FormText) => "field",
        _ => row.word,
    }
}

/// The contexts of whole pages.
const PAGES: [Context; 3] = [Context::Home, Context::Run, Context::Inspector];

/// Why an action does nothing in the focused context, as the part of a sentence after a colon;
/// `None`: it does something, or says itself why not.
pub(crate) fn refusal(state: &AppState, action: Action) -> Option<String> {
    let context = state.context();
    let binding = binding_of(action)?;
    if !binding.contexts.contains(&context) {
        return Some(format!("only in {}", binding.places()));
    }
    match action {
        Action::Pane(0) => return Some("press the number of the pane".to_owned()),
        Action::Pane(number) => {
            let is_there = match state.visible_run() {
                Some(_) => Pane::from_number(number).is_some(),
                None => usize::from(number) <= HomePane::ALL.len(),
            };
            return (!is_there).then(|| format!("there is no pane {number}"));
        }
        _ => {}
    }
    if let Some(run) = kept::refused_run(state, action)
        && action != Action::PauseResume
    {
        return Some(format!("{run} is a kept run, which does not change"));
    }
    let why = match context {
        Context::Home => on_home(state, action),
        Context::Run | Context::Inspector => return in_run(state, action),
        _ => None,
    };
    why.map(str::to_owned)
}

fn on_home(state: &AppState, action: Action) -> Option<&'static str> {
    let selected = state.selected_run();
    let lists_runs = state.home.preview_source == HomePane::Runs;
    let is_empty = state.runs.is_empty() && state.history.rows().is_empty();
    let unless = |is_so: bool, why| (!is_so).then_some(why);
    match action {
        Action::Filter if lists_runs => unless(!is_empty, "there are no runs yet"),
        Action::Sort => unless(!is_empty, "there are no runs yet"),
        Action::Compare if is_empty => Some("there are no runs yet"),
        Action::Fork | Action::Rerun | Action::Compare => {
            unless(chosen_run(state).is_some(), "no run is selected")
        }
        Action::PauseResume if lists_runs && matches!(selected, Some(ListedRun::Kept(_))) => None,
        Action::PauseResume | Action::Step | Action::StepRound => live(state.target_run()),
        Action::Flags => unless(state.target_run().is_some(), "no run is selected"),
        Action::Kill | Action::PauseAll => {
            unless(state.live_runs().next().is_some(), "no run is live")
        }
        Action::Pin => unless(
            selected.is_some_and(|run| state.history.row(run.id()).is_some()),
            "no kept run is selected",
        ),
        Action::Remove => {
            unless(matches!(selected, Some(ListedRun::Kept(_))), "no kept run is selected")
        }
        Action::Undo => unless(state.history.last_removed().is_some(), "no run was removed"),
        Action::Open if lists_runs => unless(selected.is_some(), "no run is selected"),
        Action::Edit | Action::NewRun | Action::Open => {
            let scenario = state.home.selected_scenario(&state.scenarios);
            unless(scenario.is_some(), "no scenario is selected")
        }
        _ => None,
    }
}

fn in_run(state: &AppState, action: Action) -> Option<String> {
    let page = state.visible_run()?;
    let is_kept = page.kept.is_some();
    let why = match action {
        Action::PauseResume if page.is_scrubbed() || is_kept => None,
        Action::PauseResume | Action::Step | Action::StepRound | Action::Kill => live(Some(page)),
        Action::Compare => {
            let is_marked = state.to_compare.marked.is_some();
            let second = state.listed().len() > 1 || parent_of(state, page.id()).is_some();
            (!is_marked && !second).then_some("there is no second run")
        }
        Action::Message if !page.views.own_offers(page, action) => {
            Some("only teams and swarms take follow-ups")
        }
        Action::Members if !page.views.own_offers(page, action) => {
            Some("no swarm in this run changes its members")
        }
        Action::Faults if page.views.can_inject(page) => None,
        action => return page.views.unavailable_reason(page, action).map(part_of_sentence),
    };
    why.map(str::to_owned)
}

/// A sentence as the end of another one: without its period.
fn part_of_sentence(mut text: String) -> String {
    if text.ends_with('.') {
        text.pop();
    }
    text
}

fn live(page: Option<&RunPage>) -> Option<&'static str> {
    match page.map(|page| &page.world().progress.stage) {
        None => Some("no run is selected"),
        Some(RunState::Closed) => Some("the run has ended"),
        Some(_) => None,
    }
}

/// Says why an action did nothing, if there is a reason.
pub(crate) fn explain(state: &mut AppState, action: Action, update: Update) -> Update {
    let is_idle = !update.redraw && update.effects.is_empty();
    // The page itself says where there is no cause to jump to.
    let is_told = action == Action::Cause;
    let why = if is_idle && !is_told { refusal(state, action) } else { None };
    let Some(why) = why else { return update };
    state.notify(NoticeKind::Info, format!("{}: {why}.", action.name()));
    Update::redraw()
}

/// Says that a key does nothing on this screen, and where it does something. A key without any
/// action, such as F7, is only told if it is a character.
pub(super) fn explain_key(state: &mut AppState, key: KeyPress) -> Update {
    let has = |row: &&Binding| in_use().keys(row.action).contains(&key);
    // A page has more use for the key than a window.
    let on_page = |row: &&Binding| row.contexts.iter().any(|it| PAGES.contains(it));
    let typed = |row: &&Binding| row.contexts.iter().all(|context| context.takes_text());
    let elsewhere = BINDINGS.iter().filter(has).find(on_page);
    let elsewhere = elsewhere.or_else(|| BINDINGS.iter().filter(has).find(|row| !typed(row)));
    let (name, help) = (key.label(true), key_of(Action::Help));
    let text = match elsewhere {
        Some(row) => format!("{name} ({}): only in {}.", row.action.name(), row.places()),
        None if key.typed_char().is_none_or(char::is_control) => return Update::idle(),
        None => format!("{name} does nothing here; {help} shows the keys."),
    };
    state.notify(NoticeKind::Info, text);
    Update::redraw()
}
