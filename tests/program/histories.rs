//! Live runs of agents at a server that is strict about histories: the real binary against a server of
//! the tests that refuses what `support::strict` lists, and wants back what it added to its replies.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::scene::Scene;
use crate::support::server::{Asking, STREAM_HEAD, answer};
use crate::support::strict;
use serde_json::{Value, json};

const TEAM: &str = r#"title = "The store"
pattern = "team"
goal = "How many are there?"
[team]
root = "boss"
[agents.boss]
description = "Answers"
instruction = "Count, then answer."
tools = ["count"]
members = ["clerk"]
[agents.clerk]
description = "Writes"
instruction = "Write."
[tools.count]
description = "Counts things"
args = { what = "what to count" }
[[tools.count.fixture.rows]]
result = { items = 7 }
"#;

const SWARM: &str = r#"title = "The desk"
pattern = "swarm"
goal = "I was charged twice."
[swarm]
root = "desk"
[agents.desk]
description = "Answers customers"
members = ["front", "billing"]
entry = "front"
[agents.front]
description = "Greets"
instruction = "Hand over what is about money."
[agents.billing]
description = "Knows money"
instruction = "Answer what is about money."
"#;

/// What the model replies: a text, or calls with the name and the arguments of each.
enum Said {
    Text(&'static str),
    Calls(Vec<(&'static str, Value)>),
}

fn hands_over(to: &str) -> Said {
    Said::Calls(vec![("transfer_to_agent", json!({ "agent_name": to }))])
}

fn message(said: &Said, nth: usize) -> Value {
    match said {
        Said::Text(text) => json!({ "role": "assistant", "content": text }),
        Said::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(at, (name, arguments))| {
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                let id = format!("call_{nth}_{at}_of_a_server_that_likes_its_ids_to_be_very_long");
                json!({ "index": at, "id": id, "type": "function", "function": function })
            });
            json!({ "role": "assistant", "content": null, "tool_calls": calls.collect::<Value>() })
        }
    }
}

/// The reply as a stream, with the thinking in two pieces.
fn stream(mut message: Value) -> Vec<u8> {
    strict::adorn(&mut message);
    let thought = message["reasoning_content"].as_str().expect("a text").to_owned();
    let (one, two) = thought.split_at(thought.len() / 2);
    let finish = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    message.as_object_mut().expect("fields").remove("reasoning_content");
    message["refusal"] = Value::Null;
    let event = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "object": "chat.completion.chunk", "choices": [choice] }))
    };
    let events = [
        event(json!({ "role": "assistant", "reasoning_content": one }), None),
        event(json!({ "reasoning_content": two }), None),
        event(message, None),
        event(json!({}), Some(finish)),
        "data: [DONE]\n\n".to_owned(),
    ];
    format!("{STREAM_HEAD}{}", events.concat()).into_bytes()
}

/// A server that refuses like a strict one, and else replies as `says` does to its `nth` request, from
/// 0.
async fn strict(says: impl Fn(usize, &Value) -> Said + Send + Sync + 'static) -> Scene {
    let asked = AtomicUsize::new(0);
    Scene::with(move |asking: &Asking| {
        if let Some(why) = strict::refusal(&asking.body) {
            return refused(&why);
        }
        let nth = asked.fetch_add(1, Ordering::Relaxed);
        stream(message(&says(nth, &asking.body), nth))
    })
    .await
}

fn refused(why: &str) -> Vec<u8> {
    let body = json!({ "error": { "message": why } }).to_string();
    answer("400 Bad Request", &["content-type: application/json", "connection: close"], &body)
}

