//! Conditions that would never end delay nothing, on a single processor: keys, signals and the run's own
//! time are answered, and memory stays small. The real binary, headless and in a terminal.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::support::binary::{Home, Running};
use crate::support::pty::{Start, Terminal};
use roundtable::{Command as Told, Engine, EngineSettings, Launch, ScenarioOrigin, load};
use serde_json::json;

/// A thousand million turns of a loop.
const ENDLESS: &str = "facts.l.all(a, facts.l.all(b, facts.l.all(c, a + b + c >= 0)))";

/// Two hundred gigabytes of texts.
const GREEDY: &str = "size(facts.l.map(a, facts.l.map(b, facts.s + facts.s))) > 0";

/// The most memory that a run of these may take, in KiB.
const MEMORY: u64 = 300 << 10;

/// A round table whose only seat decides nothing for many rounds, and each time evaluates this.
fn table(when: &str, max_seconds: u32) -> String {
    let numbers: Vec<u32> = (0..1_000).collect();
    format!(
        "title = \"Heavy\"\npattern = \"collaboration\"\ngoal = \"End.\"\n\
         budget = {{ max_rounds = 1000, max_messages = 100000, max_seconds = {max_seconds}, min_go_votes = 1 }}\n\
         facts.l = {numbers:?}\nfacts.s = \"{}\"\n\
         collaboration = {{ sequence = [\"ann\"], finalize_prompt = \"Sum up.\" }}\n\
         roles.ann.prompt = \"You are Ann.\"\n\
         [[script]]\nwhen = \"{when}\"\nlatency = \"0ms\"\n\
         reply = {{ stance = \"go\", summary = \"s\", confidence = 1, actions = [\"a\"] }}\n\
         [[script]]\nlatency = \"20ms\"\n\
         reply = {{ stance = \"caution\", summary = \"s\", confidence = 1, actions = [\"a\"] }}\n",
        "x".repeat(100_000),
    )
}

/// This thread, and what it starts from now on, has a single processor.
fn on_one_processor() {
    let link = std::fs::read_link("/proc/thread-self").expect("a thread");
    let thread = link.file_name().expect("its id").to_str().expect("a number").to_owned();
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("a thread");
    let may = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first: String =
        may.expect("processors").trim().chars().take_while(char::is_ascii_digit).collect();
    let pinned = Command::new("taskset").args(["-p", "-c", &first, &thread]).output();
    assert!(pinned.expect("taskset").status.success());
}

/// The most memory that a process has had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn signal_cancels_headless_run() {
    on_one_processor();
    for (when, signal) in [(ENDLESS, "TERM"), (GREEDY, "INT")] {
        let home = Home::new();
        home.write("heavy.toml", &table(when, 600));
        let mut command = home.command(&["run", "heavy.toml", "--format", "jsonl"]);
        let mut running = Running::start(&mut command);
        let failed = running.until("condition.failed");
        let said = failed["text"].as_str().expect("a text");
        assert!(
            said.contains("it takes more than 1000000 steps") || said.contains("16777216 bytes"),
            "{said}"
        );
        assert_eq!(failed["place"], "script[0].when");
        running.until("condition.failed");
        assert!(peak(running.pid()) < MEMORY, "{} KiB", peak(running.pid()));
        running.signal(signal);
        assert_eq!(running.until("run.closed")["reason"], "cancelled");
        let (status, ..) = running.end();
        assert_eq!(status.code(), Some(130));
    }
}

#[test]
fn run_ends_at_time_limit() {
    on_one_processor();
    let home = Home::new();
    home.write("heavy.toml", &table(ENDLESS, 2));
    let ended = home.run(&["run", "heavy.toml", "--format", "json"]);
    let outcome = ended.json();
    assert_eq!(outcome["stop_reason"], "max_seconds", "{}", ended.err);
    let late = outcome["elapsed_ms"].as_u64().expect("a time") - 2_000;
    assert!(late < 1_000, "{late} ms");
}

