//! The view of an observed run: the tree of its spans with a bar for each, what is known of the selected one or
//! of all, then the diagram of its agents and the transcript, which all patterns of agents show.

mod lanes;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::lanes::ActorLanes;
use super::agents::{add_outcome, transcript};
use super::team::TeamView;
use super::{PaneAt, PaneTitle, TrackRow, View, follow_note, pane_title};
use crate::base::time::duration_text;
use crate::log::event::{Elapsed, SpanId};
use crate::log::facts::observed::{SpanEnd, SpanRole};
use crate::log::world::agents::LineKind;
use crate::log::world::available::Unavailable;
use crate::log::world::observed::{Observed, ObservedSpan};
use crate::log::world::turns::Shape;
use crate::log::world::{RunState, World};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::layout::line;
use crate::screen::list;
use crate::screen::list::{Column, RowCursor, heads, part_in_view};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::{InspectTarget, WrappedDocument};
use crate::screen::run::layout::{EndedSize, Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::run::pane_text::{MAX_ROWS, rows_scrolled, text_area};
use crate::screen::scroll::{Scroll, WrappingLines, draw_scrolled};
use crate::screen::text::Pen;
use crate::screen::widgets::{empty, none_yet};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::patterns::observed::{add_fields, add_limits, add_totals};
use crate::words::styled::{StyleRole, StyledText};

/// Rows above the spans: the column names.
const HEAD: u16 = 1;

/// Maximum number of lanes for which the tree of spans gives up rows.
const MAX_LANES: usize = 12;

/// Rows of a page outside of the tree and the lanes.
const OTHER_ROWS: u16 = 18;

/// Deepest level with an indentation of its own.
const MAX_INDENT: u16 = 12;

/// Deepest spans that are shown.
const MAX_DEPTH: u16 = 256;

/// Selections and scroll positions in the panes of an observed run.
#[derive(Debug, Default)]
pub struct ObservedView {
    /// The selected span; `None` follows the newest row.
    span: Option<SpanId>,
    top: usize,
    folded: BTreeSet<SpanId>,
    scroll: Scroll,
    /// The diagram and the transcript.
    team: TeamView,
    tree: RefCell<Arc<SpanTree>>,
    lanes: RefCell<ActorLanes>,
}

/// The rows of the tree, as far as the log was read.
#[derive(Clone, Debug, Default)]
struct SpanTree {
    shape: TreeShape,
    rows: Vec<TreeRow>,
}

/// What the rows of the tree depend on: numbers of spans, of those that were moved, and of those that are folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TreeShape {
    spans: usize,
    moved: u64,
    folded: usize,
}

/// Most spans that are added to the tree one by one; for more it is built again.
const MAX_ADDED: usize = 32;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeRow {
    span: SpanId,
    depth: u16,
    has_children: bool,
}

impl TreeShape {
    fn of(observed: &Observed, folded: &BTreeSet<SpanId>) -> Self {
        Self { spans: observed.spans.len(), moved: observed.moved, folded: folded.len() }
    }
}

impl SpanTree {
    fn of(world: &World, observed: &Observed, folded: &BTreeSet<SpanId>) -> Self {
        let mut tree = Self { shape: TreeShape::of(observed, folded), rows: Vec::new() };
        let spans = &world.spans;
        let mut next: Vec<(SpanId, u16)> = Vec::new();
        let add_children = |of: SpanId, depth: u16, next: &mut Vec<(SpanId, u16)>| {
            let first = next.len();
            next.extend(spans.children(of).map(|span| (span.id, depth)));
            if let Some(added) = next.get_mut(first..) {
                added.reverse();
            }
        };
        add_children(SpanId::RUN, 0, &mut next);
        while let Some((id, depth)) = next.pop() {
            // A file may have spans that enclose each other.
            if tree.rows.len() as u64 > spans.opened() {
                break;
            }
            // The span of the model around a request shows it.
            if observed.span(id).is_none_or(|span| span.is_joined) {
                continue;
            }
            let is_row = |id: SpanId| observed.span(id).is_some_and(|span| !span.is_joined);
            let has_children = spans.children(id).any(|child| is_row(child.id));
            tree.rows.push(TreeRow { span: id, depth, has_children });
            if has_children && depth < MAX_DEPTH && !folded.contains(&id) {
                add_children(id, depth + 1, &mut next);
            }
        }
        tree
    }

