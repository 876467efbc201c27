//! The lanes of an observed run: a row for each agent and node, with a bar for each of its turns. A mark at the
//! start of a bar says what led to it.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{cells, state_role};
use crate::base::time::duration_text;
use crate::log::event::{Elapsed, SpanId};
use crate::log::facts::observed::{SpanEnd, SpanRole};
use crate::log::world::World;
use crate::log::world::observed::Observed;
use crate::log::world::turns::{Fork, Lane, Led, Shape, Turn};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::layout::line;
use crate::screen::list::{self, keep_in_view, moved_index};
use crate::screen::run::data::RunData;
use crate::screen::text::{Pen, elide};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// What the shape depends on: the numbers of spans, of those that moved, and of those that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    spans: usize,
    moved: u64,
    ended: u64,
    is_closed: bool,
}

/// The shape of the run as far as it was read, and the rows in view.
#[derive(Debug, Default)]
pub(super) struct ActorLanes {
    shape: Arc<Shape>,
    known: Known,
    top: usize,
}

/// With more turns the shape of a live run is made again after a change of one percent, not after each event.
const MANY_TURNS: usize = 2_000;

/// Maximum width of names of actors, in columns.
const MAX_NAME: u16 = 26;

impl ActorLanes {
    /// The shape of the run. That of a long live run may be a little old.
    pub(super) fn shape(&mut self, world: &World, observed: &Observed) -> Arc<Shape> {
        let is_closed = world.progress.closed.is_some();
        let now = Known {
            spans: observed.spans.len(),
            moved: observed.moved,
            ended: observed.ended,
            is_closed,
        };
        let change =
            now.spans.abs_diff(self.known.spans) as u64 + now.ended.abs_diff(self.known.ended);
        let is_small = self.shape.turns.len() > MANY_TURNS && change < now.ended / 100;
        if now != self.known && (!is_small || is_closed) {
            self.shape = Arc::new(Shape::of(observed, world));
            self.known = now;
        }
        Arc::clone(&self.shape)
    }

    /// The first lane in view, and the number of lanes that fit.
    fn window(&self, shape: &Shape, selected: Option<usize>, area: Rect) -> (usize, usize) {
        let rows = usize::from(area.height.saturating_sub(2));
        let last = shape.lanes.len().saturating_sub(rows);
        let top = self.top.min(last);
        (selected.map_or(top, |row| keep_in_view(top, row, rows, shape.lanes.len())), rows)
    }

    /// The span of the turn that a key selects: up and down change the actor, left and right the turn.
    pub(super) fn after_action(
        &mut self,
        shape: &Shape,
        selected: Option<usize>,
        action: Action,
        area: Rect,
    ) -> Option<SpanId> {
        let turn = selected.and_then(|at| shape.turns.get(at));
        let (from, row) =
            (turn.map(|turn| turn.from).unwrap_or_default(), turn.map(|turn| turn.lane));
        let rows = usize::from(area.height.saturating_sub(2)).max(1);
        let next = match (action, selected, turn) {
            (Action::Left | Action::Right, Some(at), Some(turn)) => {
                let lane = shape.lanes.get(turn.lane)?;
                let place = lane.turns.iter().position(|other| *other == at)?;
                let next = match action {
                    Action::Left => place.checked_sub(1)?,
                    _ => place + 1,
                };
                *lane.turns.get(next)?
            }
            _ => {
                let row = match row {
                    None => 0,
                    Some(_) => moved_index(action, row, shape.lanes.len(), rows)?,
                };
                // The actor's turn that starts nearest in time.
                let turns = &shape.lanes.get(row)?.turns;
                let distance = |at: &&usize| {
                    let began = shape.turns.get(**at).map(|turn| turn.from).unwrap_or_default();
                    began.0.abs_diff(from.0)
                };
                *turns.iter().min_by_key(distance)?
            }
        };
        let turn = shape.turns.get(next)?;
        (self.top, _) = self.window(shape, Some(turn.lane), area);
        Some(turn.span)
    }

