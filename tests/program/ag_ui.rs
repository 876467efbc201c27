//! Agents of real frameworks behind AG-UI, and `roundtable watch URL`. The real binary.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::acp_agents::router;
use crate::support::ag_ui::AgentServer;
use crate::support::binary::{Ended, Home, Running, end};

const LANGGRAPH: &str = "agui_langgraph.py";
const PYDANTIC: &str = "agui_pydantic.py";

/// The paths of the agent that says with LangGraph's event, and with the protocol's, that it waits.
const PATHS: [&str; 2] = ["/agent", "/outcome"];

/// The answers of a session, in the order of its messages.
fn answers(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = ended.lines().pop().expect("an outcome");
    let outcomes = outcome["session"].as_array().expect("a session").iter();
    outcomes.map(|it| it["answer"].as_str().expect("an answer").to_owned()).collect()
}

/// Plays a live run, answers its open questions on standard input, and returns its events.
fn answered(home: &Home, args: &[&str], reply: impl Fn(&Value) -> Option<Value>) -> Vec<Value> {
    let args = [args, &["--people", "ask", "--format", "jsonl"]].concat();
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = running.stdin();
    let mut events = Vec::new();
    for line in running.lines() {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        if event["kind"] == "question.asked"
            && let Some(mut line) = reply(&event)
        {
            line["id"] = event["id"].clone();
            writeln!(stdin, "{line}").expect("written");
        }
        events.push(event);
    }
    let (status, _, err) = running.end();
    assert_eq!(status.code(), Some(0), "{err}");
    events
}

/// Approves everything but the refund of the second charge, if there are two.
fn approve_first(asked: &Value) -> Option<Value> {
    Some(json!({ "approve": asked["text"] != "question: Refund ch_2?\ncharge: ch_2" }))
}

fn approve(_: &Value) -> Option<Value> {
    Some(json!({ "approve": true }))
}

fn question_of(events: &[Value]) -> &Value {
    events.iter().find(|it| it["kind"] == "question.asked").expect("a question")
}

fn answer_of(events: &[Value]) -> &str {
    let outcome = events.iter().find(|it| it["kind"] == "outcome").expect("an outcome");
    outcome["answer"].as_str().expect("an answer")
}

#[test]
fn messages_to_address_are_conversation() {
    let (Some(graph), Some(pydantic)) =
        (AgentServer::start(LANGGRAPH), AgentServer::start(PYDANTIC))
    else {
        return;
    };
    let home = Home::new();
    let charged = "I was charged twice.";
    for path in PATHS {
        let url = graph.url(path);
        let ended = home.run(&["watch", &url, "-m", charged, "-m", "history", "--format", "jsonl"]);
        let [first, second] = &answers(&ended)[..] else { panic!("{ended:?}") };
        assert_eq!(ended.err.matches("`--people ask` asks you").count(), 1, "{}", ended.err);
        assert!(first.starts_with("Let me look.\n\nDone: kept ch_2"), "{first}");
        // The server has the thread: nothing is in it twice.
        let said: Vec<&str> = second.split(" | ").collect();
        let kinds: Vec<&str> = said.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(kinds, ["human", "ai", "tool", "ai", "tool", "ai", "human"], "{second}");
    }
    let url = pydantic.url("/agent");
    let ended = home.run(&["watch", &url, "-m", charged, "-m", "history", "--format", "jsonl"]);
    let [first, second] = &answers(&ended)[..] else { panic!("{ended:?}") };
    assert_eq!(first, "Let me look.\n\nDone: Cancelled by user.");
    assert_eq!(second, "2 questions, 7 messages");
    // The runs are kept, with what the agent did.
    let steps: Vec<Value> = home.run(&["export", "last~1"]).lines();
    let steps = steps.iter().filter(|it| it["kind"] == "agent.step");
    let steps: Vec<String> = steps.map(|it| format!("{} {}", it["title"], it["state"])).collect();
    assert!(steps.contains(&"\"find_charges\" \"done\"".to_owned()), "{steps:?}");
}

