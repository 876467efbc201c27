//! The names by which the conventions for traces of agents call what is known of a span: GenAI of OpenTelemetry,
//! OpenInference, and those of OpenLLMetry, Logfire and older versions, which are read only. One table, for what is
//! received (`watch/`) and what is sent ([`spans`](super::spans)); the page on traces has it too.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::messages::KeyValue;
use crate::log::facts::observed::SpanRole;

/// What is known of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// What it is, in the words of OpenInference.
    Kind,
    /// What it is, in the words of GenAI.
    Operation,
    Agent,
    /// The agent that handed over, or consults.
    AgentBefore,
    /// The model that was called.
    Model,
    /// The model that has answered.
    ReportedModel,
    /// The provider of the model.
    Provider,
    Tool,
    /// The name of any span, as its author gave it.
    Entity,
    /// Tokens of the prompt.
    TokensIn,
    /// Those of them that were read from the provider's cache.
    TokensCached,
    /// Those of them that were written to the provider's cache.
    TokensWritten,
    /// Tokens of the reply.
    TokensOut,
    /// US dollars.
    Cost,
    /// Why the reply ended.
    Finish,
    /// What failed.
    Error,
    /// The conversation of several runs.
    Conversation,
    Workflow,
    Input,
    Output,
    /// The form of what it was given, where that is JSON.
    InputType,
    /// The form of its result, where that is JSON.
    OutputType,
    /// The messages of a prompt.
    InputMessages,
    /// The messages of a reply.
    OutputMessages,
    /// The instructions of a prompt, where its messages leave them out.
    Instructions,
    /// The tools that a model is offered.
    Tools,
    /// The arguments of a tool.
    Arguments,
    /// The result of a tool.
    Result,
    /// Whether the span has not ended: it was reported at its start.
    Pending,
}

/// A row of the table.
pub struct AttributeRow {
    /// What the attributes say.
    pub known: Known,
    /// The same in words, for the documents.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documents are made by a test"))]
    pub about: &'static str,
    /// The attributes that are sent, all with the value.
    pub sent: &'static [&'static str],
    /// The attributes that are read; the first one that is there counts.
    pub read: &'static [&'static str],
    /// Whether the value is a text of the run, which is sent only on request.
    pub is_text: bool,
}

const fn row(
    known: Known,
    about: &'static str,
    sent: &'static [&'static str],
    read: &'static [&'static str],
) -> AttributeRow {
    AttributeRow { known, about, sent, read, is_text: false }
}

const fn text(
    known: Known,
    about: &'static str,
    sent: &'static [&'static str],
    read: &'static [&'static str],
) -> AttributeRow {
    AttributeRow { known, about, sent, read, is_text: true }
}

