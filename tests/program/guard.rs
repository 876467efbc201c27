//! Guarded programs: what passes is the same, byte for byte; each call is in the log with its attempts; limits hold.

mod hook;
mod hostile;
mod limits;
mod listening;
mod stacks;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, Running, press_enter};

const VENDOR: &str = include_str!("../senders/guarded.py");

/// The variables that lead a client to the vendor.
const VARIABLES: [(&str, &str); 7] = [
    ("OPENAI_BASE_URL", "/v1"),
    ("OPENAI_API_BASE", "/v1"),
    ("ANTHROPIC_BASE_URL", ""),
    ("ANTHROPIC_API_BASE", ""),
    ("GOOGLE_GEMINI_BASE_URL", ""),
    ("OLLAMA_HOST", ""),
    // Where a program has the address in its code.
    ("OPENAI_ADDRESS", "/v1"),
];

/// A vendor of models, until this is dropped.
struct Vendor {
    home: Home,
    child: Child,
    port: u16,
}

impl Vendor {
    fn start() -> Self {
        Self::of("guarded.py", VENDOR)
    }

    fn of(file: &str, script: &str) -> Self {
        let home = Home::new();
        home.write(file, script);
        home.write("seen", "");
        let mut command = Command::new("python3");
        command.args([file, "vendor"]).current_dir(home.path());
        command.env("SEEN", home.path().join("seen")).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a port");
        let port = line.trim().parse().expect("a port");
        Self { home, child, port }
    }

    fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let base = format!("http://127.0.0.1:{}", self.port);
        let addresses =
            VARIABLES.into_iter().map(move |(name, path)| (name, format!("{base}{path}")));
        let keys =
            [("OPENAI_API_KEY", "sk-canary-openai"), ("ANTHROPIC_API_KEY", "canary-anthropic")];
        addresses.chain(keys.map(|(name, key)| (name, key.to_owned())))
    }

    /// The requests that it has had since the last call of this.
    fn seen(&self) -> Vec<Value> {
        let file = self.home.path().join("seen");
        let text = std::fs::read_to_string(&file).expect("the requests");
        std::fs::write(&file, "").expect("the file");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// What a program prints without roundtable.
    fn direct(&self, program: &[&str]) -> String {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).current_dir(self.home.path()).envs(self.variables());
        let ended = crate::support::binary::end(&mut command);
        assert_eq!(ended.code, Some(0), "{program:?}: {ended:?}");
        ended.out
    }

    fn guard(&self, args: &[&str], program: &[&str]) -> Ended {
        let words = [&["guard"], args, &["--"], program].concat();
        let mut command = self.home.command(&words);
        command.current_dir(self.home.path()).envs(self.variables());
        crate::support::binary::end(&mut command)
    }

    /// The events of the last run.
    fn log(&self) -> Vec<Value> {
        self.home.run(&["export", "last"]).lines()
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn of_kind<'l>(log: &'l [Value], kind: &str) -> Vec<&'l Value> {
    log.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn bytes_pass_unchanged() {
    let vendor = Vendor::start();
    let client = ["python3", "guarded.py", "client"];
    let (direct, sent) = (vendor.direct(&client), vendor.seen());
    let ended = vendor.guard(&[], &client);
    assert_eq!(ended.out, direct, "{}", ended.err);
    let mut passed = vendor.seen();
    // The HTTP client names the default of this header where a program leaves it out.
    for request in &mut passed {
        let headers = request["headers"].as_array_mut().expect("headers");
        headers.retain(|header| *header != json!(["accept", "*/*"]));
    }
    assert_eq!(passed, sent);
}

