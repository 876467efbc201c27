//! The card of a question: its text, the keys that answer it, and the fields of an answer. It is at the
//! lower edge of the page of the run that asks, which keeps the rows above it.
//!
//! Nothing here happens by accident: an arriving question opens no card, Enter approves nothing, and a
//! card that has just appeared takes no key but Esc and Tab.

mod drawing;
pub mod fields;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::drawing::parts;
use self::fields::{AnswerFields, AnswerKind, argument_fields, json_text};
use super::Overlay;
use crate::log::event::{
    Answer, AnsweredBy, ModelLabel, QuestionAsked, QuestionId, RunId, Seq, Subject,
};
use crate::log::world::questions::{OpenQuestion, QuestionEnd};
use crate::run::questions::is_rememberable;
use crate::screen::action::Action;
use crate::screen::effect::{Effect, Update};
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::keymap::{Context, key_of};
use crate::screen::layout::too_small;
use crate::screen::notice::NoticeKind;
use crate::screen::questions::{
    DEAD_TIME, KeyHold, ListedQuestion, QuestionKey, REPEAT_TIME, answer, approve_marked,
    is_irreversible, is_too_long, mark, open_questions,
};
use crate::screen::run::RunPage;
use crate::screen::run::inspector::WrappedDocument;
use crate::screen::scroll::Scroll;
use crate::screen::state::{ActiveScreen, AppState};
use crate::words::question::{asker, closed_text};

pub use self::drawing::{add_subject, render};

/// The approval of a call as it was asked about.
const APPROVE: Answer = Answer::Approve { args: None };

/// The card of one question.
#[derive(Debug)]
pub struct Card {
    pub run: RunId,
    pub asked: Arc<QuestionAsked>,
    /// Who asks.
    pub by: String,
    /// The event of the question.
    pub seq: Seq,
    pub step: CardStep,
    pub draft: CardDraft,
    /// What is wrong with the answer that was to be sent.
    pub problem: Option<String>,
    pub scroll: Scroll,
    /// Whether the end of its text was in view at least once.
    pub end_seen: bool,
    /// The arguments that the operator's editor has shown.
    read_args: Option<Arc<Value>>,
    sent: Option<Answer>,
    /// What was typed and not sent before the question ended.
    unsent: Option<String>,
    /// The script's answer to the question, if it has one.
    suggestion: Option<Answer>,
    /// How long it takes no key after it has appeared, or after it shows what the next key sends.
    pub(in crate::screen) hold: KeyHold,
    /// The questions that were open when its answer was sent: one of them is shown next.
    known: Vec<QuestionKey>,
}

/// What the next keys mean.
#[derive(Clone, Debug, PartialEq)]
pub enum CardStep {
    /// It is read.
    Reading,
    /// The fields of the answer are filled in.
    Reply,
    /// The reason is typed.
    Reason,
    /// The changed arguments are shown; they can be approved.
    Review(Arc<Value>),
    /// The call cannot be undone and was approved once, with these arguments if they were changed.
    Certain(Option<Arc<Value>>),
    /// The rule that the approval would add is shown.
    Remember,
    /// The script's answer is shown.
    Suggested(Answer),
    /// An answer was sent, and the log does not have it yet.
    Sent,
    /// The question has ended: how.
    Ended(String),
}

/// The fields of an answer that is not finished.
#[derive(Debug, Default)]
pub struct CardDraft {
    pub reply: Option<AnswerFields>,
    pub reason: Option<AnswerFields>,
    /// Arguments as they were left in the editor, if they cannot be used yet.
    json: Option<String>,
}

impl CardDraft {
    /// Whether anything was typed.
    pub fn is_empty(&self) -> bool {
        let is_changed =
            |fields: &Option<AnswerFields>| fields.as_ref().is_some_and(AnswerFields::is_changed);
        !is_changed(&self.reply) && !is_changed(&self.reason) && self.json.is_none()
    }

    /// What was typed or changed, as text; empty: nothing.
    pub(in crate::screen) fn typed(&self) -> String {
        let fields = [&self.reply, &self.reason].into_iter().flatten();
        let mut parts: Vec<String> = fields.filter_map(AnswerFields::typed).collect();
        parts.extend(self.json.clone());
        parts.join("\n")
    }
}

