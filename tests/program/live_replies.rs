//! Replies that are not what was asked for: what a live run does with each by default, with `repair`,
//! and with `ask_again`. The table of the documents is what these runs print.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::scene::{Scene, agreeing, payload};
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

const REPAIR: &str = r#"model.repair=["fences", "preface", "think", "case", "numbers"]"#;

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
async fn the_table_of_the_documents_is_what_happens() {
    let mut rows = vec![
        "| reply | by default | what is said of it | `repair` | `repair`, `ask_again = 1` |"
            .to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    let (mut plain, mut repaired, mut obeyed) = (0, 0, 0);
    for nth in 0..shapes().len() {
        let shape = || shapes().remove(nth);
        let always = saying(shape(), usize::MAX).await;
        let by_default = outcome_of(&always, &[]).await;
        let with_repair = outcome_of(&always, &[REPAIR]).await;
        let once = saying(shape(), 1).await;
        let with_both = outcome_of(&once, &[REPAIR, "model.ask_again=1"]).await;
        let detail = by_default["detail"].as_str();
        assert_eq!(detail.is_some(), by_default["status"] == "stopped", "{by_default}");
        for (count, outcome) in
            [(&mut plain, &by_default), (&mut repaired, &with_repair), (&mut obeyed, &with_both)]
        {
            *count += usize::from(outcome["status"] == "ok");
        }
        // What was asked again is a call, and no message of the table.
        let asked_again = with_repair["status"] == "stopped";
        let calls = if asked_again { 3 } else { 2 };
        assert_eq!(with_both["usage"]["calls"], calls, "{with_both}");
        rows.push(format!(
            "| {} | {} | {} | {} | {} |",
            shape().name,
            cell(&by_default),
            detail.unwrap_or(""),
            cell(&with_repair),
            if asked_again {
                "asked again, ".to_owned() + &cell(&with_both)
            } else {
                cell(&with_both)
            },
        ));
    }
    let table = rows.join("\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/replies.md");
    let document = fs::read_to_string(path).unwrap_or_default();
    assert!(document.contains(&table), "docs/replies.md should have this table:\n{table}\n");
    assert_eq!((plain, obeyed), (4, 15));
    assert!(repaired >= 11, "{repaired}");
}

#[tokio::test]
async fn the_model_is_told_what_is_wrong_in_the_same_conversation() {
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
async fn the_text_of_a_run_shows_how_a_refused_reply_begins() {
    let scene = saying(shapes().remove(4), usize::MAX).await;
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "text"];
    let ended = scene.run(&args).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.out.lines().find(|line| line.contains("not JSON")).expect("a line");
    assert!(line.contains("begins with ```json; repair = [\"fences\"] would remove it"), "{line}");
    assert!(line.contains("\"stance\":\"go\""), "{line}");
}

#[tokio::test]
async fn a_number_that_no_float_holds_is_named() {
    let said = good().to_string().replace("0.8", "1e999");
    let shape = Shape { name: "", message: json!({ "content": said }), finish: "stop" };
    let scene = saying(shape, usize::MAX).await;
    let outcome = outcome_of(&scene, &[]).await;
    let detail = outcome["detail"].as_str().expect("a detail");
    assert!(detail.contains("number out of range"), "{detail}");
}
