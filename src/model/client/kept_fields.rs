//! Fields that a server adds to its messages and calls, such as `reasoning_content`,
//! `reasoning_details` or a `thought_signature`. Some servers refuse a conversation that lacks them.
//! Nothing here knows what they mean: they are stored with the reply, and sent back as they came with
//! the same message, to the same model at the same host only.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Client;
use super::fields::{Fields, IgnoredFields};
use crate::log::event::ChatMessage;
use crate::model::Conversation;

/// The most bytes of the fields of one reply that are kept.
pub const FIELDS_CAP: usize = 256 << 10;

/// The note on a reply whose fields exceed the cap.
const ABOVE_CAP: &str = "unknown fields above 256 KiB";

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldPlace {
    /// In a message of the model.
    Message,
    Call,
    /// In the `function` of a call.
    Function,
}

impl FieldPlace {
    /// The fields that a request has of its own, and those that the API only sends.
    fn own_fields(self) -> &'static [&'static str] {
        match self {
            Self::Message => &[
                "role",
                "content",
                "tool_calls",
                "tool_call_id",
                "function_call",
                "refusal",
                "annotations",
                "audio",
            ],
            Self::Call => &["index", "id", "type", "function"],
            Self::Function => &["name", "arguments"],
        }
    }

    fn keeps(self, name: &str) -> bool {
        !self.own_fields().contains(&name)
    }
}

/// The fields to keep of a message, a call or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KeptFields(Map<String, Value>);

impl KeptFields {
    /// The fields to keep of an object. A field that is `null`, or that serde_json cannot hold, is not kept.
    pub(crate) fn of(place: FieldPlace, fields: &Fields<'_>) -> Self {
        let kept = fields.iter().filter(|(name, _)| place.keeps(name));
        let kept = kept.filter_map(|(name, value)| {
            let value: Value = serde_json::from_str(value.get()).ok()?;
            (!value.is_null()).then(|| (name.to_owned(), value))
        });
        Self(kept.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the fields of the next part of a stream: strings are joined, lists merged by `index`,
    /// otherwise the later value counts.
    pub(crate) fn add_part(&mut self, part: Self) {
        merge(&mut self.0, part.0);
    }

    /// Replaces fields by those of a whole message.
    pub(crate) fn replace(&mut self, whole: Self) {
        self.0.extend(whole.0);
    }
}

fn merge(fields: &mut Map<String, Value>, part: Map<String, Value>) {
    for (name, value) in part {
        match (fields.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if is_text(&name) => {
                text.push_str(&more);
            }
            (Some(Value::Array(items)), Value::Array(more)) => {
                for item in more {
                    merge_item(items, item);
                }
            }
            (_, value) => {
                fields.insert(name, value);
            }
        }
    }
}

/// Whether a string arrives in pieces. These names are repeated with each piece.
fn is_text(name: &str) -> bool {
    !matches!(name, "id" | "type" | "format" | "index" | "name" | "role" | "status")
}

/// Adds an item to the item with its `index`, unless their `type` or `id` differs.
fn merge_item(items: &mut Vec<Value>, item: Value) {
    let continues = |one: &Value| {
        let differs = |name| match (one.get(name), item.get(name)) {
            (Some(Value::Null), _) | (_, Some(Value::Null)) => false,
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        let index = item.get("index").filter(|index| index.is_number());
        index.is_some() && one.get("index") == index && !differs("type") && !differs("id")
    };
    match (items.iter().rposition(continues), item) {
        (Some(at), Value::Object(part)) => {
            if let Some(Value::Object(fields)) = items.get_mut(at) {
                merge(fields, part);
            }
        }
        (_, item) => items.push(item),
    }
}

/// The fields of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KeptCall {
    /// Those next to its `function`.
    pub(crate) call: KeptFields,
    pub(crate) function: KeptFields,
}

impl KeptCall {
    pub(crate) fn is_empty(&self) -> bool {
        self.call.is_empty() && self.function.is_empty()
    }

    /// Adds the fields of the next part of a stream.
    pub(crate) fn add_part(&mut self, part: Self) {
        self.call.add_part(part.call);
        self.function.add_part(part.function);
    }
}

/// The model that sent fields, and gets them back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldOrigin<'a> {
    pub(crate) host: &'a str,
    pub(crate) model: &'a str,
}

impl FieldOrigin<'_> {
    /// Whether these blocks came from this model at this host.
    fn has_sent(self, blocks: &Map<String, Value>) -> bool {
        let is = |name: &str, text: &str| blocks.get(name).and_then(Value::as_str) == Some(text);
        is("host", self.host) && is("model", self.model)
    }
}

