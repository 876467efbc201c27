//! What endpoints refuse: a request goes without a parameter once its endpoint has refused it.
//!
//! No model is known by its name. A refusal (HTTP 400 or 422) that names a parameter which may be
//! left out is remembered for endpoint and model, and the next attempt goes without it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::Endpoint;

/// A parameter that a request can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// `temperature`.
    Temperature = 1,
    /// The token limit by its first name, `max_tokens`; without it, it goes by its other name.
    MaxTokens = 1 << 1,
    /// `reasoning_effort`, or `effort` within `output_config`.
    ReasoningEffort = 1 << 2,
    /// `response_format` with a schema.
    JsonSchema = 1 << 3,
    /// `response_format` as any object.
    JsonObject = 1 << 4,
    /// `stream_options`.
    StreamOptions = 1 << 5,
    /// `parallel_tool_calls`.
    ParallelToolCalls = 1 << 6,
    /// `output_config` with a schema.
    OutputConfig = 1 << 7,
}

impl Parameter {
    const ALL: [Self; 8] = [
        Self::Temperature,
        Self::MaxTokens,
        Self::ReasoningEffort,
        Self::JsonSchema,
        Self::JsonObject,
        Self::StreamOptions,
        Self::ParallelToolCalls,
        Self::OutputConfig,
    ];

    /// Its name in facts.
    fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::MaxTokens => "max_tokens",
            Self::ReasoningEffort => "reasoning_effort",
            Self::JsonSchema | Self::JsonObject => "response_format",
            Self::StreamOptions => "stream_options",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::OutputConfig => "output_config",
        }
    }

    /// What servers call it in a refusal, in lower case.
    fn called(self) -> &'static [&'static str] {
        match self {
            Self::Temperature => &["temperature"],
            Self::MaxTokens => &["max_tokens", "max_completion_tokens"],
            Self::ReasoningEffort => &["reasoning_effort", "effort", "support thinking"],
            Self::JsonSchema | Self::JsonObject => &[
                "response_format",
                "response format",
                "json_schema",
                "json_object",
                "json mode",
                "response mime type",
            ],
            Self::StreamOptions => &["stream_options", "include_usage"],
            Self::ParallelToolCalls => &["parallel_tool_calls"],
            Self::OutputConfig => {
                &["output_config", "output_format", "output format", "structured outputs"]
            }
        }
    }

    /// What is done about its refusal.
    fn remedy(self) -> String {
        match self {
            Self::MaxTokens => "the token limit goes by its other name".to_owned(),
            Self::JsonSchema => "JSON is requested without a schema".to_owned(),
            Self::JsonObject | Self::OutputConfig => {
                "JSON is requested by the prompt alone".to_owned()
            }
            _ => format!("{} is left out", self.name()),
        }
    }
}

/// Words of a refusal that says that a parameter is not taken at all, whatever its value.
const UNKNOWN: [&str; 8] = [
    "unsupported",
    "not supported",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "instead",
];

/// A set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ParameterSet(u16);

impl ParameterSet {
    pub(super) fn has(self, parameter: Parameter) -> bool {
        self.0 & parameter as u16 != 0
    }

    pub(super) fn add_if(&mut self, is_in: bool, parameter: Parameter) {
        if is_in {
            self.0 |= parameter as u16;
        }
    }

    /// Those of both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of this set alone.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn iter(self) -> impl Iterator<Item = Parameter> {
        Parameter::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// Their names in facts.
    pub(super) fn names(self) -> Vec<String> {
        self.iter().map(|one| one.name().to_owned()).collect()
    }

    /// What is done about their refusal, as a sentence.
    pub(super) fn remedies(self) -> String {
        let remedies: Vec<String> = self.iter().map(Parameter::remedy).collect();
        format!("From now on {}.", remedies.join(", "))
    }

    /// Those that a refusal names: by `param`, the field that says which, else in its text.
    pub(super) fn named_in(param: Option<&str>, text: &str) -> Self {
        let text = text.to_lowercase();
        let param = param.and_then(|param| param.split(['.', '[']).next());
        let by_field = Self::of(|one| one.called().iter().any(|name| Some(*name) == param));
        let named = if by_field.is_empty() {
            Self::of(|one| one.called().iter().any(|name| stands_in(&text, name)))
        } else {
            by_field
        };
        // A limit that is too high for the model would be too high by any name.
        let mut limit = Self::default();
        limit.add_if(!UNKNOWN.iter().any(|word| text.contains(word)), Parameter::MaxTokens);
        named.without(limit)
    }

    fn of(is_in: impl Fn(Parameter) -> bool) -> Self {
        let mut set = Self::default();
        for one in Parameter::ALL {
            set.add_if(is_in(one), one);
        }
        set
    }
}

/// Whether a text contains a name as a whole word. `output_config.effort` counts as the effort alone.
fn stands_in(text: &str, name: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).unwrap_or_default();
        let is_word = !before.is_some_and(within) && !after.chars().next().is_some_and(within);
        is_word && !(name == "output_config" && after.starts_with(".effort"))
    })
}

/// What the endpoints of this program have refused, for each endpoint and model. A clone shares it.
#[derive(Clone, Debug, Default)]
pub struct Adaptations {
    refused: Arc<Mutex<BTreeMap<(String, String), RefusedParameters>>>,
}

impl Adaptations {
    /// What this endpoint has refused of its model.
    pub(super) fn of(&self, endpoint: &Endpoint) -> RefusedParameters {
        let key = (endpoint.host().to_owned(), endpoint.model().value.clone());
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(key).or_default().clone()
    }
}

/// What one endpoint has refused of one model. A clone shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedParameters(Arc<AtomicU16>);

impl RefusedParameters {
    /// The parameters that requests go without at this moment.
    pub(super) fn now(&self) -> ParameterSet {
        ParameterSet(self.0.load(Ordering::Relaxed))
    }

    /// Adds what has been refused.
    pub(super) fn add(&self, more: ParameterSet) {
        self.0.fetch_or(more.0, Ordering::Relaxed);
    }
}
