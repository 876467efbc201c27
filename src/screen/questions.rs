//! The questions of all runs on the dashboard: which are open and marked, which answers were sent, and
//! the answers that are not finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::action::Action;
use super::effect::{Effect, Update};
use super::key::KeyPress;
use super::keymap::{Context, key_of, lookup};
use super::layout::too_small;
use super::notice::NoticeKind;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState};
use super::windows::Overlay;
use super::windows::card::{self, CardDraft};
use crate::base::name::ToolName;
use crate::base::time::{duration_text, millis};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{
    Answer, AnsweredBy, Event, EventKind, QuestionAnswered, QuestionAsked, QuestionId, RunId,
    Subject,
};
use crate::log::world::questions::OpenQuestion;
use crate::run::questions::is_rememberable;
use crate::scenario::people::Effects;
use crate::words::question::closed_text;

const MINUTE: Duration = Duration::from_secs(60);

/// How long keys that answer are dead once the terminal shows a card, what the next key sends, or that
/// the last card has closed.
pub const DEAD_TIME: Duration = Duration::from_millis(400);

/// The same where a second press of a key answers: longer than most keyboards take to repeat a key that is
/// held down.
pub const REPEAT_TIME: Duration = Duration::from_secs(1);

/// A time without keys that answer. It begins when the terminal shows what is new, not when the state
/// changes: a large card takes a while to draw, and a slow link longer to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KeyHold {
    /// No frame shows it yet.
    #[default]
    New,
    /// The frame that is being written shows it.
    InFrame,
    /// The terminal shows it since then.
    Shown(Duration),
}

impl KeyHold {
    pub(super) fn is_over(self, now: Duration, dead_time: Duration) -> bool {
        matches!(self, Self::Shown(at) if now.saturating_sub(at) >= dead_time)
    }

    /// Begins again at a key that came too soon.
    pub(super) fn restart(&mut self, now: Duration) {
        if matches!(self, Self::Shown(_)) {
            *self = Self::Shown(now);
        }
    }

    fn draw(&mut self) {
        if *self == Self::New {
            *self = Self::InFrame;
        }
    }

    fn show(&mut self, now: Duration) {
        if *self == Self::InFrame {
            *self = Self::Shown(now);
        }
    }
}

/// Which question of which run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuestionKey {
    pub run: RunId,
    pub id: QuestionId,
}

/// What the dashboard knows of questions besides the logs of its runs.
#[derive(Debug, Default)]
pub struct InboxState {
    /// Answers that are not finished.
    pub(super) drafts: BTreeMap<QuestionKey, CardDraft>,
    /// Questions that are answered together. All have the same shape.
    marked: BTreeSet<QuestionKey>,
    /// Answers that were sent, until the log has one.
    pub(super) sent: BTreeMap<QuestionKey, Answer>,
    /// Since when the last card is closed, if it closed by itself: a key that was meant for it does
    /// nothing elsewhere.
    pub(super) closed: Option<KeyHold>,
    /// The Unix time in milliseconds at which the program's own time was zero; `None`: unknown.
    pub zero_wall_ms: Option<u64>,
}

/// An open question, and the page of its run.
#[derive(Clone, Copy, Debug)]
pub struct ListedQuestion<'a> {
    pub page: &'a RunPage,
    pub question: &'a OpenQuestion,
}

/// What equal questions have in common: only such are answered together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QuestionShape<'a> {
    agent: Option<&'a str>,
    tool: &'a ToolName,
    definition: &'a str,
    rule: Option<&'a str>,
}

impl<'a> QuestionShape<'a> {
    /// The shape of a question about a call; `None`: it is about something else, or about a call that
    /// must be approved one at a time: it cannot be undone, or a card does not show all its arguments.
    pub(super) fn of(asked: &'a QuestionAsked) -> Option<Self> {
        match &asked.subject {
            Subject::ToolCall { tool, definition, args, .. }
                if is_rememberable(&asked.subject) && !is_too_long(args) =>
            {
                let (agent, rule) = (asked.by.as_deref(), asked.rule.as_deref());
                Some(Self { agent, tool, definition, rule })
            }
            _ => None,
        }
    }
}

/// Most bytes of arguments that a card shows in full, so that they can be read there.
const MAX_ARGS_BYTES: usize = 256 * 1024;

/// Whether arguments are too long for a card: an editor has to show them before they are approved.
pub(super) fn is_too_long(args: &Value) -> bool {
    args_bytes(args) > MAX_ARGS_BYTES
}

/// About how many bytes a value takes as indented text.
pub(super) fn args_bytes(value: &Value) -> usize {
    fn nested(value: &Value, indent: usize) -> usize {
        let line = indent + 4;
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(|it| nested(it, indent + 2) + line).sum(),
            Value::Object(fields) => {
                let bytes = |(name, it): (&String, _)| name.len() + nested(it, indent + 2) + line;
                fields.iter().map(bytes).sum()
            }
            Value::Number(_) => 20,
            Value::Null | Value::Bool(_) => 5,
        }
    }
    nested(value, 0)
}

