//! Coding agents that misbehave in every way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;

use crate::log::event::{
    AgentStep, AttemptFailed, ChatMessage, FailureClass, MessageRole, Purpose, Reply, StepState,
};
use crate::model::host::{
    AttemptHost, AttemptProgress, InputReply, InputRequest, PermissionRequest,
};
use crate::model::{ChatModel, ChatRequest, Conversation, Listener, ReplyForm};
use crate::scenario::spec::tool::{Setting, ToolOffer};
use crate::scenario::tools::agent::{AcpSpec, ActionKind, AgentLink, FileAccess, OutsideAgent};
use crate::scenario::tools::command::CommandSpec;
use crate::tool::agents::acp::{AcpModel, AcpProgram};

use super::{TOKEN, environment};

/// A run that notes what it hears, and answers all permissions with the same choice.
#[derive(Default)]
struct TestRun {
    answer: Option<usize>,
    text: Mutex<String>,
    steps: Mutex<Vec<AgentStep>>,
    asked: Mutex<Vec<PermissionRequest>>,
}

impl Listener for TestRun {
    fn piece(&self, text: &str) {
        self.text.lock().expect("free").push_str(text);
    }

    fn host(&self) -> &dyn AttemptHost {
        self
    }
}

impl AttemptHost for TestRun {
    fn progress(&self, _: AttemptProgress) {}

    fn ask(&self, _: InputRequest) -> BoxFuture<'_, InputReply> {
        Box::pin(std::future::ready(InputReply::Cancel))
    }

    fn permit(&self, request: PermissionRequest) -> BoxFuture<'_, Option<usize>> {
        self.asked.lock().expect("free").push(request);
        Box::pin(std::future::ready(self.answer))
    }

    fn step(&self, step: AgentStep) {
        self.steps.lock().expect("free").push(step);
    }
}

fn fake_with(mode: &str, env: &[(&str, &str)], change: impl FnOnce(&mut AcpSpec)) -> AcpModel {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/acp_fake.py");
    let mut variables: BTreeMap<String, Setting> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Setting::Text((*value).to_owned())))
        .collect();
    variables.insert("TOKEN".to_owned(), Setting::Env("SHOP_TOKEN".to_owned()));
    let mut spec = AcpSpec {
        command: CommandSpec {
            program: "python3".to_owned(),
            args: ["-S", script, mode].map(str::to_owned).into(),
            env: variables,
            max_bytes: 1 << 20,
        },
        cwd: None,
        servers: Vec::new(),
        mode: None,
        allow: Vec::new(),
        files: FileAccess::None,
        terminal: false,
        start_timeout: Duration::from_secs(30),
    };
    change(&mut spec);
    let agent = Arc::new(OutsideAgent {
        name: "coder".into(),
        link: AgentLink::Acp(spec.clone()),
        max_bytes: 1 << 20,
        reports_cost: false,
    });
    AcpProgram::new(&agent, &spec, &environment).expect("all set").caller()
}

fn fake(mode: &str) -> AcpModel {
    fake_with(mode, &[], |_| {})
}

fn request_of(messages: Vec<ChatMessage>) -> ChatRequest {
    let messages: Arc<[ChatMessage]> = messages.into();
    ChatRequest {
        nth: 1,
        messages: Conversation::from(messages),
        tools: Arc::<[ToolOffer]>::default(),
        form: ReplyForm::Text,
        purpose: Purpose::Finalize,
        message: 1,
        attempt: 1,
        again: 0,
        draw: 0,
        shown: Arc::default(),
    }
}

fn request(text: &str) -> ChatRequest {
    request_of(vec![ChatMessage::new(MessageRole::User, text)])
}

/// A test that hangs fails instead.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

async fn ask(model: &AcpModel, run: &TestRun) -> Result<Reply, Box<AttemptFailed>> {
    in_time(model.chat(&request("Go."), run)).await
}

