//! `roundtable doctor` of models, with the real binary: what applies to a scenario, which prices hold, who
//! is asked, and how it is told in 80 columns.

use crate::support::binary::{Home, flat};
use crate::support::scene::{Scene, agreeing, ended};
use crate::support::server::KEY;
use crate::support::{binary, server};

const FILE: &str = "config/roundtable/config.toml";

/// A table of three with a model of its own at one seat.
const TABLE: &str = r#"
title = "A mixed table"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
[collaboration]
sequence = ["first", "second"]
finalize_prompt = "Write the brief."
[roles.first]
prompt = "You judge."
[roles.second]
prompt = "You judge too."
model = "gemini/other"
[model]
temperature = 0.5
[tools.llm]
timeout_s = 12
"#;

#[tokio::test]
async fn doctor_checks_scenario_needs() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    scene
        .home
        .write(FILE, "[model]\nmax_tokens = 500\n[prices.other]\ninput = 0.1\noutput = 0.2\n");
    let host = scene.host.clone();
    let says = |out: &str, all: &[String]| {
        let long = out.lines().filter(|line| line.chars().count() > 80 && !line.contains('/'));
        assert_eq!(long.count(), 0, "{out}");
        for said in all {
            assert!(flat(out).contains(&flat(said)), "no {said} in\n{out}");
        }
    };
    let ended = scene.run(&["doctor", "table.toml"]).await;
    assert_eq!(ended.code, Some(0), "a script needs no key: {ended:?}");
    says(
        &ended.out,
        &[
            "✓ scenario      table: A mixed table (collaboration)".to_owned(),
            format!("✓ role first    openai/gpt-4.1-mini at {host}, from the default"),
            "! role second   roles.second.model names gemini/other".to_owned(),
            "→ export GEMINI_API_KEY=…".to_owned(),
            format!("✓ step finalize openai/gpt-4.1-mini at {host}, from the default"),
            "✓ timeout       12.0s per attempt, from the scenario".to_owned(),
            "✓ temperature   0.5, from the scenario".to_owned(),
            "✓ max_tokens    500, from the configuration".to_owned(),
            "unknown: list prices apply only at the provider's own address".to_owned(),
            "not checked".to_owned(),
        ],
    );
    assert!(scene.asked().is_empty(), "nobody is asked");

    let mut command = scene.command(&[
        "doctor",
        "table.toml",
        "--set",
        "roles.first.model=set",
        "--set",
        "tools.llm.timeout_s=3",
        "--model",
        "asked",
    ]);
    command.env("GEMINI_API_KEY", "gemini-key-1");
    let ended = self::ended(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    says(
        &ended.out,
        &[
            format!("openai/set at {host}, from the command line (--set roles.first.model)"),
            format!("role second   openai/asked at {host}, from the command line (--model)"),
            "✓ timeout       3.0s per attempt, from the command line".to_owned(),
            "unknown: only tokens are counted (openai/asked)".to_owned(),
        ],
    );

    let mut command = scene.command(&["doctor", "table.toml"]);
    command.env("GEMINI_API_KEY", "gemini-key-1");
    let ended = self::ended(command).await;
    says(
        &ended.out,
        &[
            "gemini/other at generativelanguage.googleapis.com, from the scenario (roles.second.model)"
                .to_owned(),
            "$0.10 in, $0.20 out per million tokens, from the configuration (gemini/other)"
                .to_owned(),
        ],
    );
    assert!(!ended.out.contains("gemini-key-1"));

    let wrong = scene.run(&["doctor", "no-such-table"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("no shipped scenario of that name"), "{}", wrong.err);
}

/// Keys alone call the providers' own addresses; no provider is called without `--live`.
#[cfg(unix)]
#[test]
fn doctor_finds_programs_and_advises_once() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let text = include_str!("../../assets/templates/team.toml");
    let text = text.replace(
        "[tools.list_changes]",
        "[tools.list_changes.command]\nprogram = \"./changes.sh\"\n[tools.list_changes]",
    );
    let (before, after) = text.split_once("[[tools.list_changes.fixture.rows]]").expect("a tool");
    let (_, after) = after.split_once("\n# ").expect("what follows");
    home.write("mine.toml", &format!("{before}\n# {after}"));
    let says = |code: i32, said: &str| {
        let ended = home.run(&["doctor", "mine.toml"]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(flat(&ended.out).contains(&flat(said)), "no {said} in\n{}", ended.out);
        assert_eq!(ended.out.matches("export OPENAI_API_KEY=").count(), 1, "{}", ended.out);
    };
    says(1, "✗ tool list_changes there is no program ./changes.sh → a relative path starts at");
    home.write("changes.sh", "#!/bin/sh\necho {}\n");
    says(1, "./changes.sh is not executable → chmod +x ./changes.sh");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path().join("changes.sh"), mode).expect("executable");
    says(0, "✓ tool list_changes ./changes.sh");
}

