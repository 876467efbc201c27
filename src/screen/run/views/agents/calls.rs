//! Pane 3 of a run with agents: the tree of calls, each below the call that made it. Only the
//! operator folds rows, and only the rows in view are read.

use std::collections::BTreeSet;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{LowerPanes, MODEL, agent_sign, put_model, time_held};
use crate::base::time;
use crate::log::event::{Elapsed, EventKind, Purpose, SpanId, StopClass, StopReason};
use crate::log::facts::agents::MemberOutput;
use crate::log::world::agents::{
    AgentsFold, MAX_BELOW_ROOT, MAX_DEPTH, is_in_tree, root_of, shown_output,
};
use crate::log::world::{Span, SpanKind, SpanState, World};
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::screen::widgets::{empty, none_yet};
use crate::screen::{DrawContext, list};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::question::fallback_said;
use crate::words::readable::top_text;
use crate::words::styled::StyleRole;
use crate::words::tool_sentence::progress_text;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// The call; the run's own span for the coordinator that the operator talks to.
    pub span: SpanId,
    /// Its depth in the tree, from 0.
    pub depth: u16,
    /// Whether it has calls below it, and whether they are shown.
    pub fold: Fold,
}

/// The state of the calls below a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// It has no calls below it.
    Empty,
    /// They are shown.
    Open,
    Closed,
    /// There are more than are shown.
    Cut,
}

/// The tree with its folded and unfolded rows.
#[derive(Debug)]
pub struct CallTree<'a> {
    world: &'a World,
    team: &'a AgentsFold,
    /// Whether the coordinator is shown as the root of all others.
    head: bool,
    /// The calls that the operator has folded.
    closed: &'a BTreeSet<SpanId>,
    /// The roots with folded rows, in order.
    folded: Vec<FoldedRoot>,
}

/// The hops, consultations and tool calls directly within a call.
pub fn calls_within(world: &World, call: SpanId) -> impl Iterator<Item = &Span> {
    let attempts = world.spans.children(call);
    attempts
        .flat_map(|attempt| world.spans.children(attempt.id))
        .filter(|span| is_in_tree(&span.kind))
}

/// The attempt of the model call that an agent is in at present; `run` is the call of the agent, or
/// the run's own span.
pub fn current_attempt(world: &World, run: SpanId) -> Option<&Span> {
    let place = if run == SpanId::RUN { run } else { world.spans.last_child(run)?.id };
    let ask = world.spans.last_child(place).filter(|ask| ask.closed.is_none())?;
    match &ask.kind {
        SpanKind::Call(Purpose::ModelCall { .. }) => world.spans.last_child(ask.id).or(Some(ask)),
        _ => None,
    }
}

/// A root below which the operator has folded rows, so that fewer are shown than were counted.
#[derive(Debug)]
struct FoldedRoot {
    /// Index of the root.
    place: usize,
    /// The rows shown below it.
    rows: Vec<CallNode>,
    /// Number of counted rows that are hidden in this root and in those above it.
    hidden: usize,
}

