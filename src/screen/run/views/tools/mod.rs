//! The view of the tools: the selected tool, and the run that this one is compared with. It is the
//! view of a run that is about its tools, and can be opened over that of any other.

mod breakers;
mod bulkheads;
mod lanes;
pub mod retries;
pub mod summary;
mod tool;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::breakers::{sign, state_text};
use self::retries::RunComparison;
use self::summary::{fails_now, is_full};
use self::tool::outcome_as_text;
use super::{LiveChange, PaneAt, PaneTitle, TrackRow, View, pane_title};
use crate::base::name::ToolName;
use crate::base::time;
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    BreakerStage, Command, Elapsed, EventKind, Initiator, LimitChange, SpanId, World,
};
use crate::log::world::Projection;
use crate::log::world::available::available;
use crate::log::world::tool_row::{ToolRow, ToolTally};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::layout::below;
use crate::screen::list::{ListPane, stepped_index};
use crate::screen::run::copy::tool_text;
use crate::screen::run::data::RunData;
use crate::screen::run::layout::{Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::text::Pen;
use crate::screen::windows::faults::{breaker_override, stepped_limit};
use crate::words::format;
use crate::words::format::percent;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;
use crate::words::tool_sentence::short_breaker_cause;

/// Maximum number of events that are searched for the latest retried calls.
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

    /// The list of the tools in the area of its rows.
    pub(super) fn tool_list(&self, run: &RunData, area: Rect) -> ListPane {
        let tools = listed_tools(run.shown()).len();
        ListPane::new(area, tools, self.tool_at(run).unwrap_or(0))
    }

    /// Whether the operator selected a tool.
    pub fn tool_is_selected(&self) -> bool {
        self.tool.is_some()
    }

    /// The latest run that this one is compared with.
    pub fn comparison(&self) -> Option<&RunComparison> {
        self.comparison.as_ref()
    }

    /// Sets the run that this one is compared with.
    pub(crate) fn set_comparison(&mut self, comparison: Option<RunComparison>) {
        self.comparison = comparison;
    }

    /// Clears the selected tool; returns whether there was one.
    pub(crate) fn let_tool_go(&mut self) -> bool {
        self.tool.take().is_some()
    }

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
    fn override_breaker(&self, run: &RunData, action: BreakerOverride) -> LiveChange {
        match self.tool(run) {
            Some(tool) => {
                let tool = tool.name().clone();
                LiveChange::Send(Command::Breaker { tool, action, by: Initiator::You })
            }
            None => LiveChange::NotHere,
        }
    }
}

