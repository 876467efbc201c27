//! Tools of MCP servers in a run: listed once, pinned, asked about; progress and requests for input.

use std::collections::BTreeMap;

use super::continued::stored;
use super::*;
use crate::base::refused::Refused;
use crate::engine::Resumption;
use crate::gateway::{AttemptProgress, InputReply, InputRequest};
use crate::log::event::{Initiator, Subject};
use crate::run::servers::{SeenTool, SeenTools};
use crate::scenario::spec::InDoubt;

/// A team of one agent that calls a tool of the server `files`, and says what it got.
const TEAM: &str = r#"
title = "Files"
pattern = "team"
goal = "Read."
[budget]
max_seconds = 600
[team]
root = "boss"
[mcp.files]
command = { program = "files-server" }
ALLOW
[tools.files]
timeout_s = 5
LIMITS
[agents.boss]
description = "The coordinator."
members = ["other"]
tools = ["files.*"]
[agents.other]
description = "Another agent."
[[script]]
agent = "boss"
round = 1
calls = [{ tool = "files.CALLED", args = { path = "a.txt" } }]
[[script]]
agent = "boss"
text = "{{results.0.text}}"
"#;

struct Given {
    allow: &'static str,
    limits: &'static str,
    called: &'static str,
    more: &'static str,
}

const PLAIN: Given = Given { allow: "", limits: "", called: "read", more: "" };

fn team(given: &Given) -> Arc<Scenario> {
    let text = TEAM.replace("ALLOW", given.allow).replace("LIMITS", given.limits);
    read(&(text.replace("CALLED", given.called) + given.more), &[])
}

/// A server with the tools `read`, `write`, `ask` and `slow`.
#[derive(Clone, Default)]
struct Server {
    called: Arc<Mutex<Vec<String>>>,
    /// What `read` says of itself.
    description: &'static str,
    fails: bool,
    /// The schema of one more tool, if it has one.
    odd_schema: Value,
}

impl Server {
    fn calls(&self) -> Vec<String> {
        self.called.lock().expect("no panic").clone()
    }

    async fn answer(&self, request: ToolRequest<'_>) -> Result<Value, Box<AttemptFailed>> {
        let rejected = |text: &str| Err(AttemptFailed::new(FailureClass::Rejected, text));
        match request.tool {
            "files" if self.fails => rejected("it does not start"),
            "files" => {
                let tool = |name: &str, about: &str, reads_only: bool| {
                    json!({
                        "name": name,
                        "description": about,
                        "parameters": {
                            "$schema": "https://json-schema.org/draft/2020-12/schema",
                            "type": "object",
                            "required": ["path"],
                            "properties": { "path": { "type": "string" } },
                        },
                        "reads_only": reads_only,
                    })
                };
                let mut tools = json!([
                    tool("read", self.description, true),
                    tool("write", "Writes a file.", false),
                    tool("ask", "Asks.", false),
                    tool("slow", "Takes long.", false),
                    tool("reject", "Rejects.", false),
                ]);
                if let (Some(tools), false) = (tools.as_array_mut(), self.odd_schema.is_null()) {
                    let mut odd = tool("odd", "Has an odd schema.", false);
                    odd["parameters"] = self.odd_schema.clone();
                    tools.push(odd);
                }
                Ok(json!({ "server": "digest", "tools": tools }))
            }
            "files.ask" => {
                let schema = json!({
                    "type": "object",
                    "required": ["size"],
                    "properties": { "size": { "type": "integer", "default": 5, "minimum": 1 } },
                });
                let (from, text) = ("files".to_owned(), "How large?".to_owned());
                let reply = request.host.ask(InputRequest { from, text, schema }).await;
                Ok(Value::from(match reply {
                    InputReply::Accept(value) => value.to_string(),
                    InputReply::Decline => "declined".to_owned(),
                    InputReply::Cancel => "cancelled".to_owned(),
                }))
            }
            "files.slow" => {
                for done in 1..=4 {
                    tokio::time::sleep(Duration::from_secs(4)).await;
                    let (text, total) = (format!("part {done}"), Some(4.0));
                    request.host.progress(AttemptProgress { text, done: f64::from(done), total });
                }
                Ok(Value::from("whole"))
            }
            "files.reject" => rejected("there is no such file"),
            _ => Ok(Value::from("the text")),
        }
    }
}