    /// Follows the log.
    fn update(&mut self, world: &World, observed: &Observed, folded: &BTreeSet<SpanId>) {
        let (before, now) = (self.shape, TreeShape::of(observed, folded));
        let added = now.spans.checked_sub(before.spans);
        let only_grows = (TreeShape { spans: now.spans, ..before }) == now;
        if !only_grows || added.is_none_or(|added| added > MAX_ADDED) {
            *self = Self::of(world, observed, folded);
            return;
        }
        for span in observed.spans.iter_from(before.spans).filter(|span| !span.is_joined) {
            self.add(span.id, world, folded);
        }
        self.shape = now;
    }

    /// Adds a new span: it is the last child of its parent.
    fn add(&mut self, span: SpanId, world: &World, folded: &BTreeSet<SpanId>) {
        let Some(parent) = world.spans.get(span).map(|span| span.parent) else { return };
        let row = |depth| TreeRow { span, depth, has_children: false };
        if parent == SpanId::RUN {
            return self.rows.push(row(0));
        }
        // Without a row it is inside of a folded span.
        let Some(above) = self.rows.iter().rposition(|row| row.span == parent) else { return };
        let Some(outer) = self.rows.get_mut(above) else { return };
        outer.has_children = true;
        let depth = outer.depth;
        if depth < MAX_DEPTH && !folded.contains(&parent) {
            let below = self.rows.iter().skip(above + 1).position(|row| row.depth <= depth);
            let place = below.map_or(self.rows.len(), |below| above + 1 + below);
            self.rows.insert(place, row(depth + 1));
        }
    }

    fn place(&self, span: SpanId) -> Option<usize> {
        self.rows.iter().position(|row| row.span == span)
    }
}

impl ObservedView {
    /// The rows of the tree.
    fn tree(&self, run: &RunData) -> Arc<SpanTree> {
        let world = run.shown();
        let mut tree = self.tree.borrow_mut();
        if let Some(observed) = world.observed()
            && tree.shape != TreeShape::of(observed, &self.folded)
        {
            Arc::make_mut(&mut tree).update(world, observed, &self.folded);
        }
        Arc::clone(&tree)
    }

    /// The shape for the lanes; `None`: the diagram of hops is shown.
    fn shape(&self, run: &RunData) -> Option<Arc<Shape>> {
        let world = run.shown();
        let shape = self.lanes.borrow_mut().shape(world, world.observed()?);
        (!shape.turns.is_empty() && !shape.is_of_handoffs()).then_some(shape)
    }

    /// The index of the turn of the selected span, or of the turn around it.
    fn turn(&self, shape: &Shape, run: &RunData) -> Option<usize> {
        shape.turn_of(self.span?, run.shown())
    }

    fn cursor(&self, tree: &SpanTree) -> RowCursor {
        RowCursor { cursor: self.span.and_then(|span| tree.place(span)), top: self.top }
    }

    /// The rows in view, and how many there are.
    fn in_view(&self, run: &RunData, area: Rect) -> (Range<usize>, usize) {
        let tree = self.tree(run);
        let height = usize::from(area.height.saturating_sub(HEAD));
        (self.cursor(&tree).window(tree.rows.len(), height), tree.rows.len())
    }

    fn select(&mut self, tree: &SpanTree, cursor: RowCursor) {
        let span = cursor.cursor.and_then(|row| tree.rows.get(row)).map(|row| row.span);
        if self.span != span {
            self.scroll.reset();
        }
        (self.span, self.top) = (span, cursor.top);
    }

    fn move_among_spans(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let tree = self.tree(run);
        let height = at.height().saturating_sub(usize::from(HEAD)).max(1);
        let cursor = self.cursor(&tree);
        match action {
            Action::Left | Action::Right => self.fold(&tree, cursor, action == Action::Left),
            _ => self.select(&tree, cursor.after_action(action, tree.rows.len(), height)),
        }
    }

