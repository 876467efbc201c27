//! The chat model over real sockets: tools that are offered, and calls of them.

use std::sync::Arc;

use crate::log::event::{AttemptFailed, ChatMessage, FailureClass, MessageRole, Reply, Usage};
use crate::model::openai::TEXT_CAP;
use crate::model::{ChatModel, ChatRequest};
use crate::scenario::spec::tool::ToolOffer;
use crate::support::api::*;
use crate::support::messages::{answered, asking, call_of, told};
use crate::support::wire::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// A request with these messages, and with tools that can be called.
fn ask_with(tools: &[&str], messages: &[ChatMessage]) -> ChatRequest {
    ChatRequest { tools: tools.iter().copied().map(ToolOffer::bare).collect(), ..asking(messages) }
}

async fn whole(calls: &str) -> Result<Reply, AttemptFailed> {
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":null,"tool_calls":{calls}}},"finish_reason":"tool_calls"}}]}}"#
    );
    Api::Chat.whole(&body).await
}

#[tokio::test]
async fn request_carries_tools_and_calls() {
    let research = ToolOffer {
        name: "research".into(),
        description: "Looks things up.".into(),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": { "request": { "type": "string" } },
            "required": ["request"],
        })),
    };
    let calls = [
        call_of("x\u{1b}1", "research", r#"{"request": "é"}"#),
        call_of("x2", "rm -rf", ""),
        call_of("x3", "research", "{\"request\":"),
        call_of("x4", "research", "[1]"),
    ];
    let mut request = ask_with(
        &[],
        &[
            ChatMessage::new(MessageRole::User, "Go."),
            ChatMessage::assistant("", calls[..2].into()),
            ChatMessage::tool_result(&calls[0], "found"),
            ChatMessage::tool_result(&calls[1], "no such tool"),
            ChatMessage::assistant("Once more.", calls[2..].into()),
            ChatMessage::tool_result(&calls[2], ""),
            ChatMessage::new(MessageRole::Assistant, ""),
        ],
    );
    request.tools = [research].into();
    let server = Server::start().await;
    let (_, asking) = answered(&server, &server.model(), &request, json("200 OK", HELLO)).await;
    let function = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    assert_eq!(
        asking.body,
        json!({
            "model": "gpt-4.1-mini",
            "messages": [
                { "role": "user", "content": "Go." },
                { "role": "assistant", "content": null, "tool_calls": [
                    function("x\u{1b}1", "research", r#"{"request": "é"}"#),
                    function("x2", "rm_-rf", "{}"),
                ] },
                { "role": "tool", "content": "found", "tool_call_id": "x\u{1b}1" },
                { "role": "tool", "content": "no such tool", "tool_call_id": "x2" },
                { "role": "assistant", "content": "Once more.", "tool_calls": [
                    function("x3", "research", r#"{"unreadable":"{\"request\":"}"#),
                    function("x4", "research", r#"{"unreadable":"[1]"}"#),
                ] },
                { "role": "tool", "content": "", "tool_call_id": "x3" },
                { "role": "tool", "content": "error: this call has no result", "tool_call_id": "x4" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "research",
                "description": "Looks things up.",
                "parameters": {
                    "type": "object",
                    "properties": { "request": { "type": "string" } },
                    "required": ["request"],
                },
            } }],
        })
    );
}

#[tokio::test]
async fn request_without_tools_stays_same() {
    let server = Server::start().await;
    let model = server.streaming();
    let (_, asking) = answered(&server, &model, &ask(true), format!("{STREAM_HEAD}{ENDING}")).await;
    assert_eq!(
        asking.body.to_string(),
        r#"{"model":"gpt-4.1-mini","messages":[{"role":"system","content":"You judge."},{"role":"user","content":"{\"goal\":\"grün \\\"x\\\"\"}"}],"response_format":{"type":"json_object"},"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

/// The log keeps, and reads again, a message in another form than the one that is sent.
#[test]
fn log_keeps_own_message_form() {
    let message = ChatMessage::assistant("", [call_of("x", "a", "")].into());
    let line = serde_json::to_string(&message).expect("a message");
    assert_eq!(
        line,
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"x","name":"a","arguments":""}]}"#
    );
    assert_eq!(serde_json::from_str::<ChatMessage>(&line).expect("a message"), message);
}

#[tokio::test]
async fn calls_of_a_whole_answer() {
    for (calls, expected) in [
        (
            r#"[{"id":"x","type":"function","function":{"name":"a","arguments":"{\"n\":1}"}},
                {"id":"y","type":"function","function":{"name":"b","arguments":""}}]"#,
            &[r#"x a {"n":1}"#, "y b "][..],
        ),
        ("null", &[]),
        ("[]", &[]),
        // the object itself, no ids, the same id twice, one that looks like ours
        (
            r#"[{"function":{"name":"a","arguments":{"z":1,"b":[2.5]}}}]"#,
            &[r#"call_1 a {"z":1,"b":[2.5]}"#],
        ),
        (
            r#"[{"id":"call_1","function":{"name":"a"}},{"id":"","function":{"name":"a"}},{"id":null,"function":{"name":"a","arguments":null}}]"#,
            &["call_1 a ", "call_2 a ", "call_3 a "],
        ),
        (
            r#"[{"id":"x","function":{"name":"a"}},{"id":"x","function":{"name":"b"}},{"id":"x_2","function":{"name":"c"}},{"id":"x","function":{"name":"d"}}]"#,
            &["x a ", "x_3 b ", "x_2 c ", "x_4 d "],
        ),
        // twice the same is two calls, and an index that all have says nothing
        (
            r#"[{"index":0,"function":{"name":"a","arguments":"{}"}},{"index":0,"function":{"name":"a","arguments":"{}"}}]"#,
            &["call_1 a {}", "call_2 a {}"],
        ),
        // what is no JSON is kept as it was said
        (
            r#"[{"id":"x","function":{"name":"a","arguments":"{\"n\": oh no"}}]"#,
            &[r#"x a {"n": oh no"#],
        ),
    ] {
        let reply = whole(calls).await.expect(calls);
        assert_eq!(told(&reply), expected, "{calls}");
        assert_eq!((&*reply.text, reply.finish.as_deref()), ("", Some("tool_calls")), "{calls}");
    }
}

/// An id of ours is no other call's of the conversation.
#[tokio::test]
async fn missing_ids_continue_numbering() {
    let before = [call_of("call_1", "a", ""), call_of("call_3", "a", "")];
    let request = ask_with(&["a"], &[ChatMessage::assistant("", before.into())]);
    let calls = r#"[{"function":{"name":"a"}},{"function":{"name":"a"}}]"#;
    let body = format!(r#"{{"choices":[{{"message":{{"content":"so","tool_calls":{calls}}}}}]}}"#);
    let server = Server::start().await;
    let (reply, _) = answered(&server, &server.model(), &request, json("200 OK", &body)).await;
    let reply = reply.expect("a reply");
    assert_eq!(told(&reply), ["call_2 a ", "call_4 a "]);
    assert_eq!(&*reply.text, "so");
}

#[tokio::test]
async fn calls_come_in_pieces() {
    let server = Server::start().await;
    let model = server.streaming();
    let (heard, mut pieces) = Heard::new();
    let request = team();
    let (reply, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(CHUNKED_HEAD).await;
        for event in [
            &piece("I ask."),
            &calls_delta(r#"[{"index":0,"id":"x","type":"function","function":{"name":"research","arguments":""}}]"#),
            &calls_delta(r#"[{"index":0,"function":{"arguments":"{\"request\""}}]"#),
            &calls_delta(r#"[{"index":0,"function":{"arguments":": \"é\"}"}}]"#),
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        ] {
            connection.send(chunk(event)).await;
        }
        connection.send("0\r\n\r\n").await;
    })
    .await;
    let reply = reply.expect("a reply");
    assert_eq!(told(&reply), [r#"x research {"request": "é"}"#]);
    assert_eq!((&*reply.text, reply.finish.as_deref()), ("I ask.", Some("tool_calls")));
    assert_eq!(reply.usage, Some(Usage::new(7, 2)));
    assert!(reply.first_token_ms.is_some());
    drop(heard);
    assert_eq!(pieces.recv().await.as_deref(), Some("I ask."), "calls are not the text's");
    assert_eq!(pieces.recv().await, None);
}

/// The pieces of calls as servers send them, and their meaning.
#[tokio::test]
async fn calls_that_come_in_odd_pieces() {
    for (what, pieces, expected) in [
        (
            "several at once, out of order, with gaps",
            &[
                r#"[{"index":4,"id":"y","function":{"name":"billing","arguments":"{\"b\""}},{"index":1,"id":"x","function":{"name":"research","arguments":"{\"a\""}}]"#,
                r#"[{"index":1,"function":{"arguments":":1}"}}]"#,
                r#"[{"index":4,"function":{"arguments":":2}"}}]"#,
            ][..],
            &[r#"x research {"a":1}"#, r#"y billing {"b":2}"#][..],
        ),
        (
            "no index: the id says which",
            &[
                r#"[{"id":"x","function":{"name":"research","arguments":"{\"a\""}}]"#,
                r#"[{"function":{"arguments":":1}"}}]"#,
                r#"[{"id":"y","function":{"name":"billing","arguments":"{\"b\""}}]"#,
                r#"[{"id":"x","function":{"arguments":" "}},{"id":"y","function":{"arguments":":2}"}}]"#,
            ],
            &[r#"x research {"a":1} "#, r#"y billing {"b":2}"#],
        ),
        (
            "neither index nor id, whole calls in one piece and in several",
            &[
                r#"[{"function":{"name":"research","arguments":"{\"a\":1}"}},{"function":{"name":"billing","arguments":{"b":2}}}]"#,
                r#"[{"function":{"name":"billing","arguments":"{\"b\":3}"}}]"#,
            ],
            &[
                r#"call_1 research {"a":1}"#,
                r#"call_2 billing {"b":2}"#,
                r#"call_3 billing {"b":3}"#,
            ],
        ),
        (
            "the index of all is 0: another id and a name",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":0,"id":"","function":{"name":null,"arguments":"{\"a\":1}"}}]"#,
                r#"[{"index":0,"id":"y","function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":0,"id":"","function":{"arguments":"{\"a\":1}"}}]"#,
            ],
            &[r#"x research {"a":1}"#, r#"y research {"a":1}"#],
        ),
        (
            "the index of all is 0 and no ids",
            &[
                r#"[{"index":0,"function":{"name":"billing","arguments":"{\"b\":1}"}}]"#,
                r#"[{"index":0,"function":{"name":"billing","arguments":"{\"b\":2}"}}]"#,
                r#"[{"index":0,"function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":0,"function":{"name":"billing","arguments":""}}]"#,
            ],
            &[
                r#"call_1 billing {"b":1}"#,
                r#"call_2 billing {"b":2}"#,
                "call_3 research ",
                "call_4 billing ",
            ],
        ),
        (
            "id and name again with each piece",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":"{\"a\":"}}]"#,
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":"1}"}}]"#,
            ],
            &[r#"x research {"a":1}"#],
        ),
        (
            "the name again without the id",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":"{\"a\":"}}]"#,
                r#"[{"index":0,"function":{"name":"research","arguments":"1}"}}]"#,
                r#"[{"index":0,"function":{"name":"research","arguments":""}}]"#,
            ],
            &[r#"x research {"a":1}"#],
        ),
        (
            "another id for each piece",
            &[
                r#"[{"index":0,"id":"x1","function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":0,"id":"x2","function":{"arguments":"{\"a\":"}}]"#,
                r#"[{"id":"x3","function":{"arguments":"1}"}}]"#,
            ],
            &[r#"x1 research {"a":1}"#],
        ),
        (
            "the name in pieces, and once more as a whole",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"rese"}}]"#,
                r#"[{"index":0,"function":{"name":"arch"}}]"#,
                r#"[{"index":0,"function":{"name":"research","arguments":"{}"}}]"#,
            ],
            &["x research {}"],
        ),
        (
            "a piece of the name that is a name",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"a"}}]"#,
                r#"[{"index":0,"function":{"name":"b","arguments":"{}"}}]"#,
            ],
            &["x ab {}"],
        ),
        (
            "the arguments before the name, the id by itself",
            &[
                r#"[{"index":0,"function":{"arguments":"{\"a\":"}}]"#,
                r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
                r#"[{"index":0,"function":{"name":"research"}}]"#,
                r#"[{"index":1,"id":"y","type":"function"}]"#,
                r#"[{"index":1,"function":{"name":"billing"}}]"#,
                r#"[{"index":0,"id":"x"}]"#,
            ],
            &[r#"x research {"a":1}"#, "y billing "],
        ),
        (
            "an index that counts on within a call",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":""}}]"#,
                r#"[{"index":1,"function":{"arguments":"{\"a\":"}}]"#,
                r#"[{"index":2,"function":{"arguments":"1}"}}]"#,
            ],
            &[r#"x research {"a":1}"#],
        ),
        (
            "an index that comes late, and one that is no whole number",
            &[
                r#"[{"id":"x","function":{"name":"research"}}]"#,
                r#"[{"index":0.0,"function":{"arguments":"{}"}}]"#,
                r#"[{"index":-1,"id":"y","function":{"name":"billing"}}]"#,
            ],
            &["y billing ", "x research {}"],
        ),
        (
            "an empty object before the arguments, the arguments again after them",
            &[
                r#"[{"index":0,"id":"x","function":{"name":"research","arguments":{}}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"a\": \"}\\\"\\\\\""}}]"#,
                r#"[{"index":0,"function":{"arguments":"}"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"a\": \"}\\\"\\\\\"}"}}]"#,
            ],
            &[r#"x research {"a": "}\"\\"}"#],
        ),
        (
            "no call at all",
            &["[]", "null", r#"[{"index":0,"id":"x","function":{"name":"a"}}]"#],
            &["x a "],
        ),
    ] {
        for finish in ["tool_calls", "stop"] {
            let mut events: String = pieces.iter().map(calls_delta).collect();
            events += &format!(
                "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\n"
            );
            let reply = Api::Chat.streamed(&events).await.expect(what);
            assert_eq!(told(&reply), expected, "{what}");
            assert_eq!(reply.finish.as_deref(), Some(finish), "{what}");
        }
    }
}

#[tokio::test]
async fn calls_that_cannot_be_taken() {
    let many = |count: usize| {
        let one = r#"{"function":{"name":"a","arguments":"{}"}}"#;
        format!("[{}]", vec![one; count].join(","))
    };
    let long = format!(r#"[{{"function":{{"name":"{}"}}}}]"#, "n".repeat(257));
    for (calls, words) in [
        (
            r#"[{"id":"x","function":{"arguments":"{}"}}]"#,
            "sent a tool call without a tool name. Try",
        ),
        (r#"[{"id":"x","type":"custom","custom":{"name":"a"}}]"#, "without a tool name. Try"),
        (&many(65), "sent more than 64 tool calls in one reply. Try"),
        (&long, "with a name of more than 256 bytes. Try"),
        (r#"[{"id":"x","function":{"name":["a"]}}]"#, "invalid type: sequence, expected a string"),
    ] {
        let failed = whole(calls).await.expect_err(words);
        assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::BadResponse, None));
        assert!(failed.text.contains(words), "{}", failed.text);
        // Alike, pieces are told apart by their place.
        let calls: Value = serde_json::from_str(calls).expect("JSON");
        let calls = calls.as_array().expect("a list").iter().enumerate().map(|(index, call)| {
            let mut call = call.clone();
            call["index"] = json!(index);
            calls_delta(json!([call]))
        });
        let events = calls.fold(piece("so"), |events, event| events + &event) + ENDING;
        let failed = Api::Chat.streamed(&events).await.expect_err(words);
        assert_eq!(
            (failed.class, failed.partial.as_deref()),
            (FailureClass::BadResponse, Some("so"))
        );
        assert!(failed.text.contains(words), "{}", failed.text);
    }
    assert_eq!(whole(&many(64)).await.expect("a reply").tool_calls.len(), 64);
}

#[tokio::test]
async fn caps_long_arguments() {
    let arguments = "x".repeat(TEXT_CAP);
    let failed =
        whole(&format!(r#"[{{"function":{{"name":"a","arguments":"{arguments}"}}}}]"#)).await;
    assert_eq!(failed.expect_err("a failure").class, FailureClass::TooLarge);
}

#[tokio::test]
async fn redacts_key_in_call() {
    let call = format!(
        r#"{{"index":0,"id":"{KEY}","function":{{"name":"{KEY}","arguments":"{{\"k\":\"{KEY}\"}}"}}}}"#
    );
    let reply = whole(&format!("[{call}]")).await.expect("a reply");
    assert_eq!(told(&reply), [r#"*** *** {"k":"***"}"#]);
}

const ODD: [&str; 7] = [
    r#"[{"index":2,"id":"é👍","function":{"name":"rese","arguments":""}}]"#,
    r#"[{"index":2,"function":{"name":"arch","arguments":"{\"request\": \"gr"}}]"#,
    r#"[{"index":0,"id":"x","function":{"name":"billing","arguments":{}}}]"#,
    r#"[{"index":2,"function":{"arguments":"ün 👍 \\\""}},{"index":0,"function":{"arguments":"{\"n\":"}}]"#,
    r#"[{"index":0,"id":"x","function":{"name":"billing","arguments":"1}"}}]"#,
    r#"[{"index":0,"id":"x","function":{"arguments":"oh"}}]"#,
    r#"[{"index":2,"function":{"arguments":"\"}"}},{"index":0,"id":"z","function":{"name":"ab"}}]"#,
];

#[tokio::test]
async fn split_stream_gives_same_calls() {
    let mut stream = piece("so ");
    stream.extend(ODD.map(calls_delta));
    stream += &piece("it is");
    stream += ENDING;
    let stream = stream.into_bytes();
    let mut line = Kept::new(Api::Chat).await;
    let unsplit = line.reply(&stream, None).await;
    assert_eq!(
        told(&unsplit),
        [r#"x billing {"n":1}oh"#, "z ab ", r#"é👍 research {"request": "grün 👍 \""}"#]
    );
    for cut in 1..stream.len() {
        let split = line.reply(&stream, Some(cut)).await;
        assert_eq!((&split.tool_calls, &split.text), (&unsplit.tool_calls, &unsplit.text), "{cut}");
    }
}

/// A call: its id, its name, its arguments in pieces.
type Cut = (String, String, Vec<String>);

/// Calls, and whose turn it is next.
fn calls() -> impl Strategy<Value = (Vec<Cut>, Vec<usize>)> {
    let name = prop::sample::select(vec!["a", "ab", "research", "billing", "unheard-of"]);
    let object = prop::collection::btree_map("[a-z\"é]{0,3}", "[{}\"\\\\:,a-cé👍 \n]{0,8}", 0..3);
    let arguments = prop_oneof![
        3 => object.prop_map(|object| json!(object).to_string()),
        1 => "[{\"\\\\a-cé👍 \n]{0,12}",
    ];
    let pieces = (arguments, 1..6_usize).prop_map(|(arguments, size)| {
        let chars: Vec<char> = arguments.chars().collect();
        chars.chunks(size).map(|piece| piece.iter().collect()).collect()
    });
    let one = ("[a-zé👍\"\\\\]{1,6}", name, pieces);
    let one = one.prop_map(|(id, name, pieces): (_, &str, _)| (id, name.to_owned(), pieces));
    (prop::collection::vec(one, 0..5), prop::collection::vec(any::<usize>(), 1..40))
}

/// A stream of these calls: they announce themselves in their order, and go on in any.
fn stream_of(calls: &[Cut], turns: &[usize]) -> String {
    let mut stream = String::new();
    let mut left: Vec<(usize, Vec<&String>)> = Vec::new();
    for (index, (id, name, pieces)) in calls.iter().enumerate() {
        let opening = json!([{ "index": index, "id": format!("{id}{index}"), "type": "function", "function": { "name": name, "arguments": "" } }]);
        stream += &calls_delta(opening);
        left.push((index, pieces.iter().rev().collect()));
    }
    for turn in turns.iter().cycle() {
        left.retain(|(_, pieces)| !pieces.is_empty());
        if left.is_empty() {
            break;
        }
        let at = turn % left.len();
        let (index, pieces) = &mut left[at];
        let arguments = pieces.pop();
        stream += &calls_delta(json!([{ "index": index, "function": { "arguments": arguments } }]));
    }
    stream + ENDING
}

#[test]
fn randomly_split_stream_keeps_calls() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let line = std::cell::RefCell::new(runtime.block_on(Kept::new(Api::Chat)));
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..24);
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let tested = TestRunner::new(config).run(&(calls(), cuts), |((calls, turns), cuts)| {
        let stream = stream_of(&calls, &turns).into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        let mut line = line.borrow_mut();
        let unsplit = runtime.block_on(line.reply(&stream, None));
        let split = runtime.block_on(line.reply(&stream, cuts));
        prop_assert_eq!(&split.tool_calls, &unsplit.tool_calls);
        let sent = calls.iter().enumerate().map(|(index, (id, name, pieces))| {
            call_of(&format!("{id}{index}"), name, &pieces.concat())
        });
        prop_assert_eq!(&*split.tool_calls, &*sent.collect::<Vec<_>>());
        Ok(())
    });
    tested.expect("the same calls");
}
