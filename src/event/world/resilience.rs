//! Projection of pattern `003`: the agents, and the call slots they share. What each tool bears is
//! in [`Tools`](super::Tools).

use std::collections::BTreeMap;

use crate::event::kind::{Purpose, ResiliencePlan};
use crate::event::{Event, EventKind, SpanId, StopReason};
use crate::scenario::name::ToolName;

/// A resilience run as its log tells it.
#[derive(Clone, Debug, Default)]
pub struct Resilience {
    /// The agents, the first first.
    pub agents: Vec<Agent>,
    /// Call slots in use.
    pub in_use: u32,
    /// The most that were in use at once.
    pub peak: u32,
    /// Calls that wait for a slot now.
    pub waiting: u32,
    /// The most that waited at once.
    pub peak_waiting: u32,
    /// Calls that got an answer.
    pub answered: u64,
    /// Calls that something stood in for, or that were left out.
    pub degraded: u64,
    /// Calls that got nothing.
    pub failed: u64,
    /// Slots there are.
    pool: u32,
    /// Calls that are open: whose they are, and whether they have a slot.
    open: BTreeMap<SpanId, Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    agent: u32,
    has_slot: bool,
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Which of its turns it is in, from 1; 0 before the first.
    pub turn: u32,
    /// What it asks now.
    pub asks: Option<ToolName>,
    /// Whether that waits for a slot.
    pub waits: bool,
    /// Its calls that got an answer.
    pub answered: u32,
    /// Its calls that something stood in for, or that were left out.
    pub degraded: u32,
    /// Its calls that got nothing.
    pub failed: u32,
}

impl Resilience {
    pub(super) fn new(plan: &ResiliencePlan) -> Self {
        // A file may name any number; agents beyond those a run of ours can have are not drawn.
        let agents = plan.agents.min(100_000) as usize;
        Self { agents: vec![Agent::default(); agents], pool: plan.pool, ..Self::default() }
    }

    fn agent(&mut self, agent: u32) -> Option<&mut Agent> {
        self.agents.get_mut(usize::try_from(agent.checked_sub(1)?).ok()?)
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CallStarted(call) => {
                let Purpose::Step { agent, turn, .. } = call.purpose else { return };
                self.open.insert(event.span, Open { agent, has_slot: true });
                self.in_use += 1;
                self.peak = self.peak.max(self.in_use.min(self.pool));
                if let Some(row) = self.agent(agent) {
                    row.turn = turn;
                    row.asks = Some(call.tool.clone());
                    row.waits = false;
                }
            }
            EventKind::CallQueued => self.set_slot(event.span, false),
            EventKind::CallAdmitted { .. } => self.set_slot(event.span, true),
            EventKind::CallAnswered { .. } => self.close(event.span, End::Answered),
            EventKind::CallDegraded { .. } => self.close(event.span, End::Degraded),
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.close(event.span, End::Cancelled);
            }
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
            self.peak = self.peak.max(self.in_use.min(self.pool));
        } else {
            self.in_use = self.in_use.saturating_sub(1);
            self.waiting += 1;
            self.peak_waiting = self.peak_waiting.max(self.waiting);
        }
        if let Some(row) = self.agent(agent) {
            row.waits = !has_slot;
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
            row.asks = None;
            row.waits = false;
            match end {
                End::Answered => row.answered += 1,
                End::Degraded => row.degraded += 1,
                End::Failed => row.failed += 1,
                End::Cancelled => {}
            }
        }
        match end {
            End::Answered => self.answered += 1,
            End::Degraded => self.degraded += 1,
            End::Failed => self.failed += 1,
            End::Cancelled => {}
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy)]
enum End {
    Answered,
    Degraded,
    Failed,
    Cancelled,
}
