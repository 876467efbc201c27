//! Turns of agents that speak AG-UI: texts, calls, threads, and questions to people.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ag_ui::{
    Desk, agent, event, finished, play, reply_to, saying, stream, text, with_messages,
};
use crate::log::event::{ChatMessage, MessageRole, Reply};
use crate::model::ChatRequest;
use crate::model::host::InputReply;
use crate::scenario::spec::tool::ToolOffer;
use crate::support::server::STREAM_HEAD;
use crate::support::wire::Server;

fn call_events(id: &str, name: &str, arguments: &str) -> [Value; 3] {
    [
        json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
    ]
}

fn result(id: &str, content: &str) -> Value {
    json!({ "type": "TOOL_CALL_RESULT", "messageId": format!("r-{id}"), "toolCallId": id,
            "content": content })
}

#[tokio::test]
async fn own_calls_are_steps() {
    let [start, args, end] = call_events("c1", "find", "{\"order\": 1}");
    let raw = json!({ "type": "RAW", "event": {} });
    let chunk = |id: Option<&str>, delta: &str| json!({ "type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": id.map(|_| "look"), "delta": delta });
    let subagent = |kind: &str, more: Value| {
        let mut event = json!({ "type": kind, "subagentRunId": "s", "name": "helper" });
        event.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        event
    };
    let (reply, desk) = reply_to(&[
        json!({ "type": "STEP_STARTED", "stepName": "plan" }),
        text("a", "Let me look. "),
        start,
        raw,
        args,
        end,
        result("c1", "two charges"),
        chunk(Some("c2"), "{\"a\""),
        chunk(None, ": 1}"),
        chunk(Some("c3"), "{}"),
        result("c2", "seen"),
        subagent("SUBAGENT_STARTED", json!({ "description": "Check it." })),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "s1", "subagentRunId": "s", "delta": "Checked." }),
        subagent("SUBAGENT_FINISHED", json!({})),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "b", "delta": "Found" }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "delta": " it." }),
        json!({ "type": "RUN_FINISHED", "usage": [
            { "model": "m1", "inputTokens": 10, "outputTokens": 4, "costUsd": 0.25 },
            { "model": "m2", "inputTokens": 1, "outputTokens": 1, "cachedInputTokens": 1 } ] }),
    ])
    .await;
    assert_eq!(&*reply.text, "Let me look.\n\nFound it.");
    assert_eq!(*desk.progress.lock().expect("no panic"), ["plan"]);
    assert_eq!(
        desk.steps(),
        [
            "find started {\"order\": 1}",
            "find done two charges",
            "look started {\"a\": 1}",
            "look started {}",
            "look done seen",
            "helper started Check it.",
            "helper done Checked.",
        ]
    );
    let usage = reply.usage.expect("counted");
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens), (11, 5, 1));
    assert_eq!((reply.cost_usd, reply.model.as_deref()), (Some(0.25), Some("m1")));
    assert!(reply.tool_calls.is_empty());
}

#[tokio::test]
async fn snapshot_replaces_missing_text() {
    let messages = json!([
        { "id": "1", "role": "assistant", "content": "Before." },
        { "id": "2", "role": "user", "content": "x" },
        { "id": "3", "role": "assistant", "content": [{ "type": "text", "text": "After." }] },
    ]);
    let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages });
    let (reply, _) = reply_to(&[snapshot.clone(), finished()]).await;
    assert_eq!(&*reply.text, "After.");
    let (reply, _) = reply_to(&[text("3", "Said."), snapshot, finished()]).await;
    assert_eq!(&*reply.text, "Said.");
}

/// A request with the tools that this program offers.
fn offering(request: ChatRequest) -> ChatRequest {
    ChatRequest { tools: [ToolOffer::bare("get_policy")].into(), ..request }
}

/// The next request of a conversation, after a reply.
fn after(request: &ChatRequest, reply: &Reply, next: ChatMessage) -> ChatRequest {
    let mut messages: Vec<ChatMessage> = request.messages.iter().cloned().collect();
    messages.extend([ChatMessage::from_reply(reply), next]);
    ChatRequest { tools: Arc::clone(&request.tools), ..with_messages(&messages) }
}