    /// Folds the selected span; if it is folded or has no children, its parent is selected.
    fn fold(&mut self, tree: &SpanTree, cursor: RowCursor, closes: bool) {
        let Some(at) = cursor.row(tree.rows.len()) else { return };
        let Some(row) = tree.rows.get(at) else { return };
        self.span = Some(row.span);
        if !closes {
            self.folded.remove(&row.span);
        } else if !row.has_children || !self.folded.insert(row.span) {
            let above = tree.rows.get(..at).unwrap_or_default();
            if let Some(parent) = above.iter().rev().find(|it| it.depth < row.depth) {
                self.span = Some(parent.span);
            }
        }
    }

    fn scroll_text(&mut self, run: &RunData, area: Option<Rect>, by: isize) {
        if let Some(area) = area {
            self.scroll = self.scroll.step_in(by, &self.document(run), area);
        }
    }

    /// The text of pane 2: the selected span, else the outcome and what the run is made of.
    fn document(&self, run: &RunData) -> StyledText {
        let mut text = StyledText::default();
        let world = run.shown();
        let Some(observed) = world.observed() else { return text };
        match self.span.and_then(|span| observed.span(span)) {
            Some(span) => {
                let (from, _) = observed.times(span, world);
                add_fields(&span.about, &mut text);
                text.field("at", format::time_in_run(world.progress.run_time(from)));
            }
            None => {
                if self.shows_outcome(run) {
                    add_outcome(run, None, &mut text);
                    text.gap();
                } else if observed.spans.is_empty() {
                    let waits = "No spans yet: they come when an agent of the program acts.";
                    text.add(StyleRole::Dim, waits);
                }
                add_limits(world, observed, &mut text);
                add_totals(observed, &mut text);
            }
        }
        text
    }
}

