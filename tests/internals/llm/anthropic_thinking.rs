//! The Messages API over real sockets: thinking, which is signed and goes back as it came.

use std::sync::Arc;

use crate::log::event::{ChatMessage, MessageRole, ModelLabel, Reply};
use crate::model::ChatModel;
use crate::support::api::*;
use crate::support::messages::*;
use crate::support::wire::*;
use serde_json::{Value, json};

/// What the API said: thinking, hidden thinking, a text, and two calls.
fn content() -> Value {
    json!([
        { "type": "thinking", "thinking": "The user wants \"grün\" 👍.\n\nSo be it.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=" },
        { "type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3" },
        { "type": "text", "text": "I'll look." },
        { "type": "tool_use", "id": "toolu_1", "name": "research", "caller": { "type": "direct" }, "input": { "z": 1, "a": [2.5, null, "é"] } },
        { "type": "tool_use", "id": "toolu_2", "name": "billing", "input": {} },
    ])
}

/// The same as a stream.
fn stream() -> String {
    let content = content();
    let delta = |at: u32, kind: &str, field: &str, value: &str| {
        block_delta(at, &json!({ "type": kind, field: value }))
    };
    let thought = content[0]["thinking"].as_str().expect("a text");
    let (before, after) = thought.split_at(thought.find('👍').expect("it is there"));
    let mut call = content[3].clone();
    call["input"] = json!({});
    [
        message_start(),
        block_start(0, &json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, "thinking_delta", "thinking", before),
        delta(0, "thinking_delta", "thinking", after),
        delta(0, "signature_delta", "signature", content[0]["signature"].as_str().expect("one")),
        block_stop(0),
        block_start(1, &content[1]),
        block_stop(1),
        block_start(2, &json!({ "type": "text", "text": "" })),
        delta(2, "text_delta", "text", "I'll "),
        delta(2, "text_delta", "text", "look."),
        block_stop(2),
        block_start(3, &call),
        delta(3, "input_json_delta", "partial_json", "{\"z\": 1, \"a\""),
        delta(3, "input_json_delta", "partial_json", ": [2.5, null, \"é\"]}"),
        block_stop(3),
        block_start(4, &content[4]),
        block_stop(4),
        ending("tool_use"),
    ]
    .concat()
}

/// The messages sent to the same model in a conversation that continues from this reply.
async fn sent_after(reply: &Reply) -> Value {
    sent_to(reply, None).await
}

/// The same, to a model at this host; `None`: the one that sent the reply.
async fn sent_to(reply: &Reply, host: Option<&str>) -> Value {
    let mut messages =
        vec![ChatMessage::new(MessageRole::User, "Look."), ChatMessage::from_reply(reply)];
    // The log keeps it, and reads it again.
    let line = serde_json::to_string(&messages[1]).expect("a message");
    messages[1] = serde_json::from_str(&line).expect("a message");
    messages.extend(reply.tool_calls.iter().map(|call| ChatMessage::tool_result(call, "found")));
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let ModelLabel::Live { host: same, .. } = model.label() else { panic!("a live model") };
    if let Some(blocks) = &mut messages[1].blocks {
        Arc::make_mut(blocks)["host"] = json!(host.unwrap_or(&same));
    }
    let request = asking(&messages);
    let (_, asking) = answered(&server, &model, &request, closing("200 OK", MESSAGE)).await;
    asking.body["messages"].clone()
}

#[tokio::test]
async fn thinking_returns_with_call_results() {
    let body = json!({ "content": content(), "stop_reason": "tool_use" }).to_string();
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (whole, _) = answered(&server, &model, &ask(false), closing("200 OK", &body)).await;
    for reply in [whole.expect("a reply"), Api::Messages.streamed(stream()).await.expect("a reply")]
    {
        assert_eq!(&*reply.text, "I'll look.");
        let calls: Vec<Value> = reply
            .tool_calls
            .iter()
            .map(|call| serde_json::from_str(&call.arguments).expect("JSON"))
            .collect();
        assert_eq!(calls, [content()[3]["input"].clone(), json!({})]);
        let blocks = reply.blocks.as_deref().expect("the blocks");
        assert_eq!(blocks["content"].to_string(), content().to_string(), "byte for byte");
        let messages = sent_after(&reply).await;
        assert_eq!(messages[1]["role"], json!("assistant"));
        assert_eq!(messages[1]["content"].to_string(), content().to_string(), "byte for byte");
        let result =
            |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "found" });
        let results = json!([result("toolu_1"), result("toolu_2")]);
        assert_eq!(messages[2], json!({ "role": "user", "content": results }));
        assert_eq!(messages.as_array().map(Vec::len), Some(3));
    }
}

#[tokio::test]
async fn split_thinking_reads_same() {
    let stream = stream().into_bytes();
    let mut kept = Kept::new(Api::Messages).await;
    for cut in 1..stream.len() {
        let reply = kept.reply(&stream, Some(cut)).await;
        let blocks = reply.blocks.as_deref().expect("the blocks");
        assert_eq!(blocks["content"], content(), "cut at {cut}");
    }
}

/// Thinking is not part of the reply's text, and no listener gets it.
#[tokio::test]
async fn nobody_hears_the_thinking() {
    let server = Server::start().await;
    let model = anthropic(&server, true);
    let (heard, mut pieces) = Heard::new();
    let request = ask(false);
    let (reply, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(format!("{STREAM_HEAD}{}", stream())).await;
    })
    .await;
    assert!(reply.is_ok());
    drop(heard);
    let mut all = String::new();
    while let Some(piece) = pieces.recv().await {
        all.push_str(&piece);
    }
    assert_eq!(all, "I'll look.");
}

