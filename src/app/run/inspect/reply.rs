//! The reply to a call, attempt by attempt, and what the gateway made of it.

use super::InspectedRun;
use super::calls::{callee_kind, refused_reply};
use super::prompt::pretty_json;
use super::raw::call_events;
use super::target::CalleeKind;
use super::tool_calls;
use crate::agents::projection::HANDED_OVER;
use crate::app::run::subject_text::NO_PARTIAL_TEXT;
use crate::app::run::text_window::tail_start;
use crate::event::world::{Span, SpanKind};
use crate::event::{EventKind, SpanId};
use crate::narrate::event_line::{cut_reply, failure_name};
use crate::narrate::format;
use crate::narrate::patterns::words;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;

/// How much of a partial reply is wrapped into lines each time that more of it arrives, in bytes.
const MAX_PARTIAL_BYTES: usize = 64 * 1024;

pub(super) fn reply_document(run: &InspectedRun<'_>, call: Option<SpanId>) -> StyledText {
    let mut document = StyledText::default();
    let Some(call) = call else {
        document.add(StyleRole::Dim, "This event belongs to no call, so it has no reply.");
        return document;
    };
    let attempts: Vec<_> = run.world.spans.children(call).collect();
    let many = attempts.len() > 1;
    for attempt in attempts {
        let SpanKind::Attempt(nth) = attempt.kind else { continue };
        if many {
            document.gap();
            document.heading(format!("attempt {nth}"));
        }
        add_attempt_reply(run, &mut document, attempt);
    }
    add_refusals(run, &mut document, call);
    if document.lines.is_empty() {
        document.add(StyleRole::Dim, "No attempt yet.");
    }
    add_fallback(run, &mut document, call);
    add_verdict(run, &mut document, call);
    if let Some(refused) = refused_reply(run, call) {
        document.gap();
        document.text(StyleRole::Failed, &format!("refused: {}", refused.reason.phrase()));
        document.text(StyleRole::Text, &format!("{}.", refused.detail));
        match (refused.repeat, refused.reason.advice()) {
            (Some(nth), _) => {
                document.add(StyleRole::Dim, format!("The model was asked again ({nth})."))
            }
            (None, Some(advice)) => document.add(StyleRole::Dim, advice),
            (None, None) => {}
        }
    }
    document
}

fn add_attempt_reply(run: &InspectedRun<'_>, document: &mut StyledText, attempt: &Span) {
    match run.closing_event(attempt.id).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
            Some(result) => document.json(result),
            None => {
                if !reply.text.is_empty() || reply.tool_calls.is_empty() {
                    document.text(StyleRole::Text, &pretty_json(&reply.text).0);
                }
                tool_calls::add_tool_calls(document, &reply.tool_calls);
                if !reply.end.is_whole() {
                    let mark = cut_reply(reply.end, reply.tool_calls.len());
                    document.add(StyleRole::Retry, format!("It was {mark}."));
                }
                if reply.finish.as_deref() == Some(HANDED_OVER) {
                    document.add(StyleRole::Dim, "It handed over: the next hop continues.");
                }
            }
        },
        Some(EventKind::AttemptFailed(failed)) => {
            let short = failure_name(failed.class, failed.status);
            document.text(StyleRole::Failed, &format!("{short}: {}", failed.text));
            if let Some(partial) = &failed.partial {
                document.add(StyleRole::Dim, "partial reply before the failure:");
                document.text(StyleRole::Text, partial);
            }
        }
        _ => match run.run.live(attempt.id) {
            Some(live) => {
                let from = tail_start(&live.text, MAX_PARTIAL_BYTES);
                if from > 0 {
                    let before = format::bytes(from as u64);
                    document.add(
                        StyleRole::Dim,
                        format!("{before} above, shown when the reply is complete"),
                    );
                }
                document.text(StyleRole::Running, &live.text[from..]);
            }
            None if run.run.is_scrubbed() => document.add(StyleRole::Dim, NO_PARTIAL_TEXT),
            None => document.add(StyleRole::Running, "Waiting for the first token."),
        },
    }
}

/// Lists the attempts that a policy refused, with the reasons.
fn add_refusals(run: &InspectedRun<'_>, document: &mut StyledText, call: SpanId) {
    for event in call_events(run, call).0 {
        let EventKind::AttemptRefused { attempt, reason, .. } = &event.kind else { continue };
        document.gap();
        let text = format!("attempt {attempt} was not made: {}", reason.phrase());
        document.text(StyleRole::Failed, &text);
        if let Some(advice) = reason.advice() {
            document.add(StyleRole::Dim, advice);
        }
    }
}

/// Shows the fallback that a tool's call returned, or why the call failed.
fn add_fallback(run: &InspectedRun<'_>, document: &mut StyledText, call: SpanId) {
    let Some(event) = run.closing_event(call) else { return };
    match &event.kind {
        EventKind::CallDegraded { reason, by, value, .. } => {
            document.gap();
            document.heading("fallback");
            document.field("value", crate::narrate::event_line_tool::fallback_text(*by));
            document.field("reason", reason.phrase());
            if let Some(value) = value {
                document.json(value);
            }
        }
        EventKind::CallFailed { reason, .. }
            if callee_kind(run.run, Some(call)) == CalleeKind::Tool =>
        {
            document.gap();
            let text = format!("failed after the last attempt: {}", reason.phrase());
            document.text(StyleRole::Failed, &text);
            if let Some(advice) = reason.advice() {
                document.add(StyleRole::Dim, advice);
            }
        }
        _ => {}
    }
}

/// Shows how the pattern parsed a reply, or why it refused it.
fn add_verdict(run: &InspectedRun<'_>, document: &mut StyledText, call: SpanId) {
    let world = run.world;
    let Some(words) = words(world) else { return };
    let Some(SpanKind::Call(purpose)) = world.spans.get(call).map(|span| &span.kind) else {
        return;
    };
    words.parsed_reply(purpose, document);
    let refused = words.refusal(purpose).filter(|_| refused_reply(run, call).is_none());
    if let Some(reason) = refused {
        document.gap();
        document.text(StyleRole::Failed, &format!("refused: {}", reason.phrase()));
        if let Some(advice) = reason.advice() {
            document.add(StyleRole::Dim, advice);
        }
    }
}
