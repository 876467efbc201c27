//! The faults drawer of a tool: faults that can be injected, the tool's limits, and the steps in which
//! they change. It always shows the current state of the run, wherever the playhead is.

use std::mem::discriminant;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::base::name::ToolName;
use crate::base::time::millis;
use crate::log::event::command::BreakerOverride;
use crate::log::event::{Command, Initiator, LimitChange, RunId, ToolHead};
use crate::log::world::World;
use crate::log::world::available::{RunPart, available, can_change};
use crate::log::world::tool_row::ToolRow;
use crate::scenario::spec::policy::{Rate, max};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{DrawerParts, Size};
use crate::screen::list::ListState;
use crate::screen::run::RunPage;
use crate::screen::run::views::tools::summary::window_state;
use crate::screen::widgets::list_below_heading;
use crate::screen::{AppState, DrawContext, frame, list};
use crate::words::styled::StyleRole;
use crate::words::{format, tool_sentence};

/// Rows for the help on a change and for the keys.
const FOOT: u16 = 5;

/// The drawer over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsDrawer {
    pub run: RunId,
    pub tool: ToolName,
    pub list: ListState,
}

/// A row of the drawer: one thing of a tool that can be changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToolSetting {
    Fault(FaultKind),
    Limit(LimitChange),
}

impl ToolSetting {
    /// The rows for a tool, in the order of the screen. Only a model can be silent or refuse.
    pub fn rows_for(head: &ToolHead) -> Vec<ToolSetting> {
        let (limits, is_model) = (&head.limits, head.kind == "model");
        let is_of_model = |kind: &FaultKind| matches!(kind, FaultKind::Empty | FaultKind::Refusal);
        let kinds = FaultKind::ALL.into_iter().filter(|kind| is_model || !is_of_model(kind));
        let mut rows: Vec<_> = kinds.map(Self::Fault).collect();
        let mut add = |limit| rows.push(Self::Limit(limit));
        add(LimitChange::TimeoutMs(limits.timeout_ms));
        add(LimitChange::MaxAttempts(limits.max_attempts));
        if let Some(breaker) = limits.breaker {
            match breaker.window {
                None => add(LimitChange::FailThreshold(breaker.fail_threshold)),
                Some(window) => {
                    add(LimitChange::WindowSize(window.size));
                    add(LimitChange::MinCalls(window.min_calls));
                    add(LimitChange::FailureRate(window.failure_rate));
                    if let Some(ms) = window.slow_call_ms {
                        add(LimitChange::SlowCallMs(ms));
                        add(LimitChange::SlowRate(window.slow_rate));
                    }
                }
            }
            add(LimitChange::OpenForMs(millis(breaker.open_for)));
            add(LimitChange::ProbePermits(breaker.probe_permits));
        }
        if let Some(bulkhead) = limits.bulkhead {
            add(LimitChange::MaxInFlight(bulkhead.max_in_flight));
            if let Some(wait) = bulkhead.max_wait {
                add(LimitChange::MaxWaitMs(millis(wait)));
            }
        }
        if let Some(rate) = limits.rate {
            add(LimitChange::Rate(rate));
        }
        rows
    }

    /// Whether it is the same setting, perhaps of another tool.
    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Limit(one), Self::Limit(two)) => discriminant(&one) == discriminant(&two),
            _ => self == other,
        }
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
            Self::Fault(FaultKind::Empty) => "The reply has no text and no tool calls.",
            Self::Fault(FaultKind::Refusal) => "The model refuses to answer.",
            _ => "+ - adjust; the counts so far are kept.",
        }
    }
}

/// The fault of a kind that a tool has now.
pub fn injected_fault(tool: &ToolRow, kind: FaultKind) -> Option<InjectedFault> {
    tool.faults.iter().copied().find(|fault| fault.kind() == kind)
}

/// What a key does to a breaker.
pub(crate) fn breaker_override(action: Action) -> Option<BreakerOverride> {
    Some(match action {
        Action::BreakerTrip => BreakerOverride::Trip,
        Action::BreakerHold => BreakerOverride::Hold,
        Action::BreakerReset => BreakerOverride::Reset,
        Action::BreakerDisable => BreakerOverride::Disable,
        _ => return None,
    })
}