/// Each API: model, text, tool calls, tokens of prompt and reply.
#[test]
fn calls_are_read_in_each_api() {
    let vendor = Vendor::start();
    let ended = vendor.guard(&[], &["python3", "guarded.py", "client"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let log = vendor.log();
    let replies = of_kind(&log, "attempt.answered");
    let read: Vec<Value> = replies
        .iter()
        .map(|reply| {
            let calls = reply["tool_calls"].as_array().map(|calls| calls.iter()).into_iter();
            let calls: Vec<_> = calls.flatten().map(|call| call["arguments"].clone()).collect();
            let text: String = reply["text"].as_str().expect("a text").chars().take(20).collect();
            let usage = &reply["usage"];
            json!([reply["model"], text, calls, usage["prompt_tokens"], usage["completion_tokens"]])
        })
        .collect();
    let none: [&str; 0] = [];
    assert_eq!(
        read,
        [
            json!(["gpt-5.1", "", ["{\"amount\": 5}"], 10, 5]),
            json!(["gpt-5.1", "Done.", ["{\"amount\": 6}"], 10, 5]),
            json!(["gpt-5.1", "zipped", none, 10, 5]),
            json!(["gpt-5.1", "Hello.", none, 8, 3]),
            json!(["claude-haiku-4-5", "Certainly.", ["{\"amount\":7}"], 25, 9]),
            json!(["gemini-2.5-flash", "Guten Tag", ["{\"amount\":8}"], 4, 8]),
            json!(["qwen3", "Well, hi.", none, 3, 4]),
            json!(["text-embedding-3-small", "", none, 2, 0]),
            json!(["gpt-5.1", "yyyyyyyyyyyyyyyyyyyy", none, 10, 5]),
        ]
    );
    let prompts = of_kind(&log, "call.started");
    let first: Vec<_> = prompts[0]["prompt"]["messages"].as_array().expect("messages").clone();
    assert_eq!(
        (&first[0]["role"], &first[1]["content"]),
        (&json!("system"), &json!("Refund me: grün"))
    );
    assert_eq!(prompts[0]["prompt"]["tools"][0]["name"], "refund");
    let failed = of_kind(&log, "attempt.failed");
    assert_eq!((failed.len(), &failed[0]["status"]), (1, &json!(401)), "{failed:?}");
    let shown = vendor.home.run(&["show", "last"]).json();
    assert_eq!(shown["usage"]["calls"], 10);
    assert_eq!(shown["usage"]["attempts"], 10);
    // Nothing of a key is anywhere.
    let everything = format!("{log:?} {shown}");
    assert!(!everything.contains("sk-canary"), "{everything}");
}

/// A client that tries again makes the next attempt of the same call, told by its header or by the same request.
#[test]
fn retries_are_attempts_of_one_call() {
    let vendor = Vendor::start();
    let script = "
import guarded
body = {'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': 'again'}]}
for nth in range(3):
    headers = {'x-case': 'fails:2', 'x-stainless-retry-count': str(nth)}
    guarded.send('', 'OPENAI_BASE_URL', '/chat/completions', body, headers)
body = {'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': 'plain'}]}
for nth in range(2):
    print(guarded.send('', 'OPENAI_BASE_URL', '/chat/completions', body, {'x-case': 'fails:1'})[0]['status'])
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "503\n200\n"), "{ended:?}");
    let log = vendor.log();
    assert_eq!(of_kind(&log, "call.started").len(), 2, "{log:?}");
    let ends = of_kind(&log, "call.answered");
    let attempts: Vec<_> = ends.iter().map(|end| end["attempts"].clone()).collect();
    assert_eq!(attempts, [3, 2]);
    let retried = of_kind(&log, "call.retried");
    assert_eq!((retried.len(), &retried[0]["status"]), (3, &json!(503)));
}