impl<'a> CallTree<'a> {
    fn new(
        world: &'a World,
        team: &'a AgentsFold,
        head: bool,
        closed: &'a BTreeSet<SpanId>,
    ) -> CallTree<'a> {
        let mut tree = CallTree { world, team, head, closed, folded: Vec::new() };
        let roots = closed.iter().filter_map(|span| root_of(*span, &world.spans));
        let places: BTreeSet<usize> =
            roots.filter_map(|root| team.root_at(root, &world.spans)).collect();
        let mut hidden = 0;
        for place in places {
            let rows = tree.rows_of(place);
            hidden += counted_rows(team, place).saturating_sub(rows.len());
            tree.folded.push(FoldedRoot { place, rows, hidden });
        }
        tree
    }

    /// The rows shown below a root.
    fn rows_of(&self, place: usize) -> Vec<CallNode> {
        let mut rows = Vec::new();
        if let Some(root) = self.team.roots.get(place)
            && !self.closed.contains(&root.span)
        {
            self.unfold(root.span, 1, &mut rows);
        }
        rows
    }

    fn unfold(&self, call: SpanId, level: u16, rows: &mut Vec<CallNode>) {
        if level > MAX_DEPTH {
            return;
        }
        for span in calls_within(self.world, call) {
            let depth = level + u16::from(self.head);
            if rows.len() >= MAX_BELOW_ROOT as usize {
                if rows.last().is_some_and(|last| last.fold != Fold::Cut) {
                    rows.push(CallNode { span: span.id, depth, fold: Fold::Cut });
                }
                return;
            }
            let fold = self.fold(span.id);
            rows.push(CallNode { span: span.id, depth, fold });
            if fold == Fold::Open {
                self.unfold(span.id, level + 1, rows);
            }
        }
    }

    fn fold(&self, call: SpanId) -> Fold {
        match calls_within(self.world, call).next() {
            None => Fold::Empty,
            Some(_) if self.closed.contains(&call) => Fold::Closed,
            Some(_) => Fold::Open,
        }
    }

    /// Number of hidden rows in the roots above this one.
    fn hidden_above(&self, place: usize) -> usize {
        let above = self.folded.partition_point(|turned| turned.place < place);
        above.checked_sub(1).map_or(0, |last| self.folded[last].hidden)
    }

    /// The row of a root, without the coordinator's row.
    fn row_of(&self, place: usize) -> usize {
        let above = self.team.roots.get(place).map_or(0, |root| root.above as usize);
        place + above.saturating_sub(self.hidden_above(place))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let Some(last) = self.team.roots.len().checked_sub(1) else {
            return usize::from(self.head);
        };
        let within = match self.folded.last().filter(|turned| turned.place == last) {
            Some(turned) => turned.rows.len(),
            None => counted_rows(self.team, last),
        };
        usize::from(self.head) + self.row_of(last) + 1 + within
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this index.
    pub fn row(&self, at: usize) -> Option<CallNode> {
        self.rows(at..at + 1).pop()
    }

    /// The row of the root that a row is below: the coordinator's, else that of the hop.
    pub fn root_of_row(&self, at: usize) -> Option<usize> {
        if self.head {
            return Some(0);
        }
        self.place(root_of(self.row(at)?.span, &self.world.spans)?)
    }

    /// The rows in this range. Only the roots in the range are visited.
    pub fn rows(&self, wanted: Range<usize>) -> Vec<CallNode> {
        let mut rows = Vec::new();
        let head = usize::from(self.head);
        if self.head && wanted.contains(&0) {
            rows.push(CallNode { span: SpanId::RUN, depth: 0, fold: Fold::Empty });
        }
        let (from, until) = (wanted.start.saturating_sub(head), wanted.end.saturating_sub(head));
        // Find the last root that begins at or above the first row.
        let (mut low, mut high) = (0, self.team.roots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row_of(middle) <= from { low = middle + 1 } else { high = middle }
        }
        for place in low.saturating_sub(1)..self.team.roots.len() {
            let first = self.row_of(place);
            if first >= until {
                break;
            }
            let Some(root) = self.team.roots.get(place) else { break };
            if first >= from {
                let (depth, fold) = (u16::from(self.head), self.fold(root.span));
                rows.push(CallNode { span: root.span, depth, fold });
            }
            let shown = |at: &usize| (from..until).contains(&(first + 1 + at));
            let turned = self.folded.binary_search_by_key(&place, |turned| turned.place);
            let within =
                turned.map_or_else(|_| self.rows_of(place), |at| self.folded[at].rows.clone());
            rows.extend(within.iter().enumerate().filter(|(at, _)| shown(at)).map(|(_, row)| *row));
        }
        rows
    }

    /// The call that a call is directly within.
    pub fn parent(&self, call: SpanId) -> Option<SpanId> {
        let parent = self.world.spans.get(call)?.parent;
        if parent == SpanId::RUN {
            return self.head.then_some(SpanId::RUN);
        }
        self.world.spans.get(parent).map(|attempt| attempt.parent)
    }

    /// The row of a call, if it is shown.
    pub fn place(&self, span: SpanId) -> Option<usize> {
        let head = usize::from(self.head);
        if span == SpanId::RUN {
            return self.head.then_some(0);
        }
        let root = root_of(span, &self.world.spans)?;
        let place = self.team.root_at(root, &self.world.spans)?;
        let first = head + self.row_of(place);
        if root == span {
            return Some(first);
        }
        let within = self.rows_of(place);
        within.iter().position(|node| node.span == span).map(|at| first + 1 + at)
    }
}

