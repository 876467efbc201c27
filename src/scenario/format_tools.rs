//! The format of a scenario file: tools, what answers for them, and what the gateway does with their
//! calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::amount::{Fraction, Millis, Moment, Seconds, Units};
use super::format::FaultTable;
use super::format_lookup::{ReadTable, SearchTable};
use super::model::Latency;
use super::named::{Actor, EnvName, Header, Key, MAX_NAMES, Named};
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::resilience::{BreakerCounts, BreakerMode};
use super::shape::{At, Free, List, Prose, Shape, Text, TextOrTable, Whole};
use super::tool::{FieldKind, HttpMethod, Setting};
use super::tree::{Node, Table, Tree};

/// `[tools]`: the model's calls under `llm`, every other name is the author's own.
#[derive(Debug, Clone)]
pub(super) struct ToolsTable {
    /// Calls of the model.
    pub llm: Option<LlmTable>,
    /// Calls of tools.
    pub named: Named<ToolTable, Actor>,
}

/// The name that the model's calls have.
pub(super) const LLM: &str = "llm";

impl Shape for ToolsTable {
    fn schema() -> Value {
        let names = Named::<ToolTable, Actor>::schema();
        json!({
            "type": "object",
            "propertyNames": names["propertyNames"],
            "properties": { LLM: LlmTable::schema() },
            "additionalProperties": names["additionalProperties"],
            // The model is none of them.
            "maxProperties": MAX_NAMES + 1,
        })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let (mut own, mut llm) = (node.clone(), None);
        if let Tree::Table(Table { entries }) = &mut own.value {
            llm = entries.iter().position(|(key, _)| key.text == LLM).map(|at| entries.remove(at));
        }
        let llm = llm.map_or_else(|| Node::empty_table(node.at), |(_, node)| node);
        let named = Named::read(&own, cx)?;
        Some(Self { llm: cx.within(LLM, |cx| LlmTable::read(&llm, cx)), named })
    }
}

record! {
    /// What the gateway does with calls of the model.
    struct LlmTable => {
        /// Seconds that one attempt may take, as a whole. Without it: OPENAI_TIMEOUT_SECONDS, else 60.
        timeout_s: Seconds = optional,
        /// When a call that failed is made again. A model that is asked live has 4 attempts and waits
        /// of 500, 1000, 2000, 4000 and 8000 ms where the file says nothing.
        retries: RetriesTable = table,
        /// Whether a call may be made again at all.
        idempotent: bool = default(true),
        /// How many attempts may be repeats. Of a model that is asked live at least two for each seat
        /// or agent that asks it, where the file sets no min.
        retry_budget: RetryBudgetTable = table,
        /// When the model is no longer asked.
        breaker: BreakerTable = table,
        /// How many attempts may be out at once. Without max_wait_ms they stand in line as long as
        /// the run's time lasts.
        bulkhead: BulkheadTable = table,
        /// Faults that are injected from the start.
        faults: List<At<InjectedTable>, 0, 5> = default(List(Vec::new())),
    }
}

record! {
    /// What the gateway does with calls of a tool. Under the name of a worker it replaces the
    /// orchestrator's own policy for it; under that of an agent it says what is done when that agent
    /// is asked, which it is once unless max_attempts says more.
    struct ToolTable => {
        /// What it does, for the agents that may call it.
        description: Prose = optional,
        /// The arguments that agents give it, all of them needed: what each is, or its JSON schema.
        args: At<Named<TextOrTable, Key>> = default(At::nowhere(Named::default())),
        /// Seconds that one attempt may take, as a whole. Without it: task_timeout_seconds of an
        /// orchestrator; for `read_source` of research max_seconds / (max_read_pages + 2), from 2 to
        /// 10, so that pages that hang do not end the run; else 10.
        timeout_s: Seconds = optional,
        /// When a call that failed is made again.
        retries: RetriesTable = table,
        /// Whether a call may be made again at all.
        idempotent: bool = default(true),
        /// How many attempts may be repeats.
        retry_budget: RetryBudgetTable = table,
        /// When the tool is no longer asked. Without it: what [tools.llm] has without one, and for
        /// `read` from the web none, since many hosts stand behind that.
        breaker: BreakerTable = optional,
        /// How many attempts may be out at once.
        bulkhead: BulkheadTable = table,
        /// What stands in for the tool when it cannot be had.
        safe_mode: SafeModeTable = table,
        /// Whether breaker, bulkhead and retry budget are shared by the runs of one session.
        shared: bool = default(false),
        /// Faults that are injected from the start.
        faults: List<At<InjectedTable>, 0, 5> = default(List(Vec::new())),
        /// Answers that stand in this file.
        fixture: At<FixtureTable> = optional,
        /// An HTTP request that answers.
        http: At<HttpTable> = optional,
        /// A program that answers.
        command: At<CommandTable> = optional,
        /// A folder of documents, or an endpoint, that is searched.
        search: At<SearchTable> = optional,
        /// A folder of documents, or the web, that pages are read from.
        read: At<ReadTable> = optional,
        /// Keys that an answer must have, and what stands in each.
        contract: Named<FieldKind, Key> = default(Named::default()),
    }
}

