//! The next message of a session: typed over a run of a team or swarm, sent at once or when the run
//! ends, and answered by a new run.

use ratatui::layout::Rect;
use tui_textarea::CursorMove;

use super::form::field::{MAX_TEXT_BYTES, TextField};
use super::key::{KeyCode, KeyPress};
use super::layout::Size;
use super::layout::inside;
use super::run::{NextMessage, RunPage};
use crate::event::RunId;
use crate::narrate::measure::row_count;

/// Widest size of the box, in columns.
const COLS: u16 = 100;
/// The fewest and the most rows of its text.
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
    /// The text.
    pub text: TextField,
    /// Where the first text came from.
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
    pub(super) fn for_page(page: &RunPage) -> Option<Self> {
        let world = page.world();
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

    /// Whether it still shows the scenario's suggestion.
    pub fn is_suggested(&self) -> bool {
        self.from == DraftOrigin::Scenario
    }

    /// Whether closing it would change nothing.
    pub fn is_untouched(&self) -> bool {
        !self.text.changed() && self.from != DraftOrigin::Empty
    }

    /// Takes a typed key; returns whether the key was used.
    pub(super) fn on_key(&mut self, key: KeyPress) -> bool {
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
    pub(super) fn clear(&mut self) {
        self.text = TextField::new("", true);
        if self.from != DraftOrigin::Queued {
            self.from = DraftOrigin::Empty;
        }
    }

    /// Inserts pasted text; returns a notice where there is something to report.
    pub(super) fn on_paste(&mut self, text: &str) -> Option<String> {
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
pub(super) fn suggestion(page: &RunPage, number: u32) -> Option<String> {
    let launch = page.launch()?;
    let nth = usize::try_from(number).ok()?.checked_sub(2)?;
    let follow_ups = launch.scenario.pattern.get().follow_ups();
    follow_ups.get(nth).map(|text| text.to_string())
}
