//! Which actions do something now: the entries of the key row, and why an action cannot be carried
//! out, as the list of commands and notices say it.

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
use super::questions::open_questions;
use super::run::{NextMessage, Pane, RunPage};
use super::state::AppState;
use super::windows::card::fields::AnswerKind;
use super::windows::{Overlay, inbox};
use crate::log::event::RunId;
use crate::log::world::RunState;
use crate::log::world::available::{RunPart, Unavailable, can_change};
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

/// The entries of a key row of this width; those with the lowest priority are dropped if not all fit.
pub fn fitting_hints(state: &AppState, width: u16) -> Vec<KeyHint> {
    let mut hints = visible_hints(state, state.settings.ascii);
    let (gap, margin) = HINT_GAP;
    let room = usize::from(width.saturating_sub(2 * margin)) + usize::from(gap);
    while hints.iter().map(|hint| hint.width() + usize::from(gap)).sum::<usize>() > room {
        // The last of those with the lowest priority is dropped first.
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
        let Some(key) = key.filter(|_| row.rank > 0 && available(state, row.action).is_ok()) else {
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
    if context == Context::Run && state.tour.is_some() {
        let keys = vec![("Esc".to_owned(), Action::Cancel)];
        offers.push(KeyHint { keys, word: "leave the tour", rank: 1 });
    }
    if state.overlays.last().is_some() && context != Context::Confirm {
        let word = match context {
            Context::FormText => "leave text",
            Context::CardLine | Context::CardText => "back",
            Context::Card if card_is_in_between(state) => "back",
            Context::Comparison if shows_in_full(state) => "list",
            Context::Message | Context::ProgramLine if keeps_draft(state) => "keep the draft",
            _ => "close",
        };
        offers.push(KeyHint { keys: vec![("Esc".to_owned(), Action::Cancel)], word, rank: 1 });
    }
    offers
}

/// Why an action does nothing now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The reason, in a sentence.
    Because(String),
    /// The screen shows the reason, or says it when the key is pressed.
    Unsaid,
}

impl<T: Into<String>> From<T> for Why {
    fn from(text: T) -> Self {
        Self::Because(text.into())
    }
}

impl From<Unavailable> for Why {
    fn from(why: Unavailable) -> Self {
        Self::Because(why.sentence())
    }
}

impl Why {
    pub(crate) fn unless(is_so: bool) -> Result<(), Self> {
        if is_so { Ok(()) } else { Err(Self::Unsaid) }
    }
}

fn need(is_so: bool, why: &str) -> Result<(), Why> {
    if is_so { Ok(()) } else { Err(why.into()) }
}

fn need_live(page: Option<&RunPage>) -> Result<(), Why> {
    let page = page.ok_or("no run is selected")?;
    can_change(RunPart::Course, page.world()).map_err(|why| why.to_string().into())
}

/// Whether an action does something in the focused context now.
pub(crate) fn available(state: &AppState, action: Action) -> Result<(), Why> {
    let context = state.context();
    if let Some(binding) = binding_of(action).filter(|it| !it.contexts.contains(&context)) {
        return Err(format!("only in {}", binding.places()).into());
    }
    if let Some(run) = kept::refused_run(state, action) {
        return match action {
            Action::PauseResume => Why::unless(is_interrupted(state, run)),
            _ => Err(format!("{run} is a kept run, which does not change").into()),
        };
    }
    if kept::is_only_watched(state, action) {
        return Err(Unavailable::Watched.into());
    }
    match (state.overlays.last(), state.visible_run()) {
        (Some(overlay), _) => Why::unless(in_window(state, overlay, action)),
        (None, Some(page)) => in_run(state, page, action),
        (None, None) => on_home(state, action),
    }
}

/// Why an action does nothing in the focused context, as the part of a sentence after a colon;
/// `None`: it does something, or says itself why not.
pub(crate) fn refusal(state: &AppState, action: Action) -> Option<String> {
    match available(state, action) {
        Err(Why::Because(why)) => Some(why.strip_suffix('.').unwrap_or(&why).to_owned()),
        _ => None,
    }
}

fn in_window(state: &AppState, overlay: &Overlay, action: Action) -> bool {
    let page = overlay.run().and_then(|run| state.run(run));
    let is_live = || page.is_some_and(|page| page.world().progress.is_live());
    match (overlay, action) {
        (Overlay::Flags(_), Action::Undo) => {
            page.is_some_and(|page| state.pending_flags.can_undo(page.id(), page.world()))
        }
        (Overlay::Flags(_) | Overlay::Members(_), Action::Toggle) => is_live(),
        (
            Overlay::Faults(drawer),
            Action::Toggle
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable
            | Action::More
            | Action::Less,
        ) => page.is_some_and(|page| drawer.change(action, page).is_ok()),
        (Overlay::Inbox(inbox), action) => inbox::offers(inbox, state, action),
        (Overlay::Card(card), Action::ApproveMarked) => {
            card.offers(action) && !state.inbox.marked(&state.runs).is_empty()
        }
        (Overlay::Card(_), Action::NextQuestion) => open_questions(&state.runs).count() > 1,
        (Overlay::Card(card), action) => card.offers(action),
        (Overlay::Confirm(confirm), Action::Confirm) => confirm.accepts_yes(),
        (Overlay::Confirm(confirm), Action::Later) => confirm.has_later(),
        (Overlay::Confirm(confirm), Action::Up | Action::Down) => confirm.is_long(state.size),
        _ => true,
    }
}

fn on_home(state: &AppState, action: Action) -> Result<(), Why> {
    let (selected, target) = (state.selected_run(), state.target_run());
    let lists_runs = state.home.preview_source == HomePane::Runs;
    let has_kept = !state.history.rows().is_empty();
    let need_runs = || need(has_kept || !state.runs.is_empty(), "there are no runs yet");
    let live = state.live_runs().count();
    match action {
        Action::Pane(0) => Err("press the number of the pane".into()),
        Action::Pane(number) if usize::from(number) > HomePane::ALL.len() => {
            Err(format!("there is no pane {number}").into())
        }
        Action::Filter if lists_runs => need_runs().and(Why::unless(has_kept)),
        Action::Sort => need_runs().and(Why::unless(lists_runs && has_kept)),
        Action::Compare => {
            need_runs()?;
            need(chosen_run(state).is_some(), "no run is selected")?;
            Why::unless(lists_runs && state.listed().len() > 1)
        }
        Action::Inbox => waits(state),
        Action::Fork | Action::Restart => need(chosen_run(state).is_some(), "no run is selected"),
        Action::PauseResume | Action::Step | Action::StepRound => {
            need_live(target).and(Why::unless(lists_runs))
        }
        Action::Flags => {
            need(target.is_some(), "no run is selected")?;
            let has_flags = |page: &RunPage| !page.world().settings.flags.is_empty();
            Why::unless(lists_runs && target.is_some_and(has_flags))
        }
        Action::Kill => need(live > 0, "no run is live"),
        Action::PauseAll => need(live > 0, "no run is live").and(Why::unless(live > 1)),
        Action::Pin => {
            let row = selected.and_then(|run| state.history.row(run.id()));
            need(row.is_some(), "no kept run is selected").and(Why::unless(lists_runs))
        }
        Action::Remove => {
            let is_kept = matches!(selected, Some(ListedRun::Kept(_)));
            need(is_kept, "no kept run is selected").and(Why::unless(lists_runs))
        }
        Action::Undo => need(state.history.last_removed().is_some(), "no run was removed")
            .and(Why::unless(lists_runs)),
        Action::Open if lists_runs => need(selected.is_some(), "no run is selected"),
        Action::Open | Action::NewRun | Action::Edit => {
            let scenario = state.home.selected_scenario(&state.scenarios);
            need(scenario.is_some(), "no scenario is selected")?;
            Why::unless(match action {
                Action::Edit => state.home.focus == HomePane::Scenarios,
                _ => scenario.is_some_and(|entry| entry.loaded.is_ok()),
            })
        }
        Action::NewScenario => Why::unless(state.home.focus == HomePane::Scenarios),
        _ => Ok(()),
    }
}

fn in_run(state: &AppState, page: &RunPage, action: Action) -> Result<(), Why> {
    let has_parent = || parent_of(state, page.id()).is_some();
    let views = page.views.available(page, action);
    let unless = |why: &str| views.clone().map_err(|_| why.into());
    match action {
        Action::Pane(0) => Err("press the number of the pane".into()),
        Action::Pane(number) if Pane::from_number(number).is_none() => {
            Err(format!("there is no pane {number}").into())
        }
        Action::PauseResume if page.is_scrubbed() => Ok(()),
        Action::PauseResume | Action::Step | Action::StepRound | Action::Kill => {
            need_live(Some(page))
        }
        Action::Compare => {
            let is_next = state.to_compare.marked.is_some() || has_parent();
            need(is_next || state.listed().len() > 1, "there is no second run")?;
            Why::unless(is_next)
        }
        Action::Inbox => waits(state),
        Action::Flags => Why::unless(!page.world().settings.flags.is_empty()),
        Action::PrevRun | Action::NextRun => Why::unless(state.listed().len() > 1),
        Action::MarkBack | Action::MarkForward => Why::unless(page.is_scrubbed()),
        Action::Message => unless("only teams and swarms take follow-ups"),
        Action::Members => unless("no swarm in this run changes its members"),
        // Any run can be exported; the key row shows it where there is a report to hand on.
        Action::Export => Why::unless(page.has_report()),
        Action::Cause => Why::unless(page.inspector().is_none()).and(views),
        _ => views,
    }
}

/// The inbox opens always; the key row shows it while a run waits for a person.
fn waits(state: &AppState) -> Result<(), Why> {
    Why::unless(open_questions(&state.runs).next().is_some())
}

/// Whether a kept run was interrupted, so that it can be continued.
fn is_interrupted(state: &AppState, run: &RunId) -> bool {
    let kept = state.run(run).and_then(|page| page.kept.as_deref());
    let row = state.history.row(run).or(kept.map(|kept| &kept.row));
    row.is_some_and(|row| row.status == RunStatus::Interrupted)
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

/// Whether Esc leads back to the text of the card.
fn card_is_in_between(state: &AppState) -> bool {
    matches!(state.overlays.last(), Some(Overlay::Card(card)) if card.is_in_between())
}

/// What ends the fields of a card, or continues in them.
fn card_word(state: &AppState, action: Action) -> Option<&'static str> {
    let Some(Overlay::Card(card)) = state.overlays.last() else { return None };
    let fields = card.fields()?;
    let is_alone = matches!(fields.kind(), AnswerKind::Denial | AnswerKind::Choice(_));
    match (action, fields.kind()) {
        (_, AnswerKind::Denial) => Some("deny"),
        (_, AnswerKind::Choice(_)) => Some("decide"),
        (Action::Send, AnswerKind::Args) if card.asked.subject.approves().is_some() => {
            Some("show the change")
        }
        (Action::Submit, _) if !is_alone => Some("next field"),
        _ => None,
    }
}

/// Whether the comparison shows one difference in full.
fn shows_in_full(state: &AppState) -> bool {
    matches!(state.overlays.last(), Some(Overlay::Comparison(view)) if view.full)
}

/// Priority in the key row now. The view of a run may know better which keys matter.
fn hint_rank(state: &AppState, row: &Binding) -> u8 {
    if row.action == Action::Compare && state.to_compare.marked.is_some() {
        return 2;
    }
    if state.tour.as_ref().is_some_and(|tour| tour.step().action() == Some(row.action)) {
        return 1;
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
        Action::PauseResume if state.visible_run().is_some_and(|page| page.is_scrubbed()) => {
            let is_live = state.visible_run().is_some_and(|page| page.world().progress.is_live());
            if is_live { "to now" } else { "to the end" }
        }
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
        Action::NextPane if state.context().is_form() => "field",
        Action::Submit | Action::Send => card_word(state, row.action).unwrap_or(row.word),
        Action::EditAnswer => match state.overlays.last() {
            Some(Overlay::Card(card)) if card.asked.subject.approves().is_none() => "answer",
            _ => row.word,
        },
        _ => row.word,
    }
}

/// The contexts of whole pages.
const PAGES: [Context; 3] = [Context::Home, Context::Run, Context::Inspector];

/// Says why an action did nothing, if there is a reason.
pub(crate) fn explain(state: &mut AppState, action: Action, update: Update) -> Update {
    let is_idle = !update.redraw && update.effects.is_empty();
    // The page itself says where there is no cause to jump to.
    let is_told = action == Action::Cause;
    let why = if is_idle && !is_told { refusal(state, action) } else { None };
    let Some(why) = why else { return update };
    let key = match action {
        Action::Pane(number) => number.to_string(),
        _ => key_of(action),
    };
    state.notify(NoticeKind::Info, format!("{key}: {why}."));
    Update::redraw()
}

/// Says that a key does nothing on this screen, and where it does something. A key without any action,
/// such as F7, is only reported if it is a character.
pub(super) fn explain_key(state: &mut AppState, key: KeyPress) -> Update {
    let has = |row: &&Binding| in_use().keys(row.action).contains(&key);
    // The action of a page is named rather than that of a window.
    let on_page = |row: &&Binding| row.contexts.iter().any(|it| PAGES.contains(it));
    let typed = |row: &&Binding| row.contexts.iter().all(|context| context.takes_text());
    let elsewhere = BINDINGS.iter().filter(has).find(on_page);
    let elsewhere = elsewhere.or_else(|| BINDINGS.iter().filter(has).find(|row| !typed(row)));
    let (name, help) = (key.label(true), key_of(Action::Help));
    let text = match elsewhere {
        Some(row) => format!("{name} works in {} only.", row.places()),
        None if key.typed_char().is_none_or(char::is_control) => return Update::idle(),
        None => format!("{name} does nothing here; {help} shows the keys."),
    };
    state.notify(NoticeKind::Info, text);
    Update::redraw()
}
