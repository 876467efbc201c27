//! The selected tool over time: one lane each for its breaker, errors, requests, latency and queue,
//! on the time axis of the scrubber.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::breakers::{sign, state_text};
use super::summary::{WindowFigure, breaker_rule, present_from, window_figure};
use crate::base::time;
use crate::log::event::tool::percent_text;
use crate::log::event::{BreakerStage, Elapsed};
use crate::log::world::tool_row::{BreakerMove, ToolRow};
use crate::log::world::tool_timeline::ToolWindow;
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::scrubber::TimeTrack;
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Width of a lane's name.
const NAME: u16 = 11;
/// Width of the present figure, and of the top of the scale.
const FIGURES: [u16; 2] = [12, 8];
/// Minimum width of a useful graph.
const MIN_GRAPH: u16 = 12;
/// Minimum number of a window's calls that are drawn next to their sums, if not all fit.
const MIN_CELLS: usize = 10;
/// Number of parts of a run's time that are looked at one by one for quiet times.
const QUIET_PARTS: u64 = 64;
/// Shortest quiet time that is folded.
const MIN_QUIET: Duration = Duration::from_secs(10);
/// Maximum rows of one graph.
const MAX_ROWS: u16 = 4;

/// A figure of a tool that is drawn over time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Breaker,
    Window,
    Errors,
    Requests,
    Latency,
    Queued,
    Running,
}

impl Lane {
    /// The lanes of a tool, from top to bottom. Without a breaker or a bulkhead there is nothing to
    /// draw of it.
    fn of_tool(tool: &ToolRow) -> Vec<Lane> {
        let limits = &tool.head.limits;
        let breaker = limits.breaker.map(|_| Self::Breaker);
        let window = limits.breaker.and_then(|breaker| breaker.window).map(|_| Self::Window);
        let load = if limits.bulkhead.is_some() { Self::Queued } else { Self::Running };
        let figures = [Self::Errors, Self::Requests, Self::Latency, load];
        breaker.into_iter().chain(window).chain(figures).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Window => "window",
            Self::Errors => "errors",
            Self::Requests => "requests/s",
            Self::Latency => "p95",
            Self::Queued => "queued",
            Self::Running => "running",
        }
    }

    fn role(self) -> StyleRole {
        match self {
            Self::Errors => StyleRole::Failed,
            Self::Queued => StyleRole::Retry,
            Self::Running => StyleRole::Running,
            Self::Breaker | Self::Window | Self::Requests | Self::Latency => StyleRole::Spark,
        }
    }

    /// The figure in a part of the time; `None` where nothing was counted.
    fn value(self, window: &ToolWindow) -> Option<f64> {
        match self {
            Self::Breaker | Self::Window => None,
            Self::Errors => window.error_rate(),
            Self::Requests => Some(window.request_rate()),
            Self::Latency => window.p95().map(|took| took.as_secs_f64()),
            Self::Queued => Some(window.most_queued().into()),
            Self::Running => Some(window.most_running().into()),
        }
    }

    /// The top of the scale for figures up to `most`.
    fn scale(self, most: f64) -> f64 {
        match self {
            Self::Errors => 1.0,
            Self::Queued | Self::Running => round_up(most).ceil(),
            _ => round_up(most),
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Breaker | Self::Window => String::new(),
            Self::Errors => format::percent(value),
            Self::Requests if value > 0.0 && value < 10.0 => format!("{value:.1}"),
            Self::Requests | Self::Queued | Self::Running => format::count(value as u64),
            Self::Latency => time::duration_text(Duration::from_secs_f64(value)),
        }
    }
}

/// The next of 1, 1.5, 2, 3, 4, 5, 6 and 8 times a power of ten.
fn round_up(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let ten = 10_f64.powf(most.log10().floor());
    // A little less, since a power of ten is not exact.
    let step = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
        .into_iter()
        .find(|it| it * ten >= most * 0.999_999);
    step.unwrap_or(10.0) * ten
}

/// Requests per 1000 s in each of so many columns of the time.
pub(super) fn request_rates(
    data: &RunData,
    tool: &ToolRow,
    cx: &DrawContext,
    columns: u16,
) -> Vec<u32> {
    let now = data.time(cx.now);
    let track = TimeTrack::new(data, data.head_time(cx.now), Rect::new(0, 0, columns, 1));
    let mut from = track.from;
    let rate = |nth| {
        let until = track.column_end(nth);
        let since = std::mem::replace(&mut from, until);
        window(data, tool, since, until, now).map_or(0, |it| (it.request_rate() * 1e3) as u32)
    };
    (0..columns).map(rate).collect()
}

