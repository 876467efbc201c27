//! The attempts of a call in one row: their waits, results and speed.

use crate::app::run::data::RunData;
use crate::app::run::inspect::timing::token_rate;
use crate::event::kind::{EventKind, FailureClass};
use crate::event::world::{Span, SpanKind, SpanState};
use crate::event::{SpanId, World};
use crate::narrate::event_line::failure_name;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};

/// Draws a call's attempts, the last one always in view; `word` precedes each number.
pub(crate) fn put(data: &RunData, cx: &DrawContext, pen: &mut Pen, call: SpanId, word: &str) {
    let world = data.shown();
    let mut chain: Vec<Vec<(String, StyleRole)>> = Vec::new();
    let mut before: Option<&Span> = None;
    for attempt in world.spans.children(call) {
        let SpanKind::Attempt(nth) = attempt.kind else { continue };
        let mut link = Vec::new();
        if let Some(closed) = before.and_then(|before| before.closed) {
            let line = cx.glyphs.symbol(Glyph::Wait);
            let wait = format::duration_text(world.progress.active_between(closed, attempt.opened));
            link.push((format!(" {line}{wait}{line} "), StyleRole::Dim));
        }
        link.push((format!("{word}{nth} "), StyleRole::Text));
        link.extend(attempt_state(data, cx, world, attempt));
        chain.push(link);
        before = Some(attempt);
    }
    if chain.is_empty() {
        pen.put("not called yet", cx.theme.style(StyleRole::Dim));
        return;
    }
    let width = |chain: &[Vec<(String, StyleRole)>]| -> usize {
        chain.iter().flatten().map(|(text, _)| columns(text)).sum()
    };
    let mut first = 0;
    while first + 1 < chain.len() && width(&chain[first..]) + 2 > usize::from(pen.left()) {
        first += 1;
    }
    if first > 0 {
        pen.glyph(Glyph::Ellipsis, cx.theme.style(StyleRole::Dim));
    }
    for (text, role) in chain.iter().skip(first).flatten() {
        pen.put(text, cx.theme.style(*role));
    }
    if let Some(rate) = before.and_then(|last| rate(data, last))
        && pen.fits(columns(&rate) + 3)
    {
        pen.space(3).put(&rate, cx.theme.style(StyleRole::Dim));
    }
}

fn attempt_state(
    data: &RunData,
    cx: &DrawContext,
    world: &World,
    attempt: &Span,
) -> Vec<(String, StyleRole)> {
    let took = {
        let end = attempt.closed.unwrap_or(data.time(cx.now));
        format::duration_text(world.progress.active_between(attempt.opened, end))
    };
    let glyph = |glyph: Glyph| cx.glyphs.symbol(glyph);
    match attempt.state {
        SpanState::Open if !world.progress.is_live() => {
            vec![(glyph(Glyph::Off).to_owned(), StyleRole::Off)]
        }
        SpanState::Open => vec![(format!("{} {took}", glyph(Glyph::Running)), StyleRole::Running)],
        SpanState::Done => {
            vec![
                (glyph(Glyph::Done).to_owned(), StyleRole::Done),
                (format!(" {took}"), StyleRole::Text),
            ]
        }
        SpanState::Failed(Some(FailureClass::Cancelled)) => {
            vec![(format!("{} cancelled", glyph(Glyph::Off)), StyleRole::Off)]
        }
        SpanState::Failed(class) => {
            let status = attempt.closed_by.and_then(|seq| data.event(seq)).and_then(|event| {
                match &event.kind {
                    EventKind::AttemptFailed(failed) => failed.status,
                    _ => None,
                }
            });
            let why = class.map_or("failed".into(), |class| failure_name(class, status));
            vec![(format!("{} {why}", glyph(Glyph::Failed)), StyleRole::Failed)]
        }
    }
}

fn rate(data: &RunData, attempt: &Span) -> Option<String> {
    match &data.event(attempt.closed_by?)?.kind {
        EventKind::AttemptAnswered(reply) => {
            let took = attempt.closed?.since(attempt.opened);
            token_rate(reply.usage?.completion_tokens, reply.first_token_ms, took)
        }
        _ => None,
    }
}
