//! Projection of a resilience run: the agents, the call slots they share, and its part of the
//! outcome (cascading failures source document). The counts of each tool are in
//! [`Tools`](crate::log::world::tools::Tools).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::outcome::{OutcomeFields, thousandths};
use super::tools::{CallSlots, LoadAgent, ToolLoad};
use super::{Projection, RunFold};
use crate::base::name::ToolName;
use crate::log::event::{
    BoundaryId, BreakerCause, BreakerStage, Event, EventKind, Purpose, SpanId, StopReason,
    WindowCounts,
};
use crate::log::facts::ResiliencePlan;

/// State of a resilience run.
#[derive(Clone, Debug)]
pub struct Resilience {
    pub plan: Arc<ResiliencePlan>,
    /// The agents in order.
    pub agents: Vec<LoadAgent>,
    /// Call slots in use.
    pub in_use: u32,
    /// Most call slots in use at the same time.
    pub peak: u32,
    /// Number of calls that wait for a slot now.
    pub waiting: u32,
    /// Most calls that waited at the same time.
    pub peak_waiting: u32,
    /// Calls with a result.
    pub answered: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Calls without a result.
    pub failed: u64,
    /// Open calls: the agent of each, and whether it has a slot.
    open: BTreeMap<SpanId, OpenStepCall>,
}

#[derive(Clone, Copy, Debug)]
struct OpenStepCall {
    agent: u32,
    has_slot: bool,
}

impl Resilience {
    pub(crate) fn new(plan: Arc<ResiliencePlan>) -> Self {
        // A file may give any number; no run has more agents than this.
        let agents = plan.agents.min(100_000) as usize;
        Self {
            plan,
            agents: vec![LoadAgent::default(); agents],
            in_use: 0,
            peak: 0,
            waiting: 0,
            peak_waiting: 0,
            answered: 0,
            degraded: 0,
            failed: 0,
            open: BTreeMap::new(),
        }
    }

    fn agent(&mut self, agent: u32) -> Option<&mut LoadAgent> {
        self.agents.get_mut(usize::try_from(agent.checked_sub(1)?).ok()?)
    }

    fn fold(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CallStarted(call) => {
                let Purpose::AgentStep { agent, turn, .. } = call.purpose else { return };
                self.open.insert(event.span, OpenStepCall { agent, has_slot: true });
                self.in_use += 1;
                self.peak = self.peak.max(self.in_use.min(self.plan.pool));
                if let Some(row) = self.agent(agent) {
                    row.turn = turn;
                    row.calling = Some(call.tool.clone());
                    row.waits_for_slot = false;
                }
            }
            EventKind::CallQueued => self.set_slot(event.span, false),
            EventKind::CallAdmitted { .. } => self.set_slot(event.span, true),
            EventKind::CallAnswered { .. } => self.close(event.span, End::Answered),
            EventKind::CallDegraded { .. } => self.close(event.span, End::Degraded),
            EventKind::CallFailed {
                reason: StopReason::Cancelled | StopReason::ApprovalDenied(_),
                ..
            } => self.close(event.span, End::NoResult),
            EventKind::CallFailed { .. } => self.close(event.span, End::Failed),
            _ => {}
        }
    }

    fn set_slot(&mut self, call: SpanId, has_slot: bool) {
        let Some(open) = self.open.get_mut(&call).filter(|open| open.has_slot != has_slot) else {
            return;
        };
        open.has_slot = has_slot;
        let agent = open.agent;
        if has_slot {
            self.waiting = self.waiting.saturating_sub(1);
            self.in_use += 1;
            self.peak = self.peak.max(self.in_use.min(self.plan.pool));
        } else {
            self.in_use = self.in_use.saturating_sub(1);
            self.waiting += 1;
            self.peak_waiting = self.peak_waiting.max(self.waiting);
        }
        if let Some(row) = self.agent(agent) {
            row.waits_for_slot = !has_slot;
        }
    }

    fn close(&mut self, call: SpanId, end: End) {
        let Some(open) = self.open.remove(&call) else { return };
        if open.has_slot {
            self.in_use = self.in_use.saturating_sub(1);
        } else {
            self.waiting = self.waiting.saturating_sub(1);
        }
        if let Some(row) = self.agent(open.agent) {
            row.calling = None;
            row.waits_for_slot = false;
            match end {
                End::Answered => row.answered += 1,
                End::Degraded => row.degraded += 1,
                End::Failed => row.failed += 1,
                End::NoResult => {}
            }
        }
        match end {
            End::Answered => self.answered += 1,
            End::Degraded => self.degraded += 1,
            End::Failed => self.failed += 1,
            End::NoResult => {}
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy)]
enum End {
    Answered,
    Degraded,
    Failed,
    /// Cancelled or not approved.
    NoResult,
}

impl Projection for Resilience {
    fn apply(&mut self, event: &Event, _run: &RunFold) {
        self.fold(event);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn tool_of(&self, purpose: &Purpose) -> Option<&str> {
        let Purpose::AgentStep { step, .. } = purpose else { return None };
        self.plan.steps.get(usize::from(*step)).map(|tool| tool.as_str())
    }

    fn tool_load(&self) -> Option<ToolLoad<'_>> {
        let plan = &*self.plan;
        let slots = CallSlots {
            pool: plan.pool,
            in_use: self.in_use,
            peak: self.peak,
            waiting: self.waiting,
            peak_waiting: self.peak_waiting,
        };
        Some(ToolLoad {
            agents: &self.agents,
            turns: plan.turns,
            steps: &plan.steps,
            slots,
            naive_attempts: (!plan.guarded).then_some(plan.naive_attempts),
        })
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        Err("No breakpoint here: agents act in no fixed order.")
    }
}

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
