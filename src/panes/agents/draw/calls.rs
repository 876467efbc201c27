//! Pane 3 of a run with agents: the tree of calls with their results. Only the rows in view are read.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::agent::{MODEL, agent_sign, put_model, time_held};
use crate::agents::facts::MemberOutput;
use crate::agents::projection::shown_output;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::event::kind::{EventKind, Purpose};
use crate::event::world::{Span, SpanKind, SpanState, World};
use crate::event::{Elapsed, SpanId, StopClass, StopReason};
use crate::narrate::glyph::Glyph;
use crate::narrate::readable::top_text;
use crate::panes::agents::call_tree::{CallNode, Fold, call_tree, current_attempt};
use crate::panes::agents::lower::LowerPanes;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::empty;
use crate::ui::table;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{StateSign, StyleRole};

/// Width of a call's duration.
const TOOK: u16 = 7;

/// Minimum width of a model's name.
const LEAST_MODEL: u16 = 8;

/// The layout of a row.
#[derive(Clone, Copy)]
struct CallColumns {
    /// The x position after names and durations.
    names: u16,
    /// Width of the model's name; 0: not shown.
    model: u16,
}

/// Draws the pane.
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
        return empty(cx, area, "No calls yet: hops, members and tools will appear here.", buf);
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
        room if several && room >= LEAST_MODEL => room.min(MODEL),
        _ => 0,
    };
    let places = CallColumns { names, model };
    for (nth, (at, node)) in window.shown().zip(rows).enumerate() {
        let here = line(area, nth as u16);
        let mut pen = table::row(cx, here, selected == Some(at), buf);
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
        pen.glyph(Glyph::Ellipsis, dim).put(" and more: 5 shows all", dim);
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
        pen.right_aligned(&format::duration_text(time_held(world, agent, now)), TOOK - 1, dim)
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
    let took = format::duration_text(
        world.progress.active_between(span.opened, span.closed.unwrap_or(now)),
    );
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
        let took = format::duration_text(world.progress.active_between(since, now));
        pen.put(&format!("queued, {took}"), cx.theme.style(StyleRole::Retry));
        return;
    }
    let seen = shown_output(attempt.id, &world.spans);
    let text = data.live(attempt.id).map(|live| live.text.as_str()).filter(|it| !it.is_empty());
    match text.filter(|_| seen == MemberOutput::Text) {
        Some(text) => {
            let width = usize::from(pen.left().saturating_sub(1));
            let flat = super::agent::tail(text, width);
            pen.put(&flat, cx.theme.style(StyleRole::Text));
            pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
        }
        None => {
            let took = format::duration_text(world.progress.active_between(attempt.opened, now));
            let what = if seen == MemberOutput::Text { "thinking" } else { "replying (hidden)" };
            pen.put(&format!("{what}, {took}"), dim);
        }
    }
}

fn sign(data: &RunData, cx: &DrawContext, world: &World, span: &Span) -> StateSign {
    let of = |glyph, word, role| StateSign { glyph, word, style: cx.theme.style(role) };
    match span.state {
        SpanState::Open if !world.progress.is_live() => of(Glyph::Off, "stopped", StyleRole::Off),
        SpanState::Open => of(Glyph::Running, "working", StyleRole::Running),
        SpanState::Done => of(Glyph::Done, "done", StyleRole::Done),
        SpanState::Failed(_) => match data.closing_event(span.id).map(|event| &event.kind) {
            Some(EventKind::CallFailed { reason: StopReason::Cancelled, .. }) => {
                of(Glyph::Off, "cancelled", StyleRole::Off)
            }
            Some(EventKind::CallDegraded { .. }) => of(Glyph::Alert, "degraded", StyleRole::Retry),
            _ => of(Glyph::Failed, "failed", StyleRole::Failed),
        },
    }
}

/// A call's result, or its arguments while it is open.
fn result_text(data: &RunData, span: &Span) -> (String, StyleRole) {
    if span.state == SpanState::Open {
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
        let cancelled = reason.class() == StopClass::Cancelled;
        return (
            reason.phrase().into_owned(),
            if cancelled { StyleRole::Off } else { StyleRole::Failed },
        );
    }
    let last = data.shown().spans.last_child(span.id);
    match last.and_then(|attempt| data.closing_event(attempt.id)).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
            Some(result) => (start_of(&top_text(result)), StyleRole::Dim),
            None if reply.finish.as_deref() == Some(crate::agents::projection::HANDED_OVER) => {
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
