//! The texts of the inspector's tabs: the prompt exactly as the model saw it, tool calls and tools,
//! the reply attempt by attempt and what the gateway made of it, the figures.

use std::time::Duration;

use serde_json::Value;

use super::calls::{
    call_model, callee_kind, observed_span, prompt_call, refused_reply, reply, verdict_event,
};
use super::{CalleeKind, InspectedRun};
use crate::base::json_text::first_changed_integer;
use crate::base::time;
use crate::log::event::{
    ChatMessage, Elapsed, Event, EventKind, MessageRole, Purpose, SpanId, World, safe_json,
};
use crate::log::facts::observed::{SpanEnd, SpanRole};
use crate::log::world::agents::{HANDED_OVER, HopKind, HopState};
use crate::log::world::observed::{Observed, ObservedSpan};
use crate::log::world::questions::OpenQuestion;
use crate::log::world::{Span, SpanKind, SpanState};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::msg::PartialText;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::{NO_PARTIAL_TEXT, tail_start};
use crate::words::format;
use crate::words::patterns::words_of;
use crate::words::sentence::{cut_reply, failure_name, sentence, took_ms};
use crate::words::styled::{StyleRole, StyledText};

/// Maximum number of calls that form one prompt.
const MAX_PROMPT_CALLS: usize = 1000;

/// Indents a JSON object or list if that loses no digits; any other text stays as it is. The flag
/// says whether it was indented.
fn pretty_json(text: &str) -> (String, bool) {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_)))
            if first_changed_integer(text, &value).is_none() =>
        {
            (serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()), true)
        }
        _ => (text.to_owned(), false),
    }
}

fn role_name(role: MessageRole) -> &'static str {
    match role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    }
}

/// The messages of a call exactly as the model saw them, those of earlier calls included.
#[cfg(test)]
pub fn prompt(run: &RunData, call: SpanId) -> Vec<ChatMessage> {
    prompt_in_memory(run, call).0
}

/// The messages of a call, and whether the first of them were dropped with their events.
fn prompt_in_memory(run: &RunData, call: SpanId) -> (Vec<ChatMessage>, bool) {
    let mut cut = false;
    // The new messages of each call, and the number of earlier messages that come before them.
    let mut parts: Vec<(Vec<ChatMessage>, Option<u32>)> = Vec::new();
    let mut next = Some(call);
    while let Some(call) = next.take()
        && parts.len() < MAX_PROMPT_CALLS
    {
        let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        else {
            cut = run.log().dropped_count() > 0;
            break;
        };
        let mut part = started.prompt.messages.to_vec();
        // An earlier call is part of the prompt together with its reply.
        let before = !parts.is_empty();
        if let Some(reply) = reply(run, call).filter(|_| before) {
            part.push(ChatMessage::from_reply(reply));
        }
        parts.push((part, started.prompt.first));
        next = started.prompt.after.filter(|before| *before != call);
    }
    let mut messages = Vec::new();
    for (part, first) in parts.into_iter().rev() {
        first.into_iter().for_each(|first| messages.truncate(first as usize));
        messages.extend(part);
    }
    (messages, cut)
}

pub(super) fn prompt_document(run: &RunData, call: Option<SpanId>) -> StyledText {
    let mut document = StyledText::default();
    let Some(call) = call else {
        document.add(StyleRole::Dim, "No prompt: this event belongs to no call.");
        document.add(StyleRole::Dim, format!("{} jumps to its cause.", key_of(Action::Cause)));
        return document;
    };
    if let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        && let Some(args) = &started.args
    {
        document.heading(format!("arguments of {}", started.tool));
        document.json(args);
        return document;
    }
    if let Some(span) = observed_span(run.world(), call)
        && !run.world().is_watched(call)
    {
        match &span.about.input {
            Some(input) => document.text(StyleRole::Text, &pretty_json(input).0),
            None => document.add(StyleRole::Dim, "The program reported no input of it."),
        }
        return document;
    }
    // The turn of an agent is many calls: the prompt of its last one is shown.
    let call = prompt_call(run, call);
    let (messages, cut) = prompt_in_memory(run, call);
    if cut {
        document.add(StyleRole::Dim, "The first messages of this prompt are missing.");
        document.add(StyleRole::Dim, run.dropped_notice());
    } else if messages.is_empty() {
        document.add(StyleRole::Dim, "No prompt: the log has none for this call.");
    }
    if let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        && started.prompt.left_out > 0
    {
        let left_out = format::count_noun(started.prompt.left_out.into(), "message");
        let text =
            format!("{left_out} in the middle are left out, because the prompt is too long.");
        document.add(StyleRole::Notice, text);
    }
    for (nth, message) in messages.iter().enumerate() {
        document.gap();
        let (text, json) = pretty_json(&message.content);
        let how = if json { ", pretty-printed (as sent: 3 Raw)" } else { "" };
        let size = format::bytes(message.content.len() as u64);
        let of = result_label(message, &messages[..nth]);
        document.heading(format!("{}{of}, {size}{how}", role_name(message.role)));
        if !text.is_empty() || message.tool_calls.is_empty() {
            document.text(StyleRole::Text, &text);
        }
        add_tool_calls(&mut document, &message.tool_calls);
    }
    add_offered_tools(run, &mut document, call);
    document
}

