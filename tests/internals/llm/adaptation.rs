//! Requests that adapt: the settings are sent, and a field that an endpoint refuses is left out of the
//! next attempt. The refusals are texts that servers were reported to write, each with where and when.

use crate::log::event::{AttemptFailed, FailureClass, Reply};
use crate::model::openai::OpenAi;
use crate::model::{Adaptations, ChatModel, ChatRequest, ReplyForm};
use crate::net::{Http, ProxyMode};
use crate::scenario::spec::{JsonMode, Tuning};
use crate::support::wire::*;
use serde_json::{Map, Value, json};

fn contract() -> ReplyForm {
    let schema = json!({
        "type": "object",
        "properties": { "stance": { "type": "string" } },
        "required": ["stance"],
        "additionalProperties": false,
    });
    ReplyForm::with_contract("stance", true, || schema)
}

fn asking_for(form: ReplyForm) -> ChatRequest {
    ChatRequest { form, ..ask(false) }
}

fn model_of(server: &Server, tuning: Tuning, stream: bool) -> OpenAi {
    OpenAi::new(Http::new(ProxyMode::Direct), server.endpoint(), tuning, stream)
}

fn extra(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// One call on a connection of its own that then closes, and the request that was sent.
async fn once(
    server: &Server,
    model: &OpenAi,
    request: &ChatRequest,
    bytes: impl AsRef<[u8]>,
) -> (Result<Reply, Box<AttemptFailed>>, Value) {
    let (reply, asking) = both(model.chat(request, &Deaf), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(bytes).await;
        asking
    })
    .await;
    (reply, asking.body)
}

fn closing(status: &str, body: &str) -> Vec<u8> {
    answer(status, &["content-type: application/json", "connection: close"], body)
}

fn bad_request(body: &Value) -> Vec<u8> {
    closing("400 Bad Request", &body.to_string())
}

/// OpenAI's form of an error, as the issues named below quote it.
fn openai(message: &str, param: Value, code: Value) -> Value {
    json!({ "error": {
        "message": message, "type": "invalid_request_error", "param": param, "code": code,
    } })
}

fn adapted(failed: &AttemptFailed) -> Vec<&str> {
    check_text(failed);
    failed.adapted.iter().flatten().map(String::as_str).collect()
}

/// Everything that can be set at once.
fn everything() -> Tuning {
    Tuning {
        temperature: Some(0.0),
        max_tokens: Some(500),
        reasoning_effort: Some("low".to_owned()),
        json: None,
        extra: extra(json!({ "parallel_tool_calls": false, "seed": 7 })),
    }
}

#[tokio::test]
async fn sends_only_set_parameters() {
    let server = Server::start().await;
    let ok = closing("200 OK", HELLO);
    let (reply, body) =
        once(&server, &model_of(&server, Tuning::default(), false), &ask(false), &ok).await;
    assert!(reply.is_ok());
    let keys: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["model", "messages"]);

    let (_, body) = once(&server, &model_of(&server, everything(), true), &ask(false), &ok).await;
    assert_eq!(body["temperature"], json!(0.0));
    assert_eq!(body["max_tokens"], json!(500));
    assert_eq!(body["reasoning_effort"], json!("low"));
    assert_eq!(body["parallel_tool_calls"], json!(false));
    assert_eq!(body["seed"], json!(7));
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));

    // Extra fields replace ours, except those that make the request.
    let tuning = Tuning {
        extra: extra(json!({
            "temperature": 1, "max_completion_tokens": 9, "response_format": { "type": "text" },
            "messages": [], "model": "other", "stream": true,
        })),
        ..everything()
    };
    let request = asking_for(contract());
    let (_, body) = once(&server, &model_of(&server, tuning, false), &request, &ok).await;
    assert_eq!(body["temperature"], json!(1));
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(9), None));
    assert_eq!(body["response_format"], json!({ "type": "text" }));
    assert_eq!((&body["model"], body.get("stream")), (&json!("gpt-4.1-mini"), None));
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(2));
}

