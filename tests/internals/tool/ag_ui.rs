//! Agents that speak AG-UI, over real sockets: what a server may do wrong, and what is said of it.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::log::event::{AgentStep, AttemptFailed, ChatMessage, FailureClass, MessageRole, Reply};
use crate::model::host::{AttemptHost, AttemptProgress, InputReply, InputRequest};
use crate::model::{ChatModel, ChatRequest, Conversation, Listener};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::agent::{AgUiSpec, AgentLink, OutsideAgent};
use crate::support::server::{Connection, STREAM_HEAD};
use crate::support::wire::{ClosedPort, Server, answer, ask, both};
use crate::tool::NotReady;
use crate::tool::agents::ag_ui::AgUiModel;

/// A secret of the tests; it must turn up in no text, step or question.
pub(super) const TOKEN: &str = "hunter2hunter2";

fn environment(name: &str) -> Option<String> {
    (name == "DESK_TOKEN").then(|| format!("Bearer {TOKEN}"))
}

fn made(url: &str, allow_private: bool, max_bytes: u64) -> Result<AgUiModel, Vec<NotReady>> {
    let token = Setting::Env("DESK_TOKEN".to_owned());
    let headers = [("Authorization".to_owned(), token)].into();
    let spec = AgUiSpec { url: url.to_owned(), headers, allow_private };
    let link = AgentLink::AgUi(spec.clone());
    let agent = OutsideAgent { name: "support".into(), link, max_bytes, reports_cost: false };
    AgUiModel::new(&Arc::new(agent), &spec, &environment)
}

/// The agent at this server.
pub(super) fn agent(server: &Server) -> AgUiModel {
    made(&format!("http://{}/agent", server.host()), true, 10_000).expect("all set")
}

/// A run that keeps what it is told and asked. It answers questions with these replies, in their order.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) replies: Mutex<Vec<InputReply>>,
    pub(super) asked: Mutex<Vec<InputRequest>>,
    pub(super) steps: Mutex<Vec<AgentStep>>,
    pub(super) progress: Mutex<Vec<String>>,
    pub(super) heard: Mutex<String>,
}

impl Desk {
    pub(super) fn replying(replies: impl IntoIterator<Item = InputReply>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() }
    }

    /// Its questions.
    pub(super) fn questions(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").iter().map(|it| it.text.clone()).collect()
    }

    /// The steps in words.
    pub(super) fn steps(&self) -> Vec<String> {
        let steps = self.steps.lock().expect("no panic");
        let words =
            |step: &AgentStep| format!("{} {} {}", step.title, step.state.word(), step.text);
        steps.iter().map(|step| words(step).trim().to_owned()).collect()
    }
}

impl AttemptHost for Desk {
    fn progress(&self, progress: AttemptProgress) {
        self.progress.lock().expect("no panic").push(progress.text);
    }

    fn ask(&self, request: InputRequest) -> BoxFuture<'_, InputReply> {
        self.asked.lock().expect("no panic").push(request);
        let mut replies = self.replies.lock().expect("no panic");
        let reply = if replies.is_empty() { InputReply::Cancel } else { replies.remove(0) };
        Box::pin(std::future::ready(reply))
    }

    fn step(&self, step: AgentStep) {
        self.steps.lock().expect("no panic").push(step);
    }
}

impl Listener for Desk {
    fn piece(&self, text: &str) {
        self.heard.lock().expect("no panic").push_str(text);
    }

    fn host(&self) -> &dyn AttemptHost {
        self
    }
}

/// The request of a user who says this.
pub(super) fn saying(text: &str) -> ChatRequest {
    with_messages(&[ChatMessage::new(MessageRole::User, text)])
}

pub(super) fn with_messages(messages: &[ChatMessage]) -> ChatRequest {
    ChatRequest { messages: Conversation::from(Arc::from(messages)), ..ask(false) }
}

/// An event of a stream.
pub(super) fn event(fields: Value) -> String {
    format!("data: {fields}\n\n")
}

/// A stream of these events.
pub(super) fn stream(events: &[Value]) -> String {
    let events = events.iter().cloned().map(event);
    format!("{STREAM_HEAD}{}", events.collect::<String>())
}

pub(super) fn finished() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" })
}

pub(super) fn text(id: &str, delta: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta })
}

/// Plays a turn in which the server answers each request with one of these texts. Returns what it was
/// asked.
pub(super) async fn play(
    model: &AgUiModel,
    server: &Server,
    request: &ChatRequest,
    desk: &Desk,
    answers: &[String],
) -> (Result<Reply, Box<AttemptFailed>>, Vec<Value>) {
    both(model.chat(request, desk), async {
        let mut asked = Vec::new();
        for answer in answers {
            let mut connection = server.accept().await;
            asked.push(connection.request().await.body);
            connection.takes(answer.as_bytes()).await;
        }
        asked
    })
    .await
}