/// The blocks of a message of the Messages API, if this model at this host sent them. Logs of version 0.1
/// have no origin; runs of that time had one model.
pub(crate) fn content_to_return<'a>(
    message: &'a ChatMessage,
    to: FieldOrigin<'_>,
) -> Option<&'a Vec<Value>> {
    match message.blocks.as_deref()? {
        Value::Array(content) => Some(content),
        Value::Object(blocks) if to.has_sent(blocks) => blocks.get("content")?.as_array(),
        _ => None,
    }
}

impl Client {
    /// The model that requests go to.
    pub(crate) fn field_origin(&self) -> FieldOrigin<'_> {
        FieldOrigin { host: self.endpoint.host(), model: &self.endpoint.model().value }
    }

    /// The blocks of a reply of the Messages API as they are stored with it (`Reply::blocks`), without the
    /// key.
    pub(crate) fn kept_content(&self, mut content: Value) -> Arc<Value> {
        self.data_without_the_key(&mut content);
        let FieldOrigin { host, model } = self.field_origin();
        Arc::new(json!({ "host": host, "model": model, "content": content }))
    }

    /// The fields of a reply as they are stored with it (`Reply::blocks`), without the key; `None`: there are
    /// none, or they are larger than [`FIELDS_CAP`], which is noted among the ignored ones.
    pub(crate) fn kept_blocks(
        &self,
        message: KeptFields,
        calls: Vec<KeptCall>,
        ignored: &mut IgnoredFields,
    ) -> Option<Arc<Value>> {
        let in_calls = calls.iter().any(|call| !call.is_empty());
        if message.is_empty() && !in_calls {
            return None;
        }
        let FieldOrigin { host, model } = self.field_origin();
        let mut blocks = json!({ "host": host, "model": model });
        let mut add = |name: &str, mut value: Value| {
            self.data_without_the_key(&mut value);
            blocks[name] = value;
        };
        if !message.is_empty() {
            add("message", message.0.into());
        }
        if in_calls {
            let calls = calls.into_iter().map(|KeptCall { call, function }| {
                let mut fields = call.0;
                if !function.is_empty() {
                    fields.insert("function".to_owned(), function.0.into());
                }
                Value::Object(fields)
            });
            add("calls", calls.collect());
        }
        if blocks.to_string().len() > FIELDS_CAP {
            ignored.add(ABOVE_CAP);
            return None;
        }
        Some(Arc::new(blocks))
    }
}

/// The fields of an earlier reply that are sent back with it.
#[derive(Clone, Copy)]
pub(crate) struct FieldsToReturn<'a> {
    /// As [`Client::kept_blocks`] has stored them; `None`: there are none for this model.
    blocks: Option<&'a Map<String, Value>>,
    refused: &'a BTreeSet<String>,
}

impl<'a> FieldsToReturn<'a> {
    /// Those of a message for this model, but for those that it has refused.
    pub(crate) fn of(
        message: &'a ChatMessage,
        to: FieldOrigin<'_>,
        refused: &'a BTreeSet<String>,
    ) -> Self {
        let blocks = message.blocks.as_deref().and_then(Value::as_object);
        Self { blocks: blocks.filter(|blocks| to.has_sent(blocks)), refused }
    }

    pub(crate) fn of_message(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let fields = self.blocks.and_then(|blocks| blocks.get("message"));
        self.fields(FieldPlace::Message, fields)
    }