/// The form of a schema: `ResponseFormatJsonSchema` of github.com/openai/openai-openapi, 2025.
#[tokio::test]
async fn requests_highest_supported_json_mode() {
    let schema = json!({ "type": "json_schema", "json_schema": {
        "name": "stance", "strict": true, "schema": contract().contract().expect("one").schema(),
    } });
    let object = json!({ "type": "json_object" });
    let server = Server::start().await;
    for (form, json, sent) in [
        (contract(), None, Some(&schema)),
        (contract(), Some(JsonMode::JsonSchema), Some(&schema)),
        (contract(), Some(JsonMode::JsonObject), Some(&object)),
        (contract(), Some(JsonMode::Text), None),
        (ReplyForm::Object, None, Some(&object)),
        (ReplyForm::Object, Some(JsonMode::JsonSchema), Some(&object)),
        (ReplyForm::Object, Some(JsonMode::Text), None),
        (ReplyForm::Text, Some(JsonMode::JsonSchema), None),
        (ReplyForm::Text, None, None),
    ] {
        let model = model_of(&server, Tuning { json, ..Tuning::default() }, false);
        let request = asking_for(form);
        let (_, body) = once(&server, &model, &request, closing("200 OK", HELLO)).await;
        assert_eq!(body.get("response_format"), sent, "{:?} {json:?}", request.form);
    }
}

/// The failure names the refused field, and the next attempt leaves it out.
#[tokio::test]
async fn omits_refused_parameters() {
    for (refusal, name) in [
        // gpt-5-mini; github.com/gabrii/Cursor-Azure-GPT-5/issues/33, 2025-09-15
        (
            openai(
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
                json!("temperature"),
                json!("unsupported_value"),
            ),
            "temperature",
        ),
        // gpt-5; github.com/griptape-ai/ComfyUI-Griptape/issues/312, 2025-08-22
        (
            openai(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                json!("max_tokens"),
                json!("unsupported_parameter"),
            ),
            "max_tokens",
        ),
        // Groq; github.com/Aider-AI/aider/issues/3572, 2025-03-18
        (
            json!({ "error": {
                "message": "property 'reasoning_effort' is unsupported, did you mean 'reasoning_format'?",
                "type": "invalid_request_error",
            } }),
            "reasoning_effort",
        ),
        // Ollama; the words at github.com/taketwo/llm-ollama/pull/54, 2025-07-27
        (
            json!({ "error": "registry.ollama.ai/library/gemma3n:e4b does not support thinking" }),
            "reasoning_effort",
        ),
        // o4-mini; github.com/evalstate/fast-agent/issues/279, 2025-07-14
        (
            openai(
                "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
                json!("parallel_tool_calls"),
                json!("unsupported_parameter"),
            ),
            "parallel_tool_calls",
        ),
        // Mistral, with 422; github.com/openai/openai-agents-python/issues/442, 2025-04-05
        (
            json!({
                "object": "error",
                "message": { "detail": [{
                    "type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"],
                    "msg": "Extra inputs are not permitted", "input": true,
                }] },
                "type": "invalid_request_error", "param": null, "code": null,
            }),
            "stream_options",
        ),
        // Fireworks; github.com/FlowiseAI/Flowise/issues/2866, 2024-07-24
        (
            json!({ "error": {
                "object": "error", "type": "invalid_request_error",
                "message": "Extra inputs are not permitted, field: 'stream_options'",
            } }),
            "stream_options",
        ),
        // vLLM; github.com/modelscope/ms-agent/issues/489, 2024-06-13
        (
            json!({
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {}}]",
                "type": "BadRequestError", "param": null, "code": 400,
            }),
            "stream_options",
        ),
        // a plain FastAPI server: its own form of a validation error, within a list as Gemini's
        // compatible address sends its errors
        (
            json!([{ "detail": [{ "loc": ["body", "temperature"], "msg": "not here" }] }]),
            "temperature",
        ),
    ] {
        let then = match name {
            "max_tokens" => "the token limit uses its other name".to_owned(),
            name => format!("{name} is omitted"),
        };
        for status in ["400 Bad Request", "422 Unprocessable Entity"] {
            let server = Server::start().await;
            let model = model_of(&server, everything(), true);
            let request = ask(false);
            let refused = closing(status, &refusal.to_string());
            let (failed, body) = once(&server, &model, &request, &refused).await;
            let failed = failed.expect_err(name);
            assert!(body.get(name).is_some(), "{name} was sent");
            assert_eq!(adapted(&failed), [name], "{}", failed.text);
            assert_eq!(failed.class, FailureClass::Status);
            assert!(failed.text.ends_with(&format!("From now on {then}.")), "{}", failed.text);

            let (reply, after) = once(&server, &model, &request, closing("200 OK", HELLO)).await;
            assert!(reply.is_ok(), "{name}");
            let mut expected = body;
            let left_out = expected.as_object_mut().and_then(|body| body.shift_remove(name));
            if name == "max_tokens" {
                expected["max_completion_tokens"] = left_out.expect("it was sent");
            }
            assert_eq!(after, expected, "{name}: nothing else has changed");

            // Refused once more, the request no longer has the field.
            let (failed, _) = once(&server, &model, &request, &refused).await;
            let failed = failed.expect_err(name);
            check_text(&failed);
            assert_eq!(failed.adapted, None, "{name}: once only");
        }
    }
}

