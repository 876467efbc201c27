//! What a fake server answers, and what becomes of it.

use serde_json::{Value, json};

use super::{TestHost, call, call_with, checked, fail, fake, fake_with, list, text};
use crate::gateway::{InputReply, InputRequest};
use crate::log::event::FailureClass;

#[tokio::test]
async fn lists_and_calls() {
    let server = fake("plain");
    let tools = list(&server).await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "echo",
            "titled",
            "hinted",
            "structured",
            "bad_structured",
            "no_structured",
            "no_schema",
            "wrong_schema"
        ]
    );
    let said: Vec<&str> = tools.iter().take(3).map(|tool| tool.description.as_str()).collect();
    assert_eq!(said, ["Says it again.", "A title", "A hint"]);
    // A schema is as the server wrote it.
    let schemas: Vec<&Value> = tools.iter().skip(6).map(|tool| &tool.parameters).collect();
    assert_eq!(schemas, [&json!({ "type": "object" }), &json!({ "type": "string" })]);
    let reads: Vec<bool> = tools.iter().take(3).map(|tool| tool.reads_only).collect();
    assert_eq!(reads, [true, false, false]);
    assert!(tools[3].result.is_some() && tools[0].result.is_none());
    assert_eq!(text(&server, "echo", json!({ "a": "ü" })).await, r#"{"a": "\u00fc"}"#);
    assert_eq!(text(&server, "echo", json!({ "texts": ["a", "b"] })).await, "a\nb");
}

#[tokio::test]
async fn listing_is_bounded() {
    for (mode, many) in [("pages", 3), ("endless", 50), ("circle", 3), ("many", 1_000)] {
        assert_eq!(list(&fake(mode)).await.expect(mode).len(), many, "{mode}");
    }
    let failed = checked(*list(&fake("no_tools")).await.expect_err("no list"));
    let says =
        "the MCP server shop answered tools/list without a list of tools. Is it an MCP server?";
    assert_eq!(failed, (FailureClass::BadResponse, says.to_owned()));
}

#[tokio::test]
async fn environment_holds_only_named_variables() {
    let said = text(&fake_with("plain", &[("A", "b")]), "environment", json!({})).await;
    let said: Value = serde_json::from_str(&said).expect("JSON");
    // The interpreter may add some of its own.
    assert!(said.get("HOME").is_none());
    assert_eq!(said["A"], "b");
    assert_eq!(said["TOKEN"], "***");
}

#[tokio::test]
async fn failed_start_says_why() {
    use FailureClass::{BadResponse, Tool};
    const SHELL: &str = "Start its command in a shell to see why.";
    const IS_IT: &str = "Is it an MCP server?";
    for (mode, class, says, advice) in [
        ("die", Tool, "ended with exit code 7: fix ␛[2J it ***", SHELL),
        (
            "die_quietly",
            Tool,
            "ended with exit code 0: nothing on standard error; a line of its standard output is \
             no message: usage: fake",
            SHELL,
        ),
        (
            "refuses",
            Tool,
            "returned error -32602: not ␛[2J you",
            "Correct the arguments of the call.",
        ),
        ("no_info", BadResponse, "answered the handshake without a protocol version", IS_IT),
        (
            "wrong_version",
            Tool,
            "speaks no protocol version that roundtable speaks: 2099-01-01",
            "Use another version of the server.",
        ),
    ] {
        let (got, text) = fail(&fake(mode), "echo", json!({})).await;
        assert_eq!(text, format!("the MCP server shop {says}. {advice}"), "{mode}");
        assert_eq!(got, class, "{mode}");
    }
}

#[tokio::test]
async fn missing_program_says_what_to_do() {
    let server = super::server_of("no-such-program-here", &[], Default::default());
    let says = "the MCP server shop cannot be started: program no-such-program-here not found: \
                install it, or give its full path";
    assert_eq!(fail(&server, "echo", json!({})).await, (FailureClass::Tool, says.to_owned()));
}

