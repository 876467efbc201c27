//! Pane 1 of the tools: each tool's breaker state, its latest calls as marks, and its figures.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{agents, line, row_style};
use crate::app::run::RunPage;
use crate::app::run::table::first_seat;
use crate::app::run::tool_words::{percent, times};
use crate::event::kind::BreakerStage;
use crate::event::world::tools::{CallMark, MARKS, ToolRow};
use crate::event::{Elapsed, World};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{Role, Sign};

/// Width of a breaker's state with the remaining time.
const STATE: u16 = 12;
/// Minimum number of marks, in a narrow and in a wide pane.
const LEAST: (u16, u16) = (10, 20);

/// A column with a figure of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    Errors,
    Asked,
    P95,
    Amplified,
    Made,
    P50,
}

impl Figure {
    /// By importance, each with its heading and width.
    const ALL: [(Figure, &'static str, u16); 6] = [
        (Self::Errors, "errors", 7),
        (Self::Asked, "calls", 6),
        (Self::P95, "p95", 7),
        (Self::Amplified, "amp", 7),
        (Self::Made, "reqs", 6),
        (Self::P50, "p50", 7),
    ];
    /// In the order on the screen.
    const SHOWN: [Figure; 6] =
        [Self::Errors, Self::P50, Self::P95, Self::Asked, Self::Made, Self::Amplified];

    fn told(self, tool: &ToolRow) -> (String, Role) {
        let none = || (String::new(), Role::Dim);
        let tally = &tool.tally;
        match self {
            Self::Errors => match tally.error_rate() {
                Some(0.0) => ("0 %".to_owned(), Role::Text),
                Some(rate) => (percent(rate), Role::Failed),
                None => none(),
            },
            Self::P50 | Self::P95 => {
                let of = if self == Self::P50 { 50 } else { 95 };
                tool.latencies.percentile(of).map_or_else(none, |it| (format::took(it), Role::Text))
            }
            Self::Asked => (format::count(tally.asked), Role::Text),
            Self::Made => (format::count(tally.requests()), Role::Text),
            Self::Amplified => match tally.amplification() {
                Some(factor) if factor > 1.0 => (times(factor), Role::Retry),
                Some(factor) => (times(factor), Role::Text),
                None => none(),
            },
        }
    }
}

/// The layout of a row.
struct Columns {
    name: u16,
    marks: u16,
    figures: Vec<(Figure, &'static str, u16)>,
}

impl Columns {
    fn of(width: u16, tools: &[ToolRow]) -> Columns {
        let longest = tools.iter().map(|tool| tool.name().as_str().len()).max().unwrap_or(4);
        let name = u16::try_from(longest).unwrap_or(u16::MAX).clamp(4, (width / 4).clamp(4, 20));
        let fixed = 3 + name + 1 + STATE;
        let least = if width < 70 { LEAST.0 } else { LEAST.1 };
        let mut room = width.saturating_sub(fixed + least + 1);
        let mut kept = Vec::new();
        for figure in Figure::ALL {
            if figure.2 > room {
                break;
            }
            room -= figure.2;
            kept.push(figure);
        }
        let at = |figure: &Figure| Figure::SHOWN.iter().position(|it| it == figure);
        kept.sort_by_key(|(figure, ..)| at(figure));
        let most = MARKS as u16;
        let marks = width.saturating_sub(fixed).min((least + room).min(most));
        Columns { name, marks, figures: kept }
    }
}

/// The state of a tool's breaker; "no breaker" for a tool without one.
pub(super) fn sign(cx: &Cx, tool: &ToolRow) -> Sign {
    match tool.head.limits.breaker {
        Some(_) => cx.theme.breaker(tool.stage),
        None => Sign { word: "no breaker", ..cx.theme.breaker(BreakerStage::Disabled) },
    }
}

/// The state with the time until the breaker probes, if it is open.
pub(super) fn standing(tool: &ToolRow, sign: Sign, now: Elapsed) -> String {
    match tool.opens_in(now) {
        Some(left) if left.is_zero() => format!("{}, due", sign.word),
        Some(left) => format!("{} {}", sign.word, format::took(left)),
        None => sign.word.to_owned(),
    }
}

/// Draws the pane.
pub(super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let dim = cx.theme.style(Role::Dim);
    let tools = world.tools.rows();
    if tools.is_empty() {
        let text = match world.head {
            Some(_) => "This run has no tools.",
            None => "The run is starting.",
        };
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put(text, dim);
        let text = "t or Esc: back to the run.";
        Pen::new(buf, line(area, 1), cx.glyphs).space(1).put(text, dim);
        return;
    }
    let places = Columns::of(area.width, tools);
    head(cx, line(area, 0), &places, buf);
    let rows = usize::from(area.height.saturating_sub(1));
    let first = first_seat(page.tool_at().unwrap_or(0), tools.len(), rows);
    let now = page.time(cx.now);
    let mut nth = 1;
    for (at, tool) in tools.iter().enumerate().skip(first).take(rows) {
        let selected = page.tool_at() == Some(at);
        let here = line(area, nth);
        row_style(cx, here, selected && page.tool_is_selected(), buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        one_tool(cx, &mut pen, tool, &places, selected, now);
        nth += 1;
    }
    if tools.len() > rows && rows > 0 {
        let text = format!("{}-{} of {}", first + 1, first + rows, tools.len());
        let width = (3 + places.name).saturating_sub(1);
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(&text, width, dim);
    }
    // The remaining rows show a legend of the marks and the totals of calls.
    let left = area.height.saturating_sub(nth);
    if left >= 2 {
        let mut pen = Pen::new(buf, line(area, area.height - 1), cx.glyphs);
        legend(cx, &mut pen);
    }
    if left >= 3 {
        let mut pen = Pen::new(buf, line(area, area.height - 2), cx.glyphs);
        calls(cx, &mut pen, world);
    }
    // Plus a blank row above and below the agents.
    if let Some((resilience, plan)) = world.resilience().filter(|_| left >= 5) {
        let height = agents::rows(area.width, resilience).min(left - 4);
        let y = area.y + nth + 1;
        agents::render(cx, Rect { y, height, ..area }, resilience, plan, buf);
    }
}

fn head(cx: &Cx, area: Rect, places: &Columns, buf: &mut Buffer) {
    let dim = cx.theme.style(Role::Dim);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.space(3).cell("tool", places.name, dim).space(1).cell("state", STATE, dim);
    let arrow = cx.glyphs.of(Glyph::Arrow);
    let long = format!("last {}, old {arrow} new", places.marks);
    let short = format!("old {arrow} new");
    let text = if columns(&long) <= places.marks.into() { long } else { short };
    pen.cell(&text, places.marks, dim);
    for (_, head, width) in &places.figures {
        pen.right(head, *width, dim);
    }
}

fn one_tool(
    cx: &Cx,
    pen: &mut Pen,
    tool: &ToolRow,
    places: &Columns,
    selected: bool,
    now: Elapsed,
) {
    let plain = cx.theme.style(Role::Text);
    let sign = sign(cx, tool);
    let mark = if selected { cx.glyphs.of(Glyph::Selected) } else { " " };
    pen.put(mark, cx.theme.style(Role::Key)).glyph(sign.glyph, sign.style).space(1);
    pen.name(tool.name().as_str(), places.name, plain).space(1);
    let start = pen.x();
    pen.put_within(&standing(tool, sign, now), STATE - 1, sign.style).to(start + STATE);
    let start = pen.x();
    let skip = tool.marks.len().saturating_sub(places.marks.into());
    for mark in tool.marks.iter().skip(skip) {
        let sign = cx.theme.mark(*mark);
        pen.glyph(sign.glyph, sign.style);
    }
    pen.to(start + places.marks);
    for (figure, _, width) in &places.figures {
        let (text, role) = figure.told(tool);
        pen.right(&text, *width, cx.theme.style(role));
    }
}

fn legend(cx: &Cx, pen: &mut Pen) {
    let dim = cx.theme.style(Role::Dim);
    pen.space(1);
    for mark in
        [CallMark::Good, CallMark::Slow, CallMark::Bad, CallMark::Neither, CallMark::Refused]
    {
        let sign = cx.theme.mark(mark);
        if pen.fits(columns(sign.word) + 4) {
            pen.glyph(sign.glyph, sign.style).space(1).put(sign.word, dim).space(2);
        }
    }
}

/// The totals of the run's calls by result.
fn calls(cx: &Cx, pen: &mut Pen, world: &World) {
    let dim = cx.theme.style(Role::Dim);
    let tally = world.tally;
    pen.space(1).put("calls  ", dim);
    for (glyph, role, count, word) in [
        (Glyph::Done, Role::Done, tally.answered, "answered"),
        (Glyph::Alert, Role::Retry, tally.degraded, "degraded"),
        (Glyph::Failed, Role::Failed, tally.failed, "failed"),
        (Glyph::Running, Role::Running, tally.open(), "open"),
    ] {
        let style = cx.theme.style(if count == 0 { Role::Dim } else { role });
        let text = format!(" {} {word}", format::count(count));
        pen.glyph(glyph, style).put(&text, style).space(3);
    }
}