#[tokio::test]
async fn offered_tool_is_called_here() {
    let (server, desk) = (Server::start().await, Desk::default());
    let model = agent(&server);
    let request = offering(saying("What is the policy?"));
    let mut events = vec![text("a", "I ask.")];
    events.extend(call_events("p1", "get_policy", "{\"about\": \"refunds\"}"));
    events.extend(call_events("f1", "find", ""));
    events.extend([result("f1", "found"), finished()]);
    let (reply, asked) = play(&model, &server, &request, &desk, &[stream(&events)]).await;
    assert_eq!(asked[0]["tools"][0]["name"], "get_policy");
    let reply = reply.expect("a reply");
    assert_eq!(desk.steps(), ["find started", "find done found"]);
    let calls: Vec<_> =
        reply.tool_calls.iter().map(|it| (&*it.id, &*it.name, &*it.arguments)).collect();
    assert_eq!(calls, [("p1", "get_policy", "{\"about\": \"refunds\"}")]);
    let next = after(&request, &reply, ChatMessage::tool_result(&reply.tool_calls[0], "14 days"));
    let done = stream(&[text("b", "14 days."), finished()]);
    let (_, asked_again) = play(&model, &server, &next, &desk, &[done]).await;
    let roles = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().expect("a list").iter();
        messages.map(|it| format!("{} {}", it["role"].as_str().unwrap(), it["content"])).collect()
    };
    assert_eq!(
        roles(&asked_again[0]),
        [
            "user \"What is the policy?\"",
            "assistant \"I ask.\"",
            "tool \"found\"",
            "tool \"14 days\"",
        ]
    );
    let calls = asked_again[0]["messages"][1]["toolCalls"].as_array().expect("calls").len();
    assert_eq!(calls, 2);
    assert_eq!(asked_again[0]["threadId"], asked[0]["threadId"]);
    assert_ne!(asked_again[0]["runId"], asked[0]["runId"]);
    assert_eq!(asked_again[0]["messages"][0]["id"], asked[0]["messages"][0]["id"]);
}

#[tokio::test]
async fn conversation_keeps_its_thread() {
    let (server, desk) = (Server::start().await, Desk::default());
    let hello = || [stream(&[text("m1", "Hello."), finished()])];
    let thread = |asked: &[Value]| asked[0]["threadId"].as_str().expect("a thread").to_owned();
    let model = agent(&server);
    let request = saying("Hi.");
    let (reply, asked) = play(&model, &server, &request, &desk, &hello()).await;
    let (reply, first) = (reply.expect("a reply"), thread(&asked));
    assert_eq!(reply.blocks.as_ref().expect("blocks")["ag_ui"]["thread"], first);
    // Another process continues a run with what the log has.
    let other_process = agent(&server);
    let next = after(&request, &reply, ChatMessage::new(MessageRole::User, "Hi."));
    let (_, asked) = play(&other_process, &server, &next, &desk, &hello()).await;
    assert_eq!(thread(&asked), first);
    let ids: Vec<&Value> =
        asked[0]["messages"].as_array().expect("a list").iter().map(|it| &it["id"]).collect();
    assert_eq!(ids[1], "m1");
    assert_ne!(ids[0], ids[2], "the same text twice");
    // The same prompt is another conversation, unless it is another attempt.
    let (_, asked) = play(&model, &server, &request, &desk, &hello()).await;
    let second = thread(&asked);
    assert_ne!(second, first);
    let retry = ChatRequest { attempt: 2, ..request.clone() };
    let (_, asked) = play(&model, &server, &retry, &desk, &hello()).await;
    assert_eq!(thread(&asked), second);
    // The blocks of another agent are not its own.
    let mut foreign = reply.clone();
    foreign.blocks = Some(Arc::new(json!({ "ag_ui": { "agent": "other", "thread": first } })));
    let next = after(&saying("Else?"), &foreign, ChatMessage::new(MessageRole::User, "Go on."));
    let (_, asked) = play(&model, &server, &next, &desk, &hello()).await;
    assert_ne!(thread(&asked), first);
}

fn interrupted(interrupts: Value) -> Value {
    json!({ "type": "RUN_FINISHED", "outcome": { "type": "interrupt", "interrupts": interrupts } })
}

