//! The file format of tools: their implementations, the gateway's policies, settings from the
//! environment, scripted failures.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::{DurationOrZero, Fraction, Millis, Seconds, Units};
use crate::scenario::read::names::{ActorName, MAX_NAMES, NamedEntries};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, IntegerField, NonBlankString, ObjectSchema, Positioned,
    Requirement, StringField, TextOrTable, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::policy::{
    BreakerCounts, BreakerMode, Rate, WindowKind, WindowLimits, max,
};
use crate::scenario::spec::tool::{FaultKind, FieldKind, Setting};
use crate::scenario::tools::{DeclaredImplementation, ToolTable};

/// `[tools]`: `llm` is the model, every other name is a tool of the scenario.
#[derive(Debug, Clone)]
pub(crate) struct ToolsTable {
    /// The policy of model calls.
    pub llm: Option<LlmTable>,
    /// The tools and their policies.
    pub named: NamedEntries<ToolTable, ActorName>,
}

/// The reserved name for calls of the model.
pub(crate) const LLM: &str = "llm";

impl ToolsTable {
    /// Whether it declares a tool of this name with an implementation.
    pub fn has_implementation(&self, name: &str) -> bool {
        let table = self.named.entries.iter().find(|tool| tool.name == name);
        let table = table.and_then(|tool| tool.value.as_ref());
        table.is_some_and(|table| DeclaredImplementation::from_tool(table).has_implementation())
    }
}

impl FormatShape for ToolsTable {
    fn schema() -> Value {
        let names = NamedEntries::<ToolTable, ActorName>::schema();
        json!({
            "type": "object",
            "propertyNames": names["propertyNames"],
            "properties": { LLM: LlmTable::schema() },
            "additionalProperties": names["additionalProperties"],
            // `llm` does not count.
            "maxProperties": MAX_NAMES + 1,
        })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let (mut own, mut llm) = (node.clone(), None);
        if let TomlValue::Table(TomlTable { entries }) = &mut own.value {
            llm = entries.iter().position(|(key, _)| key.text == LLM).map(|at| entries.remove(at));
        }
        let llm = llm.map_or_else(|| TomlNode::empty_table(node.at), |(_, node)| node);
        let named = NamedEntries::read(&own, cx)?;
        Some(Self { llm: cx.at_key(LLM, |cx| LlmTable::read(&llm, cx)), named })
    }
}

