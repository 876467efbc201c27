//! Limits of a guarded program: by run, by day over all processes, of repeats and of rate; and where people are asked.

use std::process::{Command, Stdio};

use serde_json::json;

use super::{Vendor, of_kind};
use crate::support::binary::{Running, press_enter};

/// Calls of 15 tokens, each of which reserves about 70.
const CALLS: &str = "
import guarded, sys
for nth in range(int(sys.argv[1])):
    body = {'model': 'gpt-5.1', 'max_tokens': 40, 'messages': [{'role': 'user', 'content': f'{sys.argv[2]} {nth}'}]}
    about, content = guarded.send('zipped', body=body)
    print(about['status'], content.decode() if about['status'] != 200 else '', flush=True)
";

/// Many programs, processes that are killed, and one limit of the day: it is exceeded by at most the calls in flight, and
/// nothing that was spent is forgotten.
#[test]
fn day_limit_holds_across_processes() {
    let vendor = Vendor::start();
    vendor.home.write("config/roundtable/config.toml", "[limits.day]\ntotal_tokens = 600\n");
    vendor.home.write("calls.py", CALLS);
    let start = |nth: usize, calls: &str| {
        let name = format!("p{nth}");
        let words = ["guard", "--no-store", "--", "python3", "calls.py", calls, &name];
        let mut command = vendor.home.command(&words);
        command.current_dir(vendor.home.path()).envs(vendor.variables());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("roundtable")
    };
    let mut children: Vec<_> = (0..40).map(|nth| start(nth, "3")).collect();
    // Some are killed, at any moment.
    for child in children.iter_mut().step_by(8) {
        let _ = child.kill();
    }
    let outputs: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().expect("its output");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    let answered = vendor.seen().len();
    // 600 tokens are 40 calls, and a reservation of 70 must fit before each.
    assert!((1..=40).contains(&answered), "{answered}");
    let sentence = "limits.day.total_tokens of the configuration";
    assert!(outputs.iter().any(|it| it.contains(sentence)), "{outputs:?}");
    let later = start(41, "1").wait_with_output().expect("its output");
    let later = String::from_utf8_lossy(&later.stdout).into_owned();
    assert!(later.starts_with("402"), "what was spent stays spent: {later}");
    let doctor = vendor.home.run(&["doctor"]);
    assert!(doctor.out.contains("limits of a day") && doctor.out.contains("of 600"), "{doctor:?}");
}

/// Live runs of scenarios count for the day, too; scripted ones do not. Without a price no limit of money holds.
#[test]
fn live_runs_count_for_the_day() {
    let vendor = Vendor::of("guard_stacks.py", super::stacks::STACKS);
    let run = |limits: &str, mode: &[&str]| {
        let config = format!("[limits.day]\n{limits}\n\n[model]\nname = \"openai/tiny\"\n");
        vendor.home.write("config/roundtable/config.toml", &config);
        let words = [&["run", "checkout-launch", "--format", "json"], mode].concat();
        let ended =
            crate::support::binary::end(vendor.home.command(&words).envs(vendor.variables()));
        (ended, vendor.seen().len())
    };
    let (scripted, sent) = run("total_tokens = 1", &["--instant"]);
    assert_eq!((scripted.code, sent), (Some(0), 0), "{scripted:?}");
    let (refused, sent) = run("total_tokens = 1", &["--live"]);
    assert_eq!(
        (refused.json()["stop_reason"].as_str(), sent),
        (Some("max_tokens_budget"), 0),
        "{refused:?}"
    );
    let (counted, sent) = run("total_tokens = 1000000", &["--live"]);
    assert!(sent > 0, "{counted:?}");
    let doctor = vendor.home.run(&["doctor"]).flat();
    let used = format!("used today: {} of 1000000 tokens", 18 * sent);
    assert!(doctor.contains(&used), "{used}: {doctor}");
    let (unpriced, sent) = run("cost_usd = 1.0", &["--live"]);
    let why = "limits.day.cost_usd is set, but the price of openai/tiny";
    assert!(unpriced.err.contains(why) && sent == 0, "{unpriced:?}");
}

