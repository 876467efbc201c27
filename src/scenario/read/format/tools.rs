//! The file format of tools: their implementations, the gateway's policies, settings from the
//! environment, scripted failures.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::base::seeded_random::Latency;
use crate::scenario::read::amount::{
    ClockTime, DurationOrZero, Fraction, Millis, Number, Seconds, Units, WholeSeconds,
};
use crate::scenario::read::names::{
    ActorName, Domain, EnvName, HeaderName, MAX_NAMES, NamedEntries, ResultKey,
};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, IntegerField, NonBlankString, ObjectSchema, Positioned,
    Requirement, StringField, TextOrTable, join_doc_lines, record, words,
};
use crate::scenario::read::tree::{TomlNode, TomlTable, TomlValue};
use crate::scenario::read::{ReadContext, suggest_name};
use crate::scenario::spec::policy::{BreakerCounts, BreakerMode, Rate, WindowKind, WindowLimits};
use crate::scenario::spec::tool::{FieldKind, HttpMethod, Setting};

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
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// The gateway's policy for calls of a tool, and its implementation. Under the name of a worker
    /// it replaces the orchestrator's own policy; under the name of an agent it is the policy for
    /// consulting that agent, with one attempt unless max_attempts is set.
    struct ToolTable => {
        /// What it does, shown to the agents that may call it.
        description: NonBlankString = optional,
        /// Its arguments, all of them required: the description of each, or its JSON schema.
        args: Positioned<NamedEntries<TextOrTable, ResultKey>> = default(Positioned::not_in_file(NamedEntries::default())),
        /// Timeout of one attempt in seconds, until its result is complete. Default:
        /// task_timeout_seconds for an orchestrator's worker; for `read_source` of research
        /// max_seconds / (max_read_pages + 2), clamped to 2 to 10, so that slow pages cannot use up
        /// the run; otherwise 10.
        timeout_s: Seconds = optional,
        /// Retries of a failed call.
        retries: RetriesTable = table,
        /// Whether a call may be retried at all.
        idempotent: bool = default(true),
        /// Retry budget: how many attempts may be retries.
        retry_budget: RetryBudgetTable = table,
        /// Circuit breaker: when calls are rejected without an attempt. Default: a breaker with its
        /// default values; none for `read` from the web, which covers many hosts.
        breaker: BreakerTable = optional,
        /// Bulkhead: how many attempts may run concurrently.
        bulkhead: BulkheadTable = table,
        /// Safe mode: the fallback for a call that fails. It is on unless `enabled` is false.
        safe_mode: SafeModeTable = table,
        /// Whether the runs of one session share breaker, bulkhead and retry budget.
        shared: bool = default(false),
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
        /// Results that are listed in this file.
        fixture: Positioned<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: Positioned<HttpTable> = optional,
        /// A program whose output is the result.
        command: Positioned<CommandTable> = optional,
        /// A search in a folder of documents or with an endpoint.
        search: Positioned<SearchTable> = optional,
        /// A page reader for a folder of documents or the web.
        read: Positioned<ReadTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: NamedEntries<FieldKind, ResultKey> = default(NamedEntries::default()),
    }
}

record! {
    /// Retries of a failed call.
    struct RetriesTable => {
        /// Maximum number of attempts of one call, the first included.
        max_attempts: Positioned<IntegerField<1, 20>> = default(Positioned::not_in_file(IntegerField(2))),
        /// Waits in milliseconds before attempt 2, 3, …; the last value repeats.
        backoff_ms: Positioned<BoundedList<Millis<0, 600_000>, 0, 20>> =
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
        min: Positioned<IntegerField<0, 10_000>> = default(Positioned::not_in_file(IntegerField(3))),
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
        fail_threshold: Positioned<IntegerField<1, 10_000>> = default(Positioned::not_in_file(IntegerField(5))),
        /// Seconds that it stays open.
        open_for_s: Seconds = default(Seconds::from_whole_seconds(30)),
        /// Concurrent probes while it is half-open. With a window all of them must succeed to close
        /// it.
        probe_permits: IntegerField<1, 1_000> = default(IntegerField(1)),
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
        slow_call_ms: Positioned<Millis<1, 86_400_000>> = optional,
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
        max_in_flight: IntegerField<1, 100_000> = default(IntegerField(10)),
        /// Milliseconds that an attempt may be queued. Default: 0.
        max_wait_ms: Millis<0, 86_400_000> = optional,
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
                "properties": { "kind": { "const": "latency" }, "percent": false, "status": false },
                "required": ["kind", "ms"],
            },
            {
                "properties": { "kind": { "const": "errors" }, "ms": false },
                "required": ["kind", "percent"],
            },
            {
                "properties": {
                    "kind": { "enum": ["hang", "malformed", "reset"] },
                    "ms": false, "percent": false, "status": false,
                },
            },
        ]
    }) => {
        /// The kind of fault.
        kind: InjectedWord = needed,
        /// Added milliseconds per attempt, for latency.
        ms: Positioned<Millis<1, 600_000>> = optional,
        /// Percentage of the attempts that fail, for errors.
        percent: Positioned<IntegerField<1, 100>> = optional,
        /// The HTTP status of the failed attempts, for errors. Default: 503.
        status: Positioned<IntegerField<400, 599>> = optional,
    }
}

