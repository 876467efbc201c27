//! The parameters of a request besides the conversation and the tools, in the form that the
//! endpoint accepts.

use std::sync::LazyLock;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::llm::adaptation::{Parameter, ParameterSet};
use crate::llm::{JsonMode, ReplyContract, ReplyForm, Tuning};

/// The names of the token limit: servers accept either, some both.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct ChatParameters<'a> {
    tuning: &'a Tuning,
    format: Option<ResponseFormat<'a>>,
    stream: bool,
    refused: ParameterSet,
    /// The optional parameters among them, which a retry can omit.
    pub(super) sent: ParameterSet,
}

impl<'a> ChatParameters<'a> {
    /// The parameters for a reply of this form, without those in `refused`.
    pub(super) fn of(
        tuning: &'a Tuning,
        form: &'a ReplyForm,
        stream: bool,
        refused: ParameterSet,
    ) -> Self {
        let format = ResponseFormat::of(form, tuning.json, refused);
        let extra = |key| tuning.has_extra(key);
        let mut sent = ParameterSet::default();
        sent.insert_if(
            tuning.temperature.is_some() || extra("temperature"),
            Parameter::Temperature,
        );
        let limited = tuning.max_tokens.is_some() || LIMITS.into_iter().any(extra);
        sent.insert_if(limited, Parameter::MaxTokens);
        let effort = tuning.reasoning_effort.is_some() || extra("reasoning_effort");
        sent.insert_if(effort, Parameter::ReasoningEffort);
        sent.insert_if(stream || extra("stream_options"), Parameter::StreamOptions);
        sent.insert_if(extra("parallel_tool_calls"), Parameter::ParallelToolCalls);
        // A format that the user has fixed is sent, whatever the endpoint refuses.
        if tuning.json.is_none() && !extra("response_format") {
            let by_schema = matches!(format, Some(ResponseFormat::Schema(_)));
            sent.insert_if(by_schema, Parameter::JsonSchema);
            sent.insert_if(format.is_some() && !by_schema, Parameter::JsonObject);
        }
        Self { tuning, format, stream, refused, sent: sent.without(refused) }
    }

    /// The name under which a key is sent; `None` if it is omitted.
    fn name_of(&self, key: &'a str) -> Option<&'a str> {
        let parameter = match key {
            "temperature" => Parameter::Temperature,
            "reasoning_effort" => Parameter::ReasoningEffort,
            "stream_options" => Parameter::StreamOptions,
            "parallel_tool_calls" => Parameter::ParallelToolCalls,
            "max_tokens" | "max_completion_tokens" => {
                let other = LIMITS.into_iter().find(|name| *name != key);
                return if self.refused.has(Parameter::MaxTokens) { other } else { Some(key) };
            }
            _ => return Some(key),
        };
        (!self.refused.has(parameter)).then_some(key)
    }
}

impl Serialize for ChatParameters<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tuning = self.tuning;
        let mut map = to.serialize_map(None)?;
        macro_rules! own {
            ($key:expr, $value:expr) => {
                if let (Some(value), false) = ($value, tuning.has_extra($key)) {
                    if let Some(name) = self.name_of($key) {
                        map.serialize_entry(name, &value)?;
                    }
                }
            };
        }
        own!("temperature", tuning.temperature);
        let limited = LIMITS.into_iter().any(|name| tuning.has_extra(name));
        own!("max_tokens", tuning.max_tokens.filter(|_| !limited));
        own!("reasoning_effort", tuning.reasoning_effort.as_deref());
        own!("response_format", self.format.as_ref());
        own!("stream", self.stream.then_some(true));
        own!("stream_options", self.stream.then_some(StreamOptions { include_usage: true }));
        for (key, value) in tuning.extra() {
            if let Some(name) = self.name_of(key) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// How JSON is requested.
#[derive(Debug)]
enum ResponseFormat<'a> {
    Object,
    Schema(&'a ReplyContract),
}

impl<'a> ResponseFormat<'a> {
    /// The strictest format that the form has, the user allows, and the endpoint has not refused.
    fn of(form: &'a ReplyForm, fixed: Option<JsonMode>, refused: ParameterSet) -> Option<Self> {
        let takes = |parameter| fixed.is_some() || !refused.has(parameter);
        let highest = fixed.unwrap_or(JsonMode::JsonSchema);
        match form.contract() {
            Some(contract) if highest >= JsonMode::JsonSchema && takes(Parameter::JsonSchema) => {
                Some(Self::Schema(contract))
            }
            _ => {
                (form.is_json() && highest >= JsonMode::JsonObject && takes(Parameter::JsonObject))
                    .then_some(Self::Object)
            }
        }
    }
}

/// The format of a request for any object, written once.
static OBJECT: LazyLock<Box<RawValue>> =
    LazyLock::new(|| written(&serde_json::json!({ "type": "json_object" })));

/// The format of a request for an object of this contract.
fn format_of(contract: &ReplyContract) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Format<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        json_schema: Schema<'a>,
    }
    #[derive(Serialize)]
    struct Schema<'a> {
        name: &'a str,
        strict: bool,
        schema: &'a RawValue,
    }
    let (name, strict, schema) = (contract.name, contract.strict, contract.schema());
    written(&Format { kind: "json_schema", json_schema: Schema { name, strict, schema } })
}

fn written(format: &impl Serialize) -> Box<RawValue> {
    to_raw_value(format).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl Serialize for ResponseFormat<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object => OBJECT.serialize(to),
            Self::Schema(contract) => contract.chat_format(|| format_of(contract)).serialize(to),
        }
    }
}
