//! Rows over runs that were not made here: kept runs of roundtable, exported logs of watched programs, and programs
//! while they are watched.

use serde_json::{Value, json};

#[cfg(unix)]
use crate::support::binary::Running;
use crate::support::binary::{Ended, Home};
use crate::support::senders::SENDER;

/// Where an engineer has a log of a real framework.
const LANGGRAPH: &str = include_str!("../vectors/watch/langgraph_desk.jsonl");

fn row(that: &str) -> String {
    format!("\n[[expect]]\nthat = '''{that}'''\n")
}

fn rows(rows: &[&str]) -> String {
    rows.iter().map(|that| row(that)).collect()
}

/// What each row of the only file and the only run came to: whether it holds, and why it cannot be evaluated.
fn verdicts(ended: &Ended) -> Vec<(bool, String)> {
    let result = ended.json();
    let rows = result["scenarios"][0]["trials"][0]["expectations"].as_array().expect("rows");
    let verdict = |row: &Value| {
        let why = row["error"].as_str().unwrap_or_default().to_owned();
        (row["passed"] == json!(true), why)
    };
    rows.iter().map(verdict).collect()
}

#[test]
fn own_runs_meet_their_rows() {
    let home = Home::new();
    for scenario in [
        "checkout-launch",
        "checkout-deadlock",
        "fabricated-quote",
        "fraud-check",
        "front-desk",
        "payments-incident",
        "refund-desk",
    ] {
        let ran = home.run(&["run", scenario, "--instant"]);
        assert!(ran.code.is_some(), "{scenario}: {ran:?}");
        let kept = home.run(&["test", scenario, "--trace", "last"]);
        assert_eq!((kept.code, &*kept.err), (Some(0), ""), "{scenario}: {kept:?}");
        home.write("one.jsonl", &home.run(&["export", "last"]).out);
        let file = home.run(&["test", scenario, "--trace", "one.jsonl"]);
        assert_eq!((file.code, &*file.err), (Some(0), ""), "{scenario}: {file:?}");
    }
    // A session keeps a run for each message.
    assert_eq!(home.run(&["run", "support-swarm", "--instant"]).code, Some(0));
    let session = home.run(&["test", "support-swarm", "--trace", "last"]);
    assert!(session.code == Some(1) && session.out.contains("outcome.answered"), "{session:?}");
    home.write(
        "rows.toml",
        &rows(&[
            "status == 'ok' && !degraded && !live && outcome.final_decision == 'go'",
            "calls('llm') >= 3 && !failed('llm') && calls('agent:risk_analyst') >= 1",
            "order('agent:demand_analyst', 'risk_analyst') && tokens > 0",
            "inputs.region == 'US' && has(facts.goal) == false && flags.legal_analyst == false",
            "events.exists(e, e.kind == 'round.closed')",
        ]),
    );
    assert_eq!(home.run(&["run", "checkout-launch", "--instant"]).code, Some(0));
    let ended = home.run(&["test", "rows.toml", "--trace", "last"]);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    assert!(ended.out.contains("1 file passed; 1 run in "), "{}", ended.out);
    home.write("rows.toml", &rows(&["calls('tool:risk') == 0", "calls('agent:risk_analist') > 0"]));
    let ended = home.run(&["test", "rows.toml", "--trace", "last", "--format", "json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for (held, why) in verdicts(&ended) {
        assert!(!held && why.contains("list it in `names`"), "{why}");
    }
}

#[test]
fn logs_of_frameworks_are_judged() {
    let home = Home::new();
    home.write("run.jsonl", LANGGRAPH);
    let good = [
        "status == 'ok' && outcome.failed_spans == 1 && outcome.lost_spans == 0",
        "calls('tool:search_orders') == 1 && calls('read_policy') == 1 && calls('tool:refund') == 0",
        "calls('model:desk-model-1') == 1 && calls('agent:research') == 2 && tokens == 134",
        "order('intake', 'research', 'check', 'answer') && !order('answer', 'intake')",
        "!failed('tool:search_orders') && failed('live_price')",
        "answer.contains('Ada') && elapsed_ms == 2925",
        "!events.exists(e, e.kind == 'span.note')",
    ];
    home.write("rows.toml", &format!("names = [\"tool:refund\"]\n{}", rows(&good)));
    let ended = home.run(&["test", "rows.toml", "--trace", "run.jsonl", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The model has no price, so there is no cost.
    let bad = ["cost_usd < 1.0", "calls('tool:search_order') <= 1", "calls('check') == 1"];
    home.write("bad.toml", &rows(&bad));
    let args = ["--trace", "run.jsonl", "--trace", "run.jsonl"];
    let json = home.run(&[&["test", "bad.toml", "--format", "json"], &args[..2]].concat());
    assert_eq!(json.code, Some(1), "{json:?}");
    let verdicts = verdicts(&json);
    assert!(verdicts[0].1.contains("1 of 1 call of a model came without a cost"), "{verdicts:?}");
    assert!(verdicts[1].1.contains("did you mean `tool:search_orders`?"), "{verdicts:?}");
    assert_eq!(verdicts[2], (false, String::new()), "it was called twice");
    let text = home.run(
        &[&["test", "rows.toml", "bad.toml", "--report", "junit=out.xml"], &args[..]].concat(),
    );
    assert_eq!(text.code, Some(1), "{text:?}");
    for said in [
        "2/2",
        "0/2",
        "bad.toml:3",
        "not in 2 of 2 runs; the first is run.jsonl",
        "cost_usd is not known",
        "roundtable open run.jsonl",
        "2 files: 1 passed, 1 failed; 4 runs in ",
    ] {
        assert!(text.out.contains(said), "{said}\n{}", text.out);
    }
    let xml = std::fs::read_to_string(home.path().join("out.xml")).expect("a report");
    assert!(xml.contains("came without a cost") && xml.contains("the first is run.jsonl"), "{xml}");
    let github = home.run(&[&["test", "bad.toml", "--format", "github"], &args[..2]].concat());
    assert!(github.out.contains("::error file=bad.toml,line=3"), "{}", github.out);
    let half = ["test", "rows.toml", "bad.toml", "--trace", "run.jsonl", "--min-pass", "0.0"];
    assert_eq!(home.run(&half).code, Some(0));
}

#[test]
fn logs_that_lack_facts_are_refused() {
    let home = Home::new();
    home.write("rows.toml", &row("status == 'ok'"));
    let lines: Vec<&str> = LANGGRAPH.lines().collect();
    let without = |at: usize| {
        let kept = lines.iter().enumerate().filter(|(nth, _)| *nth != at);
        kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    home.write("hole.jsonl", &without(20));
    home.write("open.jsonl", &without(lines.len() - 1));
    home.write("cut.jsonl", &LANGGRAPH[..LANGGRAPH.len() - 40]);
    home.write("later.jsonl", &LANGGRAPH.replace("\"answer.composed\"", "\"answer.sung\""));
    home.write("whole.jsonl", LANGGRAPH);
    assert_eq!(home.run(&["import", "whole.jsonl"]).code, Some(0));
    home.write("redacted.jsonl", &home.run(&["export", "last", "--redact"]).out);
    for (trace, why) in [
        ("hole.jsonl", "hole.jsonl is not a whole log"),
        ("cut.jsonl", "is cut off and was left out"),
        ("open.jsonl", "the run has not ended"),
        ("later.jsonl", "a later version of roundtable wrote it"),
        ("redacted.jsonl", "its texts are redacted"),
        ("none.jsonl", "none.jsonl cannot be read"),
        ("r-none", "no kept run is called r-none"),
    ] {
        let ended = home.run(&["test", "rows.toml", "--trace", trace, "--report", "junit=out.xml"]);
        assert_eq!(ended.code, Some(2), "{trace}: {ended:?}");
        assert!(ended.err.contains(why), "{trace}: {}", ended.err);
        let xml = std::fs::read_to_string(home.path().join("out.xml")).expect("a report");
        assert!(xml.contains("it could not be checked"), "{trace}: {xml}");
    }
    // A bad log does not hide what a good one says.
    let ended = home.run(&["test", "rows.toml", "--trace", "hole.jsonl", "--trace", "last"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.out.contains("1/1") && ended.out.contains("not checked"), "{}", ended.out);
    for (args, why) in [
        (&["test", "rows.toml"][..], "has rows, and nothing to run"),
        (&["test", "rows.toml", "--min-pass", "0.5"], "--min-pass is about several runs"),
        (&["test", "rows.toml", "--trace", "last", "--live"], "cannot be used with"),
    ] {
        let ended = home.run(args);
        assert!(ended.code == Some(2) && ended.err.contains(why), "{args:?}: {ended:?}");
    }
}

#[test]
fn unfit_rows_stop_before_start() {
    let home = Home::new();
    home.write("run.jsonl", LANGGRAPH);
    let unfit = [
        "status == 'ok'",
        "!degraded",
        "cites('example.com')",
        "events.exists(e, e.kind == 'round.closed')",
    ];
    home.write("rows.toml", &rows(&unfit));
    let program = ["--", "sh", "-c", "echo started > started.txt"];
    for args in [
        vec!["test", "rows.toml", "--trace", "run.jsonl"],
        [&["watch", "--expect", "rows.toml"], &program[..]].concat(),
        vec!["listen", "--expect", "rows.toml"],
    ] {
        let ended = home.run(&args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        for why in [
            "rows.toml:6: `degraded` has no meaning for a run of another program",
            "rows.toml:9: `cites` has no meaning",
            "rows.toml:12: a run of another program has no event `round.closed`",
        ] {
            assert!(ended.err.contains(why), "{args:?}: {why}: {}", ended.err);
        }
    }
    home.write("rows.toml", "[[expect]]\nthat = \"tokns < 3\"\n");
    for file in ["rows.toml", "none.toml"] {
        let ended = home.run(&[&["watch", "--expect", file], &program[..]].concat());
        assert_eq!(ended.code, Some(2), "{file}: {ended:?}");
    }
    assert!(!home.path().join("started.txt").exists(), "the program was not started");
}

#[test]
fn watched_programs_meet_rows() {
    let home = Home::new();
    home.write("desk.py", SENDER);
    home.write("desk_fails.py", &format!("{SENDER}\nsys.exit(7)\n"));
    home.write("silent.py", "print('nothing')");
    // A request that cannot be read may have had spans.
    home.write(
        "lossy.py",
        &SENDER.replace(
            "line = sys",
            "try:\n    url = os.environ[\"OTEL_EXPORTER_OTLP_ENDPOINT\"] + \"/v1/traces\"\n    \
             request = urllib.request.Request(url, b\"{\", {\"Content-Type\": \"application/json\"})\n    \
             urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)\n\
             except urllib.error.HTTPError as error:\n    print(error.code)\nline = sys",
        ),
    );
    let good = ["calls('tool:refund') == 1 && !failed('tool:refund')", "answer == 'Refunded.'"];
    home.write("good.toml", &rows(&good));
    home.write("bad.toml", &rows(&["calls('tool:refund') == 2"]));
    home.write("tokens.toml", &rows(&["tokens < 20000"]));
    for (file, program, code, said) in [
        ("good.toml", "desk.py", 0, "1 file passed; 1 run in "),
        ("good.toml", "desk_fails.py", 7, "1 file passed"),
        ("bad.toml", "desk.py", 1, "calls(\"tool:refund\") is 1"),
        ("bad.toml", "desk_fails.py", 7, "calls(\"tool:refund\") is 1"),
        ("tokens.toml", "desk.py", 1, "no call of a model was reported"),
        ("good.toml", "silent.py", 1, "the program reported nothing"),
        ("good.toml", "lossy.py", 1, "some spans are missing: a request was not read"),
    ] {
        let ended = home.run(&["watch", "--expect", file, "--", "python3", program]);
        assert_eq!(ended.code, Some(code), "{file} {program}: {ended:?}");
        assert!(ended.err.contains(said), "{file} {program}: {said}: {}", ended.err);
        // The output of the program stays its own.
        assert!(!ended.out.contains("expectation") && !ended.out.contains(file), "{}", ended.out);
        let kept = home.run(&["test", file, "--trace", "last"]);
        let holds = said.contains("passed");
        assert_eq!(kept.code, Some(i32::from(!holds)), "{file} {program}: {kept:?}");
    }
}

/// Runs that are received, two traces, are judged when `listen` is interrupted.
#[cfg(unix)]
#[test]
fn received_runs_meet_rows() {
    let home = Home::new();
    home.write("desk.py", SENDER);
    home.write("rows.toml", &rows(&["calls('tool:refund') == 1", "status == 'ok'"]));
    home.write("none.toml", &rows(&["status == 'ok'"]));
    let mut nobody = Running::start(&mut home.command(&["listen", "--expect", "none.toml"]));
    nobody.complains();
    nobody.signal("INT");
    let (status, _, err) = nobody.end();
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(err.contains("the program reported nothing: there is no run"), "{err}");
    let mut listening = Running::start(&mut home.command(&["listen", "--expect", "rows.toml"]));
    let mut url = String::new();
    while url.is_empty() {
        let line = listening.complains();
        let after = line.split("OTEL_EXPORTER_OTLP_ENDPOINT=").nth(1);
        url = after.and_then(|it| it.split_whitespace().next()).unwrap_or_default().to_owned();
    }
    for trace in ["0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d"] {
        let script = SENDER.replace("0af7651916cd43dd8448eb211c80319c", trace);
        home.write("desk.py", &script);
        let mut program = std::process::Command::new("python3");
        program.arg(home.path().join("desk.py")).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
        assert!(program.output().expect("python3").status.success());
    }
    listening.signal("INT");
    let (status, _, err) = listening.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("2/2") && err.contains("1 file passed; 2 runs"), "{err}");
}
