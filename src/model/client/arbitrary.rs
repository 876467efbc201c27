//! Arbitrary requests, for the tests of request bodies.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::log::event::kind::{ChatMessage, MessageRole, Purpose};
use crate::model::{ChatRequest, Conversation, ReplyContract, ReplyForm};
use crate::scenario::spec::Tuning;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Texts with everything that JSON escapes, JSON itself, and the empty text.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ \"\\\\{}:,a-z\u{0}-\u{1f}ü\u{1f600}]{0,40}",
        Just(json!({ "goal": "\"go\"", "facts": [1, 0.5, null], "p": "C:\\x" }).to_string()),
        Just(String::new()),
    ]
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![Just("{}".to_owned()), Just("{\"a\": 1}".to_owned()), text()];
    ("[a-z0-9_]{0,8}", "[a-zA-Z. ]{0,80}", arguments).prop_map(|(id, name, arguments)| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    })
}

fn message() -> impl Strategy<Value = ChatMessage> {
    let roles = [MessageRole::System, MessageRole::User, MessageRole::Assistant, MessageRole::Tool];
    let role = (0..roles.len()).prop_map(move |at| roles[at]);
    let kept = prop_oneof![
        4 => Just(None),
        1 => Just(Some(json!([{ "type": "thinking", "thinking": "so", "signature": "x" }]))),
        1 => Just(Some(json!([{ "type": "text", "text": " " }]))),
    ];
    let calls = prop::collection::vec(call(), 0..3);
    let id = prop::option::of("[a-z ]{0,5}");
    (role, text(), calls, id, kept).prop_map(|(role, text, calls, id, kept)| {
        let is_said = role == MessageRole::Assistant;
        ChatMessage {
            tool_calls: if is_said { calls.into() } else { Arc::default() },
            tool_call_id: id.filter(|_| role == MessageRole::Tool).map(Into::into),
            blocks: kept.filter(|_| is_said).map(Arc::new),
            ..ChatMessage::new(role, text)
        }
    })
}

fn tool() -> impl Strategy<Value = ToolOffer> {
    ("[a-z]{1,6}", text()).prop_map(|(name, description)| ToolOffer {
        description: description.into(),
        parameters: Arc::new(json!({ "type": "object", "properties": { "q\"": {} } })),
        ..ToolOffer::bare(&name)
    })
}

fn form() -> impl Strategy<Value = ReplyForm> {
    prop_oneof![
        Just(ReplyForm::Text),
        Just(ReplyForm::Object),
        any::<bool>().prop_map(|strict| {
            let number = json!({ "type": "number", "minimum": 0 });
            ReplyForm::with_contract("a_reply", strict, || {
                ReplyContract::object([("n \"1\"", number)])
            })
        }),
    ]
}

fn tuning() -> impl Strategy<Value = Tuning> {
    let extra = prop_oneof![
        Just(Map::new()),
        Just(Map::from_iter([("temperature".to_owned(), Value::from(1))])),
        Just(Map::from_iter([
            ("top_k".to_owned(), json!([1, "\n"])),
            ("model".to_owned(), json!(1))
        ])),
    ];
    let effort = prop::option::of(Just("low".to_owned()));
    (prop::option::of(0.0..2.0_f64), prop::option::of(1_u32..9), effort, extra).prop_map(
        |(temperature, max_tokens, reasoning_effort, extra)| Tuning {
            temperature,
            max_tokens,
            reasoning_effort,
            extra,
            ..Tuning::default()
        },
    )
}

/// A request and the tuning of its model.
pub(crate) fn request() -> impl Strategy<Value = (ChatRequest, Tuning)> {
    let messages = prop::collection::vec(message(), 0..6);
    let tools = prop::collection::vec(tool(), 0..3);
    (messages, tools, form(), tuning()).prop_map(|(messages, tools, form, tuning)| {
        let request = ChatRequest {
            messages: Conversation::from(Arc::from(messages)),
            tools: tools.into(),
            form,
            purpose: Purpose::Finalize,
            message: 1,
            attempt: 1,
            again: 0,
            draw: 0,
            shown: Arc::default(),
        };
        (request, tuning)
    })
}