/// Whether a run has tools besides its model, or calls of another program.
pub fn has_tools(run: &RunData) -> bool {
    let rows = run.world().tools.rows();
    rows.len() > 1 || rows.iter().any(|row| row.head.is_observed())
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

impl View for ToolsView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Breakers", "Tool", "Bulkheads", "Retries"]
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Circuit breakers", "Tool", "Bulkheads", "Retries and amplification"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
        PaneSizes {
            rows: RowSize::Content(listed_tools(run.world()).len().clamp(4, 8)),
            first: (page.width.saturating_mul(62) / 100).min(130),
            third: inner_columns(page).saturating_mul(47) / 100,
            ended: None,
        }
    }

    fn on_move(&mut self, run: &RunData, _at: PaneAt<'_>, action: Action) {
        let rows = listed_tools(run.shown());
        // A step begins at the highlighted row, whether or not the operator selected it.
        let at = self.tool_at(run).unwrap_or(0);
        if let Some(to) = stepped_index(action, Some(at), at, rows.len()) {
            self.select_tool(run, to);
        }
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
        if let Some(tool) = self.tool_list(run, below(area, above)).row_at(row) {
            self.select_tool(run, tool);
        }
    }

    fn clear_selection(&mut self, _with_tool: bool) -> bool {
        self.let_tool_go()
    }

    /// That of a run about its tools, until the operator selects a tool.
    fn shows_outcome(&self, run: &RunData) -> bool {
        let world = run.shown();
        let is_about_tools = world.projection().is_some_and(|it| it.tool_load().is_some());
        is_about_tools && world.progress.closed.is_some() && !self.tool_is_selected()
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
        match (action, breaker_override(action)) {
            (Action::More | Action::Less, _) => self.change_limit(run, action == Action::More),
            (_, Some(to)) => self.override_breaker(run, to),
            _ => LiveChange::NotHere,
        }
    }

    fn available(&self, run: &RunData, _focus: Pane, action: Action) -> Result<(), Why> {
        let tool = self.tool(run).ok_or_else(|| Why::from("This run has no tools."))?;
        let (limits, name) = (&tool.head.limits, tool.name());
        match action {
            Action::Faults => Ok(()),
            Action::More | Action::Less if limits.bulkhead.is_some() => Ok(()),
            Action::More | Action::Less => {
                Err(format!("{name} has no bulkhead: no limit to change.").into())
            }
            _ => match (breaker_override(action), self.command(run, action)) {
                (Some(_), LiveChange::Send(command)) => Ok(available(&command, run.world())?),
                _ => Err(Why::Unsaid),
            },
        }
    }

    fn rank(&self, run: &RunData, action: Action) -> Option<u8> {
        // The selection matters most: other keys act on it.
        matches!(action, Action::Up | Action::Down).then_some(4).filter(|_| has_tools(run))
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => breakers::render(self, data, cx, area, buf),
            Pane::Second => tool::render(self, data, cx, area, buf),
            Pane::Third => bulkheads::render(self, data, cx, area, buf),
            Pane::Fourth => retries::render(self, data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(tool::title(self, data, cx)),
            Pane::First | Pane::Third => {
                let unused = unused_tools(data.shown());
                let period = (pane == Pane::First).then(|| "figures: whole run".to_owned());
                let aside: Vec<_> = period.into_iter().chain(unused).collect();
                let dot = format!(" {} ", cx.glyphs.symbol(Glyph::Dot));
                PaneTitle {
                    aside: aside.join(&dot),
                    ..PaneTitle::plain(pane_title(self.titles(), pane))
                }
            }
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        render(data, cx, row.area, buf);
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (60, u16::MAX)
    }
}

/// The tools that the tables list. A tool without a call is left out where the plan of the run does
/// not have it, and one of another program whose calls got another name.
pub(crate) fn listed_tools(world: &World) -> Vec<&ToolRow> {
    let load = world.projection().and_then(Projection::tool_load);
    let rows = world.tools.rows().iter();
    let has_part = |row: &&ToolRow| match &load {
        Some(load) => row.tally.calls + row.tally.repeats > 0 || load.steps.contains(row.name()),
        None => !row.head.is_observed() || row.tally.calls > 0,
    };
    rows.filter(has_part).collect()
}

/// How many tools the tables leave out, in words.
fn unused_tools(world: &World) -> Option<String> {
    let own = world.tools.rows().iter().filter(|row| !row.head.is_observed());
    match own.count().saturating_sub(listed_tools(world).len()) {
        0 => None,
        unused => Some(format!("{} unused", format::count_noun(unused as u64, "tool"))),
    }
}

/// At most this many tools are named with the state of their breakers.
const NAMED: usize = 2;
/// Blanks between two parts.
const GAP: u16 = 3;

/// A part of the row.
type Part = (String, StyleRole);

/// Draws the row; a part that does not fit is left out.
pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let tools = listed_tools(world);
    if tools.is_empty() {
        return;
    }
    let load = world.projection().and_then(Projection::tool_load);
    let naive = load.is_some_and(|load| load.naive_attempts.is_some());
    let mut parts = if naive {
        vec![("no guards".to_owned(), StyleRole::Retry)]
    } else {
        open_breakers(&tools, cx, data.time(cx.now))
    };
    if let Some(factor) = world.tools.amplification().filter(|factor| naive || *factor > 1.0) {
        let role = if factor > 1.0 { StyleRole::Failed } else { StyleRole::Text };
        parts.push((format::requests_a_call(factor), role));
    }
    parts.extend(errors(&tools, data, data.time(cx.now)));
    parts.extend(results(&tools));
    let of_all =
        |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let full = of_all(|tally| tally.bulkhead_full);
    if full > 0 {
        let text = format!("{} refused by bulkheads", format::count(full));
        let is_full = tools.iter().any(|tool| is_full(tool));
        parts.push((text, if is_full { StyleRole::Refused } else { StyleRole::Text }));
    }
    let slow = tools.iter().filter_map(|it| Some((it.latencies.percentile(95)?, it)));
    if let Some((p95, tool)) = slow.max_by_key(|(p95, _)| *p95) {
        let text = format!("slowest p95 {} {}", time::duration_text(p95), tool.name());
        parts.push((text, StyleRole::Dim));
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, (text, role)) in parts.iter().enumerate() {
        let gap = if nth > 0 { GAP } else { 0 };
        if nth == 0 || pen.fits(columns(text) + usize::from(gap)) {
            pen.space(gap).put(text, cx.theme.style(*role));
        }
    }
}