    /// Scrolls by this many rows.
    pub(super) fn scroll(&mut self, shape: &Shape, selected: Option<usize>, by: isize, area: Rect) {
        let (top, rows) = self.window(shape, selected, area);
        let last = shape.lanes.len().saturating_sub(rows);
        self.top = top.saturating_add_signed(by).min(last);
    }

    /// The span of the turn at a cell: of the lane in this row, the turn that starts nearest to the column.
    pub(super) fn at(
        &self,
        shape: &Shape,
        selected: Option<usize>,
        (col, row): (u16, u16),
        (area, axis): (Rect, (Elapsed, Elapsed)),
    ) -> Option<SpanId> {
        let (top, rows) = self.window(shape, selected, area);
        let nth = usize::from((row - area.y).checked_sub(1)?);
        let lane = shape.lanes.get(top + nth).filter(|_| nth < rows)?;
        let widths = LaneColumns::of(shape, area);
        let cell = col.saturating_sub(area.x + widths.bars_at);
        let distance = |at: &&usize| {
            let from = shape.turns.get(**at).map(|turn| turn.from).unwrap_or_default();
            cells(widths.bars, axis, (from, from)).0.abs_diff(cell)
        };
        let turn = lane.turns.iter().min_by_key(distance)?;
        shape.turns.get(*turn).map(|turn| turn.span)
    }
}

struct LaneColumns {
    name: u16,
    bars_at: u16,
    bars: u16,
}

impl LaneColumns {
    fn of(shape: &Shape, area: Rect) -> Self {
        let longest = shape.lanes.iter().map(|lane| {
            let name = crate::words::measure::columns(&lane.name) as u16;
            let times = if lane.turns.len() > 1 { 4 } else { 0 };
            name.saturating_add(lane.depth.min(4) * 2 + times)
        });
        let most = MAX_NAME.min(area.width / 3);
        let name = longest.max().unwrap_or(0).clamp(4, most.max(4));
        // Before the name are the cursor, the state and a blank.
        let bars_at = 3 + name + 1;
        Self { name, bars_at, bars: area.width.saturating_sub(bars_at) }
    }
}

/// The lanes in view, such as `1-11 of 12`.
pub(super) fn aside(
    lanes: &ActorLanes,
    shape: &Shape,
    selected: Option<usize>,
    area: Rect,
) -> String {
    let (top, rows) =
        lanes.window(shape, selected.and_then(|at| Some(shape.turns.get(at)?.lane)), area);
    list::part_in_view(&(top..(top + rows).min(shape.lanes.len())), shape.lanes.len())
}