/// The table.
pub const ATTRIBUTES: [AttributeRow; 29] = [
    row(
        Known::Kind,
        "what the span is: `CHAIN`, `AGENT`, `LLM`, `TOOL`",
        &["openinference.span.kind"],
        &[
            "openinference.span.kind",
            "gen_ai.operation.name",
            "traceloop.span.kind",
            "llm.request.type",
            "ai.operationId",
            "langsmith.span.kind",
            "langfuse.observation.type",
            "mlflow.spanType",
        ],
    ),
    row(
        Known::Operation,
        "the same: `invoke_workflow`, `invoke_agent`, `chat`, `execute_tool`",
        &["gen_ai.operation.name"],
        &[],
    ),
    row(
        Known::Agent,
        "the agent, or the role of a seat",
        &["gen_ai.agent.name", "agent.name", "graph.node.id"],
        &["gen_ai.agent.name", "agent.name", "agent_name", "graph.node.id"],
    ),
    row(
        Known::AgentBefore,
        "the agent that handed over to it, or consults it",
        &["graph.node.parent_id"],
        &[],
    ),
    row(
        Known::Conversation,
        "the session that the run answers a message of: the id of its first run",
        &["gen_ai.conversation.id", "session.id"],
        &["gen_ai.conversation.id", "session.id", "langfuse.session.id", "thread_id"],
    ),
    row(
        Known::Model,
        "the model that was called",
        &["gen_ai.request.model", "llm.model_name"],
        &[
            "gen_ai.request.model",
            "llm.model_name",
            "model_name",
            "llm.response.model",
            "ai.model.id",
        ],
    ),
    row(
        Known::ReportedModel,
        "the model that answered, as the endpoint says",
        &["gen_ai.response.model"],
        &["gen_ai.response.model", "ai.response.model"],
    ),
    row(
        Known::Provider,
        "the provider, or the host of the endpoint",
        &["gen_ai.provider.name"],
        &["gen_ai.provider.name", "gen_ai.system", "llm.provider", "ai.model.provider"],
    ),
    row(
        Known::Tool,
        "the tool",
        &["gen_ai.tool.name", "tool.name"],
        &["gen_ai.tool.name", "tool.name", "tool_name", "ai.toolCall.name"],
    ),
    row(
        Known::Entity,
        "the name of any span, as its author gave it",
        &[],
        &["traceloop.entity.name", "ai.telemetry.functionId"],
    ),
    row(
        Known::TokensIn,
        "tokens of the prompt",
        &["gen_ai.usage.input_tokens", "llm.token_count.prompt"],
        &[
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "llm.usage.prompt_tokens",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
        ],
    ),
    row(
        Known::TokensCached,
        "those of them from the provider's cache",
        &["gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"],
        &[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ],
    ),
    row(
        Known::TokensWritten,
        "those of them that were written to the provider's cache",
        &["gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"],
        &[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.details.cache_write_tokens",
            "llm.token_count.prompt_details.cache_write",
        ],
    ),
    row(
        Known::TokensOut,
        "tokens of the reply",
        &["gen_ai.usage.output_tokens", "llm.token_count.completion"],
        &[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "llm.usage.completion_tokens",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ],
    ),
    row(
        Known::Cost,
        "US dollars, estimated or as reported",
        &["llm.cost.total"],
        &[
            "gen_ai.usage.cost",
            "llm.cost.total",
            "operation.cost",
            "gen_ai.usage.total_cost",
            "langfuse.observation.cost_details.total",
        ],
    ),
    row(
        Known::Finish,
        "why the reply ended",
        &["gen_ai.response.finish_reasons"],
        &["gen_ai.response.finish_reasons", "ai.response.finishReason"],
    ),
    row(Known::Error, "the class of the failure, or the stop reason", &["error.type"], &[]),
    row(Known::Workflow, "the scenario", &["gen_ai.workflow.name"], &[]),
    row(Known::Pending, "the span has only begun", &[], &["roundtable.pending", "rt.pending"]),
    text(
        Known::Input,
        "what it was given: a goal or a message, a request, arguments, the messages of a prompt",
        &["input.value"],
        &[
            "gen_ai.tool.call.arguments",
            "tool_arguments",
            "ai.toolCall.args",
            "gcp.vertex.agent.tool_call_args",
            "input.value",
            "gen_ai.input.messages",
            "gen_ai.prompt",
            "traceloop.entity.input",
            "ai.prompt",
            "langfuse.observation.input",
            "mlflow.spanInputs",
            "prompt",
        ],
    ),
    text(
        Known::Output,
        "its answer, reply or result",
        &["output.value"],
        &[
            "gen_ai.tool.call.result",
            "tool_response",
            "ai.toolCall.result",
            "gcp.vertex.agent.tool_response",
            "output.value",
            "gen_ai.output.messages",
            "final_result",
            "gen_ai.completion",
            "traceloop.entity.output",
            "ai.response.text",
            "langfuse.observation.output",
            "mlflow.spanOutputs",
            "all_messages_events",
        ],
    ),
    row(
        Known::InputType,
        "`application/json`: what it was given is JSON",
        &["input.mime_type"],
        &[],
    ),
    row(Known::OutputType, "`application/json`: its result is JSON", &["output.mime_type"], &[]),
    text(
        Known::InputMessages,
        "the messages of the prompt",
        &["gen_ai.input.messages"],
        &[
            "gen_ai.input.messages",
            "llm.input_messages",
            "gen_ai.prompt",
            "ai.prompt.messages",
            "gcp.vertex.agent.llm_request",
            "request_data",
            "input.value",
            "traceloop.entity.input",
            "langfuse.observation.input",
            "mlflow.spanInputs",
        ],
    ),
    text(
        Known::OutputMessages,
        "the message of the reply",
        &["gen_ai.output.messages"],
        &[
            "gen_ai.output.messages",
            "llm.output_messages",
            "gen_ai.completion",
            "ai.response",
            "gcp.vertex.agent.llm_response",
            "response_data",
            "output.value",
            "traceloop.entity.output",
            "langfuse.observation.output",
            "mlflow.spanOutputs",
        ],
    ),
    text(
        Known::Instructions,
        "the instructions of the prompt, where its messages leave them out",
        &[],
        &["gen_ai.system_instructions"],
    ),
    text(
        Known::Tools,
        "the tools that the model is offered",
        &[],
        &[
            "gen_ai.tool.definitions",
            "llm.tools",
            "llm.request.functions",
            "ai.prompt.tools",
            "gen_ai.request.tools",
        ],
    ),
    text(Known::Arguments, "the arguments of a tool", &["gen_ai.tool.call.arguments"], &[]),
    text(Known::Result, "the result of a tool", &["gen_ai.tool.call.result"], &[]),
];

