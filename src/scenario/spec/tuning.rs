//! Settings of a model's requests, from `[model]`.

use serde_json::{Map, Value};

/// Default limit of a reply's tokens: the Messages API requires one and gets this, and a call to
/// any other API reserves it from a token budget.
pub const REPLY_TOKENS: u32 = 4_096;

/// Settings of a model's requests. By default nothing is set, and nothing is sent: the provider's
/// own defaults apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of one reply. The Messages API needs one: 4,096 where nothing is set.
    pub max_tokens: Option<u32>,
    /// How much a model reasons, in the provider's own words (`low`, `medium`, `high`).
    pub reasoning_effort: Option<String>,
    /// How JSON is requested; `None`: the strictest way that the endpoint supports.
    pub json: Option<JsonMode>,
    /// More keys of the request's body. They replace ours, except `messages`, `model`, `stream`,
    /// `system` and `tools`.
    pub extra: Map<String, Value>,
}

/// A way of requesting JSON. Each way includes the weaker ones: a reply without a contract has no
/// schema and is requested as an object at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonMode {
    /// Only in the prompt.
    Text,
    /// As any JSON object.
    JsonObject,
    /// With the contract's JSON schema.
    JsonSchema,
}

/// Keys of a body that [`Tuning::extra`] may not replace: they hold the request itself.
pub const RESERVED: [&str; 5] = ["messages", "model", "stream", "system", "tools"];

impl Tuning {
    /// The keys of [`Tuning::extra`] that are sent, with their values.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &Value)> {
        let extra = self.extra.iter().map(|(key, value)| (key.as_str(), value));
        extra.filter(|(key, _)| !RESERVED.contains(key))
    }

    /// Whether [`Tuning::extra`] has this key.
    pub fn has_extra(&self, key: &str) -> bool {
        !self.extra.is_empty() && !RESERVED.contains(&key) && self.extra.contains_key(key)
    }
}
