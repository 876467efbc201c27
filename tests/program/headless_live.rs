//! `roundtable run --live` and `doctor`, the real binary against a server of the tests.

use crate::support::binary::{Ended, Home};
use crate::support::scene::{Scene, agreeing, ended, payload};
use crate::support::server::{Asking, KEY, Server, answer};
use serde_json::{Value, json};

fn refusing(_: &Asking) -> Vec<u8> {
    let body = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}") } });
    answer("401 Unauthorized", &["connection: close"], &body.to_string())
}

#[tokio::test]
async fn a_decision_comes_from_any_endpoint() {
    let scene = Scene::with(agreeing).await;
    let ended = scene.run(&["run", "checkout-unanimous", "--headless", "--live"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = ended.json();
    assert_eq!(outcome["final_decision"], "go");
    assert_eq!(outcome["answer"], "We start.");
    assert_eq!(outcome["usage"]["prompt_tokens"], 400, "three seats and the brief");
    let first = ended.err.lines().next().unwrap_or_default();
    assert!(first.contains(&scene.host) && first.contains("the shell"), "{}", ended.err);

    let asked = scene.asked();
    assert_eq!(asked.len(), 4);
    for asking in &asked {
        assert!(asking.head.starts_with("POST /v1/chat/completions "), "{}", asking.head);
        assert!(
            asking.head.contains(&format!("Bearer {KEY}")),
            "the key goes where it is meant to"
        );
        assert_eq!(asking.body["model"], "gpt-4.1-mini");
    }
    let payload = payload(&asked[0]);
    let keys: Vec<&String> = payload.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["goal", "role", "shared_context", "recent_rounds", "open_conflicts"]);
}

#[tokio::test]
async fn refused_key_exits_6_with_redaction() {
    let scene = Scene::with(refusing).await;
    for format in ["json", "jsonl", "text"] {
        let args = ["run", "checkout-unanimous", "--live", "--format", format];
        let ended = scene.run(&args).await;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(ended.out.contains("llm_error:auth"), "{}", ended.out);
    }
}

/// No wait between attempts, seat after seat, so that what the others meet changes no text; and `sets`
/// besides.
fn at_once<'a>(format: &'a str, sets: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "checkout-unanimous", "--live", "--format", format];
    let always = ["tools.llm.retries.backoff_ms=[0]", "collaboration.concurrency=sequential"];
    for set in [&always[..], sets].concat() {
        args.extend(["--set", set]);
    }
    args
}

#[tokio::test]
async fn names_down_endpoint_host_and_attempts() {
    let closed = Server::start().await.host();
    let home = Home::new();
    for format in ["text", "json"] {
        let mut command = home.command(&at_once(format, &[]));
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("http://{closed}/v1"));
        let ended = ended(command).await;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        for said in [
            "llm_error:connection",
            &format!("no connection to {closed}"),
            "4 attempts (tools.llm.retries.max_attempts).",
        ] {
            assert!(ended.out.contains(said), "no {said} in {}", ended.out);
        }
        assert!(!ended.out.contains("probe"), "nobody waits for it: {}", ended.out);
        let said_by = [&ended.out, &ended.err].map(|it| it.contains("no connection to"));
        assert_eq!(said_by, [true, format == "json"], "once for people: {ended:?}");
    }
}

#[tokio::test]
async fn impossible_wait_names_remaining_time() {
    let limited = |_: &Asking| {
        let headers = ["retry-after: 3600", "connection: close"];
        answer("429 Too Many Requests", &headers, "{\"error\":\"slow down\"}")
    };
    let scene = Scene::with(limited).await;
    for format in ["text", "json", "jsonl"] {
        let ended = scene.run(&at_once(format, &[])).await;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        for said in
            ["the requested wait is 3600 s, but only ", " s of the run were left", &scene.host]
        {
            assert!(ended.out.contains(said), "no {said} in {}", ended.out);
        }
        assert!(!ended.out.contains("raise tools.llm.retries"), "{}", ended.out);
    }
}