/// The row of what is known.
pub fn row_of(known: Known) -> &'static AttributeRow {
    let found = ATTRIBUTES.iter().find(|row| row.known == known);
    // A test has each.
    found.unwrap_or(&ATTRIBUTES[0])
}

#[cfg(test)]
/// The attributes of roundtable's own, for what no convention has, and what each says.
pub const OWN: [(&str, &str); 15] = [
    ("roundtable.run", "the run"),
    ("roundtable.pattern", "its pattern"),
    ("roundtable.result", "its decision, level or route; of a round its decision"),
    ("roundtable.stop_reason", "why it ended, without the part after the colon"),
    ("roundtable.round", "the number of a round"),
    ("roundtable.attempts", "the attempts of a call"),
    ("roundtable.degraded", "`true`: a fallback took the place of the result"),
    ("roundtable.denied", "`true`: the call was not approved, or the source is not allowed"),
    ("roundtable.lost", "`true`: the end of the span is not known"),
    ("roundtable.tool", "of an event: the tool"),
    ("roundtable.state", "of an event: the new state of a breaker, or an answer"),
    ("roundtable.cause", "of an event: why"),
    ("roundtable.person", "of an event: who is asked"),
    ("roundtable.text", "of an event: the question, the answer, a note (a text)"),
    ("roundtable.wait_ms", "of an event: the wait before a retry, in milliseconds"),
];

/// The values of [`Known::Kind`] in lower case, and the role that each means.
pub const ROLES: [(&str, SpanRole); 41] = [
    ("agent", SpanRole::Agent),
    ("invoke_agent", SpanRole::Agent),
    ("create_agent", SpanRole::Agent),
    ("llm", SpanRole::Model),
    ("chat", SpanRole::Model),
    ("text_completion", SpanRole::Model),
    ("completion", SpanRole::Model),
    ("generate_content", SpanRole::Model),
    ("generation", SpanRole::Model),
    ("chat_model", SpanRole::Model),
    ("ai.generatetext.dogenerate", SpanRole::Model),
    ("ai.streamtext.dostream", SpanRole::Model),
    ("ai.generateobject.dogenerate", SpanRole::Model),
    ("ai.streamobject.dostream", SpanRole::Model),
    ("embedding", SpanRole::Embedding),
    ("embeddings", SpanRole::Embedding),
    ("ai.embed.doembed", SpanRole::Embedding),
    ("ai.embedmany.doembed", SpanRole::Embedding),
    ("tool", SpanRole::Tool),
    ("execute_tool", SpanRole::Tool),
    ("ai.toolcall", SpanRole::Tool),
    ("retriever", SpanRole::Retriever),
    ("retrieval", SpanRole::Retriever),
    ("reranker", SpanRole::Retriever),
    ("rerank", SpanRole::Retriever),
    ("ai.rerank", SpanRole::Retriever),
    ("guardrail", SpanRole::Guardrail),
    ("chain", SpanRole::Step),
    ("span", SpanRole::Step),
    ("prompt", SpanRole::Step),
    ("parser", SpanRole::Step),
    ("workflow", SpanRole::Step),
    ("invoke_workflow", SpanRole::Step),
    ("task", SpanRole::Step),
    ("ai.generatetext", SpanRole::Step),
    ("ai.streamtext", SpanRole::Step),
    ("ai.generateobject", SpanRole::Step),
    ("ai.streamobject", SpanRole::Step),
    ("ai.embed", SpanRole::Step),
    ("ai.embedmany", SpanRole::Step),
    ("evaluator", SpanRole::Step),
];

