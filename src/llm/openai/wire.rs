//! Writes the requests of the chat completions API.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::parameters::ChatParameters;
use crate::event::kind::ChatMessage;
use crate::llm::ChatRequest;
use crate::llm::client::json::RequestBody;
use crate::llm::client::kept_fields::{FieldOrigin, FieldsToReturn};
use crate::llm::history::{HistoryRules, normalized};

/// The history that servers with this API accept. The API limits ids to 40 characters, and chat
/// templates (Gemma, Mistral) want the roles to alternate.
fn history_rules(to: FieldOrigin<'_>) -> HistoryRules<'_> {
    HistoryRules {
        to,
        alternates: true,
        accepts_id: |id| (1..=40).contains(&id.len()),
        sends_as_it_came: |_, _| false,
    }
}

/// The arguments of an earlier call. llama.cpp, vLLM and Ollama reject a whole conversation if some
/// arguments are not a JSON object, so invalid ones are wrapped in an object.
fn sendable(arguments: &str) -> Cow<'_, str> {
    let begins = arguments.trim_start();
    if begins.is_empty() {
        return Cow::Borrowed("{}");
    }
    if begins.starts_with('{') && serde_json::from_str::<IgnoredAny>(begins).is_ok() {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(serde_json::json!({ "unreadable": arguments }).to_string())
}

/// The body of a request.
///
/// # Errors
/// Our own requests cause none; the signature is serde_json's.
pub(super) fn body(
    to: FieldOrigin<'_>,
    refused_fields: &BTreeSet<String>,
    request: &ChatRequest,
    parameters: &ChatParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 40).sum();
    let schema = request.form.contract().map_or(0, |contract| contract.schema().get().len() + 100);
    // Texts that are JSON grow by one backslash for each quote.
    let room = texts + texts / 4 + schema + to.model.len() + 160;
    let mut body = RequestBody::with_room_for(room);
    body.raw(r#"{"model":"#);
    body.text(to.model);
    body.raw(r#","messages":["#);
    let history = normalized(&request.messages, &history_rules(to));
    for (nth, message) in history.iter().enumerate() {
        if nth > 0 {
            body.raw(",");
        }
        write_message(&mut body, message, FieldsToReturn::of(message, to, refused_fields))?;
    }
    body.raw("]");
    for (nth, tool) in request.tools.iter().enumerate() {
        body.raw(if nth == 0 { r#","tools":["# } else { "," });
        body.raw(r#"{"type":"function","function":"#);
        body.value(tool)?;
        body.raw("}");
    }
    if !request.tools.is_empty() {
        body.raw("]");
    }
    body.close_object_with(parameters)?;
    Ok(body.bytes())
}

/// Writes a message in the API's format, which differs from the log's, with the fields that go back
/// to the model.
fn write_message(
    body: &mut RequestBody,
    message: &ChatMessage,
    kept: FieldsToReturn<'_>,
) -> Result<(), serde_json::Error> {
    body.raw(r#"{"role":""#);
    body.raw(message.role.word());
    // A message with calls but without text has the content `null`.
    if message.content.is_empty() && !message.tool_calls.is_empty() {
        body.raw(r#"","content":null"#);
    } else {
        body.raw(r#"","content":"#);
        body.text(&message.content);
    }
    for (nth, call) in message.tool_calls.iter().enumerate() {
        body.raw(if nth == 0 { r#","tool_calls":["# } else { "," });
        body.raw(r#"{"id":"#);
        body.text(&call.id);
        body.raw(r#","type":"function","function":{"name":"#);
        body.text(&call.name);
        body.raw(r#","arguments":"#);
        body.text(&sendable(&call.arguments));
        write_fields(body, kept.of_function(nth))?;
        body.raw("}");
        write_fields(body, kept.of_call(nth))?;
        body.raw("}");
    }
    if !message.tool_calls.is_empty() {
        body.raw("]");
    }
    if let Some(id) = &message.tool_call_id {
        body.raw(r#","tool_call_id":"#);
        body.text(id);
    }
    write_fields(body, kept.of_message())?;
    body.raw("}");
    Ok(())
}

fn write_fields<'a>(
    body: &mut RequestBody,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Result<(), serde_json::Error> {
    for (name, value) in fields {
        body.raw(",");
        body.text(name);
        body.raw(":");
        body.value(value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::event::kind::{MessageRole, ToolCall};
    use crate::llm::client::arbitrary::request;

    /// The same body, built as a tree and written by serde_json.
    fn tree(to: FieldOrigin<'_>, request: &ChatRequest, parameters: &ChatParameters<'_>) -> String {
        let call = |call: &ToolCall| {
            let arguments = sendable(&call.arguments);
            let function = json!({ "name": *call.name, "arguments": arguments });
            json!({ "id": *call.id, "type": "function", "function": function })
        };
        let message = |message: &ChatMessage| {
            let silent = message.content.is_empty() && !message.tool_calls.is_empty();
            let content = if silent { Value::Null } else { Value::from(&*message.content) };
            let mut said = json!({ "role": message.role, "content": content });
            if !message.tool_calls.is_empty() {
                said["tool_calls"] = message.tool_calls.iter().map(call).collect();
            }
            if let Some(id) = &message.tool_call_id {
                said["tool_call_id"] = Value::from(&**id);
            }
            said
        };
        let history = normalized(&request.messages, &history_rules(to));
        let messages: Vec<Value> = history.iter().map(message).collect();
        let mut body = json!({ "model": to.model, "messages": messages });
        if !request.tools.is_empty() {
            let tool = |tool| json!({ "type": "function", "function": tool });
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        let parameters = serde_json::to_value(parameters).expect("JSON");
        for (name, value) in parameters.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body.to_string()
    }

    #[test]
    fn roles_are_called_what_the_log_calls_them() {
        for role in
            [MessageRole::System, MessageRole::User, MessageRole::Assistant, MessageRole::Tool]
        {
            assert_eq!(json!(role), json!(role.word()));
        }
    }

    proptest! {
        #[test]
        fn a_body_is_what_serde_json_writes_of_its_tree(
            (request, tuning) in request(),
            model in "[a-z\"\\\\]{0,9}",
            stream in any::<bool>(),
        ) {
            let parameters =
                ChatParameters::of(&tuning, &request.form, stream, Default::default());
            let to = FieldOrigin { host: "models.example", model: &model };
            let body = body(to, &BTreeSet::new(), &request, &parameters).expect("JSON");
            let expected = tree(to, &request, &parameters);
            prop_assert_eq!(String::from_utf8(body).expect("UTF-8"), expected);
        }
    }
}
