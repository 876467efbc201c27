//! `roundtable new --from-run`: what was said in a run of ours, or of another program, as a scenario.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, end};
use crate::support::senders::{SENDER, python_of};

/// The outcome without the id of the run and without times, which real time never repeats.
fn timeless(ended: &Ended) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, _| !key.ends_with("_ms") && key != "run_id");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut outcome = ended.json();
    strip(&mut outcome);
    outcome
}

fn made(home: &Home, run: &str, file: &str) -> String {
    let ended = home.run(&["new", "--from-run", run, file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let checked = home.run(&["validate", file]);
    let text = std::fs::read_to_string(home.path().join(file)).expect("a file");
    assert_eq!(checked.code, Some(0), "{checked:?}\n{text}");
    text
}

#[test]
fn own_run_plays_to_same_outcome() {
    let home = Home::new();
    let args = ["run", "front-desk", "--instant", "--format", "json", "--flag", "billing_desk=off"];
    let first = home.run(&[&args[..], &["--seed", "9"]].concat());
    assert!(matches!(first.code, Some(0 | 1)), "{first:?}");
    let text = made(&home, "last", "mine/case.toml");
    assert!(text.contains("# A router: one model call"), "comments stay: {text}");
    let second = home.run(&["run", "mine/case.toml", "--instant", "--format", "json"]);
    assert_eq!(timeless(&second), timeless(&first), "{text}");
    // To standard output, from a file, and into the folder of scenarios.
    let log = home.run(&["export", "last~1"]).out;
    home.write("log.jsonl", &log);
    assert_eq!(home.run(&["new", "--from-run", "log.jsonl", "-"]).out, text);
    let listed = home.run(&["new", "--from-run", "last"]);
    assert!(listed.out.contains("scenarios/from-run.toml"), "{listed:?}");
    for (args, says) in [
        (&["last", "mine/case.toml"][..], "exists and is not replaced"),
        (&["last", "a.toml", "b.toml"], "takes one FILE"),
        (&["r-none", "c.toml"], "r-none"),
    ] {
        let ended = home.run(&[&["new", "--from-run"], args].concat());
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?}: {}", ended.err);
    }
    let redacted = home.run(&["export", "--redact", "last"]).out;
    home.write("redacted.jsonl", &redacted);
    let ended = home.run(&["new", "--from-run", "redacted.jsonl", "-"]);
    assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("redacted"), "{ended:?}");
}

/// The shop is there for the first run and gone for the second.
#[test]
fn services_are_not_asked_again() {
    let home = Home::new();
    let mut command = home.command(&["demo-service", "--port", "0"]);
    let mut shop = command.stdout(Stdio::piped()).spawn().expect("a shop");
    let mut line = String::new();
    let mut says = BufReader::new(shop.stdout.take().expect("its words"));
    says.read_line(&mut line).expect("a line");
    let (_, rest) = line.split_once("http://").expect("an address");
    let host = rest.split(';').next().expect("an address").to_owned();
    let url = |worker: &str, path: &str| format!("workers.{worker}.http.url=http://{host}{path}");
    let sets = [
        url("orders_worker", "/v1/orders"),
        url("payments_worker", "/v1/payments"),
        url("stock_worker", "/v1/stock/{sku}"),
    ];
    let mut args = vec!["run", "real-services", "--instant", "--format", "json", "--trust"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    let first = home.run(&args);
    shop.kill().expect("ended");
    shop.wait().expect("reaped");
    assert_eq!(first.code, Some(0), "{first:?}");
    let text = made(&home, "last", "shop.toml");
    assert!(!text.contains("workers.stock_worker.http"), "{text}");
    let second = home.run(&["run", "shop.toml", "--instant", "--format", "json"]);
    assert_eq!(second.code, Some(0), "no permission and no service is needed: {second:?}");
    assert_eq!(timeless(&second), timeless(&first), "{text}");
}

/// What came over of a watched program: its expectations hold, and its answer is the same.
fn play(home: &Home, run: &str, name: &str) -> (Value, String) {
    let file = format!("{name}.toml");
    let text = made(home, run, &file);
    let tested = home.run(&["test", &file]);
    assert_eq!(tested.code, Some(0), "{name}: {tested:?}\n{text}");
    let ended = home.run(&["run", &file, "--instant", "--format", "jsonl"]);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}\n{text}");
    // Nothing fails that did not fail in the program.
    assert!(!ended.out.contains("not a JSON object"), "{name}: {}\n{text}", ended.out);
    (ended.lines().pop().expect("an outcome"), text)
}