/// Number of rows counted below a root, folded or not.
fn counted_rows(team: &AgentsFold, place: usize) -> usize {
    team.roots.get(place).map_or(0, |root| root.within as usize)
}

/// The tree of calls in the world that is shown; the calls in `closed` are folded.
pub fn call_tree<'a>(run: &'a RunData, closed: &'a BTreeSet<SpanId>) -> Option<CallTree<'a>> {
    let world = run.shown();
    let team = world.agents()?;
    let head = team.plan.coordinator().is_some();
    Some(CallTree::new(world, team, head, closed))
}

/// Width of a call's duration.
const TOOK: u16 = 7;

/// Minimum width of a model's name.
const MIN_MODEL: u16 = 8;

/// The layout of a row.
#[derive(Clone, Copy)]
struct CallColumns {
    /// The x position after names and durations.
    names: u16,
    /// Width of the model's name; 0: not shown.
    model: u16,
}

pub(crate) fn render(
    view: &LowerPanes,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(tree) = call_tree(data, view.folded()) else { return };
    if tree.is_empty() {
        let text = none_yet(
            "calls",
            "agents, members and tools are listed here when they are called",
            &world.progress,
        );
        return empty(cx, area, &text, buf);
    }
    let now = data.drawn_to(cx.now);
    let window = view.call_rows(&tree, usize::from(area.height));
    let selected = window.selected;
    let rows: Vec<CallNode> = match window.root {
        Some(root) => tree.row(root).into_iter().chain(tree.rows(window.rows.clone())).collect(),
        None => tree.rows(window.rows.clone()),
    };
    let wanted = rows.iter().map(|node| wanted_width(world, *node)).max();
    // The result keeps at least two fifths of the row, or half of it including the model.
    let several = !world.models.is_empty();
    let most = if several { area.width / 2 } else { area.width * 3 / 5 };
    let names = area.x + wanted.unwrap_or(0).min(most);
    let model = match area.right().saturating_sub(names + 2) / 2 {
        room if several && room >= MIN_MODEL => room.min(MODEL),
        _ => 0,
    };
    let places = CallColumns { names, model };
    for (nth, (at, node)) in window.shown().zip(rows).enumerate() {
        let here = line(area, nth as u16);
        let mut pen = list::row(cx, here, selected == Some(at), buf);
        call_row(data, cx, world, &mut pen, node, now, places);
    }
}

/// The width of a row's name and duration.
fn wanted_width(world: &World, node: CallNode) -> u16 {
    let name = match world.spans.get(node.span).map(|span| &span.kind) {
        Some(SpanKind::Call(Purpose::Tool { tool, .. })) => tool.as_str(),
        Some(SpanKind::Call(purpose)) => purpose.agent().map_or("", |agent| agent.as_str()),
        _ => world.agents().and_then(|it| it.plan.root.as_ref()).map_or("", |root| root.as_str()),
    };
    let name = u16::try_from(columns(name)).unwrap_or(u16::MAX).min(30);
    8 + 2 * node.depth.min(12) + name + TOOK
}

/// Draws the model's name, if the layout has that column.
fn model_column(cx: &DrawContext, pen: &mut Pen, name: Option<&str>, width: u16, style: Style) {
    if width > 0 {
        put_model(cx, pen, name.unwrap_or_default(), width, style);
        pen.space(1);
    }
}