#[test]
fn other_patterns_ask_servers() {
    let Some(server) = AgentServer::start(PYDANTIC) else { return };
    let url = server.url("/agent");
    let agent = format!(
        "[agents.desk]\ndescription = \"D\"\n[agents.desk.ag_ui]\nurl = {url:?}\nallow_private = true\n"
    );
    let helper = agent.replace("agents.desk", "agents.helper");
    let root = agent.replace("description", "members = [\"helper\"]\ndescription");
    let start = "title = \"T\"\npattern = \"team\"\ngoal = \"history\"\n[team]\nroot = \"desk\"\n";
    let team = format!("{start}{root}{helper}");
    let table = format!(
        "title = \"T\"\npattern = \"collaboration\"\ngoal = \"history\"\n[collaboration]\n\
         sequence = [\"a\"]\nfinalize_prompt = \"F\"\nfinalize_agent = \"desk\"\n[roles.a]\nprompt = \"P\"\n\
         agent = \"desk\"\n{agent}"
    );
    let home = Home::new();
    for (text, reason) in [
        (team, "success"),
        (router("desk", &agent), "success"),
        // The agent knows nothing of contracts.
        (table, "invalid_contribution:missing_keys"),
    ] {
        home.write("mine.toml", &text);
        let ended = home.run(&["run", "mine.toml", "--live", "--trust", "--format", "json"]);
        let outcome = ended.json();
        assert_eq!(outcome["stop_reason"], reason, "{outcome:#}");
        let mut tools = outcome["tools"].as_array().expect("tools").iter();
        let row = tools.find(|row| row["tool"] == "desk.ag_ui").expect("its guard");
        assert!(row["calls"].as_u64() > Some(0) && row["failed"] == 0, "{row}");
    }
}

#[test]
fn people_answer_interrupts() {
    let (Some(graph), Some(pydantic)) =
        (AgentServer::start(LANGGRAPH), AgentServer::start(PYDANTIC))
    else {
        return;
    };
    let home = Home::new();
    for path in PATHS {
        let url = graph.url(path);
        let events = answered(&home, &["watch", &url, "-m", "x"], approve);
        assert_eq!(answer_of(&events), "Let me look.\n\nDone: refunded ch_2.");
        assert_eq!(question_of(&events)["text"], "question: Refund ch_2?\ncharge: ch_2");
        // Each answer reaches its own interrupt.
        let events = answered(&home, &["watch", &url, "-m", "both"], approve_first);
        let kept = "Let me look.\n\nDone: refunded ch_1, kept ch_2: {'approved': False}.";
        assert_eq!(answer_of(&events), kept);
    }
    // LangChain's middleware, in both of its modes.
    for path in ["/reviewed", "/per_call"] {
        let first = |asked: &Value| {
            let text = asked["text"].as_str().expect("a text");
            Some(json!({ "approve": text.starts_with("refund({\"charge\":\"ch_1\"})") }))
        };
        let events = answered(&home, &["watch", &graph.url(path), "-m", "both"], first);
        let answer = answer_of(&events);
        // A refusal comes before the results.
        for said in ["refunded ch_1", "User rejected the tool call for `refund`"] {
            assert!(answer.contains(said), "{path}: {answer}");
        }
        assert!(!answer.contains("refunded ch_2"), "{path}: {answer}");
    }
    let url = pydantic.url("/agent");
    let events = answered(&home, &["watch", &url, "-m", "x"], approve);
    assert_eq!(answer_of(&events), "Let me look.\n\nDone: refunded ch_2");
    assert_eq!(question_of(&events)["text"], "Approve refund({\"charge\":\"ch_2\"})?");
    assert_eq!(
        question_of(&events)["parameters"]["properties"],
        json!({ "reason": { "type": "string" } })
    );
}

