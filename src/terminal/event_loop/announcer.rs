//! What the loop tells the terminal besides its frames: the theme in use, the title of the window,
//! and notifications that a run has ended or waits for the operator.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::DashboardLoop;
use crate::base::visible::visible_within;
use crate::log::event::{Event, EventKind, Initiator, QuestionId, RunId, World};
use crate::log::world::RunState;
use crate::scenario::config::NotifyBy;
use crate::screen::theme::ColourDepth;
use crate::screen::{AppState, Msg, chrome, text};
use crate::terminal::console::Console;
use crate::terminal::surface::Surface;
use crate::words::format;
use crate::words::glyph::Glyphs;
use crate::words::verdict::stop_line;

/// Minimum time between two titles.
const TITLE_GAP: Duration = Duration::from_millis(500);

/// Maximum characters of a notification.
const MAX_TEXT_CHARS: usize = 160;

/// The settings of the terminal: its colours, title and notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalSettings {
    pub depth: ColourDepth,
    /// Whether its title says what the runs do.
    pub title: bool,
    /// How it reports that a run has ended or waits for the operator.
    pub notify: NotifyBy,
    /// Whether tmux is in between, which passes only wrapped sequences.
    pub is_tmux: bool,
}

/// The title of the terminal, and the notifications to it.
pub(crate) struct Announcer {
    settings: TerminalSettings,
    /// Whether the terminal has the focus, if it says so.
    focused: bool,
    title: Option<String>,
    titled_at: Option<Instant>,
    /// The state has changed since the title was made.
    is_title_stale: bool,
}

/// A live run before its newest events.
pub(crate) struct BeforeEvents {
    /// Whether it was paused.
    pub waited: bool,
    /// Who requested the latest pause, before or in these events.
    pub asked: Option<Initiator>,
    /// The last question that was open.
    pub question: Option<QuestionId>,
}

impl Announcer {
    pub(crate) fn new(settings: TerminalSettings) -> Self {
        let (focused, title, titled_at) = (false, None, None);
        Self { settings, focused, title, titled_at, is_title_stale: true }
    }

    pub(super) fn state_changed(&mut self) {
        self.is_title_stale = true;
    }

    /// Another program may have changed the title.
    pub(super) fn forget_title(&mut self) {
        (self.title, self.is_title_stale) = (None, true);
    }

    /// Takes the title of this moment; returns the bytes to write, if it has changed.
    fn set_title(&mut self, text: String) -> Option<Vec<u8>> {
        self.is_title_stale = false;
        // Also where it has not changed: it is made at most twice a second.
        self.titled_at = Some(Instant::now());
        if self.title.as_ref() == Some(&text) {
            return None;
        }
        let bytes = format!("\x1b]2;{text}\x1b\\").into_bytes();
        self.title = Some(text);
        Some(bytes)
    }

    /// When the title is looked at next.
    pub(super) fn title_due(&self) -> Option<Instant> {
        let due = self.titled_at.map_or_else(Instant::now, |at| at + TITLE_GAP);
        (self.settings.title && self.is_title_stale).then_some(due)
    }

    pub(super) fn follow_focus(&mut self, event: &crossterm::event::Event) {
        match event {
            crossterm::event::Event::FocusGained => self.focused = true,
            crossterm::event::Event::FocusLost => self.focused = false,
            _ => {}
        }
    }

    /// The state of a run before these events; `None`: there are no notifications.
    pub(crate) fn before(
        &self,
        state: &AppState,
        run: &RunId,
        events: &[Arc<Event>],
    ) -> Option<BeforeEvents> {
        if self.settings.notify == NotifyBy::Off {
            return None;
        }
        let asked = events.iter().rev().find_map(|event| match event.kind {
            EventKind::Pausing { by, .. } => Some(by),
            _ => None,
        });
        let stage = &state.run(run)?.world().progress.stage;
        let before = match stage {
            RunState::Closed => return None,
            RunState::Pausing { by, .. } => asked.or(Some(*by)),
            _ => asked,
        };
        // It has been resumed in between, if it was paused again.
        let waited = chrome::waits(stage) && asked.is_none();
        let question = last_question(state.run(run)?.world());
        Some(BeforeEvents { waited, asked: before, question })
    }

