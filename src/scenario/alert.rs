//! When a person is alerted while a run goes on (source `003`, checklist: "Alerts").

use serde::{Deserialize, Serialize};

/// Thresholds of one scenario, the same for each of its tools; `None`: never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AlertLimits {
    /// Breaker openings of a tool within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_opens_per_minute: Option<u32>,
    /// Share of a tool's judged attempts of the last minute that failed, from 0 to 1; rejections
    /// are not mixed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Milliseconds: the 95th percentile of a tool's latest calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
}
