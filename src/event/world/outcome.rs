//! What a run came to: the one outcome object, in the words of the sources, with ours added.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Collaboration, World};
use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::{CollaborationPlan, RunStarted, Usage};
use crate::event::{RunId, StopReason};
use crate::scenario::name::RoleName;

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
    /// The pattern's own fields, `trace` and `history` last.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
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
    /// Whether something was replaced by a fallback.
    pub degraded: bool,
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
    /// US dollars; `null` where no prices are known.
    pub cost_usd: Option<f64>,
}

#[derive(Serialize)]
struct SeatRow<'a> {
    round: u32,
    agent: &'a RoleName,
    stance: Stance,
    confidence: f64,
    accepted: bool,
}

#[derive(Serialize)]
struct RoundRow<'a> {
    round: u32,
    conflicts: &'a [Conflict],
    decision: &'static str,
}

#[derive(Serialize)]
struct HistoryRow<'a> {
    round: u32,
    contributions: Vec<&'a Contribution>,
    conflicts: &'a [Conflict],
    decision: Option<Decision>,
}

#[derive(Serialize)]
struct StanceRow<'a> {
    agent: &'a RoleName,
    stance: Stance,
    confidence: f64,
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
        let mut fields = Map::new();
        if let Some((world, plan)) = self.collaboration() {
            self.collaboration_fields(head, world, plan, success, &mut fields);
        }
        Some(Outcome {
            status: if success { "ok" } else { "stopped" },
            stop_reason: closed.reason.clone(),
            phase: closed.phase.clone(),
            fields,
            run_id: head.run.clone(),
            pattern: head.plan.name(),
            usage: OutcomeUsage {
                calls: self.tally.calls,
                attempts: self.tally.attempts,
                tokens: self.tally.usage,
                cost_usd: self.cost_usd(),
            },
            elapsed_ms: closed.elapsed_ms,
            paused_ms: closed.paused_ms,
            degraded: false,
        })
    }

    fn collaboration_fields(
        &self,
        head: &RunStarted,
        world: &Collaboration,
        plan: &CollaborationPlan,
        success: bool,
        fields: &mut Map<String, Value>,
    ) {
        let mut add = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        let closed_rounds = || world.rounds.iter().filter(|round| round.closed.is_some());
        if success {
            add("answer", self.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_decision", value(&world.decision()));
            add("rounds_used", json!(closed_rounds().count()));
            let mut summary = Map::new();
            for name in &plan.summary_inputs {
                let given = head.inputs.get(name.as_str()).cloned().unwrap_or(Value::Null);
                summary.insert(name.to_string(), given);
            }
            if let Some(last) = closed_rounds().next_back() {
                let stances: Vec<_> = last
                    .contributions()
                    .map(|from| StanceRow {
                        agent: &from.agent,
                        stance: from.stance,
                        confidence: from.confidence,
                    })
                    .collect();
                summary.insert("stances".to_owned(), value(&stances));
                summary.insert("conflicts".to_owned(), value(&last.conflicts));
            }
            add("team_summary", Value::Object(summary));
        } else if let Some(refused) =
            world.current().and_then(|round| round.seats.iter().find(|seat| seat.refused.is_some()))
        {
            add("raw_contribution", refused.raw.clone().unwrap_or(Value::Null));
        }
        let mut trace = Vec::new();
        for round in &world.rounds {
            trace.extend(round.contributions().map(|from| {
                value(&SeatRow {
                    round: round.number,
                    agent: &from.agent,
                    stance: from.stance,
                    confidence: from.confidence,
                    accepted: true,
                })
            }));
            if round.closed.is_some() {
                trace.push(value(&RoundRow {
                    round: round.number,
                    conflicts: &round.conflicts,
                    decision: round.decision.map_or("next_round", Decision::word),
                }));
            }
        }
        add("trace", Value::Array(trace));
        let history: Vec<_> = closed_rounds()
            .map(|round| HistoryRow {
                round: round.number,
                contributions: round.contributions().map(|from| &**from).collect(),
                conflicts: &round.conflicts,
                decision: round.decision,
            })
            .collect();
        add("history", value(&history));
    }
}
