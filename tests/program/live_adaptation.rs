//! What a live run does where its endpoint refuses a parameter: the real binary against servers of the
//! tests that refuse in the words of real ones.

use crate::support::scene::{Scene, agreeing};
use crate::support::server::{Asking, answer};
use serde_json::{Value, json};

/// A table of three that speaks at once, with every setting that a server may refuse.
const TABLE: &str = r#"
title = "A table"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
min_go_votes = 3
[collaboration]
sequence = ["first", "second", "third"]
finalize_prompt = "Write the brief."
[roles.first]
prompt = "You judge."
[roles.second]
prompt = "You judge too."
[roles.third]
prompt = "You judge as well."
[model]
temperature = 0.2
max_tokens = 500
reasoning_effort = "low"
"#;

/// Whether a body has what a server refuses.
type Refuses = fn(&Value) -> bool;

/// A server that refuses what `refuses` finds in a body, in these words, and agrees else.
async fn refusing(refuses: Refuses, words: &'static str) -> Scene {
    Scene::with(move |asking: &Asking| {
        if refuses(&asking.body) {
            let body = json!({ "error": { "message": words, "code": "unsupported_parameter" } });
            let head = ["content-type: application/json", "connection: close"];
            return answer("400 Bad Request", &head, &body.to_string());
        }
        agreeing(asking)
    })
    .await
}

/// The lines of this kind.
fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[tokio::test]
async fn omits_refused_parameter_and_reports_once() {
    let cases: [(&str, Refuses, &str); 5] = [
        (
            "temperature",
            |body| body.get("temperature").is_some(),
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
        ),
        (
            "response_format",
            |body| body.get("response_format").is_some(),
            "'response_format.type' must be 'text'",
        ),
        (
            "stream_options",
            |body| body.get("stream_options").is_some(),
            "Unrecognized request argument supplied: stream_options",
        ),
        (
            "max_tokens",
            |body| body.get("max_tokens").is_some(),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        ),
        (
            "reasoning_effort",
            |body| body.get("reasoning_effort").is_some(),
            "Unrecognized request argument supplied: reasoning_effort",
        ),
    ];
    for (parameter, refuses, words) in cases {
        let scene = refusing(refuses, words).await;
        scene.home.write("table.toml", TABLE);
        let args = ["run", "table.toml", "--headless", "--live", "--trust", "--format", "jsonl"];
        let ended = scene.run(&args).await;
        assert_eq!(ended.code, Some(0), "{parameter}: {ended:?}");
        let lines = ended.lines();
        let adapted = of(&lines, "request.adapted");
        assert_eq!(adapted.len(), 1, "{parameter}: {adapted:?}");
        assert_eq!(adapted[0]["parameter"], parameter);
        assert!(of(&lines, "call.retried").is_empty(), "{parameter}: it is no retry");
        let outcome = lines.last().expect("an outcome");
        assert_eq!(outcome["final_decision"], "go", "{parameter}");
        // What all three seats were refused at once is asked again, and never after that. A reply in
        // JSON is asked for by a schema first, then as any object.
        let asked = scene.asked();
        let refused = asked.iter().filter(|asking| refuses(&asking.body)).count();
        let most = if parameter == "response_format" { 6 } else { 3 };
        assert!((1..=most).contains(&refused), "{parameter}: {refused}");
        assert!(!refuses(&asked.last().expect("the brief").body), "{parameter}");
        let failed = of(&lines, "attempt.failed");
        assert!(failed.iter().all(|line| line["adapted"] == json!([parameter])), "{failed:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_that_nobody_set() {
    let scene = Scene::with(agreeing).await;
    let ended = scene.run(&["run", "checkout-unanimous", "--headless", "--live"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for asking in scene.asked() {
        for parameter in ["temperature", "max_tokens", "max_completion_tokens", "reasoning_effort"]
        {
            assert!(asking.body.get(parameter).is_none(), "{parameter}: {}", asking.body);
        }
    }
}

#[tokio::test]
async fn what_the_file_sets_is_sent() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let sets = ["--set", "model.json=text", "--set", "model.extra.seed=7"];
    let args = ["run", "table.toml", "--headless", "--live", "--trust"];
    let ended = scene.run(&[&args[..], &sets].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for asking in scene.asked() {
        let body = &asking.body;
        assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.2), &json!(500)));
        assert_eq!((&body["reasoning_effort"], &body["seed"]), (&json!("low"), &json!(7)));
        assert!(body.get("response_format").is_none(), "{body}");
    }
}

#[tokio::test]
async fn unspecific_refusal_ends_run_immediately() {
    let scene = refusing(|_| true, "The prompt is not to my liking.").await;
    let args = ["run", "checkout-unanimous", "--headless", "--live", "--format", "json"];
    let ended = scene.run(&args).await;
    let outcome = ended.json();
    assert_eq!(outcome["stop_reason"], "llm_error:http_400", "{ended:?}");
    assert!(outcome["error"].as_str().is_some_and(|it| it.contains("not to my liking")));
    assert!(scene.asked().len() <= 3, "nobody asks again");
}