/// The breakers that are not closed, by name; the number of the others if there are none.
fn open_breakers(tools: &[&ToolRow], cx: &DrawContext, now: Elapsed) -> Vec<Part> {
    let with = || tools.iter().filter(|tool| tool.head.limits.breaker.is_some());
    let role = |stage| match stage {
        BreakerStage::Open | BreakerStage::Held => StyleRole::Refused,
        BreakerStage::HalfOpen => StyleRole::Retry,
        BreakerStage::Disabled => StyleRole::Off,
        BreakerStage::Closed => StyleRole::Done,
    };
    let not_closed = || with().filter(|tool| tool.breaker != BreakerStage::Closed);
    let named = not_closed().take(NAMED).map(|tool| {
        let sign = sign(cx, tool);
        let state = state_text(tool, sign, now);
        let opened = tool.history.back().filter(|it| it.counted.is_some());
        let why = opened.map(|it| format!(" ({})", short_breaker_cause(it.why, it.counted)));
        let glyph = cx.glyphs.symbol(sign.glyph);
        let text = format!("{glyph} {} {state}{}", tool.name(), why.unwrap_or_default());
        (text, role(tool.breaker))
    });
    let mut parts: Vec<Part> = named.collect();
    let more = not_closed().count().saturating_sub(NAMED);
    if more > 0 {
        parts.push((format!("{more} more not closed"), StyleRole::Refused));
    }
    if parts.is_empty() {
        let text = match with().count() as u64 {
            0 => "no breakers".to_owned(),
            count => format!(
                "{} {} closed",
                cx.glyphs.symbol(Glyph::Done),
                format::count_noun(count, "breaker")
            ),
        };
        parts.push((text, StyleRole::Done));
    }
    parts
}

/// The tool with the highest share of errors, of those that fail now if any does. The share is that of
/// the whole run; its colour says whether the tool fails now.
fn errors(tools: &[&ToolRow], data: &RunData, now: Elapsed) -> Option<Part> {
    let rates = tools
        .iter()
        .filter_map(|tool| Some((fails_now(tool, data, now), tool.tally.error_rate()?, tool)));
    let (fails, rate, tool) = rates.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    let role = if fails && rate > 0.0 { StyleRole::Failed } else { StyleRole::Text };
    Some(match rate {
        0.0 => ("no errors".to_owned(), role),
        rate => (format!("{} {} errors", tool.name(), percent(rate)), role),
    })
}

/// How many calls failed, were served from fallback, or have no result.
fn results(tools: &[&ToolRow]) -> Vec<Part> {
    let of_all =
        |count: fn(&ToolTally) -> u64| tools.iter().map(|it| count(&it.tally)).sum::<u64>();
    let calls = of_all(|tally| tally.calls);
    let failed = of_all(|tally| tally.failed);
    let fallback = of_all(|tally| tally.cached + tally.fallback);
    let omitted = of_all(|tally| tally.omitted);
    let denied = of_all(|tally| tally.denied);
    // The repeats of a call can fail too, so the failures are not a part of the calls.
    [
        (failed, format!("{} failed", format::count_noun(failed, "call")), StyleRole::Failed),
        (denied, format!("{} denied", format::count_noun(denied, "call")), StyleRole::Refused),
        (fallback, format!("{fallback} of {calls} calls from fallback"), StyleRole::Retry),
        (omitted, format!("{omitted} of {calls} calls left out"), StyleRole::Retry),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(_, text, role)| (text, role))
    .collect()
}