/// The words that are sent for a role: of OpenInference, and of GenAI if it has one.
pub fn words_of(role: SpanRole) -> (&'static str, Option<&'static str>) {
    match role {
        SpanRole::Agent | SpanRole::Node => ("AGENT", Some("invoke_agent")),
        SpanRole::Model => ("LLM", Some("chat")),
        SpanRole::Tool => ("TOOL", Some("execute_tool")),
        SpanRole::Embedding => ("EMBEDDING", Some("embeddings")),
        SpanRole::Retriever => ("RETRIEVER", Some("retrieval")),
        SpanRole::Guardrail => ("GUARDRAIL", None),
        SpanRole::Step | SpanRole::Handoff => ("CHAIN", None),
    }
}

/// The attributes of a span that was received, as texts.
#[derive(Default)]
pub struct Attributes(BTreeMap<String, String>);

impl Attributes {
    /// Those of a message.
    pub fn of(attributes: &[KeyValue]) -> Self {
        let texts = attributes
            .iter()
            .filter_map(|it| Some((it.key.clone(), plain(&it.value.clone()?.into_json()))));
        Self(texts.collect())
    }

    /// Those of an object of JSON.
    pub fn of_json(attributes: &Map<String, Value>) -> Self {
        Self(attributes.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds an attribute, unless it is there.
    pub fn add(&mut self, name: &str, value: &Value) {
        self.0.entry(name.to_owned()).or_insert_with(|| plain(value));
    }

    /// Adds attributes that are missing.
    pub fn add_all(&mut self, others: Self) {
        for (name, text) in others.0 {
            self.0.entry(name).or_insert(text);
        }
    }

    /// What is known by the attributes of a row; `None`: nothing, or an empty text.
    pub fn first(&self, known: Known) -> Option<&str> {
        let mut found = row_of(known).read.iter().filter_map(|name| self.0.get(*name));
        found.find(|text| !text.is_empty()).map(String::as_str)
    }

    /// The same as a whole number. Some programs send counts as doubles.
    pub fn count(&self, known: Known) -> Option<u64> {
        let number = self.number(known)?;
        (number.fract() == 0.0).then_some(number as u64)
    }

    /// The same as a number of at least 0.
    pub fn number(&self, known: Known) -> Option<f64> {
        let number: f64 = self.first(known)?.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    }

    /// The same as JSON. If attributes begin with the name (`llm.input_messages.0.message.role`), it is the object or list
    /// that they form.
    pub fn value(&self, known: Known) -> Option<Value> {
        row_of(known).read.iter().find_map(|name| match self.get(name) {
            Some("") => None,
            Some(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
            None => self.nested(name),
        })
    }

    fn nested(&self, name: &str) -> Option<Value> {
        let prefix = format!("{name}.");
        let mut root = Map::new();
        for (key, text) in
            self.0.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix))
        {
            let mut at = &mut root;
            let path = key.get(prefix.len()..).unwrap_or_default();
            let (path, last) =
                path.rsplit_once('.').map_or(("", path), |(path, last)| (path, last));
            for part in path.split('.').filter(|part| !part.is_empty()).take(MAX_PATH) {
                let inner = at.entry(part).or_insert_with(|| Value::Object(Map::new()));
                // `a.b` is a text, so `a.b.c` has no place.
                let Value::Object(inner) = inner else { return None };
                at = inner;
            }
            at.insert(last.to_owned(), text.clone().into());
        }
        (!root.is_empty()).then(|| with_lists(Value::Object(root)))
    }
}

/// Maximum number of levels in the name of an attribute.
const MAX_PATH: usize = 16;

/// Replaces each object by a list if all of its keys are numbers.
fn with_lists(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let numbers: Option<Vec<u32>> = fields.keys().map(|name| name.parse().ok()).collect();
    let inner = fields.into_iter().map(|(name, value)| (name, with_lists(value)));
    match numbers {
        Some(numbers) => {
            let mut items: Vec<(u32, Value)> =
                numbers.into_iter().zip(inner.map(|(_, value)| value)).collect();
            items.sort_by_key(|(number, _)| *number);
            items.into_iter().map(|(_, value)| value).collect()
        }
        None => Value::Object(inner.collect()),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_one_row() {
        let mut sent: Vec<&str> = ATTRIBUTES.iter().flat_map(|row| row.sent).copied().collect();
        sent.extend(OWN.iter().map(|(name, _)| *name));
        let count = sent.len();
        sent.sort_unstable();
        sent.dedup();
        assert_eq!(sent.len(), count);
        for row in &ATTRIBUTES {
            assert_eq!(row_of(row.known).about, row.about);
        }
    }
}
