//! The Messages API over real sockets: requests, and answers that are not streamed.

use std::time::Duration;

use crate::log::event::{ChatMessage, FailureClass, MessageRole, Usage};
use crate::model::anthropic::{BLOCKS_CAP, ProbeResult, TEXT_CAP};
use crate::model::{ChatRequest, ReplyForm};
use crate::scenario::spec::tool::ToolOffer;
use crate::scenario::spec::{JsonMode, Tuning};
use crate::support::api::*;
use crate::support::messages::*;
use crate::support::wire::*;
use serde_json::{Value, json};

fn ephemeral() -> Value {
    json!({ "type": "ephemeral" })
}

fn contract(strict: bool) -> ReplyForm {
    let schema = json!({
        "type": "object",
        "properties": { "score": { "type": "integer", "minimum": 1 } },
        "required": ["score"],
        "additionalProperties": false,
    });
    ReplyForm::with_contract("score", strict, || schema)
}

async fn sent(tuning: Tuning, request: &ChatRequest) -> Value {
    let server = Server::start().await;
    let model = tuned(&server, tuning, false);
    let (reply, asking) = answered(&server, &model, request, closing("200 OK", MESSAGE)).await;
    assert!(reply.is_ok());
    asking.body
}

#[tokio::test]
async fn what_is_set_is_sent() {
    let extra = json!({
        "thinking": { "type": "enabled", "budget_tokens": 1024 },
        "messages": [], "model": "other", "stream": true,
    });
    let tuning = Tuning {
        temperature: Some(1.0),
        max_tokens: Some(9000),
        reasoning_effort: Some("low".to_owned()),
        json: None,
        extra: extra.as_object().expect("an object").clone(),
    };
    let request = ChatRequest { form: contract(true), ..ask(false) };
    let body = sent(tuning.clone(), &request).await;
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(1.0), &json!(9000)));
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 1024 }));
    assert_eq!((&body["model"], body.get("stream")), (&json!("claude-haiku-4-5"), None));
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
    // Bounds are not taken by the API, and left to the policy.
    let format = json!({ "type": "json_schema", "schema": {
        "type": "object",
        "properties": { "score": { "type": "integer" } },
        "required": ["score"],
        "additionalProperties": false,
    } });
    assert_eq!(body["output_config"], json!({ "effort": "low", "format": format }));

    // Extra fields replace ours.
    let mut replaced = tuning;
    replaced.extra = json!({ "max_tokens": 1, "temperature": 0, "output_config": {} })
        .as_object()
        .expect("an object")
        .clone();
    let body = sent(replaced, &request).await;
    assert_eq!(
        (&body["max_tokens"], &body["temperature"], &body["output_config"]),
        (&json!(1), &json!(0), &json!({}))
    );
}

#[tokio::test]
async fn sends_schema_only_when_supported() {
    for (form, json, is_sent) in [
        (contract(true), None, true),
        (contract(true), Some(JsonMode::JsonSchema), true),
        (contract(true), Some(JsonMode::JsonObject), false),
        (contract(true), Some(JsonMode::Text), false),
        (contract(false), None, false),
        (ReplyForm::Object, None, false),
        (ReplyForm::Text, None, false),
    ] {
        let request = ChatRequest { form, ..ask(false) };
        let body = sent(Tuning { json, ..Tuning::default() }, &request).await;
        assert_eq!(body.get("output_config").is_some(), is_sent, "{:?} {json:?}", request.form);
    }
}

