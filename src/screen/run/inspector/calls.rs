//! The call that is inspected: its callee, its model and its verdict; and the event that caused
//! another one.

use super::{CalleeKind, InspectTarget, InspectedRun, Tab};
use crate::log::event::{
    Event, EventKind, ModelLabel, Purpose, Reply, ReplyRefused, Seq, SpanId, StopReason, World,
};
use crate::log::facts::observed::SpanRole;
use crate::log::world::observed::ObservedSpan;
use crate::log::world::{EventLog, SpanKind};
use crate::screen::run::data::{EventWindow, RunData};

/// The call that a target belongs to, if any.
pub fn call_of(run: &RunData, target: InspectTarget) -> Option<SpanId> {
    match target {
        InspectTarget::Call(call) => Some(call),
        InspectTarget::Event(seq) => call_of_event(run, run.event(seq)?),
    }
}

fn call_of_event(run: &RunData, event: &Event) -> Option<SpanId> {
    let world = run.world();
    if let Some(call) = world.projection().and_then(|it| it.call_of(event, world)) {
        return Some(call);
    }
    let span = world.spans.get(event.span)?;
    match span.kind {
        SpanKind::Call(_) => Some(span.id),
        SpanKind::Attempt(_) => Some(span.parent),
        _ => None,
    }
}

/// The span of a watched program for a call: the span itself, or the one around its call in the log.
pub(super) fn observed_span(world: &World, call: SpanId) -> Option<&ObservedSpan> {
    let observed = world.observed()?;
    observed.span(call).or_else(|| observed.span(world.spans.get(call)?.parent))
}

/// Whether a call is one of a model or of a tool.
pub(super) fn callee_kind(run: &RunData, call: Option<SpanId>) -> CalleeKind {
    if let Some(span) = call.and_then(|call| observed_span(run.world(), call)) {
        return match span.about.role {
            SpanRole::Model => CalleeKind::Model,
            SpanRole::Tool | SpanRole::Retriever => CalleeKind::Tool,
            _ => CalleeKind::Span,
        };
    }
    match call.and_then(|call| run.opening_event(call)).map(|event| &event.kind) {
        Some(EventKind::CallStarted(started)) if started.args.is_some() => CalleeKind::Tool,
        _ => CalleeKind::Model,
    }
}

/// The tab that opens first for a target.
pub(crate) fn first_tab(run: &RunData, target: InspectTarget) -> Tab {
    match target {
        InspectTarget::Call(_) => Tab::Reply,
        InspectTarget::Event(seq) => match run.event(seq).map(|event| &event.kind) {
            Some(EventKind::CallStarted(_)) => Tab::Prompt,
            Some(
                EventKind::AttemptAnswered(_)
                | EventKind::AttemptFailed(_)
                | EventKind::AttemptRefused { .. }
                | EventKind::CallAnswered { .. }
                | EventKind::CallDegraded { .. }
                | EventKind::ReplyRefused(_)
                | EventKind::AnswerComposed { .. },
            ) => Tab::Reply,
            Some(EventKind::Pattern(fact)) if fact.get().shows_reply() => Tab::Reply,
            Some(EventKind::Pattern(fact))
                if fact.opens().is_some() && fact.observed().is_some() =>
            {
                Tab::Prompt
            }
            Some(
                EventKind::CallRetried { .. }
                | EventKind::RetryRefused { .. }
                | EventKind::AttemptStarted { .. },
            ) => Tab::Timing,
            _ => Tab::Raw,
        },
    }
}

/// The model that a call uses: its own, else the model of the whole run.
pub(crate) fn call_model(run: &RunData, call: SpanId, purpose: &Purpose) -> Option<String> {
    if let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        && let Some(model) = &started.model
    {
        return Some(model.to_string());
    }
    let world = run.world();
    let of_caller = world.models.for_purpose(purpose).map(str::to_owned);
    of_caller.or_else(|| match &world.head.as_ref()?.model {
        ModelLabel::Scripted => Some("scripted".to_owned()),
        ModelLabel::Observed { .. } => None,
        // The opening event was dropped, so nothing tells which of several models it was.
        ModelLabel::Live { name, .. } if world.models.is_empty() => Some(name.clone()),
        ModelLabel::Live { .. } => None,
    })
}

/// The reply of a call's last attempt.
pub(crate) fn reply(run: &RunData, call: SpanId) -> Option<&Reply> {
    // The call of a watched program has no attempts.
    let attempt = run.world().spans.last_child(call).map_or(call, |attempt| attempt.id);
    match &run.closing_event(attempt)?.kind {
        EventKind::AttemptAnswered(reply) => Some(reply),
        _ => None,
    }
}