#[tokio::test]
async fn response_format_falls_back_stepwise() {
    // LM Studio; github.com/LoadShine/tada/issues/16, 2026-01-07
    let lm_studio = json!({ "error": "'response_format.type' must be 'json_schema' or 'text'" });
    // Groq; github.com/i-am-bee/beeai-framework/issues/1215, 2025-10-22
    let groq = json!({ "error": {
        "message": "invalid schema for response format: response_format/json_schema/next_step: minItems is not supported",
        "type": "invalid_request_error",
    } });
    let (server, ok) = (Server::start().await, closing("200 OK", HELLO));
    let kind = |body: &Value| body.pointer("/response_format/type").cloned();

    let model = model_of(&server, Tuning::default(), false);
    let request = asking_for(contract());
    for (refusal, sent) in [(&groq, "json_schema"), (&lm_studio, "json_object")] {
        let (failed, body) = once(&server, &model, &request, bad_request(refusal)).await;
        assert_eq!(kind(&body), Some(json!(sent)));
        let failed = failed.expect_err(sent);
        assert_eq!(adapted(&failed), ["response_format"], "{}", failed.text);
    }
    let (_, body) = once(&server, &model, &request, &ok).await;
    assert_eq!(kind(&body), None, "two rungs down is plain");
    let (failed, _) = once(&server, &model, &request, bad_request(&lm_studio)).await;
    assert_eq!(failed.expect_err("refused").adapted, None);

    // An endpoint that takes no objects may well take schemas.
    let model = model_of(&server, Tuning::default(), false);
    let object = asking_for(ReplyForm::Object);
    let (failed, _) = once(&server, &model, &object, bad_request(&lm_studio)).await;
    assert_eq!(adapted(&failed.expect_err("refused")), ["response_format"]);
    assert_eq!(kind(&once(&server, &model, &object, &ok).await.1), None);
    assert_eq!(kind(&once(&server, &model, &request, &ok).await.1), Some(json!("json_schema")));

    // A fixed rung never changes.
    let fixed = Tuning { json: Some(JsonMode::JsonObject), ..Tuning::default() };
    let model = model_of(&server, fixed, false);
    for _ in 0..2 {
        let (failed, body) = once(&server, &model, &request, bad_request(&lm_studio)).await;
        assert_eq!(kind(&body), Some(json!("json_object")));
        let failed = failed.expect_err("refused");
        assert_eq!(adapted(&failed), [""; 0]);
        assert!(failed.text.ends_with("what `[model]` sets."), "{}", failed.text);
    }
}

