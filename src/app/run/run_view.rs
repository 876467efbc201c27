//! What a page asks of the view that fills its first four panes. A view keeps selections and scroll
//! positions; what the run did it reads from [`RunData`].

use std::fmt::Debug;

use ratatui::layout::Rect;

use super::data::RunData;
use super::inspect::target::InspectTarget;
use super::layout::{Areas, Pane, PaneWish};
use crate::app::action::Action;
use crate::event::{Command, SpanId};

/// The pane that an input is for, and the areas of the page.
#[derive(Clone, Copy, Debug)]
pub struct PaneAt<'a> {
    /// The pane.
    pub pane: Pane,
    /// The areas of the page.
    pub areas: &'a Areas,
}

impl PaneAt<'_> {
    /// The area of the pane, if it is shown.
    pub fn area(self) -> Option<Rect> {
        self.areas.pane(self.pane)
    }

    /// The rows of the pane, at least 1.
    pub fn height(self) -> usize {
        self.area().map_or(1, |area| usize::from(area.height)).max(1)
    }
}

/// Where a jump from the selection leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumped {
    /// To this pane.
    To(Pane),
    /// Nowhere: the selection has no target.
    Nowhere,
    /// Not within the view: the page jumps to the cause in the list of events.
    Elsewhere,
}

/// What a key changes in the run.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveChange {
    /// Nothing: the key has no meaning here.
    NotHere,
    /// Nothing: the value is at its limit.
    AtLimit,
    /// What this command does.
    Send(Command),
}

/// A view of a run: the state and the keys of the first four panes.
pub trait RunView: Debug {
    /// The names on the tabs of the panes.
    fn tabs(&self) -> [&'static str; 4];

    /// The pane that shows what came of a run that has ended.
    fn answer_pane(&self) -> Pane {
        Pane::Second
    }

    /// Whether the second pane shows the outcome of the run.
    fn shows_outcome(&self, _run: &RunData) -> bool {
        false
    }

    /// The titles of the panes, unless they depend on what is selected.
    fn titles(&self) -> [&'static str; 4] {
        self.tabs()
    }

    /// How the view wants its panes on this page.
    fn layout(&self, run: &RunData, page: Rect) -> PaneWish;

    /// Moves the selection, or scrolls.
    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action);

    /// Handles the wheel, `by` rows down; returns whether the pane can be scrolled.
    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool;

    /// Selects what is at the clicked cell.
    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16);

    /// Jumps from the selection to what is behind it.
    fn on_cause(&mut self, _run: &RunData, _focus: Pane) -> Jumped {
        Jumped::Elsewhere
    }

    /// Clears the selections; returns whether there were any. `with_tool`: the same key has let a
    /// selected tool go, and only a selection of that kind goes together with it.
    fn clear_selection(&mut self, with_tool: bool) -> bool;

    /// Scrolls back to where the text is followed; returns whether it was scrolled.
    fn reset_scroll(&mut self) -> bool {
        false
    }

    /// Updates what depends on the run, after each change.
    fn refresh(&mut self, _run: &RunData) {}

    /// What Enter inspects.
    fn target(&self, run: &RunData, _focus: Pane) -> Option<InspectTarget> {
        self.subject_call(run).map(InspectTarget::Call)
    }

    /// The call that the view is about, if there is one.
    fn subject_call(&self, run: &RunData) -> Option<SpanId>;

    /// The text that is copied.
    fn text(&self, run: &RunData, focus: Pane) -> Option<String>;

    /// The selection as Markdown; `None`: the whole run.
    fn markdown(&self, _run: &RunData, _focus: Pane) -> Option<String> {
        None
    }

    /// What this key changes in the run.
    fn command(&self, _run: &RunData, _action: Action) -> LiveChange {
        LiveChange::NotHere
    }

    /// Whether this key, which not all views have, would do something now.
    fn offers(&self, _run: &RunData, _focus: Pane, _action: Action) -> bool {
        false
    }

    /// The priority of this key in the key row, where it is another one than usual.
    fn rank(&self, _run: &RunData, _action: Action) -> Option<u8> {
        None
    }

    /// Why this key did nothing.
    fn why_not(&self, _run: &RunData, _focus: Pane, _action: Action) -> Option<String> {
        None
    }
}

/// The title of one of the first four panes.
pub fn pane_title(titles: [&'static str; 4], pane: Pane) -> &'static str {
    titles.get(pane as usize).copied().unwrap_or_default()
}
