//! When the operator is alerted during a run (cascading failures source document, checklist:
//! "Alerts").

use serde::{Deserialize, Serialize};

/// Thresholds of one scenario, the same for each of its tools. `None`: no alert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct AlertLimits {
    /// Breaker openings of a tool within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_opens_per_minute: Option<u32>,
    /// Share of a tool's attempts of the last minute that failed, from 0 to 1. Only attempts that
    /// the breaker judges count; rejections do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// 95th percentile of the duration of a tool's latest calls, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
}