/// A tool between two moments; `None` in a pause, or after the playhead.
fn window(
    data: &RunData,
    tool: &ToolRow,
    from: Elapsed,
    until: Elapsed,
    now: Elapsed,
) -> Option<ToolWindow> {
    let time = |at: Elapsed| Elapsed::from_duration(data.shown().progress.run_time(at));
    let (from, until, now) = (time(from), time(until), time(now));
    (from < until.min(now)).then(|| tool.timeline.between(from, until, now))
}

/// Minimum rows of a tool's lanes: a heading, and one row for each lane.
pub(super) fn least_rows(tool: &ToolRow) -> u16 {
    Lane::of_tool(tool).len() as u16 + 1
}

/// Draws the lanes, as many as fit.
pub(crate) fn render(
    data: &RunData,
    tool: &ToolRow,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let figures: u16 = FIGURES.iter().sum();
    let graph = area.width.saturating_sub(1 + NAME + figures + 1);
    if graph < MIN_GRAPH || area.height < 2 {
        return;
    }
    heading(data, tool, cx, line(area, 0), buf);
    let lanes = Lane::of_tool(tool);
    let rows = area.height - 1;
    let shown = usize::from(rows).min(lanes.len());
    let spare = rows - shown as u16;
    let with_times = spare > 0;
    let heights = heights(&lanes[..shown], spare.saturating_sub(1));
    let at = Rect { x: area.x + 1 + NAME, width: graph, y: area.y + 1, height: 0 };
    let drawn = LaneGraph::new(data, tool, cx, at);
    let mut y = at.y;
    for (lane, height) in lanes.into_iter().zip(heights) {
        let rows = Rect { y, height, ..area };
        drawn.lane(lane, tool, cx, rows, buf);
        y += height;
    }
    drawn.playhead(data, cx, Rect { y: at.y, height: y - at.y, ..at }, buf);
    if with_times {
        drawn.times(data, cx, Rect { y, height: 1, ..at }, buf);
    }
}

/// The rows of each lane: with so many rows to spare the graphs become higher, those above first.
fn heights(lanes: &[Lane], spare: u16) -> Vec<u16> {
    let has_graph = |lane: &Lane| !matches!(lane, Lane::Breaker | Lane::Window);
    let graphs = lanes.iter().filter(|lane| has_graph(lane)).count() as u16;
    let (each, more) = (spare / graphs.max(1), spare % graphs.max(1));
    let mut nth = 0;
    let height = |lane: &Lane| {
        if !has_graph(lane) {
            return 1;
        }
        nth += 1;
        (1 + each + u16::from(nth <= more)).min(MAX_ROWS)
    };
    lanes.iter().map(height).collect()
}

/// Draws the name of the tool, the rule of its breaker, and the heads of the figures.
fn heading(data: &RunData, tool: &ToolRow, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
    let theme = cx.theme;
    let (dim, border) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Border));
    let heads = FIGURES[0] + FIGURES[1];
    let left = Rect { width: row.width.saturating_sub(heads + 1), ..row };
    let mut pen = Pen::new(buf, left, cx.glyphs);
    pen.glyphs(Glyph::Horizontal, 2, border).space(1);
    pen.put(tool.name().as_str(), theme.style(StyleRole::Title)).space(1);
    let rule = breaker_rule(tool, data.time(cx.now));
    if pen.fits(columns(&rule) + columns("over time") + 3) {
        pen.put("over time", dim).space(2);
    }
    if pen.fits(columns(&rule) + 1) {
        pen.put(&rule, dim).space(1);
    }
    let rest = pen.left();
    pen.glyphs(Glyph::Horizontal, rest, border);
    let right = Rect { x: left.right(), width: heads.min(row.width), ..row };
    let mut pen = Pen::new(buf, right, cx.glyphs);
    let present = match data.shown().progress.is_live() {
        _ if data.is_scrubbed() => "then",
        true => "now",
        false => "end",
    };
    pen.right_aligned(present, FIGURES[0], dim).right_aligned("scale", FIGURES[1], dim);
}

