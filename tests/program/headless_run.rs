//! `roundtable run --headless`, the real binary: formats, exit codes, schedules.

use crate::support::binary::{Ended, Home, Running, end, press_enter};
#[cfg(unix)]
use crate::support::counting_endpoint::CountingEndpoint;
use serde_json::Value;
use std::process::Stdio;

fn run(args: &[&str]) -> Ended {
    let mut all = vec!["run", "--instant", "--headless"];
    all.extend(args);
    Home::new().run(&all)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn json_is_only_outcome() {
    let ended = Home::new().run(&["run", "checkout-launch", "--instant"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err, "", "nothing to say on standard error");
    let outcome = ended.json();
    let source = [
        "status",
        "stop_reason",
        "answer",
        "final_decision",
        "rounds_used",
        "team_summary",
        "trace",
        "history",
    ];
    assert_eq!(keys(&outcome)[..source.len()], source, "as the source prints them");
    assert_eq!(outcome["status"], "ok");
    assert_eq!(outcome["rounds_used"], 3);
    assert!(ended.out.starts_with("{\n  \"status\""), "indented by two");
    assert!(ended.out.ends_with("}\n"));
}

#[test]
fn jsonl_ends_with_outcome() {
    let ended = run(&["checkout-launch", "--format", "jsonl"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut lines = ended.lines();
    let outcome = lines.pop().expect("a last line");
    assert_eq!(keys(&outcome)[..4], ["v", "run", "kind", "status"]);
    assert_eq!((&outcome["v"], &outcome["kind"]), (&2.into(), &"outcome".into()));
    assert_eq!(outcome["run"], outcome["run_id"]);
    for (place, event) in lines.iter().enumerate() {
        assert_eq!(event["seq"], place as u64, "no gap, no other order");
        assert_eq!(event["v"], 2);
        assert_eq!(event["run"], outcome["run_id"], "{event}");
    }
    assert_eq!(lines[0]["kind"], "run.started");
    assert_eq!(lines[lines.len() - 1]["kind"], "run.closed");
    assert_eq!(lines[lines.len() - 1]["in_flight"], 0);
}

#[test]
fn piped_text_has_no_colours() {
    let ended = run(&["checkout-launch", "--format", "text"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.out.contains('\u{1b}'), "{}", ended.out);
    for part in ["round 1 of 3", "▼ block", "↻ retry", "503", "✓ DONE  ▲ go", "Launch brief"]
    {
        assert!(ended.out.contains(part), "no {part} in\n{}", ended.out);
    }
    let ascii = run(&["checkout-launch", "--format", "text", "--ascii"]);
    assert!(ascii.out.is_ascii(), "{}", ascii.out);
}

#[test]
fn model_text_controls_no_terminal() {
    let home = Home::new();
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    let hostile = r#"reply = { stance = "go", summary = "go\u001b[2J\u009b31m\u202e", confidence = 0.9, actions = ["\u001b]52;c;eA==\u0007"] }"#;
    let row = format!("[[script]]\nrole = \"demand_analyst\"\n{hostile}\n\n[[script]]");
    home.write("mine.toml", &text.replacen("[[script]]", &row, 1));
    for format in ["json", "jsonl", "text"] {
        let ended = home.run(&["run", "mine.toml", "--instant", "--format", format]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let steers = |c: char| roundtable::bench::is_hostile(c) && c != '\n';
        assert_eq!(ended.out.chars().find(|&c| steers(c)), None, "{format}: {}", ended.out);
    }
    let outcome = home.run(&["run", "mine.toml", "--instant"]).json();
    let summary = &outcome["history"][0]["contributions"][0]["summary"];
    assert_eq!(summary, "go\u{1b}[2J\u{9b}31m\u{202e}", "the data itself is whole");
}

#[test]
fn exit_code_reflects_outcome() {
    for (code, reason, args) in [
        (0, "success", &["checkout-unanimous"][..]),
        (1, "agent_denied:legal_analyst", &["checkout-denied"]),
        (4, "max_rounds_reached", &["checkout-deadlock"]),
        (4, "max_rounds_reached", &["checkout-launch", "--set", "budget.max_rounds=1"]),
        (4, "max_messages", &["checkout-launch", "--set", "budget.max_messages=2"]),
        (
            6,
            "llm_error:http_503",
            &["checkout-launch", "--set", "tools.llm.retries.max_attempts=1"],
        ),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert_eq!(ended.json()["stop_reason"], reason, "{args:?}");
    }
}

#[test]
fn a_decision_can_fail_a_build() {
    for (code, name, fail_on) in [
        (1, "checkout-blocked", "no_go"),
        (1, "checkout-blocked", "go,no_go"),
        (0, "checkout-blocked", "go"),
        (1, "checkout-unanimous", "go"),
        // A run that decided nothing keeps its own code.
        (4, "checkout-deadlock", "go,no_go,go_with_caution"),
    ] {
        let ended = run(&[name, "--fail-on", fail_on]);
        assert_eq!(ended.code, Some(code), "{name} {fail_on}: {ended:?}");
    }
}

#[test]
fn degraded_run_can_fail_build() {
    let home = Home::new();
    // The report can do without the stock.
    let stock = r#"worker = "inventory_worker", args = { report_date = "{{report_date}}", region = "{{region}}" }, critical = "#;
    let text = include_str!("../../scenarios/morning-report.toml");
    assert!(text.contains(&format!("{stock}true")), "the plan has changed");
    let text = text.replace(&format!("{stock}true"), &format!("{stock}false"));
    home.write("mine.toml", &text);
    let without = &["--flag", "inventory_runtime=off"][..];
    for (code, degraded, name, more) in [
        (1, true, "mine.toml", without),
        (0, false, "mine.toml", &[]),
        (0, false, "vendor-brownout", &[]),
        (0, false, "checkout-unanimous", &[]),
        // A run that was stopped keeps its own code.
        (4, false, "checkout-deadlock", &[]),
    ] {
        let args = ["run", name, "--instant", "--format", "json", "--fail-on", "degraded"];
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        let ended = home.run(&args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert_eq!(ended.json()["degraded"], degraded, "{args:?}");
    }
}

#[test]
fn reports_mistakes_before_start() {
    let home = Home::new();
    home.write("broken.toml", "title = 3\npattern = \"collaboration\"\n");
    for (args, says) in [
        (&["run", "no-such-thing"][..], "no shipped scenario of that name"),
        (&["run", "checkout-lunch"], "checkout-launch"),
        (&["run", "broken.toml"], "broken.toml:1:9"),
        (&["run", "checkout-launch", "--set", "budget.max_rounds"], "`=` is missing"),
        (&["run", "checkout-launch", "--set", "budget.max_round=1"], "max_rounds"),
        (&["run", "checkout-launch", "--set", "budget.max_rounds=0"], "0 is out of range"),
        // A shipped scenario is called by its name: no file of that path need be there.
        (&["run", "morning-report", "--set", "budget.max_task=1"], "\nmorning-report: 1 error\n"),
        (&["run", "checkout-launch", "--flag", "legal=on"], "no such flag"),
        (&["run", "checkout-launch", "--flag", "legal_analyst"], "NAME=on"),
        (&["run", "checkout-launch", "--flag", "legal_analyst=on@round:9"], "max_rounds is 3"),
        (&["run", "checkout-launch", "--pause-at", "message:1:nobody"], "no such role"),
        (&["run", "checkout-launch", "--pause-at", "later"], "is not a boundary"),
        (&["run", "checkout-launch", "--pause-at", "plan"], "never reached here; use round:2"),
        (&["run", "checkout-launch", "--pause-at", "turn:1:1"], "never reached here; use round:2"),
        (
            &["run", "morning-report", "--pause-at", "round:2"],
            "never reached here; use plan, dispatch",
        ),
        (&["run", "morning-report", "--pause-at", "dispatch:9:t1"], "max_dispatches is 8"),
        (&["run", "vendor-brownout", "--pause-at", "plan"], "never reached here; use turn"),
        (&["run", "checkout-launch", "--fail-on", "maybe"], "go_with_caution"),
        (
            &["run", "morning-report", "--fail-on", "no_go"],
            "the pattern orchestrator makes no decision",
        ),
        (
            &["run", "vendor-brownout", "--fail-on", "go"],
            "the pattern resilience makes no decision",
        ),
        (&["run", "checkout-launch", "--format", "xml"], "jsonl"),
        (&["run", "checkout-launch", "--theme", "pink"], "no such theme"),
        (&["run", "checkout-launch", "--live", "--proxy", "::"], "--proxy"),
        (&["run"], "FILE|NAME"),
        (&["fly"], "unrecognized subcommand"),
        (&[], "needs a terminal"),
    ] {
        let ended = home.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?} does not say {says}:\n{}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
}

#[test]
fn instant_run_names_its_limits() {
    for (name, says) in [
        ("morning-report-partial", "past its timeout"),
        ("slow-specialist", "past the node timeout of `night_shift`"),
        ("vendor-brownout", "`enrich` under load"),
    ] {
        let ended = run(&[name, "--format", "jsonl"]);
        let said = |line: &str| line.contains("latencies are skipped") && line.contains(says);
        assert!(ended.err.lines().any(said), "{}", ended.err);
        let lines = ended.lines();
        let warned = lines.iter().filter(|event| event["kind"] == "warning");
        let texts: Vec<&str> = warned.filter_map(|event| event["text"].as_str()).collect();
        assert!(texts.iter().any(|text| text.contains(says)), "{name}: {texts:?}");
    }
    let ended = run(&["checkout-launch"]);
    assert_eq!(ended.err, "", "nothing but the waiting is left out");
}

#[test]
fn fields_and_inputs_can_be_set() {
    let outcome = run(&["checkout-unanimous", "--set", "inputs.region=EU"]).json();
    assert_eq!(outcome["team_summary"]["region"], "EU");
}

#[test]
fn flag_takes_effect_at_boundary() {
    let seats = |args: &[&str]| -> Vec<(u64, bool)> {
        let mut all = vec!["checkout-launch", "--format", "jsonl"];
        all.extend(args);
        let ended = run(&all);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = ended.lines();
        let rounds = lines.iter().filter(|event| event["kind"] == "round.started");
        rounds
            .map(|event| {
                let seats = event["seats"].as_array().expect("seats");
                let legal = seats.iter().find(|seat| seat["role"] == "legal_analyst");
                let asked = legal.expect("a seat")["status"] == "asked";
                (event["round"].as_u64().expect("a number"), asked)
            })
            .collect()
    };
    assert_eq!(seats(&[]), [(1, false), (2, false), (3, false)]);
    assert_eq!(seats(&["--flag", "legal_analyst=on"])[0], (1, true));
    assert_eq!(
        seats(&["--flag", "legal_analyst=on@round:2", "--flag", "legal_analyst=off@round:3"]),
        [(1, false), (2, true), (3, false)]
    );
}

#[test]
fn pause_ends_by_timer_or_input() {
    let ended = run(&["checkout-launch", "--format", "jsonl", "--pause-at", "round:2=60ms"]);
    let lines = ended.lines();
    let resumed = lines.iter().find(|event| event["kind"] == "resumed").expect("resumed");
    assert_eq!(resumed["by"], "schedule");
    assert!(resumed["paused_ms"].as_u64() >= Some(60), "{resumed}");
    let outcome = lines.last().expect("an outcome");
    assert!(outcome["paused_ms"].as_u64() >= Some(60), "{outcome}");

    let home = Home::new();
    let args =
        ["run", "checkout-launch", "--instant", "--format", "jsonl", "--pause-at", "round:2"];
    let alone = end(home.command(&args).stdin(Stdio::null()));
    assert_eq!(alone.code, Some(0), "nobody is there, so nobody is waited for: {alone:?}");
    assert!(alone.err.contains("paused before round 2"), "{}", alone.err);

    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = running.stdin();
    let paused = running.until("paused");
    assert_eq!(paused["boundaries"], serde_json::json!(["round:2"]));
    press_enter(&mut stdin);
    assert_eq!(running.until("resumed")["by"], "you");
    let (status, ..) = running.end();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn run_pauses_at_pattern_boundaries() {
    for (name, at) in [
        ("morning-report", "plan"),
        ("morning-report", "dispatch:1:t2"),
        ("morning-report", "finalize"),
        ("vendor-brownout", "turn:3:7"),
    ] {
        let ended = run(&[name, "--format", "jsonl", "--pause-at", &format!("{at}=1ms")]);
        assert_eq!(ended.code, Some(0), "{at}: {ended:?}");
        let lines = ended.lines();
        let paused = lines.iter().find(|event| event["kind"] == "paused").expect("paused");
        let rests = paused["boundaries"].as_array().expect("places");
        assert!(rests.contains(&Value::from(at)), "{at}: {paused}");
        let resumed = lines.iter().find(|event| event["kind"] == "resumed").expect("resumed");
        assert_eq!(resumed["by"], "schedule", "{at}");
    }
}

#[test]
fn flag_takes_effect_at_task_dispatch() {
    let ended = run(&["morning-report", "--flag", "inventory_runtime=off@dispatch:1:t3"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let trace = ended.json()["trace"].clone();
    let row = trace.as_array().expect("rows").iter().find(|row| row["task_id"] == "t3");
    assert_eq!(row.expect("a row")["stop_reason"], "worker_denied:inventory_worker");
}

#[test]
fn closed_reader_ends_run_quietly() {
    let home = Home::new();
    let mut running =
        Running::start(&mut home.command(&["run", "checkout-launch", "--format", "jsonl"]));
    running.until("run.started");
    running.close_out();
    let (status, _, err) = running.end();
    assert_eq!((status.code(), err.as_str()), (Some(141), ""), "a run cut off is no success");
}

#[cfg(target_os = "linux")]
#[test]
fn unwritten_outcome_fails_run() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let ended = end(home.command(&["run", "checkout-unanimous", "--instant"]).stdout(full));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("cannot write the outcome"), "{}", ended.err);
}

#[cfg(target_os = "linux")]
#[test]
fn unwritten_command_output_fails() {
    let home = Home::new();
    for args in [
        &["schema"][..],
        &["scenarios"],
        &["scenarios", "--json"],
        &["doctor"],
        &["validate", "checkout-launch"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let ended = end(home.command(args).stdout(full));
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        let says = "cannot write to standard output";
        assert!(ended.err.contains(says), "{args:?}: {}", ended.err);

        // A reader that closes the pipe wants no more: the status of SIGPIPE, and nothing to say.
        let mut child = home.command(args).spawn().expect("the program starts");
        drop(child.stdout.take());
        let mut err = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut stderr, &mut err).expect("UTF-8");
        assert_eq!((child.wait().expect("it ends").code(), &*err), (Some(141), ""), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn interrupt_cancels_and_writes_outcome() {
    for signal in ["INT", "TERM"] {
        let home = Home::new();
        let args = ["run", "checkout-launch", "--format", "jsonl"];
        let mut running = Running::start(&mut home.command(&args));
        running.until("attempt.started");
        running.signal(signal);
        let (status, out, err) = running.end();
        assert_eq!(status.code(), Some(130), "{signal}: {err}");
        let last = out.lines().last().expect("an outcome");
        let outcome: Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(outcome["stop_reason"], "cancelled", "{signal}");
        assert!(err.contains("cancelling"), "{signal}: {err}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_at_once() {
    let home = Home::new();
    // Paused without a resume: only the interrupts can end it.
    let args =
        ["run", "checkout-launch", "--instant", "--format", "jsonl", "--pause-at", "round:1"];
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let stdin = running.stdin();
    running.until("paused");
    running.signal("INT");
    running.signal("INT");
    let (status, ..) = running.end();
    assert_eq!(status.code(), Some(130));
    drop(stdin);
}

/// As `nohup` and `&` in a script start it.
#[cfg(target_os = "linux")]
#[test]
fn ignored_signals_stay_ignored() {
    let home = Home::new();
    let under = ["sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh"];
    let args =
        ["run", "checkout-launch", "--instant", "--format", "jsonl", "--pause-at", "round:1"];
    let mut running = Running::start(home.command_under(&under, &args).stdin(Stdio::piped()));
    let stdin = running.stdin();
    running.until("paused");
    // Two that are handled would end it without an outcome.
    for signal in ["INT", "HUP", "INT", "HUP", "TERM"] {
        running.signal(signal);
    }
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(130), "{err}");
    let outcome: Value =
        serde_json::from_str(out.lines().last().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["stop_reason"], "cancelled", "{err}");
    drop(stdin);
}

#[cfg(all(unix, debug_assertions))]
#[test]
fn interrupt_needs_no_runtime_thread() {
    for signal in ["INT", "TERM", "HUP"] {
        let home = Home::new();
        let mut running = Running::start(&mut home.command(&["panic-test", "headless"]));
        running.until("run.started");
        running.signal(signal);
        assert!(running.complains().contains("cancelling"), "{signal}");
        running.signal(signal);
        assert_eq!(running.end().0.code(), Some(130), "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn log_file_is_private_to_owner() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--instant", "--log-file", "log/run.log"];
    let ended = end(home.command(&args).env("ROUNDTABLE_LOG", "trace"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let file = home.path().join("log/run.log");
    let mode = std::fs::metadata(&file).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// The message about a standard output that was closed at the start.
#[cfg(unix)]
const CLOSED: &str = "standard output is closed";

#[cfg(unix)]
#[test]
fn a_closed_output_pays_for_nothing() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of("front-desk"));
    let under = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    for more in ["--format json", "--format jsonl", "--format text", "--times 2"] {
        let more: Vec<&str> = more.split(' ').collect();
        let args = [&["run", "front-desk", "--live", "--headless"][..], &more].concat();
        let ended = end(home.command_under(&under, &args).envs(endpoint.env()));
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        assert!(ended.err.contains(CLOSED), "{args:?}: {ended:?}");
    }
    assert_eq!(endpoint.prompts().len(), 0);
    assert_eq!(home.run(&["runs", "--json"]).json(), serde_json::json!([]));
}

/// Each command that only prints, through a shell: with a closed output, a full disk, a reader that is gone.
#[cfg(target_os = "linux")]
#[test]
fn unwritten_output_is_no_success() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_roundtable");
    let run = |line: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", line]).current_dir(home.path()).env_clear().envs(home.env());
        end(&mut command)
    };
    assert_eq!(home.run(&["run", "checkout-unanimous", "--instant", "--headless"]).code, Some(0));
    for command in [
        "scenarios",
        "scenarios checkout-launch",
        "schema",
        "--help",
        "config",
        "runs",
        "show last",
        "show last --format text",
        "export last",
        "fork last",
        "diff last last",
        "new",
        "man",
        "validate checkout-launch",
        "picture checkout-unanimous",
        "test checkout-unanimous --format json",
        "run checkout-unanimous --instant --headless --format json",
    ] {
        let whole = run(&format!("{program} {command} >/dev/null"));
        assert_eq!(whole.code, Some(0), "{command}: {whole:?}");
        for (to, why) in [(">&-", CLOSED), ("1</dev/null", "Bad file"), (">/dev/full", "No space")]
        {
            let ended = run(&format!("{program} {command} {to}"));
            // Of `diff`, 1 says that the runs differ.
            let code = if command.starts_with("diff") { 2 } else { 1 };
            assert_eq!(ended.code, Some(code), "{command} {to}: {ended:?}");
            assert!(ended.err.contains(why), "{command} {to}: {}", ended.err);
        }
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let words: Vec<&str> = command.split(' ').collect();
        let gone = home.command(&words).stdout(writer).output().expect("it starts");
        assert_eq!(gone.status.code(), Some(141), "{words:?}: {gone:?}");
    }
}
