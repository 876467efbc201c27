//! OpenTelemetry: the messages of OTLP as far as they are read, in protobuf and JSON, and what the conventions
//! for agents (GenAI, OpenInference, OpenLLMetry, Logfire) tell of a span, in one table with their older names.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use serde_json::{Map, Value};

use super::{Protocol, SpanMessage, TraceMessage, framework_of, texts};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};

#[derive(Clone, PartialEq, Message)]
struct TracesRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<SpanEvent>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct SpanEvent {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AnyKind", tags = "1, 2, 3, 4, 5, 6")]
    value: Option<AnyKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AnyKind {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(AnyValues),
    #[prost(message, tag = "6")]
    Map(AnyFields),
}

#[derive(Clone, PartialEq, Message)]
struct AnyValues {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyFields {
    #[prost(message, repeated, tag = "1")]
    values: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct LogsRequest {
    #[prost(message, repeated, tag = "1")]
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceLogs {
    #[prost(message, repeated, tag = "2")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct LogRecord {
    #[prost(message, optional, tag = "5")]
    body: Option<AnyValue>,
    #[prost(bytes = "vec", tag = "9")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    span_id: Vec<u8>,
}

/// The messages of a body of `/v1/traces`.
///
/// # Errors
/// It cannot be read.
pub(super) fn traces(body: &[u8], is_json: bool) -> Result<Vec<TraceMessage>, Refused> {
    let request = match is_json {
        true => traces_of_json(body)?,
        false => TracesRequest::decode(body).or_refuse("no request of OTLP")?,
    };
    let mut messages = Vec::new();
    for scope in request.resource_spans.into_iter().flat_map(|it| it.scope_spans) {
        let framework = scope.scope.map_or("", |scope| framework_of(&scope.name));
        scope.spans.into_iter().for_each(|span| span.report(framework, &mut messages));
    }
    Ok(messages)
}

/// The messages of a body of `/v1/logs`; records outside of a trace are left out.
///
/// # Errors
/// It cannot be read.
pub(super) fn logs(body: &[u8], is_json: bool) -> Result<Vec<TraceMessage>, Refused> {
    let request = match is_json {
        true => logs_of_json(body)?,
        false => LogsRequest::decode(body).or_refuse("no request of OTLP")?,
    };
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

/// Longest id, in bytes: those of OpenTelemetry have 8 and 16.
const MAX_ID: usize = 32;

fn hex(bytes: &[u8]) -> Arc<str> {
    let bytes = bytes.get(..MAX_ID.min(bytes.len())).unwrap_or_default();
    // An id of zeros is none.
    if bytes.iter().all(|byte| *byte == 0) {
        return Arc::default();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// The status of a span that failed.
const ERROR: i32 = 2;

impl Span {
    fn report(self, framework: &'static str, to: &mut Vec<TraceMessage>) {
        let (trace, own) = (hex(&self.trace_id), hex(&self.span_id));
        if trace.is_empty() || own.is_empty() {
            return;
        }
        let attributes = Attributes::of(&self.attributes);
        let mut parent = hex(&self.parent_span_id);
        let us = |nano: u64| (nano > 0).then_some(nano / 1_000);
        let mut about = about_of(&self.name, &attributes);
        about.from_us = us(self.start_time_unix_nano);
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
        let is_pending = |name: &str| attributes.get(name).is_some_and(|it| it == "true");
        if ["roundtable.pending", "rt.pending"].into_iter().any(is_pending) {
            to.push(message(SpanMessage::Opened { parent, about }));
            return;
        }
        if parent == own {
            parent = Arc::default();
        }
        about.until_us = us(self.end_time_unix_nano);
        let mut failure = None;
        for event in &self.events {
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
        let status = self.status.unwrap_or_default();
        let end = if status.code == ERROR { SpanEnd::Failed } else { SpanEnd::Done };
        if end == SpanEnd::Failed {
            let error = failure.filter(|_| status.message.is_empty()).unwrap_or(status.message);
            about.error = Some(texts::text(if error.is_empty() { "failed" } else { &error }));
        }
        to.push(message(SpanMessage::Closed { parent, end, about }));
    }
}

/// The attributes of a span, as texts.
#[derive(Default)]
pub(super) struct Attributes(BTreeMap<String, String>);

impl Attributes {
    fn of(attributes: &[KeyValue]) -> Self {
        let texts = attributes.iter().filter_map(|it| {
            let text = match it.value.clone()?.into_json() {
                Value::String(text) => text,
                other => other.to_string(),
            };
            Some((it.key.clone(), text))
        });
        Self(texts.collect())
    }

    pub(super) fn of_json(attributes: &Map<String, Value>) -> Self {
        let texts = attributes.iter().map(|(key, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (key.clone(), text)
        });
        Self(texts.collect())
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn first(&self, names: &[&str]) -> Option<&str> {
        let mut found = names.iter().filter_map(|name| self.0.get(*name));
        found.find(|text| !text.is_empty()).map(String::as_str)
    }
}

/// Each row: what is known of a span, and the attributes that have it; the first one that is there counts.
const AGENT: [&str; 4] = ["gen_ai.agent.name", "agent.name", "agent_name", "graph.node.id"];
const MODEL: [&str; 5] = [
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "model_name",
    "llm.response.model",
];
const TOOL: [&str; 3] = ["gen_ai.tool.name", "tool.name", "tool_name"];
const TOKENS_IN: [&str; 4] = [
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
];
const TOKENS_OUT: [&str; 4] = [
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
];
const TOKENS_CACHED: [&str; 4] = [
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
];
const COST: [&str; 4] =
    ["gen_ai.usage.cost", "llm.cost.total", "operation.cost", "gen_ai.usage.total_cost"];
const INPUT: [&str; 8] = [
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "input.value",
    "gen_ai.input.messages",
    "gen_ai.prompt",
    "traceloop.entity.input",
    "gen_ai.prompt.0.content",
    "prompt",
];
const OUTPUT: [&str; 10] = [
    "gen_ai.tool.call.result",
    "tool_response",
    "output.value",
    "gen_ai.output.messages",
    "final_result",
    "gen_ai.completion",
    "traceloop.entity.output",
    "gen_ai.completion.0.content",
    "llm.output_messages.0.message.content",
    "all_messages_events",
];

/// The words for what a span is: of `openinference.span.kind`, `gen_ai.operation.name` and
/// `traceloop.span.kind`.
const ROLES: [(&str, SpanRole); 19] = [
    ("agent", SpanRole::Agent),
    ("invoke_agent", SpanRole::Agent),
    ("create_agent", SpanRole::Agent),
    ("llm", SpanRole::Model),
    ("chat", SpanRole::Model),
    ("text_completion", SpanRole::Model),
    ("completion", SpanRole::Model),
    ("generate_content", SpanRole::Model),
    ("tool", SpanRole::Tool),
    ("execute_tool", SpanRole::Tool),
    ("retriever", SpanRole::Retriever),
    ("reranker", SpanRole::Retriever),
    ("embedding", SpanRole::Retriever),
    ("embeddings", SpanRole::Retriever),
    ("guardrail", SpanRole::Guardrail),
    ("chain", SpanRole::Step),
    ("workflow", SpanRole::Step),
    ("invoke_workflow", SpanRole::Step),
    ("task", SpanRole::Step),
];

/// What the conventions tell of a span with this name and these attributes.
pub(super) fn about_of(span_name: &str, attributes: &Attributes) -> SpanAbout {
    let word = attributes.first(&[
        "openinference.span.kind",
        "gen_ai.operation.name",
        "traceloop.span.kind",
    ]);
    let word = word.map(str::to_ascii_lowercase).unwrap_or_default();
    // A span is named by its operation and what it is about: `execute_tool refund`.
    let named =
        || span_name.split_once(' ').filter(|(word, _)| word.contains('_') || *word == "chat");
    let word = if word.is_empty() { named().map_or("", |(word, _)| word) } else { &word };
    let known = ROLES.iter().find(|(known, _)| *known == word).map(|(_, role)| *role);
    let handoff = span_name.strip_prefix("handoff to ");
    let tool = attributes.first(&TOOL);
    let model = attributes.first(&MODEL);
    let role = match (handoff, known) {
        (Some(_), _) => SpanRole::Handoff,
        (None, Some(role)) => role,
        (None, None) if tool.is_some() => SpanRole::Tool,
        (None, None) if model.is_some() && attributes.first(&TOKENS_IN).is_some() => {
            // Older spans of an agent have the sum of its models.
            if attributes.first(&AGENT).is_some() { SpanRole::Agent } else { SpanRole::Model }
        }
        (None, None) => SpanRole::Step,
    };
    let agent = attributes.first(&AGENT);
    let target = || named().map_or(span_name, |(_, target)| target);
    let shown = match role {
        SpanRole::Tool => tool.unwrap_or_else(target),
        SpanRole::Agent => agent.unwrap_or_else(target),
        _ => span_name,
    };
    let count = |names: &[&str]| attributes.first(names)?.parse().ok();
    let is_model = role == SpanRole::Model;
    let cost: Option<f64> = attributes.first(&COST).and_then(|text| text.parse().ok());
    SpanAbout {
        name: texts::name(shown),
        role,
        agent: agent.map(texts::name),
        to: handoff.map(texts::name),
        model: model.filter(|_| is_model).map(texts::name),
        input: attributes.first(&INPUT).and_then(texts::json_text),
        output: attributes.first(&OUTPUT).and_then(texts::json_text),
        // Other spans repeat the tokens of the models inside them.
        tokens_in: count(&TOKENS_IN).filter(|_| is_model),
        tokens_cached: count(&TOKENS_CACHED).filter(|_| is_model),
        tokens_out: count(&TOKENS_OUT).filter(|_| is_model),
        cost_usd: cost.filter(|cost| is_model && cost.is_finite() && *cost >= 0.0),
        ..SpanAbout::default()
    }
}

impl AnyValue {
    fn into_json(self) -> Value {
        match self.value {
            None => Value::Null,
            Some(AnyKind::String(text)) => Value::String(text),
            Some(AnyKind::Bool(is)) => Value::Bool(is),
            Some(AnyKind::Int(number)) => Value::from(number),
            Some(AnyKind::Double(number)) => Value::from(number),
            Some(AnyKind::Array(items)) => items.values.into_iter().map(Self::into_json).collect(),
            Some(AnyKind::Map(fields)) => {
                let fields = fields.values.into_iter();
                let fields =
                    fields.map(|it| (it.key, it.value.map_or(Value::Null, Self::into_json)));
                Value::Object(fields.collect())
            }
        }
    }

    /// A value in OTLP's JSON: `{"stringValue": "…"}`.
    fn of_json(value: &Value, depth: u8) -> Self {
        let Value::Object(fields) = value else { return Self::default() };
        let Some((kind, value)) = fields.iter().next().filter(|_| depth < MAX_NESTING) else {
            return Self::default();
        };
        let deeper = |values: &Value| match values.get("values") {
            Some(Value::Array(values)) => values.clone(),
            _ => Vec::new(),
        };
        let number = || value.as_i64().or_else(|| value.as_str()?.parse().ok());
        let kind = match &**kind {
            "stringValue" => value.as_str().map(|text| AnyKind::String(text.to_owned())),
            "boolValue" => value.as_bool().map(AnyKind::Bool),
            "intValue" => number().map(AnyKind::Int),
            "doubleValue" => value.as_f64().map(AnyKind::Double),
            "arrayValue" => {
                let values = deeper(value);
                let values = values.iter().map(|value| Self::of_json(value, depth + 1)).collect();
                Some(AnyKind::Array(AnyValues { values }))
            }
            "kvlistValue" => {
                let values = deeper(value);
                let values = key_values(&values, depth + 1);
                Some(AnyKind::Map(AnyFields { values }))
            }
            _ => None,
        };
        Self { value: kind }
    }
}

/// Deepest values that are read.
const MAX_NESTING: u8 = 16;

fn key_values(values: &[Value], depth: u8) -> Vec<KeyValue> {
    let read = values.iter().map(|it| KeyValue {
        key: string(it, "key"),
        value: it.get("value").map(|value| AnyValue::of_json(value, depth)),
    });
    read.collect()
}

fn string(of: &Value, name: &str) -> String {
    of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Ids are hexadecimal in OTLP's JSON.
fn id(of: &Value, name: &str) -> Vec<u8> {
    let text = string(of, name);
    let pairs = text.as_bytes().chunks_exact(2).take(MAX_ID);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect::<Option<Vec<u8>>>().unwrap_or_default()
}

/// Numbers of 64 bits are strings or numbers.
fn nanos(of: &Value, name: &str) -> u64 {
    let value = of.get(name);
    value
        .and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
        .unwrap_or_default()
}

fn traces_of_json(body: &[u8]) -> Result<TracesRequest, Refused> {
    let value: Value = serde_json::from_slice(body).or_refuse("no request of OTLP")?;
    let span = |it: &Value| Span {
        trace_id: id(it, "traceId"),
        span_id: id(it, "spanId"),
        parent_span_id: id(it, "parentSpanId"),
        name: string(it, "name"),
        start_time_unix_nano: nanos(it, "startTimeUnixNano"),
        end_time_unix_nano: nanos(it, "endTimeUnixNano"),
        attributes: key_values(list(it, "attributes"), 0),
        events: list(it, "events")
            .iter()
            .map(|event| SpanEvent {
                name: string(event, "name"),
                attributes: key_values(list(event, "attributes"), 0),
            })
            .collect(),
        status: it.get("status").map(|status| Status {
            message: string(status, "message"),
            code: match status.get("code") {
                Some(Value::String(word)) if word == "STATUS_CODE_ERROR" => ERROR,
                code => code.and_then(Value::as_i64).and_then(|it| it.try_into().ok()).unwrap_or(0),
            },
        }),
    };
    let scope = |it: &Value| ScopeSpans {
        scope: it.get("scope").map(|scope| Scope { name: string(scope, "name") }),
        spans: list(it, "spans").iter().map(span).collect(),
    };
    let resource = |it: &Value| ResourceSpans {
        scope_spans: list(it, "scopeSpans").iter().map(scope).collect(),
    };
    Ok(TracesRequest {
        resource_spans: list(&value, "resourceSpans").iter().map(resource).collect(),
    })
}

fn logs_of_json(body: &[u8]) -> Result<LogsRequest, Refused> {
    let value: Value = serde_json::from_slice(body).or_refuse("no request of OTLP")?;
    let record = |it: &Value| LogRecord {
        body: it.get("body").map(|body| AnyValue::of_json(body, 0)),
        trace_id: id(it, "traceId"),
        span_id: id(it, "spanId"),
    };
    let scope =
        |it: &Value| ScopeLogs { log_records: list(it, "logRecords").iter().map(record).collect() };
    let resource =
        |it: &Value| ResourceLogs { scope_logs: list(it, "scopeLogs").iter().map(scope).collect() };
    Ok(LogsRequest { resource_logs: list(&value, "resourceLogs").iter().map(resource).collect() })
}