/// The tool in each half of a column: a cell of dots has two of them.
struct LaneGraph {
    halves: Vec<Option<ToolWindow>>,
    track: TimeTrack,
    present: ToolWindow,
    now: Elapsed,
}

impl LaneGraph {
    fn new(data: &RunData, tool: &ToolRow, cx: &DrawContext, at: Rect) -> Self {
        let now = data.time(cx.now);
        let (head, quiet) = (data.head_time(cx.now), quiet_times(data, tool));
        let track = TimeTrack::with_quiet(data, head, at, &quiet);
        let halves = track.halves();
        let mut from = track.from;
        let windows = (0..at.width * 2).map(|nth| {
            let until = halves.column_end(nth);
            let window = window(data, tool, from, until, now);
            from = until;
            window
        });
        let time = Elapsed::from_duration(data.shown().progress.run_time(now));
        let present = tool.timeline.between(present_from(time), time, time);
        Self { halves: windows.collect(), track, present, now }
    }

    /// Draws a lane: its name, its graph, its present figure and the top of its scale.
    fn lane(&self, lane: Lane, tool: &ToolRow, cx: &DrawContext, rows: Rect, buf: &mut Buffer) {
        let theme = cx.theme;
        let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
        Pen::new(buf, line(rows, 0), cx.glyphs).space(1).cell(lane.name(), NAME, dim);
        let at = Rect { y: rows.y, height: rows.height, ..self.track.track };
        let right = Rect { x: at.right(), width: rows.right().saturating_sub(at.right()), ..rows };
        if lane == Lane::Breaker {
            self.breaker(tool, cx, at, buf);
            let sign = sign(cx, tool);
            let text = state_text(tool, sign, self.now);
            let mut pen = Pen::new(buf, line(right, 0), cx.glyphs);
            pen.right_aligned(&text, FIGURES[0], sign.style);
            return;
        }
        if lane == Lane::Window {
            return window_lane(tool, cx, self.now, at, right, buf);
        }
        let values: Vec<Option<f64>> =
            self.halves.iter().map(|it| lane.value(it.as_ref()?)).collect();
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let scale = lane.scale(most);
        let dots = u32::from(rows.height) * 4;
        let height = |value: Option<f64>| match value {
            Some(value) if value > 0.0 => ((value / scale * f64::from(dots)).round() as u32).max(1),
            _ => 0,
        };
        let style = theme.style(lane.role());
        for row in 0..rows.height {
            let below = u32::from(rows.height - 1 - row) * 4;
            let within = |value| height(value).saturating_sub(below).min(4) as u8;
            let mut pen = Pen::new(buf, line(at, row), cx.glyphs);
            for pair in values.chunks(2) {
                let of = |nth: usize| within(pair.get(nth).copied().flatten());
                let cell = cx.glyphs.dots(of(0), of(1));
                pen.put(cell.encode_utf8(&mut [0; 4]), style);
            }
        }
        if lane == Lane::Errors {
            self.openings(tool, cx, line(at, 0), buf);
        }
        let mut pen = Pen::new(buf, line(right, 0), cx.glyphs);
        let present = lane.value(&self.present);
        let text = match present {
            Some(value) if lane == Lane::Latency && value > 0.0 => {
                format!("{} {}", cx.glyphs.symbol(Glyph::Estimate), lane.text(value))
            }
            Some(value) => lane.text(value),
            None => cx.glyphs.symbol(Glyph::NotYet).to_owned(),
        };
        pen.right_aligned(&text, FIGURES[0], plain).right_aligned(
            &lane.text(scale),
            FIGURES[1],
            dim,
        );
    }

    /// Draws the states of the breaker.
    fn breaker(&self, tool: &ToolRow, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
        let mut pen = Pen::new(buf, line(row, 0), cx.glyphs);
        for stage in self.stages(tool) {
            let Some(stage) = stage else {
                pen.space(1);
                continue;
            };
            let StateSign { glyph, style, .. } = cx.theme.breaker(stage);
            let glyph = if stage == BreakerStage::Closed { Glyph::Horizontal } else { glyph };
            pen.glyph(glyph, style);
        }
    }