impl Card {
    fn new(page: &RunPage, question: &OpenQuestion, draft: CardDraft) -> Self {
        let mut card = Self {
            run: page.id().clone(),
            asked: Arc::clone(&question.asked),
            by: asker(question, page.world()).into_owned(),
            seq: question.seq,
            step: CardStep::Reading,
            draft,
            problem: None,
            scroll: Scroll::default(),
            end_seen: false,
            read_args: None,
            sent: None,
            unsent: None,
            suggestion: None,
            hold: KeyHold::New,
            known: Vec::new(),
        };
        // What is answered with a text alone is typed at once.
        if card.asked.subject.approves().is_none() && card.fill_in_reply() {
            card.step = CardStep::Reply;
        }
        card
    }

    pub fn key(&self) -> QuestionKey {
        QuestionKey { run: self.run.clone(), id: self.asked.id }
    }

    /// The focused context in it.
    pub fn context(&self) -> Context {
        match self.fields().and_then(AnswerFields::focused) {
            // The end came while somebody typed: the next letters are no keys.
            None if self.unsent.is_some() => Context::CardText,
            Some(field) if field.has_lines() => Context::CardText,
            Some(_) => Context::CardLine,
            None => Context::Card,
        }
    }

    /// The fields that are filled in.
    pub fn fields(&self) -> Option<&AnswerFields> {
        match self.step {
            CardStep::Reply => self.draft.reply.as_ref(),
            CardStep::Reason => self.draft.reason.as_ref(),
            _ => None,
        }
    }

    fn fields_mut(&mut self) -> Option<&mut AnswerFields> {
        match self.step {
            CardStep::Reply => self.draft.reply.as_mut(),
            CardStep::Reason => self.draft.reason.as_mut(),
            _ => None,
        }
    }

    /// Makes the fields of the reply, unless there are some; returns whether there are then.
    fn fill_in_reply(&mut self) -> bool {
        if self.draft.reply.is_none() {
            self.draft.reply = AnswerFields::reply(&self.asked.subject);
        }
        self.draft.reply.is_some()
    }

    /// Rows that it takes of the page of its run.
    pub fn height(&self, state: &AppState) -> u16 {
        parts(self, &drawing::document(self, state), state.size).window.height
    }

    /// Whether Esc leads back to its text, and does not close it.
    pub fn is_in_between(&self) -> bool {
        self.is_open() && self.step != CardStep::Reading
    }

    /// The changed arguments that it shows.
    fn changed_args(&self) -> Option<&Arc<Value>> {
        match &self.step {
            CardStep::Review(edited)
            | CardStep::Certain(Some(edited))
            | CardStep::Suggested(Answer::Approve { args: Some(edited) }) => Some(edited),
            _ => None,
        }
    }

    /// Whether the operator's editor has shown these arguments.
    fn is_read_in_editor(&self, args: &Value) -> bool {
        self.read_args.as_deref() == Some(args)
    }

    /// Whether all arguments that would be approved were read, on the card or in the editor. `None`: those
    /// of the question.
    fn is_read(&self, changed: Option<&Value>) -> bool {
        let Subject::ToolCall { args, .. } = &self.asked.subject else { return self.end_seen };
        let args = changed.unwrap_or(args);
        self.is_read_in_editor(args) || self.end_seen && !is_too_long(args)
    }

    /// What has to be read before these arguments are approved; `None`: nothing.
    fn unread(&self, changed: Option<&Value>) -> Option<String> {
        let Subject::ToolCall { args, .. } = &self.asked.subject else { return None };
        if is_too_long(changed.unwrap_or(args)) && !self.is_read(changed) {
            let key = key_of(Action::EditJson);
            return Some(format!("read the arguments first: {key} shows them in $EDITOR"));
        }
        let keys = [Action::Down, Action::PageDown, Action::Bottom].map(key_of);
        (is_irreversible(&self.asked) && !self.is_read(changed))
            .then(|| format!("read to the end first: {}, {} or {}", keys[0], keys[1], keys[2]))
    }

