//! The next message of a session: typed over a run of a team or swarm, sent at once or when the run
//! has ended, and answered by a run of its own.

use ratatui::layout::Rect;

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
    /// The scenario goes on with it.
    Scenario,
    /// It was typed before.
    Draft,
    /// It waits for the end of the run.
    Waiting,
}

impl MessageBox {
    fn of(page: &RunPage) -> Option<Self> {
        let (_, plan) = page.world().team()?;
        let number = plan.session.message.max(1) + 1;
        let (text, from) = match page.next_message() {
            Next::Draft(text) => (text.clone(), From::Draft),
            Next::Waiting(text) => (text.to_string(), From::Waiting),
            Next::None => match suggestion(page, number) {
                Some(text) => (text, From::Scenario),
                None => (String::new(), From::Empty),
            },
        };
        let to = plan.root.to_string();
        let text = TextField::new(&text, true);
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
        // The border, and a row of what will come of it.
        let height = (rows + 3).min(body.height);
        let x = body.x + (body.width - width) / 2;
        Rect { x, y: body.bottom() - height, width, height }
    }

    /// The text, and the row below it.
    pub fn parts(&self, size: Size) -> (Rect, Rect) {
        let inner = inside(self.window(size));
        let inner = match inner.width {
            4.. => Rect { x: inner.x + 1, width: inner.width - 2, ..inner },
            _ => inner,
        };
        let text = Rect { height: inner.height.saturating_sub(1), ..inner };
        (text, Rect { y: text.bottom(), height: inner.height - text.height, ..inner })
    }

    /// Takes a key that is typed; whether it was one.
    pub(super) fn on_key(&mut self, key: Key) -> bool {
        let types = key.typed().is_some() || key.code == KeyCode::Enter;
        if types && self.text.room() == 0 {
            return false;
        }
        self.text.on_key(key)
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
        let signs = self.text.on_paste(&text.replace("\r\n", "\n").replace('\r', "\n"));
        (signs > 0).then(|| format!("{signs} control characters of the paste are shown as signs."))
    }
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

/// Opens the box over the run on the screen.
pub(super) fn open(state: &mut State) -> Update {
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
        Action::Cancel => {
            let Some(Overlay::Message(message)) = state.overlays.pop() else {
                return Update::redraw();
            };
            let text = message.text.text();
            let unchanged = !message.text.changed();
            if let Some(page) = state.run_mut(&message.run) {
                // What was only suggested, or waits already, stays what it is.
                if !(unchanged && matches!(message.from, From::Scenario | From::Waiting)) {
                    let empty = text.trim().is_empty();
                    page.keep_message(if empty { Next::None } else { Next::Draft(text) });
                }
            }
            Update::redraw()
        }
        _ => Update::idle(),
    }
}

fn send(state: &mut State) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.last() else { return Update::idle() };
    let (run, text) = (message.run.clone(), message.text.text().trim().to_owned());
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
        state.say(NoticeKind::Info, "Kept: it is sent when this run has ended. i changes it.");
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
    let request = request(page, &text);
    page.keep_message(Next::None);
    let watched = state.screen == Screen::Run(run.clone()) && state.overlays.is_empty();
    let update = launch(state, request);
    if !watched && let Some(starting) = state.starting.last_mut() {
        starting.open = false;
    }
    Some(update)
}