/// Draws the lanes. `axis`: the times at its ends.
pub(super) fn render(
    lanes: &ActorLanes,
    shape: &Shape,
    (data, selected, axis): (&RunData, Option<usize>, (Elapsed, Elapsed)),
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (world, theme) = (data.shown(), cx.theme);
    let is_live = world.progress.is_live();
    let Some(observed) = world.observed() else { return };
    let widths = LaneColumns::of(shape, area);
    let dim = theme.style(StyleRole::Dim);
    draw_axis(cx, &widths, area, world, axis, buf);
    let row = selected.and_then(|at| shape.turns.get(at)).map(|turn| turn.lane);
    let (top, rows) = lanes.window(shape, row, area);
    let lit = shape.neighbours(selected);
    let now = data.drawn_to(cx.now);
    for (nth, (place, lane)) in shape.lanes.iter().enumerate().skip(top).take(rows).enumerate() {
        let here = line(area, 1 + nth as u16);
        let mut pen = list::row(cx, here, row == Some(place), buf);
        // A failure is shown before the state of the last turn.
        let spans = lane.turns.iter().filter_map(|at| observed.span(shape.turns.get(*at)?.span));
        let failed = spans.clone().find(|span| span.end == Some(SpanEnd::Failed));
        if let Some(span) = failed.or_else(|| spans.clone().next_back()) {
            let (glyph, role) = state_role(span, is_live);
            pen.glyph(glyph, theme.style(role)).space(1);
        }
        let indent = (lane.depth.min(4) * 2).min(widths.name.saturating_sub(3));
        let is_lit = lane.turns.iter().any(|at| lit.contains(at));
        let style = match lane.role {
            _ if is_lit => StyleRole::Notice,
            SpanRole::Agent => StyleRole::Strong,
            _ => StyleRole::Text,
        };
        let times = match lane.turns.len() {
            1 => String::new(),
            turns => format!(" x{turns}"),
        };
        let room = (widths.name - indent).saturating_sub(times.len() as u16);
        let name = elide(&lane.name, usize::from(room), cx.glyphs);
        pen.space(indent).put(&name, theme.style(style)).put(&times, dim);
        let start = Rect { x: here.x + widths.bars_at, width: widths.bars, ..here };
        let mut pen = Pen::new(buf, start, cx.glyphs);
        for cell in lane_cells(lane, shape, (&widths, axis, now), |at, turn| {
            match (selected == Some(at), lit.contains(&at)) {
                (true, _) => StyleRole::Title,
                (false, true) => StyleRole::Notice,
                (false, false) => observed
                    .span(turn.span)
                    .map_or(StyleRole::Text, |span| state_role(span, is_live).1),
            }
        }) {
            match cell {
                Some((glyph, role)) => pen.glyph(glyph, theme.style(role)),
                None => pen.space(1),
            };
        }
    }
    let foot = line(area, area.height.saturating_sub(1));
    let mut pen = Pen::new(buf, foot, cx.glyphs);
    match selected {
        Some(at) => pen.put(&sentence(shape, at, observed), dim),
        None => pen.put(&legend(shape, cx), dim),
    };
}

/// What the cells of a lane show: the bars of its turns, and over them their marks, because bars may begin in the same
/// cell. `role`: how a turn is painted.
fn lane_cells(
    lane: &Lane,
    shape: &Shape,
    (widths, axis, now): (&LaneColumns, (Elapsed, Elapsed), Elapsed),
    role: impl Fn(usize, &Turn) -> StyleRole,
) -> Vec<Option<(Glyph, StyleRole)>> {
    let mut shown = vec![None; usize::from(widths.bars)];
    let mut marks = Vec::new();
    for at in &lane.turns {
        let Some(turn) = shape.turns.get(*at) else { continue };
        let until = turn.until.unwrap_or_else(|| now.max(turn.from));
        let (from, until) = cells(widths.bars, axis, (turn.from, until));
        let role = role(*at, turn);
        if let Some(bar) = shown.get_mut(usize::from(from)..usize::from(until)) {
            bar.fill(Some((Glyph::BarFull, role)));
        }
        marks.extend(mark(turn).map(|mark| (from, (mark, role))));
    }
    for (at, mark) in marks {
        if let Some(cell) = shown.get_mut(usize::from(at)) {
            *cell = Some(mark);
        }
    }
    shown
}

/// Draws the axis of time above the bars.
fn draw_axis(
    cx: &DrawContext,
    widths: &LaneColumns,
    area: Rect,
    world: &World,
    axis: (Elapsed, Elapsed),
    buf: &mut Buffer,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    let time = |at: Elapsed| format::time_in_run(world.progress.run_time(at));
    let at =
        Rect { x: area.x + widths.bars_at.min(area.width), width: widths.bars, ..line(area, 0) };
    let (from, until) = (time(axis.0), time(axis.1));
    let mut pen = Pen::new(buf, at, cx.glyphs);
    pen.put(&from, dim);
    let room = widths.bars.saturating_sub(from.len() as u16);
    if usize::from(room) > until.len() + 2 {
        let middle = room - until.len() as u16 - 2;
        pen.space(1).glyphs(Glyph::TrackEmpty, middle, dim).space(1).put(&until, dim);
    }
}

