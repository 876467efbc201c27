//! The configuration file of a person, with the real binary: its effects, the settings that go before
//! it, and the report on a wrong one.

use crate::support::binary;
use crate::support::binary::Home;
use crate::support::scene::{Scene, agreeing, ended};
use crate::support::server::KEY;

const FILE: &str = "config/roundtable/config.toml";
const LIVE: [&str; 5] = ["run", "checkout-unanimous", "--headless", "--live", "--instant"];

/// A live run of a table that agrees.
fn live(more: &[&str]) -> Vec<String> {
    let args = LIVE[..4].iter().chain(more);
    args.map(|arg| (*arg).to_owned()).collect()
}

async fn run(scene: &Scene, args: Vec<String>) -> binary::Ended {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    scene.run(&args).await
}

#[tokio::test]
async fn configuration_sets_live_run_defaults() {
    let scene = Scene::with(agreeing).await;
    scene.home.write(
        FILE,
        "[model]\nname = \"small\"\ntemperature = 0.3\nmax_tokens = 77\nextra = { seed = 5, top_p = 0.5 }\n",
    );
    let ended = run(&scene, live(&[])).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let asked = scene.asked();
    assert!(!asked.is_empty());
    for asking in &asked {
        let body = &asking.body;
        assert_eq!(body["model"], "small", "{body}");
        assert_eq!((&body["temperature"], &body["seed"]), (&0.3.into(), &5.into()), "{body}");
        assert_eq!(body["top_p"], 0.5, "{body}");
    }
    let first = &asked[0].body;
    assert!(first["max_completion_tokens"] == 77 || first["max_tokens"] == 77, "{first}");

    // The scenario goes before it, the command line before both, key by key.
    let ended = run(
        &scene,
        live(&[
            "--model",
            "large",
            "--set",
            "model.temperature=1.5",
            "--set",
            "model.extra={ seed = 6 }",
        ]),
    )
    .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let body = scene.asked()[0].body.clone();
    assert_eq!((&body["model"], &body["temperature"]), (&"large".into(), &1.5.into()), "{body}");
    assert_eq!((&body["seed"], &body["top_p"]), (&6.into(), &0.5.into()), "{body}");
}

#[tokio::test]
async fn configuration_sets_default_attempt_timeout() {
    let scene = Scene::with(agreeing).await;
    scene.home.write(FILE, "[model]\ntimeout_s = 31\n");
    let bound = |lines: Vec<serde_json::Value>| {
        let mut attempts = lines.into_iter().filter(|line| line["kind"] == "attempt.started");
        attempts.next().expect("an attempt")["timeout_ms"].clone()
    };
    for (variable, set, expected) in [
        (None, "budget.max_seconds=40", 31_000),
        (Some("32"), "budget.max_seconds=40", 32_000),
        (Some("32"), "tools.llm.timeout_s=33", 33_000),
    ] {
        let args = [&LIVE[..4], &["--format", "jsonl", "--set", set]].concat();
        let mut command = scene.command(&args);
        if let Some(seconds) = variable {
            command.env("OPENAI_TIMEOUT_SECONDS", seconds);
        }
        let ended = ended(command).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(bound(ended.lines()), expected, "{variable:?} {set}");
    }
}

#[tokio::test]
async fn environment_overrides_configuration() {
    let scene = Scene::with(agreeing).await;
    scene.home.write(FILE, "[model]\nname = \"anthropic/of-the-file\"\n");
    scene.home.write(".env", "OPENAI_MODEL=of-dotenv\n");
    for (variable, expected) in [(None, "of-dotenv"), (Some("of-the-shell"), "of-the-shell")] {
        let mut command = scene.command(&LIVE[..4]);
        if let Some(model) = variable {
            command.env("OPENAI_MODEL", model);
        }
        let ended = ended(command).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(scene.asked()[0].body["model"], expected);
    }
}

