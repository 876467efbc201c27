//! The fields of a resilience run's outcome (cascading failures source document).

use serde::Serialize;
use serde_json::json;

use crate::base::name::ToolName;
use crate::event::kind::{BreakerCause, BreakerStage, WindowCounts};
use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::outcome::fields::thousandths;
use crate::pattern::resilience::projection::Resilience;

/// A change of state of a tool's breaker.
#[derive(Serialize)]
struct MoveRow<'a> {
    at_ms: u64,
    tool: &'a ToolName,
    to: BreakerStage,
    why: BreakerCause,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<WindowCounts>,
}

/// Results of an agent, and the last turn it reached.
#[derive(Serialize)]
struct AgentResultRow {
    agent: usize,
    turn: u32,
    answered: u32,
    degraded: u32,
    failed: u32,
}

impl Resilience {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let plan = &*self.plan;
        let summary = json!({
            "guarded": plan.guarded,
            "agents": plan.agents,
            "turns": plan.turns,
            "answered": self.answered,
            "degraded": self.degraded,
            "failed": self.failed,
            "amplification": run.tools.amplification().map(thousandths),
            "call_slots": plan.pool,
            "most_waiting": self.peak_waiting,
        });
        let tools = run.tools.rows().iter();
        let mut moves: Vec<_> =
            tools.flat_map(|row| row.history.iter().map(move |it| (row.name(), it))).collect();
        moves.sort_by_key(|(_, it)| it.seq);
        let trace: Vec<_> = moves
            .into_iter()
            .map(|(tool, it)| MoveRow {
                at_ms: it.at.0 / 1_000,
                tool,
                to: it.to,
                why: it.why,
                counted: it.counted,
            })
            .collect();
        let history: Vec<_> = (1..)
            .zip(&self.agents)
            .map(|(agent, row)| AgentResultRow {
                agent,
                turn: row.turn,
                answered: row.answered,
                degraded: row.degraded,
                failed: row.failed,
            })
            .collect();
        fields.add("summary", &summary);
        fields.add("trace", &trace);
        fields.add("history", &history);
    }
}
