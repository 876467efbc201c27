//! The views of a run's page: that of the run's own pattern, the tools over it, and the focus among
//! their panes.

use ratatui::layout::Rect;

use super::data::RunData;
use super::input_outcome::InputOutcome;
use super::layout::{Areas, Pane, PaneFocus};
use super::run_view::{LiveChange, RunView};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::keys_in_use::key_of;
use crate::event::SpanId;
use crate::panes::View;
use crate::panes::tools::view::ToolsView;

/// The views of a run's page.
#[derive(Debug, Default)]
pub struct PageViews {
    /// The view of the run's own pattern.
    pub own: View,
    /// The tools of the run.
    pub tools: ToolsView,
    pub(super) panes: PaneFocus,
}

impl PageViews {
    /// Whether the run is about its tools, so that they are its own view.
    pub fn is_about_tools(&self) -> bool {
        self.own.is_about_tools()
    }

    /// Whether the panes show the tools.
    pub fn shows_tools(&self) -> bool {
        self.tools.is_open || self.is_about_tools()
    }

    /// The view that fills the panes: that of the run's own pattern, or the tools over it.
    pub fn shown(&self) -> &dyn RunView {
        if self.tools.is_open { &self.tools } else { self.own_view() }
    }

    /// The same, for changes.
    pub(super) fn shown_mut(&mut self) -> &mut dyn RunView {
        match self.tools.is_open {
            true => &mut self.tools,
            false => self.own_view_mut(),
        }
    }

    /// The run's own view, also while the tools cover it.
    pub(super) fn own_view(&self) -> &dyn RunView {
        self.own.get(&self.tools)
    }

    /// The same, for changes.
    pub(super) fn own_view_mut(&mut self) -> &mut dyn RunView {
        self.own.get_mut(&mut self.tools)
    }

    /// Updates what the run's own view keeps of the run.
    pub(super) fn refresh(&mut self, run: &RunData) {
        self.own_view_mut().refresh(run);
    }

    /// The names on the tabs of all panes.
    pub fn tabs(&self, run: &RunData) -> [&'static str; 5] {
        let [first, second, third, fourth] = self.shown().tabs();
        let second = if self.shown().shows_outcome(run) { "Outcome" } else { second };
        [first, second, third, fourth, "Events"]
    }

    /// Focuses the pane that shows what came of the run, unless the reader has moved the focus.
    pub(in crate::app) fn show_answer(&mut self) {
        if !self.panes.is_moved {
            let pane = self.shown().answer_pane();
            self.panes.focus_on(pane);
            self.panes.is_moved = false;
        }
    }

    /// The areas of everything on a page of this size.
    pub(super) fn areas(&self, run: &RunData, page: Rect) -> Areas {
        Areas::for_page(page, self.shown().layout(run, page), self.panes)
    }

    /// The call that the run's own view is about, if there is one.
    pub fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        self.own_view().subject_call(run)
    }

    /// Moves the focus to a pane.
    pub(super) fn focus_on(&mut self, pane: Pane) -> InputOutcome {
        InputOutcome::Handled { redraw: self.panes.focus_on(pane) }
    }

    /// Opens the tools over the run's own view, or closes them.
    pub(super) fn toggle_tools(&mut self) -> InputOutcome {
        if self.is_about_tools() {
            return InputOutcome::Ignored;
        }
        self.tools.is_open = !self.tools.is_open;
        InputOutcome::redraw()
    }

    /// Lets a selected tool go, else what is selected in the run's own view.
    pub(super) fn let_selection_go(&mut self) -> bool {
        let tool = self.tools.let_tool_go();
        self.own_view_mut().clear_selection(tool) || tool
    }

    /// Carries out a key that changes the run through the view.
    pub(super) fn change_run(&self, run: &RunData, action: Action) -> InputOutcome {
        match self.shown().command(run, action) {
            LiveChange::NotHere => InputOutcome::Ignored,
            LiveChange::AtLimit => InputOutcome::Handled { redraw: false },
            LiveChange::Send(_) if !run.world().progress.is_live() => InputOutcome::Ignored,
            LiveChange::Send(command) => {
                InputOutcome::Emit(vec![Effect::Command { run: run.id().clone(), command }])
            }
        }
    }

    /// Whether faults can be injected into the tool that the page is about.
    pub fn can_inject(&self, run: &RunData) -> bool {
        self.shows_tools() && self.tools.can_inject(run)
    }

    /// Whether this key, which not all views have, would do something now.
    pub fn offers(&self, run: &RunData, action: Action) -> bool {
        self.shown().offers(run, self.panes.focus, action)
    }

    /// Whether the run's own view has this key, also while the tools cover it.
    pub fn own_offers(&self, run: &RunData, action: Action) -> bool {
        self.own_view().offers(run, self.panes.focus, action)
    }

    /// Why a key did nothing, for the message line: it is for the tools, or does not apply to this
    /// run.
    pub fn unavailable_reason(&self, run: &RunData, action: Action) -> Option<String> {
        if action == Action::Tools && self.is_about_tools() {
            return Some("The tools are already shown: this run is about them.".into());
        }
        if action == Action::Breakpoint {
            let next = run.world().projection()?.next_breakpoint(run.world());
            let why = next.err()?;
            return Some(format!("{why} {} steps to the next boundary.", key_of(Action::Step)));
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
        if (limit || chaos) && !run.world().progress.is_live() {
            return Some("The run has ended: its tools cannot be changed.".to_owned());
        }
        if (limit || chaos) && !self.shows_tools() {
            let key = key_of(Action::Tools);
            let why = match limit {
                true => format!("No limit to change here: {key} opens the tools."),
                false => format!("This key works on a tool: press {key} first."),
            };
            return Some(why);
        }
        let pattern = action == Action::Cause;
        (limit || chaos || pattern).then(|| self.shown().why_not(run, self.panes.focus, action))?
    }
}
