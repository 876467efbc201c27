//! What live runs of the real binary cost.

use crate::support::scene::{Scene, agreeing, ended};
use crate::support::server::answer;

const TABLE: &str = r#"
title = "A mixed table"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
min_go_votes = 2
[collaboration]
sequence = ["first", "second"]
finalize_prompt = "Write the brief."
[roles.first]
prompt = "You judge."
[roles.second]
prompt = "You judge too."
model = "openai/dear"
[model]
name = "openai/gpt-4.1-mini"
stream = false
"#;

/// The person's own prices. Those of the table hold at OpenAI's own address, not at that of the tests.
const CONFIG: &str = "[prices.\"openai/dear\"]\ninput = 100\noutput = 1000\n\
     [prices.\"gpt-4.1-mini\"]\ninput = 0.4\noutput = 1.6\n";

const ARGS: [&str; 5] = ["run", "table.toml", "--headless", "--live", "--trust"];

async fn usage(scene: &Scene, more: &[&str]) -> serde_json::Value {
    let args = [&ARGS[..], &["--format", "json"], more].concat();
    let ended = ended(scene.command(&args)).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()["usage"].clone()
}

#[tokio::test]
async fn live_run_estimates_cost() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    scene.home.write("config/roundtable/config.toml", CONFIG);
    // Each reply is 100 tokens and 10: two of one model, one of the other.
    let found = usage(&scene, &[]).await;
    let dollars = 2.0 * (100.0 * 0.4 + 10.0 * 1.6) / 1e6 + (100.0 * 100.0 + 10.0 * 1_000.0) / 1e6;
    assert!((found["cost_usd"].as_f64().expect("a cost") - dollars).abs() < 1e-9, "{found}");
    assert_eq!(found["cost_note"], "estimate");
    for (option, sign) in [(&[][..], "≈ $0.0201"), (&["--ascii"], "~ $0.0201")] {
        let args = [&ARGS[..], &["--format", "text"], option].concat();
        let text = ended(scene.command(&args)).await.out;
        let done = text.lines().find(|line| line.contains("DONE")).expect("its last line");
        assert!(done.contains(sign), "{done}");
    }
    // The scenario's own price goes before both.
    let own = "model.prices={ prompt_usd_per_million = 1000, completion_usd_per_million = 0 }";
    let found = usage(&scene, &["--set", own]).await;
    assert!((found["cost_usd"].as_f64().expect("a cost") - 0.3).abs() < 1e-9, "{found}");
}

/// Gemini and xAI count what a model thinks beside the reply: money and tokens are those of both.
#[tokio::test]
async fn separate_thinking_is_charged() {
    let gemini = r#"{"prompt_tokens":100,"completion_tokens":10,"total_tokens":2110}"#;
    let xai = r#"{"prompt_tokens":100,"completion_tokens":10,"total_tokens":2110,"completion_tokens_details":{"reasoning_tokens":2000}}"#;
    for counted in [gemini, xai] {
        let scene = Scene::with(move |asking| {
            let reply = String::from_utf8(agreeing(asking)).expect("text");
            let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
            let mut body: serde_json::Value = serde_json::from_str(body).expect("JSON");
            body["usage"] = serde_json::from_str(counted).expect("JSON");
            let headers = ["content-type: application/json", "connection: close"];
            answer("200 OK", &headers, &body.to_string())
        })
        .await;
        scene.home.write("table.toml", TABLE);
        scene.home.write("config/roundtable/config.toml", CONFIG);
        let found = usage(&scene, &[]).await;
        let dollars =
            2.0 * (100.0 * 0.4 + 2_010.0 * 1.6) / 1e6 + (100.0 * 100.0 + 2_010.0 * 1_000.0) / 1e6;
        assert!((found["cost_usd"].as_f64().expect("a cost") - dollars).abs() < 1e-9, "{found}");
        assert_eq!(
            (&found["completion_tokens"], &found["reasoning_tokens"]),
            (&6_030.into(), &6_000.into())
        );
        // Each call is expected to use some 50 tokens and 100; the first alone uses more than the limit.
        let limits = [
            "--set",
            "budget.max_total_tokens=2000",
            "--set",
            "model.max_tokens=100",
            "--set",
            "collaboration.concurrency=sequential",
        ];
        let args = [&ARGS[..], &["--format", "json"], &limits].concat();
        let stopped = ended(scene.command(&args)).await;
        assert_eq!(
            (stopped.code, &stopped.json()["stop_reason"]),
            (Some(4), &"max_tokens_budget".into())
        );
        assert_eq!(stopped.json()["usage"]["completion_tokens"], 2_010);
    }
}

#[tokio::test]
async fn unpriced_model_leaves_cost_unknown() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let found = usage(&scene, &[]).await;
    assert_eq!(
        (&found["cost_usd"], &found["prompt_tokens"]),
        (&serde_json::Value::Null, &300.into())
    );
    assert_eq!(found.get("cost_note"), None);
    let args = [&ARGS[..], &["--format", "text"]].concat();
    let text = ended(scene.command(&args)).await.out;
    assert!(text.contains(", tokens 300 in, 30 out") && !text.contains('$'), "{text}");
}

/// A server on this machine has no bill, with any name of its model.
#[tokio::test]
async fn own_server_has_no_list_price() {
    let scene = Scene::with(agreeing).await;
    let args = ["run", "checkout-unanimous", "--live", "--format", "json"];
    let mut command = scene.home.command(&args);
    command.env("OPENAI_BASE_URL", format!("http://{}/v1", scene.host));
    let found = ended(command).await.json()["usage"].clone();
    assert_eq!(
        (&found["cost_usd"], &found["prompt_tokens"]),
        (&serde_json::Value::Null, &400.into())
    );
    // A limit on money is refused before anything is asked, with what to set.
    let before = scene.asked().len();
    let limited = [&args[..], &["--set", "budget.max_cost_usd=1"]].concat();
    let refused = scene.run(&limited).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = format!("the price of openai/gpt-4.1-mini at {} is unknown", scene.host);
    assert!(refused.err.contains(&said), "{}", refused.err);
    assert_eq!((before, scene.asked().len()), (4, 0));
}

#[tokio::test]
async fn live_run_head_has_model_prices() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let args = [&ARGS[..], &["--format", "jsonl"]].concat();
    let own = "[prices.\"gpt-4.1-mini\"]\ninput = 0.4\noutput = 1.6\ncached = 0.1\n";
    let price = serde_json::json!({ "input": 0.4, "output": 1.6, "cached": 0.1 });
    let mut priced = serde_json::json!([{ "model": "gpt-4.1-mini" }, { "model": "dear" }]);
    // The table's price does not hold at an address that is not the provider's own.
    let lines = ended(scene.command(&args)).await.lines();
    assert_eq!(lines[0]["model_prices"], priced, "{}", lines[0]);
    scene.home.write("config/roundtable/config.toml", own);
    let lines = ended(scene.command(&args)).await.lines();
    priced[0]["price"] = price;
    assert_eq!(lines[0]["model_prices"], priced, "{}", lines[0]);
    // A scripted run asks none of them.
    let args = ["run", "table.toml", "--instant", "--format", "jsonl", "--set"];
    let script = "script=[{ step = \"finalize\", text = \"Done.\" }, { reply = { stance = \"go\", summary = \"s\", confidence = 1, actions = [\"a\"] } }]";
    let lines = scene.home.run(&[&args[..], &[script]].concat()).lines();
    assert_eq!(lines[0].get("model_prices"), None);
    assert_eq!(lines.last().expect("an outcome")["usage"]["cost_usd"], serde_json::Value::Null);
}
