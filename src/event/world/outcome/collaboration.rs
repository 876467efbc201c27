//! The fields of a collaboration's outcome (`000`).

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::value;
use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::{CollaborationPlan, RunStarted};
use crate::event::world::{Collaboration, World};
use crate::scenario::name::RoleName;

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

impl World {
    pub(super) fn collaboration_fields(
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
