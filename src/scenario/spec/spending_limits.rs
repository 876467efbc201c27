//! What a run may spend.

use serde::{Deserialize, Serialize};

/// The spending limits of a run; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SpendingLimits {
    /// Tokens, of prompts and replies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// US dollars, estimated from prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

impl SpendingLimits {
    /// Whether no limit is set.
    pub fn is_none(&self) -> bool {
        self.max_total_tokens.is_none() && self.max_cost_usd.is_none()
    }
}
