//! How a model is asked, beyond what it is asked: what `[model]` says of its requests.

use serde_json::{Map, Value};

/// Tokens of a reply at most where nothing is set: what the Messages API is sent, which needs a bound, and
/// what a call of any other reserves of a budget.
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
    /// How JSON is requested, whatever the endpoint takes; `None`: the best form that it takes.
    pub json: Option<JsonRung>,
    /// More keys of the request's body. They replace ours, but for [`RESERVED`].
    pub extra: Map<String, Value>,
}

/// A way of requesting JSON. A rung includes the ones below it: a reply without a contract has no
/// schema, and is requested as an object at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonRung {
    /// The prompt says it, nothing else does.
    Text,
    /// As any JSON object.
    JsonObject,
    /// By the contract's JSON schema.
    JsonSchema,
}

/// Keys of a body that [`Tuning::extra`] may not replace: they say what is asked of whom.
pub const RESERVED: [&str; 5] = ["messages", "model", "stream", "system", "tools"];

impl Tuning {
    /// The keys of [`Tuning::extra`] that are sent, with their values.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &Value)> {
        let extra = self.extra.iter().map(|(key, value)| (key.as_str(), value));
        extra.filter(|(key, _)| !RESERVED.contains(key))
    }

    /// Whether [`Tuning::extra`] has this key.
    pub fn has_extra(&self, key: &str) -> bool {
        !RESERVED.contains(&key) && self.extra.contains_key(key)
    }
}
