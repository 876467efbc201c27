//! Which model answers whom in a live run: the real binary against servers of the tests.

use crate::support::scene::{Scene, agreeing, ended};
use crate::support::server::{Asking, KEY, answer};
use crate::support::{binary, scene};
use serde_json::json;

/// A table of two, one of whom has a model of another provider, and a brief by a third model.
const TABLE: &str = r#"
title = "A mixed table"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
min_go_votes = 2
[collaboration]
sequence = ["first", "second"]
concurrency = "sequential"
finalize_prompt = "Write the brief."
finalize_model = "openai/writer"
[roles.first]
prompt = "You judge."
[roles.second]
prompt = "You judge too."
model = "gemini/other"
[model]
name = "usual"
stream = false
"#;

/// The models that were asked, in their order.
fn models(asked: &[Asking]) -> Vec<&str> {
    asked.iter().map(|it| it.body["model"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn each_seat_uses_own_model_address() {
    let (scene, other) = (Scene::with(agreeing).await, Scene::with(agreeing).await);
    scene.home.write("table.toml", TABLE);
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "jsonl"];
    let mut command = scene.command(&args);
    command.env("GEMINI_API_KEY", "gemini-key-1");
    command.env("GEMINI_BASE_URL", format!("http://{}/v1", other.host));
    let ended = ended(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (asked, elsewhere) = (scene.asked(), other.asked());
    assert_eq!((models(&asked), models(&elsewhere)), (vec!["usual", "writer"], vec!["other"]));
    assert!(asked.iter().all(|it| it.head.contains(KEY) && !it.head.contains("gemini-key")));
    assert!(elsewhere.iter().all(|it| it.head.contains("gemini-key-1") && !it.head.contains(KEY)));
    // The log says which model each call asks, and the head names all of them.
    let lines: Vec<serde_json::Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let called: Vec<&str> = lines
        .iter()
        .filter(|line| line["kind"] == "call.started")
        .map(|line| line["model"].as_str().expect("a model"))
        .collect();
    assert_eq!(called, ["usual", "other", "writer"]);
    assert_eq!(lines[0]["model"]["name"], "usual, other, writer", "{}", lines[0]);
}

#[tokio::test]
async fn command_line_overrides_file_and_model() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let args = ["run", "table.toml", "--headless", "--live", "--trust"];
    let run = |more: &'static [&'static str]| {
        let command = scene.command(&[&args, more].concat());
        ended(command)
    };
    let given = run(&["--model", "openai/asked-for"]).await;
    assert_eq!(given.code, Some(0), "{given:?}");
    // A server of one's own gets the name as it was given.
    assert_eq!(models(&scene.asked()), ["openai/asked-for"; 3]);
    let set = run(&["--model", "asked-for", "--set", "roles.second.model=set"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(models(&scene.asked()), ["asked-for", "set", "asked-for"]);
    let usual = run(&["--model", "asked-for", "--set", "model.name=set"]).await;
    assert_eq!(usual.code, Some(0), "{usual:?}");
    assert_eq!(models(&scene.asked()), ["set"; 3]);
}

#[tokio::test]
async fn missing_key_error_names_seat() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let ended = scene.run(&["run", "table.toml", "--headless", "--live", "--trust"]).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [
        "roles.second.model names gemini/other",
        "GEMINI_API_KEY is not set",
        "--set roles.second.model=PROVIDER/MODEL",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert!(scene.asked().is_empty(), "nobody is asked");
}

#[tokio::test]
async fn ambiguous_keys_error_shows_both_choices() {
    let scene = Scene::with(agreeing).await;
    let mut command = scene.home.command(&["run", "checkout-unanimous", "--headless", "--live"]);
    command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", "other-key-1");
    let ended = ended(command).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [
        "OPENAI_API_KEY and ANTHROPIC_API_KEY are set",
        "--model openai/gpt-4.1-mini",
        "[model] name = \"openai/gpt-4.1-mini\"",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
}

#[tokio::test]
async fn failure_names_host_of_model() {
    let (scene, other) = (
        Scene::with(agreeing).await,
        Scene::with(|_| {
            let body = json!({ "error": { "message": "not here" } }).to_string();
            answer("404 Not Found", &["connection: close"], &body)
        })
        .await,
    );
    scene.home.write("table.toml", TABLE);
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "json"];
    let mut command = scene.command(&args);
    command.env("GEMINI_API_KEY", "gemini-key-1");
    command.env("GEMINI_BASE_URL", format!("http://{}/v1", other.host));
    let ended = ended(command).await;
    let outcome = ended.json();
    assert_eq!(outcome["stop_reason"], "llm_error:http_404");
    let error = outcome["error"].as_str().expect("an error");
    assert!(error.contains(&other.host), "{error}");
    assert!(!error.contains(&scene.host), "{error}");
}

#[tokio::test]
async fn mixed_table_needs_keys_or_model() {
    let scene = Scene::with(agreeing).await;
    let ended = scene.run(&["run", "mixed-table", "--headless", "--live"]).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [
        "roles.reliability_engineer.model names anthropic/claude-haiku-4-5",
        "ANTHROPIC_API_KEY is not set",
        "--set roles.reliability_engineer.model=PROVIDER/MODEL",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let args = ["run", "mixed-table", "--headless", "--live", "--model", "openai/one-for-all"];
    let ended = scene.run(&args).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(models(&scene.asked()), ["openai/one-for-all"; 4]);
}

/// What a Messages endpoint answers at a table that agrees.
fn agreeing_by_messages(asking: &Asking) -> Vec<u8> {
    let content = &asking.body["messages"][0]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str()).expect("a user's text");
    let payload: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let said = json!({
        "agent": payload["role"],
        "stance": "go",
        "summary": "Fine by me.",
        "confidence": 0.9,
        "actions": ["Start"],
    });
    let body = json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-that-answered",
        "content": [{ "type": "text", "text": said.to_string() }],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 50,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 20,
            "output_tokens": 10,
        },
    });
    let head = ["content-type: application/json", "connection: close"];
    answer("200 OK", &head, &body.to_string())
}