record! {
    /// When a call that failed is made again.
    struct RetriesTable => {
        /// Attempts of one call, the first included.
        max_attempts: At<Whole<1, 20>> = default(At::nowhere(Whole(2))),
        /// Milliseconds before attempt 2, 3, …; the last repeats.
        backoff_ms: At<List<Millis<0, 600_000>, 0, 20>> =
            default(At::nowhere(List(vec![Units(250), Units(750)]))),
        /// Whether half of each wait is drawn by the seed.
        jitter: bool = default(true),
    }
}

record! {
    /// How many attempts of the last minute may be repeats.
    struct RetryBudgetTable => {
        /// In per cent of the attempts.
        percent: Whole<0, 100> = default(Whole(10)),
        /// Repeats that are allowed however few attempts there were.
        min: At<Whole<0, 10_000>> = default(At::nowhere(Whole(3))),
    }
}

record! {
    /// When a tool is no longer asked.
    struct BreakerTable => {
        /// Whether there is one.
        enabled: bool = default(true),
        /// Failures in a row that open it.
        fail_threshold: Whole<1, 10_000> = default(Whole(5)),
        /// Seconds that it stays open.
        open_for_s: Seconds = default(Seconds::whole(30)),
        /// Attempts that half-open lets through at once.
        probe_permits: Whole<1, 1_000> = default(Whole(1)),
        /// What comes after the open time.
        mode: BreakerMode = default(BreakerMode::HalfOpen),
        /// What counts as a failure. Without it: each attempt; of a model that is asked live, each
        /// call by its last attempt.
        counts: BreakerCounts = optional,
    }
}

words! { BreakerMode:
    "half_open" => BreakerMode::HalfOpen, "A few probes decide whether it closes.";
    "source" => BreakerMode::Source, "The next attempt closes it with a clean count.";
}

words! { BreakerCounts:
    "attempts" => BreakerCounts::Attempts, "Each attempt.";
    "calls" => BreakerCounts::Calls, "Each call, once, by its last attempt.";
}

record! {
    /// How many attempts may be out at once.
    struct BulkheadTable => {
        /// Whether there is a bound.
        enabled: bool = default(true),
        /// Attempts in flight at once.
        max_in_flight: Whole<1, 100_000> = default(Whole(10)),
        /// Milliseconds that an attempt may stand in line for a place. Without it: none.
        max_wait_ms: Millis<0, 86_400_000> = optional,
    }
}

record! {
    /// What stands in for a tool when it cannot be had: its last good value, else the fallback,
    /// else it is left out.
    struct SafeModeTable => {
        /// Whether anything may stand in for it.
        enabled: bool = default(true),
        /// Whether the run may go on without it.
        allow_partial: bool = default(true),
        /// Seconds that its last good value is kept. Without it: not at all.
        cache_ttl_s: At<Seconds> = optional,
        /// The value that is given in its place: a table, or of an agent and of a tool that agents
        /// call a text, which is the reply. `{{input}}` is filled in.
        fallback: TextOrTable = optional,
    }
}

record! {
    /// A fault that is injected between the gateway and what answers.
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
        /// What goes wrong.
        kind: InjectedWord = needed,
        /// Milliseconds that each attempt takes longer, for latency.
        ms: At<Millis<1, 600_000>> = optional,
        /// Share of the attempts that fail, for errors.
        percent: At<Whole<1, 100>> = optional,
        /// The HTTP status that they fail with, for errors. Without it: 503.
        status: At<Whole<400, 599>> = optional,
    }
}

/// How an injected fault goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InjectedWord {
    Latency,
    Errors,
    Hang,
    Malformed,
    Reset,
}

words! { InjectedWord:
    "latency" => InjectedWord::Latency, "Each attempt takes longer.";
    "errors" => InjectedWord::Errors, "A share of the attempts fails with a status.";
    "hang" => InjectedWord::Hang, "Nothing comes until the time-out.";
    "malformed" => InjectedWord::Malformed, "The answer is no JSON.";
    "reset" => InjectedWord::Reset, "The connection breaks in the middle of the body.";
}

record! {
    /// Answers that stand in this file: the first row that fits.
    struct FixtureTable => {
        /// The rows, tried from the top.
        rows: List<At<FixtureRowTable>, 1, 2_000> = needed,
        /// How it bears load, where it is more than a table.
        load: LoadTable = optional,
    }
}

