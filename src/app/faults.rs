//! The faults drawer of a tool: faults that can be injected, and the tool's limits. The drawer
//! always shows the current state of the run, wherever the playhead is.

use ratatui::layout::Rect;

use super::action::Action;
use super::layout::{DrawerParts, Size, drawer, keep_in_view};
use super::limit_step::{stepped_limit, stepped_ms};
use super::run::RunPage;
use super::selection::moved_index;
use crate::base::name::ToolName;
use crate::event::command::BreakerOverride;
use crate::event::kind::{Initiator, LimitChange, ToolLimits};
use crate::event::world::World;
use crate::event::world::tool_row::ToolRow;
use crate::event::{Command, RunId};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// Rows for the help on a change and for the keys.
const FOOT: u16 = 5;

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsDrawer {
    /// The run of the tool.
    pub run: RunId,
    /// The tool.
    pub tool: ToolName,
    /// The selected row.
    pub selected: ToolSetting,
}

/// A row of the drawer: one thing of a tool that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSetting {
    /// A fault.
    Fault(FaultKind),
    /// Timeout of one attempt.
    Timeout,
    /// Max attempts of one call.
    Attempts,
    /// Consecutive failures that open the breaker.
    Threshold,
    /// Size of the breaker's window.
    WindowSize,
    /// Calls in the window before it decides.
    MinCalls,
    /// Share of failed calls that opens the breaker.
    FailureRate,
    /// When a call is slow.
    SlowCall,
    /// Share of slow calls that opens the breaker.
    SlowRate,
    /// How long the breaker stays open.
    OpenFor,
    /// Concurrent probes in half-open.
    Probes,
    /// Concurrent attempts.
    InFlight,
    /// How long an attempt may be queued.
    Wait,
}

impl ToolSetting {
    /// The rows for a tool with these limits, in the order of the screen.
    pub fn rows_for(limits: &ToolLimits) -> Vec<ToolSetting> {
        let mut knobs: Vec<ToolSetting> = FaultKind::ALL.into_iter().map(Self::Fault).collect();
        knobs.extend([Self::Timeout, Self::Attempts]);
        if let Some(breaker) = limits.breaker {
            match breaker.window {
                None => knobs.push(Self::Threshold),
                Some(window) => {
                    knobs.extend([Self::WindowSize, Self::MinCalls, Self::FailureRate]);
                    if window.slow_call_ms.is_some() {
                        knobs.extend([Self::SlowCall, Self::SlowRate]);
                    }
                }
            }
            knobs.extend([Self::OpenFor, Self::Probes]);
        }
        if let Some(bulkhead) = limits.bulkhead {
            knobs.push(Self::InFlight);
            if bulkhead.max_wait_ms.is_some() {
                knobs.push(Self::Wait);
            }
        }
        knobs
    }

    /// The help line of the row.
    pub fn help_text(self) -> &'static str {
        match self {
            Self::Fault(FaultKind::Latency) => "Each attempt takes this much longer; + - adjust.",
            Self::Fault(FaultKind::Errors) => {
                "This share of attempts fails with that status; + - adjust."
            }
            Self::Fault(FaultKind::Hang) => "Each attempt hangs until its timeout.",
            Self::Fault(FaultKind::Malformed) => "The result is not valid JSON.",
            Self::Fault(FaultKind::Reset) => "The connection breaks in the middle of the body.",
            _ => "+ - adjust; the counts so far are kept.",
        }
    }

    /// The current value of the limit; `None` for a fault, or if the tool lacks the limit.
    pub fn limit(self, limits: &ToolLimits) -> Option<LimitChange> {
        let window = limits.breaker.and_then(|breaker| breaker.window);
        Some(match self {
            Self::Fault(_) => return None,
            Self::Timeout => LimitChange::TimeoutMs(limits.timeout_ms),
            Self::Attempts => LimitChange::MaxAttempts(limits.max_attempts),
            Self::Threshold => LimitChange::FailThreshold(limits.breaker?.fail_threshold),
            Self::WindowSize => LimitChange::WindowSize(window?.size),
            Self::MinCalls => LimitChange::MinCalls(window?.min_calls),
            Self::FailureRate => LimitChange::FailureRate(window?.failure_rate),
            Self::SlowCall => LimitChange::SlowCallMs(window?.slow_call_ms?),
            Self::SlowRate => LimitChange::SlowRate(window?.slow_rate),
            Self::OpenFor => LimitChange::OpenForMs(limits.breaker?.open_for_ms),
            Self::Probes => LimitChange::ProbePermits(limits.breaker?.probe_permits),
            Self::InFlight => LimitChange::MaxInFlight(limits.bulkhead?.max_in_flight),
            Self::Wait => LimitChange::MaxWaitMs(limits.bulkhead?.max_wait_ms?),
        })
    }
}

