//! How a live model is asked, where the scenario says so: `[model]` but for whom it asks.

use serde_json::{Map, Value};

/// What is sent with each request beside what is asked. What is not set is not sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tuning {
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of a reply.
    pub max_tokens: Option<u32>,
    /// How much a model thinks before it answers, in the provider's word.
    pub reasoning_effort: Option<String>,
    /// How a reply in JSON is asked for; `None`: by the strictest way that the endpoint takes.
    pub json: Option<JsonRung>,
    /// Fields of the request that are sent as they stand.
    pub extra: Map<String, Value>,
}

/// A way to ask for a reply in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonRung {
    /// By a schema.
    JsonSchema,
    /// As some object.
    JsonObject,
    /// By the prompt alone.
    Text,
}

/// Fields that [`Tuning::extra`] cannot be: what is asked of whom is not its business.
pub const RESERVED: [&str; 5] = ["messages", "model", "stream", "tools", "system"];