record! {
    /// One answer. Exactly one of result and raw.
    struct FixtureRowTable rule json!({
        "oneOf": [{ "required": ["result"] }, { "required": ["raw"] }]
    }) => {
        /// Arguments that must be there with these values; others do not matter.
        args: Free = default(Free::default()),
        /// Only for this attempt of a call, from 1.
        attempt: At<Whole<1, 20>> = optional,
        /// How long the answer takes: `400ms`, or `400ms..1.2s` to draw by the seed.
        latency: Latency = default(Latency::default()),
        /// What goes wrong first.
        fault: At<FaultTable> = optional,
        /// The answer as a table. `{{input}}` is filled in.
        result: Free = optional,
        /// The answer as a text that is read as JSON, good or malformed.
        raw: Text = optional,
    }
}

record! {
    /// How a fixture bears load: well up to its capacity, slower and failing past it, down at twice
    /// of it.
    struct LoadTable => {
        /// Requests at once that it bears.
        capacity: Whole<1, 100_000> = needed,
        /// Share of its requests that fail with 503 while it is flaky, from 0 to 1.
        flaky_rate: Fraction = default(Fraction(0.0)),
        /// When it becomes flaky, since the first request: `2s`.
        flaky_from: Moment = default(Moment::default()),
        /// When it has recovered, since the first request: `8s`.
        flaky_until: At<Moment> = default(At::nowhere(Moment::default())),
    }
}

record! {
    /// An HTTP request that answers for a tool.
    struct HttpTable => {
        /// The method.
        method: HttpMethod = default(HttpMethod::Get),
        /// The address, with http:// or https://. `{name}` stands for the argument of that name.
        url: Prose = needed,
        /// Headers by name: a text, or the environment variable that holds it.
        headers: Named<At<Setting>, Header> = default(Named::default()),
        /// Whether the arguments are sent as a JSON body.
        send_args: bool = default(false),
        /// Where in the answer the result stands, as a JSON pointer such as /data/0. Without it: all
        /// of it.
        pointer: Text = optional,
        /// The most bytes of an answer.
        max_bytes: Whole<1, 1_000_000_000> = default(Whole(1_000_000)),
        /// Whether it may reach loopback, private and link-local addresses.
        allow_private: bool = default(false),
    }
}

words! { HttpMethod:
    "GET" => HttpMethod::Get, "Asks.";
    "POST" => HttpMethod::Post, "Sends.";
    "PUT" => HttpMethod::Put, "Replaces.";
    "DELETE" => HttpMethod::Delete, "Deletes.";
}

record! {
    /// A program that answers for a tool: JSON on its standard input, JSON on its standard output.
    struct CommandTable => {
        /// The program, looked up in PATH where it has no slash.
        program: Prose = needed,
        /// Its arguments; nothing of a call goes here.
        args: List<Text, 0, 200> = default(List(Vec::new())),
        /// All of its environment: a text, or the environment variable that holds it.
        env: Named<At<Setting>, EnvName> = default(Named::default()),
        /// The most bytes that it may print.
        max_bytes: Whole<1, 1_000_000_000> = default(Whole(1_000_000)),
    }
}

record! {
    /// A text that an environment variable holds.
    struct EnvTable => {
        /// The name of the variable.
        env: Prose = needed,
    }
}

impl Shape for Setting {
    fn schema() -> Value {
        json!({ "oneOf": [Text::schema(), EnvTable::schema()] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Text(text) => Some(Self::Text(text.clone())),
            Tree::Table(_) => EnvTable::read(node, cx)?.env.map(|env| Self::Env(env.text)),
            _ => {
                cx.wrong_type(node, "a text, or { env = \"NAME\" }");
                None
            }
        }
    }
}

words! { FieldKind:
    "text" => FieldKind::Text, "A text.";
    "number" => FieldKind::Number, "A number.";
    "bool" => FieldKind::Bool, "true or false.";
    "list" => FieldKind::List, "A list.";
    "table" => FieldKind::Table, "A table.";
    "any" => FieldKind::Any, "Anything, null too.";
}

record! {
    /// When a person is alerted. Without a limit: never.
    struct AlertsTable => {
        /// Breaker openings of a tool within a minute.
        breaker_opens_per_minute: Whole<1, 10_000> = optional,
        /// Share of a tool's attempts of the last minute that failed, from 0 to 1.
        error_rate: Fraction = optional,
        /// Milliseconds: the 95th percentile of a tool's latest calls.
        p95_ms: Millis<1, 3_600_000> = optional,
    }
}

/// Settings by name, as far as they are good.
pub(super) fn settings<R>(named: &Named<At<Setting>, R>) -> BTreeMap<String, Setting> {
    let good = named.entries.iter().filter_map(|entry| {
        entry.value.as_ref().map(|value| (entry.name.clone(), value.value.clone()))
    });
    good.collect()
}

/// A free table as JSON, its texts filled in by `fill`.
pub(super) fn filled(
    table: &Free,
    fill: &mut impl FnMut(&str, super::tree::Span) -> Value,
) -> Map<String, Value> {
    table.table.json(fill).unwrap_or_default()
}