/// Beyond a limit nothing is sent, and the program reads which limit it was and how to raise it.
#[test]
fn limits_refuse_before_calls() {
    let vendor = Vendor::start();
    let script = "
import guarded
for nth in range(3):
    body = {'model': 'gpt-5.1', 'max_tokens': 40, 'messages': [{'role': 'user', 'content': str(nth)}]}
    about, content = guarded.send('zipped', body=body, headers={'accept-encoding': 'gzip'})
    print(about['status'], content.decode() if about['status'] == 402 else '')
print(guarded.send('empty')[0]['status'])
print(guarded.send('models')[0]['status'])
";
    for (limit, sent, sentence) in [
        (["--max-calls", "1"], 1, "the limit of 1 call is reached: raise --max-calls"),
        (["--max-total-tokens", "70"], 1, "Raise --max-total-tokens."),
        (["--max-cost-usd", "0.00045"], 1, "Raise --max-cost-usd."),
    ] {
        let ended = vendor.guard(&limit, &["python3", "-c", script]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines: Vec<&str> = ended.out.lines().collect();
        assert!(lines[0].starts_with("200") && lines[2].contains(sentence), "{limit:?}: {ended:?}");
        assert_eq!(lines[3], "402", "what cannot be counted is refused: {ended:?}");
        assert_eq!(lines[4], "200", "a list of models costs nothing: {ended:?}");
        assert_eq!(vendor.seen().len(), sent + 1, "{limit:?}");
    }
}

/// A key of another vendor never goes to the default address, and what is no model passes.
#[test]
fn foreign_keys_are_refused() {
    let vendor = Vendor::start();
    let script = "
import os, guarded
os.environ['GROQ_BASE_URL'], os.environ['GROQ_API_KEY'] = os.environ['GROQ_BASE_URL'], 'x'
about, content = guarded.send('', 'GROQ_BASE_URL', '/openai/v1/chat/completions', {'model': 'm'}, {'api-key': 'canary-azure-key'})
print(about['status'], content.decode())
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert!(
        ended.out.starts_with("400") && ended.out.contains("a key of another vendor"),
        "{ended:?}"
    );
    assert!(vendor.seen().is_empty());
}

/// Pauses, steps and faults are those of own runs, from another process too.
#[test]
fn calls_are_steered_like_own_ones() {
    let vendor = Vendor::start();
    let script = "
import guarded
input()
for nth in range(3):
    print(guarded.send('zipped')[0]['status'], flush=True)
for fault in range(2):
    input()
    try:
        status, content = guarded.send('whole')
        print(status['status'], content[:1], flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
";
    let args = ["guard", "--format", "jsonl", "--", "python3", "-c", script];
    let mut command = vendor.home.command(&args);
    command.envs(vendor.variables()).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.stdin();
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    let ctl = |args: &[&str]| {
        let ended = vendor.home.run(&[&["ctl", &run], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    };
    ctl(&["pause"]);
    press_enter(&mut stdin);
    assert_eq!(running.until("paused")["boundaries"], json!(["call:1"]));
    assert!(vendor.seen().is_empty());
    ctl(&["step"]);
    running.until("attempt.answered");
    assert_eq!(running.until("paused")["boundaries"], json!(["call:2"]));
    assert_eq!(vendor.seen().len(), 1);
    ctl(&["resume"]);
    for _ in 0..2 {
        running.until("attempt.answered");
    }
    for (fault, class) in [("malformed", "bad_response"), ("reset", "reset")] {
        ctl(&["fault", "openai/gpt-5.1", fault]);
        running.until("fault.injected");
        press_enter(&mut stdin);
        let failed = running.until("attempt.failed");
        assert_eq!(failed["class"], class);
        // A fault does not hide what the reply has cost.
        assert!(failed["usage"]["prompt_tokens"].as_u64() > Some(0), "{failed}");
        ctl(&["fault", "openai/gpt-5.1", fault, "--remove"]);
    }
    let (status, _, said) = running.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("200 b'!'") && said.contains("IncompleteRead"), "{said}");
}

/// A client that leaves ends its attempt, and its request upstream.
#[test]
fn clients_that_leave_end_their_attempts() {
    let vendor = Vendor::start();
    let script = "
import http.client, os, json, guarded
from urllib.parse import urlsplit
base = urlsplit(os.environ['OPENAI_BASE_URL'])
for nth in range(2):
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=0.5)
    body = json.dumps({'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': 'slow'}]})
    headers = {'x-case': 'hangs', 'x-stainless-retry-count': str(nth)}
    connection.request('POST', base.path + '/chat/completions', body, headers)
    try:
        connection.getresponse()
    except TimeoutError:
        connection.close()
print(guarded.send('zipped')[0]['status'])
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "200\n"), "{ended:?}");
    let log = vendor.log();
    let failed = of_kind(&log, "attempt.failed");
    assert_eq!((failed.len(), &failed[1]["class"]), (2, &json!("cancelled")), "{failed:?}");
    // The vendor has had the prompt, so it counts.
    assert!(failed[1]["usage"]["prompt_tokens"].as_u64() > Some(10), "{failed:?}");
    // The second one is a retry of the first.
    assert_eq!(of_kind(&log, "call.started").len(), 2);
}

