//! Manual control of the tools and the slots of a run. Each change is sent as a command, and shown
//! once its event arrives. While the past is shown, commands still act on the present, as the flags
//! do.

use super::layout::Areas;
use super::waterfall::WaterfallRow;
use super::{InputOutcome, Pane, RunPage, View};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::limit_step::stepped_limit;
use crate::event::Command;
use crate::event::command::BreakerOverride;
use crate::event::kind::{Initiator, LimitChange};
use crate::event::world::tools::ToolRow;

impl RunPage {
    /// The tool that the page is about: the selected one, else the first that is not the model.
    pub fn tool(&self) -> Option<&ToolRow> {
        let rows = self.shown().tools.rows();
        self.tool_at().and_then(|at| rows.get(at))
    }

    /// The row of that tool in the table of tools.
    pub fn tool_at(&self) -> Option<usize> {
        let rows = self.shown().tools.rows();
        let named = self.tools.tool.as_ref();
        let selected = named.and_then(|name| rows.iter().position(|row| row.name() == name));
        let first = || rows.iter().position(|row| row.name().as_str() != "llm");
        selected.or_else(first).or_else(|| (!rows.is_empty()).then_some(0))
    }

    /// Whether the operator selected a tool.
    pub fn tool_is_selected(&self) -> bool {
        self.tools.tool.is_some()
    }

    /// Whether the run has tools besides its model.
    pub fn has_tools(&self) -> bool {
        self.run.world().tools.rows().len() > 1
    }

    /// Opens the tools over the run's own view, or closes them.
    pub(super) fn toggle_tools(&mut self) -> InputOutcome {
        if View::of_world(self.run.world()) == View::Tools {
            return InputOutcome::Ignored;
        }
        self.tools.is_open = !self.tools.is_open;
        InputOutcome::redraw()
    }

    /// Raises or lowers the limit of the view by one: parallel tasks, or concurrent attempts of the
    /// tool.
    pub(super) fn change_limit(&self, up: bool) -> InputOutcome {
        let turned = |now: u32| if up { now.saturating_add(1) } else { (now - 1.min(now)).max(1) };
        let command = match self.view() {
            View::Collaboration | View::Team | View::Research => return InputOutcome::Ignored,
            View::Orchestrator => {
                let Some(orchestrator) = self.run.world().orchestrator() else {
                    return InputOutcome::Ignored;
                };
                let now = self.pending_changes().parallel(orchestrator.max_parallel);
                let max_parallel = turned(now);
                if max_parallel == now {
                    return InputOutcome::Handled { redraw: false };
                }
                Command::SetParallel { max_parallel, by: Initiator::You }
            }
            View::Tools => {
                let present =
                    self.tool().and_then(|tool| self.run.world().tools.get(tool.name().as_str()));
                let Some((tool, bulkhead)) =
                    present.and_then(|tool| Some((tool, tool.head.limits.bulkhead?)))
                else {
                    return InputOutcome::Ignored;
                };
                let now = LimitChange::MaxInFlight(bulkhead.max_in_flight);
                let now = self.pending_changes().limit(tool.name(), now);
                let Some(change) = stepped_limit(now, up) else {
                    return InputOutcome::Handled { redraw: false };
                };
                Command::SetLimit { tool: tool.name().clone(), change, by: Initiator::You }
            }
        };
        self.send_command(command)
    }

    /// Sends a manual command to the breaker of the tool that the page is about.
    pub(super) fn override_breaker(&self, hand: BreakerOverride) -> InputOutcome {
        let tool = self.tool().filter(|tool| tool.head.limits.breaker.is_some());
        match (self.view(), tool) {
            (View::Tools, Some(tool)) => {
                let tool = tool.name().clone();
                self.send_command(Command::Breaker { tool, hand, by: Initiator::You })
            }
            _ => InputOutcome::Ignored,
        }
    }

    fn send_command(&self, command: Command) -> InputOutcome {
        if !self.run.world().is_live() {
            return InputOutcome::Ignored;
        }
        InputOutcome::Emit(vec![Effect::Command { run: self.run.id().clone(), command }])
    }

