//! The figures of an event or a call in the inspector: the summary at the left of the tabs, and the
//! tab Timing.

use std::time::Duration;

use super::calls::call_model;
use crate::app::run::data::RunData;
use crate::event::kind::{
    AgentFact, CollaborationFact, LoopGuard, PatternFact, Purpose, ResearchFact, SourceNo,
};
use crate::event::world::{Span, SpanKind, SpanState};
use crate::event::{Event, EventKind, SpanId, World};
use crate::narrate::event_line::{conflict_names, decision_or_next, failure_name, took_ms};
use crate::narrate::format;
use crate::narrate::measure::single_line;
use crate::narrate::styled::StyledText;

pub(super) fn timing_document(
    run: &RunData,
    call: Option<SpanId>,
    fact: Option<&Event>,
) -> StyledText {
    let mut document = StyledText::default();
    let world = run.world();
    if let Some(event) = fact {
        document.field("at", format::time_in_run(event.at));
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
fn add_model(run: &RunData, document: &mut StyledText, call: SpanId, purpose: &Purpose) {
    if purpose.caller().is_some()
        && let Some(model) = call_model(run, call, purpose)
    {
        document.field("model", model);
    }
}

fn add_attempt_times(run: &RunData, document: &mut StyledText, attempt: &Span) {
    match run.closing_event(attempt.id).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) if reply.result.is_some() => {}
        Some(EventKind::AttemptAnswered(reply)) => {
            if let Some(first) = reply.first_token_ms {
                document.field("first token", format!("after {}", took_ms(first)));
            }
            if let Some(usage) = reply.usage {
                document.field("tokens in", format::exact(usage.prompt_tokens));
                document.field("tokens out", format::exact(usage.completion_tokens));
                let took = attempt.duration(run.world().at);
                if let Some(rate) = token_rate(usage.completion_tokens, reply.first_token_ms, took)
                {
                    document.field("rate", rate);
                }
            } else {
                document.field("tokens", "not reported by the endpoint");
            }
            for (name, value) in [("served by", &reply.model), ("finish", &reply.finish)] {
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
    run: &RunData,
    call: Option<SpanId>,
    fact: Option<&Event>,
) -> StyledText {
    let mut document = StyledText::default();
    let world = run.world();
    if let Some(event) = fact {
        let told = crate::narrate::event_line::event_line(event, world);
        document.field("kind", told.kind);
        document.field("at", format::time_in_run(event.at));
        if let Some(round) = told.round.filter(|_| call.is_none()) {
            document.field("round", round.to_string());
        }
        if !told.subject.is_empty() && call.is_none() {
            document.field("who", &told.subject);
        }
        add_event_fields(run, &mut document, event);
    }
    let Some(span) = call.and_then(|call| world.spans.get(call)) else { return document };
    document.gap();
    let SpanKind::Call(purpose) = &span.kind else { return document };
    document.heading("call");
    match purpose {
        Purpose::Contribution { round, seat, role } => {
            document.field("seat", role.as_str());
            document.field("round", round.to_string());
            let flag = world.collaboration().and_then(|it| it.plan.role_flags.get(role));
            if let Some(flag) = flag {
                document.field("flag", flag.flag.as_str());
            }
            let before = world
                .collaboration()
                .and_then(|table| table.seat_before(*round, usize::from(*seat)))
                .and_then(|seat| seat.contribution.as_ref());
            if let Some(before) = before {
                let confidence = format::confidence(before.confidence);
                let before = format!("{} {confidence}", before.stance);
                document.field(&format!("in R{}", round.saturating_sub(1)), before);
            }
        }
        Purpose::Plan => document.field("purpose", "plan"),
        Purpose::Search => document.field("purpose", "search"),
        Purpose::Synthesize => document.field("purpose", "answer"),
        Purpose::Read { source } | Purpose::Notes { source } => {
            document.field("source", source.to_string());
            let row = world.research().and_then(|research| research.source(*source));
            // For an event of the source these fields are already above.
            if let Some(row) = row.filter(|_| fact.is_none()) {
                document.field("title", single_line(row.title()));
                document.field("address", single_line(row.address()));
            }
        }
        Purpose::Task { task, .. } => {
            document.field("task", task.as_str());
            if let Some(worker) = crate::narrate::attribution::tool_of_purpose(purpose, world) {
                document.field("worker", worker);
            }
        }
        Purpose::AgentStep { agent, turn, repeat: again, .. } => {
            document.field("agent", agent.to_string());
            if let Some(tool) = crate::narrate::attribution::tool_of_purpose(purpose, world) {
                document.field("tool", tool);
            }
            document.field("turn", turn.to_string());
            if *again > 0 {
                document.field("repeat", again.to_string());
            }
        }
        Purpose::ModelCall { agent, turn, round } => {
            document.field("agent", agent.as_str());
            document.field("turn", turn.to_string());
            document.field("call", round.to_string());
        }
        Purpose::Member { agent, by, turn, .. } => {
            document.field("member", agent.as_str());
            document.field("called by", by.as_str());
            document.field("turn", turn.to_string());
        }
        Purpose::SwarmTurn { agent, swarm, hop, from, .. } => {
            document.field("agent", agent.as_str());
            document.field("swarm", swarm.as_str());
            document.field("hop", hop.to_string());
            if let Some(from) = from {
                document.field("from", from.as_str());
            }
        }
        Purpose::Tool { agent, tool, .. } => {
            document.field("agent", agent.as_str());
            document.field("tool", tool.as_str());
        }
        Purpose::Finalize => document.field("purpose", "final answer"),
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
    document.field("started", format::time_in_run(span.opened));
    if span.closed.is_some() {
        document.field("took", format::duration_text(span.duration(world.at)));
    }
    document
}

fn add_event_fields(run: &RunData, document: &mut StyledText, event: &Event) {
    match &event.kind {
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted { contribution, messages, .. },
        )) => {
            let confidence = format::confidence(contribution.confidence);
            document.field("stance", format!("{} {confidence}", contribution.stance));
            document.field("messages", format!("{messages} used"));
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts: found,
            decision,
        })) => {
            document.field("conflicts", conflict_names(found));
            let next = decision_or_next(run.world(), *round, *decision);
            document.field("decision", next);
        }
        EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade {
            to,
            message,
            guard,
            ..
        })) => {
            document.field("to", to.as_str());
            if let Some(message) = message {
                document.field("message", message.replace('\n', " "));
            }
            add_loop_guard(document, guard);
        }
        EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffRefused {
            to,
            reason: why,
            guard,
            rejections,
            ..
        })) => {
            document.field("to", to.as_str());
            document.field("reason", why.to_string());
            add_loop_guard(document, guard);
            document.field("refusals", rejections.to_string());
        }
        EventKind::RosterChanged { members, .. } => {
            let names: Vec<&str> = members.iter().map(|name| name.as_str()).collect();
            document.field("members", names.join(", "));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
            source, ..
        })) => add_source(document, run.world(), *source),
        EventKind::Pattern(PatternFact::Research(ResearchFact::PageRead(page))) => {
            add_source(document, run.world(), page.source)
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { source, note })) => {
            add_source(document, run.world(), *source);
            document.field("note", note.id.as_str());
            document.field("claim", single_line(&note.claim));
            document.field("quote", single_line(&note.quote));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(note))) => {
            add_source(document, run.world(), note.source);
            document.field("refused", note.reason.phrase());
            document.field("claim", single_line(&note.claim));
            document.field("quote", single_line(&note.quote));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::NotesTruncated(cut))) => {
            add_source(document, run.world(), cut.source);
            document.field("proposed", cut.proposed.to_string());
            document.field("cut", format!("{} ({})", cut.cut, cut.limit.phrase()));
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(_))) => {
            if let Some(source) =
                crate::narrate::attribution::source_of_span(event.span, run.world())
            {
                add_source(document, run.world(), source);
            }
        }
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
        _ => {}
    }
}