#[test]
fn parallel_calls_pass_together() {
    let vendor = Vendor::start();
    let script = "
import guarded, threading
got = []
threads = [threading.Thread(target=lambda case=case: got.append(guarded.send(case)[0]['status']))
           for case in ['whole', 'streamed', 'messages', 'google'] * 25]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(got.count(200))
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert_eq!((ended.code, &*ended.out), (Some(0), "100\n"), "{ended:?}");
    let shown = vendor.home.run(&["show", "last"]).json();
    let tokens: u64 = shown["model_calls"]
        .as_array()
        .expect("models")
        .iter()
        .map(|row| row["tokens_in"].as_u64().unwrap_or(0) + row["tokens_out"].as_u64().unwrap_or(0))
        .sum();
    // 25 times 15, 15, 34 and 12.
    assert_eq!((&shown["usage"]["calls"], tokens), (&json!(100), 25 * (15 + 15 + 34 + 12)));
    assert_eq!(shown["usage"]["prompt_tokens"], 25 * (10 + 10 + 25 + 4));
}

/// The breaker, the bulkhead and the rows of a file of rules.
#[test]
fn rules_protect_models() {
    let vendor = Vendor::start();
    let rules = "
[models.\"openai/*\"]
breaker = { fail_threshold = 2, open_for_s = 60 }

[[expect]]
that = 'tokens >= 0'

[[expect]]
that = 'stop_reason == \"program_failed\"'
";
    vendor.home.write("guard.toml", rules);
    let script = "
import guarded
for nth in range(3):
    body = {'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': str(nth)}]}
    about, content = guarded.send('', 'OPENAI_BASE_URL', '/chat/completions', body, {'x-case': 'fails:9'})
    print(about['status'], content.decode())
";
    let ended = vendor.guard(&["--rules", "guard.toml"], &["python3", "-c", script]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(
        lines[2].starts_with("503") && lines[2].contains("the breaker of openai/gpt-5.1 is open"),
        "{ended:?}"
    );
    assert_eq!(vendor.seen().len(), 2);
    assert_eq!(ended.code, Some(1), "a row does not hold: {ended:?}");
    let opened = vendor.log().into_iter().find(|line| line["kind"] == "breaker.changed");
    assert_eq!(opened.expect("it has opened")["to"], "open");
    let checked = vendor.home.run(&["validate", "guard.toml"]);
    assert!(checked.out.contains("1 model rule, 2 rows"), "{checked:?}");
    let schema = vendor.home.run(&["schema", "--rules"]).json();
    assert!(schema["properties"]["models"].is_object(), "{schema}");
    vendor.home.write("wrong.toml", "[budget]\nmax_cals = 1\n");
    let refused = vendor.guard(&["--rules", "wrong.toml"], &["true"]);
    assert!(refused.code == Some(2) && refused.err.contains("max_calls"), "{refused:?}");
}

