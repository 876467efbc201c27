//! The lanes of an observed run: a row for each agent and node, with a bar for each of its turns. A mark at the
//! start of a bar says what led to it.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{cells, state_role};
use crate::base::time::duration_text;
use crate::log::event::{Elapsed, SpanId};
use crate::log::facts::observed::SpanRole;
use crate::log::world::World;
use crate::log::world::observed::Observed;
use crate::log::world::turns::{Led, Shape};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::layout::line;
use crate::screen::list::{self, keep_in_view, moved_index};
use crate::screen::run::data::RunData;
use crate::screen::text::{Pen, elide};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// What the shape depends on: numbers of spans, of those that moved, and of those that have ended.
type Known = (usize, u64, u64);

/// The shape of the run as far as it was read, and the rows in view.
#[derive(Debug, Default)]
pub(super) struct ActorLanes {
    shape: Arc<Shape>,
    known: Known,
    top: usize,
}

/// Turns from which on the shape is made again only after one in a hundred more.
const MANY_TURNS: usize = 2_000;

/// Widest names of actors, in columns.
const MAX_NAME: u16 = 26;

impl ActorLanes {
    /// The shape of the run.
    pub(super) fn shape(&mut self, world: &World, observed: &Observed) -> Arc<Shape> {
        let closed = u64::from(world.progress.closed.is_some());
        let now = (observed.spans.len(), observed.moved, observed.ended + closed);
        let (known, turns) = (self.known.0 as u64 + self.known.2, self.shape.turns.len());
        let grown = (now.0 as u64 + now.2).saturating_sub(known);
        let is_worth =
            turns < MANY_TURNS || grown > known / 100 || closed == 1 || now.0 < self.known.0;
        if now != self.known && is_worth {
            self.shape = Arc::new(Shape::of(observed, world));
            self.known = now;
        }
        Arc::clone(&self.shape)
    }

    /// The first lane in view, and how many fit.
    fn window(&self, shape: &Shape, selected: Option<usize>, area: Rect) -> (usize, usize) {
        let rows = usize::from(area.height.saturating_sub(2));
        let last = shape.lanes.len().saturating_sub(rows);
        let top = self.top.min(last);
        (selected.map_or(top, |row| keep_in_view(top, row, rows, shape.lanes.len())), rows)
    }

    /// Moves among the turns: up and down among the actors, left and right in time. Returns the span of the turn.
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
                // The turn of that actor that is nearest in time.
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

    /// The turn of the row at this place of the pane, the one that is nearest to the column.
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
        let bars_at = 2 + name + 1;
        Self { name, bars_at, bars: area.width.saturating_sub(bars_at) }
    }
}

/// The turn that a span is, or is in.
pub(super) fn turn_of(shape: &Shape, span: Option<SpanId>, world: &World) -> Option<usize> {
    let mut at = span?;
    for _ in 0..64 {
        if let Some(place) = shape.turns.iter().position(|turn| turn.span == at) {
            return Some(place);
        }
        at = world.spans.get(at).map(|span| span.parent).filter(|parent| *parent != SpanId::RUN)?;
    }
    None
}

/// The rows in view, as a part of all.
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