    /// Whether faults can be injected into the tool that the page is about.
    pub fn can_inject(&self) -> bool {
        self.run.world().is_live() && self.view() == View::Tools && self.tool().is_some()
    }

    /// Why a key did nothing, for the message line: it is for the tools, or does not apply to this
    /// run.
    pub fn unavailable_reason(&self, action: Action) -> Option<String> {
        if action == Action::Tools && View::of_world(self.run.world()) == View::Tools {
            return Some("The tools are already shown: this run is about them.".into());
        }
        if action == Action::Breakpoint {
            let next = self.run.world().projection()?.next_breakpoint(self.run.world());
            return next.err().map(str::to_owned);
        }
        if action == Action::Cause {
            return self.no_jump_reason();
        }
        let chaos = matches!(
            action,
            Action::BreakerHold
                | Action::BreakerTrip
                | Action::BreakerDisable
                | Action::BreakerReset
        );
        let limit = matches!(action, Action::More | Action::Less);
        if !chaos && !limit && action != Action::Faults {
            return None;
        }
        if !self.run.world().is_live() {
            return Some("The run has ended: its tools cannot be changed.".to_owned());
        }
        Some(match (self.view(), self.tool()) {
            (View::Collaboration | View::Team | View::Research, _) if limit => {
                "No limit to change here: t opens the tools.".to_owned()
            }
            (View::Collaboration | View::Orchestrator | View::Team | View::Research, _) => {
                "This key works on a tool: press t first.".to_owned()
            }
            (View::Tools, None) => "This run has no tools.".to_owned(),
            (View::Tools, Some(tool)) if limit => {
                format!("{} has no bulkhead: no limit to change.", tool.name())
            }
            (View::Tools, Some(tool)) => format!("{} has no breaker.", tool.name()),
        })
    }

    /// Moves the selection in the waterfall.
    pub(super) fn move_in_waterfall(&mut self, action: Action, areas: &Areas) {
        let Some(orchestrator) = self.shown().orchestrator() else { return };
        let tasks = orchestrator.tasks.len();
        let from = self.shown_row().index(tasks);
        let height = areas.pane(Pane::First).map_or(8, |area| usize::from(area.height));
        let page = height.saturating_sub(2).max(1);
        let last = WaterfallRow::count(tasks) - 1;
        let step = |by: isize| match self.row {
            Some(_) => from.saturating_add_signed(by).min(last),
            // The first step selects what is shown now.
            None => from,
        };
        let far = isize::try_from(page).unwrap_or(1);
        let to = match action {
            Action::Up | Action::Left => step(-1),
            Action::Down | Action::Right => step(1),
            Action::PageUp => step(-far),
            Action::PageDown => step(far),
            Action::Top => 0,
            Action::Bottom => last,
            _ => return,
        };
        self.select_row(WaterfallRow::from_index(to, tasks));
    }

    /// Selects a row of the waterfall; `None` follows the run.
    pub(super) fn select_row(&mut self, row: Option<WaterfallRow>) {
        if self.row != row {
            self.row = row;
            self.text_scroll = None;
        }
    }

    /// Moves the selection among the tools.
    pub(super) fn move_among_tools(&mut self, action: Action) {
        let rows = self.shown().tools.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = self.tool_at().unwrap_or(0);
        // A step begins at the highlighted row, whether or not the operator selected it.
        let to = match action {
            Action::Up | Action::Left => at.saturating_sub(1),
            Action::Down | Action::Right => (at + 1).min(last),
            Action::Top | Action::PageUp => 0,
            Action::Bottom | Action::PageDown => last,
            _ => return,
        };
        self.select_tool(to);
    }

    /// Selects the tool in this row.
    pub(super) fn select_tool(&mut self, at: usize) {
        let name = self.shown().tools.rows().get(at).map(|row| row.name().clone());
        if name.is_some() && self.tools.tool != name {
            self.tools.tool = name;
            self.text_scroll = None;
        }
    }
}
