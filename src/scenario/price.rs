//! What a model costs by the token.

use serde::{Deserialize, Serialize};

/// The price of one model: US dollars for a million tokens. [`Price::cost`] says what a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the reply, those of its reasoning included.
    pub output: f64,
    /// Tokens of the prompt that are read from the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens of the prompt that are written to the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// A price that does not tell cached tokens apart.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached: None, cache_write: None }
    }
}