#[test]
fn shows_list_prices_where_valid() {
    let listed = "$0.40 in, $1.60 out, $0.10 cached";
    let unknown = "unknown: list prices apply only at the provider's own address";
    for (url, told, other) in
        [(None, listed, unknown), (Some("http://127.0.0.1:8089/v1"), unknown, listed)]
    {
        for args in [&["doctor"][..], &["doctor", "checkout-unanimous"], &["config"]] {
            let home = Home::new();
            let mut command = home.command(args);
            command.env("OPENAI_API_KEY", KEY);
            if let Some(url) = url {
                command.env("OPENAI_BASE_URL", url);
            }
            let said = binary::end(&mut command).flat();
            assert!(said.contains(told) && !said.contains(other), "{args:?} {url:?}: {said}");
        }
    }
}

#[test]
fn warns_of_unknown_provider_using_openai() {
    let home = Home::new();
    let note = "mistral/large is sent to OpenAI unchanged: `mistral` is not a known provider";
    for (url, noted) in [(None, true), (Some("http://127.0.0.1:8089/v1"), false)] {
        let args = ["doctor", "checkout-unanimous", "--model", "mistral/large"];
        let mut command = home.command(&args);
        command.env("OPENAI_API_KEY", KEY);
        if let Some(url) = url {
            command.env("OPENAI_BASE_URL", url);
        }
        let ended = binary::end(&mut command);
        assert_eq!(ended.flat().contains(note), noted, "{url:?}: {}", ended.out);
    }
}

#[tokio::test]
async fn doctor_asks_scenario_endpoints_on_request() {
    let list = |_: &server::Asking| {
        let body = r#"{"data":[{"id":"models/other"}]}"#;
        server::answer("200 OK", &["content-type: application/json", "connection: close"], body)
    };
    let (scene, other) = (Scene::with(list).await, Scene::with(list).await);
    scene.home.write("table.toml", TABLE);
    let mut command = scene.command(&["doctor", "table.toml", "--live"]);
    command.env("GEMINI_API_KEY", "gemini-key-1");
    command.env("GEMINI_BASE_URL", format!("http://{}/v1", other.host));
    let ended = ended(command).await;
    assert_eq!(ended.code, Some(1), "the default is not listed: {ended:?}");
    let lost = "lists 1 model; gpt-4.1-mini, the default, is not listed";
    assert!(ended.flat().contains(lost), "{}", ended.out);
    assert!(ended.flat().contains("lists 1 model, including other"), "{}", ended.out);
    assert_eq!((scene.asked().len(), other.asked().len()), (1, 1));
    // A missing setting is an error if a live run is meant.
    let ended = scene.run(&["doctor", "table.toml", "--live"]).await;
    assert!(ended.flat().contains("✗ role second roles.second.model names"), "{}", ended.out);
}

#[tokio::test]
async fn doctor_finds_ollama_and_configured_providers() {
    let scene = Scene::with(|asking| {
        assert!(asking.head.starts_with("GET /v1/models "), "{}", asking.head);
        let body = r#"{"data":[{"id":"llama3.2"}]}"#;
        server::answer("200 OK", &["content-type: application/json", "connection: close"], body)
    })
    .await;
    let command = |args: &[&str]| {
        let mut command = scene.home.command(args);
        command.env("OLLAMA_HOST", &scene.host).env("OPENAI_MODEL", "m");
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", "other-key-1");
        command
    };
    let ended = ended(command(&["doctor"])).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = format!("answers at {} and lists 1 model", scene.host);
    for said in [&found, "--model ollama/NAME", "also ANTHROPIC_API_KEY from the shell"] {
        assert!(ended.flat().contains(said), "no {said} in\n{}", ended.out);
    }
    assert!(ended.flat().contains("--model anthropic/claude-haiku-4-5"), "{}", ended.out);
    assert!(!ended.flat().contains("other-key-1"));
}

#[tokio::test]
async fn any_endpoint_may_lack_model_list() {
    let list = |_: &server::Asking| {
        let body = r#"{"data":[{"id":"gpt-4.1-mini"}]}"#;
        server::answer("200 OK", &["content-type: application/json", "connection: close"], body)
    };
    let scene = Scene::with(list).await;
    for status in ["400 Bad Request", "404 Not Found"] {
        let other =
            Scene::with(move |_| server::answer(status, &["connection: close"], "{}")).await;
        let mut command = scene.command(&["doctor", "--live"]);
        command.env("ANTHROPIC_API_KEY", "other-key-1");
        command.env("ANTHROPIC_BASE_URL", format!("http://{}", other.host));
        let ended = ended(command).await;
        assert_eq!(ended.code, Some(0), "{status}: {ended:?}");
        assert!(ended.flat().contains("including gpt-4.1-mini"), "{}", ended.out);
        let said = format!("{} answered without a list of models", other.host);
        assert!(ended.flat().contains(&said), "{}", ended.out);
        assert!(other.asked()[0].head.starts_with("GET /v1/models"), "asked once it was said");
    }
}
