//! Pane 1 of the tools: each tool's breaker state, its latest calls as marks, and its figures.

use crate::app::action::Action;
use crate::app::keys_in_use::key_of;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::state::{sign, state_text};
use super::{agents, lanes};
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::layout::window_start;
use crate::app::run::tool_summary::fails_now;
use crate::event::world::Projection;
use crate::event::world::tool_row::{CallMark, MARKS, ToolRow};
use crate::narrate::format::percent;
use crate::narrate::glyph::Glyph;
use crate::panes::tools::listed::listed_tools;
use crate::panes::tools::view::ToolsView;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::table::{self, Column, row_style};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

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
                    .map_or_else(none, |it| (format::duration_text(it), StyleRole::Text))
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

/// Draws the pane.
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
        let text = match world.head {
            Some(_) => "This run has no tools.",
            None => "The run is starting.",
        };
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(text, dim);
        let text = format!("{} or Esc: back to the run.", key_of(Action::Tools));
        Pen::new(buf, line(area, 1), cx.glyphs).space(1).put(&text, dim);
        return;
    }
    let places = BreakerColumns::for_width(area.width, tools);
    head(cx, line(area, 0), &places, buf);
    let rows = usize::from(area.height.saturating_sub(1));
    let first = window_start(view.tool_at(data).unwrap_or(0), tools.len(), rows);
    let mut nth = 1;
    for (at, tool) in tools.iter().enumerate().skip(first).take(rows) {
        let selected = view.tool_at(data) == Some(at);
        let here = line(area, nth);
        row_style(cx, here, selected && view.tool_is_selected(), buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        one_tool(data, cx, &mut pen, tool, &places, selected);
        nth += 1;
    }
    if tools.len() > rows && rows > 0 {
        let text = table::range(first, rows, tools.len());
        let width = (3 + places.name).saturating_sub(1);
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(&text, width, dim);
    }
    let y = area.y + nth;
    below(view, data, cx, Rect { y, height: area.height.saturating_sub(nth), ..area }, buf);
}

/// Draws what comes below the table: the agents, the selected tool over time, a legend of the marks.
fn below(view: &ToolsView, data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
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
        let all = agents::rows(area.width, &load).min(area.height);
        // Blank rows above the agents and above the lanes, if there is room.
        let roomy = area.height >= wanted + all + 2;
        let height = if roomy { all } else { 1 };
        let gap = u16::from(roomy);
        area = Rect { y: area.y + gap, height: area.height - gap, ..area };
        agents::render(cx, Rect { height, ..area }, &load, data.shown().progress.is_live(), buf);
        let taken = height + gap;
        area = Rect { y: area.y + taken, height: area.height.saturating_sub(taken), ..area };
    }
    if let Some(tool) = tool {
        lanes::render(data, tool, cx, area, buf);
    }
}

fn head(cx: &DrawContext, area: Rect, places: &BreakerColumns, buf: &mut Buffer) {
    let arrow = cx.glyphs.symbol(Glyph::Arrow);
    let long = format!("last {}, old {arrow} new", places.marks);
    let short = format!("old {arrow} new");
    let text = if columns(&long) <= places.marks.into() { long } else { short };
    let mut heads = vec![
        Column::left("tool", places.name + 1),
        Column::left("state", STATE),
        Column::left(&text, places.marks),
    ];
    heads.extend(places.figures.iter().map(|(_, head, width)| Column::right(head, *width)));
    table::heads(cx, Pen::new(buf, area, cx.glyphs).space(3), &heads);
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
    table::mark_or_blank(cx, pen, selected);
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