/// Whether a question is about a call that cannot be undone.
pub(crate) fn is_irreversible(asked: &QuestionAsked) -> bool {
    matches!(asked.subject, Subject::ToolCall { effects: Effects::Irreversible, .. })
}

impl ListedQuestion<'_> {
    pub fn key(&self) -> QuestionKey {
        QuestionKey { run: self.page.id().clone(), id: self.question.asked.id }
    }
}

/// The open questions of live runs: by the start of the run, then by number.
pub fn open_questions(runs: &[RunPage]) -> impl Iterator<Item = ListedQuestion<'_>> {
    let live = runs.iter().filter(|page| page.world().progress.is_live());
    live.flat_map(|page| {
        page.world().questions.open().map(move |question| ListedQuestion { page, question })
    })
}

impl InboxState {
    /// The time as Unix time in milliseconds, if it is known.
    pub fn wall_ms(&self, now: Duration) -> Option<u64> {
        Some(self.zero_wall_ms?.saturating_add(millis(now)))
    }

    pub fn is_marked(&self, key: &QuestionKey) -> bool {
        self.marked.contains(key)
    }

    /// The marked questions that are still open.
    pub(super) fn marked<'a>(&self, runs: &'a [RunPage]) -> Vec<ListedQuestion<'a>> {
        open_questions(runs).filter(|it| self.is_marked(&it.key())).collect()
    }
}

/// Marks all open questions of the same shape as this one, or unmarks this one.
pub(super) fn mark(state: &mut AppState, key: &QuestionKey) -> Update {
    let AppState { inbox, runs, .. } = state;
    if inbox.marked.remove(key) {
        return Update::redraw();
    }
    let asked = |it: &ListedQuestion<'_>| it.key() == *key;
    let Some(chosen) = open_questions(runs).find(asked) else { return Update::idle() };
    let Some(shape) = QuestionShape::of(&chosen.question.asked) else {
        let subject = &chosen.question.asked.subject;
        let is_long = matches!(subject, Subject::ToolCall { args, .. } if is_too_long(args));
        let why = match is_irreversible(&chosen.question.asked) {
            _ if is_long => "A call with so long arguments must be approved one at a time.",
            true => "A call that cannot be undone must be approved one at a time.",
            false => "Only approvals of calls are answered together.",
        };
        state.notify(NoticeKind::Info, why);
        return Update::redraw();
    };
    let equal =
        |it: &ListedQuestion<'_>| QuestionShape::of(&it.question.asked).as_ref() == Some(&shape);
    inbox.marked = open_questions(runs).filter(equal).map(|it| it.key()).collect();
    Update::redraw()
}

/// Approves every marked question once.
pub(super) fn approve_marked(state: &mut AppState) -> Update {
    let marked = state.inbox.marked(&state.runs);
    let marked: Vec<(QuestionKey, Arc<QuestionAsked>)> =
        marked.iter().map(|it| (it.key(), Arc::clone(&it.question.asked))).collect();
    if marked.is_empty() {
        state.notify(NoticeKind::Info, "No question is marked.");
        return Update::redraw();
    }
    state.inbox.marked.clear();
    let approve = Answer::Approve { args: None };
    let effects = marked
        .into_iter()
        .map(|(key, asked)| answer(state, key, &asked, approve.clone(), false))
        .collect();
    Update { redraw: true, effects }
}

/// Sends an answer.
pub(super) fn answer(
    state: &mut AppState,
    key: QuestionKey,
    asked: &QuestionAsked,
    answer: Answer,
    remember: bool,
) -> Effect {
    let (run, id, digest) = (key.run.clone(), key.id, Arc::clone(&asked.digest));
    state.inbox.sent.insert(key, answer.clone());
    Effect::Answer { run, id, digest, answer, remember }
}

/// Follows questions that have ended: drops what is kept for them, and says so if somebody else
/// answered one first. Returns whether questions were opened or have ended.
pub(super) fn follow(state: &mut AppState, run: &RunId, events: &[Arc<Event>]) -> bool {
    let mut changed = false;
    for event in events {
        let (id, answered) = match &event.kind {
            EventKind::QuestionAsked(asked) => {
                changed = true;
                say_asked(state, run, asked);
                continue;
            }
            EventKind::RunClosed(_) => {
                changed = true;
                let InboxState { drafts, marked, sent, .. } = &mut state.inbox;
                drafts.retain(|key, _| key.run != *run);
                marked.retain(|key| key.run != *run);
                sent.retain(|key, _| key.run != *run);
                continue;
            }
            EventKind::QuestionAnswered(answered) => (answered.id, Some(answered)),
            EventKind::QuestionWithdrawn { id, .. } => (*id, None),
            _ => continue,
        };
        changed = true;
        let key = QuestionKey { run: run.clone(), id };
        let draft = state.inbox.drafts.remove(&key);
        state.inbox.marked.remove(&key);
        if let Some(text) = draft.and_then(|draft| lost_text(state, &key, &draft)) {
            state.notify(NoticeKind::Info, text);
        }
        let Some(sent) = state.inbox.sent.remove(&key) else { continue };
        if answered.is_some_and(|answered| is_from_here(answered, &sent)) {
            continue;
        }
        if let Some(text) = late_text(state, &key) {
            state.notify(NoticeKind::Info, text);
        }
    }
    changed
}

