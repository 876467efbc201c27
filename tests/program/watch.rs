//! Programs of others, watched: what they print and how they end stays as it is, what they say of their spans is
//! kept, and nothing of their set-up is lost or sent.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, Running, end, press_enter};
use crate::support::senders::{SENDER, python_of, sender_of};

fn watch(home: &Home, args: &[&str], command: &[&str]) -> Ended {
    home.run(&[&["watch"], args, &["--"], command].concat())
}

#[test]
fn output_and_exit_code_stay() {
    let home = Home::new();
    for (script, code, out) in [
        ("echo out; echo err >&2; exit 3", 3, "out\n"),
        ("printf 'no end of line'", 0, "no end of line"),
        ("kill -TERM $$", 143, ""),
        ("exec 1>&- 2>&-; exit 7", 7, ""),
        ("test -t 1 || echo a pipe", 0, "a pipe\n"),
    ] {
        let ended = watch(&home, &[], &["sh", "-c", script]);
        assert_eq!((ended.code, &*ended.out), (Some(code), out), "{script}: {ended:?}");
    }
    let ended =
        watch(&home, &["--format", "jsonl"], &["sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("out\n") && ended.err.contains("err\n"), "{ended:?}");
    let texts: Vec<Value> =
        ended.lines().into_iter().filter(|line| line["kind"] == "span.text").collect();
    let of =
        |stream: &str| texts.iter().find(|line| line["stream"] == stream).map(|it| &it["text"]);
    assert_eq!((of("stdout"), of("stderr")), (Some(&json!("out")), Some(&json!("err"))));
    let missing = watch(&home, &[], &["no-such-program"]);
    assert_eq!(missing.code, Some(127), "{missing:?}");
    assert!(missing.err.contains("no-such-program cannot be started"), "{missing:?}");
}

#[test]
fn spans_are_kept_like_runs() {
    let home = Home::new();
    home.write("desk.py", SENDER);
    let ended = watch(&home, &["--name", "refunds"], &["python3", "desk.py"]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "got re_31\n"), "{ended:?}");
    assert!(ended.err.contains("refunds: completed"), "{ended:?}");
    let rows = home.run(&["runs", "--json"]).json();
    let (id, row) = (rows[0]["id"].as_str().expect("an id").to_owned(), &rows[0]);
    assert_eq!((&row["pattern"], &row["title"]), (&json!("observed"), &json!("refunds")));
    let shown = home.run(&["show", &id]).json();
    assert_eq!((&shown["answer"], &shown["path"]), (&json!("Refunded."), &json!(["desk"])));
    assert_eq!(shown["tool_calls"][0]["name"], "refund");
    let found = home.run(&["runs", "--grep", "ch_2", "--json"]).json();
    assert_eq!(found[0]["id"], *id, "{found}");
    let log = home.run(&["export", &id]).lines();
    let kinds = |kind: &str| log.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((kinds("span.opened"), kinds("span.closed")), (2, 2));
    let text = home.run(&["export", &id]).out;
    assert!(!text.contains("roundtable.pending"), "only what is shown is kept");
    home.write("log.jsonl", &text);
    for args in
        [&["diff", &id, "log.jsonl"][..], &["picture", &id], &["show", &id, "--format", "text"]]
    {
        let ended = home.run(args);
        assert!(matches!(ended.code, Some(0 | 1)) && !ended.out.is_empty(), "{args:?}: {ended:?}");
    }
    for args in [&["fork", &id][..], &["resume", &id], &["run", "--replay", &id]] {
        assert_ne!(home.run(args).code, Some(0), "{args:?}");
    }
    let forked = home.run(&["fork", &id]);
    assert!(forked.err.contains("another program played it"), "{forked:?}");
    assert!(forked.err.contains("start that program again with `roundtable watch`"), "{forked:?}");
    // The head has nothing of a scenario.
    let head = &log[0];
    assert_eq!((head.get("launch"), head.get("tools")), (None, None), "{head}");
    let redacted = home.run(&["export", "--redact", &id]).out;
    assert!(!redacted.contains("ch_2") && !redacted.contains("re_31"), "{redacted}");
    assert!(
        redacted.contains("\"stream\":\"stdout\"") && !redacted.contains("\"desk\""),
        "{redacted}"
    );
}

/// From elsewhere a watched program can be interrupted, and nothing else.
#[test]
fn other_processes_can_only_cancel() {
    let home = Home::new();
    let mut running =
        Running::start(&mut home.command(&["watch", "--format", "jsonl", "--", "sleep", "60"]));
    let head = running.until("run.started");
    let run = head["run"].as_str().expect("an id");
    for args in [&["pause"][..], &["message", "Well?"], &["fault", "llm", "hang"]] {
        let ended = home.run(&[&["ctl", run], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains("it is only watched"), "{args:?}: {ended:?}");
    }
    assert_eq!(home.run(&["ctl", run, "cancel"]).code, Some(0));
    assert_eq!(running.end().0.code(), Some(130));
}

/// A reader that goes away, as `head` does, leaves the program alone.
#[test]
fn closed_output_leaves_program_running() {
    let home = Home::new();
    let script = "n=0; while [ $n -lt 50 ]; do read go; n=$((n + 1)); echo line $n; done; exit 7";
    let args = ["watch", "--format", "jsonl", "--", "sh", "-c", script];
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    running.until("run.started");
    running.close_out();
    let mut stdin = running.stdin();
    // Each line is one more write to the closed output.
    for n in 1..=50 {
        press_enter(&mut stdin);
        assert_eq!(running.complains(), format!("line {n}\n"));
    }
    assert_eq!(running.end().0.code(), Some(7));
    let rows = home.run(&["runs", "--json"]).json();
    assert_eq!(rows[0]["stop_reason"], "program_failed", "{rows}");
}

/// The program gets an address on this machine and a key that is none; what it had is not read.
#[test]
fn environment_points_at_the_receiver() {
    let home = Home::new();
    home.write("own/sitecustomize.py", "import sys; sys.stdout.write('own sitecustomize\\n')");
    home.write(
        "show.py",
        "import json, os\n\
         names = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'LANGSMITH_ENDPOINT', 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY',\n\
                  'LANGSMITH_PROJECT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'NO_PROXY']\n\
         print(json.dumps({name: os.environ.get(name) for name in names}))\n",
    );
    let of = |args: &[&str]| {
        let mut command = home.command(&[&["watch"], args, &["--", "python3", "show.py"]].concat());
        command.env("PYTHONPATH", home.path().join("own"));
        command.env("LANGSMITH_API_KEY", "lsv2_secret").env("LANGSMITH_PROJECT", "mine");
        command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://otel.example/v1/traces");
        command
            .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
            .env("NO_PROXY", "x.example");
        end(&mut command)
    };
    let ended = of(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (own, shown) = ended.out.split_once('\n').expect("two lines");
    assert_eq!(own, "own sitecustomize");
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    let starts =
        |name: &str| shown[name].as_str().is_some_and(|it| it.starts_with("http://127.0.0.1:"));
    assert!(starts("OTEL_EXPORTER_OTLP_ENDPOINT") && starts("LANGSMITH_ENDPOINT"), "{shown}");
    assert_eq!(shown["LANGSMITH_API_KEY"], "roundtable");
    assert_eq!(shown["LANGSMITH_PROJECT"], "mine");
    // They are set, not removed: `load_dotenv()` sets what is not there.
    assert!(starts("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), "{shown}");
    assert_eq!(shown["LANGCHAIN_API_KEY"], "roundtable");
    assert_eq!(shown["OTEL_EXPORTER_OTLP_HEADERS"], "");
    assert_eq!(shown["NO_PROXY"], "x.example,127.0.0.1,localhost");
    assert!(ended.err.contains("LangSmith gets nothing"), "{ended:?}");
    assert!(ended.err.contains("your OTLP endpoint gets nothing"), "{ended:?}");
    let token = shown["LANGSMITH_ENDPOINT"]
        .as_str()
        .and_then(|url| url.rsplit('/').next())
        .expect("a token");
    assert!(token.len() == 32 && !ended.err.contains(token), "the token is not shown");
    let left = of(&["--no-langsmith", "--no-tap"]);
    assert!(left.out.contains("lsv2_secret") && !left.err.contains("LangSmith"), "{left:?}");
}

/// Real frameworks with models that are no models.
#[test]
fn frameworks_are_watched_live() {
    let senders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders");
    for (framework, script, code, agents, tool) in [
        ("langgraph", "langgraph_desk.py", 0, &["intake", "research"][..], "search_orders"),
        ("openai-agents", "openai_agents_desk.py", 0, &["triage", "billing"], "find_invoice"),
        ("pydantic-ai", "pydantic_ai_desk.py", 0, &["planner", "researcher"], "read_archive"),
        ("crewai", "crewai_desk.py", 0, &["Researcher", "Writer"], "read_archive"),
        ("otel", "otel_plain.py", 0, &["forecaster"], "read_sensor"),
    ] {
        let Some(python) = python_of(framework) else { continue };
        let home = Home::new();
        let script = senders.join(script);
        let (python, script) = (python.to_string_lossy(), script.to_string_lossy());
        let mut plain = std::process::Command::new(&*python);
        plain
            .arg(&*script)
            .env("SLOW_S", "0")
            .env("OTEL_SDK_DISABLED", "true")
            .env("HOME", home.path());
        let plain = end(&mut plain);
        let mut command = home.command(&["watch", "--format", "jsonl", "--", &python, &script]);
        let ended = end(command.env("SLOW_S", "2"));
        assert_eq!(ended.code, Some(code), "{framework}: {ended:?}");
        for line in plain.out.lines() {
            assert!(ended.err.contains(line), "{framework}: {line}: {}", ended.err);
        }
        let lines = ended.lines();
        let of = |kind: &str, name: &str| {
            let found = lines.iter().find(|it| it["kind"] == kind && it["name"] == *name);
            let found = found.unwrap_or_else(|| panic!("{framework}: no {kind} of {name}"));
            (Duration::from_micros(found["at_us"].as_u64().expect("a time")), found["span"].clone())
        };
        for agent in agents {
            of("span.opened", agent);
        }
        // A start is here long before its end.
        let (began, span) = of("span.opened", tool);
        let closed = lines.iter().find(|it| it["kind"] == "span.closed" && it["span"] == span);
        let ended_at =
            Duration::from_micros(closed.expect("an end")["at_us"].as_u64().expect("a time"));
        let between = ended_at.saturating_sub(began);
        assert!(between > Duration::from_millis(1_500), "{framework}: {between:?}");
        let outcomes: Vec<&Value> = lines.iter().filter(|it| it["kind"] == "outcome").collect();
        assert!(!outcomes.is_empty(), "{framework}");
    }
    if let Some(python) = python_of("langgraph") {
        let home = Home::new();
        let (python, script) = (python.to_string_lossy(), senders.join("langgraph_desk.py"));
        for (wanted, code, reason) in
            [("fail", 1, "span_failed"), ("interrupt", 0, "waits_for_input")]
        {
            let args =
                ["watch", "--format", "json", "--", &python, &script.to_string_lossy(), wanted];
            let ended = end(home.command(&args).env("SLOW_S", "0"));
            assert_eq!(ended.code, Some(code), "{wanted}: {ended:?}");
            assert_eq!(ended.json()["stop_reason"], reason, "{wanted}");
        }
    }
}

/// What a run of another program was, in a line: its end, its agents with their turns, its tools with calls and failures,
/// its models with calls and tokens, and its path.
fn account_of(outcome: &Value) -> String {
    let list = |name: &str, fields: &[&str]| {
        let rows = outcome[name].as_array().into_iter().flatten();
        let row = |row: &Value| {
            let words = fields.iter().map(|field| row[*field].to_string());
            words.collect::<Vec<_>>().join(" ").replace('"', "")
        };
        let mut rows: Vec<String> = rows.map(row).collect();
        rows.sort();
        rows.join(", ")
    };
    let path = outcome["path"].as_array().into_iter().flatten().filter_map(Value::as_str);
    [
        outcome["stop_reason"].as_str().unwrap_or_default().to_owned(),
        list("agents", &["agent", "turns"]),
        list("tool_calls", &["name", "calls", "failed"]),
        list("model_calls", &["name", "calls", "tokens_in", "tokens_out"]),
        path.collect::<Vec<_>>().join(" > "),
    ]
    .join(" | ")
}

/// The frameworks in the shapes that people build with them: what the programs do themselves, as their scripts say it.
/// `lanes`: what is drawn in the row of an actor; of hops, in any row.
#[test]
fn frameworks_are_shown_as_they_are() {
    let desk = "success | answer 1, approve 1, check 2, fetch 2, intake 1, price 1, research 2 | read_policy 1 0, \
                search_orders 1 0 | desk-model-1 1 120 14 | intake > research > research > price > approve > answer";
    let asks = "waits_for_input | approve 1, check 2, fetch 2, intake 1, price 1, research 2 | read_policy 1 0, \
                search_orders 1 0 |  | intake > research > research > price > approve";
    for (framework, script, mode, runs, lanes) in [
        (
            "langgraph",
            "langgraph_desk.py",
            "",
            &[desk][..],
            &[("research x2", "⑂"), ("price", "⑃")][..],
        ),
        (
            "langgraph",
            "langgraph_desk.py",
            "resume",
            &[asks, "success | answer 1, approve 1 |  | desk-model-1 1 120 14 | approve > answer"],
            &[("answer", "▰")],
        ),
        (
            "openai-agents",
            "openai_agents_desk.py",
            "",
            &[
                "success | billing 1, triage 1 | find_invoice 1 0 | fake-billing-1 2 180 24, fake-triage-1 1 90 12 | \
                 triage > billing",
                "guardrail_tripped | triage 1 |  |  | triage",
            ],
            &[],
        ),
        (
            "openai-agents",
            "openai_agents_desk.py",
            "error",
            &["success | clerk 1 | read_ledger 1 1 | fake-clerk-1 2 180 24 | clerk"],
            &[],
        ),
        (
            "crewai",
            "crewai_desk.py",
            "",
            &[
                "success | Researcher 1, Writer 1 | read_archive 1 0 | fake-research-1 2 160 40, fake-write-1 1 80 20 | \
               Researcher > Writer",
            ],
            &[("order", "by time")],
        ),
        (
            "crewai",
            "crewai_desk.py",
            "hierarchical",
            &[
                "success | Crew Manager 1, Researcher 1 | delegate_work_to_coworker 1 0, read_archive 1 0 | \
               fake-manager-1 2 160 40, fake-research-1 2 160 40 | Crew Manager",
            ],
            &[("Researcher", "⇄")],
        ),
        (
            "pydantic-ai",
            "pydantic_ai_desk.py",
            "retry",
            &[
                "success | planner 1, researcher 1 | ask_researcher 1 0, read_archive 2 1 | fake-plan-1 2 118 24, \
               fake-research-1 3 186 26 | planner",
            ],
            &[("researcher", "⇄")],
        ),
        (
            "otel",
            "otel_plain.py",
            "",
            &[
                "success | forecaster 1 | read_old_sensor 1 1, read_sensor 1 0 | fake-weather-1-2025 1 31 9 | forecaster",
            ],
            &[],
        ),
    ] {
        let home = Home::new();
        let Some(mut command) = sender_of(framework, script, home.path()) else { continue };
        command.extend((!mode.is_empty()).then(|| mode.to_owned()));
        let mut args = vec!["watch", "--format", "jsonl", "--"];
        args.extend(command.iter().map(String::as_str));
        let ended = end(home.command(&args).env("SLOW_S", "0"));
        assert_eq!(ended.code, Some(0), "{framework} {mode}: {ended:?}");
        let lines = ended.lines();
        let outcomes = lines.iter().filter(|line| line["kind"] == "outcome");
        let mut accounts: Vec<String> = outcomes.map(account_of).collect();
        // Runs that are over at the same time end in any order.
        accounts.sort();
        let mut wanted = runs.to_vec();
        wanted.sort_unstable();
        assert_eq!(accounts, wanted, "{framework} {mode}");
        let drawn = home.run(&["picture", "last", "--text", "--no-store"]);
        for (row, mark) in lanes {
            let has_both = |line: &str| line.contains(row) && line.contains(mark);
            assert!(drawn.out.lines().any(has_both), "{framework} {mode}: {row}\n{}", drawn.out);
        }
    }
}

/// What is watched of a program equals what its model was asked: calls, tokens, the first prompt and the tools.
#[test]
fn watched_calls_equal_the_model() {
    for (framework, script, agent) in [
        ("langgraph", "langchain_desk.py", "desk"),
        ("adk", "adk_desk.py", "desk"),
        ("agent-framework", "agent_framework_desk.py", "desk"),
        ("strands", "strands_desk.py", "desk"),
        ("node", "ai_sdk_desk.mjs", "desk"),
        ("node", "langgraph_desk.mjs", "desk"),
    ] {
        let home = Home::new();
        let Some(command) = sender_of(framework, script, home.path()) else { continue };
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let ended = watch(&home, &["--format", "jsonl"], &command);
        assert_eq!(ended.code, Some(0), "{script}: {ended:?}");
        let account = ended.err.lines().rev().find(|line| line.starts_with("{\"calls\""));
        let account: Value =
            serde_json::from_str(account.unwrap_or_else(|| panic!("{script}: {ended:?}")))
                .expect("JSON");
        let lines = ended.lines();
        let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
        let [outcome] = of("outcome")[..] else { panic!("{script}: one run: {ended:?}") };
        let usage = &outcome["usage"];
        for name in ["prompt_tokens", "completion_tokens"] {
            assert_eq!(usage[name], account[name], "{script}: {outcome}");
        }
        let calls = of("call.started");
        assert_eq!(json!(calls.len()), account["calls"], "{script}: {ended:?}");
        assert_eq!(outcome["model_calls"][0]["calls"], account["calls"], "{script}: {outcome}");
        // The one that no earlier prompt begins like.
        let whole = calls.iter().find(|call| call["prompt"]["after"].is_null());
        let prompt = &whole.expect("a whole prompt")["prompt"];
        let names = |of: &Value, name: &str| -> Value {
            of.as_array()
                .map(|all| all.iter().map(|it| it[name].clone()).collect())
                .unwrap_or_default()
        };
        let mut roles = names(&prompt["messages"], "role");
        let first = account["roles"].as_array().map_or(0, Vec::len);
        roles.as_array_mut().expect("roles").truncate(first);
        assert_eq!(roles, account["roles"], "{script}: {prompt}");
        // Strands and Agent Framework leave the tools out of their spans.
        if !prompt["tools"].is_null() {
            assert_eq!(names(&prompt["tools"], "name"), account["tools"], "{script}: {prompt}");
        }
        let replies = of("attempt.answered");
        // A slow machine may report them in another order.
        let has = |name: &str, wanted: &str| {
            replies.iter().any(|reply| {
                reply.pointer(name).and_then(Value::as_str).is_some_and(|it| it.trim() == wanted)
            })
        };
        assert!(has("/tool_calls/0/name", "stock"), "{script}: {replies:?}");
        assert!(has("/text", "There are 7 lamps."), "{script}: {replies:?}");
        assert_eq!(
            outcome["answer"].as_str().map(str::trim),
            Some("There are 7 lamps."),
            "{script}"
        );
        let tools = &outcome["tool_calls"];
        assert_eq!(
            (&tools[0]["name"], &tools[0]["calls"]),
            (&json!("stock"), &json!(1)),
            "{script}"
        );
        let agents = names(&outcome["agents"], "agent");
        let has_agent =
            |agent: &str| agents.as_array().is_some_and(|all| all.contains(&json!(agent)));
        assert!(has_agent(agent), "{script}: {outcome}");
    }
}

/// A launcher puts its own file before the tap, and executes the program.
#[test]
fn launchers_do_not_hide_the_tap() {
    let home = Home::new();
    home.write("other/sitecustomize.py", "x = 1\n");
    home.write("app.py", "import sys; print(any(hasattr(it, 'hook') for it in sys.meta_path))\n");
    home.write(
        "launch.py",
        "import os, sys\n\
         os.environ['PYTHONPATH'] = os.path.abspath('other') + os.pathsep + os.environ['PYTHONPATH']\n\
         os.execl(sys.executable, sys.executable, 'app.py')\n",
    );
    let ended = watch(&home, &[], &["python3", "launch.py"]);
    assert_eq!(ended.out, "True\n", "{ended:?}");
}

#[test]
fn silent_programs_are_no_success() {
    let home = Home::new();
    let ended = watch(&home, &["--headless"], &["python3", "-c", "print(1)"]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "1\n"), "{ended:?}");
    assert!(ended.err.contains("nothing was reported"), "{ended:?}");
    assert!(ended.err.contains("docs/watch.md"), "{ended:?}");
    let ended = watch(&home, &["--format", "json"], &["python3", "-c", "print(1)"]);
    assert_eq!(ended.json()["stop_reason"], "nothing_reported");
}

/// The traces of one program are one JSON value.
#[test]
fn several_traces_are_one_list() {
    let home = Home::new();
    let more = SENDER
        .replace("0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c")
        .replace("\"output.value\"", "\"input.value\": \"Refund ch_2.\", \"output.value\"");
    home.write("two.py", &format!("{SENDER}\n{more}"));
    let ended = watch(&home, &["--format", "json"], &["python3", "two.py"]);
    let value = ended.json();
    let answers: Vec<&Value> =
        value.as_array().expect("a list").iter().map(|it| &it["answer"]).collect();
    assert_eq!(answers, ["Refunded.", "Refunded."]);
    // The list tells them apart by what they were asked.
    let rows = home.run(&["runs", "--json"]).json();
    let titles: Vec<&Value> =
        rows.as_array().expect("rows").iter().map(|it| &it["title"]).collect();
    assert!(titles.contains(&&json!("two: Refund ch_2.")), "{titles:?}");
}