/// Draws the lanes. `axis`: the times at its ends; `now`: until when open turns last.
pub(super) fn render(
    lanes: &ActorLanes,
    shape: &Shape,
    (data, selected, axis): (&RunData, Option<usize>, (Elapsed, Elapsed)),
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let (world, theme) = (data.shown(), cx.theme);
    let Some(observed) = world.observed() else { return };
    let widths = LaneColumns::of(shape, area);
    let dim = theme.style(StyleRole::Dim);
    draw_axis(cx, &widths, area, world, axis, buf);
    let row = selected.and_then(|at| shape.turns.get(at)).map(|turn| turn.lane);
    let (top, rows) = lanes.window(shape, row, area);
    let lit: Vec<usize> = match selected.and_then(|at| Some((at, shape.turns.get(at)?))) {
        Some((at, turn)) => turn.before.iter().copied().chain(shape.after(at)).collect(),
        None => Vec::new(),
    };
    let now = data.drawn_to(cx.now);
    for (nth, (place, lane)) in shape.lanes.iter().enumerate().skip(top).take(rows).enumerate() {
        let here = line(area, 1 + nth as u16);
        let mut pen = list::row(cx, here, row == Some(place), buf);
        let last = lane.turns.last().and_then(|at| shape.turns.get(*at));
        let span = last.and_then(|turn| observed.span(turn.span));
        if let Some(span) = span {
            let (glyph, role) = state_role(span, world.progress.is_live());
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
        let start = here.x + widths.bars_at;
        // The marks come after all bars, which may begin in the same cell.
        for is_mark in [false, true] {
            for at in &lane.turns {
                let Some(turn) = shape.turns.get(*at) else { continue };
                let Some(span) = observed.span(turn.span) else { continue };
                let until = turn.until.unwrap_or_else(|| now.max(turn.from));
                let (from, until) = cells(widths.bars, axis, (turn.from, until));
                let style = theme.style(match (selected == Some(*at), lit.contains(at)) {
                    (true, _) => StyleRole::Title,
                    (false, true) => StyleRole::Notice,
                    (false, false) => state_role(span, world.progress.is_live()).1,
                });
                let bar = Rect { x: start + from, width: until - from, ..here };
                let mut pen = Pen::new(buf, bar, cx.glyphs);
                // Of those of one fork the first says it.
                let shown = mark(shape, *at).filter(|_| !is_of_fork_before(shape, *at));
                match (is_mark, shown) {
                    (false, _) => {
                        pen.glyphs(Glyph::BarFull, until - from, style);
                    }
                    (true, Some(mark)) => {
                        pen.glyph(mark, style);
                    }
                    (true, None) => {}
                }
            }
        }
    }
    let foot = line(area, area.height.saturating_sub(1));
    let mut pen = Pen::new(buf, foot, cx.glyphs);
    match selected {
        Some(at) => pen.put(&sentence(shape, at), dim),
        None => pen.put(&legend(shape, cx), dim),
    };
}

/// The scale above the bars: the times at its two ends.
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

/// What led to a turn, as the glyph at its start. `None`: it begins, or the one before it has ended.
fn mark(shape: &Shape, place: usize) -> Option<Glyph> {
    let turn = shape.turns.get(place)?;
    match turn.led {
        Led::Handoff => Some(Glyph::HandedOver),
        Led::Consult => Some(Glyph::Called),
        Led::Next if turn.before.len() > 1 && !turn.is_fork => Some(Glyph::Join),
        _ if turn.is_fork => Some(Glyph::Fork),
        _ if shape.is_again(place) => Some(Glyph::Retry),
        _ => None,
    }
}

/// Whether an earlier turn in the same lane is one of the same fork.
fn is_of_fork_before(shape: &Shape, place: usize) -> bool {
    let Some(turn) = shape.turns.get(place).filter(|turn| turn.is_fork) else { return false };
    let lane = shape.lanes.get(turn.lane).map(|lane| &*lane.turns).unwrap_or_default();
    let earlier = lane.iter().rev().find(|at| **at < place).and_then(|at| shape.turns.get(*at));
    earlier.is_some_and(|earlier| earlier.is_fork && earlier.before == turn.before)
}

/// The marks that the picture has, with their meaning.
fn legend(shape: &Shape, cx: &DrawContext) -> String {
    let mut known: Vec<Glyph> = Vec::new();
    for at in 0..shape.turns.len() {
        if let Some(mark) = mark(shape, at).filter(|mark| !known.contains(mark)) {
            known.push(mark);
        }
    }
    let meanings = [
        (Glyph::Fork, "with others"),
        (Glyph::Join, "after several"),
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

/// Most actors that a sentence names.
const MAX_NAMED: usize = 3;

/// A turn in words: what led to it, and how long it took.
fn sentence(shape: &Shape, place: usize) -> String {
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
    let took = turn.until.map(|until| format!(" {}", duration_text(until.since(turn.from))));
    let by_time = if turn.by_time { " (by time)" } else { "" };
    let led_to = if after.is_empty() { String::new() } else { format!("; then {after}") };
    format!("{name}{nth}{}{led}{by_time}{led_to}", took.unwrap_or_default())
}
