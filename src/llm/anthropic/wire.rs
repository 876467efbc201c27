//! Writes the requests of the Messages API.

use super::conversation::{history_rules, instructions, turns};
use super::parameters::MessageParameters;
use crate::llm::ChatRequest;
use crate::llm::client::json::RequestBody;
use crate::llm::client::kept_fields::FieldOrigin;
use crate::llm::history::normalized;

/// Marks the end of a prefix that the next request repeats: the provider caches everything up to
/// here.
const CACHED: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The body of a request.
///
/// # Errors
/// Our own requests cause none; the signature is serde_json's.
pub(super) fn body(
    to: FieldOrigin<'_>,
    request: &ChatRequest,
    parameters: &MessageParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 60).sum();
    let schema = request.form.contract().map_or(0, |contract| contract.schema().get().len() + 80);
    let room = texts + texts / 4 + schema + to.model.len() + 200;
    let mut body = RequestBody::with_room_for(room);
    body.raw(r#"{"model":"#);
    body.text(to.model);
    let history = normalized(&request.messages, &history_rules(to));
    let mut system = instructions(&history).peekable();
    let mut begin = r#","system":["#;
    while let Some(text) = system.next() {
        body.raw(std::mem::replace(&mut begin, ","));
        body.raw(r#"{"type":"text","text":"#);
        body.text(text);
        // The last one marks the cached prefix.
        body.raw(if system.peek().is_none() { CACHED } else { "" });
        body.raw(if system.peek().is_none() { "}]" } else { "}" });
    }
    body.raw(r#","messages":["#);
    for (nth, turn) in turns(&history, to).iter().enumerate() {
        body.raw(if nth == 0 { "" } else { "," });
        turn.write(&mut body)?;
    }
    body.raw("]");
    let tools = &*request.tools;
    for (nth, tool) in tools.iter().enumerate() {
        let last = nth + 1 == tools.len();
        body.raw(if nth == 0 { r#","tools":[{"name":"# } else { r#",{"name":"# });
        body.text(&tool.name);
        if !tool.description.is_empty() {
            body.raw(r#","description":"#);
            body.text(&tool.description);
        }
        body.raw(r#","input_schema":"#);
        body.value(&*tool.parameters)?;
        body.raw(if last { CACHED } else { "" });
        body.raw(if last { "}]" } else { "}" });
    }
    body.close_object_with(parameters)?;
    Ok(body.bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::super::conversation::MessageTurn;
    use super::*;
    use crate::llm::client::arbitrary::request;

    /// The same body as a tree, which serde serializes.
    #[derive(Serialize)]
    struct MessageTree<'a> {
        model: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        system: Vec<Value>,
        messages: Vec<MessageTurn<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Value>,
        #[serde(flatten)]
        parameters: &'a MessageParameters<'a>,
    }

    fn tree(
        to: FieldOrigin<'_>,
        request: &ChatRequest,
        parameters: &MessageParameters<'_>,
    ) -> String {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let history = normalized(&request.messages, &history_rules(to));
        let mut system: Vec<Value> = instructions(&history).map(text).collect();
        let tools = request.tools.iter().map(|tool| {
            let mut offered = json!({ "name": *tool.name });
            if !tool.description.is_empty() {
                offered["description"] = json!(*tool.description);
            }
            offered["input_schema"] = (*tool.parameters).clone();
            offered
        });
        let mut tools: Vec<Value> = tools.collect();
        for last in [system.last_mut(), tools.last_mut()].into_iter().flatten() {
            last["cache_control"] = json!({ "type": "ephemeral" });
        }
        let messages = turns(&history, to);
        let tree = MessageTree { model: to.model, system, messages, tools, parameters };
        serde_json::to_string(&tree).expect("JSON")
    }

    proptest! {
        #[test]
        fn a_body_is_what_serde_json_writes_of_its_tree(
            (request, tuning) in request(),
            model in "[a-z\"\\\\]{0,9}",
            stream in any::<bool>(),
        ) {
            let to = FieldOrigin { host: "h", model: &model };
            let parameters =
                MessageParameters::of(&tuning, &request.form, stream, Default::default());
            let body = body(to, &request, &parameters).expect("JSON");
            let expected = tree(to, &request, &parameters);
            prop_assert_eq!(String::from_utf8(body).expect("UTF-8"), expected);
        }
    }
}