    /// The arguments that it shows.
    fn args_to_edit(&self) -> Value {
        match (&self.step, &self.asked.subject) {
            (CardStep::Review(args) | CardStep::Certain(Some(args)), _) => Value::clone(args),
            (_, Subject::ToolCall { args, .. }) => Value::clone(args),
            _ => Value::Null,
        }
    }

    /// Shows these arguments with what differs, if they fit the schema of the tool.
    fn review(&mut self, args: Arc<Value>) {
        let answer = Answer::Approve { args: Some(Arc::clone(&args)) };
        let asked = &self.asked.subject;
        match (asked, asked.check(&answer)) {
            (Subject::ToolCall { args: before, .. }, _) if *before == args => {
                self.go_to(CardStep::Reading);
            }
            (_, Err(why)) => self.problem = Some(why),
            (_, Ok(())) => self.go_to(CardStep::Review(args)),
        }
    }

    /// Whether it takes no key yet.
    pub fn is_dead(&self, now: Duration) -> bool {
        let dead_time = if self.takes_second_press() { REPEAT_TIME } else { DEAD_TIME };
        !self.hold.is_over(now, dead_time)
    }

    /// Whether the key that led here, pressed once more, sends an answer.
    fn takes_second_press(&self) -> bool {
        matches!(self.step, CardStep::Certain(_) | CardStep::Suggested(_) | CardStep::Remember)
    }

    /// Whether it can still be answered here.
    fn is_open(&self) -> bool {
        !matches!(self.step, CardStep::Sent | CardStep::Ended(_))
    }

    /// Whether an action does something in it now.
    pub fn offers(&self, action: Action) -> bool {
        let subject = &self.asked.subject;
        let is_approval = subject.approves().is_some();
        match action {
            Action::Approve if matches!(self.step, CardStep::Suggested(_)) => false,
            Action::Approve => self.is_open() && (is_approval || self.is_bare_input()),
            Action::Deny => self.is_open() && subject.can_be_denied(),
            Action::ApproveMarked => self.is_open() && is_approval,
            Action::Mark => self.is_open() && is_rememberable(subject),
            Action::Remember => {
                let is_shown = matches!(self.step, CardStep::Reading | CardStep::Remember);
                is_shown && is_rememberable(subject)
            }
            Action::EditAnswer => self.is_open() && has_reply(subject),
            Action::EditJson => self.is_open() && is_approval,
            Action::Pick(_) => self.is_open() && picks(subject),
            Action::Suggest => {
                let is_shown = matches!(self.step, CardStep::Reading | CardStep::Suggested(_));
                is_shown && self.suggestion.is_some()
            }
            Action::Send | Action::Submit => self.fields().is_some(),
            Action::NextPane => self.fields().is_some_and(|fields| fields.list.len() > 1),
            _ => true,
        }
    }

    /// Whether a server asks for nothing but a yes.
    fn is_bare_input(&self) -> bool {
        matches!(self.asked.subject, Subject::Input { .. }) && !has_reply(&self.asked.subject)
    }

    /// Shows the next step; keys that send something are dead for a moment.
    fn go_to(&mut self, step: CardStep) {
        if matches!(step, CardStep::Review(_) | CardStep::Suggested(_)) {
            self.end_seen = false;
        }
        // What the next key approves is in view.
        if matches!(step, CardStep::Review(_) | CardStep::Suggested(_) | CardStep::Certain(_)) {
            self.scroll = Scroll::default();
        }
        (self.step, self.hold, self.problem) = (step, KeyHold::New, None);
    }

    /// Takes a typed key; returns whether it was used.
    pub(crate) fn on_key(&mut self, key: KeyPress, now: Duration) -> bool {
        if self.is_dead(now) {
            return false;
        }
        self.problem = None;
        match (key.code, self.fields_mut()) {
            // The keys of the text above, which has no other ones meanwhile.
            (KeyCode::PageUp | KeyCode::PageDown, _) => {
                let by = if key.code == KeyCode::PageUp { -1 } else { 1 };
                self.scroll.line = self.scroll.line.saturating_add_signed(by);
                true
            }
            (_, Some(fields)) => fields.on_key(key),
            (_, None) => false,
        }
    }

    /// Inserts a paste into the focused field; returns what is to be said about it.
    pub(crate) fn on_paste(&mut self, text: &str, now: Duration) -> Option<String> {
        if self.is_dead(now) {
            return None;
        }
        self.fields_mut()?.on_paste(text)
    }
}

