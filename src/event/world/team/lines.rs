//! The transcript of a team: replies, calls and results, and how much of each is shown.

use std::sync::Arc;

use super::{HANDED_OVER, HopState, Line, LineKind, Team};
use crate::event::kind::{Inner, Purpose, Reply};
use crate::event::world::spans::{SpanKind, Spans};
use crate::event::{Event, SpanId, StopReason, told};
use crate::scenario::agent::TRANSFER;
use crate::scenario::name::AgentName;

/// Result of a call, as its caller gets it.
pub(super) enum Came<'e> {
    /// The text of the result.
    Told(Arc<str>),
    /// The stop reason of a failed call, and the error of its last attempt.
    Failed(&'e StopReason, Option<Arc<str>>),
}

/// Position of a span within nested teams.
struct Place {
    depth: u16,
    inner: Inner,
}

impl Team {
    pub(super) fn answered(&mut self, event: &Event, reply: &Reply, spans: &Spans) {
        let Some(call) = spans.get(event.span).map(|span| span.parent) else { return };
        self.attempt(call, None);
        let Some(SpanKind::Call(purpose)) = spans.get(call).map(|span| &span.what) else { return };
        match purpose {
            Purpose::Say { agent, round, .. } => {
                if *round == 1
                    && let Some(usage) = reply.usage
                {
                    let attempt = spans.get(call).map(|span| span.parent);
                    let hop = attempt.and_then(|it| spans.get(it)).map(|span| span.parent);
                    let place = hop.and_then(|hop| self.open.get(&hop)).copied();
                    if let Some(row) = place.and_then(|place| self.hops.get_mut(place)) {
                        row.context = Some(usage.prompt_tokens);
                    }
                }
                if !reply.text.is_empty() {
                    let what = LineKind::Said(Arc::clone(&reply.text));
                    self.line(event, call, agent, what, spans);
                }
                // A handoff has its own line, whether made or refused.
                for made in reply.tool_calls.iter().filter(|made| *made.name != *TRANSFER) {
                    self.line(event, call, agent, LineKind::Called(made.clone()), spans);
                }
            }
            Purpose::Member { .. } | Purpose::Tool { .. } => {
                self.result(event, call, purpose, Came::Told(told::reply(reply)), spans);
            }
            Purpose::Hop { .. } => {
                let place = self.open.get(&call).copied();
                if let Some(row) = place.and_then(|place| self.hops.get_mut(place))
                    && reply.finish.as_deref() == Some(HANDED_OVER)
                {
                    row.state = HopState::HandedOver;
                }
            }
            _ => {}
        }
    }

    /// Adds the result of a call, as a line of the caller. The result of a member is text, which
    /// its team may hide.
    pub(super) fn result(
        &mut self,
        event: &Event,
        call: SpanId,
        purpose: &Purpose,
        came: Came<'_>,
        spans: &Spans,
    ) {
        let (by, of, prose) = match purpose {
            Purpose::Member { by, agent, .. } => (by, agent.as_str(), true),
            Purpose::Tool { agent, tool, .. } => (agent, tool.as_str(), false),
            _ => return,
        };
        let place = place(spans.get(call).map_or(SpanId::RUN, |span| span.parent), spans);
        let whole = !prose || place.inner == Inner::Text;
        let (text, ok) = match came {
            Came::Told(text) => (text, true),
            // The caller was cancelled as well.
            Came::Failed(StopReason::Cancelled, _) => {
                (StopReason::Cancelled.to_string().into(), false)
            }
            Came::Failed(reason, last) => {
                (told::failure(reason, last.as_deref().filter(|_| whole)), false)
            }
        };
        let text = if ok && !whole { Arc::default() } else { text };
        self.line_at(event, call, &place, by, LineKind::Result { of: of.into(), text, ok });
    }

    pub(super) fn line(
        &mut self,
        event: &Event,
        span: SpanId,
        author: &AgentName,
        what: LineKind,
        spans: &Spans,
    ) {
        self.line_at(event, span, &place(span, spans), author, what);
    }

    /// Adds a line if it is shown: a nested team may hide the lines of its members.
    fn line_at(
        &mut self,
        event: &Event,
        span: SpanId,
        place: &Place,
        author: &AgentName,
        what: LineKind,
    ) {
        let shown = match place.inner {
            Inner::Text => true,
            Inner::Progress => !matches!(what, LineKind::Said(_)),
            Inner::Hidden => false,
        };
        if shown {
            let (at, seq, depth) = (event.at, event.seq, place.depth);
            let author = Some(author.clone());
            self.lines.push(Line { at, seq, span, author, depth, what });
        }
    }
}

/// How deep a span is nested in teams, and how much of it they show: the least of what the
/// enclosing teams show.
fn place(span: SpanId, spans: &Spans) -> Place {
    let mut found = Place { depth: 0, inner: Inner::Text };
    let mut at = spans.get(span);
    // A file may have spans that enclose each other.
    let mut left = 256;
    while let Some(span) = at.filter(|span| span.id != SpanId::RUN && left > 0) {
        left -= 1;
        if let SpanKind::Call(Purpose::Member { inner, .. }) = &span.what {
            found.depth += 1;
            found.inner = least(found.inner, *inner);
        }
        at = spans.get(span.parent);
    }
    found
}

fn least(one: Inner, other: Inner) -> Inner {
    match (one, other) {
        (Inner::Hidden, _) | (_, Inner::Hidden) => Inner::Hidden,
        (Inner::Progress, _) | (_, Inner::Progress) => Inner::Progress,
        (Inner::Text, Inner::Text) => Inner::Text,
    }
}

/// How deep a span is nested in teams.
pub(super) fn depth(span: SpanId, spans: &Spans) -> u16 {
    place(span, spans).depth
}

/// How much of a span's live text is shown, while an agent's reply is received.
pub fn shown(span: SpanId, spans: &Spans) -> Inner {
    place(span, spans).inner
}