    /// The fields of a call, by its place among the calls.
    pub(crate) fn of_call(self, nth: usize) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.fields(FieldPlace::Call, self.call(nth))
    }

    /// The fields in the `function` of a call.
    pub(crate) fn of_function(self, nth: usize) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let function = self.call(nth).and_then(|call| call.get("function"));
        self.fields(FieldPlace::Function, function)
    }

    fn call(self, nth: usize) -> Option<&'a Value> {
        self.blocks.and_then(|blocks| blocks.get("calls")?.get(nth))
    }

    /// The fields to send; a log from elsewhere cannot replace fields of our own.
    fn fields(
        self,
        place: FieldPlace,
        fields: Option<&'a Value>,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let fields = fields.and_then(Value::as_object).into_iter().flatten();
        let fields = fields.map(|(name, value)| (&**name, value));
        fields.filter(move |(name, value)| {
            place.keeps(name) && !value.is_null() && !self.refused.contains(*name)
        })
    }
}

/// The names of all fields that a conversation returns to a model.
pub(crate) fn returned_names(
    history: &Conversation,
    to: FieldOrigin<'_>,
    refused: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for message in history.iter().filter(|message| message.blocks.is_some()) {
        let fields = FieldsToReturn::of(message, to, refused);
        let calls = (0..message.tool_calls.len())
            .flat_map(|nth| fields.of_call(nth).chain(fields.of_function(nth)));
        names.extend(fields.of_message().chain(calls).map(|(name, _)| name.to_owned()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &Value) -> KeptFields {
        let text = json.to_string();
        let fields = serde_json::from_str(&text).expect("an object");
        KeptFields::of(FieldPlace::Message, &fields)
    }

    #[test]
    fn what_is_known_is_not_kept() {
        let message = json!({
            "role": "assistant", "content": "a", "tool_calls": [], "function_call": { "name": "x" },
            "refusal": "no", "annotations": [{}], "audio": { "id": 1 }, "reasoning": null,
            "reasoning_content": "", "context": { "citations": [] },
        });
        let kept = fields(&message);
        let expected = json!({ "context": { "citations": [] }, "reasoning_content": "" });
        assert_eq!(Value::from(kept.0), expected);
    }

    #[test]
    fn parts_are_merged_by_their_kind() {
        let table = [
            // DeepSeek, Kimi, vLLM
            (
                vec![
                    json!({ "reasoning_content": "I must " }),
                    json!({ "reasoning_content": "look." }),
                    json!({ "reasoning_content": null }),
                ],
                json!({ "reasoning_content": "I must look." }),
            ),
            // OpenRouter
            (
                vec![
                    json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "I ", "format": "f", "index": 0 }] }),
                    json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "look", "format": "f", "index": 0 }] }),
                    json!({ "reasoning_details": [{ "type": "reasoning.text", "signature": "s1", "format": "f", "index": 0 }] }),
                    json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x", "id": "c", "index": 0 }] }),
                    json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "again", "index": 1 }, "odd"] }),
                ],
                json!({ "reasoning_details": [
                    { "type": "reasoning.text", "text": "I look", "format": "f", "index": 0, "signature": "s1" },
                    { "type": "reasoning.encrypted", "data": "x", "id": "c", "index": 0 },
                    { "type": "reasoning.text", "text": "again", "index": 1 },
                    "odd",
                ] }),
            ),
            // Gemini: the later object counts as a whole.
            (
                vec![
                    json!({ "extra_content": { "google": { "thought": true } }, "n": 1, "kind": "a" }),
                    json!({ "extra_content": { "google": { "thought_signature": "x" } }, "n": 2 }),
                ],
                json!({ "extra_content": { "google": { "thought_signature": "x" } }, "n": 2, "kind": "a" }),
            ),
            // A value that changes its type.
            (
                vec![json!({ "a": "x" }), json!({ "a": [1] }), json!({ "a": [2] })],
                json!({ "a": [1, 2] }),
            ),
        ];
        for (parts, expected) in table {
            let mut kept = KeptFields::default();
            for part in &parts {
                kept.add_part(fields(part));
            }
            assert_eq!(Value::from(kept.0), expected);
        }
    }
}