#[tokio::test]
async fn reports_retry_refused_by_budget() {
    let busy = |_: &Asking| answer("503 Service Unavailable", &["connection: close"], "{}");
    let scene = Scene::with(busy).await;
    let none = ["tools.llm.retry_budget.min=0", "tools.llm.retry_budget.percent=0"];
    let says = "Not retried: 0 of 0 retries of the last minute are used up \
                (tools.llm.retry_budget).";
    let text = scene.run(&at_once("text", &none)).await;
    assert!(text.out.contains("no retry") && text.out.contains(says), "{}", text.out);
    let json = scene.run(&at_once("json", &none)).await.json();
    let error = json["error"].as_str().expect("an error");
    assert!(error.contains("HTTP 503") && error.ends_with(says), "{error}");
    let lines = scene.run(&at_once("jsonl", &none)).await.lines();
    let refused = lines.iter().find(|line| line["kind"] == "retry.refused").expect("the event");
    assert_eq!((&refused["limit"], &refused["attempt"]), (&json!("retry_budget"), &json!(2)));
    assert_eq!((&refused["used"], &refused["allowed"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn dotenv_sets_key_and_endpoint() {
    let scene = Scene::with(agreeing).await;
    let dotenv = format!(
        "OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL=http://{}/v1\nOPENAI_MODEL=from-dotenv\n",
        scene.host
    );
    scene.home.write(".env", &dotenv);
    let args = ["run", "checkout-unanimous", "--live"];
    let ended = ended(scene.home.command(&args)).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains(".env"), "{}", ended.err);
    assert_eq!(scene.asked()[0].body["model"], "from-dotenv");

    // The address of a .env is never used with the shell's key.
    let mut mixed = scene.home.command(&args);
    scene.home.write(".env", &format!("OPENAI_BASE_URL=http://{}/v1\n", scene.host));
    mixed.env("OPENAI_API_KEY", KEY);
    let ended = self::ended(mixed).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(scene.asked().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn without_a_key_nothing_starts() {
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--live", "--format", "jsonl"];
    let ended = ended(home.command(&args)).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("OPENAI_API_KEY"), "{}", ended.err);
}

#[tokio::test]
async fn key_alone_makes_no_live_run() {
    let scene = Scene::with(agreeing).await;
    let ended = scene.run(&["run", "checkout-unanimous", "--instant"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(scene.asked().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn asks_once_per_foreign_scenario_version() {
    let scene = Scene::with(agreeing).await;
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    scene.home.write("same.toml", text);
    let same = scene.run(&["run", "same.toml", "--live"]).await;
    assert_eq!(same.code, Some(0), "a shipped one is trusted wherever it stands: {same:?}");
    scene.asked();

    scene.home.write("mine.toml", &format!("{text}\n# mine\n"));
    let live = ["run", "mine.toml", "--live"];
    let refused = scene.run(&live).await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    for said in ["--trust", &scene.host, "gpt-4.1-mini"] {
        assert!(refused.err.contains(said), "no {said} in {}", refused.err);
    }
    assert!(scene.asked().is_empty(), "nothing was sent");
    let scripted = scene.run(&["run", "mine.toml", "--instant"]).await;
    assert_eq!(scripted.code, Some(0), "offline there is nothing to ask: {scripted:?}");

    let allowed = scene.run(&["run", "mine.toml", "--live", "--trust"]).await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let again = scene.run(&live).await;
    assert_eq!(again.code, Some(0), "the answer is kept: {again:?}");
    scene.home.write("mine.toml", &format!("{text}\n# changed\n"));
    assert_eq!(scene.run(&live).await.code, Some(2), "another version asks again");
}

#[tokio::test]
async fn the_log_holds_no_key() {
    let scene = Scene::with(refusing).await;
    let args = ["run", "checkout-unanimous", "--live", "--log-file", "all.log"];
    let mut command = scene.command(&args);
    command.env("ROUNDTABLE_LOG", "trace");
    assert_eq!(ended(command).await.code, Some(6));
    let log = std::fs::read_to_string(scene.home.path().join("all.log")).expect("a log");
    assert!(!log.is_empty() && !log.contains(KEY), "{log}");
}

#[tokio::test]
async fn doctor_asks_endpoint_only_on_request() {
    let list = |models: &'static [&'static str]| {
        move |_: &Asking| {
            let data: Vec<Value> = models.iter().map(|id| json!({ "id": id })).collect();
            let body = json!({ "data": data }).to_string();
            answer("200 OK", &["content-type: application/json", "connection: close"], &body)
        }
    };
    let scene = Scene::with(list(&["gpt-4.1-mini", "other"])).await;
    let quiet = scene.run(&["doctor"]).await;
    assert_eq!(quiet.code, Some(0), "{quiet:?}");
    assert!(scene.asked().is_empty(), "nothing was sent");
    for said in ["from the shell", "gpt-4.1-mini from the default", "not checked", &scene.host] {
        assert!(quiet.flat().contains(said), "no {said} in\n{}", quiet.out);
    }
    let live = scene.run(&["doctor", "--live"]).await;
    assert_eq!(live.code, Some(0), "{live:?}");
    assert!(live.flat().contains("lists 2 models, including gpt-4.1-mini"), "{}", live.out);
    assert!(scene.asked()[0].head.starts_with("GET /v1/models "));

    let without = Scene::with(list(&["other"])).await;
    let ended = without.run(&["doctor", "--live"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.flat().contains("✗ reach") && ended.flat().contains("OPENAI_MODEL"),
        "{}",
        ended.out
    );

    let refusing = Scene::with(refusing).await;
    let ended = refusing.run(&["doctor", "--live", "--ascii"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.is_ascii(), "{}", ended.out);
}

#[tokio::test]
async fn doctor_fails_where_live_run_would() {
    let home = Home::new();
    let ended = ended(home.command(&["doctor", "--live"])).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.flat().contains("✗ key"), "{}", ended.out);
    assert!(ended.flat().contains("OPENAI_API_KEY is not set"), "{}", ended.out);
}

#[tokio::test]
async fn reports_base_url_without_scheme() {
    let home = Home::new();
    for url in ["api.openai.com/v1", "localhost:11434/v1"] {
        for args in
            [&["doctor"][..], &["doctor", "--live"], &["run", "checkout-unanimous", "--live"]]
        {
            let mut command = home.command(args);
            command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", KEY);
            let ended = ended(command).await;
            let code = if args[0] == "run" { 2 } else { 1 };
            assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
            let says = "the base URL from the shell has no http:// or https://";
            assert!(ended.flat().contains(says) || ended.err.contains(says), "{args:?}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn refused_model_list_gives_no_advice() {
    for status in ["400 Bad Request", "404 Not Found", "418 I'm a teapot"] {
        let body = json!({ "error": { "message": "No connected db." } }).to_string();
        let scene = Scene::with(move |_| answer(status, &["connection: close"], &body)).await;
        let ended = scene.run(&["doctor", "--live"]).await;
        assert!(scene.asked()[0].head.starts_with("GET /v1/models "));
        assert!(!ended.flat().contains("temperature"), "{}", ended.out);
        // A 400 may say more than that there is no list.
        let said = "without a list of models (status 400): No connected db";
        assert_eq!(ended.flat().contains(said), status.starts_with("400"), "{}", ended.out);
        assert!(ended.flat().contains("base URL") && ended.flat().contains("/v1"), "{}", ended.out);
        let code = if status.starts_with("418") { 1 } else { 0 };
        assert_eq!(ended.code, Some(code), "{status}: {ended:?}");
    }
}

#[tokio::test]
async fn the_doctor_says_which_timeout_applies() {
    let home = Home::new();
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    home.write("scenarios/slow-one.toml", &format!("{text}\n[tools.llm]\ntimeout_s = 90\n"));
    let mut command = home.command(&["doctor"]);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_TIMEOUT_SECONDS", "7");
    let ended = ended(command).await;
    assert!(
        ended.flat().contains("7.0s per attempt, from the shell; scenarios with"),
        "{}",
        ended.out
    );
    assert!(ended.flat().contains("slow-one (1m30s)"), "{}", ended.out);
    let shipped: Vec<&str> = roundtable::shipped().iter().map(|one| one.name).collect();
    let own = shipped.iter().filter(|name| ended.flat().contains(&format!("{name} (")));
    assert_eq!(own.count(), 0, "OPENAI_TIMEOUT_SECONDS holds for all of them: {}", ended.out);
}

#[tokio::test]
async fn live_run_text_ends_with_tokens() {
    let scene = Scene::with(agreeing).await;
    let ended = scene.run(&["run", "checkout-unanimous", "--live", "--format", "text"]).await;
    let done = ended.out.lines().find(|line| line.contains("DONE")).expect("its last line");
    assert!(done.contains(", tokens 400 in, "), "{done}");
    assert!(done.contains(" out"), "{done}");
}

#[tokio::test]
async fn doctor_names_needed_fixes() {
    let home = Home::new();
    let fresh = ended(home.command(&["doctor"])).await;
    assert_eq!(fresh.code, Some(0), "a fresh machine has nothing to mend: {fresh:?}");
    let shipped = roundtable::shipped().len();
    let said = format!("{shipped} scenarios can be run");
    assert!(fresh.flat().contains("! key") && fresh.flat().contains(&said), "{}", fresh.out);

    let home = Home::new();
    home.write("scenarios/broken.toml", "title = 3\n");
    home.write("state", "a file where a folder should be");
    let mut command = home.command(&["doctor"]);
    command.env("OPENAI_BASE_URL", "ftp://example.org");
    let ended = self::ended(command).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in ["broken.toml:1:1", "roundtable validate", "✗ log", "--log-file", "✗ key"] {
        assert!(ended.flat().contains(said), "no {said} in\n{}", ended.out);
    }
}

/// A team of one, whose endpoint ends each reply with this reason.
async fn ending_with(finish: &'static str) -> Scene {
    let scene = Scene::with(move |_: &Asking| {
        let message = json!({ "role": "assistant", "content": "We have sev" });
        let body = json!({ "choices": [{ "message": message, "finish_reason": finish }] });
        answer(
            "200 OK",
            &["content-type: application/json", "connection: close"],
            &body.to_string(),
        )
    });
    let scene = scene.await;
    scene.home.write(
        "team.toml",
        r#"
title = "A team of one"
pattern = "team"
goal = "How many?"
[team]
root = "clerk"
[agents.clerk]
description = "Counts"
instruction = "Count."
members = ["porter"]
[agents.porter]
description = "Carries"
instruction = "Carry."
[tools.llm]
retries = { max_attempts = 2, backoff_ms = [0], jitter = false }
"#,
    );
    scene
}

#[tokio::test]
async fn every_format_marks_cut_answer() {
    let scene = ending_with("length").await;
    let args = ["run", "team.toml", "--live", "--trust", "--format"];
    for format in ["text", "github", "json", "jsonl"] {
        let ended = scene.run(&[&args[..], &[format]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let mark = match format {
            "text" | "github" => "The answer was cut at its token limit.",
            "json" => "\"degraded\": true",
            _ => "\"cut\":[{\"who\":\"clerk\",\"end\":\"length\"}]",
        };
        assert!(ended.out.contains(mark), "{format}: {}", ended.out);
    }
    let ended = scene.run(&[&args[..], &["json", "--fail-on", "degraded"]].concat()).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown = scene.run(&["show", "last", "--format", "text"]).await;
    assert!(shown.out.contains("The answer was cut at its token limit."), "{shown:?}");
}

#[tokio::test]
async fn a_failed_end_is_no_answer() {
    let scene = ending_with("network_error").await;
    let args = ["run", "team.toml", "--live", "--trust", "--format", "json"];
    let outcome = scene.run(&args).await.json();
    assert_eq!(outcome["stop_reason"], "llm_error:bad_response");
    assert!(outcome["error"].as_str().expect("a cause").contains("\"network_error\""), "{outcome}");
    assert_eq!(scene.asked().len(), 2, "it is tried again");
}

/// A run through the proxies of these variables, and how many requests came to the endpoint itself.
async fn run_with_proxies(scene: &Scene, variables: &[(&str, &str)]) -> (Ended, usize) {
    let mut command = scene.command(&[&at_once("json", &[])[..], &["--proxy", "env"]].concat());
    command.envs(variables.iter().copied());
    let ended = ended(command).await;
    (ended, scene.asked().len())
}

#[tokio::test]
async fn unusable_proxy_stops_before_any_request() {
    let scene = Scene::with(agreeing).await;
    for (variable, value) in [
        ("ALL_PROXY", "socks5://127.0.0.1:9"),
        ("all_proxy", "socks://127.0.0.1:9/"),
        ("HTTP_PROXY", "not a url"),
        ("http_proxy", "ftp://127.0.0.1"),
        ("HTTPS_PROXY", "http://127.0.0.1:9/proxy.pac"),
        ("NO_PROXY", "127.0.0.1:9"),
    ] {
        let (ended, direct) = run_with_proxies(&scene, &[(variable, value)]).await;
        assert_eq!((ended.code, direct), (Some(2), 0), "{variable}: {ended:?}");
        assert!(ended.err.contains(&format!("--proxy: {variable} ")), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[tokio::test]
async fn no_proxy_star_reaches_addresses_directly() {
    let scene = Scene::with(agreeing).await;
    for direct in ["*", "127.0.0.1", "127.0.0.0/8", "x.example, *"] {
        let variables = [("HTTP_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", direct)];
        let (ended, asked) = run_with_proxies(&scene, &variables).await;
        assert_eq!((ended.code, asked), (Some(0), 4), "{direct}: {ended:?}");
    }
}

#[tokio::test]
async fn proxy_that_refuses_is_named() {
    let scene = Scene::with(agreeing).await;
    let (ended, asked) =
        run_with_proxies(&scene, &[("HTTP_PROXY", "http://u:p4ss@127.0.0.1:9")]).await;
    assert_eq!((ended.code, asked), (Some(6), 0), "{ended:?}");
    let said = ended.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        said.contains(&format!("no connection to {} through the proxy 127.0.0.1:9", scene.host)),
        "{said}"
    );
    assert!(said.contains("Check --proxy") && !said.contains("p4ss"), "{said}");
}