impl Tool for Server {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        self.called.lock().expect("no panic").push(request.tool.to_owned());
        Box::pin(async move { self.answer(request).await.map(Arc::new) })
    }

    fn end(&self) {
        self.called.lock().expect("no panic").push("end".to_owned());
    }
}

/// What was seen of tools, in memory.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<String, SeenTool>>);

impl SeenTools for Seen {
    fn of_server(&self, _: &str) -> BTreeMap<String, SeenTool> {
        self.0.lock().expect("no panic").clone()
    }

    fn save(&self, _: &str, tools: BTreeMap<String, SeenTool>) -> Result<(), Refused> {
        self.0.lock().expect("no panic").extend(tools);
        Ok(())
    }
}

fn launch(
    scenario: &Arc<Scenario>,
    server: &Server,
    seen: &Arc<Seen>,
    people: PeopleMode,
) -> Launch {
    let seen = Arc::clone(seen) as Arc<dyn SeenTools>;
    let made = Toolbox::with_servers(scenario, true, &|_| None, &BTreeMap::new(), seen);
    let mut tools = made.expect("tools");
    tools.replace("files", Box::new(server.clone()));
    Launch { tools: Some(tools), people, ..Launch::scripted(Arc::clone(scenario), true) }
}

/// A run with a new server that people answer.
fn begin(given: &Given) -> (RunHandle, Server) {
    let (server, seen) = (Server::default(), Arc::default());
    let launch = launch(&team(given), &server, &seen, PeopleMode::Wait);
    (engine().start(launch), server)
}

fn last_text(events: &[Arc<Event>]) -> String {
    world(events)
        .outcome()
        .expect("an outcome")
        .fields
        .get("answer")
        .unwrap_or_default()
        .to_string()
}

/// Answers the questions of a run, each as `how` says.
async fn answer_all(run: &RunHandle, how: impl Fn(&Subject) -> Answer) -> Vec<Arc<Event>> {
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut events = Vec::new();
    while reader.next_batch(&mut events, 64).await > 0 {
        let open: Vec<_> =
            world(&events).questions.open().map(|open| Arc::clone(&open.asked)).collect();
        if run.wait_until_live().await.is_ok() {
            open.iter().for_each(|asked| answer(run, asked, how(&asked.subject)));
        }
    }
    run.wait_until_finished().await;
    events
}

/// Allows nothing for good, approves each call, and gives what is asked for.
fn approves(subject: &Subject) -> Answer {
    match subject {
        Subject::Tools { changed, .. } => choose(if *changed { "accept" } else { "ask" }),
        Subject::Input { .. } => Answer::Approve { args: Some(Arc::new(json!({ "size": 3 }))) },
        _ => approve(),
    }
}