/// The kinds of injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InjectedWord {
    Latency,
    Errors,
    Hang,
    Malformed,
    Reset,
}

words! { InjectedWord:
    "latency" => InjectedWord::Latency, "Each attempt takes longer.";
    "errors" => InjectedWord::Errors, "A share of the attempts fails with a status.";
    "hang" => InjectedWord::Hang, "No response until the timeout.";
    "malformed" => InjectedWord::Malformed, "The response is not JSON.";
    "reset" => InjectedWord::Reset, "The connection breaks in the middle of the body.";
}

record! {
    /// Results that are listed in this file: the first matching row is used.
    struct FixtureTable => {
        /// The rows, checked from the top.
        rows: BoundedList<Positioned<FixtureRowTable>, 1, 2_000> = needed,
        /// Load model: how the fixture behaves under load. Without it load has no effect.
        load: LoadTable = optional,
    }
}

record! {
    /// One result. Exactly one of result and raw.
    struct FixtureRowTable rule json!({
        "oneOf": [{ "required": ["result"] }, { "required": ["raw"] }]
    }) => {
        /// Arguments that a call must have with these values; it may have others.
        args: FreeTable = default(FreeTable::default()),
        /// Only for this attempt of a call, from 1.
        attempt: Positioned<IntegerField<1, 20>> = optional,
        /// How long the result takes: `400ms`, or `400ms..1.2s` for a random time from the seed.
        latency: Latency = default(Latency::default()),
        /// A failure before the result.
        fault: Positioned<FaultTable> = optional,
        /// The result as a table. `{{input}}` is filled in.
        result: FreeTable = optional,
        /// The result as text, read as JSON, valid or not.
        raw: StringField = optional,
    }
}

record! {
    /// Load model of a fixture: healthy up to its capacity, slower with errors beyond it, down at
    /// twice the capacity.
    struct LoadTable => {
        /// Concurrent requests that it can handle.
        capacity: IntegerField<1, 100_000> = needed,
        /// Share of its requests that fail with 503 while it is flaky, from 0 to 1.
        flaky_rate: Fraction = default(Fraction(0.0)),
        /// Start of the flaky time, after the first request: `2s`.
        flaky_from: ClockTime = default(ClockTime::default()),
        /// End of the flaky time, after the first request: `8s`.
        flaky_until: Positioned<ClockTime> = default(Positioned::not_in_file(ClockTime::default())),
        /// Whether its failures are spread evenly instead of at random: at a rate of 0.8 one request
        /// succeeds, then four fail, and so on.
        flaky_evenly: bool = default(false),
        /// How many times as long its requests take while it is slow.
        slow_factor: Number<1, 100> = default(Number(1.0)),
        /// Start of the slow time, after the first request: `12s`.
        slow_from: ClockTime = default(ClockTime::default()),
        /// End of the slow time, after the first request: `15s`.
        slow_until: Positioned<ClockTime> = default(Positioned::not_in_file(ClockTime::default())),
    }
}

record! {
    /// An HTTP request that implements a tool.
    struct HttpTable => {
        /// The HTTP method.
        method: HttpMethod = default(HttpMethod::Get),
        /// The URL, with http:// or https://. `{name}` is replaced by the argument of that name.
        url: NonBlankString = needed,
        /// Headers by name: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Whether the arguments are sent as a JSON body.
        send_args: bool = default(false),
        /// Where the result is in the response, as a JSON pointer such as /data/0. Default: the
        /// whole response.
        pointer: StringField = optional,
        /// Maximum size of the response, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
        /// Whether it may connect to loopback, private and link-local addresses.
        allow_private: bool = default(false),
    }
}

words! { HttpMethod:
    "GET" => HttpMethod::Get, "Reads.";
    "POST" => HttpMethod::Post, "Sends.";
    "PUT" => HttpMethod::Put, "Replaces.";
    "DELETE" => HttpMethod::Delete, "Deletes.";
}