    /// The bytes that tell the operator this.
    fn notification(&self, text: &str, glyphs: Glyphs) -> Option<Vec<u8>> {
        let text = visible_within(text, MAX_TEXT_CHARS);
        let text = if glyphs == Glyphs::Ascii { text::ascii_text(&text) } else { text };
        match self.settings.notify {
            _ if self.focused => None,
            NotifyBy::Off => None,
            NotifyBy::Bell => Some(b"\x07".to_vec()),
            NotifyBy::Osc9 if self.settings.is_tmux => {
                Some(format!("\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\").into_bytes())
            }
            NotifyBy::Osc9 => Some(format!("\x1b]9;{text}\x1b\\").into_bytes()),
        }
    }
}

/// The question of a run that was asked last and is open.
fn last_question(world: &World) -> Option<QuestionId> {
    world.questions.open().map(|question| question.asked.id).last()
}

impl<C: Console> DashboardLoop<C> {
    pub(crate) fn next_theme(&mut self) {
        let notice = self.themes.advance();
        self.state.settings.theme = self.themes.current().name().to_owned();
        self.update(Msg::Notice(notice));
    }

    /// Writes the title if it has changed.
    pub(super) fn write_title(&mut self) {
        let text = chrome::title(&self.state, self.themes.current(), self.glyphs);
        if let Some(bytes) = self.announcer.set_title(text) {
            self.terminal.backend_mut().send(bytes);
        }
    }

    /// Tells the operator that the newest events ended the run, asked a person, or paused the run without
    /// being asked.
    pub(crate) fn notify(&mut self, run: &RunId, before: Option<BeforeEvents>) {
        let (Some(before), Some(page)) = (before, self.state.run(run)) else { return };
        let progress = &page.world().progress;
        let questions = page.world().questions.open().len();
        let asks = progress.is_live() && last_question(page.world()) > before.question;
        let asked_here = matches!(before.asked, Some(Initiator::You | Initiator::Suspend));
        let what = match (&progress.stage, &progress.closed) {
            (RunState::Closed, Some(closed)) => {
                format!("has ended: {}", stop_line(page.world(), closed))
            }
            // Only their number: what they are about is for the dashboard.
            _ if asks => {
                format!("waits: {}", format::count_noun(questions as u64, "open question"))
            }
            (stage, _) if before.waited || asked_here || !chrome::waits(stage) => return,
            (RunState::Paused { at, .. }, _) => match at.first() {
                Some(at) => format!("is paused before {}", at.display_name()),
                None => "is paused".to_owned(),
            },
            _ => "is paused: it cannot be stored".to_owned(),
        };
        let text = format!("roundtable: {} {what}", chrome::name(page));
        if let Some(bytes) = self.announcer.notification(&text, self.glyphs) {
            self.terminal.backend_mut().send(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::Event as TerminalEvent;

    use super::*;

    fn announcer(notify: NotifyBy, is_tmux: bool) -> Announcer {
        Announcer::new(TerminalSettings { title: true, notify, is_tmux, ..Default::default() })
    }

    #[test]
    fn limits_title_updates() {
        let mut announcer = announcer(NotifyBy::Off, false);
        assert!(announcer.title_due().is_some_and(|due| due <= Instant::now()));
        let written = Instant::now();
        (announcer.is_title_stale, announcer.titled_at) = (false, Some(written));
        assert_eq!(announcer.title_due(), None, "nothing has changed");
        announcer.state_changed();
        assert_eq!(announcer.title_due(), Some(written + TITLE_GAP));
        announcer.settings.title = false;
        assert_eq!(announcer.title_due(), None);
    }

    #[test]
    fn notification_strips_control_characters() {
        let hostile = "a\u{1b}]52;c;aGk=\u{7}b\u{9c}ü";
        for (is_tmux, start, end) in [
            (false, "\u{1b}]9;", "\u{1b}\\"),
            (true, "\u{1b}Ptmux;\u{1b}\u{1b}]9;", "\u{7}\u{1b}\\"),
        ] {
            let mut announcer = announcer(NotifyBy::Osc9, is_tmux);
            for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
                let bytes = announcer.notification(hostile, glyphs).expect("told");
                let text = String::from_utf8(bytes).expect("text");
                let inner = text.strip_prefix(start).and_then(|text| text.strip_suffix(end));
                let inner = inner.unwrap_or_else(|| panic!("{text:?}"));
                assert!(!inner.chars().any(char::is_control), "{inner:?}");
                assert_eq!(inner.is_ascii(), glyphs == Glyphs::Ascii);
            }
            announcer.follow_focus(&TerminalEvent::FocusGained);
            assert_eq!(announcer.notification("x", Glyphs::Unicode), None);
            announcer.follow_focus(&TerminalEvent::FocusLost);
            assert!(announcer.notification("x", Glyphs::Unicode).is_some());
        }
    }
}