fn on_interrupt(value: Value, id: Option<&str>) -> Value {
    json!({ "type": "CUSTOM", "name": "on_interrupt", "value": value.to_string(), "rawEvent": { "id": id } })
}

/// What the agent gets in its second request.
async fn resumed(end: &[Value], replies: Vec<InputReply>) -> (Value, Desk) {
    let server = Server::start().await;
    let desk = Desk::replying(replies);
    let model = agent(&server);
    let mut events = vec![text("a", "Let me look.")];
    events.extend(call_events("c1", "refund", "{\"charge\": \"ch_2\"}"));
    events.extend(end.iter().cloned());
    let answers = [stream(&events), stream(&[text("b", "Done."), finished()])];
    let (reply, asked) = play(&model, &server, &saying("x"), &desk, &answers).await;
    assert_eq!(&*reply.expect("a reply").text, "Let me look.\n\nDone.");
    assert_eq!(asked[0]["threadId"], asked[1]["threadId"]);
    assert_eq!(asked[1]["messages"][1]["toolCalls"][0]["id"], "c1", "{}", asked[1]);
    (asked[1].clone(), desk)
}

#[tokio::test]
async fn interrupts_are_answered_together() {
    let schema = json!({ "type": "object", "required": ["approved"], "properties": {
        "approved": { "type": "boolean" }, "editedArgs": { "type": "object" }, "reason": { "type": "string" } } });
    let nested = json!({ "type": "object", "required": ["who"], "properties": { "who": { "type": "object" } } });
    let plain = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let end = [interrupted(json!([
        { "id": "i1", "reason": "tool_call", "message": "Refund?", "toolCallId": "c1", "responseSchema": schema },
        { "id": "i2", "reason": "Which city?", "responseSchema": plain },
        { "id": "i3", "reason": "Who?", "responseSchema": nested },
        { "id": "i4", "reason": "Really?" },
    ]))];
    let replies = vec![
        InputReply::Accept(json!({ "reason": "ok" })),
        InputReply::Accept(json!({ "city": "Bern" })),
        InputReply::Decline,
        InputReply::Cancel,
    ];
    let (asked, desk) = resumed(&end, replies).await;
    assert_eq!(
        asked["resume"],
        json!([
            { "interruptId": "i1", "status": "resolved", "payload": { "approved": true, "reason": "ok" } },
            { "interruptId": "i2", "status": "resolved", "payload": { "city": "Bern" } },
            { "interruptId": "i3", "status": "resolved", "payload": { "approved": false } },
            { "interruptId": "i4", "status": "cancelled" },
        ])
    );
    assert_eq!(
        desk.questions(),
        ["Refund?\n\nrefund({\"charge\": \"ch_2\"})", "Which city?", "Who?", "Really?"]
    );
    let forms = desk.asked.lock().expect("no panic");
    let fields: Vec<Vec<&String>> = forms
        .iter()
        .map(|it| it.schema["properties"].as_object().expect("fields").keys().collect())
        .collect();
    assert_eq!(fields, [vec!["reason"], vec!["city"], vec![], vec![]]);
    assert_eq!(forms[0].from, "support");
}

/// What a turn waits for is open together, so it has the limit of open questions: nobody is asked.
#[tokio::test]
async fn turn_waits_for_hundred_answers() {
    let many = |calls: usize| -> Vec<Value> {
        (0..calls).map(|at| json!({ "id": format!("i{at}"), "reason": "Really?" })).collect()
    };
    let actions = vec![json!({ "name": "refund", "args": {} }); 101];
    let batch = json!({ "action_requests": actions, "review_configs": [] });
    for end in [vec![interrupted(json!(many(101)))], vec![on_interrupt(batch, None), finished()]] {
        let server = Server::start().await;
        let desk = Desk::replying(Vec::new());
        let model = agent(&server);
        let events = [vec![text("a", "Wait.")], end].concat();
        let answers = [stream(&events)];
        let (reply, _) = play(&model, &server, &saying("x"), &desk, &answers).await;
        let said = reply.expect_err("too many").text;
        let why = "waits for 101 answers at once, and at most 100 questions may be open";
        assert!(said.contains(why), "{said}");
        assert!(desk.questions().is_empty());
    }
}