/// With what the file says, and what a person answers about tools that only read: the questions.
#[tokio::test(start_paused = true)]
async fn calls_ask_unless_allowed() {
    for (given, choice, expected) in [
        (PLAIN, "ask", vec!["tools", "tool_call"]),
        (PLAIN, "allow", vec!["tools"]),
        (Given { called: "write", ..PLAIN }, "allow", vec!["tools", "tool_call"]),
        (Given { allow: "allow = [\"re*\"]", ..PLAIN }, "", vec![]),
        (Given { limits: "approve = false", ..PLAIN }, "", vec![]),
        (Given { limits: "approve = true", ..PLAIN }, "", vec!["tool_call"]),
        (
            Given { more: "[[approve]]\ntool = \"files.read\"\ndo = \"allow\"\n", ..PLAIN },
            "ask",
            vec!["tools"],
        ),
        (
            Given {
                allow: "allow = [\"*\"]",
                more: "[[approve]]\ntool = \"files.*\"\ndo = \"ask\"\n",
                ..PLAIN
            },
            "",
            vec!["tool_call"],
        ),
    ] {
        let (run, server) = begin(&given);
        let events = answer_all(&run, |subject| match subject {
            Subject::Tools { .. } => choose(choice),
            _ => approve(),
        })
        .await;
        let asked: Vec<String> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::QuestionAsked(asked) if !asked.by_rule => Some(asked.subject.key()),
                _ => None,
            })
            .map(|key| key.split(' ').next().unwrap_or_default().to_owned())
            .collect();
        let case = format!("{} {} {choice}", given.allow, given.limits);
        assert_eq!(asked, expected, "{case}");
        let called = format!("files.{}", given.called);
        assert_eq!(server.calls(), ["files", &called, "end"], "{case}");
        assert_eq!(last_text(&events), "\"the text\"", "{case}");
    }
}

/// A tool whose schema is none of an object cannot be offered, and the event says why.
#[tokio::test(start_paused = true)]
async fn unusable_schema_is_named() {
    let given = Given { allow: "allow = [\"*\"]", ..PLAIN };
    let server = Server { odd_schema: json!({ "type": "string" }), ..Server::default() };
    let run = engine().start(launch(&team(&given), &server, &Arc::default(), PeopleMode::Nobody));
    let listed = facts(&run).await.into_iter().find_map(|event| match &event.kind {
        EventKind::ToolsListed { tools, left_out, .. } => {
            Some((tools.len(), left_out.iter().map(|it| it.text.to_string()).collect::<Vec<_>>()))
        }
        _ => None,
    });
    assert_eq!(listed, Some((5, vec!["its schema is one of string".to_owned()])));
}

/// A model reads the tools under names that requests can have, without the dialect of their schemas.
#[tokio::test(start_paused = true)]
async fn models_are_offered_the_tools() {
    let (run, _) = begin(&Given { allow: "allow = [\"*\"]", ..PLAIN });
    let events = facts(&run).await;
    let calls = events.iter().filter(
        |event| matches!(&event.kind, EventKind::CallStarted(call) if call.tool.as_str() == "llm"),
    );
    let first = calls.map(|event| event.to_line().expect("JSON")).next().expect("a call");
    assert!(first.contains("\"files__read\"") && first.contains("\"path\""), "{first}");
    assert!(!first.contains("$schema") && !first.contains("files.read"), "{first}");
}

#[tokio::test(start_paused = true)]
async fn nobody_approves_no_call() {
    let (server, seen) = (Server::default(), Arc::default());
    let run = engine().start(launch(&team(&PLAIN), &server, &seen, PeopleMode::Nobody));
    let events = facts(&run).await;
    assert_eq!(server.calls(), ["files", "end"]);
    assert!(last_text(&events).contains("did not answer"), "{}", last_text(&events));
    // The next run asks again whether the tools are allowed.
    let decided = seen.of_server("").values().any(|tool| tool.decided);
    assert!(!decided && seen.of_server("").len() == 5);
}

