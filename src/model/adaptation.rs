//! Adapts requests to endpoints: after an endpoint refused a parameter, requests omit it.
//!
//! There is no list of model names. A refusal (HTTP 400 or 422) that names an optional parameter is
//! remembered for the endpoint and model, and the next attempt omits that parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::Endpoint;
use crate::base::visible::visible_within;

/// A parameter that a request can omit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// `temperature`.
    Temperature = 1,
    /// The token limit as `max_tokens`; without it the limit is sent under its other name.
    MaxTokens = 1 << 1,
    /// `reasoning_effort`, or `effort` within `output_config`.
    ReasoningEffort = 1 << 2,
    /// `response_format` with a schema.
    JsonSchema = 1 << 3,
    /// `response_format` for any JSON object.
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

    /// Its name in events.
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

    /// The names that servers use for it in a refusal, in lower case.
    fn refusal_names(self) -> &'static [&'static str] {
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

    /// What changes after its refusal, as part of a sentence.
    fn remedy(self) -> String {
        match self {
            Self::MaxTokens => "the token limit uses its other name".to_owned(),
            Self::JsonSchema => "JSON is requested without a schema".to_owned(),
            Self::JsonObject | Self::OutputConfig => {
                "JSON is requested in the prompt only".to_owned()
            }
            _ => format!("{} is omitted", self.name()),
        }
    }
}

/// Words of a refusal that rejects a parameter as such, not its value.
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

/// Words of a refusal that asks for a field instead of refusing it.
const WANTED: [&str; 5] =
    ["missing", "is required", "must be passed", "must be provided", "must be included"];

/// The most characters of a field's name in an event.
const FIELD_CHARS: usize = 64;

/// A set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParameterSet(u16);

impl ParameterSet {
    pub(crate) fn has(self, parameter: Parameter) -> bool {
        self.0 & parameter as u16 != 0
    }

    pub(super) fn insert_if(&mut self, is_in: bool, parameter: Parameter) {
        if is_in {
            self.0 |= parameter as u16;
        }
    }

    /// The parameters in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The parameters of this set that are not in the other.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn iter(self) -> impl Iterator<Item = Parameter> {
        Parameter::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// The parameters that a refusal names: in its `param` field, else in its text.
    pub(super) fn named_in(param: Option<&str>, text: &str) -> Self {
        let text = text.to_lowercase();
        let param = param.and_then(|param| param.split(['.', '[']).next());
        let by_field =
            Self::collect_where(|one| one.refusal_names().iter().any(|name| Some(*name) == param));
        let named = if by_field.is_empty() {
            Self::collect_where(|one| {
                one.refusal_names().iter().any(|name| contains_word(&text, name))
            })
        } else {
            by_field
        };
        // A limit that is too high for the model stays too high under the other name.
        let mut limit = Self::default();
        limit.insert_if(!UNKNOWN.iter().any(|word| text.contains(word)), Parameter::MaxTokens);
        named.without(limit)
    }

    fn collect_where(is_in: impl Fn(Parameter) -> bool) -> Self {
        let mut set = Self::default();
        for one in Parameter::ALL {
            set.insert_if(is_in(one), one);
        }
        set
    }
}

/// The optional parts of a request: what a retry can omit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalParts {
    pub(crate) parameters: ParameterSet,
    /// Names of fields of earlier replies that go back with them.
    pub(crate) fields: BTreeSet<String>,
}

impl From<ParameterSet> for OptionalParts {
    fn from(parameters: ParameterSet) -> Self {
        Self { parameters, fields: BTreeSet::new() }
    }
}

