//! The outcome of a run: one object, in the words of the source documents, with fields that
//! roundtable adds; those of the pattern, those of the gateway (fallbacks, counts of each tool,
//! alerts), and the outcome of a session.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::alerts::AlertKind;
use super::failures::CutReply;
use super::questions::QuestionsOutcome;
use super::tool_row::BreakerMove;
use super::{Projection, World};
use crate::base::name::{TaskId, ToolName};
use crate::base::time::millis;
use crate::log::event::{
    BreakerCause, FallbackKind, RunId, StopReason, Usage, WindowCounts, is_zero,
};

/// The outcome of a finished run. Its JSON has the fields of the source document in their order,
/// then those that roundtable adds.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Outcome {
    /// `ok` or `stopped`.
    pub status: &'static str,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The phase in which it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What was wrong with the reply that stopped the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<str>>,
    /// The cause of the stop, if more is known than its reason says: the last error of the call that stopped
    /// the run and the limit that prevented a retry, what opened the breaker, or which call is in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The pattern's own fields; `trace` and `history` come last.
    #[serde(flatten)]
    pub fields: OutcomeFields,
    /// Id of the run.
    pub run_id: RunId,
    /// Name of the pattern.
    pub pattern: &'static str,
    /// Calls, tokens, cost.
    pub usage: OutcomeUsage,
    /// Milliseconds, pauses not counted.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Whether a result was replaced by a fallback or omitted, or a reply that was used is not whole.
    pub degraded: bool,
    /// The replies that were used though they are not whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<CutReply>,
    /// The replaced and omitted results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// Questions to people; absent if nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<QuestionsOutcome>,
    /// Calls and requests of each tool; empty if only a model was called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOutcome>,
    /// Alerts to the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertOutcome>,
}

/// Calls, tokens and cost of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OutcomeUsage {
    /// Calls started.
    pub calls: u64,
    /// Attempts made; `null` for a watched run: its program does not report them.
    pub attempts: Option<u64>,
    /// Tokens of the replies, counted or estimated.
    #[serde(flatten)]
    pub tokens: Usage,
    /// Estimated cost in US dollars; `null` if a model has no price, or the tokens of a reply are
    /// unknown.
    pub cost_usd: Option<f64>,
    /// `estimate` if there is a cost: it is computed from list prices and is not a bill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_note: Option<&'static str>,
}

/// The note on a cost, if there is a cost.
fn cost_note(cost_usd: Option<f64>) -> Option<&'static str> {
    cost_usd.map(|_| "estimate")
}

impl World {
    /// The outcome, once the run is closed.
    pub fn outcome(&self) -> Option<Outcome> {
        let (head, closed) = (self.head.as_ref()?, self.progress.closed.as_ref()?);
        let success = closed.reason.is_success();
        let mut fields = OutcomeFields::default();
        if let Some(pattern) = self.projection() {
            pattern.outcome(&self.run, &mut fields);
        }
        Some(Outcome {
            status: if success { "ok" } else { "stopped" },
            stop_reason: closed.reason.clone(),
            phase: closed.phase.clone(),
            detail: self.stop_refusal().map(|stop| stop.refused.detail.clone()),
            error: self.stop_error(),
            fields,
            run_id: head.run.clone(),
            pattern: head.plan.name(),
            usage: OutcomeUsage {
                calls: self.tally.calls,
                attempts: head.model.is_steered().then_some(self.tally.attempts),
                tokens: self.tally.usage,
                cost_usd: self.cost_usd(),
                cost_note: cost_note(self.cost_usd()),
            },
            elapsed_ms: closed.elapsed_ms,
            paused_ms: closed.paused_ms,
            degraded: self.is_degraded(),
            cut: self.cut_replies().to_vec(),
            replaced: self.replaced(),
            questions: self.questions.outcome(),
            tools: self.tools_outcome(),
            alerts: self.alerts_outcome(),
        })
    }
}

/// Bytes that the values of most outcomes take.
const ROOM: usize = 2_048;
/// Fields of most outcomes.
const FIELDS: usize = 8;

/// Fields of an outcome in order, each as JSON.
#[derive(Clone, Default)]
pub struct OutcomeFields {
    /// The values, one after another.
    json: Vec<u8>,
    /// Each field, and the end of its value in `json`.
    ends: Vec<(&'static str, usize)>,
}

impl OutcomeFields {
    /// Adds a field. It is `null` if it cannot be written as JSON, which does not happen for our
    /// values.
    pub(crate) fn add(&mut self, name: &'static str, value: &impl Serialize) {
        if self.ends.is_empty() {
            self.json.reserve(ROOM);
            self.ends.reserve(FIELDS);
        }
        let begins = self.json.len();
        if serde_json::to_writer(&mut self.json, value).is_err() {
            self.json.truncate(begins);
            self.json.extend_from_slice(b"null");
        }
        self.ends.push((name, self.json.len()));
    }