#[tokio::test]
async fn the_configuration_chooses_between_two_keys() {
    let scene = Scene::with(agreeing).await;
    scene.home.write(FILE, "[model]\nname = \"gemini/chosen\"\n");
    let mut command = scene.home.command(&LIVE[..4]);
    command.env("OPENAI_API_KEY", KEY).env("GEMINI_API_KEY", KEY);
    command.env("GEMINI_BASE_URL", format!("http://{}/v1", scene.host));
    let ended = ended(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(scene.asked()[0].body["model"], "chosen");
    assert!(ended.err.contains("calling chosen at"), "{}", ended.err);
}

/// The facts and the outcome without what differs between two runs of the same.
fn settled(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines
        .map(|mut line: serde_json::Value| {
            let fields = line.as_object_mut().expect("an object");
            for name in [
                "run",
                "run_id",
                "at_us",
                "at_ms",
                "wall_ms",
                "elapsed_ms",
                "tools",
                "trace",
                "history",
            ] {
                fields.remove(name);
            }
            line
        })
        .collect()
}

#[test]
fn scripted_run_ignores_model_settings() {
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--instant", "--format", "jsonl"];
    let without = home.run(&args);
    home.write(
        FILE,
        "[model]\nname = \"x/y\"\ntemperature = 1\nmax_tokens = 1\njson = \"text\"\nextra = { seed = 1 }\n\
         timeout_s = 0.001\n[prices.\"gpt-4.1-mini\"]\ninput = 1\noutput = 1\n",
    );
    let with = home.run(&args);
    assert_eq!((without.code, with.code), (Some(0), Some(0)), "{with:?}");
    assert_eq!(with.err, "");
    let (before, after) = (settled(&without.out), settled(&with.out));
    assert_eq!(before.len(), after.len());
    assert_eq!(before, after);
}

#[test]
fn wrong_file_reports_every_mistake() {
    let home = Home::new();
    home.write(FILE, "[model]\ntemperature = \"hot\"\nmax_tokens = 0\n[ui]\ntheme = \"pink\"\n");
    for args in [&["run", "checkout-unanimous", "--instant"][..], &["scenarios"], &["config"]] {
        let ended = home.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert_eq!(ended.out, "", "{args:?}");
        for said in [
            "config.toml:2:15: error: model.temperature: expected a number from 0 to 2, found the string \"hot\"",
            "config.toml:3:14: error: model.max_tokens: 0 is out of range (1 to 10000000)",
            "config.toml:5:9: error: ui.theme: pink: no such theme and no such file: No such file or directory (os error 2); use auto, dark, light, colour-blind, mono",
        ] {
            assert!(ended.err.contains(said), "{args:?}: no {said} in\n{}", ended.err);
        }
    }
    // It is found, and what needs none of it works.
    for args in [&["config", "--path"][..], &["schema"]] {
        assert_eq!(home.run(args).code, Some(0), "{args:?}");
    }
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("✗ config") && doctor.out.contains(":3:14: "), "{}", doctor.out);
}