/// The reply to one request.
pub(super) async fn reply_to(events: &[Value]) -> (Reply, Desk) {
    let (server, desk) = (Server::start().await, Desk::default());
    let model = agent(&server);
    let (reply, _) = play(&model, &server, &saying("x"), &desk, &[stream(events)]).await;
    (reply.unwrap_or_else(|failed| panic!("{failed:?}")), desk)
}

/// The class and the text of a failure, which keeps to what every text keeps to.
fn checked(failed: Result<Reply, Box<AttemptFailed>>) -> (FailureClass, String) {
    let failed = failed.expect_err("a failure");
    assert!(!failed.text.contains("hunter2"), "{}", failed.text);
    assert!(failed.text.chars().count() <= 300 && !failed.text.chars().any(char::is_control));
    (failed.class, failed.text)
}

/// The failure of a turn that is answered like this.
async fn failure_of(answer: impl Into<String>) -> (FailureClass, String) {
    let (server, desk) = (Server::start().await, Desk::default());
    let (reply, _) = play(&agent(&server), &server, &saying("x"), &desk, &[answer.into()]).await;
    checked(reply)
}

#[tokio::test]
async fn failures_say_what_to_do() {
    let http = |status: &str, headers: &[&str], body: &str| {
        String::from_utf8(answer(status, headers, body)).expect("text")
    };
    let events = |events: &[Value]| stream(events);
    use FailureClass::{Auth, BadResponse, RateLimited, Reset, Status, TooLarge, Tool};
    let echoed = format!("no: {TOKEN}");
    let error =
        json!({ "type": "RUN_ERROR", "message": format!("lost {TOKEN}\u{1b}[2J"), "code": "E7" });
    let silent = json!({ "type": "RUN_ERROR", "message": null, "code": 7 });
    let cancelled = json!({ "type": "RUN_FINISHED", "outcome": { "type": "cancelled" } });
    let huge = text("m", &"x".repeat(20_000));
    let pieces: Vec<Value> = (0..20).map(|_| text("m", &"y".repeat(900))).collect();
    let html = "<!doctype html><h1>Hello</h1>";
    let html_type = &["content-type: text/html"][..];
    for (given, class, says) in [
        (
            http("401 Unauthorized", &[], &echoed),
            Auth,
            "HTTP 401: no: ***. Check Authorization in [agents.support.ag_ui]",
        ),
        (events(&[silent]), Tool, "failed (7): no reason. Look at the output"),
        (http("403 Forbidden", &[], ""), Auth, "HTTP 403. Check Authorization"),
        (http("429 Too Many", &["retry-after: 7"], ""), RateLimited, "HTTP 429. Wait"),
        (http("500 Oops", &[], "trace"), Status, "HTTP 500: trace. Look at the output"),
        (
            http("404 Not Found", html_type, html),
            Status,
            "HTTP 404: an HTML page. Check the agent's url",
        ),
        (
            http("307 Go", &["location: /agent/"], ""),
            Status,
            "HTTP 307: /agent/. Redirects are not followed",
        ),
        (
            http("200 OK", html_type, html),
            BadResponse,
            "answers with text/html, not with text/event-stream: an HTML page",
        ),
        (
            http("200 OK", &["content-type: application/json"], "{}"),
            BadResponse,
            "application/json, not with text/event-stream: {}",
        ),
        (events(&[error]), Tool, "failed (E7): lost ***"),
        (events(&[cancelled]), Tool, "cancelled its run"),
        (events(&[]), Reset, "sent no event"),
        (
            events(&[text("m", "half")]),
            Reset,
            "cut its stream after 1 events, without RUN_FINISHED",
        ),
        (format!("{STREAM_HEAD}data: {{\"type\":"), Reset, "sent no event"),
        (format!("{STREAM_HEAD}data: nonsense\n\n"), BadResponse, "no. 1) that is not AG-UI"),
        (
            events(&[json!({ "type": "TEXT_MESSAGE_CONTENT", "delta": 7 })]),
            BadResponse,
            "not AG-UI (invalid type",
        ),
        (events(&[huge]), TooLarge, "an event of the stream is larger than its cap"),
        (
            events(&pieces),
            TooLarge,
            "more than 10000 bytes of text in one turn. Ask for less, or raise max_bytes",
        ),
    ] {
        let (found, said) = failure_of(given).await;
        assert_eq!(found, class, "{said}");
        assert!(said.contains(says), "{said:?} does not say {says:?}");
    }
}

#[tokio::test]
async fn failure_keeps_text_and_wait() {
    let (server, desk) = (Server::start().await, Desk::default());
    let model = agent(&server);
    let cut = stream(&[text("m", "half")]);
    let wait = String::from_utf8(answer("429 Wait", &["retry-after: 7"], "")).expect("text");
    let (reply, _) = play(&model, &server, &saying("x"), &desk, &[cut]).await;
    assert_eq!(reply.expect_err("cut").partial.as_deref(), Some("half"));
    let (reply, _) = play(&model, &server, &saying("x"), &desk, &[wait]).await;
    assert_eq!(reply.expect_err("refused").retry_after_ms, Some(7_000));
}

