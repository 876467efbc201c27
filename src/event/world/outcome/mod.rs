//! The outcome of a run: one object, in the words of the source documents, with fields that
//! roundtable adds.

pub(crate) mod fields;
mod session;
mod tools;

use std::sync::Arc;

use serde::Serialize;

pub use fields::{OutcomeFields, Replaced};
pub use session::SessionOutcome;
pub use tools::{AlertOutcome, ToolOutcome};

use super::World;
use super::failures::CutReply;
use crate::event::kind::Usage;
use crate::event::{RunId, StopReason};

/// The outcome of a finished run. Its JSON has the fields of the source document in their order,
/// then those that roundtable adds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
    /// The cause of the stop, if a model call or an open breaker caused it: the last error, the
    /// limit that prevented a retry, or what opened the breaker.
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
    /// Calls and requests of each tool; empty if only a model was called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOutcome>,
    /// Alerts to the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertOutcome>,
}

/// Calls, tokens and cost of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct OutcomeUsage {
    /// Calls started.
    pub calls: u64,
    /// Attempts made.
    pub attempts: u64,
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
            error: self.stop_cause(),
            fields,
            run_id: head.run.clone(),
            pattern: head.plan.name(),
            usage: OutcomeUsage {
                calls: self.tally.calls,
                attempts: self.tally.attempts,
                tokens: self.tally.usage,
                cost_usd: self.cost_usd(),
                cost_note: cost_note(self.cost_usd()),
            },
            elapsed_ms: closed.elapsed_ms,
            paused_ms: closed.paused_ms,
            degraded: self.is_degraded(),
            cut: self.cut_replies().to_vec(),
            replaced: self.replaced(),
            tools: self.tools_outcome(),
            alerts: self.alerts_outcome(),
        })
    }
}
