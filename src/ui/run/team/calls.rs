//! Pane 3 of a team: the tree of calls with their results. Only the rows in view are read.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{MODEL, agent_sign, dwell, put_model};
use crate::app::run::RunPage;
use crate::app::run::team::tree::{Fold, Node, speaking};
use crate::event::kind::{EventKind, Inner, Purpose};
use crate::event::world::team::shown;
use crate::event::world::{Span, SpanKind, SpanState, World};
use crate::event::{Elapsed, SpanId, StopClass, StopReason};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::run::{empty, line, row_style};
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{Role, Sign};

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
pub(in super::super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some(tree) = page.tree() else { return };
    if tree.is_empty() {
        return empty(cx, area, "No calls yet: hops, members and tools will appear here.", buf);
    }
    let now = page.drawn_to(cx.now);
    let (window, selected) = page.call_rows(&tree, usize::from(area.height));
    let rows = tree.rows(window.clone());
    let wanted = rows.iter().map(|node| wanted(world, *node)).max();
    // The result keeps at least two fifths of the row, or half of it including the model.
    let several = !world.models.is_empty();
    let most = if several { area.width / 2 } else { area.width * 3 / 5 };
    let names = area.x + wanted.unwrap_or(0).min(most);
    let model = match area.right().saturating_sub(names + 2) / 2 {
        room if several && room >= LEAST_MODEL => room.min(MODEL),
        _ => 0,
    };
    let places = CallColumns { names, model };
    for (nth, (at, node)) in window.zip(rows).enumerate() {
        let here = line(area, nth as u16);
        row_style(cx, here, selected == Some(at), buf);
        let mut pen = Pen::new(buf, here, cx.glyphs);
        match selected == Some(at) {
            true => pen.glyph(Glyph::Selected, cx.theme.style(Role::Key)),
            false => pen.space(1),
        };
        one(page, cx, world, &mut pen, node, now, places);
    }
}

/// The width of a row's name and duration.
fn wanted(world: &World, node: Node) -> u16 {
    let name = match world.spans.get(node.span).map(|span| &span.what) {
        Some(SpanKind::Call(Purpose::Tool { tool, .. })) => tool.as_str(),
        Some(SpanKind::Call(purpose)) => purpose.agent().map_or("", |agent| agent.as_str()),
        _ => world.team().map_or("", |(_, plan)| plan.root.as_str()),
    };
    let name = u16::try_from(columns(name)).unwrap_or(u16::MAX).min(30);
    8 + 2 * node.depth.min(12) + name + TOOK
}

/// Draws the model's name, if the layout has that column.
fn asks(cx: &Cx, pen: &mut Pen, name: Option<&str>, width: u16, style: Style) {
    if width > 0 {
        put_model(cx, pen, name.unwrap_or_default(), width, style);
        pen.space(1);
    }
}

fn one(
    page: &RunPage,
    cx: &Cx,
    world: &World,
    pen: &mut Pen,
    node: Node,
    now: Elapsed,
    CallColumns { names, model }: CallColumns,
) {
    let theme = cx.theme;
    let (dim, plain) = (theme.style(Role::Dim), theme.style(Role::Text));
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
        let Some((team, plan)) = world.team() else { return };
        let Some(agent) = team.agent(&plan.root) else { return };
        let sign = agent_sign(cx, world, agent);
        pen.glyph(sign.glyph, sign.style).space(1);
        let width = end(pen);
        pen.name(agent.name.as_str(), width, plain).to(names - TOOK.min(names));
        pen.right(&format::took(dwell(world, agent, now)), TOOK - 1, dim).to(names).space(1);
        asks(cx, pen, world.models.of_agent(agent.name.as_str()), model, dim);
        live(page, cx, world, pen, SpanId::RUN, now);
        return;
    }
    let Some(span) = world.spans.get(node.span) else { return };
    let SpanKind::Call(purpose) = &span.what else { return };
    let sign = sign(page, cx, world, span);
    let (glyph, name) = match purpose {
        Purpose::Hop { agent, .. } => (Glyph::Arrow, agent.as_str()),
        Purpose::Member { agent, .. } => (Glyph::Consults, agent.as_str()),
        Purpose::Tool { tool, .. } => (Glyph::Within, tool.as_str()),
        _ => return,
    };
    pen.glyph(sign.glyph, sign.style).space(1).glyph(glyph, dim).space(1);
    let width = end(pen);
    pen.name(name, width, plain).to(names.saturating_sub(TOOK));
    let took = format::took(world.took(span.opened, span.closed.unwrap_or(now)));
    pen.right(&took, TOOK - 1, dim).to(names).space(1);
    asks(cx, pen, world.models.of(purpose), model, dim);
    let is_agent = !matches!(purpose, Purpose::Tool { .. });
    if span.state == SpanState::Open && world.is_live() && world.tools.in_line(span.id) {
        pen.put("queued", theme.style(Role::Retry));
        return;
    }
    if span.state == SpanState::Open && is_agent {
        live(page, cx, world, pen, span.id, now);
        return;
    }
    let (text, role) = came_to(page, span);
    pen.put(&text.replace(['\n', '\r', '\t'], " "), theme.style(role));
}

