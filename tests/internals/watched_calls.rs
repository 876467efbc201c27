//! The calls of models in the forms of the usual instrumentations, sent to the receiver over a real socket: what the log
//! has of their prompts and replies, and that each call and token counts once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::watch::{Watched, otlp, outcome};
use crate::log::event::{Event, EventKind, SpanId, World};
use crate::log::facts::observed::ObservedFact;
use crate::watch::PartMessage;
use crate::watch::hub::HubInput;

/// A span of OTLP's JSON with these attributes.
fn span(id: u8, parent: u8, name: &str, attributes: &Value, events: &[(&str, Value)]) -> Value {
    let now = crate::base::time::now_ms();
    let id_of = |id: u8| if id == 0 { String::new() } else { format!("{id:016x}") };
    let events: Vec<Value> = events
        .iter()
        .map(|(name, attributes)| json!({"name": name, "attributes": listed(attributes)}))
        .collect();
    json!({
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id_of(id), "parentSpanId": id_of(parent),
        "name": name, "startTimeUnixNano": format!("{}000000", now + u64::from(id)),
        "endTimeUnixNano": format!("{}000000", now + 100), "attributes": listed(attributes), "events": events,
    })
}

fn listed(attributes: &Value) -> Value {
    let fields = attributes.as_object().expect("an object").iter();
    fields.map(|(key, value)| json!({"key": key, "value": any(value)})).collect()
}

fn any(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(items) => {
            json!({"arrayValue": {"values": items.iter().map(any).collect::<Value>()}})
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| json!({"key": key, "value": any(value)}));
            json!({"kvlistValue": {"values": fields.collect::<Value>()}})
        }
        other => json!({"stringValue": other.to_string()}),
    }
}

/// The one run of spans.
async fn run_of(spans: &Value) -> (World, Vec<Arc<Event>>) {
    let watched = Watched::start().await;
    let answer = watched.post("/v1/traces", "application/json", &otlp(spans)).await;
    assert!(answer.contains("200"), "{answer}");
    let (_, mut runs) = watched.end(0).await;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// The calls of a log: role and text of each message, and the reply; calls of tools as `name(arguments)`.
fn calls(events: &[Arc<Event>]) -> Vec<(Vec<String>, String)> {
    let mut calls: BTreeMap<u32, (Vec<String>, String)> = BTreeMap::new();
    let called = |calls: &[crate::scenario::spec::tool::ToolCall]| -> String {
        calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect()
    };
    for event in events {
        match &event.kind {
            EventKind::CallStarted(call) => {
                let mut all = match call.prompt.after {
                    Some(after) => {
                        let (before, reply) = calls[&after.0].clone();
                        let mut all = before;
                        all.push(format!("assistant: {reply}"));
                        all.truncate(call.prompt.first.map_or(usize::MAX, |first| first as usize));
                        all
                    }
                    None => Vec::new(),
                };
                all.extend(call.prompt.messages.iter().map(|message| {
                    let text = format!("{}{}", message.content, called(&message.tool_calls));
                    format!("{}: {text}", message.role.word())
                }));
                calls.insert(event.span.0, (all, String::new()));
            }
            EventKind::AttemptAnswered(reply) => {
                let text = format!("{}{}", reply.text, called(&reply.tool_calls));
                calls.get_mut(&event.span.0).expect("a call").1 = text;
            }
            _ => {}
        }
    }
    calls.into_values().collect()
}

/// The name of an instrumentation, and the attributes and events of its span.
type Dialect = (&'static str, Value, Vec<(&'static str, Value)>);

