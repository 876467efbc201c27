//! The attributes of a span that is sent, and the forms that the conventions have for prompts, replies and what
//! another program reports.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::conventions::{Known, row_of, words_of};
use super::messages::{AnyKind, AnyValue, AnyValues, KeyValue};
use crate::log::event::question::Subject;
use crate::log::event::{ChatMessage, MessageRole, QuestionAnswered, Reply, StopReason};
use crate::log::facts::observed::{SpanAbout, SpanRole};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

/// The attributes of a span that is sent.
#[derive(Default)]
pub(super) struct AttributeList {
    pub(super) list: Vec<KeyValue>,
    pub(super) has_texts: bool,
}

impl AttributeList {
    pub(super) fn add(&mut self, name: &str, value: impl Into<Value>) {
        let value = any_value(value.into());
        self.list.push(KeyValue { key: name.to_owned(), value: Some(value) });
    }

    /// Adds it by each name of its row; a text only where texts are sent.
    pub(super) fn known(&mut self, known: Known, value: impl Into<Value>) {
        let row = row_of(known);
        if row.is_text && !self.has_texts {
            return;
        }
        let value = value.into();
        let kind = match known {
            Known::Input => Some(Known::InputType),
            Known::Output => Some(Known::OutputType),
            _ => None,
        };
        if let Some(kind) = kind.filter(|_| value.as_str().is_some_and(is_json)) {
            self.known(kind, "application/json");
        }
        for name in row.sent {
            self.add(name, value.clone());
        }
    }
}

/// Whether a text is an object or an array of JSON, which viewers show as such.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn any_value(value: Value) -> AnyValue {
    let kind = match value {
        Value::Bool(is) => AnyKind::Bool(is),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => AnyKind::Int(whole),
            None => AnyKind::Double(number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => {
            AnyKind::Array(AnyValues { values: values.into_iter().map(any_value).collect() })
        }
        Value::String(text) => AnyKind::String(text),
        other => AnyKind::String(other.to_string()),
    };
    AnyValue { value: Some(kind) }
}

/// A stop reason without the part after its colon, which may be a text of a model.
pub(super) fn word_of(reason: &StopReason) -> String {
    let text = reason.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

pub(super) fn word_of_answer(answered: &QuestionAnswered) -> Value {
    let value = serde_json::to_value(&answered.answer).unwrap_or_default();
    value["answer"].clone()
}

/// The name that GenAI has for the provider of an endpoint; else its host.
pub(super) fn provider_of(host: &str) -> &str {
    let known = [
        ("openai.azure.com", "azure.ai.openai"),
        ("openai.com", "openai"),
        ("anthropic.com", "anthropic"),
        ("googleapis.com", "gcp.gen_ai"),
        ("mistral.ai", "mistral_ai"),
        ("groq.com", "groq"),
        ("deepseek.com", "deepseek"),
        ("x.ai", "x_ai"),
        ("cohere.ai", "cohere"),
        ("perplexity.ai", "perplexity"),
    ];
    let is_of = |domain: &str| {
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    known.iter().find(|(domain, _)| is_of(domain)).map_or(host, |(_, name)| name)
}

/// The prompt of a call in the form of GenAI (`gen_ai.input.messages`).
pub(super) fn prompt_json(messages: &[ChatMessage]) -> String {
    messages.iter().map(message_json).collect::<Value>().to_string()
}

/// A reply in the form of GenAI (`gen_ai.output.messages`), which has to say why it ended.
pub(super) fn reply_json(reply: &Reply) -> String {
    let mut message = message_json(&ChatMessage::from_reply(reply));
    message["finish_reason"] = finish_word(reply).into();
    Value::from(vec![message]).to_string()
}

fn message_json(message: &ChatMessage) -> Value {
    let mut parts = Vec::new();
    match (&message.tool_call_id, message.role) {
        (Some(id), MessageRole::Tool) => parts
            .push(json!({ "type": "tool_call_response", "id": id, "response": message.content })),
        _ if !message.content.is_empty() => {
            parts.push(json!({ "type": "text", "content": message.content }));
        }
        _ => {}
    }
    parts.extend(message.tool_calls.iter().map(|call| {
        let arguments = arguments_of(call);
        json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
    }));
    json!({ "role": message.role.word(), "parts": parts })
}

/// The arguments of a call; those that are no JSON as a text.
fn arguments_of(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(&*call.arguments))
}

/// Why a reply ended, in the words of GenAI.
fn finish_word(reply: &Reply) -> &'static str {
    match reply.end {
        ReplyEnd::Stop if !reply.tool_calls.is_empty() => "tool_call",
        ReplyEnd::Filtered | ReplyEnd::Refused => "content_filter",
        ReplyEnd::Failed => "error",
        end => end.word(),
    }
}

