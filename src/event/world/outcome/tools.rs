//! The gateway's part of an outcome: fallbacks, counts of each tool, alerts (cascading failures
//! source document).

use serde::Serialize;

use super::fields::{Replaced, thousandths};
use crate::base::name::ToolName;
use crate::event::id::millis;
use crate::event::kind::FallbackKind;
use crate::event::world::World;
use crate::event::world::alerts::AlertKind;
use crate::event::world::projection::Projection;

/// Counts of one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
}

/// An alert that was raised.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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

impl World {
    pub(super) fn replaced(&self) -> Vec<Replaced> {
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

    pub(super) fn tools_outcome(&self) -> Vec<ToolOutcome> {
        if self.tools.rows().len() < 2 {
            return Vec::new();
        }
        let rows = self.tools.rows().iter().map(|row| ToolOutcome {
            tool: row.name().clone(),
            calls: row.tally.calls,
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
