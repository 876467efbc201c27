//! How replies end, in the words of both APIs and of a script, streamed and whole: as the reply of a
//! member and as the answer. For each ending, what the outcome says, the text, the screen, and what the
//! next agent reads.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::{Launch, ModelChoice};
use crate::log::event::{Event, EventKind, Purpose, World};
use crate::model::ChatModel;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::{Override, Scenario, load, shipped};
use crate::support::messages::anthropic;
use crate::support::screen::Dash;
use crate::support::server::{Asking, CHUNKED_HEAD, Server, answer, chunk, piece};
use crate::support::table::{
    BRIEF, engine, facts, offline_scenarios, paused_runtime, read, shortened,
};
use crate::support::{messages, table};
use crate::words::closing::closing;

/// A team of two: the lead consults the writer, then answers.
const TEAM: &str = r#"
title = "A team"
pattern = "team"
about = "For tests."
goal = "How many?"
[budget]
max_seconds = 60
[tools.llm]
retries = { max_attempts = 2, backoff_ms = [1], jitter = false }
[team]
root = "lead"
[agents.lead]
description = "Leads"
instruction = "You lead."
members = ["writer"]
[agents.writer]
description = "Writes"
instruction = "You write."
"#;

/// What every reply says that ends in some way.
const SAID: &str = "We have seven";

/// An ending: the reason in each API, the text of a refusal, and the end in a script.
struct Ending {
    chat: Option<&'static str>,
    refusal: &'static str,
    message: Option<&'static str>,
    end: ReplyEnd,
}

fn endings() -> Vec<Ending> {
    use ReplyEnd::{Failed, Filtered, Length, Paused, Refused, Stop};
    let same = |reason, end| Ending { chat: Some(reason), refusal: "", message: Some(reason), end };
    let each = |chat, message, end| Ending { chat: Some(chat), ..same(message, end) };
    vec![
        each("stop", "end_turn", Stop),
        each("tool_calls", "tool_use", Stop),
        each("eos", "stop_sequence", Stop),
        Ending { chat: None, message: None, ..same("", Stop) },
        each("length", "max_tokens", Length),
        each("model_length", "model_context_window_exceeded", Length),
        each("content_filter", "content_filter", Filtered),
        each("SAFETY", "sensitive", Filtered),
        Ending { refusal: "I will not go on.", ..each("stop", "refusal", Refused) },
        same("error", Failed),
        same("abort", Failed),
        same("network_error", Failed),
        same("malformed_function_call", Failed),
        same("function_call_filter: MALFORMED_FUNCTION_CALL", Failed),
        same("insufficient_system_resource", Failed),
        same("pause_turn", Paused),
    ]
}

/// How a reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Chat { stream: bool },
    Messages { stream: bool },
    Script,
}

const WAYS: [Way; 5] = [
    Way::Chat { stream: true },
    Way::Chat { stream: false },
    Way::Messages { stream: true },
    Way::Messages { stream: false },
    Way::Script,
];

impl Ending {
    fn of(&self, way: Way) -> ReplyEnd {
        match (way, self.end) {
            // Only the Messages API goes on; no script pauses.
            (Way::Chat { .. } | Way::Script, ReplyEnd::Paused) => ReplyEnd::Length,
            (_, end) => end,
        }
    }

    /// The events of a stream that says this text.
    fn events(&self, way: Way, text: &str) -> Vec<String> {
        let (first, second) = text.split_at(text.len() / 2);
        if let Way::Messages { .. } = way {
            let delta = json!({ "stop_reason": self.message });
            let usage = json!({ "output_tokens": 5 });
            return vec![
                messages::message_start(),
                messages::block_start(0, &json!({ "type": "text", "text": "" })),
                messages::text_delta(first),
                messages::text_delta(second),
                messages::block_stop(0),
                messages::event(
                    &json!({ "type": "message_delta", "delta": delta, "usage": usage }),
                ),
                messages::event(&json!({ "type": "message_stop" })),
            ];
        }
        let event = |body: Value| format!("data: {body}\n\n");
        let refusal = (!self.refusal.is_empty()).then_some(self.refusal);
        let last = json!({
            "index": 0,
            "delta": { "refusal": refusal },
            "finish_reason": self.chat,
        });
        vec![
            piece(first),
            piece(second),
            event(json!({ "choices": [last] })),
            event(
                json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
            ),
            "data: [DONE]\n\n".to_owned(),
        ]
    }