/// The fault that the drawer injects first for a kind.
pub fn default_fault(kind: FaultKind) -> InjectedFault {
    match kind {
        FaultKind::Latency => InjectedFault::Latency { ms: 2_000 },
        FaultKind::Errors => InjectedFault::Errors { percent: 30, status: 503 },
        FaultKind::Hang => InjectedFault::Hang,
        FaultKind::Malformed => InjectedFault::Malformed,
        FaultKind::Reset => InjectedFault::Reset,
    }
}

/// The fault of a kind that a tool has now.
pub fn injected_fault(tool: &ToolRow, kind: FaultKind) -> Option<InjectedFault> {
    tool.faults.iter().copied().find(|fault| fault.kind() == kind)
}

/// A fault one step stronger or weaker; `None` at its bound, or if it has no strength.
fn stepped_fault(fault: InjectedFault, up: bool) -> Option<InjectedFault> {
    let to = match fault {
        InjectedFault::Latency { ms } => InjectedFault::Latency { ms: stepped_ms(ms, up, 100) },
        InjectedFault::Errors { percent, status } => {
            let percent = if up {
                percent.saturating_add(10).min(100)
            } else {
                percent.saturating_sub(10).max(10)
            };
            InjectedFault::Errors { percent, status }
        }
        InjectedFault::Hang | InjectedFault::Malformed | InjectedFault::Reset => return None,
    };
    (to != fault).then_some(to)
}

/// The parts of the drawer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultsParts {
    /// All of it, border included.
    pub window: Rect,
    /// The rows.
    pub list: Rect,
    /// The help on a change.
    pub foot: Rect,
    /// The first row in view.
    pub top: usize,
}

impl FaultsDrawer {
    /// The drawer of a tool, with its first fault selected.
    pub fn new(run: RunId, tool: ToolName) -> Self {
        Self { run, tool, selected: ToolSetting::Fault(FaultKind::ALL[0]) }
    }