#[tokio::test]
async fn misbehaving_agents_fail_one_attempt() {
    for (mode, class, part) in [
        ("dead", FailureClass::Tool, "the agent coder ended with exit code 3: no login found"),
        ("dies", FailureClass::Tool, "the agent coder ended with exit code 9: out of memory"),
        ("newer", FailureClass::BadResponse, "speaks another version of the protocol: 2, not 1"),
        (
            "login",
            FailureClass::Auth,
            "needs a login: Authentication required; it offers: Log in with Acme (Run `acme login`)",
        ),
        ("chatter", FailureClass::BadResponse, "writes no messages and was ended; 1001 lines"),
        ("cut", FailureClass::BadResponse, "sent a message that cannot be read (EOF while parsing"),
        ("nameless", FailureClass::BadResponse, "opened a session without an id"),
        ("huge", FailureClass::TooLarge, "sent a message larger than 1 MiB"),
        ("flood", FailureClass::TooLarge, "said more than 1048576 bytes in one turn"),
        ("word", FailureClass::Tool, "ended its turn with an unknown word: \"tired\""),
        ("quits", FailureClass::Tool, "cancelled its turn by itself"),
    ] {
        let model = fake(mode);
        let failed = ask(&model, &TestRun::default()).await.expect_err(mode);
        assert_eq!(failed.class, class, "{mode}: {}", failed.text);
        assert!(failed.text.contains(part), "{mode}: {}", failed.text);
        assert!(!failed.text.contains(TOKEN), "{mode}: {}", failed.text);
    }
}

#[tokio::test]
async fn strange_agents_are_understood() {
    for (mode, expected) in [
        ("twice", "Once."),
        ("texts", "As a text."),
        ("garbage", "After garbage."),
        ("other", "For you."),
        ("silent", ""),
        ("surrogates", "Half \u{fffd}\u{fffd} done."),
        ("control", "\u{1b}[2Jgone\u{202e}"),
    ] {
        let (model, run) = (fake(mode), TestRun::default());
        let reply = ask(&model, &run).await.unwrap_or_else(|why| panic!("{mode}: {}", why.text));
        assert_eq!(&*reply.text, expected, "{mode}");
        assert_eq!(*run.text.lock().expect("free"), expected, "{mode}");
        // The next turn of the session is as good as the first.
        assert_eq!(&*ask(&model, &run).await.expect("again").text, expected, "{mode}");
    }
}

#[tokio::test]
async fn secrets_are_in_no_text() {
    let (model, run) = (fake("leaks"), TestRun::default());
    let reply = ask(&model, &run).await.expect("a reply");
    assert_eq!(&*reply.text, "Key ***");
    let live = run.text.lock().expect("free").clone();
    assert!(live.starts_with("My key is ***."), "{live}");
    let steps = format!("{:?}", run.steps.lock().expect("free"));
    for text in [&live, &steps] {
        assert!(!text.contains(TOKEN) && !text.contains(&TOKEN[..5]), "{text}");
    }
}

#[tokio::test]
async fn permissions_are_asked_unless_allowed() {
    for (answer, allow, expected, asked) in [
        (Some(0), false, "y", 1),
        (Some(1), false, "n", 1),
        (None, false, "n", 1),
        (None, true, "y", 0),
    ] {
        let allowed = if allow { vec![ActionKind::Delete] } else { vec![ActionKind::Read] };
        let model = fake_with("asks", &[], |spec| spec.allow = allowed);
        let run = TestRun { answer, ..TestRun::default() };
        assert_eq!(&*ask(&model, &run).await.expect("a reply").text, expected);
        let questions = run.asked.lock().expect("free");
        assert_eq!(questions.len(), asked);
        for question in &*questions {
            assert_eq!(question.text, "Delete all (delete)\npath: /");
            assert_eq!(question.choices, [Arc::from("Yes"), Arc::from("No")]);
        }
    }
    // Options of one name are told apart.
    let run = TestRun { answer: Some(2), ..TestRun::default() };
    assert_eq!(&*ask(&fake("loop"), &run).await.expect("a reply").text, "130 of 130 refused.");
    let choices = run.asked.lock().expect("free")[0].choices.clone();
    assert_eq!(choices, [Arc::from("Yes"), Arc::from("Yes (2)"), Arc::from("No")]);
}