impl OptionalParts {
    pub(crate) fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.fields.is_empty()
    }

    /// Those of them that a refusal names: in its `param` field, else in its text. One that asks for
    /// a field does not refuse it.
    pub(super) fn named_in(&self, param: Option<&str>, text: &str) -> Self {
        let parameters = ParameterSet::named_in(param, text).and(self.parameters);
        let text = text.to_lowercase();
        let is_asked_for = WANTED.iter().any(|words| text.contains(words));
        let is_in_path = |name: &str| {
            param.is_some_and(|param| param.split(['.', '[', ']']).any(|part| part == name))
        };
        // A name that is an everyday word (`context`) counts where it is quoted, or called unknown.
        let says_unknown = UNKNOWN.iter().any(|word| text.contains(word));
        let is_meant = |name: &str| {
            let quoted =
                ['\'', '"', '`'].iter().any(|mark| text.contains(&format!("{mark}{name}{mark}")));
            name.contains('_') || says_unknown || quoted
        };
        let is_named = |name: &&String| {
            let lower = name.to_lowercase();
            is_in_path(name) || (contains_word(&text, &lower) && is_meant(&lower))
        };
        let fields = self.fields.iter().filter(|_| !is_asked_for).filter(is_named).cloned();
        Self { parameters, fields: fields.collect() }
    }

    /// Their names in events.
    pub(crate) fn names(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|name| visible_within(name, FIELD_CHARS));
        self.parameters.iter().map(|one| one.name().to_owned()).chain(fields).collect()
    }

    /// What changes after the refusals, as a sentence.
    pub(super) fn remedies(&self) -> String {
        let fields = self.fields.iter();
        let fields = fields.map(|name| format!("{} is omitted", visible_within(name, FIELD_CHARS)));
        let remedies: Vec<String> =
            self.parameters.iter().map(Parameter::remedy).chain(fields).collect();
        format!("From now on {}.", remedies.join(", "))
    }
}

/// Whether a text contains a name as a whole word. `output_config.effort` counts as the effort
/// only.
fn contains_word(text: &str, name: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).unwrap_or_default();
        let is_word = !before.is_some_and(within) && !after.chars().next().is_some_and(within);
        is_word && !(name == "output_config" && after.starts_with(".effort"))
    })
}

/// The parameters that were refused in this process, for each endpoint and model. Clones share the
/// state.
#[derive(Clone, Debug, Default)]
pub struct Adaptations {
    refused: Arc<Mutex<BTreeMap<(String, String), RefusedParameters>>>,
}

impl Adaptations {
    /// The refused parameters of this endpoint and its model.
    pub(super) fn for_endpoint(&self, endpoint: &Endpoint) -> RefusedParameters {
        let key = (endpoint.host().to_owned(), endpoint.model().value.clone());
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(key).or_default().clone()
    }
}

/// What one endpoint refused for one model. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedParameters {
    parameters: Arc<AtomicU16>,
    fields: Arc<Mutex<BTreeSet<String>>>,
}

impl RefusedParameters {
    /// The parameters that requests omit now.
    pub(super) fn refused_now(&self) -> ParameterSet {
        ParameterSet(self.parameters.load(Ordering::Relaxed))
    }

    /// The fields of earlier replies that requests omit now.
    pub(super) fn refused_fields(&self) -> BTreeSet<String> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds refused parts.
    pub(crate) fn add(&self, more: &OptionalParts) {
        self.parameters.fetch_or(more.parameters.0, Ordering::Relaxed);
        if !more.fields.is_empty() {
            let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            fields.extend(more.fields.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_refused_field_in_text() {
        let named = |field: &str, param: Option<&str>, text: &str| {
            let sent = OptionalParts { fields: [field.to_owned()].into(), ..Default::default() };
            sent.named_in(param, text).fields.len() == 1
        };
        for (field, param, text, is_meant) in [
            ("context", None, "This model's maximum context length is 8192 tokens.", false),
            ("context", None, "Unknown field: context", true),
            ("context", None, "Extra inputs in 'context'", true),
            ("context", Some("messages[1].context"), "Bad request", true),
            ("reasoning_content", None, "reasoning_content: bad value", true),
            ("reasoning_content", None, "reasoning_content is required", false),
        ] {
            assert_eq!(named(field, param, text), is_meant, "{field}: {text}");
        }
    }
}