/// Requests that were sent before a refusal was known are refused for the same reason: each says so, and
/// together they take one rung.
#[tokio::test]
async fn concurrent_refusals_drop_one_rung() {
    let server = Server::start().await;
    let shared = Adaptations::default();
    let models: Vec<OpenAi> = (0..4)
        .map(|_| model_of(&server, everything(), false).sharing_adaptations(&shared))
        .collect();
    let request = asking_for(contract());
    let calls = futures::future::join_all(models.iter().map(|model| model.chat(&request, &Deaf)));
    let refusal = openai(
        "Unsupported parameters: 'temperature', 'response_format' of type 'json_schema'",
        Value::Null,
        Value::Null,
    );
    let (failed, ()) = both(calls, async {
        let mut open = Vec::new();
        for _ in 0..4 {
            let mut connection = server.accept().await;
            connection.request().await;
            open.push(connection);
        }
        for connection in &mut open {
            connection.send(bad_request(&refusal)).await;
        }
    })
    .await;
    for failed in failed {
        let failed = failed.expect_err("refused");
        assert_eq!(adapted(&failed), ["temperature", "response_format"], "{}", failed.text);
    }
    // An adapter that comes later knows it too; one of another model or without it does not.
    let later = model_of(&server, everything(), false).sharing_adaptations(&shared);
    let (_, body) = once(&server, &later, &request, closing("200 OK", HELLO)).await;
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    let alone = model_of(&server, everything(), false);
    let (_, body) = once(&server, &alone, &request, closing("200 OK", HELLO)).await;
    assert!(body.get("temperature").is_some());
}

#[tokio::test]
async fn unclear_refusal_fails_call() {
    let server = Server::start().await;
    let model = model_of(&server, everything(), false);
    let request = ask(false);
    for body in [
        openai("The model `x` does not exist", json!("model"), Value::Null),
        // the limit is too high by any name
        openai(
            "max_tokens is too large: 500. This model supports at most 100 completion tokens.",
            json!("max_tokens"),
            Value::Null,
        ),
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 500.",
            Value::Null,
            Value::Null,
        ),
        // parts of words, and parameters that were not sent
        openai("`max_tokens_to_sample`: Extra inputs are not permitted", Value::Null, Value::Null),
        openai("Unknown name \"stream_options\"", Value::Null, Value::Null),
        json!({ "error": "no room" }),
        json!(null),
        json!([]),
    ] {
        let (failed, sent) = once(&server, &model, &request, bad_request(&body)).await;
        let failed = failed.expect_err("refused");
        assert_eq!(adapted(&failed), [""; 0], "{}", failed.text);
        assert!(failed.text.ends_with("what `[model]` sets."), "{}", failed.text);
        assert_eq!(sent["max_tokens"], json!(500));
    }
    // Only a refusal of the request says anything about its parameters.
    let said = openai("temperature", json!("temperature"), Value::Null).to_string();
    for status in ["401 No", "403 No", "404 No", "413 No", "429 No", "500 No", "503 No"] {
        let (failed, _) = once(&server, &model, &request, closing(status, &said)).await;
        assert_eq!(adapted(&failed.expect_err("refused")), [""; 0], "{status}");
    }
}

/// A fact without adaptations is written as it was, and one with them is read again.
#[test]
fn log_records_adaptations_only_when_made() {
    let mut failed = *AttemptFailed::new(FailureClass::Status, "no.");
    let plain = serde_json::to_string(&failed).expect("a failure");
    assert!(!plain.contains("adapted"), "{plain}");
    failed.adapted = Some(vec!["temperature".to_owned()]);
    let line = serde_json::to_string(&failed).expect("a failure");
    assert!(line.contains(r#""adapted":["temperature"]"#), "{line}");
    assert_eq!(serde_json::from_str::<AttemptFailed>(&line).expect("a failure"), failed);
}