/// Says that a run asks, unless its page or the list of runs is on the screen, which show it.
fn say_asked(state: &mut AppState, run: &RunId, asked: &QuestionAsked) {
    let is_elsewhere = matches!(&state.screen, ActiveScreen::Run(shown) if shown != run);
    let is_open = |page: &RunPage| page.world().questions.get(asked.id).is_some();
    if is_elsewhere && state.run(run).is_some_and(is_open) {
        let text =
            format!("{run} waits for {}: {} opens the inbox.", asked.who, key_of(Action::Inbox));
        state.notify(NoticeKind::Info, text);
    }
}

/// Whether the answer in the log is the one that was sent. Another person may have sent an equal one.
fn is_from_here(answered: &QuestionAnswered, sent: &Answer) -> bool {
    matches!(answered.by, AnsweredBy::Person { .. }) && answered.answer == *sent
}

/// How a question ended before its answer was sent, and what was typed.
fn lost_text(state: &AppState, key: &QuestionKey, draft: &CardDraft) -> Option<String> {
    let ended = state.run(&key.run)?.world().questions.ended();
    let ended = ended.iter().rfind(|ended| ended.question.asked.id == key.id)?;
    let how = visible_within(&closed_text(&ended.question.asked, &ended.end), 2 * REASON_CHARS);
    let typed = visible_within(&draft.typed(), REASON_CHARS);
    Some(format!("{} of {} has ended: {how}. Not sent: {typed}", key.id, key.run))
}

/// That an answer came too late: who answered what, and when.
fn late_text(state: &AppState, key: &QuestionKey) -> Option<String> {
    let ended = state.run(&key.run)?.world().questions.ended();
    let ended = ended.iter().rfind(|ended| ended.question.asked.id == key.id)?;
    let how = visible_within(&closed_text(&ended.question.asked, &ended.end), 2 * REASON_CHARS);
    let after = duration_text(ended.at.since(ended.question.at));
    let how = how.strip_prefix("too late, ").unwrap_or(&how);
    Some(format!("Too late for {} of {}: {how}, after {after}.", key.id, key.run))
}

/// A frame was drawn with this state; it is being written.
pub fn on_frame_drawn(state: &mut AppState) {
    card::on_drawn(state);
    each_hold(state, KeyHold::draw);
}

/// The terminal shows the last frame that was drawn.
pub fn on_frame_shown(state: &mut AppState, now: Duration) {
    each_hold(state, |hold| hold.show(now));
}

fn each_hold(state: &mut AppState, change: impl Fn(&mut KeyHold)) {
    if too_small(state.size.area()) {
        return;
    }
    state.inbox.closed.iter_mut().for_each(&change);
    if let Some(Overlay::Card(card)) = state.overlays.last_mut() {
        change(&mut card.hold);
    }
}

/// Whether this key was meant for a card that has just closed by itself.
pub(super) fn is_too_late(state: &mut AppState, key: KeyPress) -> bool {
    state.inbox.closed = state.inbox.closed.filter(|hold| !hold.is_over(state.now, DEAD_TIME));
    let has_card = matches!(state.overlays.last(), Some(Overlay::Card(_)));
    let changes = |action: Action| {
        let leads_to_answer =
            matches!(action, Action::Deny | Action::EditAnswer | Action::EditJson | Action::Mark);
        leads_to_answer || action.is_answer()
    };
    state.inbox.closed.is_some() && !has_card && lookup(Context::Card, key).is_some_and(changes)
}

/// How long until a text that says how long something waits changes. Only one clock wakes the screen, that
/// of the earliest deadline, or of the oldest question without one: once a minute, and in the last minute
/// before a deadline every ten seconds. Other texts change along with it.
pub(super) fn next_minute(state: &AppState) -> Option<Duration> {
    let wall_ms = state.inbox.wall_ms(state.now);
    let left = |it: ListedQuestion<'_>| it.question.asked.due_ms?.checked_sub(wall_ms?);
    let left = open_questions(&state.runs).filter_map(left).filter(|left| *left > 0).min();
    let wait = match left {
        // The text counts whole steps: it changes right below one.
        Some(left) if left < 60_000 => Duration::from_millis(left % 10_000 + 1),
        Some(left) => Duration::from_millis(left % 60_000 + 1),
        None => {
            let age = |it: ListedQuestion<'_>| state.elapsed(it.page).since(it.question.at);
            let oldest = open_questions(&state.runs).map(age).max()?;
            let into = Duration::from_nanos((oldest.as_nanos() % MINUTE.as_nanos()) as u64);
            MINUTE.saturating_sub(into)
        }
    };
    Some(wait.max(Duration::from_millis(1)))
}