/// Whether a question of this kind is answered with fields.
fn has_reply(subject: &Subject) -> bool {
    match subject {
        Subject::ToolCall { args, parameters, .. } => {
            let is_empty = |value: &Value| value.as_object().is_none_or(|it| it.is_empty());
            !is_empty(args) || !parameters.get("properties").is_none_or(is_empty)
        }
        Subject::Agent { choices, .. } | Subject::Permission { choices, .. } => {
            choices.is_empty() || choices.len() > 9
        }
        Subject::Turn { .. } | Subject::Seat { .. } => true,
        Subject::Input { parameters, .. } => {
            !argument_fields(parameters, &Value::Null, true).is_empty()
        }
        Subject::Decision { .. }
        | Subject::InDoubt { .. }
        | Subject::Budget(_)
        | Subject::Tools { .. } => false,
    }
}

/// Whether a question of this kind is answered with a number.
fn picks(subject: &Subject) -> bool {
    !matches!(subject, Subject::Turn { .. }) && !subject.choices().is_empty()
}

/// Opens the card of an open question, over the page of its run.
pub(crate) fn open(state: &mut AppState, key: &QuestionKey) -> Update {
    keep_draft(state);
    let AppState { runs, inbox, .. } = state;
    let open = open_questions(runs).find(|it| it.key() == *key);
    let Some(ListedQuestion { page, question }) = open else { return Update::redraw() };
    let draft = inbox.drafts.remove(key).unwrap_or_default();
    let mut card = Card::new(page, question, draft);
    // A runner does not say what its script would answer.
    let head = page.world().run.head.as_ref();
    let has_script =
        !page.is_of_cluster() && head.is_some_and(|head| head.model == ModelLabel::Scripted);
    // From the inbox it can be answered again: the first answer may have been lost.
    let is_next = matches!(state.overlays.last(), Some(Overlay::Card(_)));
    if is_next && inbox.sent.contains_key(key) {
        card.step = CardStep::Sent;
    }
    if is_next && let Some(Overlay::Card(last)) = state.overlays.pop() {
        card.known = last.known;
    }
    if let Some(page) = state.run_mut(&key.run) {
        page.views.show_asking();
    }
    state.screen = ActiveScreen::Run(key.run.clone());
    state.overlays.push(Overlay::Card(Box::new(card)));
    match has_script {
        true => Update::effect(Effect::Suggest { run: key.run.clone(), id: key.id }),
        false => Update::redraw(),
    }
}

/// Keeps what was typed in the top card.
fn keep_draft(state: &mut AppState) {
    if let Some(Overlay::Card(card)) = state.overlays.last_mut()
        && card.is_open()
        && !card.draft.is_empty()
    {
        let (key, draft) = (card.key(), std::mem::take(&mut card.draft));
        state.inbox.drafts.insert(key, draft);
    }
}

fn close(state: &mut AppState) -> Update {
    keep_draft(state);
    state.overlays.pop();
    Update::redraw()
}

/// The open question before or after this one; `None`: there is no other.
fn neighbour(state: &AppState, key: &QuestionKey, forward: bool) -> Option<QuestionKey> {
    let keys = open_questions(&state.runs).map(|it| it.key()).collect();
    neighbour_among(keys, state, key, forward)
}

fn neighbour_among(
    keys: Vec<QuestionKey>,
    state: &AppState,
    key: &QuestionKey,
    forward: bool,
) -> Option<QuestionKey> {
    let at = keys.iter().position(|it| it == key);
    let len = keys.len();
    let order =
        |key: &QuestionKey| (state.runs.iter().position(|page| *page.id() == key.run), key.id);
    let next = match (at, forward) {
        // It has ended: the one that came after it.
        (None, _) => keys.iter().position(|it| order(it) > order(key)).unwrap_or(0),
        (Some(at), true) => (at + 1) % len,
        (Some(at), false) => (at + len - 1) % len,
    };
    keys.into_iter().nth(next).filter(|it| it != key)
}