async fn run(scene: &Scene, scenario: &str, more: &[&str]) -> Value {
    scene.home.write("s.toml", scenario);
    let args = ["run", "s.toml", "--live", "--trust", "--format", "json"];
    let ended = scene.run(&[&args[..], more].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

#[tokio::test]
async fn team_continues_after_misnamed_calls() {
    let count = |name| Said::Calls(vec![(name, json!({ "what": "x" }))]);
    let scene = strict(move |nth, _| match nth {
        0 => count("functions.count"),
        1 => count("count<|channel|>commentary"),
        2 => Said::Calls(vec![("count", json!({})), ("clerk", json!({ "request": "Write." }))]),
        3 => Said::Text("Written."),
        _ => Said::Text("Seven."),
    });
    let scene = scene.await;
    let outcome = run(&scene, TEAM, &[]).await;
    assert_eq!((&outcome["answer"], &outcome["degraded"]), (&json!("Seven."), &json!(false)));
    let asked = scene.asked();
    assert_eq!(asked.len(), 5);
    // The model receives the name that it wrote.
    let told = asked[1].body["messages"][3]["content"].as_str().expect("a result").to_owned();
    assert!(told.contains("functions.count"), "{told}");
    assert_eq!(
        asked[1].body["messages"][2]["tool_calls"][0]["function"]["name"],
        "functions_count"
    );
}

/// The swarm hands over, back, and over again; its next messages begin at the entry.
#[tokio::test]
async fn swarm_hands_back_and_follows_up() {
    let scene = strict(|nth, _| match nth {
        0 | 2 | 4 => hands_over("billing"),
        1 => hands_over("front"),
        _ => Said::Text("Refunded."),
    });
    let scene = scene.await;
    let session =
        run(&scene, SWARM, &["--message", "I was charged twice.", "--message", "And when?"]).await;
    let runs = session["session"].as_array().expect("two runs");
    let ends: Vec<_> = runs.iter().map(|run| (&run["answer"], &run["final_agent"])).collect();
    let refunded = (&json!("Refunded."), &json!("billing"));
    assert_eq!(ends, [refunded; 2]);
    let asked = scene.asked();
    assert_eq!(asked.len(), 6);
    let continued = |asking: &Asking| asking.body.to_string().contains("(continued)");
    assert!(continued(&asked[2]) && continued(&asked[4]));
}

/// The log has what the server added, so a fork gives it back too.
#[tokio::test]
async fn fork_returns_stored_history() {
    let scene = strict(|nth, _| match nth {
        0 => Said::Calls(vec![("count", json!({ "what": "x" }))]),
        _ => Said::Text("Seven."),
    });
    let scene = scene.await;
    run(&scene, TEAM, &[]).await;
    scene.asked();
    let forked = scene.run(&["fork", "last@ask:2:boss", "--format", "json"]).await;
    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert_eq!(forked.json()["answer"], "Seven.");
    let asked = scene.asked();
    assert_eq!(asked.len(), 1, "only the last call is made again");
    let said = &asked[0].body["messages"][2];
    assert_eq!(said["reasoning_content"], "0 bytes and 1 calls");

    let log = scene.run(&["export", "last"]).await.lines();
    let kept = |line: &Value| line["blocks"]["message"]["reasoning_content"].is_string();
    assert_eq!(log.iter().filter(|line| kept(line)).count(), 2);
    // A redacted log leaves it out.
    let redacted = scene.run(&["export", "last", "--redact"]).await.out;
    assert!(!redacted.contains("reasoning_content") && !redacted.contains("thought_signature"));
    // Another model does not get it.
    let set = ["fork", "last@ask:2:boss", "--set", "model.name=other", "--format", "json"];
    let other = scene.run(&set).await;
    assert_ne!(other.code, Some(0), "the strict server misses it: {other:?}");
    let asked = scene.asked();
    assert_eq!(asked[0].body["model"], "other");
    assert!(asked.iter().all(|it| !it.body.to_string().contains("thought_signature")));
}

/// DeepSeek's older models, Groq and Mistral refuse what they, or a server like them, have sent.
#[tokio::test]
async fn omits_refused_field_and_reports_once() {
    let refusals = [
        "property 'reasoning_content' is unsupported",
        "Extra inputs are not permitted: body.messages.2.assistant.reasoning_content",
        "The reasoning_content is an intermediate result and cannot be used in the input",
    ];
    for words in refusals {
        let asked = AtomicUsize::new(0);
        let scene = Scene::with(move |asking: &Asking| {
            if asking.body.to_string().contains("reasoning_content") {
                return refused(words);
            }
            stream(match asked.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => message(&Said::Calls(vec![("count", json!({ "what": "x" }))]), 0),
                _ => message(&Said::Text("Seven."), 0),
            })
        });
        let scene = scene.await;
        scene.home.write("s.toml", TEAM);
        let args = ["run", "s.toml", "--live", "--trust", "--format", "jsonl"];
        let ended = scene.run(&args).await;
        assert_eq!(ended.code, Some(0), "{words}: {ended:?}");
        let lines = ended.lines();
        let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
        let adapted = of("request.adapted");
        assert_eq!(adapted.len(), 1, "{words}");
        assert_eq!(adapted[0]["parameter"], "reasoning_content");
        assert!(of("call.retried").is_empty(), "it is no retry");
        assert_eq!(of("attempt.failed").len(), 1, "it is refused once");
        // Parts that are not refused are still sent.
        let asked = scene.asked();
        let last = &asked.last().expect("requests").body["messages"][2]["tool_calls"][0];
        assert_eq!(last["extra_content"]["google"]["thought_signature"], "count");
    }
}

#[tokio::test]
async fn drops_fields_above_limit() {
    let asked = AtomicUsize::new(0);
    let scene = Scene::with(move |_: &Asking| {
        let mut said = match asked.fetch_add(1, Ordering::Relaxed) {
            0 => message(&Said::Calls(vec![("count", json!({ "what": "x" }))]), 0),
            _ => message(&Said::Text("Seven."), 0),
        };
        said["pages"] = json!("x".repeat(257 << 10));
        stream(said)
    });
    let scene = scene.await;
    scene.home.write("s.toml", TEAM);
    let args = ["run", "s.toml", "--live", "--trust", "--format", "jsonl"];
    let lines = scene.run(&args).await.lines();
    let replies: Vec<_> = lines.iter().filter(|line| line["kind"] == "attempt.answered").collect();
    for reply in replies.iter().filter(|reply| reply.get("result").is_none()) {
        assert_eq!(reply.get("blocks"), None);
        assert_eq!(reply["ignored"], "unknown fields above 256 KiB");
    }
    assert!(scene.asked().iter().all(|it| !it.body.to_string().contains("pages")));
}

/// The limit is for the kept text, not for the pieces of a stream on the wire.
#[tokio::test]
async fn pieces_of_a_field_count_joined() {
    let asked = AtomicUsize::new(0);
    let scene = Scene::with(move |_: &Asking| {
        let said = match asked.fetch_add(1, Ordering::Relaxed) {
            0 => message(&Said::Calls(vec![("count", json!({ "what": "x" }))]), 0),
            _ => message(&Said::Text("Seven."), 0),
        };
        let thought = |_| {
            format!(
                "data: {}\n\n",
                json!({ "choices": [{ "index": 0, "delta": {
            "reasoning_content": " word", "reasoning_details": [{ "index": 0, "type": "text", "text": " word" }],
        } }] })
            )
        };
        let thoughts: String = (0..9_000).map(thought).collect();
        let said = String::from_utf8(stream(said)).expect("a stream");
        said.replacen(STREAM_HEAD, &format!("{STREAM_HEAD}{thoughts}"), 1).into_bytes()
    });
    let scene = scene.await;
    scene.home.write("s.toml", TEAM);
    scene.run(&["run", "s.toml", "--live", "--trust", "--format", "jsonl"]).await;
    let sent = scene.asked().last().expect("requests").body["messages"].to_string();
    assert_eq!(sent.matches(" word").count(), 18_000);
}

const WRITTEN: &str =
    "<tool_call>\n{\"name\": \"count\", \"arguments\": {\"what\": \"x\"}}\n</tool_call>";

#[tokio::test]
async fn corrects_textual_call_once() {
    let scene = strict(|nth, body| match nth {
        0 => Said::Text(WRITTEN),
        1 => {
            let told = body["messages"].as_array().and_then(|said| said.last()).expect("messages");
            assert!(told["content"].as_str().is_some_and(|text| text.contains("tool call")));
            Said::Calls(vec![("count", json!({ "what": "x" }))])
        }
        _ => Said::Text("Seven."),
    });
    let scene = scene.await;
    // A replay wants a scenario that can be played offline.
    let script = |agent: &str| format!("[[script]]\nagent = \"{agent}\"\ntext = \"Nothing.\"\n");
    let scenario = format!("{TEAM}{}{}", script("boss"), script("clerk"));
    let outcome = run(&scene, &scenario, &[]).await;
    assert_eq!((&outcome["answer"], &outcome["degraded"]), (&json!("Seven."), &json!(false)));
    assert_eq!(outcome["usage"]["calls"], 4, "three of the model, one of the tool");
    assert_eq!(outcome.get("written_calls"), None);
    // The recording answers in the same way, with all three prompts.
    let replayed =
        scene.run(&["run", "s.toml", "--replay", "last", "--trust", "--format", "json"]).await;
    assert_eq!(replayed.json()["answer"], "Seven.", "{replayed:?}");
}

#[tokio::test]
async fn marks_repeated_textual_call() {
    let scene = strict(|_, _| Said::Text(WRITTEN)).await;
    let outcome = run(&scene, TEAM, &[]).await;
    assert_eq!(scene.asked().len(), 2, "it is told once");
    assert_eq!(outcome["degraded"], true);
    assert_eq!(outcome["written_calls"][0]["who"], "boss");
    let text = scene.run(&["show", "last", "--format", "text"]).await.out;
    assert!(text.contains("its answer is a tool call written as text"), "{text}");
    assert!(text.contains("degraded"), "{text}");

    // A scripted run is marked only.
    let row = format!("{TEAM}[[script]]\nagent = \"boss\"\ntext = '''{WRITTEN}'''\n");
    scene.home.write("scripted.toml", &row);
    let scripted =
        scene.run(&["run", "scripted.toml", "--trust", "--instant", "--format", "json"]).await;
    assert_eq!(scripted.code, Some(0), "{scripted:?}");
    let outcome = scripted.json();
    assert_eq!((&outcome["degraded"], &outcome["usage"]["calls"]), (&json!(true), &json!(1)));
    assert_eq!(outcome["answer"], WRITTEN);
}