/// The event with the gateway's verdict on a call's reply; it follows within the same round.
pub(super) fn verdict_event<'a>(run: &InspectedRun<'a>, call: SpanId) -> Option<&'a Event> {
    let span = run.world.spans.get(call)?;
    let from = run.run.place(span.closed_by?);
    let SpanKind::Call(purpose) = &span.kind else { return None };
    let end = run.world.spans.get(span.parent).and_then(|round| round.closed_by);
    let end = end.map_or(run.events, |end| run.run.place(end));
    run.log().between(from, end).map(|event| &**event).find(|event| match &event.kind {
        EventKind::Pattern(fact) => fact.get().is_verdict_on(purpose),
        EventKind::AnswerComposed { .. } => *purpose == Purpose::Finalize,
        _ => false,
    })
}

/// Why the reply of a call was refused; that event follows the end of the call.
pub(crate) fn refused_reply<'a>(run: &InspectedRun<'a>, call: SpanId) -> Option<&'a ReplyRefused> {
    /// Maximum number of events of other branches in between.
    const BETWEEN: usize = 1_000;
    let from = run.run.place(run.world.spans.get(call)?.closed_by?);
    let facts = run.log().between(from, run.events.min(from + BETWEEN));
    facts.filter(|event| event.span == call).find_map(|event| match &event.kind {
        EventKind::ReplyRefused(refused) => Some(&**refused),
        _ => None,
    })
}

/// The model call whose prompt shows what an agent saw in this call: the call itself, or for
/// the whole turn of an agent the last one within it.
pub fn prompt_call(run: &RunData, call: SpanId) -> SpanId {
    let world = run.shown();
    let kind = world.spans.get(call).map(|span| &span.kind);
    let runs_agent = |purpose: &Purpose| purpose.called_agent().is_some();
    if !matches!(kind, Some(SpanKind::Call(purpose)) if runs_agent(purpose)) {
        return call;
    }
    let is_say = |span: &&crate::log::world::Span| {
        matches!(span.kind, SpanKind::Call(Purpose::ModelCall { .. }))
    };
    let attempt = world.spans.last_child(call).map(|attempt| attempt.id);
    let said = attempt.and_then(|it| world.spans.children(it).filter(is_say).last());
    said.map_or(call, |span| span.id)
}

/// The event that caused the inspected or selected target.
pub(crate) fn cause_of(run: &RunData, target: InspectTarget) -> Option<Seq> {
    match target {
        InspectTarget::Event(seq) => cause_of_event(run, run.event(seq)?),
        InspectTarget::Call(call) => {
            let call = run.opening_event(call)?;
            match &call.kind {
                EventKind::CallStarted(started) if matches!(started.purpose, Purpose::Finalize) => {
                    cause_of_event(run, call)
                }
                _ => Some(call.seq),
            }
        }
    }
}

/// The event that caused this one: the place where an operator would look next.
fn cause_of_event(run: &RunData, event: &Event) -> Option<Seq> {
    let (world, log) = (run.world(), run.log());
    // The attempt whose error stopped the run.
    if let (EventKind::RunClosed(_), Some(failed)) = (&event.kind, world.stop_cause_event()) {
        return Some(failed);
    }
    let of_pattern = world.projection().and_then(|it| it.cause_of(event, world, log));
    of_pattern.or_else(|| shared_cause(world, log, event))
}

/// The cause of an event that has the same cause in all patterns.
fn shared_cause(world: &World, log: &EventWindow, event: &Event) -> Option<Seq> {
    match &event.kind {
        EventKind::PlanRefused { .. } => world.spans.closed_by(event.span),
        // The change of the breaker that refused it.
        EventKind::AttemptRefused { reason: StopReason::CircuitOpen(tool), .. } => log.last_before(
            event.seq,
            &|it| matches!(&it.kind, EventKind::BreakerChanged { tool: of, .. } if of == tool),
        ),
        EventKind::BreakerChanged { .. } | EventKind::RunClosed(_) => {
            log.find_before(event.seq, &|_| true)
        }
        EventKind::CallRetried { attempt, .. } => {
            let failed = world.spans.children(event.span).find(
                |child| matches!(child.kind, SpanKind::Attempt(nth) if nth + 1 == *attempt),
            )?;
            failed.closed_by
        }
        EventKind::CallAnswered { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::CallFailed { .. }
        | EventKind::RetryRefused { .. } => world.spans.last_child(event.span)?.closed_by,
        EventKind::AttemptStarted { parent, .. } => world.spans.opened_by(*parent),
        EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_) => {
            world.spans.opened_by(event.span)
        }
        _ => None,
    }
}
