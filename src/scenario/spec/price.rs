//! The price of a model per token.

use serde::{Deserialize, Serialize};

/// The price of one model: US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct Price {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the reply, reasoning included.
    pub output: f64,
    /// Tokens of the prompt that are read from the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens of the prompt that are written to the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// A price without separate prices of cached tokens.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached: None, cache_write: None }
    }
}
