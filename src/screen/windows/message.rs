//! The message box over a run of a team or swarm: the session's next message is sent at once or
//! when the run ends, kept as a draft, and answered by a new run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_textarea::CursorMove;

use super::Overlay;
use crate::log::event::{Command, Initiator, RunId};
use crate::log::world::Projection;
use crate::screen::action::Action;
use crate::screen::effect::{Effect, FollowUp, LaunchRequest, RunBeginning, Update};
use crate::screen::form::fields::{MAX_TEXT_BYTES, TextField};
use crate::screen::frame::Frame;
use crate::screen::key::{KeyCode, KeyPress};
use crate::screen::keymap::key_of;
use crate::screen::launch::start;
use crate::screen::layout::{Size, inside};
use crate::screen::notice::NoticeKind;
use crate::screen::run::{NextMessage, RunPage};
use crate::screen::state::{ActiveScreen, AppState};
use crate::screen::text::paint;
use crate::screen::widgets::{paragraph, scroll_arrows};
use crate::screen::{DrawContext, frame, widgets};
use crate::words::format;
use crate::words::measure::row_count;
use crate::words::styled::StyleRole;

/// Maximum width of the box, in columns.
const COLS: u16 = 100;
/// Minimum and maximum rows of its text.
const ROWS: (u16, u16) = (3, 12);
/// Columns from which the note below the text fits into one row.
const ONE_ROW_NOTE_COLS: u16 = 100;

/// The message box over a run.
#[derive(Debug)]
pub struct MessageBox {
    /// The run whose session continues.
    pub run: RunId,
    /// The number of this message in the session.
    pub number: u32,
    /// The agent that receives it.
    pub to: String,
    pub text: TextField,
    pub from: DraftOrigin,
}

/// Where the first text of the box came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftOrigin {
    /// The box was empty.
    Empty,
    /// The scenario suggests it; the first typed character replaces it.
    Scenario,
    /// It is an unsent draft.
    Draft,
    /// It is queued until the run ends. The cursor starts on a line of its own below it, so that
    /// new text never runs into it.
    Queued,
}

impl MessageBox {
    pub(crate) fn for_page(page: &RunPage) -> Option<Self> {
        let world = page.world();
        if world.observed().is_some() && world.progress.is_live() && page.remote.is_none() {
            let (text, from) = match page.next_message() {
                NextMessage::Draft(text) => (&**text, DraftOrigin::Draft),
                _ => ("", DraftOrigin::Empty),
            };
            let (run, text) = (page.id().clone(), TextField::new(text, true));
            return Some(Self { run, number: 0, to: "the program".to_owned(), text, from });
        }
        let number = world.session()?.message.max(1) + 1;
        let (text, from) = match page.next_message() {
            NextMessage::Draft(text) => (text.clone(), DraftOrigin::Draft),
            NextMessage::Waiting(text) => (format!("{text}\n"), DraftOrigin::Queued),
            NextMessage::None => match suggestion(page, number) {
                Some(text) => (text, DraftOrigin::Scenario),
                None => (String::new(), DraftOrigin::Empty),
            },
        };
        let to = world.agents()?.plan.root.as_ref()?.to_string();
        let mut text = TextField::new(&text, true);
        if from == DraftOrigin::Scenario {
            text.area.move_cursor(CursorMove::Jump(0, 0));
        }
        Some(Self { run: page.id().clone(), number, to, text, from })
    }

