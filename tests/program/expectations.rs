//! `roundtable test` and `run --times`: what scenarios expect of their runs.

use junit_parser::{TestStatus, TestSuites};
use serde_json::Value;

use crate::support::binary::{Home, Running, end};

/// A scenario of four calls whose last word is `answer`, with these rows.
fn scenario(answer: &str, rows: &str) -> String {
    let text = include_str!("../../scenarios/checkout-unanimous.toml");
    let (before, _) = text.split_once("step    = \"finalize\"").expect("a brief");
    format!("{before}step = \"finalize\"\ntext = {answer:?}\n{rows}")
}

fn expect(that: &str) -> String {
    format!("\n[[expect]]\nthat = '''{that}'''\n")
}

#[test]
fn shipped_scenarios_meet_expectations() {
    let home = Home::new();
    let all = home.run(&["scenarios", "--json"]).json();
    let names =
        all.as_array().expect("a list").iter().map(|it| it["name"].as_str().expect("a name"));
    // These ask services of this machine and the web.
    let outside = ["real-services", "web-status"];
    let names: Vec<&str> = names.filter(|name| !outside.contains(name)).collect();
    assert!(names.len() >= 23, "{names:?}");
    let ended = home.run(&[&["test", "--format", "json"], &names[..]].concat());
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    let result = ended.json();
    assert_eq!(result["passed"], true);
    for scenario in result["scenarios"].as_array().expect("a list") {
        let rows = scenario["trials"][0]["expectations"].as_array().expect("rows");
        assert!(rows.len() >= 2 && rows.iter().all(|row| row["line"].is_u64()), "{scenario}");
    }
    // What can be repeated at will is not kept.
    assert_eq!(home.run(&["runs", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn templates_are_as_they_expect() {
    let home = Home::new();
    for pattern in
        ["collaboration", "orchestrator", "team", "swarm", "resilience", "research", "router"]
    {
        assert_eq!(home.run(&["new", pattern]).code, Some(0));
    }
    let ended = home.run(&["test", "scenarios"]);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    assert!(ended.out.contains("7 scenarios passed; 7 runs in "), "{}", ended.out);
    assert!(!ended.out.contains("no [[expect]]"), "{}", ended.out);
}

#[test]
fn failed_row_shows_actual_value() {
    let home = Home::new();
    let rows = "\n[[expect]]\nthat = 'outcome.final_decision == \"no_go\" && calls(\"llm\") <= 3'\n\
                message = \"It is refused.\"\n";
    let rows = rows.to_owned() + &expect("cost_usd < 0.05") + &expect("stop_reason == 'success'");
    home.write("mine.toml", &scenario("Yes.", &rows));
    let ended = home.run(&["test", "mine.toml", "front-desk", "--report", "junit=out.xml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        "2 of 3 failed",
        "It is refused.  mine.toml:",
        "outcome.final_decision is \"go\"",
        "calls(\"llm\") is 4",
        "cannot be evaluated: `<` does not take null_type and double",
        "cost_usd is null",
        "roundtable run mine.toml\n",
        "2 scenarios: 1 passed, 1 failed; 2 runs in ",
        ", in simulated time",
    ] {
        assert!(ended.out.contains(said), "{said}\n{}", ended.out);
    }
    let xml = std::fs::read(home.path().join("out.xml")).expect("a report");
    let read: TestSuites = junit_parser::from_reader(&xml[..]).expect("JUnit");
    assert_eq!((read.tests, read.failures, read.errors), (7, 1, 1));
    let mine = read.suites.iter().find(|suite| suite.name == "mine").expect("a suite");
    assert_eq!(mine.cases.len(), 3);
    let TestStatus::Failure(why) = &mine.cases[0].status else { panic!("{mine:?}") };
    assert_eq!(why.message, "outcome.final_decision == \"no_go\" && calls(\"llm\") <= 3");
    assert!(why.text.contains("the run ended with success"), "{why:?}");
    assert!(matches!(&mine.cases[1].status, TestStatus::Error(why) if why.text.contains("null")));
    assert!(matches!(mine.cases[2].status, TestStatus::Success));
}

#[test]
fn failed_test_shows_run_failures() {
    let home = Home::new();
    let text = include_str!("../../assets/templates/team.toml");
    let text = text.split("\n[[expect]]").next().expect("a text");
    let (before, after) = text.split_once("[[tools.list_changes.fixture.rows]]").expect("a tool");
    let (_, after) = after.split_once("\n# ").expect("what follows");
    let command = "[tools.list_changes.command]\nprogram = \"./not-there.sh\"\n";
    let rows = expect("calls('list_changes') == 0")
        + &expect("outcome.session[0].result == 1")
        + &expect("order('writer', 'researcher')")
        + &expect("outcome.session.all(m, m.status != 'ok')");
    home.write("mine.toml", &format!("{before}{command}\n# {after}{rows}"));
    let args = ["test", "mine.toml", "--trust", "--report", "junit=out.xml"];
    let ended = home.run(&args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        "list_changes failed 1 of 1 call: ",
        "not-there.sh",
        "outcome.session[0].result is missing; there are status, stop_reason, ",
        "is false: control went editor, researcher, ",
        // The element, in place of the whole list.
        "outcome.session[0] is {\"",
        "roundtable open r-",
    ] {
        assert!(ended.out.contains(said), "{said}\n{}", ended.out);
    }
    let report = home.path().join("out.xml");
    assert!(std::fs::read_to_string(&report).expect("a report").contains("list_changes failed"));
    // A report of an earlier command is not left where nothing has run, and the new one says why.
    home.write("mine.toml", "title = 3");
    assert_eq!(home.run(&args).code, Some(2));
    let report = std::fs::read_to_string(&report).expect("a report");
    assert!(!report.contains("list_changes failed"), "{report}");
    assert!(report.contains("errors=\"1\"") && report.contains("pattern"), "{report}");
}

#[test]
fn warnings_fail_only_when_denied() {
    let home = Home::new();
    assert_eq!(home.run(&["new", "swarm", "swarm.toml"]).code, Some(0));
    let text = std::fs::read_to_string(home.path().join("swarm.toml")).expect("a template");
    let text = text.replace("tool = \"find_parcel\"", "tool = \"find_parcle\"");
    let text = text.replace("outcome.tools.all(", "true || outcome.tools.all(");
    home.write("swarm.toml", &text.replace("!degraded && true", "true"));
    let says = "cannot call `find_parcle` (did you mean `find_parcel`?)";
    let args = ["test", "swarm.toml", "--report", "junit=out.xml"];
    let ended = home.run(&args);
    assert_eq!((ended.code, ended.out.matches(says).count()), (Some(0), 1), "{ended:?}");
    let report = || std::fs::read_to_string(home.path().join("out.xml")).expect("a report");
    assert!(report().contains("<system-out>") && report().contains("failures=\"0\""));
    let denied = [&args[..], &["--deny-warnings"]].concat();
    let ended = home.run(&denied);
    assert_eq!((ended.code, ended.out.matches(says).count()), (Some(1), 1), "{ended:?}");
    assert!(ended.out.contains("There is no warning.  --deny-warnings"), "{}", ended.out);
    assert!(report().contains("failures=\"1\"") && report().contains("There is no warning."));
    // A fact with a name that is almost one of the file's.
    assert_eq!(home.run(&["new", "collaboration", "table.toml"]).code, Some(0));
    let set = ["test", "table.toml", "--set", "facts.interview.coding_scor=9"];
    let ended = home.run(&set);
    assert!(ended.out.contains("(did you mean `coding_score`?)"), "{}", ended.out);
    assert_eq!(home.run(&[&set[..], &["--deny-warnings"]].concat()).code, Some(1));
}

#[test]
fn new_promises_offline_run_truthfully() {
    let home = Home::new();
    let says = |args: &[&str]| home.run(&[&["new"], args].concat()).out;
    assert!(says(&["team"]).contains("It runs as it is, without a model:"));
    let outside = says(&["--from", "real-services"]);
    assert!(
        outside.contains("but the services, programs or pages that its file names:"),
        "{outside}"
    );
}

#[test]
fn missing_report_folder_stops_before_start() {
    let home = Home::new();
    let ended = home.run(&["test", "checkout-unanimous", "--report", "junit=no/where/x.xml"]);
    assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("there is no folder no/where"), "{}", ended.err);
    let repeated =
        ["run", "checkout-unanimous", "--times", "2", "--report", "junit=no/where/x.xml"];
    assert_eq!(home.run(&repeated).code, Some(2));
    // Without --times there is no table, so these would have no effect.
    for option in [&["--deny-warnings"][..], &["--report", "junit=x.xml"], &["--jobs", "2"]] {
        let ended = home.run(&[&["run", "checkout-unanimous"], option].concat());
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
        let says = format!("{} needs --times\n  help: add --times N", option[0]);
        assert!(ended.err.contains(&says), "{}", ended.err);
    }
}

#[test]
fn failed_test_shows_causes_first() {
    let home = Home::new();
    assert_eq!(home.run(&["new", "orchestrator", "work.toml"]).code, Some(0));
    let ended = home.run(&["test", "work.toml", "--set", "budget.max_dispatches=1"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let place =
        |text: &str| ended.out.find(text).unwrap_or_else(|| panic!("{text}: {}", ended.out));
    assert!(place("the run ended with") < place("work.toml:"), "{}", ended.out);
}

#[cfg(unix)]
#[test]
fn closed_reader_cancels_no_test() {
    let home = Home::new();
    let args = ["test", "checkout-launch", "front-desk", "dev-team", "--jobs", "1"];
    let mut running = Running::start(&mut home.command(&args));
    running.close_out();
    let (status, _, err) = running.end();
    assert_eq!(status.code(), Some(141), "{err}");
}

#[test]
fn unstartable_scenario_leaves_rest_running() {
    let home = Home::new();
    home.write("suite/good.toml", &scenario("Yes.", ""));
    home.write("suite/broken.toml", "title = [");
    let research = include_str!("../../scenarios/own-notes.toml");
    let away = research
        .replace("value = \"\", label = \"Folder", "value = \"not-here\", label = \"Folder");
    home.write("suite/away.toml", &away);
    home.write("suite/asks.toml", &away);
    let run = |more: &[&str]| {
        let args = ["test", "suite", "--report", "junit=out.xml"];
        home.run(&[&args[..], more].concat())
    };
    let ended = run(&[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in
        ["✓ good", "✗ broken    not started", "✗ away      not started", "1 passed, 3 failed"]
    {
        assert!(ended.out.contains(said), "{said}\n{}", ended.out);
    }
    assert!(ended.err.contains("suite/asks.toml: review it, then allow it"), "{}", ended.err);
    let ended = run(&["--trust", "--format", "json"]);
    let not_there = home.path().join("not-here").display().to_string();
    assert!(ended.err.contains("suite/away.toml: the tool"), "{}", ended.err);
    assert!(ended.err.contains(&not_there), "the place that was tried: {}", ended.err);
    let result = ended.json();
    assert_eq!(
        (result["passed"].as_bool(), result["scenarios"][0]["passed"].as_bool()),
        (Some(false), Some(true))
    );
    assert_eq!(result["not_started"].as_array().map(Vec::len), Some(3), "{result}");
    let report = std::fs::read(home.path().join("out.xml")).expect("a report");
    let suites = junit_parser::from_reader(&report[..]).expect("JUnit").suites;
    let errors: Vec<(&str, u64)> = suites.iter().map(|it| (&*it.name, it.errors)).collect();
    assert_eq!(errors, [("good", 0), ("broken", 1), ("asks", 1), ("away", 1)]);
    let ended = run(&["--format", "github"]);
    assert!(ended.out.contains("::error file=suite/broken.toml"), "{}", ended.out);
}

#[test]
fn unevaluable_condition_shows_before_consequences() {
    let home = Home::new();
    let text = scenario("Yes.", &expect("outcome.team_summary.contains('No')"));
    let text =
        text.replacen("[[script]]", "[[script]]\nwhen = 'facts.orders.day == \"friday\"'", 1);
    home.write("mine.toml", &text);
    let ended = home.run(&["test", "mine.toml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let cause = ended.out.find("script[0].when: ").unwrap_or_else(|| panic!("{}", ended.out));
    assert!(cause < ended.out.find("outcome.team_summary").expect("the row"), "{}", ended.out);
}

#[test]
fn reports_each_row_mistake() {
    let home = Home::new();
    let rows = [
        ("calls('lm') == 1", "`lm` is not a tool"),
        ("calls('risk_analyst') == 1", "is not a tool, but a role, worker or agent"),
        ("order('finance_analyst', 'legal')", "`legal` is not a role, worker or agent"),
        ("order('finance_analyst')", "write `order(\"first\", \"second\")`"),
        ("cites('example.com')", "the pattern collaboration cites no sources"),
        ("calls(outcome.status) == 1", "`calls` takes names in quotes"),
        ("outcom.status == 'ok'", "did you mean `outcome`?"),
        ("inputs.regio == 'US'", "`regio` is not an input"),
        ("stop_reason = 'success'", "not a condition"),
    ];
    let text: String = rows.iter().map(|(that, _)| expect(that)).collect();
    home.write("wrong.toml", &scenario("Yes.", &text));
    let ended = home.run(&["test", "front-desk", "wrong.toml", "none.toml"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for (_, said) in rows {
        assert!(ended.err.contains(said), "{said}\n{}", ended.err);
    }
    assert!(ended.err.contains("none.toml"), "{}", ended.err);
    // The functions are of expectations only.
    let text =
        scenario("Yes.", "").replacen("[[script]]", "[[script]]\nwhen = 'calls(\"llm\") > 1'", 1);
    home.write("script.toml", &text);
    let ended = home.run(&["validate", "script.toml"]);
    assert!(ended.err.contains("`calls` can only be used in [[expect]]"), "{}", ended.err);
}

#[test]
fn partial_pass_share_may_suffice() {
    let home = Home::new();
    // The latencies come from the seed.
    home.write("mine.toml", &scenario("Yes.", &expect("elapsed_ms % 2 == 0")));
    let args =
        |min_pass| ["test", "mine.toml", "--times", "40", "--vary", "seed", "--min-pass", min_pass];
    let ended = home.run(&[&args("0.2")[..], &["--format", "json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = ended.json();
    let mine = &result["scenarios"][0];
    let rate = mine["pass_rate"].as_f64().expect("a rate");
    let (low, high) = (mine["interval"][0].as_f64(), mine["interval"][1].as_f64());
    assert!(rate > 0.2 && rate < 0.8, "{rate}");
    assert!(low.expect("a bound") < rate && rate < high.expect("a bound"), "{mine}");
    let seeds: Vec<u64> = mine["trials"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|it| it["seed"].as_u64())
        .collect();
    assert!(seeds.len() == 40 && seeds.windows(2).all(|two| two[1] == two[0] + 1), "{seeds:?}");
    // Simulated time depends on nothing else.
    let again = home.run(&[&args("0.2")[..], &["--format", "json"]].concat()).json();
    let passes = |result: &Value| result["scenarios"][0]["passes"].clone();
    assert_eq!(passes(&again), passes(&result));

    let ended = home.run(&args("1"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains(" of 40 runs; the first has seed "), "{}", ended.out);
    // The command that shows the failed run names its seed, where it is not the file's.
    let table = ended.out.lines().next().expect("heads");
    assert!(
        ["scenario", "passed", "rate", "95 %"].iter().all(|head| table.contains(head)),
        "{table}"
    );
}

#[test]
fn run_prints_the_same_table() {
    let home = Home::new();
    let args = ["run", "checkout-unanimous", "--times", "3", "--vary", "seed", "--instant"];
    let ended = home.run(&args);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    assert!(ended.out.contains("3/3   100 %"), "{}", ended.out);
    // In real time, runs are kept as all others are.
    let kept = home.run(&["runs", "--json"]).json();
    assert_eq!(kept.as_array().map(Vec::len), Some(3), "{kept}");
    let refused = home.run(&[&args[..], &["--format", "jsonl"]].concat());
    assert_eq!((refused.code, &*refused.out), (Some(2), ""), "{refused:?}");
    let refused = home.run(&["run", "checkout-unanimous", "--min-pass", "0.5"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn model_text_runs_no_workflow_commands() {
    let home = Home::new();
    let answer = "ok\n::error::injected\n  ::set-output name=a::b\n##[error]old";
    home.write("mine.toml", &scenario(answer, &expect("answer == null")));
    let commands = |out: &str| -> Vec<String> {
        let lines = out.lines().map(str::trim_start);
        lines
            .filter(|line| line.starts_with("::") || line.contains("##["))
            .map(str::to_owned)
            .collect()
    };
    let ended = home.run(&["test", "mine.toml", "--format", "github"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = commands(&ended.out);
    assert_eq!(found.len(), 1, "{}", ended.out);
    assert!(found[0].starts_with("::error file=mine.toml,line="), "{}", found[0]);
    let ended = home.run(&["run", "mine.toml", "--instant", "--format", "github"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = commands(&ended.out);
    assert_eq!(found.len(), 2, "{}", ended.out);
    assert!(found[0].starts_with("::group::") && found[1] == "::endgroup::", "{found:?}");
    assert!(ended.out.contains("\\::error::injected"), "{}", ended.out);
    let ended = home.run(&["run", "checkout-deadlock", "--instant", "--format", "github"]);
    let last = commands(&ended.out).pop().expect("an annotation");
    assert!(last.starts_with("::error title=") && last.contains("max_rounds_reached"), "{last}");
}

#[test]
fn github_shows_ten_annotations() {
    let home = Home::new();
    let rows = |count: usize| -> String {
        (0..count).map(|nth| expect(&format!("outcome.answer == '{nth}'"))).collect()
    };
    let annotations = |count: usize| -> Vec<String> {
        home.write("suite/mine.toml", &scenario("ok", &rows(count)));
        let mut command = home.command(&["test", "suite/../suite/mine.toml", "--format", "github"]);
        command.env("GITHUB_WORKSPACE", home.path());
        let ended = end(&mut command);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let lines = ended.out.lines().filter(|line| line.starts_with("::error "));
        lines.map(str::to_owned).collect()
    };
    let few = annotations(10);
    assert_eq!(few.len(), 10, "{few:?}");
    assert!(few.iter().all(|it| it.starts_with("::error file=suite/mine.toml,line=")), "{few:?}");
    let many = annotations(14);
    assert_eq!(many.len(), 10, "{many:?}");
    assert!(many[9].ends_with("::5 more problems: see the log of this step"), "{}", many[9]);
}

/// What holds for a run is said once, not with each of its rows.
#[test]
fn github_annotates_the_run_once() {
    let home = Home::new();
    let rows = ["outcome.answer == '1'", "outcome.answer == '2'"].map(expect).concat();
    let stopped = include_str!("../../scenarios/checkout-deadlock.toml");
    home.write("mine.toml", &format!("{stopped}{rows}"));
    let ended = home.run(&["test", "mine.toml", "--format", "github"]);
    let found: Vec<&str> = ended.out.lines().filter(|it| it.starts_with("::error ")).collect();
    assert_eq!(found.len(), 3, "{ended:?}");
    let says = |it: &&str| it.contains("the run ended with");
    assert_eq!(found.iter().position(says), Some(0), "{found:?}");
    assert_eq!(found.iter().filter(|it| says(it)).count(), 1, "{found:?}");
}

#[test]
fn missing_endpoint_differs_from_failed_row() {
    let home = Home::new();
    home.write("mine.toml", &scenario("Yes.", &expect("stop_reason == 'success'")));
    // A port of this machine where nothing listens any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let url = format!("http://{}/v1", port.expect("a port"));
    let retries = ["--set", "tools.llm.retries.max_attempts=1"];
    let live = [&["test", "mine.toml", "--live", "--trust"], &retries[..]].concat();
    let mut command = home.command(&live);
    let ended = end(command.env("OPENAI_BASE_URL", &url).env("OPENAI_API_KEY", "k"));
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(ended.out.contains("roundtable open r-"), "a live run is kept: {}", ended.out);
    let ended = home.run(&live);
    assert_eq!((ended.code, &*ended.out), (Some(2), ""), "no key: {ended:?}");
}

#[test]
fn a_recorded_run_answers_the_models() {
    let home = Home::new();
    home.write("mine.toml", &scenario("Yes.", &expect("answer == 'Yes.' && !live")));
    let ended = home.run(&["run", "mine.toml", "--instant", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Without a script only the recording can answer.
    let text = scenario("Never.", &expect("answer == 'Yes.' && calls('llm') == 4"));
    home.write("mine.toml", &text);
    let replayed = home.run(&["test", "mine.toml", "--replay", "last"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let ended = home.run(&["test", "mine.toml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let two = home.run(&["test", "mine.toml", "front-desk", "--replay", "last"]);
    assert_eq!((two.code, &*two.out), (Some(2), ""), "{two:?}");
}

#[cfg(unix)]
#[test]
fn interrupt_cancels_and_reports_finished_runs() {
    let home = Home::new();
    let args = ["run", "checkout-launch", "--times", "40", "--jobs", "40", "--log-file", "log"];
    let mut command = home.command(&args);
    let running = Running::start(command.env("ROUNDTABLE_LOG", "info"));
    // The runs are in flight once one of them is in the log.
    let log = home.path().join("log");
    let bound = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains("run.started")) {
        assert!(std::time::Instant::now() < bound, "no run starts");
        std::thread::yield_now();
    }
    running.signal("INT");
    let (status, out, _) = running.end();
    assert_eq!(status.code(), Some(130), "{out}");
    assert!(out.contains("cancelled"), "{out}");
}

#[test]
fn reports_hold_no_controls() {
    let home = Home::new();
    // Escapes of TOML.
    let hostile = r"no \ufffe\uffff\ufdd0\u009b2J\u202e";
    let row = format!(
        "\n[[expect]]\nthat = 'outcome.answer == \"no\"'\nmessage = \"\\u001b[2J{hostile}\"\n"
    );
    home.write("mine.toml", &scenario("MARK", &row).replace("MARK", hostile));
    for format in ["github", "text", "json"] {
        let ended =
            home.run(&["test", "mine.toml", "--format", format, "--report", "junit=out.xml"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let found: Vec<char> =
            ended.out.chars().filter(|c| *c != '\n' && roundtable::bench::is_hostile(*c)).collect();
        assert!(found.is_empty(), "{format}: {found:?}");
        let xml = std::fs::read_to_string(home.path().join("out.xml")).expect("a report");
        assert!(!xml.contains(['\u{fffe}', '\u{ffff}', '\u{1b}']), "{xml}");
        assert!(junit_parser::from_reader(xml.as_bytes()).is_ok(), "{xml}");
    }
}
