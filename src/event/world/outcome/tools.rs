//! What an outcome says of the gateway (`003`): what was replaced, what each tool bore, the alerts.

use serde::Serialize;

use crate::event::StopReason;
use crate::event::id::millis;
use crate::event::kind::StandIn;
use crate::event::world::World;
use crate::event::world::alerts::AlertKind;
use crate::scenario::name::{TaskId, ToolName};

/// Something that was replaced, or left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replaced {
    /// Whose result.
    pub tool: ToolName,
    /// Of which task, where it was one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// By what.
    #[serde(flatten)]
    pub by: StandIn,
    /// How often the same happened, where it was no task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Why, where it was one task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
}

/// What a tool was asked, and what that cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolOutcome {
    /// Which.
    pub tool: ToolName,
    /// Calls asked for; repeats of the same by an agent are not among them.
    pub calls: u64,
    /// Requests that reached the tool.
    pub requests: u64,
    /// Requests for each call; `null` before the first.
    pub amplification: Option<f64>,
    /// Calls answered.
    pub answered: u64,
    /// Calls failed, with nothing in their place.
    pub failed: u64,
    /// Calls that something stood in for, or that were left out.
    pub degraded: u64,
    /// Attempts refused by its open breaker.
    pub circuit_open: u64,
    /// Attempts refused by its full bulkhead.
    pub bulkhead_full: u64,
    /// The most attempts that were out at once.
    pub peak_in_flight: u32,
    /// The middle of the latest answered calls, in milliseconds; `null` with too few.
    pub p50_ms: Option<u64>,
    /// Their 95th percentile.
    pub p95_ms: Option<u64>,
}

/// An alert that was raised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlertOutcome {
    /// Which threshold.
    pub alert: &'static str,
    /// Whose.
    pub tool: ToolName,
    /// The value that passed it.
    pub value: f64,
    /// When, in milliseconds since the start.
    pub at_ms: u64,
}

impl World {
    pub(super) fn replaced(&self) -> Vec<Replaced> {
        if let Some((world, _)) = self.orchestrator() {
            let rows = world.tasks.iter().filter(|row| row.is_replaced()).map(|row| Replaced {
                tool: row.task.worker.clone(),
                task_id: Some(row.task.id.clone()),
                by: row.stand_in.unwrap_or(StandIn::LeftOut),
                times: None,
                reason: row.reason.clone(),
            });
            return rows.collect();
        }
        let mut all = Vec::new();
        for row in self.tools.rows() {
            let oldest = StandIn::Cached { age_ms: row.oldest_ms };
            let counts = [
                (row.tally.cached, oldest),
                (row.tally.fallback, StandIn::Fallback),
                (row.tally.left_out, StandIn::LeftOut),
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

    pub(super) fn tools_outcome(&self) -> Vec<ToolOutcome> {
        if self.tools.rows().len() < 2 {
            return Vec::new();
        }
        let rows = self.tools.rows().iter().map(|row| ToolOutcome {
            tool: row.name().clone(),
            calls: row.tally.asked,
            requests: row.tally.requests(),
            amplification: row.tally.amplification().map(thousandths),
            answered: row.tally.answered,
            failed: row.tally.failed,
            degraded: row.tally.degraded(),
            circuit_open: row.tally.circuit_open,
            bulkhead_full: row.tally.bulkhead_full,
            peak_in_flight: row.peak,
            p50_ms: row.latencies.percentile(50).map(millis),
            p95_ms: row.latencies.percentile(95).map(millis),
        });
        rows.collect()
    }

    pub(super) fn alerts_outcome(&self) -> Vec<AlertOutcome> {
        let all = self.alerts.raised().iter().map(|alert| AlertOutcome {
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

/// A number as files show it.
pub(super) fn thousandths(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