    /// Its window: at the lower edge of the body, as high as its text.
    pub fn window(&self, size: Size) -> Rect {
        let body = size.body();
        let width = body.width.min(COLS);
        let columns = usize::from(width.saturating_sub(4)).max(1);
        let lines = self.text.area.lines().iter().take(usize::from(ROWS.1));
        let rows: usize = lines.map(|line| row_count(line, columns)).sum();
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1).clamp(ROWS.0, ROWS.1);
        // The border, and the note below the text.
        let height = (rows + 2 + note_rows(width)).min(body.height);
        let x = body.x + (body.width - width) / 2;
        Rect { x, y: body.bottom() - height, width, height }
    }

    /// The areas of the text and of the note below it.
    pub fn parts(&self, size: Size) -> (Rect, Rect) {
        let inner = inside(self.window(size));
        let inner = match inner.width {
            4.. => Rect { x: inner.x + 1, width: inner.width - 2, ..inner },
            _ => inner,
        };
        let rows = note_rows(self.window(size).width);
        let text = Rect { height: inner.height.saturating_sub(rows).max(1), ..inner };
        (text, Rect { y: text.bottom(), height: inner.height - text.height, ..inner })
    }

    /// Whether it is a line for the input of a program that is watched.
    pub(crate) fn is_input(&self) -> bool {
        self.number == 0
    }

    /// Whether it still shows the scenario's suggestion.
    pub fn is_suggested(&self) -> bool {
        self.from == DraftOrigin::Scenario
    }

    /// Whether closing it would change nothing.
    pub fn is_untouched(&self) -> bool {
        !self.text.changed() && self.from != DraftOrigin::Empty
    }

    /// Takes a typed key; returns whether the key was used.
    pub(crate) fn on_key(&mut self, key: KeyPress) -> bool {
        let types = key.typed_char().is_some() || key.code == KeyCode::Enter;
        if self.is_suggested() {
            if types || matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
                self.clear();
            } else if self.text.on_key(key) {
                // A moved cursor accepts the suggestion as a text to edit.
                self.from = DraftOrigin::Empty;
                return true;
            }
        }
        if types && self.text.free_bytes() == 0 {
            return false;
        }
        self.text.on_key(key)
    }

    /// Clears the text. A queued message is withdrawn only when the empty text is sent.
    pub(crate) fn clear(&mut self) {
        self.text = TextField::new("", true);
        if self.from != DraftOrigin::Queued {
            self.from = DraftOrigin::Empty;
        }
    }

    /// Inserts pasted text; returns a notice where there is something to report.
    pub(crate) fn on_paste(&mut self, text: &str) -> Option<String> {
        if text.len() > self.text.free_bytes() {
            let bytes = text.len();
            return Some(format!(
                "The paste has {bytes} bytes, more than a message takes ({MAX_TEXT_BYTES} in all): \
                 nothing was inserted."
            ));
        }
        if self.is_suggested() {
            self.clear();
        }
        let signs = self.text.on_paste(&text.replace("\r\n", "\n").replace('\r', "\n"));
        (signs > 0)
            .then(|| format!("{signs} control characters of the paste are shown as symbols."))
    }
}

/// Rows of the note below the text, for a window of this width.
fn note_rows(width: u16) -> u16 {
    if width < ONE_ROW_NOTE_COLS { 2 } else { 1 }
}

/// The message with this number that the scenario suggests.
pub(crate) fn suggestion(page: &RunPage, number: u32) -> Option<String> {
    let launch = page.launch()?;
    let nth = usize::try_from(number).ok()?.checked_sub(2)?;
    let follow_ups = launch.scenario.pattern.get().follow_ups();
    follow_ups.get(nth).map(|text| text.to_string())
}

/// The latest run of a run's session, which the next message continues.
fn latest_run(state: &AppState, run: &RunId) -> RunId {
    let mut latest = run;
    for _ in &state.runs {
        let after = |page: &&RunPage| {
            let session = page.world().projection().and_then(Projection::session);
            session.is_some_and(|session| session.previous_run.as_ref() == Some(latest))
        };
        match state.runs.iter().rev().find(after) {
            Some(page) => latest = page.id(),
            None => break,
        }
    }
    latest.clone()
}

/// Goes to the latest run of this session, so that no session forks silently. A draft for the
/// earlier run moves with it.
fn show_latest_run(state: &mut AppState) {
    let Some(page) = state.visible_run() else { return };
    let here = page.id().clone();
    let last = latest_run(state, &here);
    if last == here {
        return;
    }
    if let Some(NextMessage::Draft(text)) =
        state.run_mut(&here).map(|page| page.data_mut().replace_message(NextMessage::None))
        && let Some(page) = state.run_mut(&last)
        && *page.next_message() == NextMessage::None
    {
        page.data_mut().replace_message(NextMessage::Draft(text));
    }
    let said = format!("{here} has a later run: the session continues from {last}.");
    state.screen = ActiveScreen::Run(last);
    state.notify(NoticeKind::Info, said);
}

/// Opens the message box over the run on the screen.
pub(crate) fn open(state: &mut AppState) -> Update {
    show_latest_run(state);
    let Some(page) = state.visible_run() else { return Update::idle() };
    // Its process queues the messages of the session.
    let of_process = page.is_of_process();
    let why = match MessageBox::for_page(page) {
        Some(message)
            if message.is_input()
                || page.launch().is_some()
                || of_process && page.world().progress.is_live() =>
        {
            state.overlays.push(Overlay::Message(Box::new(message)));
            return Update::redraw();
        }
        Some(_) if of_process => "The process of this run answers no more messages",
        Some(_) => "This run's settings are not known",
        None => "Only teams and swarms take follow-ups",
    };
    let why = format!("{why}: {} starts a new run.", key_of(Action::NewRun));
    state.notify(NoticeKind::Info, why);
    Update::redraw()
}

/// Handles an action in the box.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    match action {
        Action::Send | Action::Submit => send(state),
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

