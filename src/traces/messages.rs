//! The messages of OTLP as far as they are read and written, in protobuf; of JSON they are read.
//! (`opentelemetry/proto/collector/trace/v1`, `trace/v1`, `logs/v1`, `common/v1`.)

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use serde_json::Value;

use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::Elapsed;

#[derive(Clone, PartialEq, Message)]
pub struct TracesRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<SpanEvent>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    pub time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "AnyKind", tags = "1, 2, 3, 4, 5, 6")]
    pub value: Option<AnyKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AnyKind {
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
pub struct AnyValues {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyFields {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogsRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceLogs {
    #[prost(message, repeated, tag = "2")]
    pub scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    pub log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogRecord {
    #[prost(message, optional, tag = "5")]
    pub body: Option<AnyValue>,
    #[prost(bytes = "vec", tag = "9")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    pub span_id: Vec<u8>,
}

/// The answer to a request with spans.
#[derive(Clone, PartialEq, Message)]
pub struct TracesResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What the receiver of a request did not take.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// The status of a span that succeeded, and of one that failed.
pub const OK: i32 = 1;
pub const ERROR: i32 = 2;

impl TracesRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(body: &[u8], is_json: bool) -> Result<Self, Refused> {
        match is_json {
            true => traces_of_json(body),
            false => Self::decode(body).or_refuse("no request of OTLP"),
        }
    }
}

impl TracesResponse {
    /// Reads an answer in JSON; what cannot be read says nothing.
    pub fn of_json(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let partial_success = value.get("partialSuccess").map(|partial| PartialSuccess {
            rejected_spans: i64::try_from(whole(partial, "rejectedSpans")).unwrap_or(0),
            error_message: string(partial, "errorMessage"),
        });
        Self { partial_success }
    }
}

impl LogsRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(body: &[u8], is_json: bool) -> Result<Self, Refused> {
        match is_json {
            true => logs_of_json(body),
            false => Self::decode(body).or_refuse("no request of OTLP"),
        }
    }
}

impl AnyValue {
    /// The value as JSON.
    pub fn into_json(self) -> Value {
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
            "stringValue" | "string_value" => {
                value.as_str().map(|text| AnyKind::String(text.to_owned()))
            }
            "boolValue" | "bool_value" => value.as_bool().map(AnyKind::Bool),
            "intValue" | "int_value" => number().map(AnyKind::Int),
            "doubleValue" | "double_value" => {
                value.as_f64().or_else(|| value.as_str()?.parse().ok()).map(AnyKind::Double)
            }
            "arrayValue" | "array_value" => {
                let values = deeper(value);
                let values = values.iter().map(|value| Self::of_json(value, depth + 1)).collect();
                Some(AnyKind::Array(AnyValues { values }))
            }
            "kvlistValue" | "kvlist_value" => {
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

/// A field by its name in OTLP's JSON. Some programs send the names of protobuf: `trace_id` for `traceId`.
fn field<'v>(of: &'v Value, name: &str) -> Option<&'v Value> {
    if let Some(found) = of.get(name) {
        return Some(found);
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    of.get(&snake)
}

fn string(of: &Value, name: &str) -> String {
    field(of, name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    field(of, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Longest id, in bytes: those of OpenTelemetry have 8 and 16.
pub const MAX_ID: usize = 32;

/// An id, in hexadecimal as OTLP says, or in base64 as libraries for protobuf write it.
fn id(of: &Value, name: &str) -> Vec<u8> {
    let text = string(of, name);
    if text.ends_with('=') {
        return BASE64_STANDARD.decode(&text).unwrap_or_default();
    }
    let pairs = text.as_bytes().chunks_exact(2).take(MAX_ID);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect::<Option<Vec<u8>>>().unwrap_or_default()
}

/// Numbers of 64 bits are strings or numbers.
fn whole(of: &Value, name: &str) -> u64 {
    let value = field(of, name);
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
        kind: 0,
        start_time_unix_nano: whole(it, "startTimeUnixNano"),
        end_time_unix_nano: whole(it, "endTimeUnixNano"),
        attributes: key_values(list(it, "attributes"), 0),
        events: list(it, "events")
            .iter()
            .map(|event| SpanEvent {
                time_unix_nano: whole(event, "timeUnixNano"),
                name: string(event, "name"),
                attributes: key_values(list(event, "attributes"), 0),
            })
            .collect(),
        status: field(it, "status").map(|status| Status {
            message: string(status, "message"),
            code: match status.get("code") {
                Some(Value::String(word)) if word == "STATUS_CODE_ERROR" => ERROR,
                code => code.and_then(Value::as_i64).and_then(|it| it.try_into().ok()).unwrap_or(0),
            },
        }),
    };
    let scope = |it: &Value| ScopeSpans {
        scope: it
            .get("scope")
            .map(|scope| Scope { name: string(scope, "name"), version: string(scope, "version") }),
        spans: list(it, "spans").iter().map(span).collect(),
    };
    let resource = |it: &Value| ResourceSpans {
        resource: None,
        // The second name is from before version 0.15 of the protocol.
        scope_spans: ["scopeSpans", "instrumentationLibrarySpans"]
            .iter()
            .flat_map(|name| list(it, name))
            .map(scope)
            .collect(),
    };
    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    if field(&value, "resourceSpans").is_none() && !is_empty {
        return Err(Refused::new("no request of OTLP: it has no resourceSpans"));
    }
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

/// A time since the start of a run, in nanoseconds.
pub(super) fn nanos(at: Elapsed) -> u64 {
    u64::try_from(at.duration().as_nanos()).unwrap_or(u64::MAX)
}

/// A file may have any number.
pub(super) fn nanos_of_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