/// The glyph at the start of a turn. `None`: it is the first turn, or the one after another; or the first turn of its
/// fork has the glyph.
fn mark(turn: &Turn) -> Option<Glyph> {
    match (turn.led, turn.fork) {
        (Led::Handoff, _) => Some(Glyph::HandedOver),
        (Led::Consult, _) => Some(Glyph::Called),
        (_, Fork::First) => Some(Glyph::Fork),
        (_, Fork::More) => None,
        (Led::Next, Fork::No) if turn.before.len() > 1 => Some(Glyph::Join),
        (_, Fork::No) => turn.is_again.then_some(Glyph::Retry),
    }
}

/// The meanings of the marks in the picture.
fn legend(shape: &Shape, cx: &DrawContext) -> String {
    let mut known: Vec<Glyph> = Vec::new();
    for mark in shape.turns.iter().filter_map(mark) {
        if !known.contains(&mark) {
            known.push(mark);
        }
    }
    let meanings = [
        (Glyph::Fork, "fork"),
        (Glyph::Join, "join"),
        (Glyph::HandedOver, "handoff"),
        (Glyph::Called, "called"),
        (Glyph::Retry, "again"),
    ];
    let known = meanings.iter().filter(|(glyph, _)| known.contains(glyph));
    let mut parts: Vec<String> =
        known.map(|(glyph, meaning)| format!("{} {meaning}", cx.glyphs.symbol(*glyph))).collect();
    if shape.turns.iter().any(|turn| turn.by_time) {
        parts.push("order by time".to_owned());
    }
    if shape.left_out > 0 {
        parts.push(format!("{} left out", format::count_noun(shape.left_out as u64, "turn")));
    }
    parts.join("   ")
}

/// Maximum number of names in a sentence.
const MAX_NAMED: usize = 3;

/// A turn in words: what led to it, and how long it took.
fn sentence(shape: &Shape, place: usize, observed: &Observed) -> String {
    let Some(turn) = shape.turns.get(place) else { return String::new() };
    let names = |turns: &mut dyn Iterator<Item = usize>| {
        let lanes = turns.filter_map(|at| shape.lanes.get(shape.turns.get(at)?.lane));
        let mut counted: Vec<(&str, u32)> = Vec::new();
        for lane in lanes {
            match counted.iter_mut().find(|(name, _)| *name == &*lane.name) {
                Some((_, count)) => *count += 1,
                None => counted.push((&lane.name, 1)),
            }
        }
        let more = counted.len().saturating_sub(MAX_NAMED);
        let named = counted.iter().take(MAX_NAMED).map(|(name, count)| match count {
            1 => (*name).to_owned(),
            count => format!("{count} {name}"),
        });
        let mut names: Vec<String> = named.collect();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join(", ")
    };
    let before = names(&mut turn.before.iter().copied());
    let after = names(&mut shape.after(place));
    let led = match turn.led {
        _ if before.is_empty() => String::new(),
        Led::Start => String::new(),
        Led::Handoff => format!(", handed over by {before}"),
        Led::Consult => format!(", called by {before}"),
        Led::Next => format!(", after {before}"),
    };
    let lane = shape.lanes.get(turn.lane);
    let name = lane.map(|lane| Arc::clone(&lane.name)).unwrap_or_default();
    let nth = lane.and_then(|lane| lane.turns.iter().position(|at| *at == place)).unwrap_or(0) + 1;
    let of = lane.map_or(1, |lane| lane.turns.len());
    let nth = if of > 1 { format!(" {nth} of {of}") } else { String::new() };
    let has_failed = observed.span(turn.span).is_some_and(|it| it.end == Some(SpanEnd::Failed));
    let state = if has_failed { " failed after" } else { "" };
    let took = turn.until.map(|until| format!("{state} {}", duration_text(until.since(turn.from))));
    let by_time = if turn.by_time { " (by time)" } else { "" };
    let led_to = if after.is_empty() { String::new() } else { format!("; then {after}") };
    format!("{name}{nth}{}{led}{by_time}{led_to}", took.unwrap_or_default())
}