/// A fault one step stronger or weaker; `None` at its bound, or if it has no strength.
fn stepped_fault(fault: InjectedFault, up: bool) -> Option<InjectedFault> {
    let to = match fault {
        InjectedFault::Latency { ms } => {
            InjectedFault::Latency { ms: stepped_ms(ms, up, 100).min(max::LATENCY_MS.into()) }
        }
        InjectedFault::Errors { percent, status, times } => {
            let percent = if up {
                percent.saturating_add(10).min(100)
            } else {
                percent.saturating_sub(10).max(10)
            };
            InjectedFault::Errors { percent, status, times }
        }
        InjectedFault::Hang
        | InjectedFault::Malformed
        | InjectedFault::Reset
        | InjectedFault::Empty
        | InjectedFault::Refusal => return None,
    };
    (to != fault).then_some(to)
}

impl FaultsDrawer {
    /// The current state of the tool.
    pub fn tool<'a>(&self, world: &'a World) -> Option<&'a ToolRow> {
        world.tools.get(self.tool.as_str())
    }

    /// The lines of the drawer: a blank line, `None`, separates the faults from the limits.
    pub fn lines(&self, world: &World) -> Vec<Option<ToolSetting>> {
        let Some(tool) = self.tool(world) else { return Vec::new() };
        let rows = ToolSetting::rows_for(&tool.head);
        let faults = rows.iter().filter(|row| matches!(row, ToolSetting::Fault(_))).count();
        let mut lines: Vec<_> = rows.into_iter().map(Some).collect();
        lines.insert(faults, None);
        lines
    }

    /// The parts of its window at this size.
    pub fn parts(&self, size: Size, world: &World) -> DrawerParts {
        DrawerParts::split(size.body(), self.list, self.lines(world).len(), 1, FOOT)
    }

    /// The selected row.
    pub fn selected(&self, world: &World) -> Option<ToolSetting> {
        self.lines(world).get(self.list.selected).copied().flatten()
    }

    /// Shows the previous or next tool, with the same row selected; returns whether the action does so.
    pub(super) fn switch_tool(&mut self, action: Action, world: &World) -> bool {
        let by = match action {
            Action::Left => -1,
            Action::Right => 1,
            _ => return false,
        };
        let tools = world.tools.rows();
        let at = tools.iter().position(|row| *row.name() == self.tool).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(tools.len().saturating_sub(1));
        let before = self.selected(world);
        if let Some(tool) = tools.get(to) {
            self.tool = tool.name().clone();
            let is_same =
                |line: &Option<ToolSetting>| line.zip(before).is_some_and(|(a, b)| a.is_same(b));
            self.list.selected = self.lines(world).iter().position(is_same).unwrap_or(0);
        }
        true
    }

    /// The command of a key, or why it changes nothing. A step starts from the pending value, where there
    /// is one.
    pub fn change(&self, action: Action, page: &RunPage) -> Result<Command, String> {
        let world = page.world();
        can_change(RunPart::Tools, world).map_err(|why| why.sentence())?;
        if let Some(to) = breaker_override(action) {
            let tool = self.tool.clone();
            let command = Command::Breaker { tool, action: to, by: Initiator::You };
            available(&command, world).map_err(|why| why.sentence())?;
            return Ok(command);
        }
        self.command(action, page).ok_or_else(|| match action {
            Action::Toggle => {
                let (more, less) = (key_of(Action::More), key_of(Action::Less));
                format!("Use {more} and {less} to change a limit.")
            }
            _ => "Nothing to change here, or the value is at its limit.".to_owned(),
        })
    }

    /// The command for a change of the selected row.
    fn command(&self, action: Action, page: &RunPage) -> Option<Command> {
        let (world, asked) = (page.world(), page.pending_changes());
        let row = self.tool(world)?;
        let tool = self.tool.clone();
        match (action, self.selected(world)?) {
            (Action::Toggle, ToolSetting::Fault(kind)) => {
                Some(match asked.fault(&tool, kind, injected_fault(row, kind)) {
                    Some(_) => Command::RemoveFault { tool, kind, by: Initiator::You },
                    None => {
                        Command::Inject { tool, fault: InjectedFault::of(kind), by: Initiator::You }
                    }
                })
            }
            (Action::More | Action::Less, ToolSetting::Fault(kind)) => {
                let now = asked.fault(&tool, kind, injected_fault(row, kind))?;
                let fault = stepped_fault(now, action == Action::More)?;
                Some(Command::Inject { tool, fault, by: Initiator::You })
            }
            (Action::More | Action::Less, ToolSetting::Limit(limit)) => {
                let now = asked.limit(&tool, limit);
                let change = stepped_limit(now, action == Action::More)?;
                Some(Command::SetLimit { tool, change, by: Initiator::You })
            }
            _ => None,
        }
    }
}