    /// Value of a field, parsed from its JSON.
    pub fn get(&self, name: &str) -> Option<Value> {
        let (_, json) = self.iter().find(|(field, _)| *field == name)?;
        serde_json::from_slice(json).ok()
    }

    /// Each field and its JSON.
    fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.ends.iter().scan(0, |begins, (name, end)| {
            let json = self.json.get(std::mem::replace(begins, *end)..*end);
            Some((*name, json.unwrap_or_default()))
        })
    }
}

impl fmt::Debug for OutcomeFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.iter().map(|(name, json)| (name, String::from_utf8_lossy(json)));
        f.debug_map().entries(fields).finish()
    }
}

impl schemars::JsonSchema for OutcomeFields {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OutcomeFields".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

impl Serialize for OutcomeFields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let raw = |json| serde_json::from_slice::<&RawValue>(json).unwrap_or(RawValue::NULL);
        to.collect_map(self.iter().map(|(name, json)| (name, raw(json))))
    }
}

/// A result that was replaced by a fallback or omitted.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Replaced {
    /// Name of the tool.
    pub tool: ToolName,
    /// Id of the task, if the tool was a task's worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The kind of fallback.
    #[serde(flatten)]
    pub by: FallbackKind,
    /// How often it was used, if not for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Why it was used, if for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
}

/// A value as JSON; our values can always be written.
pub(crate) fn to_value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// A number rounded to three decimals, as files show it.
pub(crate) fn thousandths(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

/// Counts of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ToolOutcome {
    /// Name of the tool.
    pub tool: ToolName,
    /// Calls requested; an agent's repeats of the same call are not counted.
    pub calls: u64,
    /// Requests that reached the tool.
    pub requests: u64,
    /// Requests per call; `null` before the first call.
    pub amplification: Option<f64>,
    /// Calls with a result.
    pub answered: u64,
    /// Calls without a result or fallback.
    pub failed: u64,
    /// Calls that a person or a rule did not approve; absent if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Attempts refused by its open breaker.
    pub circuit_open: u64,
    /// Attempts refused by its full bulkhead.
    pub bulkhead_full: u64,
    /// Most attempts in flight at the same time.
    pub peak_in_flight: u32,
    /// Median duration of the latest answered calls in milliseconds; `null` with too few samples.
    pub p50_ms: Option<u64>,
    /// 95th percentile in milliseconds.
    pub p95_ms: Option<u64>,
    /// The latest times that the calls in its breaker's window opened it, the oldest first; absent
    /// without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<OpeningOutcome>,
}

/// An opening of a breaker because of the calls in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct OpeningOutcome {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// Which rate was reached.
    pub cause: BreakerCause,
    /// Calls in the window.
    pub calls: u32,
    /// Those that failed.
    pub failures: u32,
    /// Those that were slow, failed or not.
    pub slow: u32,
}

/// An alert that was raised.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AlertOutcome {
    /// Name of the threshold.
    pub alert: &'static str,
    /// Name of the tool.
    pub tool: ToolName,
    /// The value that exceeded the threshold.
    pub value: f64,
    /// Milliseconds since the start.
    pub at_ms: u64,
}

fn opening(moved: &BreakerMove) -> Option<OpeningOutcome> {
    let WindowCounts { calls, failures, slow } = moved.counted?;
    let at_ms = moved.at.0 / 1_000;
    Some(OpeningOutcome { at_ms, cause: moved.why, calls, failures, slow })
}

impl World {
    pub(crate) fn replaced(&self) -> Vec<Replaced> {
        if let Some(rows) = self.projection().and_then(Projection::replaced) {
            return rows;
        }
        let mut all = Vec::new();
        for row in self.tools.rows() {
            let oldest = FallbackKind::Cached { age_ms: row.oldest_cached_ms };
            let counts = [
                (row.tally.cached, oldest),
                (row.tally.fallback, FallbackKind::Default),
                (row.tally.omitted, FallbackKind::Omitted),
            ];
            all.extend(counts.into_iter().filter(|(times, _)| *times > 0).map(|(times, by)| {
                Replaced {
                    tool: row.name().clone(),
                    task_id: None,
                    by,
                    times: Some(times),
                    reason: None,
                }
            }));
        }
        all
    }