#[test]
fn one_error_hides_no_other() {
    let home = Home::new();
    home.write(
        FILE,
        "model = 5\n[ui]\ntheme = \"nightshade\"\n[store]\nkeep_runs = 0\n[keys]\npause = \"bad key\"\n",
    );
    let refused = home.run(&["runs"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for text in ["model: expected a table", "store.keep_runs", "no such theme", "keys.pause"] {
        assert!(refused.err.contains(text), "{text}: {}", refused.err);
    }
}

#[test]
fn refuses_non_file_and_non_text() {
    let path = |home: &Home| home.path().join(FILE);
    let home = Home::new();
    std::fs::create_dir_all(path(&home)).expect("a folder of that name");
    let ended = home.run(&["scenarios"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("cannot read it: it is a folder, not a regular file"),
        "{}",
        ended.err
    );

    let home = Home::new();
    home.write(FILE, "");
    std::fs::write(path(&home), b"[ui]\ntheme = \"\xff\"").expect("written");
    let ended = home.run(&["scenarios"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("byte 14 is not UTF-8"), "{}", ended.err);

    std::fs::write(path(&home), " ".repeat(300_000)).expect("written");
    let ended = home.run(&["scenarios"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("more than 262144 bytes"), "{}", ended.err);
}

#[test]
fn hides_key_in_file_with_warning() {
    let home = Home::new();
    home.write(FILE, "[model]\napi_key = \"sk-in-the-wrong-place\"\nbase_url = \"https://x.example/v1\"\ntemprature = 1\n");
    let run = home.run(&["run", "checkout-unanimous", "--instant"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for said in [
        "config.toml:2:1: warning: model.api_key: `api_key`: API keys do not belong in this file (set OPENAI_API_KEY",
        "config.toml:3:1: warning: model.base_url: `base_url`: URLs do not belong in this file",
        "config.toml:4:1: warning: model.temprature: unknown key `temprature` (did you mean `temperature`?)",
    ] {
        assert!(run.err.contains(said), "no {said} in\n{}", run.err);
    }
    for args in [&["config"][..], &["config", "--json"], &["doctor"]] {
        let ended = home.run(args);
        let all = format!("{}{}", ended.out, ended.err);
        assert!(all.contains("API keys do not belong in this file"), "{args:?}: {all}");
        assert!(!all.contains("sk-in-the"), "{args:?}: {all}");
    }
}

#[test]
fn ui_settings_are_option_defaults() {
    let home = Home::new();
    let shown = |args: &[&str]| home.run(&[&["validate", "checkout-unanimous"], args].concat()).out;
    assert!(shown(&[]).starts_with('✓'));
    home.write(FILE, "[ui]\nascii = true\n");
    assert!(shown(&[]).starts_with('+'));
    assert!(shown(&["--ascii=false"]).starts_with('✓'), "the command line goes before");
    home.write(FILE, "[ui]\nascii = false\n");
    assert!(shown(&["--ascii"]).starts_with('+'));

    // A theme file is next to the configuration.
    home.write(FILE, "[ui]\ntheme = \"own.toml\"\n");
    let ended = home.run(&["scenarios"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("ui.theme: own.toml: no such theme"), "{}", ended.err);
    home.write("config/roundtable/own.toml", "name = \"own\"\n");
    assert_eq!(home.run(&["scenarios"]).code, Some(0));
    assert_eq!(home.run(&["scenarios", "--theme", "light"]).code, Some(0));
}

#[test]
fn config_shows_values_and_origins() {
    let home = Home::new();
    let path = home.path().join(FILE);
    let ended = home.run(&["config", "--path"]);
    assert_eq!((ended.code, ended.out), (Some(0), format!("{}\n", path.display())));
    let ended = home.run(&["config"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in
        ["the file does not exist yet", "OPENAI_API_KEY is not set", "export OPENAI_API_KEY"]
    {
        assert!(ended.out.contains(said), "no {said} in\n{}", ended.out);
    }
    home.write(
        FILE,
        "[model]\nname = \"claude-x\"\ntemperature = 0.25\nextra = { seed = 7, api_key = \"hidden-1\" }\n\
         timeout_s = 30\n[prices.\"claude-x\"]\ninput = 1\noutput = 2.5\n[ui]\ntheme = \"light\"\nanimation = false\nnotify = \"bell\"\n",
    );
    home.write(".env", &format!("ANTHROPIC_API_KEY={KEY}\n"));
    let ended = home.run(&["config", "--ascii"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown: Vec<&str> = ended.out.lines().skip(1).collect();
    let wide = shown.iter().filter(|line| line.chars().count() > 80);
    assert_eq!(wide.count(), 0, "{}", ended.out);
    let expected = "
model
  provider          anthropic                             .env
  name              claude-x                              the configuration
  host              api.anthropic.com                     the default
  key               ANTHROPIC_API_KEY is set              .env
  timeout_s         30.0s per attempt                     the configuration
  price             $1.00 in, $2.50 out                   the configuration
  temperature       0.25                                  the configuration
  max_tokens        not sent                              the default
  reasoning_effort  not sent                              the default
  json              the strictest mode accepted           the default
  extra.seed        7                                     the configuration
  extra.api_key     \"***\"                                 the configuration

ui
  theme             light                                 the configuration
  ascii             yes                                   the command line
  animation         no                                    the configuration
  plain             no                                    the default
  title             yes                                   the default
  notify            bell                                  the configuration
  escape_ms         150                                   the default

prices, in US dollars per million tokens
  claude-x          $1.00 in, $2.50 out                   the configuration
";
    assert!(shown.join("\n").contains(expected), "{}", ended.out);

    let json = home.run(&["config", "--json"]).json();
    assert_eq!(home.run(&["config", "--format", "json"]).json(), json);
    let expected = serde_json::json!({ "value": "claude-x", "from": "configuration" });
    assert_eq!(json["model"]["name"], expected);
    let key = serde_json::json!({ "variable": "ANTHROPIC_API_KEY", "set": true });
    assert_eq!(
        (&json["model"]["key"]["value"], &json["model"]["key"]["from"]),
        (&key, &".env".into())
    );
    assert_eq!(json["model"]["max_tokens"]["value"], serde_json::Value::Null);
    assert_eq!(json["prices"]["claude-x"]["value"]["output"], 2.5);
    assert_eq!(json["ui"]["animation"]["value"], false);
    assert_eq!(json["exists"], true);
    let all = format!("{}{json}", ended.out);
    assert!(!all.contains(KEY) && !all.contains("hidden-1"), "{all}");
}

#[test]
fn theme_follows_source_priority() {
    let home = Home::new();
    let theme = |args: &[&str], variable: Option<&str>| {
        let mut command = home.command(&[&["config", "--json"], args].concat());
        command.envs(variable.map(|name| ("ROUNDTABLE_THEME", name)));
        let told = command.output().expect("it runs").stdout;
        let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
        (told["ui"]["theme"]["value"].clone(), told["ui"]["theme"]["from"].clone())
    };
    assert_eq!(theme(&[], None), ("auto".into(), "default".into()));
    home.write(FILE, "[ui]\ntheme = \"light\"\n");
    assert_eq!(theme(&[], None), ("light".into(), "configuration".into()));
    assert_eq!(theme(&[], Some("")), ("light".into(), "configuration".into()));
    assert_eq!(theme(&[], Some("mono")), ("mono".into(), "shell".into()));
    assert_eq!(theme(&["--theme", "auto"], Some("mono")), ("auto".into(), "command_line".into()));

    let mut command = home.command(&["scenarios"]);
    let refused = command.env("ROUNDTABLE_THEME", "pink").output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("ROUNDTABLE_THEME pink: no such theme"), "{error}");
    assert!(error.contains("\n  help: use auto, dark, light"), "{error}");

    home.write(FILE, "[ui]\nnotify = \"belll\"\n");
    let refused = home.run(&["config"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("did you mean `bell`?"), "{}", refused.err);
}

#[test]
fn key_mistakes_name_their_lines() {
    let home = Home::new();
    home.write(
        FILE,
        "[keys]\nstpe = \"x\"\nkill = \"ctr-k\"\nflags = \"v\"\nstep = [\"s\", \"v\"]\nclose = \"x\"\n",
    );
    let mistakes = [
        "config.toml:2:1: error: keys.stpe: unknown action: did you mean `step`?",
        "config.toml:3:8: error: keys.kill: unknown key `ctr-k`: write a character (x, X, !), ctrl-x",
        "config.toml:5:14: error: keys.step: v is also the key of `flags` on line 4, in: home, run",
        "config.toml:6:1: error: keys.close: esc cannot be taken away: it always closes or cancels",
    ];
    for args in [&["config"][..], &["scenarios"], &["run", "checkout-unanimous", "--headless"]] {
        let ended = home.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        for said in mistakes {
            assert!(ended.err.contains(said), "{args:?}: no {said} in\n{}", ended.err);
        }
    }
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("keys.stpe"), "{}", doctor.out);
}

#[test]
fn config_shows_the_keys_in_use() {
    let home = Home::new();
    home.write(FILE, "[keys]\nstep = [\"x\", \"ctrl-x\"]\nkill = []\n");
    let ended = home.run(&["config"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in [
        "  step              x, ctrl-x                             the configuration",
        "  kill              none                                  the configuration",
        "  help              ?, f1                                 the default",
    ] {
        assert!(ended.out.contains(line), "no {line} in\n{}", ended.out);
    }
    let json = home.run(&["config", "--json"]).json();
    let step = serde_json::json!({ "value": ["x", "ctrl-x"], "from": "configuration" });
    assert_eq!(json["keys"]["step"], step);
    assert_eq!(json["keys"]["kill"]["value"], serde_json::json!([]));
}