/// At a limit the operator may be asked, from another process too; without people the call is refused.
#[test]
fn limits_ask_where_rules_say_so() {
    let vendor = Vendor::start();
    vendor.home.write("guard.toml", "[budget]\nmax_total_tokens = 70\non_limit = \"ask\"\n");
    let script = "
import guarded
for nth in range(2):
    body = {'model': 'gpt-5.1', 'max_tokens': 40, 'messages': [{'role': 'user', 'content': str(nth)}]}
    print(guarded.send('zipped', body=body)[0]['status'], flush=True)
";
    let rules = ["--rules", "guard.toml"];
    let ended = vendor.guard(&rules, &["python3", "-c", script]);
    assert_eq!(ended.out, "200\n402\n", "{ended:?}");
    let args = [
        &["guard"],
        &rules[..],
        &["--people", "wait", "--format", "jsonl", "--", "python3", "-c", script],
    ];
    let mut running = Running::start(vendor.home.command(&args.concat()).envs(vendor.variables()));
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    let asked = running.until("question.asked");
    let id = asked["id"].as_str().expect("an id");
    let answered = vendor.home.run(&["answer", &run, id, "--choice", "extend"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let (status, _, said) = running.end();
    assert_eq!((status.code(), &*said), (Some(0), "200\n200\n"));
}

/// A call that is held is a question: it is sent, sent with other words, or refused.
#[test]
fn held_calls_are_questions() {
    let vendor = Vendor::start();
    let script = "
import guarded
input()
for nth in range(3):
    about, content = guarded.send('zipped')
    print(about['status'], content.decode() if about['status'] == 402 else '', flush=True)
";
    let args = ["guard", "--people", "wait", "--format", "jsonl", "--", "python3", "-c", script];
    let mut command = vendor.home.command(&args);
    command.envs(vendor.variables()).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.stdin();
    let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
    assert_eq!(vendor.home.run(&["ctl", &run, "pause"]).code, Some(0));
    press_enter(&mut stdin);
    let other = json!({ "model": "gpt-5.1", "messages": [{ "role": "user", "content": "other" }] });
    vendor.home.write("other.json", &other.to_string());
    for answer in [&["--approve"][..], &["--args", "other.json"], &["--deny", "not now"]] {
        let asked = running.until("question.asked");
        assert_eq!(
            (&asked["tool"], &asked["args"]["model"]),
            (&json!("openai/gpt-5.1"), &json!("gpt-5.1"))
        );
        let id = asked["id"].as_str().expect("an id");
        let answered = vendor.home.run(&[&["answer", &run, id], answer].concat());
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    let (status, _, said) = running.end();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((status.code(), &lines[..2]), (Some(0), &["200 ", "200 "][..]), "{said}");
    assert!(lines[2].contains("the operator refused this call: not now"), "{said}");
    let seen = vendor.seen();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0]["body"], seen[1]["body"]);
    let length = json!(["content-length", other.to_string().len().to_string()]);
    assert!(seen[1]["headers"].as_array().expect("headers").contains(&length), "{seen:?}");
}

/// A request inside the span of a framework counts once: told by the header of the tap, or by the reply where a span is
/// reported later.
#[test]
fn joined_calls_count_once() {
    let vendor = Vendor::start();
    let script = "
import guarded, json, os, time, urllib.request

def span(id, parent, name, **attributes):
    now = time.time_ns()
    return {'traceId': '0af7651916cd43dd8448eb211c80319c', 'spanId': id, 'parentSpanId': parent, 'name': name,
            'startTimeUnixNano': str(now - 10 ** 9), 'endTimeUnixNano': str(now),
            'attributes': [{'key': key.replace('__', '.'), 'value': {'stringValue': value} if isinstance(value, str) else {'intValue': str(value)}}
                           for key, value in attributes.items()]}

def chat(id, said):
    return span(id, '00000000000000a1', 'chat', gen_ai__operation__name='chat', gen_ai__request__model='gpt-5.1', output__value=said,
                gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=5)

guarded.send('zipped', headers={'x-roundtable-span': '00000000000000a2'})
guarded.send('streamed')
spans = [span('00000000000000a1', '', 'desk', gen_ai__operation__name='invoke_agent', gen_ai__agent__name='desk'),
         chat('00000000000000a2', 'zipped'), chat('00000000000000a3', 'Done.')]
body = json.dumps({'resourceSpans': [{'scopeSpans': [{'spans': spans}]}]}).encode()
url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces'
request = urllib.request.Request(url, body, {'Content-Type': 'application/json'})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown = vendor.home.run(&["show", "last"]).json();
    let models = &shown["model_calls"];
    assert_eq!(models.as_array().map(Vec::len), Some(1), "{models}");
    let counted = ["calls", "tokens_in", "tokens_out"].map(|name| models[0][name].as_u64());
    assert_eq!(counted, [Some(2), Some(20), Some(10)], "{models}");
    let usage = &shown["usage"];
    // The turn of the agent is a call, too.
    let counted = ["calls", "attempts", "prompt_tokens"].map(|name| usage[name].as_u64());
    assert_eq!(counted, [Some(3), Some(2), Some(20)], "{usage}");
    let log = vendor.log();
    let opened = of_kind(&log, "span.opened");
    let span_of = |id: &str| &opened.iter().find(|line| line["id"] == id).expect(id)["span"];
    let parents: Vec<&Value> = ["request 1", "request 2"]
        .map(|id| &opened.iter().rfind(|line| line["id"] == id).expect(id)["parent"])
        .into();
    assert_eq!(parents, [span_of("00000000000000a2"), span_of("00000000000000a3")]);
    // The span of the framework shows the call, so the tree has no row for the request.
    let picture = vendor.home.run(&["picture", "last", "--text"]).out;
    assert_eq!(picture.matches("chat gpt-5.1").count(), 2, "{picture}");
}

/// Without spans, the calls that continue a conversation are below its first one.
#[test]
fn conversations_are_one_tree() {
    let vendor = Vendor::start();
    let script = "
import guarded
messages = [{'role': 'user', 'content': 'first'}]
for nth in range(3):
    guarded.send('zipped', body={'model': 'gpt-5.1', 'messages': messages})
    messages += [{'role': 'assistant', 'content': 'zipped'}, {'role': 'user', 'content': f'then {nth}'}]
guarded.send('zipped', body={'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': 'another'}]})
";
    let ended = vendor.guard(&[], &["python3", "-c", script]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let log = vendor.log();
    let opened = of_kind(&log, "span.opened");
    let parents: Vec<&Value> = opened.iter().map(|line| &line["parent"]).collect();
    let first = &opened[0]["span"];
    assert_eq!(parents, [&json!(0), first, first, &json!(0)]);
    // Each is a row of the tree.
    let picture = vendor.home.run(&["picture", "last", "--text"]).out;
    let is_row = |line: &&str| line.trim_start_matches(['│', ' ']).starts_with('✓');
    let rows = picture.lines().filter(is_row).filter(|line| line.contains("gpt-5.1 ")).count();
    assert_eq!(rows, 4, "{picture}");
}

