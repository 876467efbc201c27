//! What the loop tells the terminal besides its frames: the theme in use, the title of the window,
//! and that a run has ended or waits for somebody.

use super::DashboardLoop;
use super::announcer::BeforeEvents;
use crate::app::Msg;
use crate::event::RunId;
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::narrate::verdict::stop_lead;
use crate::shell::console::Console;
use crate::shell::surface::Surface;
use crate::ui::title;

impl<C: Console> DashboardLoop<C> {
    /// Draws with the next theme.
    pub(super) fn next_theme(&mut self) {
        let notice = self.themes.advance();
        self.state.settings.theme = self.themes.current().name().to_owned();
        self.update(Msg::Notice(notice));
    }

    /// Writes the title if it has changed.
    pub(super) fn write_title(&mut self) {
        let text = title::title(&self.state, self.themes.current(), self.glyphs);
        if let Some(bytes) = self.announcer.set_title(text) {
            self.terminal.backend_mut().send(bytes);
        }
    }

    /// Tells the operator that the newest events ended the run, or paused it without being asked.
    pub(super) fn notify(&mut self, run: &RunId, before: Option<BeforeEvents>) {
        let (Some(before), Some(page)) = (before, self.state.run(run)) else { return };
        let progress = &page.world().progress;
        let asked_here = matches!(before.asked, Some(Initiator::You | Initiator::Suspend));
        let what = match (&progress.stage, &progress.closed) {
            (RunState::Closed, Some(closed)) => {
                format!("has ended: {}", stop_lead(page.world(), closed))
            }
            (stage, _) if before.waited || asked_here || !title::waits(stage) => return,
            (RunState::Paused { at, .. }, _) => match at.first() {
                Some(at) => format!("is paused before {}", at.display_name()),
                None => "is paused".to_owned(),
            },
            _ => "is paused: it cannot be stored".to_owned(),
        };
        let text = format!("roundtable: {} {what}", title::name(page));
        if let Some(bytes) = self.announcer.notification(&text, self.glyphs) {
            self.terminal.backend_mut().send(bytes);
        }
    }
}
