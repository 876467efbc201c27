//! The views of a run's page: one for each pattern, and the tools over it. A view keeps selections and
//! scroll positions, and draws the first four panes; what the run did it reads from [`RunData`].

pub mod agents;
pub mod collaboration;
mod observed;
pub mod orchestrator;
mod research;
mod router;
mod team;
pub mod tools;

use std::fmt::Debug;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::collaboration::CollaborationView;
use self::observed::ObservedView;
use self::orchestrator::OrchestratorView;
use self::research::ResearchView;
use self::router::RouterView;
use self::team::TeamView;
use self::tools::{ToolsView, has_tools};
use super::InputOutcome;
use super::data::RunData;
use super::inspector::InspectTarget;
use super::layout::{Areas, Pane, PaneFocus, PaneSizes};
use crate::log::event::{Command, QuestionId, SpanId};
use crate::log::world::PatternWorld;
use crate::log::world::available::{RunPart, available, can_change};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::effect::Effect;
use crate::screen::key_hints::Why;
use crate::screen::keymap::key_of;
use crate::screen::theme::StateSign;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// The pane that an input is for, and the areas of the page.
#[derive(Clone, Copy, Debug)]
pub struct PaneAt<'a> {
    pub pane: Pane,
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
    To(Pane),
    /// Nowhere, for this reason.
    Nowhere(&'static str),
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

/// A view of a run: the state, the keys and the look of the first four panes.
pub trait View: Debug {
    /// The names on the tabs of the panes.
    fn tabs(&self) -> [&'static str; 4];

    /// The pane with the outcome of a run that has ended.
    fn answer_pane(&self) -> Pane {
        Pane::Second
    }

    /// The pane with what an agent said, which somebody reads who answers its question.
    fn asking_pane(&self) -> Pane {
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
    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes;

    /// Moves the selection, or scrolls.
    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action);

    /// Handles the wheel, `by` rows down; returns whether the pane can be scrolled.
    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool;

    /// Selects the item at the clicked cell.
    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16);

    /// Jumps from the selection to its source.
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

    /// Updates the state that depends on the run, after each change.
    fn refresh(&mut self, _run: &RunData) {}

    /// The target that Enter inspects.
    fn target(&self, run: &RunData, _focus: Pane) -> Option<InspectTarget> {
        self.subject_call(run).map(InspectTarget::Call)
    }

    /// The selected question, if it is open: Enter opens its card.
    fn question(&self, _run: &RunData, _focus: Pane) -> Option<QuestionId> {
        None
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

    /// Whether this key, which not all views have, does something now.
    fn available(&self, _run: &RunData, _focus: Pane, _action: Action) -> Result<(), Why> {
        Err(Why::Unsaid)
    }

    /// The priority of this key in the key row, where it is another one than usual.
    fn rank(&self, _run: &RunData, _action: Action) -> Option<u8> {
        None
    }

    /// Draws one of the first four panes into the area inside its frame.
    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer);

    /// The title of one of the first four panes, of which `inside` is the area inside the frame.
    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle;

    /// Draws the progress into the second header row.
    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer);

    /// Columns that the progress needs: the minimum, and those for all of it, [`u16::MAX`] if it is text
    /// without bars, which takes all free columns.
    fn track_columns(&self, data: &RunData) -> (u16, u16);

    /// The note where the run has none of its own.
    fn note(&self, _data: &RunData, _cx: &DrawContext) -> Option<HeaderNote> {
        None
    }

    /// The pane that explains why a run was stopped.
    fn advice_pane(&self) -> Pane {
        Pane::Second
    }
}

/// Whether a pane follows the run, after its title.
pub(crate) fn follow_note(cx: &DrawContext, follows: bool) -> String {
    let dot = cx.glyphs.symbol(Glyph::Dot);
    match follows {
        true => format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)),
        false => format!(" {dot} G: follow"),
    }
}

