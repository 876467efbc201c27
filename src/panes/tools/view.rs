//! The view of the tools: the selected tool, and the run that this one is compared with. It is the
//! view of a run that is about its tools, and can be opened over that of any other.

use ratatui::layout::Rect;

use super::comparison::RunComparison;
use super::listed::listed_tools;
use super::run_result::outcome_as_text;
use crate::app::action::Action;
use crate::app::limit_step::stepped_limit;
use crate::app::run::data::RunData;
use crate::app::run::layout::{Pane, PaneWish, RowWish, inner_columns, window_start};
use crate::app::run::markdown::tool_text;
use crate::app::run::run_view::{LiveChange, PaneAt, RunView};
use crate::base::name::ToolName;
use crate::event::command::BreakerOverride;
use crate::event::kind::{Initiator, LimitChange};
use crate::event::world::Projection;
use crate::event::world::tool_row::ToolRow;
use crate::event::{Command, EventKind, SpanId};

/// Most events that are searched for the latest retried calls.
const MAX_SEARCHED: usize = 4_096;

/// Selections in the panes of the tools.
#[derive(Debug, Default)]
pub struct ToolsView {
    /// Whether the tools cover the view of the run's own pattern.
    pub(crate) is_open: bool,
    tool: Option<ToolName>,
    comparison: Option<RunComparison>,
}

impl ToolsView {
    /// The tool that the view is about: the selected one, else the first that is not the model.
    pub fn tool<'a>(&self, run: &'a RunData) -> Option<&'a ToolRow> {
        self.tool_at(run).and_then(|at| listed_tools(run.shown()).get(at).copied())
    }

    /// The row of that tool in the table of tools.
    pub fn tool_at(&self, run: &RunData) -> Option<usize> {
        let rows = listed_tools(run.shown());
        let named = self.tool.as_ref();
        let selected = named.and_then(|name| rows.iter().position(|row| row.name() == name));
        let first = || rows.iter().position(|row| row.name().as_str() != "llm");
        selected.or_else(first).or_else(|| (!rows.is_empty()).then_some(0))
    }

    /// Whether the operator selected a tool.
    pub fn tool_is_selected(&self) -> bool {
        self.tool.is_some()
    }

    /// Whether the second pane shows the outcome: that of a run about its tools, until the operator
    /// selects a tool.
    pub(crate) fn shows_outcome(&self, run: &RunData) -> bool {
        let world = run.shown();
        let is_about_tools = world.projection().is_some_and(|it| it.tool_load().is_some());
        is_about_tools && world.progress.closed.is_some() && !self.tool_is_selected()
    }

    /// The latest run that this one is compared with.
    pub fn comparison(&self) -> Option<&RunComparison> {
        self.comparison.as_ref()
    }

    /// Sets the run that this one is compared with.
    pub(crate) fn set_comparison(&mut self, comparison: Option<RunComparison>) {
        self.comparison = comparison;
    }

    /// Lets the selected tool go; returns whether there was one.
    pub(crate) fn let_tool_go(&mut self) -> bool {
        self.tool.take().is_some()
    }

    /// Whether a fault can be injected into the tool that the view is about.
    pub(crate) fn can_inject(&self, run: &RunData) -> bool {
        run.world().progress.is_live() && self.tool(run).is_some()
    }

    /// Selects the tool in this row.
    fn select_tool(&mut self, run: &RunData, at: usize) {
        let name = listed_tools(run.shown()).get(at).map(|row| row.name().clone());
        self.tool = name.or(self.tool.take());
    }

    /// The change of the bulkhead of the tool that the view is about.
    fn change_limit(&self, run: &RunData, up: bool) -> LiveChange {
        let present = self.tool(run).and_then(|tool| run.world().tools.get(tool.name().as_str()));
        let Some((tool, bulkhead)) =
            present.and_then(|tool| Some((tool, tool.head.limits.bulkhead?)))
        else {
            return LiveChange::NotHere;
        };
        let now = LimitChange::MaxInFlight(bulkhead.max_in_flight);
        let now = run.pending_changes().limit(tool.name(), now);
        let Some(change) = stepped_limit(now, up) else { return LiveChange::AtLimit };
        let tool = tool.name().clone();
        LiveChange::Send(Command::SetLimit { tool, change, by: Initiator::You })
    }

    /// A manual command to the breaker of the tool that the view is about.
    fn override_breaker(&self, run: &RunData, hand: BreakerOverride) -> LiveChange {
        match self.tool(run).filter(|tool| tool.head.limits.breaker.is_some()) {
            Some(tool) => {
                let tool = tool.name().clone();
                LiveChange::Send(Command::Breaker { tool, hand, by: Initiator::You })
            }
            None => LiveChange::NotHere,
        }
    }
}