/// Adds the details of a source.
fn add_source(document: &mut StyledText, world: &World, source: SourceNo) {
    let Some(research) = world.research() else { return };
    let plan = &*research.plan;
    let Some(row) = research.source(source) else { return };
    document.field("source", source.to_string());
    document.field("title", single_line(row.title()));
    document.field("address", single_line(row.address()));
    document.field("state", crate::app::run::research::source::source_state(row));
    if let Some(trust) = crate::app::run::research::source::trust(row, plan) {
        document.field("trust", format::confidence(trust));
    }
    let age = crate::app::run::research::source::age_text(row, plan);
    if !age.is_empty() {
        document.field("age", age);
    }
    if row.page.is_none() {
        let (why, to_do) = crate::app::run::research::source::missing_page_reason(row, plan);
        document.field("why", single_line(&why));
        if let Some(to_do) = to_do {
            document.field("", to_do);
        }
    }
}

/// Adds the state of a swarm's loop guard.
fn add_loop_guard(document: &mut StyledText, guard: &LoopGuard) {
    document.field("handoffs", guard.handoffs.to_string());
    document.field("distinct", format!("{} of the last {}", guard.distinct_agents, guard.window));
}

fn add_span_times(document: &mut StyledText, span: &Span, world: &World) {
    document.field("started", format::time_in_run(span.opened));
    match span.closed {
        Some(closed) => {
            document.field("ended", format::time_in_run(closed));
            document.field("took", format::duration_text(span.duration(world.at)));
        }
        None => document.field("ended", "not yet"),
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