/// The same call in the form of each instrumentation.
fn dialects() -> Vec<Dialect> {
    let gen_ai = |more: Value| {
        let mut fields = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"});
        fields.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        fields
    };
    let text = |role: &str, text: &str| json!({"role": role, "parts": [{"type": "text", "content": text}]});
    vec![
        (
            "GenAI of OpenTelemetry",
            gen_ai(json!({
                "gen_ai.system_instructions": json!([{"type": "text", "content": "Be brief."}]).to_string(),
                "gen_ai.input.messages": json!([text("user", "Where is it?")]).to_string(),
                "gen_ai.output.messages": json!([text("assistant", "It left.")]).to_string(),
            })),
            vec![],
        ),
        (
            "the same, structured and with details as an event",
            gen_ai(json!({})),
            vec![(
                "gen_ai.client.inference.operation.details",
                json!({
                    "gen_ai.input.messages": [text("system", "Be brief."), text("user", "Where is it?")],
                    "gen_ai.output.messages": [text("assistant", "It left.")],
                }),
            )],
        ),
        (
            "an event for each message",
            gen_ai(json!({})),
            vec![
                ("gen_ai.system.message", json!({"content": "Be brief."})),
                ("gen_ai.user.message", json!({"content": "Where is it?"})),
                (
                    "gen_ai.choice",
                    json!({"index": 0, "message": "{\"role\":\"assistant\",\"content\":\"It left.\"}"}),
                ),
            ],
        ),
        (
            "Strands: events with parts",
            gen_ai(json!({})),
            vec![
                ("gen_ai.system.message", json!({"content": "[{\"text\": \"Be brief.\"}]"})),
                ("gen_ai.user.message", json!({"content": "[{\"text\": \"Where is it?\"}]"})),
                (
                    "gen_ai.choice",
                    json!({"message": "[{\"text\": \"It left.\"}]", "finish_reason": "end_turn"}),
                ),
            ],
        ),
        (
            "OpenInference",
            json!({
                "openinference.span.kind": "LLM", "llm.model_name": "m",
                "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.contents.0.message_content.type": "text",
                "llm.input_messages.1.message.contents.0.message_content.text": "Where is it?",
                "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "It left.",
            }),
            vec![],
        ),
        (
            "OpenLLMetry",
            json!({
                "llm.request.type": "chat", "gen_ai.request.model": "m",
                "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
                "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "[{\"type\":\"text\",\"text\":\"Where is it?\"}]",
                "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "It left.",
            }),
            vec![],
        ),
        (
            "the AI SDK",
            json!({
                "ai.operationId": "ai.generateText.doGenerate", "gen_ai.request.model": "m",
                "ai.prompt.messages": json!([
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
                ]).to_string(),
                "ai.response.text": "It left.", "ai.response.finishReason": "stop",
            }),
            vec![],
        ),
        (
            "ADK, older versions",
            gen_ai(json!({
                "gcp.vertex.agent.llm_request": json!({
                    "model": "m", "config": {"system_instruction": "Be brief."},
                    "contents": [{"role": "user", "parts": [{"text": "Where is it?"}]}],
                }).to_string(),
                "gcp.vertex.agent.llm_response": json!({"content": {"role": "model", "parts": [{"text": "It left."}]}}).to_string(),
            })),
            vec![],
        ),
        (
            "Logfire",
            gen_ai(json!({
                "request_data": json!({"model": "m", "messages": [
                    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"},
                ]}).to_string(),
                "response_data": json!({"message": {"role": "assistant", "content": "It left."}}).to_string(),
            })),
            vec![],
        ),
        (
            "Langfuse",
            json!({
                "langfuse.observation.type": "generation", "gen_ai.request.model": "m",
                "langfuse.observation.input": json!([
                    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"},
                ]).to_string(),
                "langfuse.observation.output": json!({"role": "assistant", "content": "It left."}).to_string(),
            }),
            vec![],
        ),
        (
            "MLflow, Anthropic's Messages",
            json!({
                "mlflow.spanType": "\"CHAT_MODEL\"", "gen_ai.request.model": "m",
                "mlflow.spanInputs": json!({"system": "Be brief.", "messages": [{"role": "user", "content": "Where is it?"}]}).to_string(),
                "mlflow.spanOutputs": json!({"role": "assistant", "content": [{"type": "text", "text": "It left."}]}).to_string(),
            }),
            vec![],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_dialect_tells_whole_calls() {
    for (name, attributes, events) in dialects() {
        let (world, log) = run_of(&json!([span(1, 0, "chat m", &attributes, &events)])).await;
        let prompt = vec!["system: Be brief.".to_owned(), "user: Where is it?".to_owned()];
        assert_eq!(calls(&log), [(prompt, "It left.".to_owned())], "{name}");
        let outcome = outcome(&world);
        assert_eq!(outcome["model_calls"][0]["name"], "m", "{name}");
        assert_eq!(outcome["answer"], "It left.", "{name}");
        assert_eq!(outcome["usage"]["attempts"], Value::Null, "{name}");
    }
}

/// Calls of tools and their results, in each form.
#[tokio::test(flavor = "multi_thread")]
async fn tool_calls_are_parts_of_messages() {
    let prompt = ["user: Refund?", "assistant: pay({\"usd\":2})", "tool: paid"];
    for (name, input, output) in [
        (
            "Chat completions",
            json!([
                {"role": "user", "content": "Refund?"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{\"usd\":2}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "paid"},
            ]),
            json!({"choices": [{"message": {"role": "assistant", "tool_calls": [
                {"id": "c2", "type": "function", "function": {"name": "mail", "arguments": "{}"}}]}}]}),
        ),
        (
            "Responses",
            json!({"input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Refund?"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{\"usd\":2}"},
                {"type": "function_call_output", "call_id": "c1", "output": "paid"},
            ]}),
            json!({"output": [{"type": "function_call", "call_id": "c2", "name": "mail", "arguments": "{}"}]}),
        ),
        (
            "Messages",
            json!({"messages": [
                {"role": "user", "content": "Refund?"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "tool_use", "id": "c1", "name": "pay", "input": {"usd": 2}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "paid"}]}]},
            ]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "mail", "input": {}}]}),
        ),
        (
            "Google's contents",
            json!({"contents": [
                {"role": "user", "parts": [{"text": "Refund?"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "pay", "args": {"usd": 2}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "pay", "response": "paid"}}]},
            ]}),
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"id": "c2", "name": "mail", "args": {}}}]}}]}),
        ),
        (
            "LangChain",
            json!({"messages": [[
                {"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "Refund?", "type": "human"}},
                {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "", "type": "ai",
                    "tool_calls": [{"name": "pay", "args": {"usd": 2}, "id": "c1", "type": "tool_call"}]}},
                {"lc": 1, "id": ["langchain", "schema", "messages", "ToolMessage"], "kwargs": {"content": "paid", "type": "tool", "tool_call_id": "c1"}},
            ]]}),
            json!({"generations": [[{"text": "", "type": "ChatGeneration", "message": {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "", "tool_calls": [{"name": "mail", "args": {}, "id": "c2"}]}}}]]}),
        ),
        (
            "the parts of OpenTelemetry",
            json!([
                {"role": "user", "parts": [{"type": "text", "content": "Refund?"}]},
                {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "pay", "arguments": {"usd": 2}}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "paid"}]},
            ]),
            json!([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c2", "name": "mail", "arguments": {}}]}]),
        ),
    ] {
        let attributes = json!({
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "input.value": input.to_string(), "output.value": output.to_string(),
        });
        let (_, log) = run_of(&json!([span(1, 0, "chat m", &attributes, &[])])).await;
        let [(messages, reply)] = &calls(&log)[..] else { panic!("{name}: one call") };
        assert_eq!(messages[..], prompt, "{name}");
        assert_eq!(reply, "mail({})", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offered_tools_are_kept() {
    let schema = json!({"type": "object", "properties": {"usd": {"type": "number"}}});
    let function = json!({"type": "function", "function": {"name": "pay", "description": "Pays.", "parameters": schema}});
    for (name, attributes) in [
        ("GenAI", json!({"gen_ai.tool.definitions": json!([function]).to_string()})),
        ("OpenInference", json!({"llm.tools.0.tool.json_schema": function.to_string()})),
        (
            "OpenLLMetry",
            json!({
                "llm.request.functions.0.name": "pay", "llm.request.functions.0.description": "Pays.",
                "llm.request.functions.0.parameters": schema.to_string(),
            }),
        ),
        (
            "the AI SDK",
            json!({"ai.prompt.tools": [json!({"type": "function", "name": "pay", "description": "Pays.", "inputSchema": schema}).to_string()]}),
        ),
        (
            "a request",
            json!({"input.value": json!({"messages": [], "tools": [{"name": "pay", "description": "Pays.", "input_schema": schema}]}).to_string()}),
        ),
    ] {
        let mut fields = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "x"});
        let of = fields.as_object_mut().expect("fields");
        of.extend(attributes.as_object().expect("fields").clone());
        if name == "a request" {
            of.retain(|key, _| !key.starts_with("gen_ai.prompt"));
            of.insert("output.value".into(), "y".into());
        }
        let (_, log) = run_of(&json!([span(1, 0, "chat m", &fields, &[])])).await;
        let tools = log.iter().find_map(|event| match &event.kind {
            EventKind::CallStarted(call) => call.prompt.tools.clone(),
            _ => None,
        });
        let tools = tools.unwrap_or_else(|| panic!("{name}: no tools"));
        assert_eq!((&*tools[0].name, &*tools[0].description), ("pay", "Pays."), "{name}");
        assert_eq!(*tools[0].parameters, schema, "{name}");
    }
}

