//! Pane 1 of the tools: each tool's breaker state, its latest calls as marks, and its figures;
//! above them the agents of a run that puts load on tools.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::summary::fails_now;
use super::{ToolsView, lanes, listed_tools};
use crate::base::time;
use crate::log::event::{BreakerStage, Elapsed};
use crate::log::world::Projection;
use crate::log::world::tool_row::{CallMark, MARKS, ToolRow};
use crate::log::world::tools::{LoadAgent, ToolLoad};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{below, line};
use crate::screen::list::{Column, row_style};
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::screen::widgets::empty;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::format::percent;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Width of a breaker's state with the remaining time.
const STATE: u16 = 12;
/// Minimum number of marks, in a narrow and in a wide pane.
const MIN_MARKS: (u16, u16) = (10, 20);

/// A column with a figure of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolFigure {
    Errors,
    Calls,
    P95,
    Amplification,
    Requests,
    P50,
}

impl ToolFigure {
    /// By importance, each with its heading and width.
    const ALL: [(ToolFigure, &'static str, u16); 6] = [
        (Self::Errors, "errors", 7),
        (Self::Calls, "calls", 6),
        (Self::P95, "p95", 7),
        (Self::Amplification, "req/call", 9),
        (Self::Requests, "reqs", 6),
        (Self::P50, "p50", 7),
    ];
    /// In the order on the screen.
    const SHOWN: [ToolFigure; 6] =
        [Self::Errors, Self::P50, Self::P95, Self::Calls, Self::Requests, Self::Amplification];

    /// `fails_now`: whether the tool has errors at the moment that is shown.
    fn cell_text(self, tool: &ToolRow, fails_now: bool) -> (String, StyleRole) {
        let none = || (String::new(), StyleRole::Dim);
        let tally = &tool.tally;
        match self {
            Self::Errors => match tally.error_rate() {
                Some(0.0) => ("0 %".to_owned(), StyleRole::Text),
                Some(rate) if fails_now => (percent(rate), StyleRole::Failed),
                Some(rate) => (percent(rate), StyleRole::Text),
                None => none(),
            },
            Self::P50 | Self::P95 => {
                let of = if self == Self::P50 { 50 } else { 95 };
                tool.latencies
                    .percentile(of)
                    .map_or_else(none, |it| (time::duration_text(it), StyleRole::Text))
            }
            Self::Calls => (format::count(tally.calls), StyleRole::Text),
            Self::Requests => (format::count(tally.requests()), StyleRole::Text),
            Self::Amplification => match tally.amplification() {
                Some(factor) => {
                    let role = if factor > 1.0 { StyleRole::Retry } else { StyleRole::Text };
                    (format::requests_each(factor), role)
                }
                None => none(),
            },
        }
    }
}

/// The layout of a row.
struct BreakerColumns {
    name: u16,
    marks: u16,
    figures: Vec<(ToolFigure, &'static str, u16)>,
}

impl BreakerColumns {
    fn for_width(width: u16, tools: &[&ToolRow]) -> BreakerColumns {
        let longest = tools.iter().map(|tool| tool.name().as_str().len()).max().unwrap_or(4);
        let name = u16::try_from(longest).unwrap_or(u16::MAX).clamp(4, (width / 4).clamp(4, 20));
        let fixed = 3 + name + 1 + STATE;
        let least = if width < 70 { MIN_MARKS.0 } else { MIN_MARKS.1 };
        let mut room = width.saturating_sub(fixed + least + 1);
        let mut kept = Vec::new();
        for figure in ToolFigure::ALL {
            if figure.2 > room {
                break;
            }
            room -= figure.2;
            kept.push(figure);
        }
        let at = |figure: &ToolFigure| ToolFigure::SHOWN.iter().position(|it| it == figure);
        kept.sort_by_key(|(figure, ..)| at(figure));
        let most = MARKS as u16;
        let marks = width.saturating_sub(fixed).min((least + room).min(most));
        BreakerColumns { name, marks, figures: kept }
    }
}

pub(crate) fn render(
    view: &ToolsView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let dim = cx.theme.style(StyleRole::Dim);
    let tools = &listed_tools(world)[..];
    if tools.is_empty() {
        let back = key_of(Action::Tools);
        let text = match world.head {
            Some(_) => {
                format!("No tools: the scenario names none. {back} or Esc goes back to the run.")
            }
            None => "No tools yet: the run is starting.".to_owned(),
        };
        return empty(cx, area, &text, buf);
    }
    let places = BreakerColumns::for_width(area.width, tools);
    head(cx, line(area, 0), &places, buf);
    let list = view.tool_list(data, below(area, 1));
    for (at, here) in list.rows() {
        let Some(tool) = tools.get(at) else { break };
        let selected = view.tool_at(data) == Some(at);
        row_style(cx, here, selected && view.tool_is_selected(), buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        one_tool(data, cx, &mut pen, tool, &places, selected);
    }
    let width = (3 + places.name).saturating_sub(1);
    Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(&list.range_text(), width, dim);
    draw_below(view, data, cx, below(list.area, list.window.len() as u16), buf);
}

/// Draws the part below the table: the agents, the selected tool over time, a legend of the marks.
fn draw_below(view: &ToolsView, data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let mut area = area;
    if area.height >= 2 {
        area.height -= 1;
        let row = Rect { y: area.bottom(), height: 1, ..area };
        legend(cx, &mut Pen::new(buf, row, cx.glyphs));
    }
    let tool = view.tool(data);
    // The heading, the lanes, the times.
    let wanted = tool.map_or(0, lanes::least_rows) + 1;
    let load = data.shown().projection().and_then(Projection::tool_load);
    if let Some(load) = load.filter(|_| area.height >= wanted) {
        let all = agent_rows(area.width, &load).min(area.height);
        // Blank rows above the agents and above the lanes, if there is room.
        let roomy = area.height >= wanted + all + 2;
        let height = if roomy { all } else { 1 };
        let gap = u16::from(roomy);
        area = Rect { y: area.y + gap, height: area.height - gap, ..area };
        render_agents(cx, Rect { height, ..area }, &load, data.shown().progress.is_live(), buf);
        let taken = height + gap;
        area = Rect { y: area.y + taken, height: area.height.saturating_sub(taken), ..area };
    }
    if let Some(tool) = tool {
        lanes::render(data, tool, cx, area, buf);
    }
}

fn head(cx: &DrawContext, area: Rect, places: &BreakerColumns, buf: &mut Buffer) {
    let arrow = cx.glyphs.symbol(Glyph::Arrow);
    let long = format!("last {} calls, old {arrow} new", places.marks);
    let short = format!("old {arrow} new");
    let text = if columns(&long) <= places.marks.into() { long } else { short };
    let mut heads = vec![
        Column::left("tool", places.name + 1),
        Column::left("state", STATE),
        Column::left(&text, places.marks),
    ];
    heads.extend(places.figures.iter().map(|(_, head, width)| Column::right(head, *width)));
    list::heads(cx, Pen::new(buf, area, cx.glyphs).space(3), &heads);
}

fn one_tool(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    tool: &ToolRow,
    places: &BreakerColumns,
    selected: bool,
) {
    let now = data.time(cx.now);
    let plain = cx.theme.style(StyleRole::Text);
    let sign = sign(cx, tool);
    list::mark_or_blank(cx, pen, selected);
    pen.glyph(sign.glyph, sign.style).space(1);
    pen.name(tool.name().as_str(), places.name, plain).space(1);
    let start = pen.x();
    pen.put_within(&state_text(tool, sign, now), STATE - 1, sign.style).advance_to(start + STATE);
    let start = pen.x();
    let skip = tool.marks.len().saturating_sub(places.marks.into());
    for mark in tool.marks.iter().skip(skip) {
        let sign = cx.theme.mark(*mark);
        pen.glyph(sign.glyph, sign.style);
    }
    pen.advance_to(start + places.marks);
    for (figure, _, width) in &places.figures {
        let (text, role) = figure.cell_text(tool, fails_now(tool, data, now));
        pen.right_aligned(&text, *width, cx.theme.style(role));
    }
}

fn legend(cx: &DrawContext, pen: &mut Pen) {
    let dim = cx.theme.style(StyleRole::Dim);
    pen.space(1);
    for mark in
        [CallMark::Good, CallMark::Slow, CallMark::Bad, CallMark::NotCounted, CallMark::Refused]
    {
        let sign = cx.theme.mark(mark);
        if pen.fits(columns(sign.word) + 4) {
            pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, dim).space(2);
        }
    }
}

/// Activity of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentActivity {
    Calling,
    Queued,
    Idle,
}

impl AgentActivity {
    const ALL: [AgentActivity; 3] = [Self::Calling, Self::Queued, Self::Idle];