#[tokio::test]
async fn works_in_spite_of_noise() {
    for mode in ["banner", "legacy_dies", "modern", "php", "discovers_nothing"] {
        assert_eq!(text(&fake(mode), "echo", json!({})).await, "{}", "{mode}");
    }
    let server = fake("plain");
    for (tool, args, says) in [
        ("twice", json!({}), "first"),
        ("other_ids", json!({}), "mine"),
        ("string_id", json!({}), "as a string"),
        ("garbage", json!({}), "after"),
        ("notifications", json!({ "many": 20_000 }), "done"),
        ("requests", json!({ "many": 500, "reads": true }), "answered"),
        ("sampling", json!({}), "-32601 -32601"),
        ("empty", json!({}), "[no content]"),
        ("odd_json", json!({}), "7 \u{fffd}"),
        ("controls", json!({}), &(0..32).map(char::from).collect::<String>()),
        ("echo", json!({}), "{}"),
    ] {
        assert_eq!(text(&server, tool, args).await, says, "{tool}");
    }
    assert_eq!(text(&server, "no_line_end", json!({})).await, "the last");
}

#[tokio::test]
async fn error_without_id_answers_nothing() {
    // An error without an id cannot be told from one about the call, so rmcp drops it.
    let said = text(&fake("plain"), "other_ids", json!({ "null": true })).await;
    assert_eq!(said, "mine");
}

#[tokio::test]
async fn broken_server_fails_its_call() {
    use FailureClass::{TooLarge, Tool};
    const SHELL: &str = "Start its command in a shell to see why.";
    const LESS: &str = "Ask for less, or raise max_bytes.";
    for (tool, args, class, says, advice) in [
        ("die", json!({}), Tool, "ended with exit code 3: it was ␛[2J ***", SHELL),
        ("loud", json!({}), Tool, "ended with exit code 5: line 19999 ***", SHELL),
        (
            "close_output",
            json!({}),
            Tool,
            "closed its standard output: nothing on standard error",
            SHELL,
        ),
        (
            "huge",
            json!({ "mib": 100 }),
            TooLarge,
            "sent a message larger than 1 MiB and was ended",
            LESS,
        ),
        (
            "large",
            json!({ "bytes": 1 << 20 }),
            TooLarge,
            "sent a message larger than 1 MiB and was ended",
            LESS,
        ),
        (
            "requests",
            json!({ "many": 100_000 }),
            Tool,
            "does not read its standard input: 1024 messages wait: nothing on standard error",
            SHELL,
        ),
    ] {
        let server = fake("plain");
        let (got, text) = fail(&server, tool, args).await;
        assert_eq!(text, format!("the MCP server shop {says}. {advice}"), "{tool}");
        assert_eq!(got, class, "{tool}");
        // The next attempt starts it again.
        assert_eq!(super::text(&server, "echo", json!({})).await, "{}", "{tool}");
    }
    let server = fake("plain");
    assert_eq!(text(&server, "large", json!({ "bytes": 1_000_000 })).await.len(), 1_000_000);
}

#[tokio::test]
async fn results_become_text() {
    let server = fake("plain");
    assert_eq!(
        text(&server, "parts", json!({})).await,
        "one\n[image image/png, 12.4 kB]\n[audio audio/wav, 3 bytes]\n\
         [resource notes.md text/plain: file:///n␛]\nits text\n[resource a/b, 6 bytes: file:///b]\n\
         [unknown part hologram]\nno part"
    );
    for (tool, says) in [
        ("no_result", "answered without content to a call of no_result"),
        ("task", "answered with a task, which roundtable does not offer, to a call of task"),
    ] {
        let text = format!("the MCP server shop {says}. Fix the server.");
        assert_eq!(fail(&server, tool, json!({})).await, (FailureClass::BadResponse, text));
    }
}