    /// The state of the breaker in most of each column; `None` after the playhead.
    fn stages(&self, tool: &ToolRow) -> Vec<Option<BreakerStage>> {
        let moves = &tool.history;
        let mut from = self.track.from;
        let mut before = None;
        let of_column = |(nth, pair): (u16, &[Option<ToolWindow>])| {
            let until = self.track.column_end(nth).min(self.now);
            let start = std::mem::replace(&mut from, until);
            // Only the latest state changes are kept; the states before them are known less exactly.
            // A pause counts nothing, and the state lasts.
            let known = ToolWindow::stage(pair.iter().flatten()).or(before);
            let known = known.filter(|_| start < self.now)?;
            if moves.front().is_none_or(|first| until <= first.at) {
                before = Some(known);
                return before;
            }
            let first = moves.partition_point(|it| it.at <= start);
            let last = moves.partition_point(|it| it.at < until);
            let at_start = first.checked_sub(1).and_then(|nth| moves.get(nth)).map(|it| it.to);
            let mut stage = at_start.or(before).unwrap_or(known);
            let mut since = start;
            let mut longest = (Duration::ZERO, stage);
            for (at, to) in moves.range(first..last.max(first)).map(|it| (it.at, it.to)) {
                longest = longer(longest, (at.since(since), stage));
                (since, stage) = (at, to);
            }
            before = Some(longer(longest, (until.since(since), stage)).1);
            before
        };
        (0..).zip(self.halves.chunks(2)).map(of_column).collect()
    }

    /// Marks where the errors opened the breaker.
    fn openings(&self, tool: &ToolRow, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
        let style = cx.theme.style(StyleRole::Refused);
        let opens = |it: &&BreakerMove| it.to == BreakerStage::Open && it.why.is_failure();
        for opened in tool.history.iter().filter(opens).filter(|it| it.at >= self.track.from) {
            let at = Rect { x: self.track.column(opened.at), width: 1, ..row };
            Pen::new(buf, at, cx.glyphs).glyph(Glyph::Refused, style);
        }
    }

    /// Draws the playhead through all lanes.
    fn playhead(&self, data: &RunData, cx: &DrawContext, rows: Rect, buf: &mut Buffer) {
        if !data.is_scrubbed() {
            return;
        }
        let at = Rect { x: self.track.column(self.now), width: 1, ..rows };
        for row in 0..rows.height {
            let style = cx.theme.style(StyleRole::Playhead);
            Pen::new(buf, line(at, row), cx.glyphs).glyph(Glyph::Playhead, style);
        }
    }

    /// Draws the times of the axis.
    fn times(&self, data: &RunData, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
        let dim = cx.theme.style(StyleRole::Dim);
        let run = &data.world().progress;
        let (from, end) = (self.track.from, self.track.end);
        let apart = run.active_between(from, end) / 2;
        let clock = |at: Elapsed| format::axis_time(run.run_time(at), apart);
        let (start, last) = (clock(from), clock(end));
        let mut pen = Pen::new(buf, row, cx.glyphs);
        pen.put(&start, dim);
        let rest = pen.left();
        pen.right_aligned(&last, rest, dim);
        // The labels leave the clocks at both ends.
        let (before, after) = (columns(&start) as u16 + 1, columns(&last) as u16 + 1);
        let width = row.width.saturating_sub(before + after);
        let between = Rect { x: row.x + before, width, ..row };
        let middle = clock(self.track.column_end((row.width / 2).saturating_sub(1)));
        let dash = cx.glyphs.symbol(Glyph::TrackEmpty);
        let mut folded = false;
        for (at, length) in self.track.labels() {
            let length = time::duration_text(length);
            // Quiet times are folded only in runs without a pause.
            let text = match run.pauses().iter().next() {
                Some(_) => format!("{dash}{length}{dash}"),
                None => format!("{length} calm"),
            };
            let width = at.len().max(columns(&text)) as u16;
            let place = Rect { x: row.x + at.start, width, ..row }.intersection(between);
            Pen::new(buf, place, cx.glyphs).cell(&text, place.width, dim);
            folded = true;
        }
        if row.width >= 40 && !folded {
            let at = Rect { x: row.x + row.width / 2, width: columns(&middle) as u16, ..row };
            Pen::new(buf, at, cx.glyphs).put(&middle, dim);
        }
    }
}