/// Handles an action in the card.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    let now = state.now;
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let always = matches!(
        action,
        Action::Cancel
            | Action::NextQuestion
            | Action::PrevQuestion
            | Action::NextPane
            | Action::PrevPane
    );
    if card.is_dead(now) && !always {
        if card.takes_second_press() {
            card.hold.restart(now);
        }
        let said = "Too soon: this has just appeared. Read it, then press the key.";
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    card.problem = None;
    match action {
        Action::Cancel if card.is_in_between() => {
            // Other arguments were read than those that are shown now.
            if card.changed_args().is_some() {
                card.end_seen = false;
            }
            card.step = CardStep::Reading;
            Update::redraw()
        }
        Action::Cancel | Action::Back => close(state),
        Action::NextQuestion | Action::PrevQuestion => {
            let key = card.key();
            match neighbour(state, &key, action == Action::NextQuestion) {
                Some(next) => open(state, &next),
                None => {
                    state.notify(NoticeKind::Info, "There is no other open question.");
                    Update::redraw()
                }
            }
        }
        Action::NextPane | Action::PrevPane => {
            if let Some(fields) = card.fields_mut() {
                fields.move_focus(action == Action::NextPane);
            }
            Update::redraw()
        }
        Action::Mark if card.offers(action) || is_irreversible(&card.asked) => {
            let key = card.key();
            mark(state, &key)
        }
        Action::ApproveMarked if card.offers(action) => {
            let key = card.key();
            let is_marked = state.inbox.is_marked(&key);
            let known = open_questions(&state.runs).map(|it| it.key()).collect();
            let update = approve_marked(state);
            if let Some(Overlay::Card(card)) = state.overlays.last_mut().filter(|_| is_marked) {
                card.known = known;
                card.go_to(CardStep::Sent);
            }
            update
        }
        _ if !card.offers(action) => Update::idle(),
        Action::Approve => approve(state),
        Action::Deny => {
            if !matches!(&card.draft.reason, Some(it) if *it.kind() == AnswerKind::Denial) {
                card.draft.reason = Some(AnswerFields::denial());
            }
            card.step = CardStep::Reason;
            Update::redraw()
        }
        Action::EditAnswer => {
            let has_fields = card.fill_in_reply();
            if has_fields {
                card.step = CardStep::Reply;
            }
            Update::when(has_fields)
        }
        Action::EditJson => {
            let text = card.draft.json.clone().unwrap_or_else(|| json_text(&card.args_to_edit()));
            Update::effect(Effect::EditArgs { run: card.run.clone(), id: card.asked.id, text })
        }
        Action::Remember if card.unread(None).is_some() => {
            card.problem = card.unread(None);
            Update::redraw()
        }
        Action::Remember if card.step == CardStep::Remember => send(state, APPROVE, true),
        Action::Remember => {
            card.go_to(CardStep::Remember);
            card.scroll = Scroll::default();
            Update::redraw()
        }
        Action::Pick(number) => pick(state, number),
        Action::Suggest => match card.step.clone() {
            CardStep::Suggested(Answer::Approve { args }) => approve_with(state, args),
            CardStep::Suggested(answer) => send(state, answer, false),
            _ => {
                let suggested = card.suggestion.clone().map(CardStep::Suggested);
                suggested.into_iter().for_each(|step| card.go_to(step));
                Update::redraw()
            }
        },
        Action::Submit => submit(state),
        Action::Send => finish(state),
        Action::Up
        | Action::Down
        | Action::PageUp
        | Action::PageDown
        | Action::Top
        | Action::Bottom => scroll(state, action),
        _ => Update::idle(),
    }
}

/// Enter in a field of one line: the next field, or the end of a line that stands alone.
fn submit(state: &mut AppState) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let Some(fields) = card.fields_mut() else { return Update::idle() };
    let is_last = fields.focus + 1 >= fields.list.len();
    match fields.kind() {
        AnswerKind::Denial | AnswerKind::Choice(_) => finish(state),
        AnswerKind::Args if is_last => finish(state),
        _ => {
            fields.move_focus(true);
            Update::redraw()
        }
    }
}