/// Whether a run has tools besides its model.
pub fn has_tools(run: &RunData) -> bool {
    run.world().tools.rows().len() > 1
}

/// The calls that were retried, latest first. Only the last events are searched.
pub fn retried_calls(run: &RunData, most: usize) -> Vec<SpanId> {
    let mut calls: Vec<SpanId> = Vec::new();
    let shown = run.log().between(0, run.shown_event_count());
    for event in shown.rev().take(MAX_SEARCHED) {
        if calls.len() == most {
            break;
        }
        let again = matches!(event.kind, EventKind::CallRetried { .. });
        if again && !calls.contains(&event.span) {
            calls.push(event.span);
        }
    }
    calls
}

impl RunView for ToolsView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Breakers", "Tool", "Bulkheads", "Retries"]
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Circuit breakers", "Tool", "Bulkheads", "Retries and amplification"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneWish {
        PaneWish {
            rows: RowWish::Content(listed_tools(run.world()).len().clamp(4, 8)),
            first: (page.width.saturating_mul(62) / 100).min(130),
            third: inner_columns(page).saturating_mul(47) / 100,
            ended: None,
        }
    }

    fn on_move(&mut self, run: &RunData, _at: PaneAt<'_>, action: Action) {
        let rows = listed_tools(run.shown());
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = self.tool_at(run).unwrap_or(0);
        // A step begins at the highlighted row, whether or not the operator selected it.
        let to = match action {
            Action::Up | Action::Left => at.saturating_sub(1),
            Action::Down | Action::Right => (at + 1).min(last),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            _ => return,
        };
        self.select_tool(run, to);
    }

    fn on_wheel(&mut self, _run: &RunData, _at: PaneAt<'_>, _by: isize) -> bool {
        false
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        let Some(area) = at.area().filter(|_| matches!(at.pane, Pane::First | Pane::Third)) else {
            return;
        };
        // Above the rows of pane 3 there are the call slots too, where the run has them.
        let load = run.shown().projection().and_then(Projection::tool_load);
        let above = 1 + u16::from(at.pane == Pane::Third && load.is_some());
        let rows = usize::from(area.height.saturating_sub(above));
        let count = listed_tools(run.shown()).len();
        let top = window_start(self.tool_at(run).unwrap_or(0), count, rows);
        if let Some(line) = usize::from(row - area.y).checked_sub(above.into()) {
            self.select_tool(run, top + line);
        }
    }

    fn clear_selection(&mut self, _with_tool: bool) -> bool {
        self.let_tool_go()
    }

    /// The latest call of the tool that the view is about.
    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        let tool = self.tool(run)?.name();
        let of_tool =
            |kind: &EventKind| matches!(kind, EventKind::CallStarted(call) if call.tool == *tool);
        run.last_shown(|event| of_tool(&event.kind)).map(|event| event.span)
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        if focus == Pane::Second && self.shows_outcome(run) {
            return Some(outcome_as_text(run));
        }
        self.tool(run).map(tool_text)
    }

    fn command(&self, run: &RunData, action: Action) -> LiveChange {
        match action {
            Action::More | Action::Less => self.change_limit(run, action == Action::More),
            Action::BreakerTrip => self.override_breaker(run, BreakerOverride::Trip),
            Action::BreakerHold => self.override_breaker(run, BreakerOverride::Hold),
            Action::BreakerReset => self.override_breaker(run, BreakerOverride::Reset),
            Action::BreakerDisable => self.override_breaker(run, BreakerOverride::Disable),
            _ => LiveChange::NotHere,
        }
    }

    fn offers(&self, run: &RunData, _focus: Pane, action: Action) -> bool {
        let limits = self.tool(run).map(|tool| &tool.head.limits);
        match action {
            Action::Faults => self.can_inject(run),
            Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable => {
                self.can_inject(run) && limits.is_some_and(|limits| limits.breaker.is_some())
            }
            Action::More | Action::Less => limits.is_some_and(|limits| limits.bulkhead.is_some()),
            _ => false,
        }
    }

    fn rank(&self, run: &RunData, action: Action) -> Option<u8> {
        // The selection matters most: other keys act on it.
        matches!(action, Action::Up | Action::Down).then_some(4).filter(|_| has_tools(run))
    }

    fn why_not(&self, run: &RunData, _focus: Pane, action: Action) -> Option<String> {
        if action == Action::Cause {
            return None;
        }
        let Some(tool) = self.tool(run) else { return Some("This run has no tools.".to_owned()) };
        Some(match action {
            Action::More | Action::Less => {
                format!("{} has no bulkhead: no limit to change.", tool.name())
            }
            _ => format!("{} has no breaker.", tool.name()),
        })
    }
}