/// What an agent said last: the text of a reply and what it calls.
pub(super) fn said_text(reply: &Reply) -> String {
    let calls = reply.tool_calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
    let text = Some(reply.text.to_string()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// What a question asks, as one text.
pub(super) fn question_text(subject: &Subject) -> String {
    match subject {
        Subject::ToolCall { tool, args, .. } | Subject::InDoubt { tool, args } => {
            format!("{tool} {args}")
        }
        Subject::Agent { text, .. }
        | Subject::Input { text, .. }
        | Subject::Permission { text, .. } => text.to_string(),
        Subject::Turn { agent, request, .. } => format!("{agent}: {request}"),
        Subject::Seat { role, .. } => role.to_string(),
        Subject::Decision { stances, .. } => stances.to_string(),
        Subject::Budget(reached) => serde_json::to_string(reached).unwrap_or_default(),
        Subject::Tools { tool, tools, .. } => {
            let notes = tools.iter().map(|note| format!("{}: {}", note.name, note.text));
            std::iter::once(tool.to_string()).chain(notes).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Adds what another program has said of its span; returns its name, in the form of the conventions.
pub(super) fn describe_observed(about: &SpanAbout, to: &mut AttributeList) -> String {
    let (kind, operation) = words_of(about.role);
    to.known(Known::Kind, kind);
    operation.into_iter().for_each(|word| to.known(Known::Operation, word));
    // The node of a graph is named like the agent that it is.
    let own = (kind == "AGENT" && !about.name.is_empty()).then_some(&about.name);
    let answered = about.asked_model.as_ref().and(about.model.as_ref());
    for (known, text) in [
        (Known::Agent, about.agent.as_ref().or(own)),
        (Known::Model, about.asked_model.as_ref().or(about.model.as_ref())),
        (Known::ReportedModel, answered),
        (Known::Provider, about.provider.as_ref()),
        (Known::Conversation, about.thread.as_ref()),
    ] {
        text.into_iter().for_each(|text| to.known(known, &**text));
    }
    if about.role == SpanRole::Tool {
        to.known(Known::Tool, &*about.name);
        for (known, text) in [(Known::Arguments, &about.input), (Known::Result, &about.output)] {
            text.iter().for_each(|text| to.known(known, &**text));
        }
    }
    let counts = [
        (Known::TokensIn, about.tokens_in),
        (Known::TokensCached, about.tokens_cached),
        (Known::TokensWritten, about.tokens_written),
        (Known::TokensOut, about.tokens_out),
    ];
    for (known, count) in counts {
        count.into_iter().for_each(|count| to.known(known, count));
    }
    about.cost_usd.into_iter().for_each(|cost| to.known(Known::Cost, cost));
    for (known, text) in [(Known::Input, &about.input), (Known::Output, &about.output)] {
        text.iter().for_each(|text| to.known(known, &**text));
    }
    match operation {
        Some(word) if about.name.is_empty() => word.to_owned(),
        // Some of these programs have named it so; nodes of graphs are read as they are.
        Some(word) if about.role != SpanRole::Node && !about.name.starts_with(word) => {
            format!("{word} {}", about.name)
        }
        None if about.name.is_empty() => "span".to_owned(),
        _ => about.name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_domain() {
        for (host, provider) in [
            ("api.openai.com", "openai"),
            ("openai.com", "openai"),
            ("notopenai.com", "notopenai.com"),
            ("mine.openai.azure.com", "azure.ai.openai"),
            ("api.x.ai", "x_ai"),
            ("mix.ai", "mix.ai"),
            ("generativelanguage.googleapis.com", "gcp.gen_ai"),
            ("openai.com.evil.example", "openai.com.evil.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(provider_of(host), provider, "{host}");
        }
    }
}