/// What the run counts: calls of models, of those the failed ones, tokens of prompts and replies.
fn counted(world: &World) -> [u64; 4] {
    let outcome = outcome(world);
    let models = outcome["model_calls"].as_array().expect("models");
    let sum = |name: &str| models.iter().map(|row| row[name].as_u64().unwrap_or(0)).sum();
    let used = |name: &str| outcome["usage"][name].as_u64().unwrap_or(0);
    [sum("calls"), sum("failed"), used("prompt_tokens"), used("completion_tokens")]
}

fn chat(input: Value, output: Value) -> Value {
    json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": input,
           "gen_ai.usage.output_tokens": output})
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_count_where_they_are_innermost() {
    let agent = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.request.model": "m",
                       "gen_ai.usage.input_tokens": 1_000, "gen_ai.usage.output_tokens": 100});
    let inner = json!({"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 1_000,
                       "llm.token_count.completion": 100});
    let silent = json!({"openinference.span.kind": "LLM", "llm.model_name": "m"});
    let embedding = json!({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e", "gen_ai.usage.input_tokens": 7});
    let of = |spans: &[(u8, u8, &Value)]| -> Value {
        spans.iter().map(|(id, parent, about)| span(*id, *parent, "chat m", about, &[])).collect()
    };
    let chat_span = chat(json!(1_000), json!(100));
    for (name, spans, expected) in [
        ("one call", of(&[(1, 0, &chat_span)]), [1, 0, 1_000, 100]),
        ("doubles", of(&[(1, 0, &chat(json!(1_000.0), json!(100.0)))]), [1, 0, 1_000, 100]),
        (
            "a call in a call",
            of(&[(3, 2, &inner), (2, 1, &chat_span), (1, 0, &agent)]),
            [1, 0, 1_000, 100],
        ),
        (
            "the outer one is reported first",
            of(&[(2, 0, &chat_span), (3, 2, &inner)]),
            [1, 0, 1_000, 100],
        ),
        (
            "the inner one counts nothing",
            of(&[(3, 2, &silent), (2, 0, &chat_span)]),
            [1, 0, 1_000, 100],
        ),
        ("an agent alone", of(&[(1, 0, &agent)]), [0, 0, 1_000, 100]),
        (
            "two calls of an agent",
            of(&[(2, 1, &chat_span), (3, 1, &chat_span), (1, 0, &agent)]),
            [2, 0, 2_000, 200],
        ),
        (
            "the second after its agent",
            of(&[(2, 1, &chat_span), (1, 0, &agent), (3, 1, &chat_span)]),
            [2, 0, 2_000, 200],
        ),
        ("an embedding", of(&[(1, 0, &embedding)]), [1, 0, 7, 0]),
    ] {
        let (world, _) = run_of(&spans).await;
        assert_eq!(counted(&world), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_calls_need_no_counts() {
    for attributes in [
        json!({"llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "m"}),
        json!({"ai.operationId": "ai.generateText.doGenerate", "gen_ai.system": "openai", "gen_ai.request.model": "m"}),
    ] {
        let mut failed = span(1, 0, "call", &attributes, &[]);
        failed["status"] = json!({"code": 2, "message": "429"});
        let (world, _) = run_of(&json!([failed])).await;
        assert_eq!(counted(&world), [1, 1, 0, 0], "{attributes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_tokens_are_of_the_prompt() {
    let mut fields: Map<String, Value> =
        chat(json!(5), json!(100)).as_object().expect("fields").clone();
    fields.insert("gen_ai.usage.cache_read.input_tokens".into(), 128_955.into());
    fields.insert("gen_ai.usage.cache_creation.input_tokens".into(), 1_253.into());
    let (world, _) = run_of(&json!([span(1, 0, "chat m", &Value::Object(fields), &[])])).await;
    let usage = outcome(&world)["usage"].clone();
    let of = |name: &str| usage[name].as_u64().expect("a number");
    let counted = ["prompt_tokens", "cached_tokens", "cache_write_tokens"].map(of);
    assert_eq!(counted, [130_213, 128_955, 1_253]);
}

/// What LangSmith's tracer says of a call, in the places where it does.
#[tokio::test(flavor = "multi_thread")]
async fn langsmith_has_models_in_places() {
    let id = "018f6d2a-0000-7000-8000-000000000001";
    for (outputs, extra) in [
        (
            json!({"usage_metadata": {"input_tokens": 9, "output_tokens": 3}}),
            json!({"invocation_params": {"model": "m"}}),
        ),
        (
            json!({"llm_output": {"model_name": "m", "token_usage": {"prompt_tokens": 9, "completion_tokens": 3}}}),
            json!({}),
        ),
        (
            json!({"usage": {"prompt_tokens": 9, "completion_tokens": 3}}),
            json!({"metadata": {"ls_model_name": "m"}}),
        ),
    ] {
        let run = json!({"id": id, "trace_id": id, "name": "ChatOpenAI", "run_type": "llm", "inputs": {}, "outputs": outputs,
                         "extra": extra, "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:00"});
        let watched = Watched::start().await;
        let body = json!({"post": [run]}).to_string();
        watched.post("/runs/batch", "application/json", body.as_bytes()).await;
        let (_, runs) = watched.end(0).await;
        let (world, _) = &runs[0];
        assert_eq!(outcome(world)["model_calls"][0]["name"], "m", "{outputs}");
        assert_eq!(counted(world), [1, 0, 9, 3], "{outputs}");
    }
}

/// Senders write OTLP's JSON in several ways; what cannot be read is said.
#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_are_read_or_named() {
    let one = json!([span(1, 0, "desk", &json!({}), &[])]);
    let plain = String::from_utf8(otlp(&one)).expect("text");
    let id = plain.replace("0af7651916cd43dd8448eb211c80319c", "CvdlGRbNQ92ESOshHIAxnA==");
    let snake = [
        "traceId",
        "spanId",
        "parentSpanId",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "resourceSpans",
        "scopeSpans",
    ];
    let to_snake = |text: &str, name: &str| {
        let spelled: String = name
            .chars()
            .flat_map(
                |c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] },
            )
            .collect();
        text.replace(name, &spelled)
    };
    for (name, path, kind, body) in [
        ("base64", "/v1/traces", "application/json", id),
        (
            "names with underscores",
            "/v1/traces",
            "application/json",
            snake.iter().fold(plain.clone(), |text, name| to_snake(&text, name)),
        ),
        (
            "the old name",
            "/v1/traces",
            "application/json",
            plain.replace("scopeSpans", "instrumentationLibrarySpans"),
        ),
        ("upper case", "/v1/traces", "Application/JSON", plain.clone()),
        ("two slashes", "//v1/traces", "application/json", plain.clone()),
        ("a slash at its end", "/v1/traces/", "application/json", plain.clone()),
    ] {
        let watched = Watched::start().await;
        watched.post(path, kind, body.as_bytes()).await;
        let (_, runs) = watched.end(0).await;
        assert_eq!(outcome(&runs[0].0)["spans"], 1, "{name}");
    }
    for (body, token) in [
        (plain.replace("0af7651916cd43dd8448eb211c80319c", "x"), "secret"),
        ("{\"spans\": []}".to_owned(), "secret"),
        (plain, "wrong"),
    ] {
        let watched = Watched::start().await;
        let head =
            watched.head("POST", "/v1/traces", "Content-Type: application/json\r\n", body.len());
        watched.raw(&[head.replace("secret", token).as_bytes(), body.as_bytes()]).await;
        let (_, runs) = watched.end(0).await;
        let warned = runs[0].1.iter().any(|event| {
            matches!(&event.kind, EventKind::Warning { text } if text.starts_with("some spans are missing"))
        });
        assert!(warned, "{body}");
    }
}

/// Traces that begin in a test have its name and its result, whatever the end of the program is.
#[tokio::test(flavor = "multi_thread")]
async fn tests_name_their_traces() {
    let watched = Watched::start().await;
    let now_us = crate::base::time::now_ms() * 1_000;
    let part = |name: &str, later_us: u64, end| {
        HubInput::Part(PartMessage { name: name.into(), at_us: now_us + later_us, end })
    };
    let trace = |number: u64, later_us: u64| {
        let nano = (now_us + later_us) * 1_000;
        let id = format!("{number:032x}");
        json!([{"traceId": id, "spanId": "00000000000000a1", "name": "desk", "startTimeUnixNano": nano.to_string(),
                "endTimeUnixNano": (nano + 1_000_000).to_string(), "attributes": []}])
    };
    for (number, name, error) in [(1, "test_a", None), (2, "test_b", Some("assert 1 == 2"))] {
        let from = number * 1_000_000;
        watched.sender.send(part(name, from, None)).await.expect("received");
        watched.post("/v1/traces", "application/json", &otlp(&trace(number, from + 1_000))).await;
        let end = Some(error.map(Arc::from));
        watched.sender.send(part(name, from + 500_000, end)).await.expect("received");
    }
    let (_, runs) = watched.end(1).await;
    let seen: Vec<_> = runs
        .iter()
        .map(|(world, _)| {
            let (title, outcome) =
                (world.head.as_ref().expect("a head").title.clone(), outcome(world));
            (
                title,
                outcome["stop_reason"].clone(),
                outcome["exit_code"].clone(),
                outcome["elapsed_ms"].clone(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("test_a".to_owned(), json!("success"), json!(1), json!(1)),
            ("test_b".to_owned(), json!("program_failed"), json!(1), json!(1)),
        ]
    );
    let error = outcome(&runs[1].0)["error"].clone();
    assert_eq!(error, "assert 1 == 2");
}

/// Runs of one thread are linked, and a run without a span is no success.
#[tokio::test(flavor = "multi_thread")]
async fn threads_link_their_runs() {
    let watched = Watched::start().await;
    for number in 1..=2 {
        let mut one = span(1, 0, "desk", &json!({"gen_ai.conversation.id": "t1"}), &[]);
        one["traceId"] = format!("{number:032x}").into();
        watched.post("/v1/traces", "application/json", &otlp(&json!([one]))).await;
    }
    let (_, runs) = watched.end(0).await;
    let id = |at: usize| runs[at].0.head.as_ref().expect("a head").run.as_str().to_owned();
    let linked = |at: usize, name: &str| outcome(&runs[at].0)[name].clone();
    assert_eq!((linked(0, "thread"), linked(0, "before_run")), (json!("t1"), json!(id(1))));
    assert_eq!((linked(1, "thread"), linked(1, "after_run")), (json!("t1"), json!(id(0))));
    let (_, runs) = Watched::start().await.end(0).await;
    assert_eq!(outcome(&runs[0].0)["stop_reason"], "nothing_reported");
}

/// A graph that was interrupted waits, unless the same trace continues it.
#[tokio::test(flavor = "multi_thread")]
async fn continued_graphs_do_not_wait() {
    let (root, now) = ("018f6d2a-0000-7000-8000-000000000000", crate::base::time::now_ms());
    let run = |number: u32,
               parent: Option<&str>,
               outputs: Value,
               error: Option<&str>,
               at: [u64; 2]| {
        let time = |second: u64| (now - 10_000 + second * 1_000) as f64;
        json!({"id": format!("018f6d2a-0000-7000-8000-{number:012}"), "trace_id": root, "parent_run_id": parent,
               "name": "desk", "run_type": "chain", "inputs": {}, "outputs": outputs, "error": error,
               "start_time": time(at[0]), "end_time": time(at[1])})
    };
    let asks = "GraphInterrupt((Interrupt(value='Publish?', id='5f'),))";
    let asked = run(1, Some(root), json!({}), Some(asks), [1, 2]);
    let continued = run(2, Some(root), json!({"output": "done"}), None, [3, 4]);
    let whole = || run(0, None, json!({"output": "x"}), None, [0, 9]);
    for (runs, reason) in [
        (json!([asked, whole()]), "waits_for_input"),
        (json!([asked, continued, whole()]), "success"),
    ] {
        let watched = Watched::start().await;
        let body = json!({"post": runs}).to_string();
        watched.post("/runs/batch", "application/json", body.as_bytes()).await;
        let (_, runs) = watched.end(0).await;
        assert_eq!(outcome(&runs[0].0)["stop_reason"], reason);
        let note = runs[0].1.iter().find_map(|event| match ObservedFact::of(&event.kind) {
            Some(ObservedFact::Note { text }) => Some((event.span, text.to_string())),
            _ => None,
        });
        let (span, text) = note.expect("a note");
        assert_eq!(text, "interrupt: Publish?");
        assert_ne!(span, SpanId::RUN, "it belongs to the node that asks");
    }
}

/// A prompt that grows is stored once, and a very long one says what it leaves out.
#[tokio::test(flavor = "multi_thread")]
async fn growing_prompts_are_stored_once() {
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let mut said = vec![message("system", &"Be brief. ".repeat(1_000))];
    let mut spans = Vec::new();
    for id in 1..=20_u8 {
        said.push(message("user", &format!("question {id}")));
        let reply = message("assistant", &format!("answer {id}"));
        let attributes = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "input.value": json!({"messages": said}).to_string(), "output.value": reply.to_string()});
        spans.push(span(id, 0, "chat m", &attributes, &[]));
        said.push(reply);
    }
    let (_, log) = run_of(&Value::Array(spans)).await;
    let stored: usize = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::CallStarted(call) => Some(call.prompt.messages.len()),
            _ => None,
        })
        .sum();
    assert_eq!(stored, 21, "the system prompt, and each question");
    let last = calls(&log).pop().expect("calls");
    assert_eq!((last.0.len(), &*last.0[39], &*last.1), (40, "user: question 20", "answer 20"));
    let long: Vec<Value> = (0..40).map(|_| message("user", &"x".repeat(20_000))).collect();
    let attributes = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "input.value": json!({"messages": long}).to_string()});
    let (_, log) = run_of(&json!([span(1, 0, "chat m", &attributes, &[])])).await;
    let note = log.iter().find_map(|event| match ObservedFact::of(&event.kind) {
        Some(ObservedFact::Note { text }) => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(note.as_deref(), Some("left out of this call: 27 messages (limit: 256 KiB)"));
}