/// Closes the box; a text that was typed is kept until the program ends.
fn close(state: &mut AppState) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.pop() else { return Update::redraw() };
    // A suggestion or a queued message stays as it is.
    if message.is_untouched() {
        return Update::redraw();
    }
    let text = message.text.text();
    let waited = message.from == DraftOrigin::Queued;
    let Some(page) = state.run_mut(&message.run) else { return Update::redraw() };
    let mine = !text.trim().is_empty() && suggestion(page, message.number).as_ref() != Some(&text);
    let said = match (mine, waited) {
        (false, true) => return Update::redraw(),
        (true, true) => "No longer queued: kept as a draft.",
        (true, false) => "Draft kept, not sent.",
        (false, false) => {
            page.data_mut().replace_message(NextMessage::None);
            return Update::redraw();
        }
    };
    page.data_mut().replace_message(NextMessage::Draft(text));
    let said = format!("{said} Press {} to edit it.", key_of(Action::Message));
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

fn send(state: &mut AppState) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.last() else { return Update::idle() };
    // A later run of the session may have begun since the box was opened.
    let run = latest_run(state, &message.run);
    let text = message.text.text().trim().to_owned();
    if message.is_input() {
        let line = message.text.text();
        state.overlays.pop();
        if let Some(page) = state.run_mut(&run) {
            page.data_mut().replace_message(NextMessage::None);
        }
        return Update { redraw: true, ..Update::effect(Effect::Input(line)) };
    }
    let Some(page) = state.run_mut(&run) else {
        state.overlays.pop();
        return Update::redraw();
    };
    if text.is_empty() {
        let said = match page.data_mut().replace_message(NextMessage::None) {
            NextMessage::Waiting(_) => {
                state.overlays.pop();
                "The queued message was withdrawn."
            }
            before => {
                page.data_mut().replace_message(before);
                "Nothing to send: type a message, or press Esc."
            }
        };
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    if page.world().progress.is_live() && page.is_of_process() {
        page.data_mut().replace_message(NextMessage::None);
        state.overlays.pop();
        let command = Command::Message { text: text.into(), by: Initiator::You };
        state.notify(
            NoticeKind::Info,
            "Queued: its process answers it when this run ends.".to_owned(),
        );
        return Update { redraw: true, effects: vec![Effect::Command { run, command }] };
    }
    if page.world().progress.is_live() {
        page.data_mut().replace_message(NextMessage::Waiting(text.into()));
        state.overlays.pop();
        let key = key_of(Action::Message);
        let said = format!("Queued: sent when this run ends. Press {key} to edit it.");
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    let request = follow_up_request(page, &text);
    page.data_mut().replace_message(NextMessage::None);
    state.overlays.pop();
    launch(state, request)
}

fn launch(state: &mut AppState, request: Option<LaunchRequest>) -> Update {
    let id = state.next_request();
    match request {
        Some(request) => start(state, LaunchRequest { id, ..request }),
        None => Update::redraw(),
    }
}

/// A run has ended: sends its queued messages, unless the run failed.
pub(crate) fn on_run_end(state: &mut AppState, run: &RunId) -> Option<Update> {
    let page = state.run_mut(run)?;
    let own = match page.next_message() {
        NextMessage::Waiting(text) => Some(text.to_string()),
        _ => None,
    };
    let text =
        [from_elsewhere(page), own.clone()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    if text.is_empty() {
        return None;
    }
    let reason = page.world().progress.closed.as_ref().map(|closed| closed.reason.clone())?;
    if !reason.is_success() {
        page.data_mut().replace_message(NextMessage::Draft(text));
        let (why, key) = (reason.phrase(), key_of(Action::Message));
        let said = format!("Not sent, since the run ended: {why}. Press {key} for the draft.");
        state.notify(NoticeKind::Info, said);
        return Some(Update::redraw());
    }
    if let Some(own) = own
        && let Some(at) = state.overlays.iter().position(|it| is_message_box_of(it, run))
    {
        if let Some(Overlay::Message(message)) = state.overlays.get_mut(at)
            && message.text.text().trim() != own.trim()
        {
            // It is being edited: the operator sends it when it is ready.
            message.from = DraftOrigin::Draft;
            let page = state.run_mut(run)?;
            page.data_mut().replace_message(NextMessage::Draft(text));
            let key = key_of(Action::Send);
            let said = format!("The run has ended: press {key} to send the message.");
            state.notify(NoticeKind::Info, said);
            return Some(Update::redraw());
        }
        state.overlays.remove(at);
    }
    let page = state.run_mut(run)?;
    let request = follow_up_request(page, &text);
    page.data_mut().replace_message(NextMessage::None);
    let watched = state.screen == ActiveScreen::Run(run.clone()) && state.overlays.is_empty();
    let update = launch(state, request);
    if !watched && let Some(starting) = state.starting.last_mut() {
        starting.open = false;
    }
    Some(update)
}

/// The messages that were sent to a run of this dashboard from elsewhere.
fn from_elsewhere(page: &RunPage) -> Option<String> {
    let world = page.world();
    let is_own = page.remote.is_none() && world.session().is_some();
    world.progress.next_message().filter(|_| is_own)
}

/// A run of another process has started: if the run before it in the session is on the screen and has ended, it is
/// shown next.
pub(crate) fn on_run_start(state: &mut AppState, run: &RunId) {
    let started = state.run(run).filter(|page| page.is_of_process());
    let before = started.and_then(|page| page.world().session()?.previous_run.clone());
    let shown = state.visible_run().map(|page| page.id().clone());
    if before.is_some() && before == shown && state.shows_ended_run() {
        state.screen = ActiveScreen::Run(run.clone());
    }
}

fn is_message_box_of(overlay: &Overlay, run: &RunId) -> bool {
    matches!(overlay, Overlay::Message(message) if message.run == *run)
}

/// The number of typed messages that were not sent; they are lost when the program ends.
pub(crate) fn unsent_count(state: &AppState) -> usize {
    let open = |run: &RunId| {
        state.overlays.iter().any(|it| match it {
            Overlay::Message(message) if message.run == *run => {
                message.text.changed() && !message.text.text().trim().is_empty()
            }
            _ => false,
        })
    };
    let unsent = |page: &&RunPage| *page.next_message() != NextMessage::None || open(page.id());
    state.runs.iter().filter(unsent).count()
}

/// The request for the run that answers a message: as before, with the current flags.
fn follow_up_request(page: &RunPage, text: &str) -> Option<LaunchRequest> {
    let before = page.launch()?;
    let flags = page.world().settings.flag_positions();
    let begins = RunBeginning::FollowUp(FollowUp { run: page.id().clone(), text: text.into() });
    Some(LaunchRequest { flags, begins, ..before.clone() })
}

pub fn render(
    message: &MessageBox,
    page: &RunPage,
    cx: &DrawContext,
    size: Size,
    buf: &mut Buffer,
) {
    let mut title = match message.is_input() {
        true => format!("Line for {}", message.to),
        false => format!("Message {} to {}", message.number, message.to),
    };
    let foot = match message.is_input() {
        true => "Enter sends".to_owned(),
        false => format!("{} sends, Enter is a new line", key_of(Action::Send)),
    };
    let window = message.window(size);
    frame::window_border(cx, window, buf);
    let (text, below) = message.parts(size);
    widgets::render_text_field(&message.text, cx, text, text.height, 0, true, buf);
    if message.is_suggested() {
        // A suggestion is not the operator's own text yet.
        paint(buf, text, cx.theme.style(StyleRole::Dim));
    }
    // The widget scrolls while it is drawn: only now is it known which rows are out of view.
    let above = message.text.area.scroll_offset().0;
    let hidden = [above > 0, more_below(message, above, text.height)];
    scroll_arrows(cx, window.right() - 1, text, hidden, buf);
    if above > 0 {
        title.push_str(&format!(", {} above", format::count_noun(above.into(), "row")));
    }
    let frame = Frame { title: &title, foot: &foot, focused: true, ..Frame::default() };
    frame::label(frame, cx, window, buf);
    let note = message_note(message, page);
    paragraph(cx, below, &note, cx.theme.style(StyleRole::Dim), buf);
}

/// Whether another row follows the last one in view.
fn more_below(message: &MessageBox, above: u16, height: u16) -> bool {
    let area = &message.text.area;
    let next = usize::from(above) + usize::from(height);
    next > 0 && area.screen_to_data(next, 0) != area.screen_to_data(next - 1, 0)
}

/// Where the text came from, and when it is sent.
fn message_note(message: &MessageBox, page: &RunPage) -> String {
    if message.is_input() {
        return "written to its standard input".to_owned();
    }
    let live = page.world().progress.is_live();
    let send = key_of(Action::Send);
    let from = match message.from {
        DraftOrigin::Scenario => {
            format!("the scenario's suggestion: {send} sends it, typing replaces it; ")
        }
        DraftOrigin::Queued if live => {
            return format!(
                "queued until the run ends; edit it here, or clear it and press {send} to \
                 withdraw it"
            );
        }
        DraftOrigin::Draft if !message.text.changed() => "your draft; ".to_owned(),
        _ => String::new(),
    };
    let when = match live {
        true => "sent when this run ends",
        false => "sent at once, in a new run",
    };
    format!("{from}{when}")
}