    /// The answer of a server that says this text.
    fn answer(&self, way: Way, text: &str) -> Vec<u8> {
        let body = match way {
            Way::Chat { stream: true } | Way::Messages { stream: true } => {
                return streamed(&self.events(way, text), true);
            }
            Way::Messages { .. } => json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "text", "text": text }],
                "stop_reason": self.message,
                "usage": { "input_tokens": 9, "output_tokens": 5 },
            }),
            Way::Chat { .. } | Way::Script => json!({
                "choices": [{
                    "message": { "role": "assistant", "content": text, "refusal": self.refusal },
                    "finish_reason": self.chat,
                }],
                "usage": { "prompt_tokens": 7, "completion_tokens": 2 },
            }),
        };
        whole(&body)
    }
}

fn whole(body: &Value) -> Vec<u8> {
    answer("200 OK", &["content-type: application/json", "connection: close"], &body.to_string())
}

/// These events as chunks, and whether the body then ends.
fn streamed(events: &[String], ends: bool) -> Vec<u8> {
    let chunks: String = events.iter().map(|event| chunk(event)).collect();
    format!("{CHUNKED_HEAD}{chunks}{}", if ends { "0\r\n\r\n" } else { "" }).into_bytes()
}

/// An answer with a call of the writer.
fn consultation(way: Way) -> Vec<u8> {
    let (name, request) = ("writer", json!({ "request": "Write." }));
    whole(&match way {
        Way::Messages { .. } => json!({
            "type": "message",
            "content": [{ "type": "tool_use", "id": "c1", "name": name, "input": request }],
            "stop_reason": "tool_use",
        }),
        Way::Chat { .. } | Way::Script => json!({ "choices": [{
            "message": { "content": null, "tool_calls": [{
                "id": "c1",
                "type": "function",
                "function": { "name": name, "arguments": request.to_string() },
            }] },
            "finish_reason": "tool_calls",
        }] }),
    })
}

/// A server that answers as `say` does until it is dropped, and what it was asked.
struct Serving {
    model: Arc<dyn ChatModel>,
    asked: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    async fn start(way: Way, say: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let server = Server::start().await;
        let model: Arc<dyn ChatModel> = match way {
            Way::Messages { stream } => Arc::new(anthropic(&server, stream)),
            Way::Chat { stream: true } | Way::Script => Arc::new(server.streaming()),
            Way::Chat { stream: false } => Arc::new(server.model()),
        };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            loop {
                let mut connection = server.accept().await;
                let asking = connection.request().await;
                heard.lock().expect("a lock").push(asking.body.to_string());
                connection.send(say(&asking)).await;
            }
        });
        Self { model, asked, task }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A run with all of its sides.
struct Seen {
    world: World,
    events: Vec<Arc<Event>>,
    /// What the server was asked.
    asked: Vec<String>,
}

impl Seen {
    fn outcome(&self) -> Value {
        serde_json::to_value(self.world.outcome().expect("an outcome")).expect("JSON")
    }

    /// The end of headless text.
    fn text(&self) -> String {
        closing(&self.world.outcome().expect("an outcome"), &self.world)
    }

    fn screen(&self) -> String {
        let mut dash = Dash::new(200, 50);
        dash.run("r-1", &self.events);
        dash.screen()
    }

    /// The last message of the last prompt of this agent.
    fn read_by(&self, name: &str) -> String {
        let mut prompts = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::ModelCall { agent, .. } if agent.as_str() == name => Some(&call.prompt),
                _ => None,
            },
            _ => None,
        });
        let last = prompts.next_back().and_then(|prompt| prompt.messages.last());
        last.map(|message| message.content.to_string()).unwrap_or_default()
    }
}