fn call_row(
    data: &RunData,
    cx: &DrawContext,
    world: &World,
    pen: &mut Pen,
    node: CallNode,
    now: Elapsed,
    CallColumns { names, model }: CallColumns,
) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(StyleRole::Dim), theme.style(StyleRole::Text));
    pen.space(2 * node.depth.min(12));
    match node.fold {
        Fold::Open => pen.glyph(Glyph::Unfolded, dim),
        Fold::Closed => pen.glyph(Glyph::Folded, dim),
        Fold::Empty | Fold::Cut => pen.space(1),
    };
    if node.fold == Fold::Cut {
        pen.glyph(Glyph::Ellipsis, dim).put(" and more: the events have all", dim);
        return;
    }
    let end = |pen: &Pen| names.saturating_sub(TOOK + pen.x() + 1);
    if node.span == SpanId::RUN {
        let Some(team) = world.agents() else { return };
        let Some(agent) = team.plan.coordinator().and_then(|it| team.agent(it)) else { return };
        let sign = agent_sign(cx, world, agent);
        pen.glyph(sign.glyph, sign.style).space(1);
        let width = end(pen);
        pen.name(agent.name.as_str(), width, plain).advance_to(names - TOOK.min(names));
        pen.right_aligned(&time::duration_text(time_held(world, agent, now)), TOOK - 1, dim)
            .advance_to(names)
            .space(1);
        model_column(cx, pen, world.models.for_agent(agent.name.as_str()), model, dim);
        live_text(data, cx, world, pen, SpanId::RUN, now);
        return;
    }
    let Some(span) = world.spans.get(node.span) else { return };
    let SpanKind::Call(purpose) = &span.kind else { return };
    let sign = sign(data, cx, world, span);
    let (glyph, name) = match purpose {
        Purpose::SwarmTurn { agent, .. } => (Glyph::Arrow, agent.as_str()),
        Purpose::Member { agent, .. } => (Glyph::Consults, agent.as_str()),
        Purpose::Tool { tool, .. } => (Glyph::Within, tool.as_str()),
        _ => return,
    };
    pen.glyph(sign.glyph, sign.style).space(1).glyph(glyph, dim).space(1);
    let width = end(pen);
    pen.name(name, width, plain).advance_to(names.saturating_sub(TOOK));
    let took =
        time::duration_text(world.progress.active_between(span.opened, span.closed.unwrap_or(now)));
    pen.right_aligned(&took, TOOK - 1, dim).advance_to(names).space(1);
    model_column(cx, pen, world.models.for_purpose(purpose), model, dim);
    let is_agent = !matches!(purpose, Purpose::Tool { .. });
    if span.state == SpanState::Open && world.progress.is_live() && world.tools.is_queued(span.id) {
        pen.put("queued", theme.style(StyleRole::Retry));
        return;
    }
    if span.state == SpanState::Open && is_agent {
        live_text(data, cx, world, pen, span.id, now);
        return;
    }
    let (text, role) = result_text(data, span);
    pen.put(&text.replace(['\n', '\r', '\t'], " "), theme.style(role));
}

/// Draws an agent's arriving text, if it may be shown; else that it is working.
fn live_text(
    data: &RunData,
    cx: &DrawContext,
    world: &World,
    pen: &mut Pen,
    run: SpanId,
    now: Elapsed,
) {
    let dim = cx.theme.style(StyleRole::Dim);
    if !world.progress.is_live() {
        return;
    }
    let Some(attempt) = current_attempt(world, run) else {
        pen.put("waiting", dim);
        return;
    };
    let ask =
        if matches!(attempt.kind, SpanKind::Attempt(_)) { attempt.parent } else { attempt.id };
    if world.tools.is_queued(ask) {
        let since = world.spans.last_child(ask).and_then(|it| it.closed);
        let since = since.or(world.spans.get(ask).map(|it| it.opened)).unwrap_or(now);
        let took = time::duration_text(world.progress.active_between(since, now));
        pen.put(&format!("queued, {took}"), cx.theme.style(StyleRole::Retry));
        return;
    }
    let seen = shown_output(attempt.id, &world.spans);
    let text = data.live(attempt.id).map(|live| live.text.as_str()).filter(|it| !it.is_empty());
    match text.filter(|_| seen == MemberOutput::Text) {
        Some(text) => {
            let width = usize::from(pen.left().saturating_sub(1));
            let flat = super::tail(text, width);
            pen.put(&flat, cx.theme.style(StyleRole::Text));
            pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        }
        None => {
            let took = time::duration_text(world.progress.active_between(attempt.opened, now));
            let what = if seen == MemberOutput::Text { "thinking" } else { "replying (hidden)" };
            pen.put(&format!("{what}, {took}"), dim);
        }
    }
}

