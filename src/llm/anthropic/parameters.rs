//! The parameters of a request besides the conversation and the tools.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::schema::without_bounds;
use crate::llm::adaptation::{Parameter, ParameterSet};
use crate::llm::{JsonMode, ReplyForm, Tuning};

/// The default token limit of a reply: the API requires one.
pub const DEFAULT_MAX_TOKENS: u32 = crate::scenario::spec::tuning::REPLY_TOKENS;

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct MessageParameters<'a> {
    tuning: &'a Tuning,
    temperature: Option<f64>,
    output: OutputConfig<'a>,
    stream: bool,
    refused: ParameterSet,
    /// The optional parameters among them, which a retry can omit.
    pub(super) sent: ParameterSet,
}

/// The requested effort and format of the reply.
#[derive(Debug, Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Debug, Serialize)]
struct OutputFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a RawValue,
}

impl<'a> MessageParameters<'a> {
    /// The parameters for a reply of this form, without those in `refused`.
    pub(super) fn of(
        tuning: &'a Tuning,
        form: &'a ReplyForm,
        stream: bool,
        refused: ParameterSet,
    ) -> Self {
        let temperature = tuning.temperature.filter(|_| !refused.has(Parameter::Temperature));
        let effort = tuning.reasoning_effort.as_deref();
        let effort = effort.filter(|_| !refused.has(Parameter::ReasoningEffort));
        let by_schema = match tuning.json {
            None => !refused.has(Parameter::OutputConfig),
            Some(rung) => rung == JsonMode::JsonSchema,
        };
        // The API enforces every schema strictly, so a schema that is not strict cannot be sent.
        let contract = form.contract().filter(|contract| by_schema && contract.strict);
        let format = contract.map(|contract| OutputFormat {
            kind: "json_schema",
            schema: contract.schema_without_bounds(without_bounds),
        });
        let mut sent = ParameterSet::default();
        let warm = tuning.has_extra("temperature") && !refused.has(Parameter::Temperature);
        sent.insert_if(temperature.is_some() || warm, Parameter::Temperature);
        // A value that the user has fixed is sent, whatever the endpoint refuses.
        if !tuning.has_extra("output_config") {
            sent.insert_if(effort.is_some(), Parameter::ReasoningEffort);
            sent.insert_if(format.is_some() && tuning.json.is_none(), Parameter::OutputConfig);
        }
        Self { tuning, temperature, output: OutputConfig { effort, format }, stream, refused, sent }
    }
}

impl Serialize for MessageParameters<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tuning = self.tuning;
        let mut map = to.serialize_map(None)?;
        if !tuning.has_extra("max_tokens") {
            let limit = tuning.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
            map.serialize_entry("max_tokens", &limit)?;
        }
        if let (Some(temperature), false) = (self.temperature, tuning.has_extra("temperature")) {
            map.serialize_entry("temperature", &temperature)?;
        }
        let output = &self.output;
        let has_output = output.effort.is_some() || output.format.is_some();
        if has_output && !tuning.has_extra("output_config") {
            map.serialize_entry("output_config", output)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        for (key, value) in tuning.extra() {
            if key != "temperature" || !self.refused.has(Parameter::Temperature) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}
