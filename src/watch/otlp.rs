//! OpenTelemetry: what a request of OTLP tells of spans, by the conventions for agents.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Protocol, SpanMessage, TraceMessage, framework_of, messages, texts};
use crate::base::refused::Refused;
use crate::base::to_hex;
use crate::log::event::MessageRole;
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
use crate::pattern::observed::ReportedCall;
use crate::traces::conventions::{Attributes, Known, ROLES};
use crate::traces::messages::{ERROR, LogsRequest, MAX_ID, Span, TracesRequest};

/// The messages of a body of `/v1/traces`, and the number of spans without an id.
pub(super) fn traces(body: &[u8], is_json: bool) -> Result<(Vec<TraceMessage>, u64), Refused> {
    let request = TracesRequest::read(body, is_json)?;
    let (mut messages, mut unread) = (Vec::new(), 0);
    for scope in request.resource_spans.into_iter().flat_map(|it| it.scope_spans) {
        let framework = scope.scope.map_or("", |scope| framework_of(&scope.name));
        for span in scope.spans {
            let is_read = report(span, framework, &mut messages);
            unread += u64::from(!is_read);
        }
    }
    Ok((messages, unread))
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
    to_hex(bytes).into()
}

/// Adds the messages about a span; returns whether it has ids.
fn report(span: Span, framework: &'static str, to: &mut Vec<TraceMessage>) -> bool {
    let (trace, own) = (hex(&span.trace_id), hex(&span.span_id));
    if trace.is_empty() || own.is_empty() {
        return false;
    }
    let mut attributes = Attributes::of(&span.attributes);
    let mut parent = hex(&span.parent_span_id);
    let us = |nano: u64| (nano > 0).then_some(nano / 1_000);
    let message = |what| TraceMessage {
        protocol: Protocol::Otlp,
        framework,
        trace: Arc::clone(&trace),
        what,
    };
    let from_us = us(span.start_time_unix_nano);
    let open = |(mut about, call): (SpanAbout, _), id: Arc<str>, parent| {
        (about.id, about.from_us) = (id, from_us);
        message(SpanMessage::Opened { parent, about, call })
    };
    // Logfire reports a start by a span of its own inside the one that begins.
    if attributes.get("logfire.span_type") == Some("pending_span") {
        let above = attributes.get("logfire.pending_parent_id").unwrap_or_default();
        let above = if above.bytes().all(|byte| byte == b'0') { "" } else { above };
        if !parent.is_empty() {
            to.push(open(about_of(&span.name, &attributes), parent, texts::name(above)));
        }
        return true;
    }
    if attributes.first(Known::Pending) == Some("true") {
        to.push(open(about_of(&span.name, &attributes), own, parent));
        return true;
    }
    if parent == own {
        parent = Arc::default();
    }
    let events = span.events.into_iter().map(|event| {
        let fields = event.attributes.into_iter();
        let fields = fields.filter_map(|it| Some((it.key, it.value?.into_json())));
        (event.name, fields.collect())
    });
    let (failure, notes) = notes_of(said_in_events(events, &mut attributes));
    let (mut about, call) = about_of(&span.name, &attributes);
    (about.id, about.from_us) = (own, from_us);
    about.until_us = us(span.end_time_unix_nano);
    let status = span.status.unwrap_or_default();
    let end = if status.code == ERROR { SpanEnd::Failed } else { SpanEnd::Done };
    if end == SpanEnd::Failed {
        let error = failure.filter(|_| status.message.is_empty()).unwrap_or(status.message);
        about.error = Some(texts::text(if error.is_empty() { "failed" } else { &error }));
    }
    to.push(message(SpanMessage::Closed { parent, end, about, call, notes }));
    true
}

/// The first exception among the events of a span, and a note for each other one.
pub(super) fn notes_of(events: Vec<(String, Attributes)>) -> (Option<String>, Vec<Arc<str>>) {
    let (mut failure, mut notes) = (None, Vec::new());
    for (event, fields) in events {
        let exception = fields.get("exception.message").unwrap_or_default();
        let text = match fields.get("exception.type") {
            Some(kind) if exception.is_empty() => kind.to_owned(),
            Some(kind) => format!("{kind}: {exception}"),
            None => event.clone(),
        };
        match &*event {
            "exception" => failure = failure.or(Some(text)),
            _ if text.is_empty() => {}
            _ => notes.push(texts::text(&text)),
        }
    }
    (failure, notes)
}