/// One breaker for many programs behind one proxy: no call is sent once it is open.
#[test]
fn one_breaker_serves_many_processes() {
    let vendor = Vendor::start();
    let rules = "[models.\"*\"]\nbreaker = { fail_threshold = 3, open_for_s = 60 }\n\
                 bulkhead = { max_in_flight = 1, max_wait_ms = 60000 }\n";
    vendor.home.write("guard.toml", rules);
    let script = "
import guarded, sys
body = {'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': sys.argv[1]}]}
print(guarded.send('', 'OPENAI_BASE_URL', '/chat/completions', body, {'x-case': 'fails:99'})[0]['status'])
";
    vendor.home.write("call.py", script);
    let all = "for n in $(seq 40); do python3 call.py $n & done; wait";
    let ended = vendor.guard(&["--rules", "guard.toml"], &["sh", "-c", all]);
    // Lines of processes at the same time may be mixed.
    assert_eq!(ended.out.matches("503").count(), 40, "{ended:?}");
    assert_eq!(vendor.seen().len(), 3, "the breaker has opened after three");
}

#[test]
fn rate_bounds_attempts_of_a_minute() {
    let vendor = Vendor::start();
    vendor.home.write("calls.py", CALLS);
    let rules = "[models.\"openai/*\"]\nrate = 2\nbulkhead = { max_wait_ms = 100 }\n";
    vendor.home.write("guard.toml", rules);
    let ended = vendor.guard(&["--rules", "guard.toml"], &["python3", "calls.py", "3", "x"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("200") && lines[1].starts_with("200"), "{ended:?}");
    let refused = "too many calls of openai/gpt-5.1 in a minute";
    assert!(lines[2].starts_with("429") && lines[2].contains(refused), "{ended:?}");
    let log = vendor.log();
    assert_eq!(of_kind(&log, "attempt.refused")[0]["reason"], "rate_reached:openai/gpt-5.1");
}

/// The same request again and again is a loop; the same call of a tool with the same result, too, but for one that polls.
#[test]
fn loops_are_stopped() {
    let vendor = Vendor::start();
    vendor.home.write("guard.toml", "[budget]\nrepeats = 3\npolling = [\"wait\"]\n");
    let script = "
import guarded, json
def ask(messages):
    body = {'model': 'gpt-5.1', 'messages': messages}
    about, content = guarded.send('zipped', body=body)
    print(about['status'], json.loads(content)['error']['message'] if about['status'] != 200 else '')
for nth in range(4):
    ask([{'role': 'user', 'content': 'again'}])
for tool in ('refund', 'wait'):
    messages = [{'role': 'user', 'content': tool}]
    for nth in range(4):
        ask(messages)
        call = {'id': f'c{nth}', 'type': 'function', 'function': {'name': tool, 'arguments': '{}'}}
        messages += [{'role': 'assistant', 'content': None, 'tool_calls': [call]},
                     {'role': 'tool', 'tool_call_id': f'c{nth}', 'content': 'busy'}]
";
    let ended = vendor.guard(&["--rules", "guard.toml"], &["python3", "-c", script]);
    let lines: Vec<&str> = ended.out.lines().collect();
    let statuses: Vec<&str> = lines.iter().map(|line| &line[..3]).collect();
    let expected = [
        ["200", "200", "200", "402"].as_slice(),
        &["200", "200", "200", "402"],
        &["200", "200", "200", "200"],
    ];
    assert_eq!(statuses, expected.concat(), "{ended:?}");
    assert!(lines[3].contains("the same request was sent 3 times"), "{ended:?}");
    assert!(
        lines[7].contains("refund was called 3 times in a row with the same result"),
        "{ended:?}"
    );
}

/// At the limit of calls, too, the operator may be asked: an approval extends it by its own size.
#[test]
fn people_extend_the_limit_of_calls() {
    let vendor = Vendor::start();
    vendor.home.write("calls.py", CALLS);
    vendor.home.write("guard.toml", "[budget]\nmax_calls = 1\non_limit = \"ask\"\n");
    let args = [
        "guard",
        "--rules",
        "guard.toml",
        "--people",
        "wait",
        "--format",
        "jsonl",
        "--",
        "python3",
        "calls.py",
        "3",
        "x",
    ];
    let mut running = Running::start(vendor.home.command(&args).envs(vendor.variables()));
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    for answer in ["--approve", "--deny"] {
        let asked = running.until("question.asked");
        let why = "the limit of 1 call is reached: raise --max-calls";
        assert_eq!(asked["why"], why, "{asked}");
        let id = asked["id"].as_str().expect("an id");
        let answered = vendor.home.run(&["answer", &run, id, answer]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    let (_, _, said) = running.end();
    let statuses: Vec<&str> = said.lines().map(|line| &line[..3]).collect();
    assert_eq!(statuses, ["200", "200", "402"], "{said}");
}

/// A person answers in place of the model, in each form that a client may expect.
#[test]
fn people_answer_for_the_model() {
    let vendor = Vendor::start();
    let script = "
import guarded
input()
for case in ('whole', 'streamed', 'responses', 'messages', 'google', 'ollama'):
    about, content = guarded.send(case)
    # A program that has not asked for the tokens of a stream reads `choices[0]` of each event.
    print(about['status'], b'Forty-two.' in content, b'\"choices\":[]' in content, flush=True)
";
    let args = ["guard", "--people", "wait", "--format", "jsonl", "--", "python3", "-c", script];
    let mut command = vendor.home.command(&args);
    command.envs(vendor.variables()).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.stdin();
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    assert_eq!(vendor.home.run(&["ctl", &run, "pause"]).code, Some(0));
    press_enter(&mut stdin);
    vendor.home.write("reply.json", &json!({ "reply": "Forty-two." }).to_string());
    for _ in 0..6 {
        let asked = running.until("question.asked");
        let id = asked["id"].as_str().expect("an id");
        let answered = vendor.home.run(&["answer", &run, id, "--args", "reply.json"]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
        assert_eq!(running.until("attempt.answered")["text"], "Forty-two.");
    }
    let (_, _, said) = running.end();
    assert_eq!(said, "200 True False\n".repeat(6));
    assert!(vendor.seen().is_empty(), "nothing was sent");
}

/// A client that gives up while its call is held: its request is never sent, and its retry is the same call.
#[test]
fn held_calls_are_retried() {
    let vendor = Vendor::start();
    let script = "
import http.client, json, os
from urllib.parse import urlsplit
base = urlsplit(os.environ['OPENAI_BASE_URL'])
body = json.dumps({'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': 'held'}]})
for timeout in (0.3, 60):
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=timeout)
    connection.request('POST', base.path + '/chat/completions', body, {'x-case': 'zipped', 'content-type': 'application/json'})
    try:
        print(connection.getresponse().status, flush=True)
    except TimeoutError:
        connection.close()
        input()
";
    let args = [
        "guard",
        "--pause-at",
        "call:1",
        "--people",
        "wait",
        "--format",
        "jsonl",
        "--",
        "python3",
        "-c",
        script,
    ];
    let mut command = vendor.home.command(&args);
    command.envs(vendor.variables()).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.stdin();
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    running.until("question.asked");
    running.until("attempt.refused");
    press_enter(&mut stdin);
    assert_eq!(running.until("call.retried")["attempt"], 2);
    let asked = running.until("question.asked");
    let id = asked["id"].as_str().expect("an id");
    assert_eq!(vendor.home.run(&["answer", &run, id, "--approve"]).code, Some(0));
    assert_eq!(running.until("call.answered")["attempts"], 2);
    let (_, _, said) = running.end();
    assert_eq!((&*said, vendor.seen().len()), ("200\n", 1));
}

/// A client may append nothing to its address, which names the API then.
#[test]
fn addresses_name_the_api() {
    let vendor = Vendor::start();
    let script = "
import guarded
print(guarded.send('', 'COHERE_API_BASE', '', {'model': 'command-a', 'messages': []}, {'x-case': 'zipped'})[0]['status'])
";
    let words = ["guard", "--max-calls", "1", "--", "python3", "-c", script];
    let mut command = vendor.home.command(&words);
    let address = format!("http://127.0.0.1:{}/v2/chat", vendor.port);
    command.current_dir(vendor.home.path()).env("COHERE_API_BASE", address);
    let ended = crate::support::binary::end(&mut command);
    assert_eq!(ended.out, "200\n", "it is read, so the limit counts it: {ended:?}");
    assert_eq!(of_kind(&vendor.log(), "call.started")[0]["model"], "cohere/command-a");
}

/// The run pauses at a call by its number or its model, after a reply that calls a tool, and where a rule holds; never
/// where nobody is asked.
#[test]
fn runs_pause_where_wanted() {
    let vendor = Vendor::start();
    vendor.home.write("calls.py", CALLS);
    let tool = "import guarded\nguarded.send('whole')\nprint(guarded.send('zipped')[0]['status'])";
    let rules = "[[pause]]\nwhen = 'number == 2 && prompt.contains(\"x\")'\n";
    vendor.home.write("guard.toml", rules);
    let calls = ["python3", "calls.py", "2", "x"];
    for (options, program, at) in [
        (["--pause-at", "call:2"], &calls[..], "call:2"),
        (["--pause-at", "model:openai/gpt-5.1"], &calls, "call:1"),
        (["--pause-at", "tool:refund"], &["python3", "-c", tool], "call:2"),
        (["--rules", "guard.toml"], &calls, "call:2"),
    ] {
        let args =
            [&["guard"], &options[..], &["--people", "wait", "--format", "jsonl", "--"], program];
        let mut command = vendor.home.command(&args.concat());
        command.current_dir(vendor.home.path()).envs(vendor.variables());
        let mut running = Running::start(&mut command);
        let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
        assert_eq!(running.until("paused")["boundaries"], json!([at]), "{options:?}");
        assert_eq!(vendor.home.run(&["ctl", &run, "resume"]).code, Some(0));
        if options[1].starts_with("model:") {
            running.until("paused");
            assert_eq!(vendor.home.run(&["ctl", &run, "resume"]).code, Some(0));
        }
        let (status, _, said) = running.end();
        assert_eq!(status.code(), Some(0), "{options:?}: {said}");
        // Nobody is asked: the program does not hang.
        let ended = vendor.guard(&options, program);
        let warned = ended.err.contains("nobody is asked, so the run does not pause");
        assert!(ended.code == Some(0) && warned, "{options:?}: {ended:?}");
    }
    let wrong = vendor.guard(&["--pause-at", "round:2"], &["true"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// The end of roundtable leaves its port taken: nobody else can receive the keys of the program there.
#[test]
#[cfg(target_os = "linux")]
fn port_stays_taken_after_the_end() {
    let vendor = Vendor::start();
    let script = "
import os, sys, guarded, resource, socket
from urllib.parse import urlsplit
print(urlsplit(os.environ['OPENAI_BASE_URL']).port, resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
input()
try:
    print(guarded.send('zipped')[0]['status'], file=sys.stderr)
except ConnectionRefusedError:
    print('refused', flush=True, file=open('said', 'w'))
open('over', 'w').close()
sys.stdin.read()
";
    let mut command = vendor.home.command(&["guard", "--", "python3", "-c", script]);
    command.current_dir(vendor.home.path()).envs(vendor.variables()).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.stdin();
    let first = running.lines().next().expect("a line").expect("a line");
    let (port, files) = first.split_once(' ').expect("two numbers");
    let limit = Command::new("sh").args(["-c", "ulimit -n"]).output().expect("a shell");
    assert_eq!(files, String::from_utf8_lossy(&limit.stdout).trim(), "the program's own limit");
    running.kill();
    press_enter(&mut stdin);
    let over = vendor.home.path().join("over");
    while !over.exists() {
        std::thread::yield_now();
    }
    let said = std::fs::read_to_string(vendor.home.path().join("said")).expect("it was refused");
    assert_eq!(said, "refused\n");
    let taken = std::net::TcpListener::bind(format!("127.0.0.1:{port}"));
    assert!(taken.is_err(), "the program holds the port");
}