impl View for ObservedView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Spans", "Span", "Lanes", "Transcript"]
    }

    fn titles(&self) -> [&'static str; 4] {
        let second = if self.span.is_some() { "Span" } else { "Calls" };
        ["Spans", second, "Hops", "Transcript"]
    }

    fn asking_pane(&self) -> Pane {
        Pane::Fourth
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        self.span.is_none() && run.shown().progress.stage == RunState::Closed
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
        let inner = inner_columns(page);
        let share = |percent: u16| inner.saturating_mul(percent) / 100;
        let first = share(62);
        let ended = run.shown().progress.closed.as_ref().map(|_| {
            let document = self.document(run);
            let width = (inner - first).saturating_sub(2);
            let lines = WrappedDocument { document: &document, width };
            let rows = self.tree(run).rows.len().min(usize::from(MAX_ROWS)) as u16;
            let picture = HEAD + rows;
            // The tree leaves room for the lanes.
            let lanes = self.shape(run).map(|shape| shape.lanes.len().min(MAX_LANES) as u16 + 3);
            let left_for_tree =
                |lanes: u16| page.height.saturating_sub(OTHER_ROWS + lanes).max(page.height / 3);
            EndedSize {
                left: first,
                picture: lanes.map_or(picture, |lanes| picture.min(left_for_tree(lanes))),
                outcome: lines.rows_within(MAX_ROWS),
                rows: u16::MAX,
            }
        });
        PaneSizes { rows: RowSize::Texts, first, third: share(50), ended }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        match (at.pane, rows_scrolled(action, at.area())) {
            (Pane::First, _) => self.move_among_spans(run, at, action),
            (Pane::Second, Some(by)) => self.scroll_text(run, at.area(), by),
            (Pane::Third, _) if let Some(shape) = self.shape(run) => {
                let (turn, area) = (self.turn(&shape, run), at.area().unwrap_or_default());
                let moved = self.lanes.get_mut().after_action(&shape, turn, action, area);
                if moved.is_some() {
                    self.span = moved;
                    self.scroll.reset();
                }
            }
            (Pane::Third, _) => {
                let areas = at.areas.swapped(Pane::First, Pane::Third);
                self.team.on_move(run, PaneAt { pane: Pane::First, areas: &areas }, action);
            }
            (Pane::Fourth, _) => self.team.on_move(run, at, action),
            (Pane::Second, None) | (Pane::Events, _) => {}
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        match at.pane {
            Pane::First => {
                let tree = self.tree(run);
                let height = at.height().saturating_sub(usize::from(HEAD)).max(1);
                let cursor = self.cursor(&tree).after_wheel(by, tree.rows.len(), height);
                self.select(&tree, cursor);
            }
            Pane::Second => self.scroll_text(run, at.area(), by),
            Pane::Third if let Some(shape) = self.shape(run) => {
                let turn = self.turn(&shape, run).and_then(|at| Some(shape.turns.get(at)?.lane));
                self.lanes.get_mut().scroll(&shape, turn, by, at.area().unwrap_or_default());
            }
            Pane::Third => {
                let areas = at.areas.swapped(Pane::First, Pane::Third);
                self.team.on_wheel(run, PaneAt { pane: Pane::First, areas: &areas }, by);
            }
            Pane::Fourth | Pane::Events => {
                self.team.on_wheel(run, at, by);
            }
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, col: u16, row: u16) {
        match at.pane {
            Pane::First => {
                let Some(area) = at.area() else { return };
                let Some(nth) = (row - area.y).checked_sub(HEAD) else { return };
                let (window, _) = self.in_view(run, area);
                let (tree, place) = (self.tree(run), window.start + usize::from(nth));
                if usize::from(nth) < window.len() {
                    let cursor = self.cursor(&tree);
                    self.select(&tree, cursor.select(place, tree.rows.len(), window.len().max(1)));
                }
            }
            Pane::Third if let Some(shape) = self.shape(run) => {
                let (Some(area), turn) = (at.area(), self.turn(&shape, run)) else { return };
                let lane = turn.and_then(|at| Some(shape.turns.get(at)?.lane));
                let axis = self.axis(run, run.shown().progress.at);
                let lanes = self.lanes.get_mut();
                if let Some(span) = lanes.at(&shape, lane, (col, row), (area, axis)) {
                    self.span = Some(span);
                    self.scroll.reset();
                }
            }
            Pane::Third => {
                let areas = at.areas.swapped(Pane::First, Pane::Third);
                self.team.on_click(run, PaneAt { pane: Pane::First, areas: &areas }, col, row);
            }
            Pane::Fourth => self.team.on_click(run, at, col, row),
            Pane::Second | Pane::Events => {}
        }
    }

    fn clear_selection(&mut self, with_tool: bool) -> bool {
        let any = self.span.is_some();
        if with_tool || !any {
            return self.team.clear_selection(with_tool);
        }
        (self.span, self.scroll, self.top) = (None, Scroll::default(), 0);
        true
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.reset()
    }

    fn target(&self, run: &RunData, focus: Pane) -> Option<InspectTarget> {
        match focus {
            Pane::Fourth => self.team.lower().transcript_target(run),
            _ => {
                let tree = self.tree(run);
                let row = self.cursor(&tree).row(tree.rows.len())?;
                let span = run.shown().spans.get(tree.rows.get(row)?.span)?;
                Some(InspectTarget::Event(span.closed_by.unwrap_or(span.opened_by)))
            }
        }
    }

    fn subject_call(&self, _run: &RunData) -> Option<SpanId> {
        None
    }

    fn text(&self, run: &RunData, focus: Pane) -> Option<String> {
        if focus == Pane::Fourth
            && let Some(line) = self.team.lower().line_text(run)
        {
            return Some(line);
        }
        let document = self.document(run);
        (!document.lines.is_empty()).then(|| document.to_plain())
    }

    fn available(&self, run: &RunData, _focus: Pane, action: Action) -> Result<(), Why> {
        // Only the dashboard that has started the program has its input.
        if action == Action::Message && run.world().progress.is_live() && run.remote.is_none() {
            return Ok(());
        }
        Err(Unavailable::Watched.into())
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => self.render_spans(data, cx, area, buf),
            Pane::Second => {
                let text = self.document(data);
                draw_scrolled(cx, text_area(area), &text, self.scroll, buf);
            }
            Pane::Third if let Some(shape) = self.shape(data) => {
                let selected = self.turn(&shape, data);
                let shown = (data, selected, self.axis(data, data.drawn_to(cx.now)));
                lanes::render(&self.lanes.borrow(), &shape, shown, cx, text_area(area), buf);
            }
            Pane::Third => self.team.pane(data, Pane::First, cx, area, buf),
            Pane::Fourth => transcript::render(self.team.lower(), data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, inside: Rect) -> PaneTitle {
        match pane {
            Pane::First => {
                let (rows, all) = self.in_view(data, inside);
                let aside = part_in_view(&rows, all);
                let notes = vec![follow_note(cx, self.span.is_none())];
                PaneTitle { notes, aside, ..PaneTitle::plain("Spans") }
            }
            Pane::Second if self.shows_outcome(data) => {
                let sign = cx.theme.run(data.shown());
                PaneTitle::with_sign(("Outcome".to_owned(), Some(sign)))
            }
            Pane::Third if let Some(shape) = self.shape(data) => {
                let turn = self.turn(&shape, data);
                let aside = lanes::aside(&self.lanes.borrow(), &shape, turn, text_area(inside));
                PaneTitle { aside, ..PaneTitle::plain("Lanes") }
            }
            Pane::Third => PaneTitle::plain("Hops"),
            Pane::Fourth => self.team.title(data, pane, cx, inside),
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        self.team.track(data, cx, row, buf);
    }

    fn track_columns(&self, data: &RunData) -> (u16, u16) {
        self.team.track_columns(data)
    }
}

/// The widths of the columns.
struct SpanColumns {
    name: u16,
    bar: u16,
    took: u16,
    tokens: u16,
}

impl SpanColumns {
    fn for_width(width: u16) -> Self {
        let (took, tokens) = (8, if width >= 64 { 8 } else { 0 });
        let free = width.saturating_sub(3 + took + tokens);
        let name = match width {
            110.. => free / 2,
            50.. => free * 11 / 20,
            _ => free,
        };
        Self { name, bar: free.saturating_sub(name + 1), took, tokens }
    }
}

impl ObservedView {
    /// The times at the ends of the axis.
    fn axis(&self, data: &RunData, now: Elapsed) -> (Elapsed, Elapsed) {
        let world = data.shown();
        let (from, last) = world.observed().map(Observed::range).unwrap_or_default();
        (from, if world.progress.is_live() { last.max(now) } else { last })
    }

    /// The spans of the turns before and after the selected one.
    fn lit_spans(&self, data: &RunData) -> BTreeSet<SpanId> {
        let Some(shape) = self.shape(data) else { return BTreeSet::new() };
        let neighbours = shape.neighbours(self.turn(&shape, data)).into_iter();
        neighbours.filter_map(|at| shape.turns.get(at)).map(|turn| turn.span).collect()
    }

    fn render_spans(&self, data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        let world = data.shown();
        let Some(observed) = world.observed() else { return };
        if observed.spans.is_empty() {
            let comes = "what the program's agents do is listed here, as a tree";
            let mut text = none_yet("spans", comes, &world.progress);
            // It may wait for input.
            if let Some(LineKind::Said(printed)) = observed.agents.lines.last().map(|it| &it.what) {
                text.push_str(&format!("\n\nIts last line: {printed}"));
            }
            return empty(cx, area, &text, buf);
        }
        let widths = SpanColumns::for_width(area.width);
        let tokens = if widths.tokens > 0 { "tokens" } else { "" };
        let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
        pen.space(3);
        heads(
            cx,
            &mut pen,
            &[
                Column::left("span", widths.name + 1 + widths.bar),
                Column::right("took", widths.took - 1),
                Column::right(tokens, widths.tokens.saturating_sub(1)),
            ],
        );
        let tree = self.tree(data);
        let (window, _) = self.in_view(data, area);
        let now = data.drawn_to(cx.now);
        let axis = self.axis(data, now);
        let first = window.start;
        let selected = self.cursor(&tree).cursor;
        let lit = self.lit_spans(data);
        for nth in window {
            let Some(row) = tree.rows.get(nth) else { break };
            let Some(span) = observed.span(row.span) else { continue };
            let here = line(area, HEAD + (nth - first) as u16);
            let mut pen = list::row(cx, here, selected == Some(nth), buf);
            let (from, end) = observed.times(span, world);
            let times = (from, end.unwrap_or_else(|| now.max(from)));
            let is_lit = lit.contains(&row.span);
            self.span_row(cx, world, (*row, is_lit), span, &mut pen, (&widths, axis, times));
        }
    }

    fn span_row(
        &self,
        cx: &DrawContext,
        world: &World,
        (row, is_lit): (TreeRow, bool),
        span: &ObservedSpan,
        pen: &mut Pen,
        (widths, axis, times): (&SpanColumns, (Elapsed, Elapsed), (Elapsed, Elapsed)),
    ) {
        let theme = cx.theme;
        let (glyph, role) = state_role(span, world.progress.is_live());
        pen.glyph(glyph, theme.style(role)).space(1);
        let start = pen.x();
        pen.space(row.depth.min(MAX_INDENT).min(widths.name / 2));
        let fold = match (row.has_children, self.folded.contains(&row.span)) {
            (false, _) => None,
            (true, true) => Some(Glyph::Folded),
            (true, false) => Some(Glyph::Unfolded),
        };
        let dim = theme.style(StyleRole::Dim);
        match fold {
            Some(glyph) => pen.glyph(glyph, dim),
            None => pen.space(1),
        };
        let room = (start + widths.name).saturating_sub(pen.x());
        let (name, style) = span_name(span);
        let style = if is_lit { StyleRole::Notice } else { style };
        pen.name(&name, room, theme.style(style));
        pen.advance_to(start + widths.name).space(1);
        if widths.bar > 0 {
            bar(cx, pen, widths.bar, axis, times, bar_role(span, role));
        }
        let took = match (span.end, span.about.took_us()) {
            (Some(_), Some(us)) => duration_text(Duration::from_micros(us)),
            (Some(SpanEnd::Lost), None) => String::new(),
            _ => duration_text(times.1.since(times.0)),
        };
        let style = theme.style(if span.end.is_some() { StyleRole::Text } else { role });
        pen.right_aligned(&took, widths.took - 1, style);
        let tokens = span.about.tokens();
        if widths.tokens > 1 && tokens > 0 {
            pen.space(1).right_aligned(&format::count(tokens), widths.tokens - 1, dim);
        }
    }
}

/// The name of a span in the tree, and how it is painted.
fn span_name(span: &ObservedSpan) -> (String, StyleRole) {
    let about = &*span.about;
    if about.name.is_empty() {
        return ("…".to_owned(), StyleRole::Dim);
    }
    match about.role {
        SpanRole::Agent => (about.name.to_string(), StyleRole::Strong),
        SpanRole::Node => (about.name.to_string(), StyleRole::Text),
        SpanRole::Handoff => match &about.to {
            Some(to) => (format!("to {to}"), StyleRole::Notice),
            None => (about.name.to_string(), StyleRole::Notice),
        },
        SpanRole::Model | SpanRole::Embedding => {
            match about.model.as_ref().filter(|model| !about.name.contains(&***model)) {
                Some(model) => (format!("{} {model}", about.name), StyleRole::Text),
                None => (about.name.to_string(), StyleRole::Text),
            }
        }
        SpanRole::Tool | SpanRole::Retriever => (format!("{}()", about.name), StyleRole::Text),
        SpanRole::Guardrail | SpanRole::Step => (about.name.to_string(), StyleRole::Dim),
    }
}

/// The glyph and the style of a span's state.
fn state_role(span: &ObservedSpan, is_live: bool) -> (Glyph, StyleRole) {
    match (span.end, is_live) {
        (Some(SpanEnd::Done), _) => (Glyph::Done, StyleRole::Done),
        (Some(SpanEnd::Failed), _) => (Glyph::Failed, StyleRole::Failed),
        (Some(SpanEnd::Interrupted), _) => (Glyph::Paused, StyleRole::NeedsYou),
        (Some(SpanEnd::Tripped), _) => (Glyph::Alert, StyleRole::Notice),
        (Some(SpanEnd::Lost), _) | (None, false) => (Glyph::Off, StyleRole::Off),
        (None, true) => (Glyph::Running, StyleRole::Running),
    }
}

/// The style of a bar. Models and tools that succeeded have their own.
fn bar_role(span: &ObservedSpan, role: StyleRole) -> StyleRole {
    match (span.about.role, role) {
        (SpanRole::Model | SpanRole::Embedding, StyleRole::Done) => StyleRole::Bar,
        (SpanRole::Tool | SpanRole::Retriever, StyleRole::Done) => StyleRole::Flag,
        (_, role) => role,
    }
}

/// The range of cells between two times, on an axis of this width; at least one cell.
fn cells(width: u16, axis: (Elapsed, Elapsed), times: (Elapsed, Elapsed)) -> (u16, u16) {
    let all = axis.1.since(axis.0).max(Duration::from_micros(1)).as_micros();
    let cell = |at: Elapsed| {
        let part = at.since(axis.0).as_micros() * u128::from(width) / all;
        u16::try_from(part).unwrap_or(u16::MAX).min(width)
    };
    let from = cell(times.0).min(width.saturating_sub(1));
    (from, cell(times.1).max(from + 1))
}

/// The part of the time axis that a span took, at least one cell.
fn bar(
    cx: &DrawContext,
    pen: &mut Pen,
    width: u16,
    axis: (Elapsed, Elapsed),
    times: (Elapsed, Elapsed),
    role: StyleRole,
) {
    let (from, until) = cells(width, axis, times);
    let end = pen.x() + width;
    pen.space(from).glyphs(Glyph::BarFull, until - from, cx.theme.style(role)).advance_to(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::{Event, EventKind, Seq};
    use crate::log::facts::PatternFact;
    use crate::log::facts::observed::{ObservedFact, SpanAbout};

    /// What happens to the tree: a span is added to one that is there, one is moved, or one is folded or unfolded.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add(u32),
        Move(u32, u32),
        Fold(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..40_u32).prop_map(Step::Add),
            1 => (1..40_u32, 0..40_u32).prop_map(|(span, to)| Step::Move(span, to)),
            1 => (1..40_u32).prop_map(Step::Fold),
        ]
    }

    proptest! {
        #[test]
        fn added_spans_make_same_tree(steps in proptest::collection::vec((step(), any::<bool>()), 0..60)) {
            let head = include_str!("../../../../../tests/vectors/watch/langgraph_desk.jsonl");
            let head = Event::from_line(head.lines().next().expect("a head")).expect("an event");
            let (mut world, mut folded) = (World::new(), BTreeSet::new());
            world.apply(&head);
            let (mut tree, mut spans) = (SpanTree::default(), 0);
            for (seq, (step, draws)) in (1..).zip(steps) {
                let (span, parent) = match step {
                    Step::Add(to) => (spans + 1, to % (spans + 1)),
                    Step::Move(span, to) => (span % (spans + 1), to % (spans + 1)),
                    Step::Fold(span) => {
                        let span = SpanId(span % (spans + 1));
                        if !folded.remove(&span) {
                            folded.insert(span);
                        }
                        let observed = world.observed().expect("observed");
                        tree.update(&world, observed, &folded);
                        continue;
                    }
                };
                if span == 0 {
                    continue;
                }
                spans = spans.max(span);
                let about = Arc::new(SpanAbout { name: "step".into(), ..SpanAbout::default() });
                let fact = ObservedFact::Opened { parent: SpanId(parent), at_end: false, about };
                let kind = EventKind::Pattern(PatternFact::Observed(fact));
                world.apply(&Event { seq: Seq(seq), at: Elapsed(seq), span: SpanId(span), kind });
                let observed = world.observed().expect("observed");
                if draws {
                    tree.update(&world, observed, &folded);
                    let expected = SpanTree::of(&world, observed, &folded);
                    prop_assert_eq!(&tree.rows, &expected.rows);
                }
            }
        }
    }
}