/// The fields are filled in: shows changed arguments, or sends the answer.
fn finish(state: &mut AppState) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let Some(fields) = card.fields() else { return Update::idle() };
    match fields.answer() {
        Ok(Answer::Approve { args: Some(args) }) if card.asked.subject.approves().is_some() => {
            card.review(args);
        }
        Ok(answer) => return send(state, answer, false),
        Err(why) => card.problem = Some(why),
    }
    Update::redraw()
}

/// Approves the call once, with the arguments that the card shows.
fn approve(state: &mut AppState) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let args = match &card.step {
        CardStep::Review(args) => Some(Arc::clone(args)),
        CardStep::Certain(args) => args.clone(),
        _ => None,
    };
    approve_with(state, args)
}

/// Approves the call once; one that cannot be undone only at the end of the text, and with another key.
fn approve_with(state: &mut AppState, args: Option<Arc<Value>>) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let is_certain = matches!(card.step, CardStep::Certain(_));
    if let Some(unread) = card.unread(args.as_deref()) {
        card.problem = Some(unread);
        return Update::redraw();
    }
    if is_irreversible(&card.asked) && !is_certain {
        card.go_to(CardStep::Certain(args));
        return Update::redraw();
    }
    send(state, Answer::Approve { args }, false)
}

/// Chooses an answer by its number. Enter sends it, with a reason or without.
fn pick(state: &mut AppState, number: u8) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let choices = card.asked.subject.choices();
    let Some(choice) = usize::from(number).checked_sub(1).and_then(|at| choices.get(at)) else {
        card.problem = Some(format!("there is no answer {number}"));
        return Update::redraw();
    };
    let choice = Arc::clone(choice);
    let makes = AnswerKind::Choice(Arc::clone(&choice));
    if !matches!(&card.draft.reason, Some(it) if *it.kind() == makes) {
        card.draft.reason = Some(AnswerFields::choice(&choice));
    }
    card.step = CardStep::Reason;
    Update::redraw()
}

/// Sends an answer to the question of the top card.
fn send(state: &mut AppState, given: Answer, remember: bool) -> Update {
    let known = open_questions(&state.runs).map(|it| it.key()).collect();
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    if let Err(why) = card.asked.subject.check(&given) {
        let fields = card.fields_mut();
        card.problem = Some(fields.map_or_else(|| why.clone(), |fields| fields.focus_on(&why)));
        return Update::redraw();
    }
    let (key, asked) = (card.key(), Arc::clone(&card.asked));
    card.known = known;
    card.sent = Some(given.clone());
    card.go_to(CardStep::Sent);
    Update::effect(answer(state, key, &asked, given, remember))
}

/// Scrolls the text of the top card.
pub(crate) fn scroll(state: &mut AppState, action: Action) -> Update {
    let Some((width, height, document)) = text_of_top(state) else { return Update::idle() };
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    let lines = WrappedDocument { document: &document, width };
    let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
    card.scroll = match action {
        Action::Up => card.scroll.step(-1, &lines, height),
        Action::Down => card.scroll.step(1, &lines, height),
        Action::PageUp => card.scroll.step(-page, &lines, height),
        Action::PageDown => card.scroll.step(page, &lines, height),
        Action::Top => Scroll::default(),
        _ => Scroll::end(&lines, height),
    };
    Update::redraw()
}

/// The width and height of the text of the top card, and the text.
fn text_of_top(state: &AppState) -> Option<(u16, usize, crate::words::styled::StyledText)> {
    let Some(Overlay::Card(card)) = state.overlays.last() else { return None };
    let document = drawing::document(card, state);
    let text = parts(card, &document, state.size).text;
    Some((text.width, usize::from(text.height), document))
}

/// Keeps the scroll position of the top card valid.
pub(crate) fn settle(state: &mut AppState) {
    let Some((width, height, document)) = text_of_top(state) else { return };
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return };
    let lines = WrappedDocument { document: &document, width };
    card.scroll = card.scroll.clamped(&lines, height);
}

/// Records whether the end of the text of the top card was in view: a frame of it was drawn.
pub(crate) fn on_drawn(state: &mut AppState) {
    let is_seen =
        |overlay: Option<&Overlay>| matches!(overlay, Some(Overlay::Card(card)) if card.end_seen);
    if too_small(state.size.area()) || is_seen(state.overlays.last()) {
        return;
    }
    let Some((width, height, document)) = text_of_top(state) else { return };
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return };
    let lines = WrappedDocument { document: &document, width };
    card.end_seen = card.scroll >= Scroll::end(&lines, height);
}