#[tokio::test]
async fn anthropic_seat_counts_cached_tokens() {
    let (scene, claude) = (Scene::with(agreeing).await, Scene::with(agreeing_by_messages).await);
    scene.home.write("table.toml", TABLE);
    let set = ["--set", "roles.second.model=anthropic/claude-x"];
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "json"];
    let mut command = scene.command(&[&args[..], &set].concat());
    command.env("ANTHROPIC_API_KEY", "claude-key-1");
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", claude.host));
    let ended = ended(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let asked = claude.asked();
    assert_eq!(models(&asked), ["claude-x"]);
    let head = asked[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/messages "), "{head}");
    assert!(head.contains("x-api-key: claude-key-1"), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert_eq!(asked[0].body["max_tokens"], 4096);
    let usage = &ended.json()["usage"];
    assert_eq!(usage["prompt_tokens"], 100 + 100 + 100, "what the cache took is part of it");
    assert_eq!((&usage["cached_tokens"], &usage["cache_write_tokens"]), (&json!(30), &json!(20)));
}

/// The lines of standard output that tell of this.
fn told<'a>(ended: &'a binary::Ended, of: &str) -> Vec<&'a str> {
    ended.out.lines().filter(|line| line.contains(of)).collect()
}

#[tokio::test]
async fn text_names_models_when_several() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "text"];
    let set = ["--set", "roles.second.model=other", "--set", "collaboration.finalize_model=writer"];
    let several = scene.run(&[&args[..], &set].concat()).await;
    assert_eq!(several.code, Some(0), "{several:?}");
    assert_eq!(told(&several, "first (usual)  Fine by me.").len(), 1, "{}", several.out);
    assert_eq!(told(&several, "second (other)  Fine by me.").len(), 1, "{}", several.out);
    // The same model for each, however it is named: the first line says it once.
    let set = ["--set", "roles.second.model=usual", "--set", "collaboration.finalize_model=usual"];
    let one = scene.run(&[&args[..], &set].concat()).await;
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!(told(&one, "usual").len(), 1, "{}", one.out);
    assert_eq!(told(&one, "first  Fine by me.").len(), 1, "{}", one.out);
}