    /// The current state of the tool.
    pub fn tool<'a>(&self, world: &'a World) -> Option<&'a ToolRow> {
        world.tools.get(self.tool.as_str())
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> FaultsParts {
        let knobs =
            self.tool(world).map_or_else(Vec::new, |tool| ToolSetting::rows_for(&tool.head.limits));
        // A blank row separates the faults from the limits.
        let rows = u16::try_from(knobs.len() + 1).unwrap_or(u16::MAX);
        let DrawerParts { window, list, note } = drawer(size.body(), rows, FOOT);
        let at = self.selected_line(&knobs);
        FaultsParts {
            window,
            list,
            foot: note,
            top: keep_in_view(0, at, usize::from(list.height), knobs.len() + 1),
        }
    }

    /// The line of the selected row.
    fn selected_line(&self, knobs: &[ToolSetting]) -> usize {
        let at = knobs.iter().position(|knob| *knob == self.selected).unwrap_or(0);
        at + usize::from(at >= FaultKind::ALL.len())
    }

    /// The row on a line, from 0; `None` for the blank line between faults and limits.
    pub fn setting_at(line: usize, limits: &ToolLimits) -> Option<ToolSetting> {
        let faults = FaultKind::ALL.len();
        let at = match line {
            line if line < faults => line,
            line if line == faults => return None,
            line => line - 1,
        };
        ToolSetting::rows_for(limits).get(at).copied()
    }

    /// Selects the row on this line of the list; the row `top` is the first in view. Returns whether it
    /// was selected before and can be switched; `None` if the line has no row.
    pub(super) fn select_line(&mut self, line: usize, top: usize, world: &World) -> Option<bool> {
        let setting = Self::setting_at(top + line, &self.tool(world)?.head.limits)?;
        let before = std::mem::replace(&mut self.selected, setting);
        Some(before == setting && matches!(setting, ToolSetting::Fault(_)))
    }

    /// Moves the selection, or changes to the previous or next tool. Returns whether the action was
    /// a movement.
    pub fn on_move(&mut self, action: Action, world: &World) -> bool {
        let Some(tool) = self.tool(world) else { return false };
        let tools = world.tools.rows();
        let beside = match action {
            Action::Left => -1,
            Action::Right => 1,
            _ => {
                let knobs = ToolSetting::rows_for(&tool.head.limits);
                let at = knobs.iter().position(|knob| *knob == self.selected);
                let to = moved_index(action, at, knobs.len(), 5).and_then(|at| knobs.get(at));
                return match to {
                    Some(knob) => {
                        self.selected = *knob;
                        true
                    }
                    None => false,
                };
            }
        };
        let at = tools.iter().position(|row| row.name() == tool.name()).unwrap_or(0);
        let to = at.saturating_add_signed(beside).min(tools.len().saturating_sub(1));
        if let Some(tool) = tools.get(to) {
            self.tool = tool.name().clone();
            if !ToolSetting::rows_for(&tool.head.limits).contains(&self.selected) {
                self.selected = ToolSetting::Fault(FaultKind::ALL[0]);
            }
        }
        true
    }

    /// The command of an action; `None` where it changes nothing. A step starts from the pending
    /// value, where there is one.
    pub fn command(&self, action: Action, page: &RunPage) -> Option<Command> {
        let (world, asked) = (page.world(), page.pending_changes());
        let row = self.tool(world).filter(|_| world.progress.is_live())?;
        let tool = self.tool.clone();
        let breaker = |hand| {
            let has = row.head.limits.breaker.is_some();
            has.then(|| Command::Breaker { tool: tool.clone(), hand, by: Initiator::You })
        };
        match (action, self.selected) {
            (Action::BreakerTrip, _) => breaker(BreakerOverride::Trip),
            (Action::BreakerHold, _) => breaker(BreakerOverride::Hold),
            (Action::BreakerReset, _) => breaker(BreakerOverride::Reset),
            (Action::BreakerDisable, _) => breaker(BreakerOverride::Disable),
            (Action::Toggle, ToolSetting::Fault(kind)) => {
                Some(match asked.fault(&tool, kind, injected_fault(row, kind)) {
                    Some(_) => Command::RemoveFault { tool, kind, by: Initiator::You },
                    None => {
                        Command::Inject { tool, fault: default_fault(kind), by: Initiator::You }
                    }
                })
            }
            (Action::More | Action::Less, ToolSetting::Fault(kind)) => {
                let now = asked.fault(&tool, kind, injected_fault(row, kind))?;
                let fault = stepped_fault(now, action == Action::More)?;
                Some(Command::Inject { tool, fault, by: Initiator::You })
            }
            (Action::More | Action::Less, knob) => {
                let now = asked.limit(&tool, knob.limit(&row.head.limits)?);
                let change = stepped_limit(now, action == Action::More)?;
                Some(Command::SetLimit { tool, change, by: Initiator::You })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::spec::limits::Rate;

    #[test]
    fn up_and_down_meet_again() {
        for ms in [100, 900, 1_000, 9_500, 10_000, 55_000, 60_000] {
            assert_eq!(stepped_ms(stepped_ms(ms, true, 100), false, 100), ms);
        }
        for percent in [10, 50, 95] {
            let rate = LimitChange::FailureRate(Rate::from_share(f64::from(percent) / 100.0));
            let up = stepped_limit(rate, true).expect("below all");
            assert_eq!(stepped_limit(up, false), Some(rate));
        }
        let odd = LimitChange::SlowRate(Rate::from_share(0.333));
        let round = LimitChange::SlowRate(Rate::from_share(0.35));
        assert_eq!(stepped_limit(odd, true), Some(round));
        assert_eq!(stepped_limit(LimitChange::FailureRate(Rate::ALL), true), None);
        assert_eq!(stepped_ms(100, false, 100), 100);
        assert_eq!(stepped_ms(50, false, 0), 0);
    }

    #[test]
    fn what_goes_no_further_asks_for_nothing() {
        assert_eq!(stepped_limit(LimitChange::MaxInFlight(1), false), None);
        assert_eq!(stepped_limit(LimitChange::MaxWaitMs(0), false), None);
        assert_eq!(stepped_fault(InjectedFault::Hang, true), None);
        assert_eq!(stepped_fault(InjectedFault::Errors { percent: 100, status: 503 }, true), None);
        let weaker = InjectedFault::Errors { percent: 20, status: 503 };
        assert_eq!(stepped_fault(default_fault(FaultKind::Errors), false), Some(weaker));
    }
}
