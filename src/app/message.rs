//! The next message of a session: typed over a run of a team or swarm, sent at once or when the run
//! has ended, and answered by a run of its own.

use ratatui::layout::Rect;
use tui_textarea::CursorMove;

use super::action::Action;
use super::effect::{Follows, LaunchRequest};
use super::form::field::{MOST_BYTES, TextField};
use super::input::start;
use super::key::{Key, KeyCode};
use super::layout::inside;
use super::measure::row_count;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::run::{Next, RunPage};
use super::state::{Screen, Size, State};
use super::update::Update;
use crate::event::RunId;
use crate::scenario::model::PatternSpec;
use crate::scenario::name::FlagName;

/// The widest that the box gets.
const COLS: u16 = 100;
/// The fewest and the most rows of its text.
const ROWS: (u16, u16) = (3, 12);
/// Columns from which one row has all that is told below the text.
const ROOMY: u16 = 100;

/// The box over a run.
#[derive(Debug)]
pub struct MessageBox {
    /// The run whose session goes on.
    pub run: RunId,
    /// Which of the session's messages this is.
    pub number: u32,
    /// To whom.
    pub to: String,
    /// What is typed.
    pub text: TextField,
    /// Where its first text comes from.
    pub from: From,
}

/// Where the first text of the box comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Nowhere: it was empty.
    Empty,
    /// The scenario goes on with it: what is typed first takes its place.
    Scenario,
    /// It was typed before.
    Draft,
    /// It waits for the end of the run. The cursor stands on a line of its own below it, so that
    /// what is typed next never runs into it.
    Waiting,
}

impl MessageBox {
    fn of(page: &RunPage) -> Option<Self> {
        let (_, plan) = page.world().team()?;
        let number = plan.session.message.max(1) + 1;
        let (text, from) = match page.next_message() {
            Next::Draft(text) => (text.clone(), From::Draft),
            Next::Waiting(text) => (format!("{text}\n"), From::Waiting),
            Next::None => match suggestion(page, number) {
                Some(text) => (text, From::Scenario),
                None => (String::new(), From::Empty),
            },
        };
        let to = plan.root.to_string();
        let mut text = TextField::new(&text, true);
        if from == From::Scenario {
            text.area.move_cursor(CursorMove::Jump(0, 0));
        }
        Some(Self { run: page.id().clone(), number, to, text, from })
    }

    /// Its window: above the lower edge of the body, as high as its text.
    pub fn window(&self, size: Size) -> Rect {
        let body = size.body();
        let width = body.width.min(COLS);
        let columns = usize::from(width.saturating_sub(4)).max(1);
        let lines = self.text.area.lines().iter().take(usize::from(ROWS.1));
        let rows: usize = lines.map(|line| row_count(line, columns)).sum();
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1).clamp(ROWS.0, ROWS.1);
        // The border, and what will come of it.
        let height = (rows + 2 + told_rows(width)).min(body.height);
        let x = body.x + (body.width - width) / 2;
        Rect { x, y: body.bottom() - height, width, height }
    }

    /// The text, and the rows below it.
    pub fn parts(&self, size: Size) -> (Rect, Rect) {
        let inner = inside(self.window(size));
        let inner = match inner.width {
            4.. => Rect { x: inner.x + 1, width: inner.width - 2, ..inner },
            _ => inner,
        };
        let told = told_rows(self.window(size).width);
        let text = Rect { height: inner.height.saturating_sub(told).max(1), ..inner };
        (text, Rect { y: text.bottom(), height: inner.height - text.height, ..inner })
    }

    /// Whether what stands in it is still the scenario's suggestion.
    pub fn is_suggested(&self) -> bool {
        self.from == From::Scenario
    }

    /// Whether closing it would leave everything as it is.
    pub fn is_untouched(&self) -> bool {
        !self.text.changed() && self.from != From::Empty
    }

    /// Takes a key that is typed; whether it was one.
    pub(super) fn on_key(&mut self, key: Key) -> bool {
        let types = key.typed().is_some() || key.code == KeyCode::Enter;
        if self.is_suggested() {
            if types || matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
                self.clear();
            } else if self.text.on_key(key) {
                // Whoever moves in it makes it their own.
                self.from = From::Empty;
                return true;
            }
        }
        if types && self.text.room() == 0 {
            return false;
        }
        self.text.on_key(key)
    }

    /// Empties it. What waits is taken back only by sending nothing.
    fn clear(&mut self) {
        self.text = TextField::new("", true);
        if self.from != From::Waiting {
            self.from = From::Empty;
        }
    }

    /// Takes pasted text whole; what there is to say about it.
    pub(super) fn on_paste(&mut self, text: &str) -> Option<String> {
        if text.len() > self.text.room() {
            let bytes = text.len();
            return Some(format!(
                "The paste has {bytes} bytes, more than a message takes ({MOST_BYTES} in all): \
                 nothing was inserted."
            ));
        }
        if self.is_suggested() {
            self.clear();
        }
        let signs = self.text.on_paste(&text.replace("\r\n", "\n").replace('\r', "\n"));
        (signs > 0).then(|| format!("{signs} control characters of the paste are shown as signs."))
    }
}