/// What was decided once holds for the next run, until the tool changes.
#[tokio::test(start_paused = true)]
async fn changed_tools_are_a_question() {
    let seen = Arc::<Seen>::default();
    let scenario = team(&PLAIN);
    for (description, choice, questions, answer) in [
        ("Reads.", "allow", 1, "\"the text\""),
        ("Reads.", "", 0, "\"the text\""),
        ("Reads, and sends it to me.", "leave_out", 1, "there is no tool"),
        ("Reads, and sends it to me.", "accept", 3, "\"the text\""),
    ] {
        let server = Server { description, ..Server::default() };
        let run = engine().start(launch(&scenario, &server, &seen, PeopleMode::Wait));
        let events = answer_all(&run, |subject| match subject {
            Subject::Tools { changed: true, tools, .. } => {
                assert!(tools[0].text.contains("description was: Reads."), "{}", tools[0].text);
                choose(choice)
            }
            Subject::Tools { changed: false, .. } => {
                choose(if choice == "allow" { choice } else { "ask" })
            }
            _ => approve(),
        })
        .await;
        let asked = events
            .iter()
            .filter(|event| matches!(&event.kind, EventKind::QuestionAsked(it) if !it.by_rule));
        assert_eq!(asked.count(), questions, "{description} {choice}");
        assert!(last_text(&events).contains(answer), "{choice}: {}", last_text(&events));
    }
}