#[tokio::test]
async fn interrupt_of_a_draft_is_asked() {
    let end = [json!({ "type": "RUN_FINISHED", "outcome": "interrupt",
        "interrupt": { "id": "i1", "reason": "approval", "payload": { "charge": "ch_2" } } })];
    let (asked, desk) = resumed(&end, vec![InputReply::Accept(json!({}))]).await;
    assert_eq!(asked["resume"], json!({ "interruptId": "i1", "payload": { "approved": true } }));
    assert_eq!(desk.questions(), ["approval\ncharge: ch_2"]);
    let (asked, desk) = resumed(
        &[json!({ "type": "RUN_FINISHED", "outcome": "interrupt" })],
        vec![InputReply::Cancel],
    )
    .await;
    assert_eq!(asked["resume"], json!({ "payload": { "approved": false } }));
    assert_eq!(desk.questions(), ["The agent waits for an answer."]);
}

#[tokio::test]
async fn careless_events_are_read() {
    let said = |end: &str| {
        format!(
            "{STREAM_HEAD}event: ping\ndata: 2026-11-01\n\n{}{end}\n\n",
            event(text("a", "Hi."))
        )
    };
    for (stream, expected) in [
        (
            said(
                "data: {\"type\":\"RUN_FINISHED\",\"outcome\":\"success\",\"usage\":{\"inputTokens\":1.5}}",
            ),
            "Hi.",
        ),
        (
            said("event: RUN_FINISHED\ndata: {\"type\":\"RUN_FINISHED\",\"result\":\"Not this.\"}"),
            "Hi.",
        ),
        (
            said(
                "data: {\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{\"a\":NaN}}\n\ndata: {\"type\":\"RUN_FINISHED\"}",
            ),
            "Hi.",
        ),
        (
            said(
                "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"a\",\"delta\":\" \\ud83d\"}\n\ndata: {\"type\":\"RUN_FINISHED\"}",
            ),
            "Hi. \u{fffd}",
        ),
        (
            format!(
                "{STREAM_HEAD}data: {{\"type\":\"RUN_FINISHED\",\"result\":{{\"answer\":7}}}}\n\n"
            ),
            "{\"answer\":7}",
        ),
        (
            format!("{STREAM_HEAD}data: {{\"type\":\"RUN_FINISHED\",\"result\":\"Done.\"}}\n\n"),
            "Done.",
        ),
    ] {
        let (server, desk) = (Server::start().await, Desk::default());
        let (reply, _) =
            play(&agent(&server), &server, &saying("x"), &desk, std::slice::from_ref(&stream))
                .await;
        let reply = reply.unwrap_or_else(|failed| panic!("{stream}: {}", failed.text));
        assert_eq!(&*reply.text, expected, "{stream}");
        let ignored = reply.ignored.as_deref();
        assert_eq!(ignored, stream.contains("ping").then_some("ping (1)"), "{stream}");
    }
}

#[tokio::test]
async fn interrupt_of_langgraph_is_question() {
    let value = || json!({ "question": "Refund ch_2?", "charge": "ch_2" });
    let text = "question: Refund ch_2?\ncharge: ch_2";
    let (one, two) = ("9f".repeat(16), "a0".repeat(16));
    let yes = || InputReply::Accept(json!({}));
    for (reply, expected) in [
        (yes(), json!({ "approved": true })),
        (InputReply::Decline, json!({ "approved": false })),
        (InputReply::Cancel, json!({ "approved": false })),
    ] {
        // An older one has no ids to answer by.
        let end = [on_interrupt(value(), None), finished()];
        let (asked, desk) = resumed(&end, vec![reply]).await;
        assert_eq!(asked["forwardedProps"], json!({ "command": { "resume": expected } }));
        assert_eq!(asked.get("resume"), None);
        assert_eq!(desk.questions(), [text]);
    }
    // Each answer has the id of its interrupt, in both forms. One that is sent twice is asked once.
    let event = |id: &str| on_interrupt(value(), Some(id));
    let of_graph = |id: &str| json!({ "id": id, "reason": "langgraph:interrupt", "metadata": { "langgraph": { "raw": value() } } });
    for end in [
        vec![event(&one), event(&two), event(&one), finished()],
        vec![interrupted(json!([of_graph(&one), of_graph(&two), of_graph(&one)]))],
    ] {
        let (asked, desk) = resumed(&end, vec![yes(), InputReply::Decline]).await;
        let expected = json!({ (&*one): { "approved": true }, (&*two): { "approved": false } });
        assert_eq!(asked["forwardedProps"]["command"]["resume"], expected);
        assert_eq!(desk.questions(), [text, text]);
    }
    let (asked, _) = resumed(&[interrupted(json!([of_graph(&one)]))], vec![yes()]).await;
    let expected = json!({ (&*one): { "approved": true } });
    assert_eq!(asked["forwardedProps"]["command"]["resume"], expected);
}

