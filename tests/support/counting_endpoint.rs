//! An endpoint of models that counts: it replies as the script of a scenario does, and keeps each
//! prompt that it got. It can hold a request, so that a test knows what is in flight. It is strict: it
//! refuses a history that lacks what it has added to a reply, or that is not in the form of `strict`.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::binary::{Ended, Home};
use super::server::{KEY, json as answer};
use super::strict;

/// How long a request may take to come on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times each prompt occurs; a prompt is the text of its messages.
pub type PromptCounts = BTreeMap<String, usize>;

/// What a model of the script replies to each prompt: the text, and the calls of tools.
type Replies = HashMap<String, (String, Value)>;

/// The endpoint. Its threads end with the test's process.
pub struct CountingEndpoint {
    host: String,
    shared: Arc<Shared>,
    held: mpsc::Receiver<()>,
}

struct Shared {
    replies: Replies,
    state: Mutex<State>,
    released: Condvar,
    holding: mpsc::Sender<()>,
}

#[derive(Default)]
struct State {
    prompts: Vec<String>,
    /// The request that is held, from 1, and whether its reply is sent first.
    hold: Option<(usize, bool)>,
}

impl CountingEndpoint {
    /// One that replies as the script of this scenario.
    pub fn of(scenario: &str) -> Self {
        let args = ["run", scenario, "--instant", "--no-store", "--format", "jsonl"];
        let log = Home::new().run(&args).lines();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let host = listener.local_addr().expect("a bound socket").to_string();
        let (holding, held) = mpsc::channel();
        let (state, released) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { replies: replies(&log), state, released, holding });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&serving);
                // A program that is killed closes its connections in the middle of anything.
                thread::spawn(move || shared.serve(stream).ok());
            }
        });
        Self { host, shared, held }
    }

    /// Lets a command of the program call this endpoint.
    pub fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        command.envs(self.env());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, home: &Home, args: &[&str]) -> Ended {
        super::binary::end(&mut self.command(home, args))
    }

    /// The variables of a program that calls this endpoint.
    pub fn env(&self) -> [(&'static str, String); 2] {
        [
            ("OPENAI_API_KEY", KEY.to_owned()),
            ("OPENAI_BASE_URL", format!("http://{}/v1", self.host)),
        ]
    }

    /// Its host and port.
    pub fn address(&self) -> (&'static str, u16) {
        let (_, port) = self.host.rsplit_once(':').expect("a port");
        ("127.0.0.1", port.parse().expect("a number"))
    }

    /// From now on holds the `nth` request from now, before or after its reply is sent.
    pub fn hold(&self, nth: usize, replies_first: bool) {
        let mut state = self.shared.state();
        let before = state.prompts.len();
        state.hold = Some((before + nth, replies_first));
    }

    /// Waits until the request is held.
    pub fn wait_until_held(&self) {
        self.held.recv_timeout(PATIENCE).expect("the request never came");
    }

    /// Continues with the request that is held.
    pub fn release(&self) {
        self.shared.state().hold = None;
        self.shared.released.notify_all();
    }

    /// The prompts of the requests so far.
    pub fn prompts(&self) -> Vec<String> {
        self.shared.state().prompts.clone()
    }
}

impl Drop for CountingEndpoint {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a lock")
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut from = BufReader::new(stream.try_clone()?);
        while let Some(body) = request(&mut from)? {
            if let Some(why) = strict::refusal(&body) {
                let error = json!({ "error": { "message": why } }).to_string();
                (&stream).write_all(&answer("400 Bad Request", &error))?;
                continue;
            }
            let prompt = prompt_of(body["messages"].as_array().into_iter().flatten());
            let (text, calls) =
                self.replies.get(&prompt).unwrap_or_else(|| panic!("no reply to {prompt}"));
            let nth = {
                let mut state = self.state();
                state.prompts.push(prompt);
                state.prompts.len()
            };
            self.wait_if(nth, false);
            (&stream).write_all(&completion(text, calls))?;
            self.wait_if(nth, true);
        }
        Ok(())
    }

    fn wait_if(&self, nth: usize, replied: bool) {
        let held = Some((nth, replied));
        let state = self.state();
        if state.hold == held {
            let _ = self.holding.send(());
            let waiting = self.released.wait_while(state, |state| state.hold == held);
            drop(waiting.expect("a lock"));
        }
    }
}

/// The JSON of the next request; `None`: the other side has closed.
fn request(from: &mut impl BufRead) -> std::io::Result<Option<Value>> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body).expect("JSON")))
}