fn sign(data: &RunData, cx: &DrawContext, world: &World, span: &Span) -> StateSign {
    let of = |glyph, word, role| StateSign { glyph, word, style: cx.theme.style(role) };
    match span.state {
        SpanState::Open if !world.progress.is_live() => of(Glyph::Off, "stopped", StyleRole::Off),
        SpanState::Open if world.question_within(span.id).is_some() => cx.theme.waits(),
        SpanState::Open => of(Glyph::Running, "working", StyleRole::Running),
        SpanState::Done if is_fallback(world, span) => {
            of(Glyph::Alert, "no answer", StyleRole::Retry)
        }
        SpanState::Done => of(Glyph::Done, "done", StyleRole::Done),
        SpanState::Failed(_) => match data.closing_event(span.id).map(|event| &event.kind) {
            Some(EventKind::CallFailed { reason: StopReason::Cancelled, .. }) => {
                of(Glyph::Off, "cancelled", StyleRole::Off)
            }
            Some(EventKind::CallDegraded { .. }) => of(Glyph::Alert, "degraded", StyleRole::Retry),
            _ => of(Glyph::Failed, "failed", StyleRole::Failed),
        },
        SpanState::Denied => of(Glyph::Refused, "denied", StyleRole::Refused),
    }
}

/// Whether the result of a call is the scenario's answer for a person who did not answer.
fn is_fallback(world: &World, call: &Span) -> bool {
    let last = world.spans.last_child(call.id);
    last.is_some_and(|attempt| world.questions.is_fallback(attempt.id))
}

/// A call's result, or its arguments while it is open.
fn result_text(data: &RunData, span: &Span) -> (String, StyleRole) {
    if span.state == SpanState::Open {
        if let Some(progress) = data.shown().tools.progress_of(span.id) {
            return (progress_text(&progress.text, progress.done, progress.total), StyleRole::Dim);
        }
        return match data.opening_event(span.id).map(|event| &event.kind) {
            Some(EventKind::CallStarted(started)) => {
                let args = started.args.as_ref().map(|args| start_of(&top_text(args)));
                (args.unwrap_or_default(), StyleRole::Dim)
            }
            _ => (String::new(), StyleRole::Dim),
        };
    }
    if let Some(EventKind::CallFailed { reason, .. } | EventKind::CallDegraded { reason, .. }) =
        data.closing_event(span.id).map(|event| &event.kind)
    {
        let role = match span.state {
            _ if reason.class() == StopClass::Cancelled => StyleRole::Off,
            SpanState::Denied => StyleRole::Refused,
            _ => StyleRole::Failed,
        };
        return (reason.phrase().into_owned(), role);
    }
    let last = data.shown().spans.last_child(span.id);
    match last.and_then(|attempt| data.closing_event(attempt.id)).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) if is_fallback(data.shown(), span) => {
            (fallback_said(&start_of(&reply.text)), StyleRole::Retry)
        }
        Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
            Some(result) => (start_of(&top_text(result)), StyleRole::Dim),
            None if reply.finish.as_deref() == Some(crate::log::world::agents::HANDED_OVER) => {
                ("handed over".to_owned(), StyleRole::Dim)
            }
            None => (start_of(&reply.text), StyleRole::Dim),
        },
        _ => (String::new(), StyleRole::Dim),
    }
}

/// The start of a text, more than any row can show.
fn start_of(text: &str) -> String {
    text.chars().take(400).collect()
}