/// Adds the tool calls of a reply, each with its arguments indented.
fn add_tool_calls(document: &mut StyledText, calls: &[ToolCall]) {
    for call in calls {
        document.heading(format!("calls {} (id {})", call.name, call.id));
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value @ Value::Object(_))
                if first_changed_integer(&call.arguments, &value).is_none() =>
            {
                document.json(&value);
            }
            Ok(Value::Object(_)) => document.text(StyleRole::Text, &call.arguments),
            _ => {
                document.add(StyleRole::Failed, "not a JSON object:");
                document.text(StyleRole::Text, &call.arguments);
            }
        }
    }
}

/// For a message that is a tool's result: the name of the tool and the id of the call.
fn result_label(message: &ChatMessage, before: &[ChatMessage]) -> String {
    let Some(id) = &message.tool_call_id else { return String::new() };
    let mut made = before.iter().rev().flat_map(|said| said.tool_calls.iter());
    match made.find(|call| call.id == *id) {
        Some(call) => format!(" {}, result of {id}", call.name),
        None => format!(", result of {id}"),
    }
}

/// Adds the tools that were offered, with their parameters.
fn add_tool_list(document: &mut StyledText, tools: &[ToolOffer]) {
    document.gap();
    document.heading(format!("{} offered", format::count_noun(tools.len() as u64, "tool")));
    for tool in tools {
        document.add(StyleRole::Text, tool.name.to_string());
        if !tool.description.is_empty() {
            document.add(StyleRole::Dim, format!("  {}", tool.description.replace('\n', " ")));
        }
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, about) in properties.into_iter().flatten() {
            let kind = about.get("type").and_then(Value::as_str).unwrap_or("any");
            let about = about.get("description").and_then(Value::as_str).unwrap_or_default();
            document
                .add(StyleRole::Dim, format!("  {name} ({kind}) {about}").trim_end().to_owned());
        }
    }
}

/// Adds the tools that a call's model was offered: its own, or those of the calls before it.
fn add_offered_tools(run: &RunData, document: &mut StyledText, call: SpanId) {
    let mut next = Some(call);
    for _ in 0..MAX_PROMPT_CALLS {
        let Some(Event { kind: EventKind::CallStarted(started), .. }) =
            next.and_then(|call| run.opening_event(call))
        else {
            return;
        };
        match &started.prompt.tools {
            Some(tools) if tools.is_empty() => return,
            Some(tools) => return add_tool_list(document, tools),
            None => {}
        }
        next = started.prompt.after;
    }
}

/// How much of a partial reply is wrapped into lines each time that more of it arrives, in bytes.
const MAX_PARTIAL_BYTES: usize = 64 * 1024;