fn completion(text: &str, calls: &Value) -> Vec<u8> {
    let mut message = json!({ "role": "assistant", "content": text });
    if let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) {
        let calls = calls.iter().map(|call| {
            let function = json!({ "name": call["name"], "arguments": call["arguments"] });
            json!({ "id": call["id"], "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    strict::adorn(&mut message);
    let body = json!({
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "counting",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
    });
    answer("200 OK", &body.to_string())
}

/// The text of the messages of a prompt, whether or not messages in a row are joined on the way to
/// the server.
fn prompt_of<'a>(messages: impl Iterator<Item = &'a Value>) -> String {
    plain(messages.filter_map(|it| it["content"].as_str()))
}

fn plain<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let lines = texts.flat_map(str::lines);
    let said = lines.filter(|line| !line.trim().is_empty() && *line != "(continued)");
    said.collect::<Vec<_>>().join("\n")
}

/// The attempts of model calls that a log announces.
pub struct ModelAttempts {
    /// The prompt of each call of a model.
    prompts: BTreeMap<u64, String>,
    /// The call of each attempt, by the attempt's span; the first ones are stored first.
    started: Vec<(u64, u64)>,
    /// The replies, by the call's span.
    replies: BTreeMap<u64, (String, Value)>,
}

impl ModelAttempts {
    /// The attempts of a log, as its lines of JSON have them.
    pub fn of(log: &[Value]) -> Self {
        let mut found =
            Self { prompts: BTreeMap::new(), started: Vec::new(), replies: BTreeMap::new() };
        for line in log {
            let span = line["span"].as_u64().unwrap_or_default();
            match line["kind"].as_str().unwrap_or_default() {
                "call.started" if line["tool"] == "llm" => found.call(span, &line["prompt"]),
                "attempt.started" => {
                    let call = line["parent"].as_u64().expect("a span");
                    if found.prompts.contains_key(&call) {
                        found.started.push((span, call));
                    }
                }
                // The same attempt is made again.
                "call.in_doubt" if line["decision"] == "retry" => {
                    let of_model = found.started.iter().find(|it| it.0 == span).copied();
                    found.started.extend(of_model);
                }
                "attempt.answered" => {
                    let calls = line.get("tool_calls").cloned().unwrap_or_default();
                    let text = line["text"].as_str().unwrap_or_default().to_owned();
                    if let Some((_, call)) = found.started.iter().find(|it| it.0 == span) {
                        found.replies.insert(*call, (text, calls));
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn call(&mut self, span: u64, prompt: &Value) {
        let new = prompt_of(prompt["messages"].as_array().into_iter().flatten());
        let whole = match prompt["after"].as_u64() {
            None => new,
            Some(after) => {
                let reply = self.replies.get(&after).map(|reply| plain([&*reply.0].into_iter()));
                let before = [self.prompts.get(&after).cloned(), reply, Some(new)];
                let parts = before.into_iter().flatten().filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("\n")
            }
        };
        self.prompts.insert(span, whole);
    }

    /// The prompts of the attempts that were started.
    pub fn started(&self) -> PromptCounts {
        count(self.started.iter().map(|(_, call)| self.prompts[call].clone()))
    }

    /// The prompts of the attempts that the `earlier` part of the same log does not have, and
    /// that it has no reply for.
    pub fn started_after(&self, earlier: &Self) -> PromptCounts {
        let fresh = self.started.iter().skip(earlier.started.len());
        let open = fresh.filter(|(_, call)| !earlier.replies.contains_key(call));
        count(open.map(|(_, call)| self.prompts[call].clone()))
    }

    /// Number of the attempts that were started.
    pub fn len(&self) -> usize {
        self.started.len()
    }
}

/// How many times each prompt occurs.
pub fn count(prompts: impl IntoIterator<Item = String>) -> PromptCounts {
    let mut counts = PromptCounts::new();
    for prompt in prompts {
        *counts.entry(prompt).or_default() += 1;
    }
    counts
}

/// The prompts that occur more often in `left` than in `right`, each by its end.
pub fn surplus(left: &PromptCounts, right: &PromptCounts) -> Vec<String> {
    let more = |prompt: &String| left[prompt] > right.get(prompt).copied().unwrap_or_default();
    let end = |prompt: &String| {
        let from = prompt.char_indices().rev().nth(120).map_or(0, |(at, _)| at);
        prompt[from..].to_owned()
    };
    left.keys().filter(|prompt| more(prompt)).map(end).collect()
}

fn replies(log: &[Value]) -> Replies {
    let mut replies = Replies::new();
    // Each run of a session numbers its spans anew.
    for run in log.chunk_by(|_, next| next["kind"] != "run.started") {
        let attempts = ModelAttempts::of(run);
        for (call, reply) in &attempts.replies {
            replies.entry(attempts.prompts[call].clone()).or_insert_with(|| reply.clone());
        }
    }
    replies
}