/// A duration in milliseconds, one step longer or shorter, but not below `least`.
fn stepped_ms(ms: u64, up: bool, least: u64) -> u64 {
    // The step belongs to the range below the value, so that one step up and one down cancel out.
    let step = match if up { ms } else { ms.saturating_sub(1) } {
        0..1_000 => 100,
        1_000..10_000 => 500,
        10_000..60_000 => 5_000,
        _ => 30_000,
    };
    if up { ms.saturating_add(step) } else { ms.saturating_sub(step).max(least) }
}

fn stepped_count(count: u32, up: bool) -> u32 {
    if up { count.saturating_add(1) } else { count.saturating_sub(1).max(1) }
}

/// The next share in steps of 5 %.
fn stepped_rate(rate: Rate, up: bool) -> Rate {
    let twentieths = rate.share() * 20.0;
    let step =
        if up { (twentieths + 0.01).floor() + 1.0 } else { (twentieths - 0.01).ceil() - 1.0 };
    Rate::from_share((step / 20.0).clamp(0.05, 1.0))
}

/// A limit one step up or down; `None` at its bound.
pub fn stepped_limit(limit: LimitChange, up: bool) -> Option<LimitChange> {
    let to = match limit {
        LimitChange::TimeoutMs(ms) => LimitChange::TimeoutMs(stepped_ms(ms, up, 100)),
        LimitChange::MaxAttempts(most) => LimitChange::MaxAttempts(stepped_count(most, up)),
        LimitChange::FailThreshold(most) => LimitChange::FailThreshold(stepped_count(most, up)),
        LimitChange::OpenForMs(ms) => LimitChange::OpenForMs(stepped_ms(ms, up, 100)),
        LimitChange::ProbePermits(most) => LimitChange::ProbePermits(stepped_count(most, up)),
        LimitChange::MaxInFlight(most) => LimitChange::MaxInFlight(stepped_count(most, up)),
        LimitChange::MaxWaitMs(ms) => LimitChange::MaxWaitMs(stepped_ms(ms, up, 0)),
        LimitChange::Rate(most) => LimitChange::Rate(stepped_count(most, up)),
        LimitChange::WindowSize(size) => LimitChange::WindowSize(stepped_count(size, up)),
        LimitChange::MinCalls(min) => LimitChange::MinCalls(stepped_count(min, up)),
        LimitChange::FailureRate(rate) => LimitChange::FailureRate(stepped_rate(rate, up)),
        LimitChange::SlowCallMs(ms) => LimitChange::SlowCallMs(stepped_ms(ms, up, 100)),
        LimitChange::SlowRate(rate) => LimitChange::SlowRate(stepped_rate(rate, up)),
        // The drawer has no row for the other limits.
        other => other,
    };
    let to = to.clamped();
    (to != limit).then_some(to)
}

