//! OpenTelemetry: what a request of OTLP tells of spans, by the conventions for agents.

use std::sync::Arc;

use super::{Protocol, SpanMessage, TraceMessage, framework_of, texts};
use crate::base::refused::Refused;
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
use crate::traces::conventions::{Attributes, Known, ROLES};
use crate::traces::messages::{ERROR, LogsRequest, MAX_ID, Span, TracesRequest};

/// The messages of a body of `/v1/traces`.
pub(super) fn traces(body: &[u8], is_json: bool) -> Result<Vec<TraceMessage>, Refused> {
    let request = TracesRequest::read(body, is_json)?;
    let mut messages = Vec::new();
    for scope in request.resource_spans.into_iter().flat_map(|it| it.scope_spans) {
        let framework = scope.scope.map_or("", |scope| framework_of(&scope.name));
        scope.spans.into_iter().for_each(|span| report(span, framework, &mut messages));
    }
    Ok(messages)
}

/// The messages of a body of `/v1/logs`; records outside of a trace are left out.
pub(super) fn logs(body: &[u8], is_json: bool) -> Result<Vec<TraceMessage>, Refused> {
    let request = LogsRequest::read(body, is_json)?;
    let records = request.resource_logs.into_iter().flat_map(|it| it.scope_logs);
    let records = records.flat_map(|it| it.log_records).filter(|it| !it.trace_id.is_empty());
    Ok(records
        .filter_map(|record| {
            let text = texts::value_text(&record.body?.into_json())?;
            let what = SpanMessage::Text { span: hex(&record.span_id), text };
            Some(TraceMessage {
                protocol: Protocol::Otlp,
                framework: "",
                trace: hex(&record.trace_id),
                what,
            })
        })
        .collect())
}

fn hex(bytes: &[u8]) -> Arc<str> {
    let bytes = bytes.get(..MAX_ID.min(bytes.len())).unwrap_or_default();
    // An id of zeros is none.
    if bytes.iter().all(|byte| *byte == 0) {
        return Arc::default();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Adds the messages about a span.
fn report(span: Span, framework: &'static str, to: &mut Vec<TraceMessage>) {
    let (trace, own) = (hex(&span.trace_id), hex(&span.span_id));
    if trace.is_empty() || own.is_empty() {
        return;
    }
    let attributes = Attributes::of(&span.attributes);
    let mut parent = hex(&span.parent_span_id);
    let us = |nano: u64| (nano > 0).then_some(nano / 1_000);
    let mut about = about_of(&span.name, &attributes);
    about.from_us = us(span.start_time_unix_nano);
    let message = |what| TraceMessage {
        protocol: Protocol::Otlp,
        framework,
        trace: Arc::clone(&trace),
        what,
    };
    // Logfire reports a start by a span of its own inside the one that begins.
    if attributes.get("logfire.span_type").is_some_and(|it| it == "pending_span") {
        let above = attributes.get("logfire.pending_parent_id").unwrap_or_default();
        if parent.is_empty() {
            return;
        }
        about.id = parent;
        let parent = if above.bytes().all(|byte| byte == b'0') { "" } else { &above };
        to.push(message(SpanMessage::Opened { parent: texts::name(parent), about }));
        return;
    }
    about.id = Arc::clone(&own);
    if attributes.first(Known::Pending) == Some("true") {
        to.push(message(SpanMessage::Opened { parent, about }));
        return;
    }
    if parent == own {
        parent = Arc::default();
    }
    about.until_us = us(span.end_time_unix_nano);
    let mut failure = None;
    for event in &span.events {
        let of_event = Attributes::of(&event.attributes);
        let exception = of_event.get("exception.message").unwrap_or_default();
        let text = match of_event.get("exception.type") {
            Some(kind) if exception.is_empty() => kind,
            Some(kind) => format!("{kind}: {exception}"),
            None if event.name.is_empty() => continue,
            None => event.name.clone(),
        };
        failure = failure.or((event.name == "exception").then(|| text.clone()));
        let span = Arc::clone(&own);
        if event.name != "exception" && !event.name.starts_with("gen_ai.") {
            to.push(message(SpanMessage::Note { span, text: texts::text(&text) }));
        }
    }
    let status = span.status.unwrap_or_default();
    let end = if status.code == ERROR { SpanEnd::Failed } else { SpanEnd::Done };
    if end == SpanEnd::Failed {
        let error = failure.filter(|_| status.message.is_empty()).unwrap_or(status.message);
        about.error = Some(texts::text(if error.is_empty() { "failed" } else { &error }));
    }
    to.push(message(SpanMessage::Closed { parent, end, about }));
}

/// What the conventions tell of a span with this name and these attributes.
pub(super) fn about_of(span_name: &str, attributes: &Attributes) -> SpanAbout {
    let word = attributes.first(Known::Kind);
    let word = word.map(str::to_ascii_lowercase).unwrap_or_default();
    // A span is named by its operation and what it is about: `execute_tool refund`.
    let named =
        || span_name.split_once(' ').filter(|(word, _)| word.contains('_') || *word == "chat");
    let word = if word.is_empty() { named().map_or("", |(word, _)| word) } else { &word };
    let known = ROLES.iter().find(|(known, _)| *known == word).map(|(_, role)| *role);
    let handoff = span_name.strip_prefix("handoff to ");
    let tool = attributes.first(Known::Tool);
    let reported = attributes.first(Known::ReportedModel);
    let model = reported.or_else(|| attributes.first(Known::Model));
    let role = match (handoff, known) {
        (Some(_), _) => SpanRole::Handoff,
        (None, Some(role)) => role,
        (None, None) if tool.is_some() => SpanRole::Tool,
        (None, None) if model.is_some() && attributes.first(Known::TokensIn).is_some() => {
            // Older spans of an agent have the sum of its models.
            if attributes.first(Known::Agent).is_some() { SpanRole::Agent } else { SpanRole::Model }
        }
        (None, None) => SpanRole::Step,
    };
    let agent = attributes.first(Known::Agent);
    let target = || named().map_or(span_name, |(_, target)| target);
    let shown = match role {
        SpanRole::Tool => tool.unwrap_or_else(target),
        SpanRole::Agent => agent.unwrap_or_else(target),
        _ => span_name,
    };
    let count = |known: Known| attributes.first(known)?.parse().ok();
    let is_model = role == SpanRole::Model;
    let cost: Option<f64> = attributes.first(Known::Cost).and_then(|text| text.parse().ok());
    SpanAbout {
        name: texts::name(shown),
        role,
        agent: agent.map(texts::name),
        to: handoff.map(texts::name),
        model: model.filter(|_| is_model).map(texts::name),
        input: attributes.first(Known::Input).and_then(texts::json_text),
        output: attributes.first(Known::Output).and_then(texts::json_text),
        // Other spans repeat the tokens of the models inside them.
        tokens_in: count(Known::TokensIn).filter(|_| is_model),
        tokens_cached: count(Known::TokensCached).filter(|_| is_model),
        tokens_out: count(Known::TokensOut).filter(|_| is_model),
        cost_usd: cost.filter(|cost| is_model && cost.is_finite() && *cost >= 0.0),
        ..SpanAbout::default()
    }
}