/// The example of the documents, live, with a tool of the scenario.
#[test]
fn documented_example_talks_to_agent() {
    let Some(server) = AgentServer::start(PYDANTIC) else { return };
    let home = Home::new();
    let page = include_str!("../../docs/ag-ui.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    home.write("support.toml", example);
    let tested = home.run(&["test", "support.toml", "--trust"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let live = example.replace("http://127.0.0.1:8000/agent", &server.url("/agent"));
    home.write("live.toml", &live);
    let refused = home.run(&["run", "live.toml", "--live", "--format", "json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("127.0.0.1"), "{refused:?}");
    let args = ["run", "live.toml", "--live", "--trust"];
    let events =
        answered(&home, &[&args[..], &["--message", "What is your policy?"]].concat(), approve);
    assert!(answer_of(&events).contains("14 days"), "{events:#?}");
    let called = events.iter().any(|it| it["kind"] == "call.started" && it["tool"] == "get_policy");
    assert!(called, "{events:#?}");
}

#[test]
fn killed_turn_is_in_doubt() {
    let Some(server) = AgentServer::start(LANGGRAPH) else { return };
    let home = Home::new();
    let url = server.url("/agent");
    let args = ["watch", &url, "-m", "x", "--people", "wait", "--format", "jsonl"];
    let mut running = Running::start(&mut home.command(&args));
    running.until("question.asked");
    running.kill();
    let args = ["resume", "last"];
    // The question of the attempt that was killed is withdrawn.
    let events = answered(&home, &args, |asked| match &asked["about"] {
        about if about == "in_doubt" => Some(json!({ "choice": "again" })),
        _ if asked["id"] == "q1" => None,
        _ => Some(json!({ "approve": true })),
    });
    assert!(events.iter().any(|it| it["about"] == "in_doubt"), "{events:#?}");
    assert_eq!(answer_of(&events), "Let me look.\n\nDone: refunded ch_2.");
}

#[test]
fn another_process_answers_agent() {
    let Some(server) = AgentServer::start(LANGGRAPH) else { return };
    let home = Home::new();
    let url = server.url("/outcome");
    let args = ["watch", &url, "-m", "x", "--people", "wait", "--format", "jsonl"];
    let mut running = Running::start(&mut home.command(&args));
    let asked = running.until("question.asked");
    let run = asked["run"].as_str().expect("a run");
    let ended = home.run(&["answer", run, "q1", "--approve"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let closed = running.until("outcome");
    assert_eq!(closed["answer"], "Let me look.\n\nDone: refunded ch_2.");
}

/// A server that says hello to each of so many requests, and what it was asked.
fn greeter(requests: usize) -> (String, thread::JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/agent", listener.local_addr().expect("bound"));
    let serve = move || {
        let mut asked = Vec::new();
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line.trim().is_empty() {
                    break;
                }
                head += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            asked.push((head, serde_json::from_slice(&body).expect("JSON")));
            let events = [
                json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hello." }),
                json!({ "type": "RUN_FINISHED" }),
            ];
            let events = events.map(|event| format!("data: {event}\n\n")).concat();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
            stream.write_all(format!("{head}\r\n\r\n{events}").as_bytes()).expect("sent");
        }
        asked
    };
    (url, thread::spawn(serve))
}

#[test]
fn typed_text_and_headers_arrive() {
    let (url, server) = greeter(2);
    let home = Home::new();
    let odd = "Say '''{{when}}''' or \"\"\"\\{{x}}\"\"\" = [\n\\u0041";
    let args = [
        "watch",
        &url,
        "--header",
        "X-Shop: 7: blue",
        "--header",
        "Authorization=$DESK_TOKEN",
        "-m",
        odd,
        "-m",
        "Go on.",
        "--name",
        "Desk \"1\"",
        "--format",
        "jsonl",
    ];
    let ended = end(home.command(&args).env("DESK_TOKEN", "Bearer hunter2hunter2"));
    assert_eq!(answers(&ended), ["Hello.", "Hello."]);
    let asked = server.join().expect("served");
    let (head, body) = &asked[0];
    let head = head.to_ascii_lowercase();
    assert!(head.contains("x-shop: 7: blue\r\n"), "{head}");
    assert!(head.contains("authorization: bearer hunter2hunter2\r\n"), "{head}");
    assert!(head.contains("accept: text/event-stream\r\n"), "{head}");
    let messages = body["messages"].as_array().expect("a list");
    assert_eq!(messages.last().expect("one")["content"], odd);
    assert_eq!(asked[1].1["threadId"], body["threadId"]);
    let kept = home.run(&["export", "last"]);
    assert!(!kept.out.contains("hunter2"), "{}", kept.out);
}

#[test]
fn wrong_command_lines_say_why() {
    let home = Home::new();
    let url = "http://127.0.0.1:9/agent";
    for (args, says) in [
        (&["watch", url][..], "an agent at an address needs a message"),
        (&["watch", "-m", "x", "true"], "--message, --header and --people are for an agent"),
        (&["watch", url, "-m", " "], "--message: the text is empty"),
        (&["watch", url, "-m", "x", "--no-tap"], "--no-tap"),
        (&["watch", "http://", "-m", "x"], "is not an address"),
        (&["watch", url, "-m", "x", "--header", "Token=abcdef"], "--header Token: it has a value"),
        (&["watch", url, "-m", "x", "--header", "=x"], "--header"),
        (
            &["watch", url, "-m", "x", "--header", "Token=$NONE"],
            "comes from $NONE, which is not set",
        ),
    ] {
        let ended = home.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?}: {ended:?}");
        assert!(!ended.err.contains("abcdef"), "{ended:?}");
    }
    let ended = home.run(&["watch", url, "-m", "x", "--format", "json"]);
    assert_eq!(ended.json()["stop_reason"], "tool_error:agent.ag_ui:connect", "{ended:?}");
}
