//! A tool whose results the scenario lists.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{AttemptLimit, KnownArguments};
use crate::base::seeded_random::Latency;
use crate::scenario::check::script;
use crate::scenario::read::ReadContext;
use crate::scenario::read::amount::{ClockTime, Fraction, Number};
use crate::scenario::read::format::tools::{FaultTable, fill_table};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, IntegerField, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record,
};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::TomlNode;
use crate::scenario::spec::tool::{REQUEST_ID, ScriptFault};

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
        /// Only for the nth call of the run with the same arguments, from 1.
        nth: IntegerField<1, 100_000> = optional,
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

/// Results that the scenario lists: the first matching row is used.
#[derive(Debug, Clone, Default)]
pub struct FixtureSpec {
    /// The rows in the file's order.
    pub rows: Vec<FixtureRow>,
    /// The load model; `None`: load has no effect.
    pub load: Option<LoadSpec>,
}

impl FixtureSpec {
    /// Whether a result depends on how often the run made the same call before.
    pub fn counts_calls(&self) -> bool {
        self.rows.iter().any(|row| row.nth.is_some())
    }
}

/// One result of a fixture.
#[derive(Clone)]
pub struct FixtureRow {
    /// Arguments that a call must have with these values; it may have others.
    pub args: Map<String, Value>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// Only for the nth call of the run with the same arguments, from 1.
    pub nth: Option<u32>,
    /// How long the result takes.
    pub latency: Latency,
    /// A failure before the result, if any.
    pub fault: Option<ScriptFault>,
    pub answer: FixtureAnswer,
}

/// The digest of a tool's definition is made of this text, and a log that waits for an approval has it: a key
/// that came later is left out where it is not set.
impl fmt::Debug for FixtureRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = f.debug_struct("FixtureRow");
        row.field("args", &self.args).field("attempt", &self.attempt);
        if let Some(nth) = &self.nth {
            row.field("nth", nth);
        }
        row.field("latency", &self.latency).field("fault", &self.fault);
        row.field("answer", &self.answer).finish()
    }
}

/// The result of a fixture row.
#[derive(Debug, Clone)]
pub enum FixtureAnswer {
    Value(Arc<Value>),
    /// Text that is read as JSON, valid or not.
    Raw(Arc<str>),
}

/// Load model of a fixture: a vendor that is healthy up to its capacity, slower with errors beyond
/// it, and down at twice the capacity; and a time in which it is flaky at any load. Pauses of the run
/// do not count towards that time.
///
/// The number of concurrent requests depends on timing: with paused time two runs with the same
/// seed are identical, with real time they may differ slightly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSpec {
    /// Concurrent requests that it can handle.
    pub capacity: u32,
    /// Share of its requests that fail with 503 while it is flaky, from 0 to 1.
    pub flaky_rate: f64,
    /// Start of the flaky time, after the first request.
    pub flaky_from: Duration,
    /// End of the flaky time, after the first request.
    pub flaky_until: Duration,
    /// Whether its failures are spread evenly instead of at random.
    pub flaky_evenly: bool,
    /// How many times as long its requests take while it is slow.
    pub slow_factor: f64,
    /// Start of the slow time, after the first request.
    pub slow_from: Duration,
    /// End of the slow time, after the first request.
    pub slow_until: Duration,
}