record! {
    /// A program that implements a tool: JSON on its standard input, JSON on its standard output.
    struct CommandTable => {
        /// The program; it is looked up in PATH unless it contains a slash. A relative path begins in the
        /// folder in which roundtable is started.
        program: NonBlankString = needed,
        /// Its arguments. The arguments of a call are never among them.
        args: BoundedList<StringField, 0, 200> = default(BoundedList(Vec::new())),
        /// Its whole environment: each variable is a string, or the environment variable that holds
        /// it.
        env: NamedEntries<Positioned<Setting>, EnvName> = default(NamedEntries::default()),
        /// Maximum size of its output, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
    }
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
    /// Searches for sources: in a folder of documents, or with an endpoint that returns JSON.
    struct SearchTable rule json!({ "oneOf": [{ "required": ["folder"] }, { "required": ["url"] }] }) => {
        /// A folder of documents: Markdown, HTML, text, PDF. Empty: the shipped corpus. `{{input}}`
        /// is filled in, and ~/ is the home directory. A relative path begins in the folder in which
        /// roundtable is started.
        folder: StringField = optional,
        /// The base URL of the folder's files. Without it the first folder in a file's path is its
        /// host, as in a mirror of the web.
        base_url: NonBlankString = optional,
        /// The URL of an endpoint; `{query}` and `{k}` are replaced by the query and the number of
        /// results.
        url: NonBlankString = optional,
        /// Where the list of results is in the response, as a JSON pointer.
        results: StringField = optional,
        /// Where the parts of one result are, as JSON pointers.
        fields: FieldsTable = table,
        /// Headers by name: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Maximum size of the response, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
        /// Whether it may have a loopback, private or link-local address.
        allow_private: bool = default(false),
    }
}

record! {
    /// Where the parts of one result are, as JSON pointers. An empty pointer: results do not have
    /// this part. The defaults are those of SearXNG.
    struct FieldsTable => {
        /// The URL.
        url: StringField = optional,
        /// The title.
        title: StringField = optional,
        /// The snippet.
        snippet: StringField = optional,
        /// The score, a number.
        score: StringField = optional,
        /// The date of publication.
        published_at: StringField = optional,
    }
}

record! {
    /// Reads pages: from a folder of documents, or from the web.
    struct ReadTable rule json!({
        "oneOf": [
            { "required": ["folder"], "properties": { "web": { "const": false } } },
            { "required": ["web"], "properties": { "web": { "const": true } } },
        ]
    }) => {
        /// A folder of documents, as in `search`.
        folder: StringField = optional,
        /// The base URL of the folder's files, as in `search`.
        base_url: NonBlankString = optional,
        /// Whether pages are read from the web (http and https), from hosts in both allowlists.
        web: Positioned<bool> = default(Positioned::not_in_file(false)),
        /// Maximum size of a page, in bytes, decompressed.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(2_000_000)),
        /// Maximum number of redirects; each must lead to a host in both allowlists.
        max_redirects: IntegerField<0, 20> = default(IntegerField(5)),
        /// Which hosts may have loopback, private and link-local addresses: true (all), false
        /// (none), or a list of hosts such as "wiki.corp" or "wiki.corp:8080", each with its port
        /// if its URLs have one.
        allow_private: PrivateHostsField = default(PrivateHostsField::Every(false)),
        /// Seconds for which a page is served from the cache. 0: pages are not cached.
        cache_ttl_s: WholeSeconds<0, 31_536_000> = default(Units(3_600)),
        /// Maximum number of concurrent requests to one host.
        per_host: IntegerField<1, 64> = default(IntegerField(2)),
        /// Minimum number of milliseconds between the starts of two requests to one host.
        pace_ms: Millis<0, 60_000> = default(Units(500)),
        /// Whether robots.txt is honoured.
        robots: bool = default(true),
    }
}

/// `true`, `false`, or a list of hosts.
#[derive(Debug, Clone)]
pub(crate) enum PrivateHostsField {
    Every(bool),
    Hosts(BoundedList<Domain, 0, 100>),
}

impl FormatShape for PrivateHostsField {
    fn schema() -> Value {
        json!({ "oneOf": [{ "type": "boolean" }, BoundedList::<Domain, 0, 100>::schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(truth) => Some(Self::Every(*truth)),
            TomlValue::List(_) => BoundedList::read(node, cx).map(Self::Hosts),
            _ => {
                cx.wrong_type(node, "true, false, or a list of hosts");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        match self {
            Self::Every(truth) => Value::Bool(*truth),
            Self::Hosts(_) => Value::Null,
        }
    }
}

/// The duration, or `None` for 0.
pub(crate) fn nonzero_duration(
    seconds: WholeSeconds<0, 31_536_000>,
) -> Option<std::time::Duration> {
    (seconds.0 > 0).then(|| Seconds::from_whole_seconds(u64::from(seconds.0)).0)
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
        times: IntegerField<1, 20> = default(IntegerField(1)),
    }
}

/// Failures of a scripted attempt other than an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultWord {
    Hang,
    Refused,
    Reset,
    BadResponse,
}

words! { FaultWord:
    "hang" => FaultWord::Hang, "No response until the timeout.";
    "refused" => FaultWord::Refused, "The connection is refused.";
    "reset" => FaultWord::Reset, "The connection breaks in the middle of the reply.";
    "bad_response" => FaultWord::BadResponse, "A response body that is not a chat completion.";
}