pub(super) fn reply_document(run: &InspectedRun<'_>, call: Option<SpanId>) -> StyledText {
    let mut document = StyledText::default();
    let Some(call) = call else {
        document.add(StyleRole::Dim, "No reply: this event belongs to no call.");
        return document;
    };
    let attempts: Vec<_> = run.world.spans.children(call).collect();
    let many = attempts.len() > 1;
    if let Some(span) = observed_span(run.world, call) {
        add_watched_reply(run, &mut document, call, span);
        return document;
    }
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
        match run.world.question_within(call).filter(|_| run.world.progress.is_live()) {
            Some(open) => document.add(StyleRole::NeedsYou, waits_for_answer(open)),
            None => document.add(StyleRole::Dim, "No reply yet: the call has made no attempt."),
        }
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

/// Adds the reply to a watched program, or the output of another span.
fn add_watched_reply(
    run: &InspectedRun<'_>,
    document: &mut StyledText,
    call: SpanId,
    observed: &ObservedSpan,
) {
    let Some(span) = run.world.spans.get(call) else { return };
    if let Some(error) = &observed.about.error {
        document.text(StyleRole::Failed, error);
    }
    match (run.closing_event(call).map(|event| &event.kind), &observed.about.output) {
        (Some(EventKind::AttemptAnswered(_)), _) => add_attempt_reply(run, document, span),
        (_, Some(output)) => document.text(StyleRole::Text, &pretty_json(output).0),
        (None, None) if run.run.live(call).is_some() => add_attempt_reply(run, document, span),
        (_, None) if observed.about.error.is_some() => {}
        (_, None) => match observed.end {
            None => document.add(StyleRole::Running, "It has not ended."),
            Some(SpanEnd::Lost) => document.add(StyleRole::Dim, "Its end was not reported."),
            Some(_) => document.add(StyleRole::Dim, "The program reported no result of it."),
        },
    }
}

fn add_attempt_reply(run: &InspectedRun<'_>, document: &mut StyledText, attempt: &Span) {
    match run.closing_event(attempt.id).map(|event| &event.kind) {
        Some(EventKind::AttemptAnswered(reply)) => match &reply.result {
            Some(result) => document.json(result),
            None => {
                let handed_over = reply.finish.as_deref() == Some(HANDED_OVER);
                if !reply.text.is_empty() || (reply.tool_calls.is_empty() && !handed_over) {
                    document.text(StyleRole::Text, &pretty_json(&reply.text).0);
                }
                add_tool_calls(document, &reply.tool_calls);
                if !reply.end.is_whole() {
                    let mark = cut_reply(reply.end, reply.tool_calls.len());
                    document.add(StyleRole::Retry, format!("It was {mark}."));
                }
                if handed_over {
                    add_handover(run, document, attempt.parent);
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
        _ => match live_text(run, attempt) {
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

/// The partial reply of an attempt; of the turn of an agent, that of its model call.
fn live_text<'a>(run: &InspectedRun<'a>, attempt: &Span) -> Option<&'a PartialText> {
    run.run.live(attempt.id).or_else(|| {
        let said = prompt_call(run.run, attempt.parent);
        run.run.live(run.world.spans.last_child(said)?.id)
    })
}

/// What an agent said in a turn that ended with a handoff, and the agent that it handed over to.
fn add_handover(run: &InspectedRun<'_>, document: &mut StyledText, call: SpanId) {
    let said = prompt_call(run.run, call);
    if let Some(reply) = reply(run.run, said).filter(|it| said != call && !it.text.is_empty()) {
        document.text(StyleRole::Text, &reply.text);
    }
    let next = run.world.agents().and_then(|agents| {
        let mut hops = agents.hops.iter().skip_while(|hop| hop.span != call);
        let by = &hops.next()?.to;
        hops.find(|hop| {
            let made = !matches!(hop.state, HopState::Refused(_));
            hop.kind == HopKind::Handoff && hop.from.as_ref() == Some(by) && made
        })
    });
    let text = match next.map(|hop| (&hop.to, hop.message.as_deref())) {
        Some((to, Some(message))) => format!("It handed over to {to}: {message}"),
        Some((to, None)) => format!("It handed over to {to} without a message."),
        None => "It handed over.".to_owned(),
    };
    document.text(StyleRole::Dim, &text);
}

/// Who has to answer before a call continues.
fn waits_for_answer(open: &OpenQuestion) -> String {
    format!("waits for {}: question {}", open.asked.who, open.asked.id)
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
            document.field("value", crate::words::tool_sentence::fallback_text(*by));
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
    let Some(words) = words_of(world) else { return };
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
    if let Some((observed, of_run)) = observed_span(world, span.id).zip(world.observed()) {
        add_observed_times(&mut document, observed, of_run, world);
        return document;
    }
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
            document.field("waited", time::duration_text(attempt.opened.since(closed)));
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

/// Adds the times of a span by the program's clock, and its figures.
fn add_observed_times(
    document: &mut StyledText,
    span: &ObservedSpan,
    observed: &Observed,
    world: &World,
) {
    let about = &span.about;
    document.heading(about.role.word());
    if let Some(model) = &about.model {
        document.field("model", &**model);
    }
    if let Some(asked) = &about.asked_model {
        document.field("asked", &**asked);
    }
    let (from, until) = observed.times(span, world);
    add_moment(document, "started", from, world);
    match until {
        Some(until) => {
            add_moment(document, "ended", until, world);
            let took = about.took_us().map(Duration::from_micros);
            document.field("took", time::duration_text(took.unwrap_or(until.since(from))));
        }
        None => document.field("ended", "not yet"),
    }
    let counts = [
        ("tokens in", about.tokens_in),
        ("cached", about.tokens_cached.filter(|count| *count > 0)),
        ("tokens out", about.tokens_out),
    ];
    for (name, count) in counts {
        count.into_iter().for_each(|count| document.field(name, format::exact(count)));
    }
    if let Some(cost) = about.cost_usd {
        document.field("cost", format::usd(cost));
    }
    if about.role == SpanRole::Model {
        document.field("attempts", "not known: the program makes them");
    }
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
                document.field("first", format!("token after {}", took_ms(first)));
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
                document.field("retry", format!("after {} (Retry-After)", took_ms(after)));
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
        let line = sentence(event, world);
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
    if let Some(words) = words_of(world) {
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
        SpanState::Denied => "denied",
    };
    let question = world.question_within(span.id);
    match question.filter(|_| span.state == SpanState::Open && world.progress.is_live()) {
        Some(open) => document.item("state", StyleRole::NeedsYou, waits_for_answer(open)),
        None => document.field("state", state),
    }
    // Of a watched call the span has the times, and the attempts are not known.
    if observed_span(world, span.id).is_none() {
        let attempts = world.spans.children(span.id).count();
        document.field("attempts", attempts.to_string());
        add_moment(&mut document, "started", span.opened, world);
        if span.closed.is_some() {
            document.field("took", took_text(span, world));
        }
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
            if let Some(words) = words_of(run.world) {
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
            document.field("took", took_text(span, world));
        }
        None => document.field("ended", "not yet"),
    }
}

/// How long a span took, and how much of that the clock of the run stood.
fn took_text(span: &Span, world: &World) -> String {
    let took = span.duration(world.progress.at);
    let active = world.progress.active_between(span.opened, span.closed.unwrap_or_default());
    let took_text = time::duration_text(took);
    match took.saturating_sub(active) {
        Duration::ZERO => took_text,
        stood if world.waits_within(span.id).is_empty() => {
            format!("{took_text}, {} of it paused", time::duration_text(stood))
        }
        stood => format!("{took_text}, {} of it waiting for people", time::duration_text(stood)),
    }
}

/// Adds a moment on the run's own clock.
fn add_moment(document: &mut StyledText, name: &str, at: Elapsed, world: &World) {
    document.field(name, format::time_in_run(world.progress.run_time(at)));
}

/// Adds a moment as the clock on the wall has it, if the run was paused before.
fn add_wall_time(document: &mut StyledText, at: Elapsed, world: &World) {
    // A watched run has the clock of its program.
    if world.observed().is_none() && world.progress.run_time(at) != at.duration() {
        let wall = format::time_in_run(at.duration());
        document.field("by clock", format!("{wall}, pauses and waits included"));
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

/// Maximum number of events in a call's raw view.
const MAX_RAW_EVENTS: usize = 500;

pub(crate) fn raw_document(facts: &[&Event], left_out: usize) -> StyledText {
    let mut document = StyledText::default();
    for event in facts {
        document.gap();
        let text = event
            .to_line()
            .ok()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok())
            .and_then(|value| safe_json::pretty(&value).ok())
            .unwrap_or_default();
        document.text(StyleRole::Text, &text);
    }
    if left_out > 0 {
        document.gap();
        let facts = format::count_noun(left_out as u64, "event");
        document.add(
            StyleRole::Dim,
            format!("{facts} more: {} exports all of them.", key_of(Action::Export)),
        );
    }
    document
}

/// The events of a call and its attempts, in order, and how many were left out.
pub(crate) fn call_events<'a>(run: &InspectedRun<'a>, call: SpanId) -> (Vec<&'a Event>, usize) {
    let Some(span) = run.world.spans.get(call) else { return (Vec::new(), 0) };
    let first = run.run.place(span.opened_by);
    let last = span.closed_by.map_or(run.events, |last| run.run.place(last) + 1);
    let of_call = |event: &&Event| {
        event.span == call
            || run.world.spans.get(event.span).is_some_and(|span| span.parent == call)
    };
    let stretch = run.log().between(first, last);
    let mut facts: Vec<_> = stretch.map(|event| &**event).filter(of_call).collect();
    if let Some(verdict) = verdict_event(run, call) {
        facts.push(verdict);
    }
    let left_out = facts.len().saturating_sub(MAX_RAW_EVENTS);
    facts.truncate(MAX_RAW_EVENTS);
    (facts, left_out)
}