/// Rows of what is told below the text, in a window so wide.
fn told_rows(width: u16) -> u16 {
    if width < ROOMY { 2 } else { 1 }
}

/// What the scenario goes on with as this message.
fn suggestion(page: &RunPage, number: u32) -> Option<String> {
    let launch = page.launch()?;
    let PatternSpec::Team(spec) = &launch.scenario.pattern else { return None };
    let nth = usize::try_from(number).ok()?.checked_sub(2)?;
    spec.follow_ups.get(nth).map(|text| text.to_string())
}

/// The run that answers a message: as the one before, with the flags as they stand.
fn request(page: &RunPage, text: &str) -> Option<LaunchRequest> {
    let before = page.launch()?;
    let flags = page.world().flags.iter();
    let flags: Vec<(FlagName, bool)> = flags.map(|flag| (flag.name.clone(), flag.on)).collect();
    let follows = Some(Follows { run: page.id().clone(), text: text.into() });
    Some(LaunchRequest { flags, follows, ..before.clone() })
}

/// The latest run of a run's session: what is said next goes on from there.
fn latest(state: &State, run: &RunId) -> RunId {
    let mut latest = run;
    for _ in &state.runs {
        let after = |page: &&RunPage| {
            let session = page.world().team().map(|(_, plan)| &plan.session);
            session.is_some_and(|session| session.after.as_ref() == Some(latest))
        };
        match state.runs.iter().rev().find(after) {
            Some(page) => latest = page.id(),
            None => break,
        }
    }
    latest.clone()
}

/// Goes on from the latest run of the session of the run on the screen, so that no session parts
/// into two in silence. What was typed for an earlier one goes with it.
fn to_latest(state: &mut State) {
    let Some(page) = state.watched() else { return };
    let here = page.id().clone();
    let last = latest(state, &here);
    if last == here {
        return;
    }
    if let Some(Next::Draft(text)) = state.run_mut(&here).map(|page| page.keep_message(Next::None))
        && let Some(page) = state.run_mut(&last)
        && *page.next_message() == Next::None
    {
        page.keep_message(Next::Draft(text));
    }
    let said = format!("{here} was answered further: the session goes on from {last}, its latest.");
    state.screen = Screen::Run(last);
    state.say(NoticeKind::Info, said);
}

/// Opens the box over the run on the screen.
pub(super) fn open(state: &mut State) -> Update {
    to_latest(state);
    let Some(page) = state.watched() else { return Update::idle() };
    let why = match MessageBox::of(page) {
        Some(message) if page.launch().is_some() => {
            state.overlays.push(Overlay::Message(Box::new(message)));
            return Update::redraw();
        }
        Some(_) => "What this run was started with is not known: n starts another.",
        None => "Only teams and swarms answer another message: n starts another run.",
    };
    state.say(NoticeKind::Info, why);
    Update::redraw()
}

/// Answers an action in the box.
pub(super) fn on_action(state: &mut State, action: Action) -> Update {
    match action {
        Action::Send => send(state),
        Action::Clear => {
            if let Some(Overlay::Message(message)) = state.overlays.last_mut() {
                message.clear();
            }
            Update::redraw()
        }
        Action::Cancel => close(state),
        _ => Update::idle(),
    }
}