/// Draws the drawer of a tool.
pub fn render(
    drawer: &FaultsDrawer,
    page: &RunPage,
    state: &AppState,
    cx: &DrawContext,
    buf: &mut Buffer,
) {
    let world = page.world();
    let parts = drawer.parts(state.size, world);
    let title =
        frame::live_title("Faults and limits", drawer.tool.as_str(), world.progress.is_live());
    let tools = world.tools.rows();
    let at = tools.iter().position(|tool| *tool.name() == drawer.tool).map_or(0, |at| at + 1);
    let foot = format!("tool {at} of {}", format::count_noun(tools.len() as u64, "tool"));
    let foot = foot.trim_end_matches(" tools").trim_end_matches(" tool");
    frame::window(&title, foot, cx, parts.window, buf);
    let Some(tool) = drawer.tool(world) else { return };
    let lines = drawer.lines(world);
    let shown = lines.iter().enumerate().skip(parts.top);
    for ((at, setting), y) in shown.zip(parts.list.y..parts.list.bottom()) {
        let Some(setting) = *setting else { continue };
        let row = Rect { y, height: 1, ..parts.list };
        setting_row(cx, tool, setting, drawer.list.selected == at, row, buf);
    }
    draw_change_help(page, cx, tool, drawer, parts.note, buf);
}

fn setting_row(
    cx: &DrawContext,
    tool: &ToolRow,
    setting: ToolSetting,
    selected: bool,
    area: Rect,
    buf: &mut Buffer,
) {
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let mut pen = list::row(cx, area, selected, buf);
    match setting {
        ToolSetting::Fault(kind) => {
            let now = injected_fault(tool, kind);
            let (mark, role) = match now {
                Some(_) => ("[x] ", StyleRole::Flag),
                None => ("[ ] ", StyleRole::Off),
            };
            pen.put(mark, cx.theme.style(role)).cell(kind.word(), 12, plain);
            let what =
                tool_sentence::fault_text(&now.unwrap_or(InjectedFault::of(kind))).into_owned();
            pen.put(&what, if now.is_some() { cx.theme.style(StyleRole::Flag) } else { dim });
        }
        ToolSetting::Limit(limit) => {
            pen.put("  = ", dim).put(&tool_sentence::limit_text(limit, &tool.head.limits), plain);
        }
    }
}

/// Draws the help on a change of the selected row.
fn draw_change_help(
    page: &RunPage,
    cx: &DrawContext,
    tool: &ToolRow,
    drawer: &FaultsDrawer,
    area: Rect,
    buf: &mut Buffer,
) {
    let sign = cx.theme.breaker(tool.breaker);
    let heading = match tool.head.limits.breaker {
        Some(_) => format!("breaker {}", sign.word),
        None => "no breaker".to_owned(),
    };
    let state = window_state(tool, page.head_time(cx.now));
    let key = key_of(Action::Toggle);
    let effect = format!("Takes effect on the next attempt; {key} turns a fault off.");
    let ended = can_change(RunPart::Tools, page.world()).err().map(|why| why.sentence());
    let mut lines: Vec<&str> = Vec::new();
    if page.is_scrubbed() {
        lines.push("The run as it is now, not at the playhead.");
    }
    if let Some(ended) = &ended {
        lines.push(ended);
    } else {
        if let Some(state) = &state {
            lines.push(state);
        }
        lines.extend(drawer.selected(page.world()).map(ToolSetting::help_text));
        lines.push(&effect);
        if tool.head.shared {
            lines.push("Its breaker and bulkhead are shared by all runs of this dashboard.");
        }
    }
    list_below_heading(cx, area, &heading, &lines, buf);
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn step_past_limit_requests_nothing() {
        assert_eq!(stepped_limit(LimitChange::MaxInFlight(1), false), None);
        assert_eq!(stepped_limit(LimitChange::MaxWaitMs(0), false), None);
        assert_eq!(stepped_limit(LimitChange::MaxAttempts(20), true), None);
        assert_eq!(stepped_limit(LimitChange::FailThreshold(10_000), true), None);
        assert_eq!(stepped_fault(InjectedFault::Latency { ms: 600_000 }, true), None);
        assert_eq!(stepped_fault(InjectedFault::Hang, true), None);
        assert_eq!(
            stepped_fault(InjectedFault::Errors { percent: 100, status: 503, times: None }, true),
            None
        );
        let weaker = InjectedFault::Errors { percent: 20, status: 503, times: None };
        assert_eq!(stepped_fault(InjectedFault::of(FaultKind::Errors), false), Some(weaker));
    }
}