record! {
    /// The gateway's policy for calls of the model.
    struct LlmTable => {
        /// Timeout of one attempt in seconds, until its reply is complete. Default:
        /// OPENAI_TIMEOUT_SECONDS, else 60.
        timeout_s: Seconds = optional,
        /// Retries of a failed call. A live model has 4 attempts by default, with waits of 500,
        /// 1000, 2000, 4000 and 8000 ms.
        retries: RetriesTable = table,
        /// Whether a call may be retried at all.
        idempotent: bool = default(true),
        /// Retry budget: how many attempts may be retries. For a live model the default of min is
        /// at least two for each seat or agent that calls it.
        retry_budget: RetryBudgetTable = table,
        /// Circuit breaker: when calls are rejected without an attempt.
        breaker: BreakerTable = table,
        /// Bulkhead: how many attempts may run concurrently. By default they are queued as long as
        /// the run lasts.
        bulkhead: BulkheadTable = table,
        /// Most attempts that start in a minute; more wait as in the queue of the bulkhead. Default: any number.
        rate: IntegerField<1, { max::RATE }> = optional,
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// Retries of a failed call.
    struct RetriesTable => {
        /// Maximum number of attempts of one call, the first included.
        max_attempts: Positioned<IntegerField<1, { max::ATTEMPTS }>> = default(Positioned::not_in_file(IntegerField(2))),
        /// Waits in milliseconds before attempt 2, 3, …; the last value repeats.
        backoff_ms: Positioned<BoundedList<Millis<0, { max::BACKOFF_MS }>, 0, 20>> =
            default(Positioned::not_in_file(BoundedList(vec![Units(250), Units(750)]))),
        /// Whether half of each wait is random, from the seed.
        jitter: bool = default(true),
    }
}

record! {
    /// Retry budget: how many attempts of the last minute may be retries.
    struct RetryBudgetTable => {
        /// Percentage of the attempts.
        percent: IntegerField<0, 100> = default(IntegerField(10)),
        /// Number of retries that are always allowed, even after few attempts.
        min: Positioned<IntegerField<0, { max::FREE_RETRIES }>> = default(Positioned::not_in_file(IntegerField(3))),
    }
}

record! {
    /// Circuit breaker: when calls are rejected without an attempt.
    struct BreakerTable rule json!({
        "dependencies": {
            "window": {
                "required": ["size"],
                "properties": { "fail_threshold": false, "mode": { "const": "half_open" } },
            },
            "size": ["window"],
            "min_calls": ["window"],
            "failure_rate": ["window"],
            "slow_call_ms": ["window"],
            "slow_rate": ["slow_call_ms"],
        }
    }) => {
        /// Whether there is a breaker.
        enabled: bool = default(true),
        /// Consecutive failures that open it. Not with a window.
        fail_threshold: Positioned<IntegerField<1, { max::FAIL_THRESHOLD }>> = default(Positioned::not_in_file(IntegerField(5))),
        /// Seconds that it stays open.
        open_for_s: Seconds = default(Seconds::from_whole_seconds(30)),
        /// Concurrent probes while it is half-open. With a window all of them must succeed to close
        /// it.
        probe_permits: IntegerField<1, { max::PROBES }> = default(IntegerField(1)),
        /// What happens after the open time. With a window always `half_open`.
        mode: Positioned<BreakerMode> = default(Positioned::not_in_file(BreakerMode::HalfOpen)),
        /// What counts as a failure. Default: each attempt; for a live model each call, by its last
        /// attempt.
        counts: BreakerCounts = optional,
        /// Judge the tool by its latest calls instead of by failures in a row; needs size. What a call
        /// is, counts says.
        window: Positioned<WindowKind> = optional,
        /// Size of the window: calls, or seconds.
        size: Positioned<WindowSize> = optional,
        /// Calls in the window before it decides. Default: 10, at most the calls of the window.
        min_calls: Positioned<WindowSize> = optional,
        /// Share of the calls in the window that fail, from 0.01 to 1, which opens it. Default: 0.5.
        failure_rate: Positioned<Rate> = optional,
        /// Milliseconds after which a call is slow, below the timeout. Default: no call is.
        slow_call_ms: Positioned<Millis<1, { max::TIME_MS }>> = optional,
        /// Share of the calls in the window that are slow, failed ones included, which opens it.
        /// Default: 1.
        slow_rate: Positioned<Rate> = optional,
    }
}

/// The size of a breaker's window.
type WindowSize = IntegerField<1, { WindowLimits::MAX_SIZE }>;

words! { WindowKind:
    "count" => WindowKind::Count, "The latest calls.";
    "time" => WindowKind::Time, "The calls of the latest seconds.";
}

words! { BreakerMode:
    "half_open" => BreakerMode::HalfOpen, "Probes decide whether it closes.";
    "two_state" | "source" => BreakerMode::TwoState, "The next attempt closes it and resets the failure count.";
}

words! { BreakerCounts:
    "attempts" => BreakerCounts::Attempts, "Each attempt.";
    "calls" => BreakerCounts::Calls, "Each call once, by its last attempt.";
}

record! {
    /// Bulkhead: how many attempts may run concurrently.
    struct BulkheadTable => {
        /// Whether there is a limit.
        enabled: bool = default(true),
        /// The concurrency limit: attempts in flight.
        max_in_flight: IntegerField<1, { max::IN_FLIGHT }> = default(IntegerField(10)),
        /// Milliseconds that an attempt may be queued. Default: 0.
        max_wait_ms: Millis<0, { max::TIME_MS }> = optional,
    }
}

record! {
    /// Safe mode: the fallback for a call that fails. It is the last good value, else the default
    /// value in `fallback`, else the result is omitted.
    struct SafeModeTable => {
        /// Whether a fallback is used.
        enabled: bool = default(true),
        /// Whether the run may continue without a result.
        allow_partial: bool = default(true),
        /// Seconds for which the last good value is cached. Default: not cached.
        cache_ttl_s: Positioned<Seconds> = optional,
        /// The default value: a table or, for an agent and for a tool that agents call, a string
        /// that is used as the reply. `{{input}}` is filled in.
        fallback: TextOrTable = optional,
    }
}

record! {
    /// A fault that is injected between the gateway and the tool.
    struct InjectedTable rule json!({
        "oneOf": [
            {
                "properties": {
                    "kind": { "const": "latency" },
                    "percent": false, "status": false, "times": false,
                },
                "required": ["kind", "ms"],
            },
            {
                "properties": { "kind": { "const": "errors" }, "ms": false },
                "required": ["kind", "percent"],
            },
            {
                "properties": {
                    "kind": { "enum": ["hang", "malformed", "reset", "empty", "refusal"] },
                    "ms": false, "percent": false, "status": false, "times": false,
                },
            },
        ]
    }) => {
        /// The kind of fault.
        kind: FaultKind = needed,
        /// Added milliseconds per attempt, for latency.
        ms: Positioned<Millis<1, { max::LATENCY_MS }>> = optional,
        /// Percentage of the attempts that fail, for errors.
        percent: Positioned<IntegerField<1, 100>> = optional,
        /// The HTTP status of the failed attempts, for errors. Default: 503.
        status: Positioned<IntegerField<400, 599>> = optional,
        /// How many attempts fail, for errors. Default: any number.
        times: Positioned<IntegerField<1, { max::FAIL_THRESHOLD }>> = optional,
    }
}

words! { FaultKind:
    "latency" => FaultKind::Latency, "Each attempt takes longer.";
    "errors" => FaultKind::Errors, "A share of the attempts fails with a status.";
    "hang" => FaultKind::Hang, "No response until the timeout.";
    "malformed" => FaultKind::Malformed, "The response is not JSON.";
    "reset" => FaultKind::Reset, "The connection breaks in the middle of the body.";
    "empty" => FaultKind::Empty, "The reply is empty.";
    "refusal" => FaultKind::Refusal, "The model refuses.";
}

words! { FieldKind:
    "text" => FieldKind::Text, "A string.";
    "number" => FieldKind::Number, "A number.";
    "bool" => FieldKind::Bool, "true or false.";
    "list" => FieldKind::List, "A list.";
    "table" => FieldKind::Table, "A table.";
    "any" => FieldKind::Any, "Any value, null included.";
}

record! {
    /// When the operator is alerted. A limit that is not set gives no alert.
    struct AlertsTable => {
        /// Breaker openings of a tool within one minute.
        breaker_opens_per_minute: IntegerField<1, 10_000> = optional,
        /// Share of a tool's attempts of the last minute that failed, from 0 to 1.
        error_rate: Fraction = optional,
        /// 95th percentile of the duration of a tool's latest calls, in milliseconds.
        p95_ms: Millis<1, 3_600_000> = optional,
    }
}

/// A free table as JSON; `fill` fills in its strings.
pub(crate) fn fill_table(
    table: &FreeTable,
    fill: &mut impl FnMut(&str, crate::scenario::read::tree::TextSpan) -> Value,
) -> Map<String, Value> {
    table.table.json(fill).unwrap_or_default()
}

record! {
    /// A string that is read from an environment variable.
    struct EnvTable => {
        /// The name of the variable.
        env: NonBlankString = needed,
    }
}

impl FormatShape for Setting {
    fn schema() -> Value {
        json!({ "oneOf": [StringField::schema(), EnvTable::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Text(text) => Some(Self::Text(text.clone())),
            TomlValue::Table(_) => EnvTable::read(node, cx)?.env.map(|env| Self::Env(env.text)),
            _ => {
                cx.wrong_type(node, "a string, or { env = \"NAME\" }");
                None
            }
        }
    }
}

/// The valid settings by name.
pub(crate) fn settings<R>(
    named: &NamedEntries<Positioned<Setting>, R>,
) -> BTreeMap<String, Setting> {
    let good = named.entries.iter().filter_map(|entry| {
        entry.value.as_ref().map(|value| (entry.name.clone(), value.value.clone()))
    });
    good.collect()
}

record! {
    /// A failure of the first attempts of a call. Exactly one of status and kind.
    struct FaultTable rule json!({
        "oneOf": [{ "required": ["status"] }, { "required": ["kind"] }]
    }) => {
        /// The HTTP status that the endpoint returns.
        status: IntegerField<400, 599> = optional,
        /// The value of its Retry-After header, in seconds.
        retry_after_s: Positioned<DurationOrZero> = optional,
        /// A failure other than an HTTP status.
        kind: FaultWord = optional,
        /// How many attempts of a call fail, from the first on.
        times: IntegerField<1, { max::ATTEMPTS }> = default(IntegerField(1)),
        /// What the failure says, at most 300 characters of it. Default: a text of the program.
        text: StringField = optional,
        /// Whether the failure itself says that a retry helps, or that none does. Default: its kind
        /// decides.
        retry: bool = optional,
    }
}

/// Failures of a scripted attempt other than an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultWord {
    Hang,
    Refused,
    Reset,
    BadResponse,
    Resolve,
    Tls,
    Tool,
    TooLarge,
    Denied,
    Rejected,
}

words! { FaultWord:
    "hang" => FaultWord::Hang, "No response until the timeout.";
    "refused" => FaultWord::Refused, "The connection is refused.";
    "reset" => FaultWord::Reset, "The connection breaks in the middle of the reply.";
    "bad_response" => FaultWord::BadResponse, "A response body that is not a chat completion.";
    "resolve" => FaultWord::Resolve, "The host name does not resolve.";
    "tls" => FaultWord::Tls, "The TLS handshake fails.";
    "tool" => FaultWord::Tool, "The tool's own program fails.";
    "too_large" => FaultWord::TooLarge, "A body larger than its limit.";
    "denied" => FaultWord::Denied, "Refused before the tool is called.";
    "rejected" => FaultWord::Rejected, "The tool answers that it cannot do what the call asks.";
}