/// Offers the script's answer, if its question is on a card.
pub(crate) fn on_suggested(
    state: &mut AppState,
    run: &RunId,
    id: QuestionId,
    answer: Option<Answer>,
) -> Update {
    for overlay in &mut state.overlays {
        if let Overlay::Card(card) = overlay
            && card.run == *run
            && card.asked.id == id
        {
            card.suggestion = answer;
            return Update::redraw();
        }
    }
    Update::idle()
}

/// Shows the arguments that were edited outside, if their question is on the screen.
pub(crate) fn on_args_edited(
    state: &mut AppState,
    run: &RunId,
    id: QuestionId,
    text: Result<String, String>,
) -> Update {
    let Some(Overlay::Card(card)) = state.overlays.last_mut() else { return Update::idle() };
    if card.run != *run || card.asked.id != id || !card.is_open() {
        return Update::idle();
    }
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            card.problem = Some(why);
            return Update::redraw();
        }
    };
    card.problem = None;
    match serde_json::from_str::<Value>(&text) {
        Ok(args) => {
            let args = Arc::new(args);
            card.read_args = Some(Arc::clone(&args));
            card.review(args);
        }
        Err(error) => card.problem = Some(format!("this is not JSON: {error}")),
    }
    // The next look into the editor continues there.
    card.draft.json = card.problem.is_some().then_some(text);
    Update::redraw()
}

/// Follows the question of a card that has ended: the next one of its run after an answer from here, else how it
/// ended.
pub(crate) fn follow(state: &mut AppState, run: &RunId) -> Update {
    let Some(page) = state.run(run) else { return Update::idle() };
    let questions = &page.world().questions;
    let is_gone = |overlay: &Overlay| match overlay {
        Overlay::Card(card) => {
            let is_over = matches!(card.step, CardStep::Ended(_));
            card.run == *run && !is_over && questions.get(card.asked.id).is_none()
        }
        _ => false,
    };
    let Some(at) = state.overlays.iter().position(is_gone) else { return Update::idle() };
    let Some(Overlay::Card(card)) = state.overlays.get(at) else { return Update::idle() };
    let ended = questions.ended().iter().rfind(|ended| ended.question.asked.id == card.asked.id);
    let by_person = ended.is_some_and(|ended| match &ended.end {
        QuestionEnd::Answered(answered) => matches!(answered.by, AnsweredBy::Person { .. }),
        QuestionEnd::Withdrawn(_) => false,
    });
    let key = card.key();
    let is_top = at + 1 == state.overlays.len();
    let is_own = ended.is_some_and(|ended| match &ended.end {
        QuestionEnd::Answered(answered) => Some(&answered.answer) == card.sent.as_ref(),
        QuestionEnd::Withdrawn(_) => false,
    });
    let typed = card.draft.typed();
    let is_lost = !is_own && !typed.is_empty();
    if card.step == CardStep::Sent && by_person && is_top && !is_lost {
        // A question that came since then gets no focus.
        let mut keys: Vec<QuestionKey> = open_questions(&state.runs).map(|it| it.key()).collect();
        keys.retain(|open| card.known.contains(open));
        let has_others = !keys.is_empty();
        // A person who has answered stays with the run: the page of another one has other keys and texts.
        keys.retain(|open| open.run == *run);
        return match neighbour_among(keys, state, &key, true) {
            Some(next) => open(state, &next),
            None => {
                state.overlays.retain(|it| match it {
                    Overlay::Card(_) => false,
                    Overlay::Inbox(_) => has_others,
                    _ => true,
                });
                state.inbox.closed = Some(KeyHold::New);
                Update::redraw()
            }
        };
    }
    let how = ended.map(|ended| closed_text(&ended.question.asked, &ended.end));
    let how = how.unwrap_or_else(|| "the run has ended".to_owned());
    if let Some(Overlay::Card(card)) = state.overlays.get_mut(at) {
        card.go_to(CardStep::Ended(how));
        card.unsent = Some(typed).filter(|_| is_lost);
        card.scroll = Scroll::default();
    }
    Update::redraw()
}