    pub(crate) fn tools_outcome(&self) -> Vec<ToolOutcome> {
        // Of a watched program the limits are not known, and its outcome has its calls.
        if self.tools.rows().len() < 2 || self.observed().is_some() {
            return Vec::new();
        }
        let rows = self.tools.rows().iter().map(|row| ToolOutcome {
            tool: row.name().clone(),
            calls: row.tally.calls,
            requests: row.tally.requests(),
            amplification: row.tally.amplification().map(thousandths),
            answered: row.tally.answered,
            failed: row.tally.failed,
            denied: row.tally.denied,
            degraded: row.tally.degraded(),
            circuit_open: row.tally.circuit_open,
            bulkhead_full: row.tally.bulkhead_full,
            peak_in_flight: row.peak,
            p50_ms: row.latencies.percentile(50).map(millis),
            p95_ms: row.latencies.percentile(95).map(millis),
            opened: row.history.iter().filter_map(opening).collect(),
        });
        rows.collect()
    }

    fn alerts_outcome(&self) -> Vec<AlertOutcome> {
        let all = self.alerts.all().iter().map(|alert| AlertOutcome {
            alert: alert.what.word(),
            tool: alert.tool.clone(),
            value: match alert.what {
                AlertKind::BreakerOpens(times) => f64::from(times),
                AlertKind::ErrorRate(rate) => thousandths(rate),
                AlertKind::P95(took) => millis(took) as f64,
                AlertKind::TokensUsed(share) | AlertKind::CostUsed(share) => thousandths(share),
            },
            at_ms: alert.at.0 / 1_000,
        });
        all.collect()
    }
}

/// The outcome of a session of several messages.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SessionOutcome {
    /// `ok` if every message was answered, else `stopped`.
    pub status: &'static str,
    /// The reason of the first stopped run; `success` if none was stopped.
    pub stop_reason: StopReason,
    /// Number of messages of the session. It equals the number of outcomes unless the session was
    /// cancelled early.
    pub messages: usize,
    /// Messages that were answered.
    pub answered: usize,
    /// Calls, tokens and cost of all runs.
    pub usage: OutcomeUsage,
    /// Milliseconds of all runs, pauses not counted.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Whether one of the runs was degraded.
    pub degraded: bool,
    /// The outcome of each run, in the order of the messages.
    pub session: Vec<Outcome>,
}

impl SessionOutcome {
    /// The outcome of a session of this many messages with these runs.
    pub fn new(session: Vec<Outcome>, messages: usize) -> Self {
        let stopped = session.iter().map(|run| &run.stop_reason).find(|why| !why.is_success());
        let answered = session.iter().filter(|run| run.stop_reason.is_success()).count();
        let cost_usd = session.iter().map(|run| run.usage.cost_usd).sum();
        let sum = |of: fn(&Outcome) -> u64| session.iter().map(of).sum::<u64>();
        Self {
            status: if answered == messages { "ok" } else { "stopped" },
            stop_reason: stopped.cloned().unwrap_or(StopReason::Success),
            messages,
            answered,
            usage: OutcomeUsage {
                calls: sum(|run| run.usage.calls),
                attempts: Some(sum(|run| run.usage.attempts.unwrap_or_default())),
                tokens: session.iter().fold(Usage::default(), |mut sum, run| {
                    sum.add(run.usage.tokens);
                    sum
                }),
                cost_usd,
                cost_note: cost_note(cost_usd),
            },
            elapsed_ms: sum(|run| run.elapsed_ms),
            paused_ms: sum(|run| run.paused_ms),
            degraded: session.iter().any(|run| run.degraded),
            session,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::ser::Error;
    use serde_json::json;

    use super::*;

    /// Begins a list and fails.
    struct Broken;

    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq([1, 2]).and(Err(S::Error::custom("broken")))
        }
    }

    #[test]
    fn fields_keep_order_and_null_failures() {
        let mut fields = OutcomeFields::default();
        assert_eq!(json!(fields), json!({}));
        fields.add("b", &"text");
        fields.add("a", &Broken);
        fields.add("c", &json!({ "d": [] }));
        let text = serde_json::to_string(&fields).expect("JSON");
        assert_eq!(text, r#"{"b":"text","a":null,"c":{"d":[]}}"#);
        assert_eq!(
            (fields.get("a"), fields.get("c")),
            (Some(Value::Null), Some(json!({ "d": [] })))
        );
        assert_eq!(fields.get("d"), None);
        assert_eq!(format!("{fields:?}"), r#"{"b": "\"text\"", "a": "null", "c": "{\"d\":[]}"}"#);
    }
}
