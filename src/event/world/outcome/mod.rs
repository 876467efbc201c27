//! What a run came to: the one outcome object, in the words of the sources, with ours added.

mod collaboration;
mod orchestrator;
mod research;
mod resilience;
mod session;
mod team;
mod tools;

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub use session::SessionOutcome;
pub use tools::{AlertOutcome, Replaced, ToolOutcome};

use super::World;
use crate::event::kind::Usage;
use crate::event::{RunId, StopReason};

/// The outcome of a finished run. Its JSON has the source's fields in the source's order, then
/// ours.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `ok` or `stopped`.
    pub status: &'static str,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Where, when it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What exactly was wrong with the reply that stopped the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<str>>,
    /// What lies behind the stop, where a call of the model or an open breaker caused it: what the
    /// last attempt said, which limit kept it from another, what opened the breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The pattern's own fields, `trace` and `history` last.
    #[serde(flatten)]
    pub fields: Fields,
    /// The run.
    pub run_id: RunId,
    /// The pattern.
    pub pattern: &'static str,
    /// Calls, tokens, cost.
    pub usage: OutcomeUsage,
    /// Milliseconds, pauses left out.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Whether something was replaced by a stand-in or left out.
    pub degraded: bool,
    /// What was replaced by what, or left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// What each tool was asked and what that cost; none where only a model was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOutcome>,
    /// What a person was alerted of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertOutcome>,
}

/// Fields of an outcome in their order, each as the JSON that is written of it.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(&'static str, Box<RawValue>)>);

impl Fields {
    /// Adds a field. It is `null` where it cannot be written as JSON, which ours always can.
    fn add(&mut self, name: &'static str, value: &impl Serialize) {
        self.0.push((name, to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())));
    }

    /// A field, read again.
    pub fn get(&self, name: &str) -> Option<Value> {
        let (_, raw) = self.0.iter().find(|(field, _)| *field == name)?;
        serde_json::from_str(raw.get()).ok()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, raw)| (name, raw)))
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OutcomeUsage {
    /// Calls asked for.
    pub calls: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Tokens, of the replies that counted them.
    #[serde(flatten)]
    pub tokens: Usage,
    /// US dollars, an estimate; `null` where a model has no price, or a reply did not count its tokens.
    pub cost_usd: Option<f64>,
    /// What the cost is worth: `estimate`. It is worked out from list prices, and no bill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_note: Option<&'static str>,
}

/// What is said of a cost, where there is one.
fn cost_note(cost_usd: Option<f64>) -> Option<&'static str> {
    cost_usd.map(|_| "estimate")
}

/// A value of ours as JSON: ours always can be.
fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

impl World {
    /// The outcome, once the run is closed.
    pub fn outcome(&self) -> Option<Outcome> {
        let (head, closed) = (self.head.as_ref()?, self.closed.as_ref()?);
        let success = closed.reason.is_success();
        let mut fields = Fields::default();
        if let Some((world, plan)) = self.collaboration() {
            self.collaboration_fields(head, world, plan, success, &mut fields);
        } else if let Some((world, _)) = self.orchestrator() {
            self.orchestrator_fields(world, closed, &mut fields);
        } else if let Some((world, plan)) = self.team() {
            self.team_fields(world, plan, success, &mut fields);
        } else if let Some((world, plan)) = self.resilience() {
            self.resilience_fields(world, plan, &mut fields);
        } else if let Some((world, plan)) = self.research() {
            self.research_fields(world, plan, closed, &mut fields);
        }
        Some(Outcome {
            status: if success { "ok" } else { "stopped" },
            stop_reason: closed.reason.clone(),
            phase: closed.phase.clone(),
            detail: self.stop_refusal().map(|refused| refused.detail.clone()),
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
            replaced: self.replaced(),
            tools: self.tools_outcome(),
            alerts: self.alerts_outcome(),
        })
    }
}