/// The answer of a tool that is a long list, and a rule of the level that goes over it in a loop in a
/// loop: the rule counts as false, and the run goes on.
#[test]
fn bounds_rule_over_tool_answer() {
    on_one_processor();
    let home = Home::new();
    let answer: Vec<u32> = (0..100_000).collect();
    home.write(
        "rule.toml",
        &format!(
            "title = \"Rule\"\npattern = \"orchestrator\"\ngoal = \"End.\"\n\
             budget = {{ max_seconds = 60, max_tasks = 4, max_dispatches = 4, max_parallel = 2, task_timeout_seconds = 2.0, max_retries_per_task = 0 }}\n\
             [orchestrator]\nplan_prompt = \"Plan.\"\nfinalize_prompt = \"Report.\"\n\
             [orchestrator.level]\nname = \"health\"\notherwise = \"green\"\n\
             rules = [{{ level = \"red\", when = \"found.items.all(a, found.items.all(b, a + b >= 0))\" }}]\n\
             [orchestrator.sections]\nfound = \"lister\"\n\
             [workers.lister]\ndescription = \"Lists.\"\n\
             [[workers.lister.fixture.rows]]\nresult = {{ items = {answer:?} }}\n\
             [[script]]\nstep = \"plan\"\nreply = {{ kind = \"plan\", tasks = [\
             {{ id = \"t1\", worker = \"lister\", args = {{}}, critical = true }}, \
             {{ id = \"t2\", worker = \"lister\", args = {{}}, critical = true }}] }}\n\
             [[script]]\nstep = \"finalize\"\ntext = \"Done.\"\n",
        ),
    );
    let ended = home.run(&["run", "rule.toml", "--format", "jsonl"]);
    let lines = ended.lines();
    let failed = lines.iter().find(|line| line["kind"] == "condition.failed");
    let failed = failed.unwrap_or_else(|| panic!("{}{:?}", ended.err, lines.last()));
    assert_eq!(failed["place"], "orchestrator.level.rules[0].when");
    assert_eq!(failed["text"], "cannot be evaluated: it takes more than 1000000 steps");
    let outcome = lines.last().expect("an outcome");
    assert_eq!(
        (&outcome["status"], &outcome["aggregate"]["health"]),
        (&json!("ok"), &json!("green"))
    );
}

#[test]
fn dashboard_answers_keys_and_quits() {
    on_one_processor();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("heavy.toml");
    for when in [ENDLESS, GREEDY] {
        std::fs::write(&file, table(when, 600)).expect("written");
        let path = file.display().to_string();
        let args = ["run", path.as_str()];
        let mut terminal = Terminal::start(Start { args: &args, ..Start::default() });
        terminal.sees("Heavy");
        terminal.press("?");
        terminal.sees("Help");
        terminal.press("\u{1b}");
        terminal.loses("Help");
        assert!(peak(terminal.pid()) < MEMORY, "{} KiB", peak(terminal.pid()));
        terminal.signal("TERM");
        assert_eq!(terminal.ends(), 143);
        terminal.is_as_it_was();
    }
}

/// Fifty of them in one process and on one thread of the runtime: its timers go on, each run is
/// cancelled, and no evaluation outlives its run.
#[test]
fn fifty_runs_limit_delay_and_memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let scenario = load(&table(GREEDY, 600), ScenarioOrigin::File("heavy.toml".into()), &[]);
    let scenario =
        Arc::new(scenario.unwrap_or_else(|problems| panic!("{}", problems.pretty(false))));
    let ended = runtime.block_on(async {
        let engine = Engine::new(EngineSettings::default());
        let runs: Vec<_> =
            (0..50).map(|_| engine.start(Launch::scripted(Arc::clone(&scenario), false))).collect();
        // Timers are fired by the one thread that the runs have as well.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for run in &runs {
            run.send(Told::Cancel);
        }
        for run in &runs {
            run.wait_until_finished().await;
        }
        runs.iter().map(roundtable::RunHandle::in_flight).sum::<u32>()
    });
    assert_eq!(ended, 0);
    drop(runtime);
    let peak = peak(std::process::id());
    assert!(peak < MEMORY, "{peak} KiB");
}