/// The title of one of the first four panes.
pub fn pane_title(titles: [&'static str; 4], pane: Pane) -> &'static str {
    titles.get(pane as usize).copied().unwrap_or_default()
}

/// The views of a run's page.
#[derive(Debug, Default)]
pub struct PageViews {
    /// The view of the run's own pattern.
    pub own: OwnView,
    pub tools: ToolsView,
    pub(crate) panes: PaneFocus,
}

impl PageViews {
    /// Whether the run is about its tools, so that they are its own view.
    pub fn is_about_tools(&self) -> bool {
        matches!(self.own, OwnView::Tools)
    }

    /// Whether the panes show the tools.
    pub fn shows_tools(&self) -> bool {
        self.tools.is_open || self.is_about_tools()
    }

    /// The view that fills the panes: that of the run's own pattern, or the tools over it.
    pub fn shown(&self) -> &dyn View {
        if self.tools.is_open { &self.tools } else { self.own_view() }
    }

    /// The same, for changes.
    pub(super) fn shown_mut(&mut self) -> &mut dyn View {
        match self.tools.is_open {
            true => &mut self.tools,
            false => self.own_view_mut(),
        }
    }

    /// The run's own view, also while the tools cover it.
    pub(super) fn own_view(&self) -> &dyn View {
        match &self.own {
            OwnView::Collaboration(view) => view,
            OwnView::Orchestrator(view) => view,
            OwnView::Team(view) => view,
            OwnView::Research(view) => view,
            OwnView::Router(view) => view,
            OwnView::Observed(view) => view,
            OwnView::Tools => &self.tools,
        }
    }

    /// The same, for changes.
    pub(crate) fn own_view_mut(&mut self) -> &mut dyn View {
        match &mut self.own {
            OwnView::Collaboration(view) => view,
            OwnView::Orchestrator(view) => view,
            OwnView::Team(view) => view,
            OwnView::Research(view) => view,
            OwnView::Router(view) => view,
            OwnView::Observed(view) => view,
            OwnView::Tools => &mut self.tools,
        }
    }

    /// Updates the state of the run's own view that depends on the run.
    pub(crate) fn refresh(&mut self, run: &RunData) {
        self.own_view_mut().refresh(run);
    }

    /// The names on the tabs of all panes.
    pub fn tabs(&self, run: &RunData) -> [&'static str; 5] {
        let [first, second, third, fourth] = self.shown().tabs();
        let second = if self.shown().shows_outcome(run) { "Outcome" } else { second };
        [first, second, third, fourth, "Events"]
    }

    /// Focuses the outcome's pane, unless the reader has moved the focus.
    pub(crate) fn show_answer(&mut self) {
        if !self.panes.is_moved {
            let pane = self.shown().answer_pane();
            self.panes.focus_on(pane);
            self.panes.is_moved = false;
        }
    }

    /// Focuses the pane with what the agent said that asks.
    pub(crate) fn show_asking(&mut self) {
        let pane = self.shown().asking_pane();
        self.panes.focus_on(pane);
    }

    /// The areas of everything on a page of this size.
    pub(crate) fn areas(&self, run: &RunData, page: Rect) -> Areas {
        Areas::for_page(page, self.shown().layout(run, page), self.panes)
    }

    /// The call that the run's own view is about, if there is one.
    pub fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        self.own_view().subject_call(run)
    }

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

    /// Clears the selected tool, else the selection in the run's own view.
    pub(super) fn let_selection_go(&mut self) -> bool {
        let tool = self.tools.let_tool_go();
        self.own_view_mut().clear_selection(tool) || tool
    }

    /// Carries out a key that changes the run through the view.
    pub(super) fn change_run(&self, run: &RunData, action: Action) -> InputOutcome {
        match self.shown().command(run, action) {
            LiveChange::NotHere => InputOutcome::Ignored,
            LiveChange::AtLimit => InputOutcome::Handled { redraw: false },
            LiveChange::Send(command) if available(&command, run.world()).is_err() => {
                InputOutcome::Ignored
            }
            LiveChange::Send(command) => {
                InputOutcome::Emit(vec![Effect::Command { run: run.id().clone(), command }])
            }
        }
    }

    /// Whether a key that not all views have does something now.
    ///
    /// # Errors
    /// Why it does nothing: it is for the tools, or does not apply to this run.
    pub fn available(&self, run: &RunData, action: Action) -> Result<(), Why> {
        let shown = || self.shown().available(run, self.panes.focus, action);
        let is_limit = matches!(action, Action::More | Action::Less);
        match action {
            Action::Tools if self.is_about_tools() => {
                Err("The tools are already shown: this run is about them.".into())
            }
            Action::Tools => Why::unless(has_tools(run) || self.shows_tools()),
            Action::Breakpoint => {
                let world = run.world();
                let Some(projection) = world.projection() else { return Ok(()) };
                projection.next_breakpoint(world).map(drop).map_err(|why| {
                    format!("{why} {} steps to the next boundary.", key_of(Action::Step)).into()
                })
            }
            // The run's own view has these keys, also while the tools cover it.
            Action::Message | Action::Members => {
                self.own_view().available(run, self.panes.focus, action)
            }
            Action::More
            | Action::Less
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable
            | Action::Faults => {
                let key = key_of(Action::Tools);
                can_change(RunPart::Tools, run.world())?;
                match shown() {
                    Err(_) if !self.shows_tools() && is_limit => {
                        Err(format!("No limit to change here: {key} opens the tools.").into())
                    }
                    Err(_) if !self.shows_tools() => {
                        Err(format!("This key works on a tool: press {key} first.").into())
                    }
                    available => available,
                }
            }
            Action::Cause => shown(),
            _ => Ok(()),
        }
    }
}

fn has_swarms(run: &RunData) -> bool {
    run.world().agents().is_some_and(|agents| !agents.swarms.is_empty())
}

/// The view that fills the first four panes of a page.
#[derive(Debug)]
pub enum OwnView {
    /// The seats around their table (collaboration source document).
    Collaboration(CollaborationView),
    /// The tasks of a plan and their workers (orchestrator source document).
    Orchestrator(OrchestratorView),
    /// The agents' calls and handoffs (teams source document).
    Team(TeamView),
    /// Sources, the page being read, notes and the answer (research source document).
    Research(ResearchView),
    /// The routes of a router, and the agent that answers.
    Router(RouterView),
    /// The spans of another program.
    Observed(ObservedView),
    /// The tools of the page, which a run about them shows (cascading failures source document).
    Tools,
}

impl Default for OwnView {
    /// The view before the first event.
    fn default() -> Self {
        Self::Collaboration(CollaborationView::default())
    }
}

impl OwnView {
    /// Becomes the view of this pattern, with nothing selected, unless it is that already.
    pub fn follow(&mut self, pattern: &PatternWorld) {
        *self = match (&self, pattern) {
            (Self::Collaboration(_), PatternWorld::None | PatternWorld::Collaboration(_))
            | (Self::Orchestrator(_), PatternWorld::Orchestrator(_))
            | (Self::Team(_), PatternWorld::Team(_))
            | (Self::Research(_), PatternWorld::Research(_))
            | (Self::Router(_), PatternWorld::Router(_))
            | (Self::Observed(_), PatternWorld::Observed(_))
            | (Self::Tools, PatternWorld::Resilience(_)) => return,
            (_, PatternWorld::None | PatternWorld::Collaboration(_)) => Self::default(),
            (_, PatternWorld::Orchestrator(_)) => Self::Orchestrator(OrchestratorView::default()),
            (_, PatternWorld::Team(_)) => Self::Team(TeamView::default()),
            (_, PatternWorld::Research(_)) => Self::Research(ResearchView::default()),
            (_, PatternWorld::Router(_)) => Self::Router(RouterView::default()),
            (_, PatternWorld::Observed(_)) => Self::Observed(ObservedView::default()),
            (_, PatternWorld::Resilience(_)) => Self::Tools,
        };
    }
}

/// The title of a pane.
#[derive(Debug, Default)]
pub struct PaneTitle {
    /// The title itself. Its end is cut off where there is no room.
    pub text: String,
    /// The state of what the pane shows, right after the title.
    pub sign: Option<StateSign>,
    /// What follows, such as a model's name: each part only where it fits.
    pub notes: Vec<String>,
    /// The text at the right end, such as the rows in view; it needs room next to the title.
    pub aside: String,
}

impl PaneTitle {
    /// A title and nothing else.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn with_sign((text, sign): (String, Option<StateSign>)) -> Self {
        Self { text, sign, ..Self::default() }
    }
}

/// The text at the end of the second header row.
#[derive(Debug)]
pub struct HeaderNote {
    /// The text; after a line end its advice.
    pub text: String,
    pub role: StyleRole,
    /// Whether it is more important than the progress. If not, it is shown only where there is room.
    pub matters: bool,
}

/// The part of the second header row that the progress may use.
#[derive(Clone, Copy)]
pub struct TrackRow {
    pub area: Rect,
    /// The free columns after it; `None`: a note shares the row.
    pub free: Option<u16>,
}
