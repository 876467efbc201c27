//! Manual control of what runs: of the tools and of the concurrency. Each change is sent as a
//! command, and shown once its event arrives. While the past is shown, commands still act on the
//! present, as the flags do.

use super::run_view::LiveChange;
use super::{InputOutcome, RunPage};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::event::world::tool_row::ToolRow;

impl RunPage {
    /// The tool that the page is about: the selected one, else the first that is not the model.
    pub fn tool(&self) -> Option<&ToolRow> {
        self.tools.tool(&self.run)
    }

    /// Opens the tools over the run's own view, or closes them.
    pub(super) fn toggle_tools(&mut self) -> InputOutcome {
        if self.is_about_tools() {
            return InputOutcome::Ignored;
        }
        self.tools.is_open = !self.tools.is_open;
        InputOutcome::redraw()
    }

    /// Carries out a key that changes the run through the view.
    pub(super) fn change_run(&self, action: Action) -> InputOutcome {
        match self.shown_view().command(&self.run, action) {
            LiveChange::NotHere => InputOutcome::Ignored,
            LiveChange::AtLimit => InputOutcome::Handled { redraw: false },
            LiveChange::Send(_) if !self.world().progress.is_live() => InputOutcome::Ignored,
            LiveChange::Send(command) => {
                let run = self.id().clone();
                InputOutcome::Emit(vec![Effect::Command { run, command }])
            }
        }
    }

    /// Whether faults can be injected into the tool that the page is about.
    pub fn can_inject(&self) -> bool {
        self.shows_tools() && self.tools.can_inject(&self.run)
    }

    /// Whether this key, which not all views have, would do something now.
    pub fn offers(&self, action: Action) -> bool {
        self.shown_view().offers(&self.run, self.panes.focus, action)
    }

    /// Whether the run's own view has this key, also while the tools cover it.
    pub fn own_offers(&self, action: Action) -> bool {
        self.own_view().get(&self.tools).offers(&self.run, self.panes.focus, action)
    }

    /// Why a key did nothing, for the message line: it is for the tools, or does not apply to this
    /// run.
    pub fn unavailable_reason(&self, action: Action) -> Option<String> {
        if action == Action::Tools && self.is_about_tools() {
            return Some("The tools are already shown: this run is about them.".into());
        }
        if action == Action::Breakpoint {
            let next = self.world().projection()?.next_breakpoint(self.world());
            return next.err().map(str::to_owned);
        }
        let limit = matches!(action, Action::More | Action::Less);
        let chaos = matches!(
            action,
            Action::BreakerHold
                | Action::BreakerTrip
                | Action::BreakerDisable
                | Action::BreakerReset
                | Action::Faults
        );
        if (limit || chaos) && !self.world().progress.is_live() {
            return Some("The run has ended: its tools cannot be changed.".to_owned());
        }
        if (limit || chaos) && !self.shows_tools() {
            let why = match limit {
                true => "No limit to change here: t opens the tools.",
                false => "This key works on a tool: press t first.",
            };
            return Some(why.to_owned());
        }
        let pattern = action == Action::Cause;
        (limit || chaos || pattern)
            .then(|| self.shown_view().why_not(&self.run, self.panes.focus, action))?
    }
}