    /// Its glyph, how it is painted, and its word. In a run that was interrupted, calls were cut off.
    fn sign(self, is_live: bool) -> (Glyph, StyleRole, &'static str) {
        match self {
            Self::Calling if is_live => (Glyph::Running, StyleRole::Running, "calling"),
            Self::Calling => (Glyph::Off, StyleRole::Off, "cut off"),
            Self::Queued => (Glyph::Waiting, StyleRole::Retry, "waiting for a slot"),
            Self::Idle => (Glyph::NotYet, StyleRole::Dim, "between calls"),
        }
    }

    fn from_agent(agent: &LoadAgent) -> AgentActivity {
        match (&agent.calling, agent.waits_for_slot) {
            (Some(_), true) => Self::Queued,
            (Some(_), false) => Self::Calling,
            (None, _) => Self::Idle,
        }
    }
}

/// Number of rows for the agents at this width, including the row of counts.
fn agent_rows(width: u16, load: &ToolLoad<'_>) -> u16 {
    let across = usize::from(width.saturating_sub(2)).max(1);
    u16::try_from(load.agents.len().div_ceil(across)).unwrap_or(u16::MAX).saturating_add(1)
}

/// Draws the counts and the agents; only the counts if the agents do not all fit.
fn render_agents(
    cx: &DrawContext,
    area: Rect,
    load: &ToolLoad<'_>,
    is_live: bool,
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let agents = load.agents;
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(1).put("agents  ", dim);
    for does in AgentActivity::ALL {
        let (glyph, role, word) = does.sign(is_live);
        let count = agents.iter().filter(|agent| AgentActivity::from_agent(agent) == does).count();
        let style = cx.theme.style(if count == 0 { StyleRole::Dim } else { role });
        pen.glyph(glyph, style).put(&format!(" {count} {word}"), style).space(3);
    }
    let turns = || agents.iter().map(|agent| agent.turn);
    if let (Some(first), Some(last)) = (turns().min(), turns().max()) {
        let far = if first == last { format!(" {last}") } else { format!("s {first} to {last}") };
        let text = format!("on turn{far} of {}", load.turns);
        if pen.fits(columns(&text)) {
            pen.put(&text, dim);
        }
    }
    let across = usize::from(area.width.saturating_sub(2)).max(1);
    if agent_rows(area.width, load) > area.height {
        return;
    }
    for (nth, row) in agents.chunks(across).enumerate() {
        let at = line(area, u16::try_from(nth + 1).unwrap_or(u16::MAX));
        let mut pen = Pen::new(buf, at, cx.glyphs);
        pen.space(1);
        for agent in row {
            let (glyph, role, _) = AgentActivity::from_agent(agent).sign(is_live);
            pen.glyph(glyph, cx.theme.style(role));
        }
    }
}

/// The state of a tool's breaker; "no breaker" for a tool without one, "watched" for one of another program.
pub(crate) fn sign(cx: &DrawContext, tool: &ToolRow) -> StateSign {
    match tool.head.limits.breaker {
        Some(_) => cx.theme.breaker(tool.breaker),
        None => {
            let word = if tool.head.is_observed() { "watched" } else { "no breaker" };
            StateSign { word, ..cx.theme.breaker(BreakerStage::Disabled) }
        }
    }
}

/// The state with the time until the breaker probes, if it is open.
pub(super) fn state_text(tool: &ToolRow, sign: StateSign, now: Elapsed) -> String {
    match tool.retry_in(now) {
        // The word "OPEN" has no room here; the sign has its glyph and colour.
        Some(left) if left.is_zero() => "probe due".to_owned(),
        Some(left) => format!("{} {}", sign.word, time::duration_text(left)),
        None => sign.word.to_owned(),
    }
}

/// The attempts of a tool that are in flight. Those of a run that was interrupted were cut off.
pub(super) fn in_flight_text(tool: &ToolRow, is_live: bool) -> String {
    let word = if is_live || tool.in_flight == 0 { "running" } else { "cut off" };
    format!("{} {word}", tool.in_flight)
}