#[tokio::test]
async fn actions_are_asked_and_logged() {
    let offer = |spec: &mut AcpSpec, folder: &std::path::Path| {
        (spec.files, spec.terminal, spec.cwd) = (FileAccess::Write, true, Some(folder.to_owned()));
    };
    // What the scenario allows, the answer to every question: what was done, and what was asked.
    for (allow, answer, said, questions) in [
        // The agent's own question had the first change word for word, so it is not asked again.
        (vec![], Some(0), "yes yes no yes yes yes yes", 4),
        (vec![], None, "no no no no no no no", 5),
        (vec![ActionKind::Read], None, "no no no no no no no", 5),
        (vec![ActionKind::Edit], None, "yes yes no yes no no no", 2),
        (vec![ActionKind::Execute], None, "no no no no yes yes yes", 3),
        (vec![ActionKind::Edit, ActionKind::Execute], None, "yes yes no yes yes yes yes", 0),
        // The second choice allows all of a kind: the agent's own is a no.
        (vec![], Some(1), "yes yes no yes yes yes yes", 3),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let model = fake_with("acts", &[], |spec| {
            offer(spec, folder.path());
            spec.allow = allow.clone();
        });
        let run = TestRun { answer, ..TestRun::default() };
        let reply = ask(&model, &run).await.expect("a reply");
        assert_eq!(&*reply.text, said, "{allow:?} {answer:?}");
        let asked = std::mem::take(&mut *run.asked.lock().expect("free"));
        assert_eq!(asked.len(), questions, "{allow:?} {answer:?}: {asked:#?}");
        let steps = std::mem::take(&mut *run.steps.lock().expect("free"));
        assert!(steps.iter().all(|step| step.carried_out), "{steps:#?}");
        let ended = |title: &str| {
            let mut ended =
                steps.iter().filter(|it| &*it.title == title && it.state != StepState::Started);
            ended.next_back().map(|step| (step.state, step.text.to_string()))
        };
        let outside = ended("Write /etc/out").expect("a step");
        assert!(outside.0 == StepState::Failed && outside.1.contains("is not in"), "{outside:?}");
        let failed = |text: &str| Some((StepState::Failed, text.to_owned()));
        let (command, endless) =
            (ended("Run echo $A; exit 3"), ended("Run echo $$ >pid; sleep 600"));
        match said.ends_with("yes") {
            true => {
                assert_eq!(command, failed("exit code 3\nhi"));
                assert_eq!(endless, failed("still ran at the end of the turn, and was killed"));
                let pid = std::fs::read_to_string(folder.path().join("pid")).expect("its number");
                let pid = rustix::process::Pid::from_raw(pid.trim().parse().expect("a number"));
                in_time(async {
                    while pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()) {
                        tokio::task::yield_now().await;
                    }
                })
                .await;
            }
            false => assert_eq!((command, endless), (failed("not allowed"), failed("not allowed"))),
        }
        if let Some(question) = asked.iter().find(|it| it.text.starts_with("Run echo")) {
            assert_eq!(question.text, "Run echo $A; exit 3\nA=hi");
            assert_eq!(&*question.choices[1], "Allow all commands of coder in this run");
        }
    }
}

#[tokio::test]
async fn silent_login_is_used() {
    let reply = ask(&fake("cached"), &TestRun::default()).await.expect("a reply");
    assert!(reply.text.ends_with("] Go."), "{}", reply.text);
}

#[tokio::test]
async fn slow_start_quotes_the_output() {
    let model = fake_with("banner", &[], |spec| spec.start_timeout = Duration::from_secs(3));
    let failed = ask(&model, &TestRun::default()).await.expect_err("no agent");
    let part = "did not start within 3 s; a line of its standard output is no message: Welcome!";
    assert!(failed.text.contains(part), "{}", failed.text);
}

#[tokio::test]
async fn nothing_is_offered_unasked() {
    let reply = ask(&fake("wants"), &TestRun::default()).await.expect("a reply");
    assert_eq!(&*reply.text, "-32601 -32601 -32601 -32602");
    let more = |spec: &mut AcpSpec| (spec.files, spec.terminal) = (FileAccess::Read, false);
    let reply = ask(&fake_with("wants", &[], more), &TestRun::default()).await.expect("a reply");
    assert_eq!(&*reply.text, "-32000 -32601 -32601 -32602", "outside of its folder");
}

/// Waits for this text of a turn that has no end.
async fn until_said(turn: &mut (impl Future + Unpin), run: &TestRun, text: &str) {
    in_time(async {
        while *run.text.lock().expect("free") != text {
            tokio::select! {
                _ = &mut *turn => panic!("it has no end"),
                () = tokio::task::yield_now() => {}
            }
        }
    })
    .await;
}