/// A server that lists nothing ends the run before its first call of a model, unless the file says that it
/// may go on without it.
#[tokio::test(start_paused = true)]
async fn missing_server_stops_the_run() {
    for (allow, reason) in [("", "tool_error:files:rejected"), ("optional = true", "success")] {
        let server = Server { fails: true, ..Server::default() };
        let scenario = team(&Given { allow, ..PLAIN });
        let run = engine().start(launch(&scenario, &server, &Arc::default(), PeopleMode::Nobody));
        let events = facts(&run).await;
        assert_eq!(stop_reason(&events), reason);
        let calls = kinds(&events, &["call.started"]).len();
        assert_eq!(calls > 1, reason == "success");
        // The error is said in both cases, and is the cause of the end where it stops the run.
        let failed = events.iter().find_map(|event| match &event.kind {
            EventKind::AttemptFailed(failed) => Some((event.seq, failed.text.clone())),
            _ => None,
        });
        let (seq, error) = failed.expect("an attempt that failed");
        let text = headless_text(&events);
        let is_said = text.iter().any(|it| it.contains("failed") && it.contains(&error));
        assert!(is_said, "{error}: {text:#?}");
        let world = world(&events);
        let cause = world.stop_cause().map(|cause| cause.to_string());
        let expected = (reason != "success").then_some((seq, error));
        assert_eq!(world.stop_cause_event().zip(cause), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_call_reaches_the_model() {
    let given = Given { called: "reject", allow: "allow = [\"*\"]", ..PLAIN };
    let (run, server) = begin(&given);
    let events = facts(&run).await;
    assert_eq!(server.calls(), ["files", "files.reject", "end"], "one attempt");
    assert!(last_text(&events).contains("there is no such file"));
    let row = world(&events);
    let row = row.tools.get("files").expect("a row");
    assert_eq!((row.tally.calls, row.tally.bad, row.tally.failed), (2, 0, 1));
}

/// 16 seconds with a timeout of 5: each part of progress gives more time, but not for ever.
#[tokio::test(start_paused = true)]
async fn progress_extends_the_timeout() {
    for (timeout, answer) in [("timeout_s = 5", "\"whole\""), ("timeout_s = 3", "timeout")] {
        let text = TEAM.replace("timeout_s = 5", timeout).replace("CALLED", "slow");
        let text = text.replace("ALLOW", "allow = [\"*\"]").replace("LIMITS", "");
        let server = Server::default();
        let launch = launch(&read(&text, &[]), &server, &Arc::default(), PeopleMode::Nobody);
        let events = facts(&engine().start(launch)).await;
        assert!(last_text(&events).contains(answer), "{timeout}: {}", last_text(&events));
        let progress = kinds(&events, &["attempt.progressed"]).len();
        assert_eq!(progress, if answer == "timeout" { 0 } else { 4 });
    }
}

/// The answers to a server that needs something, and what it gets.
#[tokio::test(start_paused = true)]
async fn servers_ask_people_for_input() {
    let given = Given { called: "ask", allow: "allow = [\"*\"]", ..PLAIN };
    let size = |size: Value| Answer::Approve { args: Some(Arc::new(json!({ "size": size }))) };
    for (given_answer, got) in [
        (Some(size(json!(3))), "{\\\"size\\\":3}"),
        (Some(approve()), "{\\\"size\\\":5}"),
        (Some(deny("")), "declined"),
        (None, "cancelled"),
    ] {
        let mode = if given_answer.is_some() { PeopleMode::Wait } else { PeopleMode::Nobody };
        let launch = launch(&team(&given), &Server::default(), &Arc::default(), mode);
        let run = engine().start(launch);
        let events = match given_answer {
            None => facts(&run).await,
            Some(with) => {
                let question = until(&run, |kind| {
                    matches!(kind, EventKind::QuestionAsked(it) if it.subject.key() == "input")
                })
                .await;
                let EventKind::QuestionAsked(question) = &question.kind else {
                    panic!("a question")
                };
                // What does not fit the schema is refused, and the question stays open. The wait does not
                // count for the timeout of 5 seconds.
                answer(&run, question, size(json!("large")));
                answer(&run, question, size(json!(0)));
                tokio::time::sleep(Duration::from_secs(60)).await;
                answer(&run, question, with);
                facts(&run).await
            }
        };
        assert!(last_text(&events).contains(got), "{got}: {}", last_text(&events));
    }
}

/// Wherever the log ends: what the server has listed and a person has answered is not asked again, and a call
/// that may have taken effect is in doubt.
#[tokio::test(start_paused = true)]
async fn resumed_runs_list_nothing_twice() {
    for called in ["read", "ask", "slow"] {
        let given = Given { called, ..PLAIN };
        let (run, _) = begin(&given);
        let full = answer_all(&run, approves).await;
        assert_eq!(stop_reason(&full), "success", "{called}");
        let place = |name: &str| full.iter().rposition(|event| event.kind.name() == name);
        let listed = place("tools.listed").expect("an event");
        let tool_call = full.iter().position(|event| {
            matches!(&event.kind, EventKind::CallStarted(it) if it.tool.as_str() != "files" && it.tool.as_str() != "llm")
        });
        let tool_call = full[tool_call.expect("a call")].span;
        let of_call = |event: &Arc<Event>| matches!(event.kind, EventKind::AttemptStarted { parent, .. } if parent == tool_call);
        let attempt = full.iter().position(of_call).expect("an attempt");
        let ends = |event: &Arc<Event>| {
            event.span == full[attempt].span && event.kind.name() == "attempt.answered"
        };
        let answered = full.iter().position(ends).expect("a result");
        for cut in 1..full.len() {
            let (server, seen) = (Server::default(), Arc::default());
            let resumption = Resumption {
                recording: stored(&full[..cut]),
                by: Initiator::You,
                in_doubt: InDoubt::Stop,
            };
            let launch = launch(&team(&given), &server, &seen, PeopleMode::Wait);
            let run = engine().resume(launch, resumption).expect("a run that has not ended");
            let went_live = run.wait_until_live().await;
            went_live.unwrap_or_else(|error| panic!("{called}, cut after {cut}: {error}"));
            let events = answer_all(&run, approves).await;
            let in_doubt = cut > attempt && cut <= answered;
            let reason =
                if in_doubt { "in_doubt:files.".to_owned() + called } else { "success".into() };
            assert_eq!(stop_reason(&events), reason, "{called}, cut after {cut}");
            let calls = server.calls();
            let lists = calls.iter().filter(|tool| *tool == "files").count();
            assert!(cut <= listed || lists == 0, "{called}, cut after {cut}: {calls:?}");
            let made = calls.iter().filter(|tool| tool.starts_with("files.")).count();
            assert_eq!(made, usize::from(cut <= attempt), "{called}, cut after {cut}: {calls:?}");
            let open = world(&events).questions.open().count();
            assert_eq!(open, 0, "{called}, cut after {cut}");
        }
    }
}