async fn played(scenario: &Arc<Scenario>, serving: Option<&Serving>) -> Seen {
    let scripted = Launch::scripted(Arc::clone(scenario), true);
    let run = engine().start(match serving {
        Some(it) => Launch {
            model: ModelChoice::Live(Arc::clone(&it.model).into(), Duration::from_secs(20)),
            ..scripted
        },
        None => scripted,
    });
    let events = facts(&run).await;
    let world = World::from_events(events.iter().map(|event| &**event));
    assert_eq!(world.progress.closed.as_ref().map(|closed| closed.in_flight), Some(0));
    Seen { world, events, asked: serving.map(Serving::asked).unwrap_or_default() }
}

fn is_of_writer(asking: &Asking) -> bool {
    asking.body.to_string().contains("You write.")
}

fn has_result(asking: &Asking) -> bool {
    let body = asking.body.to_string();
    body.contains("tool_result") || body.contains(r#""role":"tool""#)
}

/// A run in which the writer's reply ends so, and the lead reads it; or the lead's own, as the answer.
async fn run(way: Way, nth: usize, of_member: bool) -> Seen {
    let end = endings()[nth].of(way);
    if way == Way::Script {
        let row = |agent: &str, what: &str| format!("[[script]]\nagent = \"{agent}\"\n{what}\n");
        let ends = format!("text = \"{SAID}\"\nend = \"{}\"", end.word());
        let script = match of_member {
            true => [
                row(
                    "lead",
                    "round = 1\ncalls = [{ tool = \"writer\", args = { request = \"Write.\" } }]",
                ),
                row("lead", "text = \"Done.\""),
                row("writer", &ends),
            ]
            .concat(),
            false => row("lead", &ends) + &row("writer", "text = \"x\""),
        };
        return played(&read(&format!("{TEAM}{script}"), &[]), None).await;
    }
    let serving = Serving::start(way, move |asking: &Asking| {
        let (plain, ending) = (&endings()[0], &endings()[nth]);
        match (is_of_writer(asking), of_member, has_result(asking)) {
            (true, ..) | (_, false, _) => ending.answer(way, SAID),
            (false, true, false) => consultation(way),
            (false, true, true) => plain.answer(way, "Done."),
        }
    })
    .await;
    played(&read(TEAM, &[]), Some(&serving)).await
}

/// The text of a reply that the model pauses as often as it may.
fn whole_text(end: ReplyEnd) -> String {
    SAID.repeat(if end == ReplyEnd::Paused { 9 } else { 1 })
}

#[tokio::test]
async fn an_answer_says_how_it_ended() {
    for (nth, ending) in endings().iter().enumerate() {
        for way in WAYS {
            let end = ending.of(way);
            let what = format!("{way:?} {:?} {:?}", ending.chat, ending.message);
            let seen = run(way, nth, false).await;
            let outcome = seen.outcome();
            if end == ReplyEnd::Failed {
                assert_eq!(outcome["stop_reason"], "llm_error:bad_response", "{what}");
                let error = outcome["error"].as_str().expect("a cause");
                let word = if way == Way::Script { "failed" } else { ending.chat.expect("a word") };
                assert!(error.contains(&format!("\"{word}\"")), "{what}: {error}");
                assert_eq!(outcome["usage"]["attempts"], 2, "{what}: it is tried again");
                assert!(outcome.get("cut").is_none(), "{what}: it is no answer");
                continue;
            }
            assert_eq!(outcome["status"], "ok", "{what}: {outcome}");
            assert_eq!(outcome["answer"], *whole_text(end), "{what}");
            let cut = match end {
                ReplyEnd::Stop => Value::Null,
                end => json!([{ "who": "lead", "end": end.word() }]),
            };
            assert_eq!(outcome.get("cut").unwrap_or(&Value::Null), &cut, "{what}");
            assert_eq!(outcome["degraded"], end != ReplyEnd::Stop, "{what}");
            let mark = end.mark().unwrap_or("cut");
            for shown in [seen.text(), seen.screen()] {
                assert_eq!(shown.contains(mark), end != ReplyEnd::Stop, "{what}: {shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_coordinator_reads_how_it_ended() {
    for (nth, ending) in endings().iter().enumerate() {
        for way in WAYS {
            let end = ending.of(way);
            let what = format!("{way:?} {:?} {:?}", ending.chat, ending.message);
            let seen = run(way, nth, true).await;
            let (outcome, read) = (seen.outcome(), seen.read_by("lead"));
            assert_eq!(outcome["answer"], "Done.", "{what}: {outcome}");
            match end.mark() {
                None => assert_eq!(read, SAID, "{what}"),
                Some(_) if end == ReplyEnd::Failed => {
                    assert!(read.starts_with("error: llm_error:bad_response"), "{what}: {read}");
                }
                Some(mark) => {
                    let expected = format!("{}\n\n[This reply was {mark}.]", whole_text(end));
                    assert_eq!(read, expected, "{what}");
                    let cut = json!([{ "who": "writer", "end": end.word() }]);
                    assert_eq!(outcome["cut"], cut, "{what}");
                    assert_eq!(outcome["degraded"], true, "{what}");
                    assert!(seen.text().contains(mark), "{what}: {}", seen.text());
                    assert!(seen.screen().contains("1 reply cut"), "{what}: {}", seen.screen());
                    assert!(way == Way::Script || seen.asked.iter().any(|it| it.contains(mark)));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_failed_end_is_tried_again() {
    for way in WAYS {
        for (nth, ending) in endings().iter().enumerate() {
            if ending.of(way) != ReplyEnd::Failed || way == Way::Script {
                continue;
            }
            let asked = std::sync::atomic::AtomicUsize::new(0);
            let serving = Serving::start(way, move |_| {
                let first = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
                endings()[if first { nth } else { 0 }].answer(way, SAID)
            })
            .await;
            let seen = played(&read(TEAM, &[]), Some(&serving)).await;
            let outcome = seen.outcome();
            assert_eq!(outcome["answer"], SAID, "{way:?} {:?}", ending.chat);
            assert_eq!((outcome["degraded"].as_bool(), seen.asked.len()), (Some(false), 2));
        }
    }
}

/// The body ends after each number of events, without its end: that is a reply only if the API's own
/// end of a stream had come.
#[tokio::test]
async fn cut_stream_is_no_reply() {
    let once = ["tools.llm.retries.max_attempts=1"];
    for way in [Way::Chat { stream: true }, Way::Messages { stream: true }] {
        for (nth, ending) in endings().iter().enumerate() {
            let count = ending.events(way, SAID).len();
            for sent in 0..=count {
                let serving = Serving::start(way, move |_| {
                    streamed(&endings()[nth].events(way, SAID)[..sent], false)
                })
                .await;
                let outcome = played(&read(TEAM, &once), Some(&serving)).await.outcome();
                let what = format!("{way:?} {:?} after {sent} events: {outcome}", ending.chat);
                let reason = outcome["stop_reason"].as_str().expect("a reason");
                match (sent == count, ending.of(way)) {
                    (true, ReplyEnd::Failed) => {
                        assert_eq!(reason, "llm_error:bad_response", "{what}")
                    }
                    (true, _) => assert_eq!(reason, "success", "{what}"),
                    (false, _) => assert_eq!(reason, "llm_error:connection", "{what}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn empty_cut_reply_names_end() {
    for (nth, ending) in endings().iter().enumerate() {
        for way in WAYS.into_iter().filter(|way| *way != Way::Script) {
            let end = ending.of(way);
            let serving = Serving::start(way, move |_| endings()[nth].answer(way, "")).await;
            let outcome = played(&read(TEAM, &[]), Some(&serving)).await.outcome();
            let what = format!("{way:?} {:?} {:?}: {outcome}", ending.chat, ending.message);
            if end == ReplyEnd::Failed {
                assert_eq!(outcome["stop_reason"], "llm_error:bad_response", "{what}");
                continue;
            }
            let streams =
                matches!(way, Way::Chat { stream: true } | Way::Messages { stream: true });
            if streams && ending.chat.is_none() {
                // A stream without a reason, text or call has not ended.
                assert_eq!(outcome["stop_reason"], "llm_error:bad_response", "{what}");
                continue;
            }
            let expected = match (end, way) {
                (ReplyEnd::Stop, _) => "the reply is empty",
                (ReplyEnd::Filtered, _) => "the provider's content filter ended the reply",
                (ReplyEnd::Refused, Way::Chat { .. }) => "the model refused: I will not go on.",
                (ReplyEnd::Refused, _) => "the model refused to answer",
                (ReplyEnd::Paused, _) => "the model paused too often to end the reply",
                (ReplyEnd::Length, _)
                    if ending.message == Some("model_context_window_exceeded") =>
                {
                    assert_eq!(outcome["stop_reason"], "llm_empty", "{what}");
                    continue;
                }
                _ => "the reply ended at its token limit",
            };
            assert_eq!(outcome["stop_reason"], "llm_empty", "{what}");
            assert_eq!(outcome["detail"], expected, "{what}");
            assert!(outcome.get("cut").is_none(), "{what}: it is not used");
        }
    }
}

/// A model that pauses sends what it had said, and each time is a call of its own.
#[tokio::test]
async fn a_paused_model_goes_on() {
    for stream in [true, false] {
        let way = Way::Messages { stream };
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let serving = Serving::start(way, move |_| {
            let nth = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let ending = if nth < 3 { endings().remove(15) } else { endings().remove(0) };
            ending.answer(way, &format!("<{nth}>"))
        })
        .await;
        let seen = played(&read(TEAM, &[]), Some(&serving)).await;
        let outcome = seen.outcome();
        assert_eq!(outcome["answer"], "<0><1><2><3>", "{way:?}");
        assert_eq!((&outcome["degraded"], &outcome["usage"]["calls"]), (&json!(false), &json!(4)));
        let bodies: Vec<Value> =
            seen.asked.iter().map(|it| serde_json::from_str(it).expect("JSON")).collect();
        for (nth, body) in bodies.iter().enumerate() {
            let messages = body["messages"].as_array().expect("messages");
            let said: Vec<&str> = messages[1..]
                .iter()
                .flat_map(|message| message["content"].as_array().expect("blocks"))
                .map(|block| block["text"].as_str().expect("a text"))
                .collect();
            let expected: Vec<String> = (0..nth).map(|nth| format!("<{nth}>")).collect();
            assert_eq!(said, expected, "{way:?}");
            assert!(messages[1..].iter().all(|message| message["role"] == "assistant"));
        }
    }
}

/// The blocks of a reply that paused, and those of its continuation, go back as one.
#[tokio::test]
async fn a_continuation_keeps_all_blocks() {
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
    let search = json!({
        "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "x" },
    });
    let call = json!({
        "type": "tool_use", "id": "c1", "name": "writer", "input": { "request": "Write." },
    });
    let (first, second) = (json!([thought, search]), json!([call]));
    for stream in [true, false] {
        let way = Way::Messages { stream };
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let (first, second) = (first.clone(), second.clone());
        let serving = Serving::start(way, move |asking| {
            let says = |content: &Value, reason: &str| match stream {
                false => {
                    whole(&json!({ "type": "message", "content": content, "stop_reason": reason }))
                }
                true => streamed(&messages::streamed_blocks(content, reason), true),
            };
            match (is_of_writer(asking), asked.load(std::sync::atomic::Ordering::Relaxed)) {
                (true, _) => return endings()[0].answer(way, "Seven."),
                (_, nth) => asked.store(nth + 1, std::sync::atomic::Ordering::Relaxed),
            }
            match asked.load(std::sync::atomic::Ordering::Relaxed) {
                1 => says(&first, "pause_turn"),
                2 => says(&second, "tool_use"),
                _ => endings()[0].answer(way, "Done."),
            }
        })
        .await;
        let seen = played(&read(TEAM, &[]), Some(&serving)).await;
        assert_eq!(seen.outcome()["answer"], "Done.", "{way:?}");
        let last: Value = serde_json::from_str(seen.asked.last().expect("requests")).expect("JSON");
        assert_eq!(last["messages"][1]["content"], json!([thought, search, call]), "{way:?}");
        let continued: Value = serde_json::from_str(&seen.asked[1]).expect("JSON");
        assert_eq!(continued["messages"][1]["content"], json!([thought, search]), "{way:?}");
    }
}

/// Calls of a reply that did not end well are not made, whichever way they came.
#[tokio::test]
async fn cut_reply_makes_no_calls() {
    let script = r#"
[[script]]
agent = "lead"
text = "I ask."
end = "length"
calls = [{ tool = "writer", args = { request = "Write." } }]
[[script]]
agent = "writer"
text = "x"
"#;
    let seen = played(&read(&format!("{TEAM}{script}"), &[]), None).await;
    let outcome = seen.outcome();
    assert_eq!((&outcome["answer"], &outcome["usage"]["calls"]), (&json!("I ask."), &json!(1)));
    assert_eq!(outcome["cut"], json!([{ "who": "lead", "end": "length" }]));
    let screen = seen.screen();
    assert!(screen.contains("cut at its token limit, its call is not made"), "{screen}");
    let chat = Way::Chat { stream: false };
    let serving = Serving::start(chat, move |asking: &Asking| {
        let body = String::from_utf8(consultation(chat)).expect("text");
        match is_of_writer(asking) {
            true => endings()[0].answer(chat, "x"),
            // As long as before.
            false => body.replace(r#"n":"tool_calls""#, r#"n":"max_tokens""#).into_bytes(),
        }
    })
    .await;
    let outcome = played(&read(TEAM, &[]), Some(&serving)).await.outcome();
    assert_eq!(
        (&outcome["stop_reason"], &outcome["usage"]["calls"]),
        (&json!("llm_empty"), &json!(1))
    );
    assert_eq!(outcome["detail"], "the reply ended at its token limit");
}

/// Every row of every shipped script that calls no tool, with another end: the run ends as it did, and
/// the usage says so.
#[test]
fn every_pattern_marks_what_was_cut() {
    let runtime = paused_runtime();
    let (mut cut, mut patterns) = (0, BTreeSet::new());
    for name in offline_scenarios() {
        let plain = runtime.block_on(played(&shipped_with(name, &[]), None));
        let rows = shipped_with(name, &[]).script.rows.len();
        for row in 0..rows {
            let scenario = shipped_with(name, &[&format!("script[{row}].end=length")]);
            if !scenario.script.rows[row].calls.is_empty() {
                continue;
            }
            let seen = runtime.block_on(played(&scenario, None));
            let (before, outcome) = (plain.outcome(), seen.outcome());
            let what = format!("{name}, row {row}: {outcome}");
            assert_eq!(outcome["stop_reason"], before["stop_reason"], "{what}");
            assert_eq!(outcome["answer"], before["answer"], "{what}");
            let rows = outcome.get("cut").and_then(Value::as_array).map_or(0, Vec::len);
            if rows == 0 {
                assert_eq!(outcome["degraded"], before["degraded"], "{what}");
                continue;
            }
            assert_eq!(outcome["degraded"], true, "{what}");
            assert!(outcome["cut"].as_array().is_some_and(|rows| {
                rows.iter().all(|row| row["end"] == "length" && row["who"] != "")
            }));
            assert!(seen.text().contains("cut at its token limit"), "{what}: {}", seen.text());
            cut += rows;
            patterns.insert(outcome["pattern"].to_string());
        }
    }
    assert!(cut > 50, "{cut}");
    assert_eq!(patterns.len(), 6, "{patterns:?}");
}

fn shipped_with(name: &str, sets: &[&str]) -> Arc<Scenario> {
    let found = shipped().iter().find(|it| it.name == name).expect("shipped");
    let mut overrides = shortened(name);
    overrides.extend(sets.iter().map(|set| set.parse::<Override>().expect("an override")));
    Arc::new(load(found.text, found.origin(), &overrides).expect("a good scenario"))
}

/// What a model reads in the next message of a session.
#[tokio::test]
async fn next_message_reports_cut() {
    let script = r#"
[[script]]
agent = "lead"
message = 1
text = "We have seven"
end = "length"
[[script]]
agent = "lead"
text = "Done."
[[script]]
agent = "writer"
text = "x"
"#;
    let scenario = read(&format!("{TEAM}{script}"), &[]);
    let engine = engine();
    let first = engine.start(Launch::scripted(Arc::clone(&scenario), true));
    let _ = facts(&first).await;
    let mut launch = Launch::scripted(scenario, true);
    launch.session = first.follow_up("And now?");
    let events = facts(&engine.start(launch)).await;
    let world = World::from_events(events.iter().map(|event| &**event));
    let seen = Seen { world, events, asked: Vec::new() };
    let mark = "cut at its token limit";
    assert_eq!(seen.read_by("lead"), format!("[Your last reply was {mark}.]\n\nAnd now?"));
    assert_eq!(seen.outcome()["degraded"], false, "that was the run before");
    assert!(seen.screen().contains(&format!("We have seven ({mark})")), "{}", seen.screen());
}

/// The text of a failed attempt is not used, so its end is not either.
#[tokio::test]
async fn failed_attempt_marks_no_cut() {
    let team = TEAM.replace("\"You write.\"", "\"You write.\"\nmembers = [\"clerk\"]");
    let script = r#"
[agents.clerk]
description = "Counts"
instruction = "You count."
[[script]]
agent = "lead"
round = 1
calls = [{ tool = "writer", args = { request = "Write." } }]
[[script]]
agent = "lead"
text = "Done."
[[script]]
agent = "writer"
round = 1
calls = [{ tool = "clerk", args = { request = "Count." } }]
[[script]]
agent = "writer"
text = ""
[[script]]
agent = "clerk"
text = "Sev"
end = "length"
"#;
    let seen = played(&read(&format!("{team}{script}"), &[]), None).await;
    let cut = |event: &Arc<Event>| matches!(&event.kind, EventKind::AttemptAnswered(reply) if reply.end == ReplyEnd::Length);
    assert!(seen.events.iter().any(cut));
    let outcome = seen.outcome();
    assert_eq!(outcome["answer"], "Done.");
    assert!(outcome.get("cut").is_none(), "{outcome}");
}

/// A contribution that could be read though its reply was cut: the writer of the brief reads that too.
#[tokio::test]
async fn the_brief_reads_a_cut_contribution() {
    let row = |role: &str, end: &str| {
        let reply =
            format!("stance = \"go\", summary = \"{role}\", confidence = 1, actions = [\"x\"]");
        format!("[[script]]\nrole = \"{role}\"\nend = \"{end}\"\nreply = {{ {reply} }}\n")
    };
    let script = row("a", "filtered") + &row("b", "stop") + BRIEF;
    let seen = played(&table::scenario(&script, &[]), None).await;
    let prompt = seen.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::CallStarted(call) => call.prompt.messages.last().map(|it| it.content.clone()),
        _ => None,
    });
    let payload: Value = serde_json::from_str(&prompt.expect("a prompt")).expect("JSON");
    let ends = |nth: usize| payload["history"][0]["contributions"][nth].get("end").cloned();
    assert_eq!((ends(0), ends(1)), (Some(json!("filtered")), None));
    assert_eq!(seen.outcome()["cut"], json!([{ "who": "a", "end": "filtered" }]));
}

/// As any failure of the model, replies that failed at their end open its breaker.
#[tokio::test]
async fn failed_ends_open_the_breaker() {
    let breaker = "tools.llm.breaker={ fail_threshold = 2, open_for_s = 30, counts = 'attempts' }";
    let sets = [breaker, "tools.llm.retries.max_attempts=4"];
    for way in WAYS.into_iter().filter(|way| *way != Way::Script) {
        let serving = Serving::start(way, move |_| endings()[11].answer(way, SAID)).await;
        let seen = played(&read(TEAM, &sets), Some(&serving)).await;
        let opened = |event: &Arc<Event>| matches!(event.kind, EventKind::BreakerChanged { .. });
        assert!(seen.events.iter().any(opened), "{way:?}");
        assert_eq!(seen.asked.len(), 2, "{way:?}: the third is refused");
    }
}