#[tokio::test]
async fn unreachable_agents_are_told_apart() {
    let port = ClosedPort::new();
    let url = format!("http://{}/agent", port.host());
    let ask = async |allow_private| {
        let model = made(&url, allow_private, 1_000).expect("all set");
        checked(model.chat(&saying("x"), &Desk::default()).await)
    };
    let (class, said) = ask(true).await;
    assert_eq!(class, FailureClass::Connect);
    assert!(said.contains("Is the server running?"), "{said}");
    let (class, said) = ask(false).await;
    assert_eq!(class, FailureClass::Denied);
    assert!(said.contains("set allow_private = true"), "{said}");
    for (url, why) in [
        ("ftp://a.example", "neither http:// nor https://"),
        ("http://me:pass@a.example", "belong into a header"),
    ] {
        let wrong = made(url, true, 1_000).err().expect("refused");
        assert!(wrong[0].to_string().contains(why), "{wrong:?}");
    }
}

/// A server that never stops is left at the limit.
#[tokio::test]
async fn endless_event_ends_at_cap() {
    let server = Server::start().await;
    let model = agent(&server);
    let (request, desk) = (saying("x"), Desk::default());
    let (reply, taken) = both(model.chat(&request, &desk), async {
        let mut connection: Connection = server.accept().await;
        connection.request().await;
        connection.send(STREAM_HEAD).await;
        connection.send("data: ").await;
        connection.send_without_end(&[b'x'; 1 << 16]).await
    })
    .await;
    assert_eq!(checked(reply).0, FailureClass::TooLarge);
    assert!(taken < 100 << 20, "{taken} bytes");
}

#[tokio::test]
async fn cancelled_turn_closes_its_connection() {
    let server = Server::start().await;
    let model = agent(&server);
    let (request, desk) = (saying("x"), Desk::default());
    both(async {}, async {
        let turn = model.chat(&request, &desk);
        let silent = async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(STREAM_HEAD).await;
            connection
        };
        let connection = tokio::select! {
            biased;
            _ = turn => panic!("nothing was said"),
            connection = silent => connection,
        };
        // The turn is dropped, as at its timeout.
        connection.closed().await;
    })
    .await;
}

#[tokio::test]
async fn disorder_is_tolerated() {
    let start = json!({ "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant" });
    let end = json!({ "type": "TEXT_MESSAGE_END", "messageId": "a" });
    let (reply, desk) = reply_to(&[
        end.clone(),
        start.clone(),
        end.clone(),
        text("b", "One"),
        text("b", ", two."),
        end,
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "?", "content": "lost" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "!" }),
        text("c", "Three\u{7}."),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "u", "delta": "" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "z", "role": "user" }),
        text("z", "not the agent's"),
        finished(),
        text("d", "late"),
        finished(),
    ])
    .await;
    assert_eq!(&*reply.text, "One, two.\n\nThree\u{7}.");
    assert_eq!(*desk.heard.lock().expect("no panic"), "One, two.\n\nThree\u{7}.");
}

#[tokio::test]
async fn unknown_events_are_counted() {
    let raw = json!({ "type": "RAW", "event": { "type": "RUN_ERROR" }, "rawEvent": [1, 2] });
    let (reply, _) = reply_to(&[
        json!({ "type": "HOLOGRAM", "x": 1 }),
        json!({ "type": "HOLOGRAM" }),
        json!({ "type": "PING" }),
        raw,
        json!({ "type": "CUSTOM", "name": "Predict", "value": {} }),
        json!({ "type": "THINKING_START" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm" }),
        json!({ "type": "STATE_DELTA", "delta": [] }),
        text("m", "Hi."),
        finished(),
    ])
    .await;
    assert_eq!((&*reply.text, reply.ignored.as_deref()), ("Hi.", Some("HOLOGRAM (2), PING (1)")));
}

#[tokio::test]
async fn secret_is_redacted_everywhere() {
    let call = |kind: &str, more: Value| {
        let mut event = json!({ "type": kind, "toolCallId": "c" });
        event.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        event
    };
    let (reply, desk) = reply_to(&[
        json!({ "type": "STEP_STARTED", "stepName": TOKEN }),
        text("m", "It is hunter2"),
        text("m", "hunter2!"),
        call("TOOL_CALL_START", json!({ "toolCallName": "look" })),
        call("TOOL_CALL_ARGS", json!({ "delta": format!("{{\"key\": \"{TOKEN}\"}}") })),
        call("TOOL_CALL_END", json!({})),
        call("TOOL_CALL_RESULT", json!({ "messageId": "r", "content": TOKEN })),
        finished(),
    ])
    .await;
    let all = format!("{reply:?} {:?} {:?} {:?}", desk.steps(), desk.heard, desk.progress);
    assert!(!all.contains(TOKEN), "{all}");
    assert_eq!(&*reply.text, "It is ***!");
}