#[tokio::test]
async fn conversation_alternates_without_empty_texts() {
    let calls = [
        call_of("toolu_1", "research", r#"{"q": "é",  "n":1.50}"#),
        call_of("x.é 2", "rm -rf", ""),
        call_of("toolu_3", "research", "[1"),
    ];
    let mut request = asking(&[
        ChatMessage::new(MessageRole::System, "One."),
        ChatMessage::new(MessageRole::System, "  "),
        ChatMessage::new(MessageRole::System, "Two."),
        ChatMessage::new(MessageRole::User, "Go."),
        ChatMessage::new(MessageRole::User, "\n"),
        ChatMessage::new(MessageRole::User, "On."),
        ChatMessage::assistant("I ask. \n", calls[..2].into()),
        ChatMessage::new(MessageRole::User, "Well?"),
        ChatMessage::tool_result(&calls[0], "found"),
        ChatMessage::tool_result(&calls[1], ""),
        ChatMessage::assistant("", calls[2..].into()),
        ChatMessage::tool_result(&calls[2], "no"),
        ChatMessage::new(MessageRole::Assistant, ""),
        ChatMessage::new(MessageRole::User, "So?"),
    ]);
    let described = ToolOffer { description: "Looks.".into(), ..ToolOffer::bare("research") };
    request.tools = [described, ToolOffer::bare("billing")].into();
    let body = sent(Tuning::default(), &request).await;
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = |id: &str, name: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    let result = |id: &str, content: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    assert_eq!(
        body["system"],
        json!([
            { "type": "text", "text": "One." },
            { "type": "text", "text": "Two.", "cache_control": ephemeral() },
        ])
    );
    assert_eq!(
        body["messages"],
        json!([
            { "role": "user", "content": [text("Go."), text("On.")] },
            { "role": "assistant", "content": [
                text("I ask."),
                call("toolu_1", "research", json!({ "q": "é", "n": 1.50 })),
                call("b47a8faa8", "rm_-rf", json!({})),
            ] },
            { "role": "user", "content": [
                result("toolu_1", "found"),
                { "type": "tool_result", "tool_use_id": "b47a8faa8" },
                text("Well?"),
            ] },
            { "role": "assistant", "content": [
                call("toolu_3", "research", json!({ "unreadable": "[1" })),
            ] },
            { "role": "user", "content": [result("toolu_3", "no"), text("So?")] },
        ])
    );
    let schema = json!({ "type": "object", "properties": {} });
    assert_eq!(
        body["tools"],
        json!([
            { "name": "research", "description": "Looks.", "input_schema": schema },
            { "name": "billing", "input_schema": schema, "cache_control": ephemeral() },
        ])
    );
    // The API wants a user's turn first, and at least one.
    for messages in [
        &[ChatMessage::new(MessageRole::System, "One.")][..],
        &[ChatMessage::new(MessageRole::Assistant, "I began.")],
        &[],
    ] {
        let body = sent(Tuning::default(), &asking(messages)).await;
        let first = json!({ "role": "user", "content": [text("Begin.")] });
        assert_eq!(body["messages"][0], first);
    }
}

#[tokio::test]
async fn answers_of_every_kind() {
    let usage = r#""usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":40,"output_tokens_details":{"thinking_tokens":30}}"#;
    let counted = Usage {
        cached_tokens: 2000,
        cache_write_tokens: 100,
        reasoning_tokens: 30,
        ..Usage::new(2103, 40)
    };
    let no_calls: &[&str] = &[];
    for (body, text, finish, calls, usage) in [
        (
            format!(r#"{{"content":[{{"type":"text","text":"a"}},{{"type":"text","text":"b"}}],"stop_reason":"max_tokens",{usage}}}"#),
            "ab",
            Some("max_tokens"),
            no_calls,
            Some(counted),
        ),
        (
            r#"{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"a","input":{"z":1,"b":[2.5]}},{"type":"tool_use","id":"t2","name":"b","input":{}},{"type":"tool_use","id":"t2","name":"b"},{"type":"tool_use","name":"c","input":null}],"stop_reason":"tool_use"}"#.to_owned(),
            "I look.",
            Some("tool_use"),
            &[r#"t1 a {"z":1,"b":[2.5]}"#, "t2 b {}", "t2_2 b {}", "call_1 c {}"],
            None,
        ),
        (
            r#"{"content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"This is against the policy."}}"#.to_owned(),
            "",
            Some("refusal: This is against the policy."),
            no_calls,
            None,
        ),
        (
            r#"{"content":[],"stop_reason":"refusal","stop_details":null,"usage":null}"#.to_owned(),
            "",
            Some("refusal"),
            no_calls,
            None,
        ),
        (
            r#"{"content":[{"type":"what_is_new","text":7}],"stop_reason":"model_context_window_exceeded","usage":{"output_tokens":1.0}}"#.to_owned(),
            "",
            Some("model_context_window_exceeded"),
            no_calls,
            Some(Usage::new(0, 1)),
        ),
    ] {
        let server = Server::start().await;
        let model = anthropic(&server, false);
        let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", &body)).await;
        let reply = reply.expect(&body);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, finish));
        assert_eq!(told(&reply), calls);
        assert_eq!((reply.usage, reply.blocks), (usage, None));
    }
}

#[tokio::test]
async fn what_is_no_message() {
    use FailureClass::{BadResponse, TooLarge};
    let long = "x".repeat(TEXT_CAP + 1);
    let thinking = "x".repeat(BLOCKS_CAP);
    let nameless = r#"{"content":[{"type":"tool_use","id":"t","input":{}}]}"#;
    for (body, class, words) in [
        (HELLO, BadResponse, "answered 200, but not with a message (it has no `content`)"),
        ("<title>Log in</title>", BadResponse, "an HTML page (Log in) instead of JSON"),
        ("", BadResponse, "with an empty body instead of a message"),
        (r#"{"content":["a"]}"#, BadResponse, "but not with a message (`content`: invalid type"),
        (nameless, BadResponse, "a tool call without a tool name"),
        (
            &format!(r#"{{"content":[{{"type":"text","text":"{long}"}}]}}"#),
            TooLarge,
            "its cap of 256 KiB",
        ),
        (
            &format!(r#"{{"content":[{{"type":"thinking","thinking":"{thinking}"}}]}}"#),
            TooLarge,
            "its cap of 1 MiB",
        ),
    ] {
        let failed = Api::Messages.failure(closing("200 OK", body)).await;
        assert_eq!((failed.class, failed.status), (class, None), "{}", failed.text);
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}

/// Refusals of parameters: the first at github.com/vogler75/monster-mq/issues/168, 2026-08-20; the
/// others in the API's form for a field that it does not know.
#[tokio::test]
async fn omits_refused_parameters() {
    for (message, name, left_out) in [
        ("temperature is deprecated for this model.", "temperature", "/temperature"),
        (
            "output_config.format: Extra inputs are not permitted",
            "output_config",
            "/output_config/format",
        ),
        (
            "output_config.effort: Extra inputs are not permitted",
            "reasoning_effort",
            "/output_config/effort",
        ),
    ] {
        let server = Server::start().await;
        let tuning = Tuning {
            temperature: Some(0.5),
            max_tokens: Some(10),
            reasoning_effort: Some("low".to_owned()),
            ..Tuning::default()
        };
        let model = tuned(&server, tuning, false);
        let request = ChatRequest { form: contract(true), ..ask(false) };
        let refused = closing("400 Bad Request", &error("invalid_request_error", message));
        let (failed, asking) = answered(&server, &model, &request, &refused).await;
        assert!(asking.body.pointer(left_out).is_some(), "{name} was sent");
        let adapted = failed.expect_err(name).adapted;
        assert_eq!(adapted, Some(vec![name.to_owned()]));
        let ok = closing("200 OK", MESSAGE);
        let (reply, after) = answered(&server, &model, &request, ok).await;
        assert!(reply.is_ok());
        for place in ["/temperature", "/output_config/format", "/output_config/effort"] {
            let is_sent = after.body.pointer(place).is_some();
            assert_eq!(is_sent, place != left_out, "{name}: {place}");
        }
        assert_eq!(after.body["max_tokens"], json!(10));
        let (failed, _) = answered(&server, &model, &request, &refused).await;
        assert_eq!(failed.expect_err(name).adapted, None, "once only");
    }
}

#[tokio::test]
async fn probe_lists_then_asks_by_name() {
    let listed = |name: &str| {
        let one = json!({ "type": "model", "id": name, "display_name": "C", "created_at": "2026-01-01T00:00:00Z" });
        closing(
            "200 OK",
            &json!({ "data": [one], "has_more": true, "first_id": name, "last_id": name })
                .to_string(),
        )
    };
    let ok = closing("200 OK", r#"{"type":"model","id":"other"}"#);
    let missing = closing("404 Not Found", &error("not_found_error", "model: claude-haiku-4-5"));
    let no_list =
        |status, said: Option<&str>| ProbeResult::NoList { status, said: said.map(str::to_owned) };
    let lists = |has_model, name: &str| ProbeResult::Lists {
        models: 1,
        has_model,
        names: [name.to_owned()].into(),
    };
    for (answers, reach) in [
        (vec![listed("claude-haiku-4-5")], lists(true, "claude-haiku-4-5")),
        (vec![listed("a"), ok], lists(true, "a")),
        (vec![listed("a"), missing.clone()], lists(false, "a")),
        (vec![missing], no_list(404, None)),
        (vec![closing("400 Bad Request", "{}")], no_list(400, None)),
    ] {
        let server = Server::start().await;
        let model = anthropic(&server, false);
        let (found, ()) = both(model.probe(Duration::from_secs(30)), async {
            // The list ends after 20 unless more are requested.
            let paths = ["/v1/models?limit=1000 ", "/v1/models/claude-haiku-4-5 "];
            for (bytes, path) in answers.iter().zip(paths) {
                let mut connection = server.accept().await;
                let asking = connection.request().await;
                assert!(asking.head.starts_with(&format!("GET {path}")), "{}", asking.head);
                connection.send(bytes).await;
            }
        })
        .await;
        assert_eq!(found, Ok(reach));
    }
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (found, ()) = both(model.probe(Duration::from_secs(30)), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection
            .send(closing("401 No", &error("authentication_error", "invalid x-api-key")))
            .await;
    })
    .await;
    assert_eq!(found.expect_err("a failure").class, FailureClass::Auth);
}
