//! Replies in another form than requested: how a live run handles each by default, without a second
//! call, and with `repair`. The table of the documents is the output of these runs.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::scene::{Scene, agreeing, completion, payload};
use crate::support::server::{Asking, answer};
use serde_json::{Value, json};

const TABLE: &str = r#"
title = "A table of one"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
max_messages = 1
min_go_votes = 1
[collaboration]
sequence = ["demand_analyst"]
finalize_prompt = "Write the brief."
[roles.demand_analyst]
prompt = "You judge."
"#;

/// A reply as the endpoint gives it: its message and why it ended.
struct Shape {
    name: &'static str,
    message: Value,
    finish: &'static str,
}

fn good() -> Value {
    json!({
        "agent": "demand_analyst",
        "stance": "go",
        "summary": "Fine by me.",
        "confidence": 0.8,
        "actions": ["Start"],
    })
}

/// The good reply with other fields.
fn with(fields: Value) -> String {
    let mut reply = good();
    for (key, value) in fields.as_object().expect("fields") {
        reply[key] = value.clone();
    }
    reply.to_string()
}

fn without(key: &str) -> String {
    let mut reply = good();
    reply.as_object_mut().expect("an object").remove(key);
    reply.to_string()
}

fn shapes() -> Vec<Shape> {
    let good = good().to_string();
    let said = |name, text: String| Shape {
        name,
        message: json!({ "role": "assistant", "content": text }),
        finish: "stop",
    };
    let ended = |name, text: &str, finish| Shape { finish, ..said(name, text.to_owned()) };
    vec![
        said("plain JSON", good.clone()),
        Shape {
            name: "JSON, with `reasoning_content` next to it",
            message: json!({ "content": good, "reasoning_content": "Let me think." }),
            finish: "stop",
        },
        said("a key more than the contract", with(json!({ "notes": "none" }))),
        said("five actions", with(json!({ "actions": ["a", "b", "c", "d", "e"] }))),
        said("in a code fence", format!("```json\n{good}\n```")),
        said("after \"Here is the JSON:\"", format!("Here is the JSON:\n{good}")),
        said("after `<think>…</think>`", format!("<think>\nIs {{it}} so?\n</think>\n{good}")),
        said("agent `\"Demand Analyst\"`", with(json!({ "agent": "Demand Analyst" }))),
        said("stance `\"GO\"`", with(json!({ "stance": "GO" }))),
        said("confidence `80`", with(json!({ "confidence": 80 }))),
        said("confidence `\"0.8\"`", with(json!({ "confidence": "0.8" }))),
        said(
            "a comma after the last value",
            format!("{},}}", good.strip_suffix('}').expect("an object")),
        ),
        said("in a list with one entry", format!("[{good}]")),
        said("inside `{\"response\": …}`", json!({ "response": self::good() }).to_string()),
        said("as a text inside JSON", json!(good).to_string()),
        said("no `agent`", without("agent")),
        said("no `actions`", without("actions")),
        ended("cut off at the token limit", &good[..40], "length"),
        ended("ended by a content filter", "", "content_filter"),
        ended("empty", "", "stop"),
    ]
}

fn body(shape: &Shape) -> Vec<u8> {
    let body = json!({
        "choices": [{ "message": shape.message, "finish_reason": shape.finish }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10 },
    });
    answer("200 OK", &["content-type: application/json", "connection: close"], &body.to_string())
}

/// An endpoint whose seat replies in this shape so many times, and as it should after that.
async fn saying(shape: Shape, times: usize) -> Scene {
    let asked = AtomicUsize::new(0);
    let scene = Scene::with(move |asking: &Asking| {
        let of_seat = payload(asking)["role"].is_string();
        match of_seat && asked.fetch_add(1, Ordering::Relaxed) < times {
            true => body(&shape),
            false => agreeing(asking),
        }
    });
    let scene = scene.await;
    scene.home.write("table.toml", TABLE);
    scene
}

const REPAIR: &str = r#"model.repair=["fences", "preface", "think", "case", "numbers", "commas", "list", "wrapper", "encoded"]"#;

async fn outcome_of(scene: &Scene, sets: &[&str]) -> Value {
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "json"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    scene.run(&args.into_iter().chain(sets).collect::<Vec<_>>()).await.json()
}

fn cell(outcome: &Value) -> String {
    match outcome["stop_reason"].as_str().expect("a reason") {
        "success" => "taken".to_owned(),
        reason => format!("`{reason}`"),
    }
}