/// What a limit refuses must not be retried; what a fault or the network breaks may be.
#[test]
fn only_final_refusals_forbid_retries() {
    let vendor = Vendor::start();
    let rules =
        "[models.\"openai/*\"]\nfaults = [{ kind = \"errors\", percent = 100, status = 529 }]\n";
    vendor.home.write("guard.toml", rules);
    let script = "
import guarded, json
about, content = guarded.send('zipped')
print(about['status'], dict(about['headers']).get('x-should-retry'), json.loads(content)['error']['message'])
";
    let program = ["python3", "-c", script];
    let faulty = vendor.guard(&["--rules", "guard.toml"], &program);
    assert_eq!(faulty.out, "529 None roundtable: HTTP 529 (injected)\n", "{faulty:?}");
    let limited = vendor.guard(&["--max-total-tokens", "1"], &program);
    assert!(limited.out.starts_with("402 false roundtable: "), "{limited:?}");
    let mut nowhere = vendor.home.command(&[&["guard", "--"][..], &program].concat());
    nowhere.current_dir(vendor.home.path()).env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let nowhere = crate::support::binary::end(&mut nowhere);
    assert!(
        nowhere.out.starts_with("502 None roundtable: no connection to 127.0.0.1:1"),
        "{nowhere:?}"
    );
    for wrong in [["--max-cost-usd", "NaN"], ["--max-cost-usd", "-1"], ["--max-calls", "0"]] {
        assert_eq!(vendor.guard(&wrong, &["true"]).code, Some(2), "{wrong:?}");
    }
}