/// LangChain's `HumanInTheLoopMiddleware`: one interrupt for all calls of a reply, or one for each call.
#[tokio::test]
async fn reviews_of_langchain_are_decisions() {
    let call = |name: &str, description: &str| json!({ "name": name, "args": { "charge": "ch_2" }, "description": description });
    let batch = || {
        json!({
            "action_requests": [
                call("refund", "Tool execution requires approval\n\nTool: refund\nArgs: {'charge': 'ch_2'}"),
                call("refund", ""),
                call("ask", "Which one?"),
            ],
            "review_configs": [
                { "action_name": "refund", "allowed_decisions": ["approve", "edit", "reject", "respond"] },
                { "action_name": "ask", "allowed_decisions": ["respond"] },
            ],
        })
    };
    let replies = || {
        let responds = InputReply::Accept(json!({ "message": "The second" }));
        vec![InputReply::Accept(json!({})), InputReply::Decline, responds]
    };
    let decisions = json!([
        { "type": "approve" }, { "type": "reject" }, { "type": "respond", "message": "The second" }
    ]);
    let id = "9f".repeat(16);
    let of_graph = |value: Value, schema: Value| {
        json!({ "id": id, "reason": "langgraph:interrupt", "responseSchema": schema,
            "metadata": { "langgraph": { "raw": value } } })
    };
    for end in [
        vec![on_interrupt(batch(), Some(&id)), finished()],
        vec![interrupted(json!([of_graph(batch(), Value::Null)]))],
    ] {
        let (asked, desk) = resumed(&end, replies()).await;
        let resume = &asked["forwardedProps"]["command"]["resume"];
        assert_eq!(resume, &json!({ (&*id): { "decisions": decisions } }));
        let called = "refund({\"charge\":\"ch_2\"})";
        assert_eq!(
            desk.questions(),
            [
                &*format!("{called}\n\nTool execution requires approval"),
                called,
                "ask({\"charge\":\"ch_2\"})\n\nWhich one?"
            ]
        );
    }
    let branch = |decision: &str| json!({ "properties": { "type": { "const": decision } } });
    for (offered, reply, decision) in [
        (&["approve", "reject"][..], InputReply::Accept(json!({})), &decisions[0]),
        (&["approve", "reject"], InputReply::Cancel, &decisions[1]),
        (
            &["respond", "reject"],
            InputReply::Accept(json!({ "message": "The second" })),
            &decisions[2],
        ),
    ] {
        let schema = json!({ "oneOf": offered.iter().map(|it| branch(it)).collect::<Vec<_>>() });
        let value = json!({ "type": "tool_approval", "tool_call_id": "c1", "name": "refund",
            "args": { "charge": "ch_2" }, "description": "" });
        let end = [interrupted(json!([of_graph(value, schema)]))];
        let (asked, _) = resumed(&end, vec![reply]).await;
        assert_eq!(asked["forwardedProps"]["command"]["resume"], json!({ (&*id): decision }));
    }
}

#[tokio::test]
async fn endless_questions_end_turn() {
    let (server, desk) = (Server::start().await, Desk::default());
    let end = stream(&[interrupted(json!([{ "id": "i", "reason": "Again?" }]))]);
    let answers = vec![end; 33];
    let (reply, _) = play(&agent(&server), &server, &saying("x"), &desk, &answers).await;
    let said = reply.expect_err("too many").text;
    assert!(said.contains("waited for people 32 times"), "{said}");
    assert_eq!(desk.questions().len(), 32);
}