#[tokio::test]
async fn reply_table_matches_documentation() {
    let mut rows = vec![
        "| reply | `ask_again = 0` | what is said of it | `repair`, `ask_again = 0` | by default |"
            .to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    let (mut plain, mut repaired, mut obeyed) = (0, 0, 0);
    for nth in 0..shapes().len() {
        let shape = || shapes().remove(nth);
        let always = saying(shape(), usize::MAX).await;
        let at_once = outcome_of(&always, &["model.ask_again=0"]).await;
        let with_repair = outcome_of(&always, &[REPAIR, "model.ask_again=0"]).await;
        let once = saying(shape(), 1).await;
        let by_default = outcome_of(&once, &[]).await;
        let detail = at_once["detail"].as_str();
        let asked_again = at_once["status"] == "stopped";
        assert_eq!(detail.is_some(), asked_again, "{at_once}");
        for (count, outcome) in
            [(&mut plain, &at_once), (&mut repaired, &with_repair), (&mut obeyed, &by_default)]
        {
            *count += usize::from(outcome["status"] == "ok");
        }
        // A second call for a reply is a call, and no message of the table.
        let calls = if asked_again { 3 } else { 2 };
        assert_eq!(by_default["usage"]["calls"], calls, "{by_default}");
        rows.push(format!(
            "| {} | {} | {} | {} | {} |",
            shape().name,
            cell(&at_once),
            detail.unwrap_or("").replace('<', "&lt;"),
            cell(&with_repair),
            if asked_again {
                "asked again, ".to_owned() + &cell(&by_default)
            } else {
                cell(&by_default)
            },
        ));
    }
    let table = rows.join("\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/replies.md");
    let document = fs::read_to_string(path).unwrap_or_default();
    assert!(document.contains(&table), "docs/replies.md should have this table:\n{table}\n");
    assert_eq!((plain, repaired, obeyed), (5, 16, 20));
}

#[tokio::test]
async fn correction_continues_same_conversation() {
    let shape = || shapes().into_iter().find(|shape| shape.name == "no `actions`").expect("one");
    let scene = saying(shape(), 2).await;
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "jsonl"];
    let ended = scene.run(&[&args[..], &["--set", "model.ask_again=2"]].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let asked = scene.asked();
    assert_eq!(asked.len(), 4, "three times the seat, and the brief");
    let messages = |nth: usize| asked[nth].body["messages"].as_array().expect("messages").clone();
    assert_eq!(messages(0).len(), 2);
    assert_eq!(messages(1)[..2], messages(0)[..]);
    assert_eq!(messages(1)[2]["role"], "assistant");
    assert_eq!(messages(1)[2]["content"], without("actions"));
    assert_eq!(messages(1)[3]["role"], "user");
    let told = messages(1)[3]["content"].as_str().expect("a text").to_owned();
    assert!(told.starts_with("Your reply was refused: keys missing: actions."), "{told}");
    assert_eq!(messages(2)[..4], messages(1)[..]);
    assert_eq!(messages(2).len(), 6);
    let lines = ended.lines();
    let of =
        |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["kind"] == kind).collect() };
    let refused = of("reply.refused");
    let again: Vec<_> = refused.iter().map(|line| &line["repeat"]).collect();
    assert_eq!(again, [&json!(1), &json!(2)]);
    assert_eq!(refused[0]["reason"], "invalid_contribution:missing_keys");
    assert!(refused[0]["preview"].as_str().is_some_and(|text| text.starts_with("{\"agent\"")));
    let calls: Vec<_> = of("call.started").iter().map(|line| line["repeat"].clone()).collect();
    assert_eq!(calls, [Value::Null, json!(1), json!(2), Value::Null]);
    assert_eq!(of("contribution.accepted")[0]["messages"], 1);
    assert!(of("contribution.refused").is_empty());
}

#[tokio::test]
async fn text_shows_start_of_refused_reply() {
    let scene = saying(shapes().remove(4), usize::MAX).await;
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "text"];
    let ended = scene.run(&args).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.out.lines().find(|line| line.contains("not JSON")).expect("a line");
    assert!(line.contains("begins with ```json; repair = [\"fences\"] would remove it"), "{line}");
    assert!(line.contains("\"stance\":\"go\""), "{line}");
}

#[tokio::test]
async fn error_names_number_beyond_float() {
    let said = good().to_string().replace("0.8", "1e999");
    let shape = Shape { name: "", message: json!({ "content": said }), finish: "stop" };
    let scene = saying(shape, usize::MAX).await;
    let outcome = outcome_of(&scene, &[]).await;
    let detail = outcome["detail"].as_str().expect("a detail");
    assert!(detail.contains("number out of range"), "{detail}");
}

/// A coordinator that consults no agent.
const ALONE: &str = r#"
title = "One agent"
pattern = "team"
goal = "How many?"
[team]
root = "lead"
[agents.lead]
description = "Counts."
instruction = "Count."
members = ["clerk"]
[agents.clerk]
description = "Writes letters."
instruction = "Write."
"#;

#[tokio::test]
async fn removes_thinking_from_briefs_and_answers() {
    let scene = Scene::with(|asking: &Asking| {
        let is_seat = || payload(asking)["role"].is_string();
        match asking.body["messages"][1]["content"].as_str() {
            Some(user) if user.starts_with('{') && is_seat() => agreeing(asking),
            _ => completion("<think>\nIt is so.\n</think>\n\nSeven."),
        }
    });
    let scene = scene.await;
    scene.home.write("table.toml", TABLE);
    scene.home.write("alone.toml", ALONE);
    for file in ["table.toml", "alone.toml"] {
        let args = ["run", file, "--headless", "--live", "--trust", "--format", "jsonl"];
        let ended = scene.run(&[&args[..], &["--set", "model.repair=think"]].concat()).await;
        let answer = |line: &&Value| line["kind"] == "answer.composed";
        let lines = ended.lines();
        assert_eq!(lines.iter().find(answer).expect("an answer")["text"], "Seven.", "{file}");
        let repaired: Vec<_> = lines.iter().filter(|it| it["kind"] == "reply.repaired").collect();
        assert_eq!(repaired.len(), 1, "{file}");
        assert_eq!(repaired[0]["repair"], "think", "{file}");
        // Without the repair a text stays as it came.
        let plain = scene.run(&args).await.lines();
        let text = plain.iter().find(answer).expect("an answer")["text"].clone();
        assert!(text.as_str().is_some_and(|text| text.starts_with("<think>")), "{file}: {text}");
    }
}