/// Draws the calls in the window of the breaker, the newest last, and the rate that is closest to its
/// limit. Each cell is a call, not a part of the time.
fn window_lane(
    tool: &ToolRow,
    cx: &DrawContext,
    now: Elapsed,
    at: Rect,
    right: Rect,
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let (Some(row), Some(figure)) = (&tool.window, window_figure(tool, now)) else {
        Pen::new(buf, line(at, 0), cx.glyphs).put("counts again once it is closed", dim);
        return;
    };
    let WindowFigure { counts, is_slow, part, limit } = figure;
    let limits = tool.head.limits.breaker.and_then(|breaker| breaker.window);
    let least = limits.map_or(0, |limits| limits.min_calls);
    let decides = counts.calls >= least || tool.breaker != BreakerStage::Closed;
    let words = match counts.slow {
        _ if !decides => format!("{} of the {least} calls to decide", counts.calls),
        0 => format!("{} of {} failed", counts.failures, counts.calls),
        slow => format!("{} of {} failed, {slow} slow", counts.failures, counts.calls),
    };
    let room = usize::from(at.width).saturating_sub(columns(&words) + 2);
    let all = counts.calls as usize;
    let cells = if all <= room || room < MIN_CELLS { all.min(at.width.into()) } else { room };
    let mut pen = Pen::new(buf, line(at, 0), cx.glyphs);
    let gap = if cells > 0 { 2 } else { 0 };
    for mark in row.marks().iter().skip(row.marks().len().saturating_sub(cells)) {
        let sign = cx.theme.mark(*mark);
        pen.glyph(sign.glyph, sign.style);
    }
    if pen.fits(columns(&words) + usize::from(gap)) {
        pen.space(gap).put(&words, dim);
    }
    let share = f64::from(part) / f64::from(counts.calls.max(1));
    let role = match (tool.breaker, is_slow) {
        _ if !decides => StyleRole::Dim,
        (BreakerStage::Closed, _) if !limit.is_reached(part, counts.calls.max(1)) => {
            StyleRole::Text
        }
        (_, true) => StyleRole::Retry,
        (_, false) => StyleRole::Failed,
    };
    let kind = if is_slow { " slow" } else { "" };
    let text = match counts.calls {
        0 => cx.glyphs.symbol(Glyph::NotYet).to_owned(),
        _ => format!("{}{kind}", percent_text((share * 100.0 + 0.001).floor() / 100.0)),
    };
    let mut pen = Pen::new(buf, line(right, 0), cx.glyphs);
    pen.right_aligned(&text, FIGURES[0], cx.theme.style(role)).right_aligned(
        &percent_text(limit.share()),
        FIGURES[1],
        dim,
    );
}

/// The long times of a run that has ended in which nothing about a tool mattered: its breaker was closed
/// and no attempt failed. They are folded, so that the rest has the columns.
fn quiet_times(data: &RunData, tool: &ToolRow) -> Vec<(Elapsed, Elapsed)> {
    let progress = &data.world().progress;
    // The times of a tool are without pauses, those of the axis with them.
    let Some(end) = progress.closed.as_ref().map(|_| progress.at) else { return Vec::new() };
    if progress.pauses().iter().next().is_some() {
        return Vec::new();
    }
    let part = (end.0 / QUIET_PARTS).max(1);
    let is_calm = |nth: u64| {
        let (from, until) = (Elapsed(nth * part), Elapsed((nth + 1) * part));
        let window = tool.timeline.between(from, until, end);
        let stage = ToolWindow::stage(std::iter::once(&window));
        window.error_rate().is_none_or(|rate| rate == 0.0)
            && stage.is_none_or(|stage| stage == BreakerStage::Closed)
    };
    let mut quiet = Vec::new();
    let mut calm_from = None;
    for nth in 0..=QUIET_PARTS {
        if nth < QUIET_PARTS && is_calm(nth) {
            calm_from.get_or_insert(nth);
            continue;
        }
        // A part at either end stays, so that the calm is seen.
        let Some(first) = calm_from.take() else { continue };
        let (from, until) = (Elapsed((first + 1) * part), Elapsed(nth.saturating_sub(1) * part));
        let is_all = first == 0 && nth == QUIET_PARTS;
        if !is_all && until.since(from) >= MIN_QUIET && until.0 - from.0 >= end.0 / 4 {
            quiet.push((from, until));
        }
    }
    quiet
}

/// The state with the longer time; the first of two equal ones.
fn longer(a: (Duration, BreakerStage), b: (Duration, BreakerStage)) -> (Duration, BreakerStage) {
    if b.0 > a.0 { b } else { a }
}