#[test]
fn watched_program_becomes_scenario() {
    let home = Home::new();
    home.write("desk.py", SENDER);
    let watched = home.run(&["watch", "--", "python3", "desk.py"]);
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let (outcome, text) = play(&home, "last", "desk");
    assert_eq!(outcome["answer"], "Refunded.", "{text}");
    assert!(text.contains("calls('refund') == 1"), "{text}");
    assert!(text.contains("# TODO: "), "{text}");
}

/// How a run ended that no scenario can repeat is said, and nothing is made up that fails in its place.
#[test]
fn unrepeatable_ends_are_said() {
    let Some(python) = python_of("langgraph") else { return };
    let senders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders");
    for (wanted, why) in
        [("interrupt", "waits for input"), ("fail", "RuntimeError: the answer template is missing")]
    {
        let home = Home::new();
        let (python, script) = (python.to_string_lossy(), senders.join("langgraph_desk.py"));
        let args = ["watch", "--", &*python, &script.to_string_lossy(), wanted];
        end(home.command(&args).env("SLOW_S", "0"));
        let (_, text) = play(&home, "last", wanted);
        assert!(
            text.contains(&format!("the run ended without success ({why}")),
            "{wanted}: {text}"
        );
        assert!(!text.contains("bad_response"), "{wanted}: {text}");
    }
}

/// Real frameworks with models that are no models: the same agents, calls and answer.
#[test]
fn frameworks_become_scenarios() {
    let senders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders");
    let unknown = "(What was said here is not known.)";
    for (framework, script, answer, rows) in [
        (
            "openai-agents",
            "openai_agents_desk.py",
            Some("Invoice 2041 was paid twice. You get 40 EUR back."),
            &["calls('find_invoice') == 1", "order('triage', 'billing')"][..],
        ),
        (
            "langgraph",
            "langgraph_desk.py",
            None,
            &["calls('search_orders') == 1", "calls('read_policy') == 1", "order('intake', "],
        ),
        (
            "crewai",
            "crewai_desk.py",
            Some("In 1969 people landed on the moon."),
            &["calls('read_archive') == 1", "order('Researcher', 'Writer')"],
        ),
        (
            "pydantic-ai",
            "pydantic_ai_desk.py",
            Some("Plan: write one page on the landing."),
            &["calls('read_archive') == 1", "calls('researcher') == 1"],
        ),
        (
            "otel",
            "otel_plain.py",
            Some(unknown),
            &["calls('read_sensor') == 1", "calls('read_old_sensor') == 1"],
        ),
    ] {
        let Some(python) = python_of(framework) else { continue };
        let home = Home::new();
        let (python, script) = (python.to_string_lossy(), senders.join(script));
        let args = ["watch", "--format", "jsonl", "--", &python, &script.to_string_lossy()];
        let watched = end(home.command(&args).env("SLOW_S", "0"));
        assert_eq!(watched.code, Some(0), "{framework}: {watched:?}");
        // The first run; OpenAI Agents has a second one, which a guardrail ends.
        let lines = watched.lines();
        let head = lines.iter().find(|line| line["kind"] == "run.started").expect("a run");
        let run = head["run"].as_str().expect("an id").to_owned();
        let composed = lines.iter().find(|line| line["kind"] == "answer.composed");
        let (outcome, text) = play(&home, &run, framework);
        let said = composed.map_or(Value::from(unknown), |line| line["text"].clone());
        assert_eq!(outcome["answer"], said, "{framework}: {text}");
        if let Some(answer) = answer {
            assert_eq!(outcome["answer"], json!(answer), "{framework}");
        }
        for row in rows {
            assert!(text.contains(row), "{framework}: {row}\n{text}");
        }
    }
}
