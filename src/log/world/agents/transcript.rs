//! The transcript of a team: replies, calls and results, and how much of each is shown.

use std::sync::Arc;

use super::rows::{HopState, LineKind, ResultEnd, TranscriptLine};
use super::{AgentsFold, HANDED_OVER};
use crate::base::name::AgentName;
use crate::log::event::{Event, Purpose, Reply, SpanId, StopReason, result_text};
use crate::log::facts::agents::MemberOutput;
use crate::log::world::spans::{SpanKind, Spans};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::TRANSFER;

/// Result of a call, as its caller gets it.
pub(crate) enum CallResult<'e> {
    Text(Arc<str>),
    /// The stop reason of a failed call, and the error of its last attempt.
    Failed(&'e StopReason, Option<Arc<str>>),
}

/// Position of a span within nested teams.
struct TeamNesting {
    depth: u16,
    inner: MemberOutput,
}

impl AgentsFold {
    pub(crate) fn answered(&mut self, event: &Event, reply: &Reply, spans: &Spans) {
        let Some(call) = spans.get(event.span).map(|span| span.parent) else { return };
        self.set_attempt(call, None);
        let Some(SpanKind::Call(purpose)) = spans.get(call).map(|span| &span.kind) else { return };
        match purpose {
            Purpose::ModelCall { agent, round, .. } => {
                if *round == 1
                    && let Some(usage) = reply.usage
                {
                    let attempt = spans.get(call).map(|span| span.parent);
                    let hop = attempt.and_then(|it| spans.get(it)).map(|span| span.parent);
                    let place = hop.and_then(|hop| self.open.get(&hop)).copied();
                    if let Some(row) = place.and_then(|place| self.hops.get_mut(place)) {
                        row.context_tokens = Some(usage.prompt_tokens);
                    }
                }
                if !reply.text.is_empty() {
                    let what = LineKind::Said(Arc::clone(&reply.text));
                    self.add_line(event, call, agent, what, spans);
                }
                let (end, calls) = (reply.end, reply.tool_calls.len());
                // A paused reply is continued; one without a text is refused.
                if !matches!(end, ReplyEnd::Stop | ReplyEnd::Paused)
                    && !reply.text.trim().is_empty()
                {
                    self.add_line(event, call, agent, LineKind::Cut { end, calls }, spans);
                }
                // A handoff has its own line, whether made or refused.
                for made in reply.calls_to_make().iter().filter(|made| *made.name != *TRANSFER) {
                    self.add_line(event, call, agent, LineKind::Called(made.clone()), spans);
                }
            }
            // The user gets it: it is the run's answer, which the agent has said.
            Purpose::Member { by, .. } if self.plan.agent(by).is_none() => {}
            Purpose::Member { .. } | Purpose::Tool { .. } => {
                self.add_result(
                    event,
                    call,
                    purpose,
                    CallResult::Text(result_text::marked_text(
                        &result_text::reply_text(reply),
                        reply.end,
                    )),
                    spans,
                );
            }
            Purpose::SwarmTurn { .. } => {
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
    pub(super) fn add_result(
        &mut self,
        event: &Event,
        call: SpanId,
        purpose: &Purpose,
        came: CallResult<'_>,
        spans: &Spans,
    ) {
        let (by, of, prose) = match purpose {
            Purpose::Member { by, agent, .. } => (by, agent.as_str(), true),
            Purpose::Tool { agent, tool, .. } => (agent, tool.as_str(), false),
            _ => return,
        };
        let place = nesting(spans.get(call).map_or(SpanId::RUN, |span| span.parent), spans);
        let whole = !prose || place.inner == MemberOutput::Text;
        let changed = self.changed.remove(&call);
        let answered = match self.unanswered.remove(&call) {
            true => ResultEnd::Unanswered,
            false => ResultEnd::Answered,
        };
        let (text, end) = match came {
            CallResult::Text(text) if whole => {
                (result_text::noted_text(&text, changed.as_deref()), answered)
            }
            CallResult::Text(_) => (Arc::default(), answered),
            CallResult::Failed(StopReason::Cancelled, _) => {
                (StopReason::Cancelled.to_string().into(), ResultEnd::Cancelled)
            }
            CallResult::Failed(reason, last) => {
                let end = match reason {
                    StopReason::ApprovalDenied(_) => ResultEnd::Denied,
                    _ => ResultEnd::Failed,
                };
                (result_text::failure_text(reason, last.as_deref().filter(|_| whole)), end)
            }
        };
        self.add_line_at(event, call, &place, by, LineKind::Result { of: of.into(), text, end });
    }

    pub(super) fn add_line(
        &mut self,
        event: &Event,
        span: SpanId,
        author: &AgentName,
        what: LineKind,
        spans: &Spans,
    ) {
        self.add_line_at(event, span, &nesting(span, spans), author, what);
    }

    /// Adds a line if it is shown: a nested team may hide the lines of its members.
    fn add_line_at(
        &mut self,
        event: &Event,
        span: SpanId,
        place: &TeamNesting,
        author: &AgentName,
        what: LineKind,
    ) {
        let shown = match place.inner {
            MemberOutput::Text => true,
            MemberOutput::Progress => !matches!(what, LineKind::Said(_) | LineKind::Fallback(_)),
            MemberOutput::Hidden => false,
        };
        if shown {
            let (at, seq, depth) = (event.at, event.seq, place.depth);
            let author = Some(author.clone());
            self.lines.push(TranscriptLine { at, seq, span, author, depth, what });
        }
    }
}

/// How deep a span is nested in teams, and how much of it they show: the least of what the
/// enclosing teams show.
fn nesting(span: SpanId, spans: &Spans) -> TeamNesting {
    let mut found = TeamNesting { depth: 0, inner: MemberOutput::Text };
    let mut at = spans.get(span);
    // A file may have spans that enclose each other.
    let mut left = 256;
    while let Some(span) = at.filter(|span| span.id != SpanId::RUN && left > 0) {
        left -= 1;
        if let SpanKind::Call(Purpose::Member { member_output: inner, .. }) = &span.kind {
            found.depth += 1;
            found.inner = less_shown(found.inner, *inner);
        }
        at = spans.get(span.parent);
    }
    found
}

fn less_shown(one: MemberOutput, other: MemberOutput) -> MemberOutput {
    match (one, other) {
        (MemberOutput::Hidden, _) | (_, MemberOutput::Hidden) => MemberOutput::Hidden,
        (MemberOutput::Progress, _) | (_, MemberOutput::Progress) => MemberOutput::Progress,
        (MemberOutput::Text, MemberOutput::Text) => MemberOutput::Text,
    }
}

/// How deep a span is nested in teams.
pub(super) fn call_depth(span: SpanId, spans: &Spans) -> u16 {
    nesting(span, spans).depth
}

/// How much of a span's live text is shown, while an agent's reply is received.
pub fn shown_output(span: SpanId, spans: &Spans) -> MemberOutput {
    nesting(span, spans).inner
}