/// A coordinator that consults one member, whose models differ.
const TEAM: &str = r#"
title = "Two models"
pattern = "team"
goal = "Ask the other."
[budget]
max_seconds = 30
[team]
root = "lead"
[agents.lead]
description = "Leads"
instruction = "Consult."
members = ["expert"]
model = "big"
[agents.expert]
description = "Knows"
instruction = "Answer."
model = "small"
[model]
name = "usual"
stream = false
"#;

fn consults(asking: &Asking) -> Vec<u8> {
    let messages = asking.body["messages"].as_array().expect("messages");
    let last = messages.last().expect("one");
    if asking.body["model"] == "big" && last["role"] != "tool" {
        let call = json!({
            "id": "c1", "type": "function",
            "function": { "name": "expert", "arguments": "{\"request\":\"Say it.\"}" },
        });
        let message = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
        let body = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
        return answer("200 OK", &["content-type: application/json"], &body.to_string());
    }
    scene::completion("It is said.")
}

#[tokio::test]
async fn team_lines_name_speaker_model() {
    let scene = Scene::with(consults).await;
    scene.home.write("team.toml", TEAM);
    let args = ["run", "team.toml", "--headless", "--live", "--trust", "--format", "text"];
    let ended = scene.run(&args).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in
        ["lead (big)  expert: Say it.", "expert (small)  It is said.", "lead (big)  It is said."]
    {
        assert_eq!(told(&ended, line).len(), 1, "{line}: {}", ended.out);
    }
}

/// The risk analyst blocks in the first round; who agrees, agrees.
fn blocking_once(asking: &Asking) -> Vec<u8> {
    let payload = scene::payload(asking);
    if payload["role"] != "risk_analyst" || payload["recent_rounds"] != json!([]) {
        return agreeing(asking);
    }
    let said = json!({
        "stance": "block",
        "summary": "Nobody has rehearsed the fail-over.",
        "confidence": 0.7,
        "actions": ["Rehearse it"],
    });
    scene::completion(&said.to_string())
}

#[tokio::test]
async fn seat_reads_arguments_of_others() {
    let scene = Scene::with(blocking_once).await;
    let args = ["run", "checkout-launch", "--headless", "--live", "--format", "json"];
    let ended = scene.run(&args).await;
    assert_eq!(ended.json()["rounds_used"], 2, "{ended:?}");
    let asked = scene.asked();
    let second = asked.iter().map(scene::payload).find(|payload| {
        payload["role"] == "demand_analyst" && payload["recent_rounds"] != json!([])
    });
    let second = second.expect("demand is asked in round 2");
    let argued = &second["recent_rounds"][0]["stances"][2];
    assert_eq!(argued["summary"], "Nobody has rehearsed the fail-over.");
    assert_eq!(argued["actions"], json!(["Rehearse it"]));
    assert_eq!(second["flags"], json!({ "legal_analyst": false }));
    let set = ["--set", "collaboration.share=stances"];
    scene.run(&[&args[..], &set].concat()).await;
    let asked = scene.asked();
    let stances = asked.iter().map(scene::payload).find(|it| it["recent_rounds"] != json!([]));
    let stances = stances.expect("a second round")["recent_rounds"][0]["stances"][2].clone();
    assert_eq!(stances, json!({ "agent": "risk_analyst", "stance": "block", "confidence": 0.7 }));
}