/// Draws an agent's arriving text, if it may be shown; else that it is working.
fn live(page: &RunPage, cx: &Cx, world: &World, pen: &mut Pen, run: SpanId, now: Elapsed) {
    let dim = cx.theme.style(Role::Dim);
    if !world.is_live() {
        return;
    }
    let Some(attempt) = speaking(world, run) else {
        pen.put("waiting", dim);
        return;
    };
    let ask =
        if matches!(attempt.what, SpanKind::Attempt(_)) { attempt.parent } else { attempt.id };
    if world.tools.in_line(ask) {
        let since = world.spans.last_child(ask).and_then(|it| it.closed);
        let since = since.or(world.spans.get(ask).map(|it| it.opened)).unwrap_or(now);
        let took = format::took(world.took(since, now));
        pen.put(&format!("queued, {took}"), cx.theme.style(Role::Retry));
        return;
    }
    let seen = shown(attempt.id, &world.spans);
    let text = page.live(attempt.id).map(|live| live.text.as_str()).filter(|it| !it.is_empty());
    match text.filter(|_| seen == Inner::Text) {
        Some(text) => {
            let width = usize::from(pen.left().saturating_sub(1));
            let flat = super::tail(text, width);
            pen.put(&flat, cx.theme.style(Role::Text));
            pen.glyph(Glyph::Cursor, cx.theme.style(Role::Cursor));
        }
        None => {
            let took = format::took(world.took(attempt.opened, now));
            let what = if seen == Inner::Text { "thinking" } else { "replying (hidden)" };
            pen.put(&format!("{what}, {took}"), dim);
        }
    }
}

fn sign(page: &RunPage, cx: &Cx, world: &World, span: &Span) -> Sign {
    let of = |glyph, word, role| Sign { glyph, word, style: cx.theme.style(role) };
    match span.state {
        SpanState::Open if !world.is_live() => of(Glyph::Off, "stopped", Role::Off),
        SpanState::Open => of(Glyph::Running, "working", Role::Running),
        SpanState::Done => of(Glyph::Done, "done", Role::Done),
        SpanState::Failed(_) => match page.closing(span.id).map(|event| &event.kind) {
            Some(EventKind::CallFailed { reason: StopReason::Cancelled, .. }) => {
                of(Glyph::Off, "cancelled", Role::Off)
            }
            Some(EventKind::CallDegraded { .. }) => of(Glyph::Alert, "degraded", Role::Retry),
            _ => of(Glyph::Failed, "failed", Role::Failed),
        },
    }
}

/// A call's result, or its arguments while it is open.
fn came_to(page: &RunPage, span: &Span) -> (String, Role) {
    if span.state == SpanState::Open {
        return match page.opening(span.id).map(|event| &event.kind) {
            Some(EventKind::CallStarted(started)) => {
                let args = started.args.as_ref().map(|args| args.to_string());
                (args.unwrap_or_default(), Role::Dim)
            }
            _ => (String::new(), Role::Dim),
        };
    }
    if let Some(EventKind::CallFailed { reason, .. } | EventKind::CallDegraded { reason, .. }) =
        page.closing(span.id).map(|event| &event.kind)
    {
        let cancelled = reason.class() == StopClass::Cancelled;
        return (reason.to_string(), if cancelled { Role::Off } else { Role::Failed });
    }
    let last = page.shown().spans.last_child(span.id);
    match last.and_then(|attempt| page.closing(attempt.id)).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
            Some(result) => (start_of(&result.to_string()), Role::Dim),
            None if reply.finish.as_deref() == Some(crate::event::world::team::HANDED_OVER) => {
                ("handed over".to_owned(), Role::Dim)
            }
            None => (start_of(&reply.text), Role::Dim),
        },
        _ => (String::new(), Role::Dim),
    }
}

/// The start of a text, more than any row can show.
fn start_of(text: &str) -> String {
    text.chars().take(400).collect()
}