/// Closes the box; what was typed stays, for as long as the program runs.
fn close(state: &mut State) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.pop() else { return Update::redraw() };
    // What was only suggested, or waits already, stays what it is.
    if message.is_untouched() {
        return Update::redraw();
    }
    let text = message.text.text();
    let waited = message.from == From::Waiting;
    let Some(page) = state.run_mut(&message.run) else { return Update::redraw() };
    let mine = !text.trim().is_empty() && suggestion(page, message.number).as_ref() != Some(&text);
    let said = match (mine, waited) {
        (false, true) => return Update::redraw(),
        (true, true) => "It no longer waits: it is a draft now, and i goes on with it.",
        (true, false) => "The draft is kept, and not sent: i goes on with it.",
        (false, false) => {
            page.keep_message(Next::None);
            return Update::redraw();
        }
    };
    page.keep_message(Next::Draft(text));
    state.say(NoticeKind::Info, said);
    Update::redraw()
}

fn send(state: &mut State) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.last() else { return Update::idle() };
    // A later run of the session may have begun since the box was opened.
    let run = latest(state, &message.run);
    let text = message.text.text().trim().to_owned();
    let Some(page) = state.run_mut(&run) else {
        state.overlays.pop();
        return Update::redraw();
    };
    if text.is_empty() {
        let said = match page.keep_message(Next::None) {
            Next::Waiting(_) => {
                state.overlays.pop();
                "The message that waited was taken back."
            }
            before => {
                page.keep_message(before);
                "There is nothing to send yet: type a message, or Esc."
            }
        };
        state.say(NoticeKind::Info, said);
        return Update::redraw();
    }
    if page.world().is_live() {
        page.keep_message(Next::Waiting(text.into()));
        state.overlays.pop();
        state.say(NoticeKind::Info, "Kept: it is sent once this run has ended. i edits it.");
        return Update::redraw();
    }
    let request = request(page, &text);
    page.keep_message(Next::None);
    state.overlays.pop();
    launch(state, request)
}

fn launch(state: &mut State, request: Option<LaunchRequest>) -> Update {
    let id = state.next_request();
    match request {
        Some(request) => start(state, LaunchRequest { id, ..request }),
        None => Update::redraw(),
    }
}

/// A run has ended: the message that waited for that is sent, unless the run came to nothing.
pub(super) fn on_end(state: &mut State, run: &RunId) -> Option<Update> {
    let page = state.run_mut(run)?;
    let Next::Waiting(text) = page.next_message().clone() else { return None };
    let reason = page.world().closed.as_ref().map(|closed| closed.reason.clone())?;
    if !reason.is_success() {
        page.keep_message(Next::Draft(text.to_string()));
        let said = format!("Not sent, since the run ended with {reason}: i has the message.");
        state.say(NoticeKind::Info, said);
        return Some(Update::redraw());
    }
    if let Some(at) = state.overlays.iter().position(|it| is_of(it, run)) {
        if let Some(Overlay::Message(message)) = state.overlays.get_mut(at)
            && message.text.text().trim() != text.trim()
        {
            // It is being edited: the one who does so sends it.
            message.from = From::Draft;
            let page = state.run_mut(run)?;
            page.keep_message(Next::Draft(text.to_string()));
            state.say(NoticeKind::Info, "The run has ended: Ctrl-S sends the message now.");
            return Some(Update::redraw());
        }
        state.overlays.remove(at);
    }
    let page = state.run_mut(run)?;
    let request = request(page, &text);
    page.keep_message(Next::None);
    let watched = state.screen == Screen::Run(run.clone()) && state.overlays.is_empty();
    let update = launch(state, request);
    if !watched && let Some(starting) = state.starting.last_mut() {
        starting.open = false;
    }
    Some(update)
}

fn is_of(overlay: &Overlay, run: &RunId) -> bool {
    matches!(overlay, Overlay::Message(message) if message.run == *run)
}

/// How many messages were typed and not sent: they go when the program does.
pub(super) fn unsent(state: &State) -> usize {
    let open = |run: &RunId| {
        state.overlays.iter().any(|it| match it {
            Overlay::Message(message) if message.run == *run => {
                message.text.changed() && !message.text.text().trim().is_empty()
            }
            _ => false,
        })
    };
    let unsent = |page: &&RunPage| *page.next_message() != Next::None || open(page.id());
    state.runs.iter().filter(unsent).count()
}
