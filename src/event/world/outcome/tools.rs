//! The gateway's part of an outcome: fallbacks, counts of each tool, alerts (cascading failures
//! source document).

use serde::Serialize;

use super::fields::{Replaced, thousandths};
use crate::base::name::ToolName;
use crate::event::id::millis;
use crate::event::kind::{BreakerCause, FallbackKind, WindowCounts};
use crate::event::world::World;
use crate::event::world::alerts::AlertKind;
use crate::event::world::projection::Projection;
use crate::event::world::tool_row::BreakerMove;

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
    /// The latest times that the calls in its breaker's window opened it, the oldest first; absent
    /// without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<OpeningOutcome>,
}

/// An opening of a breaker because of the calls in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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

fn opening(moved: &BreakerMove) -> Option<OpeningOutcome> {
    let WindowCounts { calls, failures, slow } = moved.counted?;
    let at_ms = moved.at.0 / 1_000;
    Some(OpeningOutcome { at_ms, cause: moved.why, calls, failures, slow })
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
            opened: row.history.iter().filter_map(opening).collect(),
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