/// Builds a fixture. Problems are reported to `cx`.
pub(super) fn build(
    table: &FixtureTable,
    attempts: &AttemptLimit,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FixtureSpec> {
    let load = match &table.load {
        Some(table) => Some(cx.at_key("load", |cx| load(table, cx))?),
        None => None,
    };
    let rows = table.rows.as_ref()?;
    let read: Vec<Option<FixtureRow>> = rows
        .0
        .iter()
        .enumerate()
        .map(|(index, table)| {
            cx.at_key("rows", |cx| cx.at_index(index, |cx| row(table, scope, cx)))
        })
        .collect();
    for (index, later) in read.iter().enumerate() {
        let Some(later) = later else { continue };
        let earlier = read[..index]
            .iter()
            .position(|earlier| earlier.as_ref().is_some_and(|earlier| covers(earlier, later)));
        let place = rows.0[index].at;
        let why = match (earlier, &rows.0[index].value.attempt) {
            (Some(earlier), _) => Some((
                place,
                format!("rows[{earlier}] comes first and matches every call of this row"),
            )),
            (None, Some(attempt)) if attempt.value.0 > attempts.most && !attempts.set => {
                Some((attempt.at, attempts.of.clone()))
            }
            _ => None,
        };
        if let Some((at, help)) = why {
            cx.at_key("rows", |cx| {
                cx.at_index(index, |cx| cx.warn(at, "this row can never be used", help));
            });
        }
    }
    Some(FixtureSpec { rows: read.into_iter().collect::<Option<_>>()?, load })
}

/// Whether an earlier row matches every call that this row matches.
fn covers(earlier: &FixtureRow, row: &FixtureRow) -> bool {
    let same_attempt = earlier.attempt.is_none() || earlier.attempt == row.attempt;
    let same_call = earlier.nth.is_none() || earlier.nth == row.nth;
    same_attempt
        && same_call
        && earlier.args.iter().all(|(key, value)| row.args.get(key) == Some(value))
}

fn row(
    row: &Positioned<FixtureRowTable>,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<FixtureRow> {
    let table = &row.value;
    let args = cx
        .at_key("args", |cx| fill_table(&table.args, &mut |text, at| scope.value_of(text, at, cx)));
    let fault = match &table.fault {
        Some(table) => Some(cx.at_key("fault", |cx| script::build_fault(table, cx))?),
        None => None,
    };
    let answer = match (&table.result, &table.raw) {
        (Some(result), None) => {
            let result = cx.at_key("result", |cx| {
                fill_table(result, &mut |text, at| scope.value_of(text, at, cx))
            });
            FixtureAnswer::Value(Arc::new(result.into()))
        }
        (None, Some(raw)) => {
            FixtureAnswer::Raw(cx.at_key("raw", |cx| scope.text(&raw.text, raw.at, cx)).into())
        }
        (None, None) if cx.has_error_here() => return None,
        (given, _) => {
            let what = match given {
                Some(_) => "the row has two results",
                None => "the row has no result",
            };
            cx.error(row.at, what, "write one of `result` and `raw`");
            return None;
        }
    };
    Some(FixtureRow {
        args,
        attempt: table.attempt.as_ref().map(|attempt| attempt.value.0),
        nth: table.nth.map(|nth| nth.0),
        latency: table.latency,
        fault,
        answer,
    })
}

fn load(table: &LoadTable, cx: &mut ReadContext) -> Option<LoadSpec> {
    for (kind, from, until) in [
        ("flaky", table.flaky_from, &table.flaky_until),
        ("slow", table.slow_from, &table.slow_until),
    ] {
        if until.value.0 < from.0 {
            let what = format!("the {kind} time ends before it begins");
            let help = format!("set it later than {kind}_from");
            cx.at_key(&format!("{kind}_until"), |cx| cx.error(until.at, what, help));
            return None;
        }
    }
    Some(LoadSpec {
        capacity: table.capacity?.0,
        flaky_rate: table.flaky_rate.0,
        flaky_from: table.flaky_from.0,
        flaky_until: table.flaky_until.value.0,
        flaky_evenly: table.flaky_evenly,
        slow_factor: table.slow_factor.0,
        slow_from: table.slow_from.0,
        slow_until: table.slow_until.value.0,
    })
}

/// Arguments that the program adds to every call.
const ADDED: [&str; 2] = [REQUEST_ID, "allowed_domains"];

/// Reports arguments in rows that no call has.
pub(super) fn check_row_arguments(
    table: &FixtureTable,
    args: &KnownArguments<'_>,
    cx: &mut ReadContext,
) {
    let Some(names) = args.names else { return };
    // An agent's tool may declare no arguments and still be called with those of its rows.
    if names.is_empty() && !args.certain {
        return;
    }
    for (index, row) in table.rows.iter().flat_map(|rows| rows.0.iter().enumerate()) {
        let given = row.value.args.table.entries.iter().map(|(key, _)| key);
        for key in given.filter(|key| !names.contains(&&*key.text) && !ADDED.contains(&&*key.text))
        {
            let help = cx.suggest(&key.text, names.iter().copied());
            let what =
                format!("`{}` is not an argument of its calls: the row is never used", key.text);
            let tell = |cx: &mut ReadContext| match args.certain {
                true => cx.error(key.at, what, help),
                false => cx.warn(key.at, what, help),
            };
            cx.at_key("rows", |cx| {
                cx.at_index(index, |cx| cx.at_key("args", |cx| cx.at_key(&key.text, tell)));
            });
        }
    }
}