/// Adds messages that were sent as events of a span to its attributes, and returns the other events. A message is an
/// event (`gen_ai.user.message`, `gen_ai.choice`), or all are in one (`…operation.details`), or the prompt is in one and the
/// reply in another (`gen_ai.content.…`).
pub(super) fn said_in_events(
    events: impl Iterator<Item = (String, Map<String, Value>)>,
    attributes: &mut Attributes,
) -> Vec<(String, Attributes)> {
    let (mut given, mut replied, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (name, mut fields) in events {
        let role = name.strip_prefix("gen_ai.").and_then(|it| it.strip_suffix(".message"));
        if let Some(role) = role {
            fields.entry("role").or_insert_with(|| role.into());
            given.push(Value::Object(fields));
        } else if name == "gen_ai.choice" {
            // The text may be JSON: a message, or its parts.
            let inner = fields.get("message").and_then(|it| texts::json(it.as_str()?));
            if let Some(inner) = inner.filter(Value::is_object) {
                fields.insert("message".into(), inner);
            } else {
                let content = fields.shift_remove("message").unwrap_or_default();
                fields.entry("content").or_insert(content);
                fields.entry("role").or_insert_with(|| "assistant".into());
            }
            replied.push(Value::Object(fields));
        } else if name.starts_with("gen_ai.") {
            attributes.add_all(Attributes::of_json(&fields));
        } else {
            others.push((name, Attributes::of_json(&fields)));
        }
    }
    for (name, messages) in [("gen_ai.input.messages", given), ("gen_ai.output.messages", replied)]
    {
        if !messages.is_empty() {
            attributes.add(name, &Value::Array(messages));
        }
    }
    others
}

/// Operations of the AI SDK that call models and tools until there is an answer.
const AGENT_LOOPS: [&str; 2] = ["ai.generatetext", "ai.streamtext"];

/// What the conventions say about a span with this name and these attributes; of a model also its call.
pub(super) fn about_of(
    span_name: &str,
    attributes: &Attributes,
) -> (SpanAbout, Option<Box<ReportedCall>>) {
    let word = attributes.first(Known::Kind);
    let word = word.map(|word| word.trim_matches('"').to_ascii_lowercase()).unwrap_or_default();
    // A span is named by its operation and what it is about: `execute_tool refund`.
    let named =
        || span_name.split_once(' ').filter(|(word, _)| word.contains('_') || *word == "chat");
    let word = if word.is_empty() { named().map_or("", |(word, _)| word) } else { &word };
    let known = ROLES.iter().find(|(known, _)| *known == word).map(|(_, role)| *role);
    let handoff = span_name.strip_prefix("handoff to ");
    let tool = attributes.first(Known::Tool);
    let asked = attributes.first(Known::Model);
    let model = attributes.first(Known::ReportedModel).or(asked);
    let agent = attributes.first(Known::Agent);
    let entity = attributes.first(Known::Entity);
    let role = match (handoff, known) {
        (Some(_), _) => SpanRole::Handoff,
        // A loop of the AI SDK that its author has named.
        (None, Some(_)) if AGENT_LOOPS.contains(&word) && entity.is_some() => SpanRole::Agent,
        (None, Some(role)) => role,
        (None, None) if tool.is_some() => SpanRole::Tool,
        // Older spans of an agent have the sum of its models.
        (None, None) if model.is_some() && agent.is_some() => SpanRole::Agent,
        (None, None) if model.is_some() && attributes.first(Known::TokensIn).is_some() => {
            SpanRole::Model
        }
        (None, None) => SpanRole::Step,
    };
    let target = || entity.or_else(|| Some(named()?.1)).unwrap_or(span_name);
    let shown = match role {
        SpanRole::Tool => tool.unwrap_or_else(target),
        SpanRole::Agent => agent.unwrap_or_else(target),
        SpanRole::Step => entity.unwrap_or(span_name),
        _ => span_name,
    };
    let is_model = matches!(role, SpanRole::Model | SpanRole::Embedding);
    let has_counts = attributes.first(Known::TokensIn).is_some();
    let call = (role == SpanRole::Model).then(|| call_of(attributes));
    let [given, replied] = messages::texts_of(call.as_ref());
    let text = |known: Known| attributes.first(known).and_then(texts::json_text);
    let about = SpanAbout {
        name: texts::name(shown),
        role,
        agent: agent.map(texts::name),
        to: handoff.map(texts::name),
        model: model.filter(|_| is_model || has_counts).map(texts::name),
        asked_model: asked.filter(|asked| is_model && Some(*asked) != model).map(texts::name),
        provider: attributes.first(Known::Provider).filter(|_| is_model).map(texts::name),
        thread: attributes.first(Known::Conversation).map(texts::name),
        input: given.or_else(|| text(Known::Input)),
        output: replied.or_else(|| text(Known::Output)),
        tokens_in: attributes.count(Known::TokensIn),
        tokens_cached: attributes.count(Known::TokensCached),
        tokens_written: attributes.count(Known::TokensWritten),
        tokens_out: attributes.count(Known::TokensOut),
        cost_usd: attributes.number(Known::Cost),
        ..SpanAbout::default()
    };
    (about, call.filter(|call| !call.is_empty()).map(Box::new))
}

/// The call of a model, from the attributes of its span.
fn call_of(attributes: &Attributes) -> ReportedCall {
    let [request, response] =
        [Known::InputMessages, Known::OutputMessages].map(|known| attributes.value(known));
    let mut call = messages::call_of(request.as_ref(), response.as_ref());
    if let Some(instructions) = attributes.value(Known::Instructions) {
        call.messages.splice(0..0, messages::messages(&instructions, MessageRole::System));
    }
    if let Some(tools) = attributes.value(Known::Tools) {
        call.tools = messages::tools(&tools);
    }
    let finish = attributes.first(Known::Finish).map(|it| {
        let words = texts::json(it).and_then(|it| it.get(0)?.as_str().map(texts::name));
        words.unwrap_or_else(|| texts::name(it))
    });
    ReportedCall { finish, ..call }
}