#[tokio::test]
async fn odd_results_are_read() {
    let server = fake("plain");
    let parts = |texts: &[&str]| -> Value {
        texts.iter().map(|text| json!({ "type": "text", "text": text })).collect()
    };
    for (result, says, structured) in [
        (
            json!({ "count": 1, "found": ["nut"] }),
            r#"{"count":1,"found":["nut"]}"#,
            json!({ "count": 1, "found": ["nut"] }),
        ),
        (json!({ "toolResult": ["nut"] }), r#"["nut"]"#, json!(["nut"])),
        (json!({ "content": "nut" }), "nut", Value::Null),
        (json!({ "content": ["nut", { "text": "bolt" }] }), "nut\nbolt", Value::Null),
        (json!({ "content": { "type": "text", "text": { "a": 1 } } }), r#"{"a":1}"#, Value::Null),
        (json!({ "content": [{ "a": 1 }] }), r#"{"a":1}"#, Value::Null),
        (json!({ "content": [], "_meta": {} }), "[no content]", Value::Null),
        (
            json!({ "content": parts(&["1 found"]), "structuredContent": { "found": ["nut"] } }),
            "1 found\n{\"found\":[\"nut\"]}",
            json!({ "found": ["nut"] }),
        ),
        // What the texts say already is not said twice.
        (
            json!({ "content": parts(&["{\"a\": 1}"]), "structuredContent": { "a": 1 } }),
            "{\"a\": 1}",
            json!({ "a": 1 }),
        ),
        (
            json!({ "content": parts(&["nut"]), "structuredContent": { "result": "nut" } }),
            "nut",
            json!({ "result": "nut" }),
        ),
        (
            json!({ "content": parts(&["a", "2"]), "structuredContent": { "result": ["a", 2] } }),
            "a\n2",
            json!({ "result": ["a", 2] }),
        ),
        (
            json!({ "content": [], "structuredContent": { "result": [] } }),
            "{\"result\":[]}",
            json!({ "result": [] }),
        ),
    ] {
        let read = call(&server, "result", json!({ "result": result })).await.expect("a result");
        assert_eq!(read.text, says, "{result}");
        assert_eq!(read.structured.unwrap_or_default(), structured, "{result}");
    }
    let failed = json!({ "isError": true, "structuredContent": { "why": "no nut" } });
    let failed = fail(&server, "result", json!({ "result": failed })).await;
    assert_eq!(failed, (FailureClass::Rejected, r#"{"why":"no nut"}"#.to_owned()));
}

/// Time is paused, so the program has not even started when the patience of the probe ends.
#[tokio::test(start_paused = true)]
async fn slow_program_is_asked_both_ways() {
    for mode in ["modern_only", "silent_discovery", "plain"] {
        let listed = fake(mode).list(&crate::gateway::NoHost).await;
        assert!(listed.is_ok_and(|tools| tools.len() == 8), "{mode}");
    }
    let refused = fake("refuses").list(&crate::gateway::NoHost).await.expect_err("refused");
    assert!(refused.text.contains("returned error -32602"), "{}", refused.text);
}

#[tokio::test]
async fn structured_result_must_fit_schema() {
    let server = fake("plain");
    // Nothing is checked before the tools were listed.
    call(&server, "bad_structured", json!({})).await.expect("no schema is known");
    list(&server).await.expect("tools");
    let result = call(&server, "structured", json!({})).await.expect("a result");
    assert_eq!(result.structured, Some(json!({ "total": 7, "token": "***" })));
    assert_eq!(result.text, "7 in all\n{\"total\":7,\"token\":\"***\"}");
    for (tool, says) in [
        (
            "bad_structured",
            "gave a structured result that does not fit its schema (the field `total` is not of \
             type number) to a call of bad_structured",
        ),
        (
            "no_structured",
            "answered without the structured result that it lists to a call of no_structured",
        ),
    ] {
        let text = format!("the MCP server shop {says}. Fix the server.");
        assert_eq!(fail(&server, tool, json!({})).await, (FailureClass::BadResponse, text));
    }
}

#[tokio::test]
async fn errors_of_tools_are_told_apart() {
    let server = fake("plain");
    let (class, text) = fail(&server, "failed", json!({})).await;
    assert_eq!((class, text.as_str()), (FailureClass::Rejected, "no ␛[2J such order ***"));
    let (_, text) = fail(&server, "failed", json!({ "more": 100_000 })).await;
    assert_eq!(text.chars().count(), 4_000);
    assert!(text.ends_with("x…"), "{text}");
    let (class, text) = fail(&server, "failed_silently", json!({})).await;
    assert_eq!(class, FailureClass::Rejected);
    assert_eq!(text, "failed_silently of the MCP server shop failed and says no more");
    for (code, class, advice) in [
        (-32602, FailureClass::Rejected, "Correct the arguments of the call."),
        (-32601, FailureClass::Rejected, "Call a tool that the server lists."),
        (-32603, FailureClass::Tool, "Look for it in the log of the server."),
    ] {
        let text = format!("the MCP server shop returned error {code}: so ␛[2J ***. {advice}");
        assert_eq!(fail(&server, "rpc_error", json!({ "code": code })).await, (class, text));
    }
    let closed = json!({ "reason": "closed", "since": "2026-01-05" });
    let args = json!({ "code": -32000, "says": "no", "data": closed });
    let (_, text) = fail(&server, "rpc_error", args).await;
    assert!(text.contains("error -32000: no***: {\"reason\":\"closed\",\"since\""), "{text}");
    let (_, text) = fail(&server, "failed", json!({ "structured": closed })).await;
    assert!(text.contains("{\"reason\":\"closed\",\"since\":\"2026-01-05\"}"), "{text}");
    let asks = json!({ "code": -32600, "says": "Cannot send 'elicitation/create' " });
    let (_, text) = fail(&server, "rpc_error", asks).await;
    assert!(
        text.ends_with("Set protocol_version = \"2025-11-25\" in its table of [mcp]."),
        "{text}"
    );
}

#[tokio::test]
async fn progress_reaches_its_call() {
    let (server, host) = (fake("plain"), TestHost::default());
    call_with(&server, "progress", json!({ "steps": [1, 2] }), &host).await.expect("done");
    // Steps that come together may be joined, and those after the result are dropped.
    for step in host.seen() {
        assert_eq!(step.text, format!("step {}", step.done));
        assert_eq!(step.total, Some(2.0));
    }
    let host = TestHost::default();
    let args = super::fields(json!({ "steps": [1], "hangs": true }));
    let hangs = server.call("progress", &args, &host);
    super::in_time(async {
        tokio::select! {
            ended = hangs => panic!("it ended: {ended:?}"),
            () = host.told.notified() => {}
        }
    })
    .await;
    assert_eq!(host.seen().len(), 1);
}

fn form() -> Value {
    json!({
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
    })
}

#[tokio::test]
async fn question_gets_reply_of_person() {
    let server = fake("plain");
    let name = json!({ "name": "Ada" });
    for (reply, result) in [
        (InputReply::Accept(name.clone()), json!({ "action": "accept", "content": name })),
        (InputReply::Decline, json!({ "action": "decline" })),
        (InputReply::Cancel, json!({ "action": "cancel" })),
    ] {
        let host = TestHost::replying(reply);
        let said = call_with(&server, "ask", json!({}), &host).await.expect("a result").text;
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said, json!({ "jsonrpc": "2.0", "id": "q1", "result": result }));
        let [asked] = &host.asked()[..] else { panic!("one question") };
        let InputRequest { from, text, schema } = asked;
        assert_eq!((from.as_str(), text.as_str()), ("shop", "Who are you?"));
        assert_eq!(*schema, form());
    }
}

#[tokio::test]
async fn forms_of_libraries_are_taken() {
    let of = |properties: Value| json!({ "type": "object", "properties": properties });
    let odd = of(json!({
        "name": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
        "size": { "type": "integer", "minimum": 1.0 },
        "phone": { "type": "string", "format": "phone" },
    }));
    let taken = of(json!({
        "name": { "type": "string" }, "size": { "type": "integer", "minimum": 1 },
        "phone": { "type": "string", "format": "phone" },
    }));
    for (mode, tool) in [("plain", "ask"), ("modern", "required")] {
        let host = TestHost::replying(InputReply::Accept(json!({ "size": 2 })));
        let said = call_with(&fake(mode), tool, json!({ "schema": odd }), &host).await;
        let said = said.expect("a result").text;
        assert!(said.contains(r#""content": {"size": 2}"#), "{said}");
        let [asked] = &host.asked()[..] else { panic!("one question") };
        assert_eq!(asked.schema, taken);
    }
}

#[tokio::test]
async fn question_outside_of_form_is_declined() {
    let (server, host) = (fake("plain"), TestHost::replying(InputReply::Accept(json!({}))));
    let said = call_with(&server, "ask_url", json!({}), &host).await.expect("a result").text;
    assert!(said.contains(r#"{"action": "decline"}"#), "{said}");
    call(&server, "ask_later", json!({})).await.expect("a result");
    // It asks now, and a list is no call.
    list(&server).await.expect("tools");
    assert_eq!(text(&server, "what_later", json!({})).await, "decline");
    assert!(host.asked().is_empty());
}

#[tokio::test]
async fn open_questions_are_bounded() {
    // Of 30, one is asked and 8 wait.
    let (host, args) = (TestHost::default(), json!({ "answers": 21 }));
    let said = call_with(&fake("plain"), "ask_many", args, &host).await.expect("done").text;
    assert_eq!(said, ["decline"; 21].join(" "));
    assert!(host.asked().len() <= 1);
}

#[tokio::test]
async fn result_ends_open_question() {
    let server = fake("plain");
    for (tool, says) in [("ask_and_forget", "answered myself"), ("ask_and_cancel", "done without")]
    {
        let said = call_with(&server, tool, json!({}), &TestHost::default()).await;
        assert_eq!(said.expect("a result").text, says);
    }
    assert_eq!(text(&server, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn latest_call_is_asked() {
    let server = fake("plain");
    let [first, second] = [TestHost::default(), TestHost::replying(InputReply::Decline)];
    let wait = super::fields(json!({ "steps": [1], "hangs": true }));
    let waits = server.call("progress", &wait, &first);
    let asks = async {
        first.told.notified().await;
        call_with(&server, "ask_for_other", json!({}), &second).await
    };
    let said = super::in_time(async {
        tokio::select! {
            ended = waits => panic!("it ended: {ended:?}"),
            said = asks => said,
        }
    })
    .await;
    assert_eq!(said.expect("a result").text, r#""decline""#);
    assert_eq!((first.asked().len(), second.asked().len()), (0, 1));
}

#[tokio::test]
async fn required_input_is_asked_for() {
    let server = fake("modern");
    let host = TestHost::replying(InputReply::Accept(json!({ "name": "Ada" })));
    let said = call_with(&server, "required", json!({}), &host).await.expect("a result").text;
    assert_eq!(
        said,
        r#"s2 {"where": {"action": "decline"}, "who": {"action": "accept", "content": {"name": "Ada"}}}"#
    );
    assert_eq!(host.asked().len(), 1);
    for (tool, class, says) in [
        (
            "required_for_ever",
            FailureClass::BadResponse,
            "needed input 10 times in one call. Fix the server.",
        ),
        (
            "required_sampling",
            FailureClass::Tool,
            "asks for what roundtable does not offer (sampling or roots). Use a tool that works \
             without it.",
        ),
    ] {
        let failed = call_with(&server, tool, json!({}), &host).await.expect_err("a failure");
        assert_eq!(checked(*failed), (class, format!("the MCP server shop {says}")));
    }
}

#[test]
fn unset_variable_is_reported_before_start() {
    let env = [("KEY".to_owned(), crate::scenario::spec::tool::Setting::Env("NONE".to_owned()))];
    let spec = super::spec_of("true", &[], env.into_iter().collect());
    let http = crate::net::Http::direct(crate::net::Reach::Internet);
    let missing = crate::tool::mcp::McpServer::new(spec, http, &super::environment).err();
    let missing: Vec<String> = missing.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(missing, ["KEY comes from $NONE, which is not set: set it and start again"]);
}