#[tokio::test]
async fn cancelled_turn_keeps_the_session() {
    let (model, run) = (fake("never"), TestRun::default());
    let asked = request("Go.");
    let mut turn = model.chat(&asked, &run);
    until_said(&mut turn, &run, "I begin.").await;
    drop(turn);
    // The program still runs, and takes the next prompt.
    let mut again = model.chat(&asked, &run);
    until_said(&mut again, &run, "I begin.I begin.").await;
}

#[tokio::test]
async fn deaf_agent_is_killed() {
    let (model, run) = (fake("deaf"), TestRun::default());
    let asked = request("Go.");
    let mut turn = model.chat(&asked, &run);
    until_said(&mut turn, &run, "I begin.").await;
    drop(turn);
    let failed = ask(&model, &run).await.expect_err("it does not listen");
    assert!(failed.text.contains("did not end its turn when it was cancelled"), "{}", failed.text);
}

#[tokio::test]
async fn dead_agent_is_started_again() {
    let model = fake("dies");
    for _ in 0..2 {
        let failed = ask(&model, &TestRun::default()).await.expect_err("it dies");
        assert!(failed.text.contains("out of memory"), "{}", failed.text);
    }
}

#[tokio::test]
async fn nothing_outlives_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let path = pipe.display().to_string();
    let witness = std::thread::spawn(move || std::fs::read(&pipe));
    let model = fake_with("children", &[("WITNESS", &path)], |_| {});
    assert_eq!(&*ask(&model, &TestRun::default()).await.expect("a reply").text, "Started one.");
    drop(model);
    // The pipe ends when the last process that holds it has ended.
    let ended = tokio::task::spawn_blocking(move || witness.join().expect("no panic"));
    in_time(ended).await.expect("no panic").expect("the end of the pipe");
}

#[tokio::test]
async fn sessions_follow_conversations() {
    let model = fake("plain");
    let user = |text: &str| ChatMessage::new(MessageRole::User, text);
    let run = TestRun::default();
    let first = in_time(model.chat(&request("One."), &run)).await.expect("a reply");
    assert!(first.text.ends_with("] One."), "{}", first.text);
    let own = ChatMessage::from_reply(&first);
    let longer = request_of(vec![user("One."), own.clone(), user("Two.")]);
    let second = in_time(model.chat(&longer, &run)).await.expect("a reply");
    assert!(second.text.ends_with("] Two."), "only what is new: {}", second.text);
    // Another process has the log only.
    let other = fake("plain");
    let third = in_time(other.chat(&longer, &run)).await.expect("a reply");
    let whole =
        format!("] Message to you:\nOne.\n\nYou said:\n{}\n\nMessage to you:\nTwo.", first.text);
    assert!(third.text.ends_with(&whole), "{}", third.text);
    // An agent that loads sessions knows what was said; one that has forgotten gets all of it.
    for (session, expected) in [("known", "] Two."), ("gone", whole.as_str())] {
        let blocks = serde_json::json!({ "acp": { "session": session } });
        let own = ChatMessage { blocks: Some(Arc::new(blocks)), ..own.clone() };
        let asked = request_of(vec![user("One."), own, user("Two.")]);
        let reply = in_time(fake("loads").chat(&asked, &run)).await.expect("a reply");
        assert!(reply.text.ends_with(expected), "{session}: {}", reply.text);
    }
}

#[tokio::test]
async fn parallel_turns_have_own_sessions() {
    let model = fake("plain");
    let run = TestRun::default();
    let (left, right) = (request("Left."), request("Right."));
    let both = async { tokio::join!(model.chat(&left, &run), model.chat(&right, &run)) };
    let (left, right) = in_time(both).await;
    let session = |reply: &Reply| {
        let blocks = reply.blocks.as_ref().expect("blocks");
        blocks["acp"]["session"].as_str().expect("a session").to_owned()
    };
    let (left, right) = (left.expect("a reply"), right.expect("a reply"));
    assert_ne!(session(&left), session(&right));
    assert!(left.text.ends_with("Left.") && right.text.ends_with("Right."));
}