/// Blocks of another API, or of none, are not sent: the message is made of its text and calls.
#[tokio::test]
async fn omits_foreign_blocks() {
    let server = Server::start().await;
    for blocks in [
        json!([]),
        json!({ "type": "thinking" }),
        json!("thinking"),
        json!([{ "type": "thinking", "thinking": "x" }, "loose"]),
        json!([{ "kind": "thinking" }]),
        json!([{ "type": 7 }]),
        Value::Null,
    ] {
        let call = call_of("toolu_1", "research", "{}");
        let mut said = ChatMessage::assistant("I look.", [call.clone()].into());
        said.blocks = Some(Arc::new(blocks.clone()));
        let request = asking(&[
            ChatMessage::new(MessageRole::User, "Look."),
            said,
            ChatMessage::tool_result(&call, "found"),
        ]);
        let model = anthropic(&server, false);
        let (_, asking) = answered(&server, &model, &request, closing("200 OK", MESSAGE)).await;
        let made = json!([
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "toolu_1", "name": "research", "input": {} },
        ]);
        assert_eq!(asking.body["messages"][1]["content"], made, "{blocks}");
    }
    // A text without a word is refused by the API, and is left out.
    let thought = json!({ "type": "thinking", "thinking": "x", "signature": "s" });
    let mut said = ChatMessage::new(MessageRole::Assistant, "");
    said.blocks = Some(Arc::new(json!([thought, { "type": "text", "text": " " }])));
    let request = asking(&[ChatMessage::new(MessageRole::User, "Look."), said]);
    let model = anthropic(&server, false);
    let (_, sent) = answered(&server, &model, &request, closing("200 OK", MESSAGE)).await;
    assert_eq!(sent.body["messages"][1]["content"], json!([thought]));
    // Nor does another API get the blocks of this one.
    let mut said = ChatMessage::new(MessageRole::Assistant, "I look.");
    said.blocks = Some(Arc::new(content()));
    let request = asking(&[said]);
    let (_, asking) = answered(&server, &server.model(), &request, closing("200 OK", HELLO)).await;
    assert_eq!(asking.body["messages"][1], json!({ "role": "assistant", "content": "I look." }));
}

/// Signed thinking is of one model: another one gets the text and the calls.
#[tokio::test]
async fn another_model_gets_no_thinking() {
    let body = json!({ "content": content(), "stop_reason": "tool_use" }).to_string();
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", &body)).await;
    let reply = reply.expect("a reply");
    let kinds = |messages: &Value| -> Vec<String> {
        let blocks = messages[1]["content"].as_array().expect("blocks");
        blocks.iter().map(|block| block["type"].as_str().expect("a type").to_owned()).collect()
    };
    let plain = ["text", "tool_use", "tool_use"];
    assert_eq!(kinds(&sent_to(&reply, Some("other.example")).await), plain);
    let mut of_other = reply.clone();
    let blocks = of_other.blocks.as_mut().expect("blocks");
    Arc::make_mut(blocks)["model"] = json!("other");
    assert_eq!(kinds(&sent_to(&of_other, None).await), plain);
    assert_eq!(kinds(&sent_to(&reply, None).await).len(), 5);
}

/// Ids that had to be made are those of the blocks too: results are given back under them.
#[tokio::test]
async fn calls_and_blocks_share_ids() {
    let call = json!({ "type": "tool_use", "name": "a", "input": {} });
    let mut twice = call.clone();
    twice["id"] = json!("t.1");
    let content =
        json!([{ "type": "thinking", "thinking": "x", "signature": "s" }, twice, twice, call]);
    let body = json!({ "content": content }).to_string();
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", &body)).await;
    let reply = reply.expect("a reply");
    assert_eq!(told(&reply), ["t.1 a {}", "t.1_2 a {}", "call_1 a {}"]);
    let messages = sent_after(&reply).await;
    for (at, id) in ["t.1", "t.1_2", "call_1"].into_iter().enumerate() {
        assert_eq!(messages[1]["content"][at + 1]["id"], json!(id));
        assert_eq!(messages[2]["content"][at]["tool_use_id"], json!(id));
    }
}

#[tokio::test]
async fn redacts_key_in_blocks() {
    let content = json!([
        { "type": "thinking", "thinking": format!("it is {KEY}!"), "signature": "s" },
        { "type": "tool_use", "id": KEY, "name": "a", "input": { "k": [KEY], KEY: { "x": 1 } } },
    ]);
    let body = json!({ "content": content }).to_string();
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", &body)).await;
    let blocks = reply.expect("a reply").blocks.expect("the blocks");
    assert_eq!(
        blocks["content"],
        json!([
            { "type": "thinking", "thinking": "it is ***!", "signature": "s" },
            { "type": "tool_use", "id": "***", "name": "a", "input": { "k": ["***"], "***": { "x": 1 } } },
        ])
    );
    // in pieces
    let (start, end) = KEY.split_at(7);
    let thinking =
        |text: &str| block_delta(0, &json!({ "type": "thinking_delta", "thinking": text }));
    let events = message_start()
        + &block_start(0, &json!({ "type": "thinking", "thinking": "" }))
        + &thinking(start)
        + &thinking(end)
        + &ending("end_turn");
    let blocks = Api::Messages.streamed(events).await.expect("a reply").blocks.expect("the blocks");
    assert_eq!(blocks["content"], json!([{ "type": "thinking", "thinking": "***" }]));
}
