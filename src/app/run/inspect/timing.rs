//! The figures of an event or a call in the inspector: the summary at the left of the tabs, and the
//! tab Timing.

use std::time::Duration;

use super::InspectedRun;
use super::calls::call_model;
use crate::event::kind::Purpose;
use crate::event::world::{Span, SpanKind, SpanState};
use crate::event::{Elapsed, Event, EventKind, SpanId, World};
use crate::narrate::event_line::{failure_name, took_ms};
use crate::narrate::format;
use crate::narrate::patterns::words;
use crate::narrate::styled::StyledText;
use crate::narrate::tell::event_line;

pub(super) fn timing_document(
    run: &InspectedRun<'_>,
    call: Option<SpanId>,
    fact: Option<&Event>,
) -> StyledText {
    let mut document = StyledText::default();
    let world = run.world;
    if let Some(event) = fact {
        add_moment(&mut document, "at", event.at, world);
        add_wall_time(&mut document, event.at, world);
    }
    let Some(span) = call.and_then(|call| world.spans.get(call)) else {
        if let Some(round) = fact.and_then(|event| world.spans.get(event.span)) {
            add_span_times(&mut document, round, world);
        }
        return document;
    };
    document.gap();
    document.heading("call");
    if let SpanKind::Call(purpose) = &span.kind {
        add_model(run, &mut document, span.id, purpose);
    }
    add_span_times(&mut document, span, world);
    let mut before: Option<&Span> = None;
    for attempt in world.spans.children(span.id) {
        let SpanKind::Attempt(nth) = attempt.kind else { continue };
        document.gap();
        document.heading(format!("attempt {nth}"));
        if let Some(closed) = before.and_then(|before| before.closed) {
            document.field("waited", format::duration_text(attempt.opened.since(closed)));
        }
        add_span_times(&mut document, attempt, world);
        if let Some(EventKind::AttemptStarted { timeout_ms, waited_ms, probe, .. }) =
            run.opening_event(attempt.id).map(|event| &event.kind)
        {
            document.field("timeout", took_ms(*timeout_ms));
            if *waited_ms > 0 {
                document.field("queued", took_ms(*waited_ms));
            }
            if *probe {
                document.field("probe", "of a half-open breaker");
            }
        }
        add_attempt_times(run, &mut document, attempt);
        before = Some(attempt);
    }
    document
}

/// Adds the model of a call, if it is a call of a model.
fn add_model(run: &InspectedRun<'_>, document: &mut StyledText, call: SpanId, purpose: &Purpose) {
    if purpose.caller().is_some()
        && let Some(model) = call_model(run.run, call, purpose)
    {
        document.field("model", model);
    }
}

fn add_attempt_times(run: &InspectedRun<'_>, document: &mut StyledText, attempt: &Span) {
    match run.closing_event(attempt.id).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) if reply.result.is_some() => {}
        Some(EventKind::AttemptAnswered(reply)) => {
            if let Some(first) = reply.first_token_ms {
                document.field("first token", format!("after {}", took_ms(first)));
            }
            if let Some(usage) = reply.usage {
                document.field("tokens in", format::exact(usage.prompt_tokens));
                document.field("tokens out", format::exact(usage.completion_tokens));
                let took = attempt.duration(run.world.progress.at);
                if let Some(rate) = token_rate(usage.completion_tokens, reply.first_token_ms, took)
                {
                    document.field("rate", rate);
                }
            } else {
                document.field("tokens", "not reported by the endpoint");
            }
            let fields = [
                ("served by", &reply.model),
                ("finish", &reply.finish),
                ("ignored", &reply.ignored),
            ];
            for (name, value) in fields {
                if let Some(value) = value {
                    document.field(name, value);
                }
            }
        }
        Some(EventKind::AttemptFailed(failed)) => {
            document.field("error", failure_name(failed.class, failed.status));
            if let Some(after) = failed.retry_after_ms {
                document.field("Retry-After", took_ms(after));
            }
        }
        _ => {}
    }
}

/// The summary at the left of the tabs: the event, its call, the times, and what came before.
pub(super) fn summary_document(
    run: &InspectedRun<'_>,
    call: Option<SpanId>,
    fact: Option<&Event>,
) -> StyledText {
    let mut document = StyledText::default();
    let world = run.world;
    if let Some(event) = fact {
        let line = event_line(event, world);
        document.field("kind", line.kind);
        add_moment(&mut document, "at", event.at, world);
        if let Some(round) = line.round.filter(|_| call.is_none()) {
            document.field("round", round.to_string());
        }
        if !line.subject.is_empty() && call.is_none() {
            document.field("who", &line.subject);
        }
        add_event_fields(run, &mut document, event);
    }
    let Some(span) = call.and_then(|call| world.spans.get(call)) else { return document };
    document.gap();
    let SpanKind::Call(purpose) = &span.kind else { return document };
    document.heading("call");
    if let Some(words) = words(world) {
        words.call_fields(purpose, fact.is_some(), &mut document);
    }
    add_model(run, &mut document, span.id, purpose);
    let degraded = matches!(
        run.closing_event(span.id).map(|event| &event.kind),
        Some(EventKind::CallDegraded { .. })
    );
    let state = match span.state {
        _ if degraded => "degraded",
        SpanState::Open => "running",
        SpanState::Done => "answered",
        SpanState::Failed(_) => "failed",
    };
    document.field("state", state);
    let attempts = world.spans.children(span.id).count();
    document.field("attempts", attempts.to_string());
    add_moment(&mut document, "started", span.opened, world);
    if span.closed.is_some() {
        document.field("took", format::duration_text(span.duration(world.progress.at)));
    }
    document
}

fn add_event_fields(run: &InspectedRun<'_>, document: &mut StyledText, event: &Event) {
    match &event.kind {
        EventKind::FlagChanged { on, boundary, .. } => {
            document.field("now", if *on { "on" } else { "off" });
            document.field("from", boundary.display_name());
        }
        EventKind::RunClosed(closed) => {
            document.field("reason", closed.reason.phrase());
            if let Some(phase) = &closed.phase {
                document.field("phase", phase);
            }
        }
        _ => {
            if let Some(words) = words(run.world) {
                words.event_fields(event, run.world, document);
            }
        }
    }
}

fn add_span_times(document: &mut StyledText, span: &Span, world: &World) {
    add_moment(document, "started", span.opened, world);
    match span.closed {
        Some(closed) => {
            add_moment(document, "ended", closed, world);
            document.field("took", format::duration_text(span.duration(world.progress.at)));
        }
        None => document.field("ended", "not yet"),
    }
}

/// Adds a moment on the run's own clock.
fn add_moment(document: &mut StyledText, name: &str, at: Elapsed, world: &World) {
    document.field(name, format::time_in_run(world.progress.run_time(at)));
}

/// Adds a moment as the clock on the wall has it, if the run was paused before.
fn add_wall_time(document: &mut StyledText, at: Elapsed, world: &World) {
    if world.progress.run_time(at) != at.duration() {
        let wall = format::time_in_run(at.duration());
        document.field("with pauses", wall);
    }
}

/// Output tokens per second: over the streaming time if the time of the first token is known, else
/// over the whole attempt.
pub fn token_rate(tokens: u64, first_token_ms: Option<u64>, took: Duration) -> Option<String> {
    let before = Duration::from_millis(first_token_ms.unwrap_or(0));
    let streamed = took.saturating_sub(before);
    // A reply that arrived in one piece has no meaningful rate.
    if streamed < Duration::from_millis(20) {
        return None;
    }
    format::rate(tokens, streamed)
}
