//! The scripted model where an agent speaks: rows by agent, message, turn and round, and the tools
//! that they call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::seeded_random::Latency;
use crate::log::event::{
    AttemptFailed, ChatMessage, FailureClass, MessageRole, Purpose, Reply, Usage,
};
use crate::model::script::ScriptedModel;
use crate::model::{ChatModel, ChatRequest, Conversation, Listener, ReplyForm};
use crate::scenario::cel::{CelBindings, Condition};
use crate::scenario::spec::script::ScriptRow;
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind, ToolCall};
use crate::scenario::{Scenario, ScenarioSource, load};
use tokio::time::Instant;

/// A row for anyone, with this text.
fn row(text: &str) -> ScriptRow {
    ScriptRow {
        usage: None,
        nth: None,
        role: None,
        agent: None,
        message: None,
        turn: None,
        step: None,
        round: None,
        attempt: None,
        again: None,
        when: None,
        latency: Latency::default(),
        fault: None,
        reply_text: text.into(),
        fills: Vec::new(),
        calls: [].into(),
        end: Default::default(),
        lacks_agent: false,
    }
}

/// Calls as a file has them: without ids.
fn calls(calls: &[(&str, &str)]) -> Arc<[ToolCall]> {
    let call = |&(name, arguments): &(&str, &str)| ToolCall {
        id: "".into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    calls.iter().map(call).collect()
}

fn model(rows: Vec<ScriptRow>, instant: bool) -> ScriptedModel {
    let source = ScenarioSource::find("checkout-launch").expect("a shipped scenario");
    let mut scenario: Scenario = load(&source.text, source.origin, &[]).expect("a good one");
    scenario.script.rows = rows;
    ScriptedModel::new(Arc::new(scenario), instant)
}

/// What an agent is asked in its turn.
fn asked(agent: &str, turn: u32, round: u32) -> ChatRequest {
    ChatRequest {
        nth: 1,
        messages: Conversation::from(Arc::from([ChatMessage::new(
            MessageRole::User,
            "Go on then.",
        )])),
        tools: [].into(),
        form: ReplyForm::Text,
        purpose: Purpose::ModelCall { agent: agent.into(), turn, round },
        message: 1,
        attempt: 1,
        again: 0,
        draw: 0xfeed,
        shown: Arc::new(CelBindings::default()),
    }
}

/// Keeps the spoken texts.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Listener for Heard {
    fn piece(&self, text: &str) {
        self.0.lock().expect("a listener").push(text.to_owned());
    }
}

async fn say(
    model: &ScriptedModel,
    request: &ChatRequest,
) -> (Result<Reply, Box<AttemptFailed>>, Vec<String>) {
    let heard = Heard::default();
    let reply = model.chat(request, &heard).await;
    (reply, heard.0.into_inner().expect("a listener"))
}

#[tokio::test]
async fn rows_match_agent_message_and_round() {
    let rows = vec![
        ScriptRow { agent: Some("billing".into()), message: Some(2), ..row("second message") },
        ScriptRow { agent: Some("billing".into()), turn: Some(2), round: Some(1), ..row("again") },
        ScriptRow { agent: Some("billing".into()), round: Some(2), ..row("looked up") },
        ScriptRow { agent: Some("billing".into()), attempt: Some(2), ..row("at last") },
        ScriptRow { agent: Some("billing".into()), ..row("billing") },
        ScriptRow { agent: Some("support".into()), ..row("support") },
    ];
    let model = model(rows, true);
    for (request, text) in [
        (asked("billing", 1, 1), "billing"),
        (asked("billing", 2, 1), "again"),
        (asked("billing", 2, 2), "looked up"),
        (asked("support", 2, 2), "support"),
        (ChatRequest { message: 2, ..asked("billing", 1, 1) }, "second message"),
        (ChatRequest { message: 3, ..asked("billing", 1, 1) }, "billing"),
        (ChatRequest { attempt: 2, ..asked("billing", 1, 1) }, "at last"),
    ] {
        let (reply, heard) = say(&model, &request).await;
        let reply = reply.expect(text);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, Some("stop")));
        assert_eq!(heard, [text]);
    }
    let request = ChatRequest { message: 2, ..asked("shipping", 3, 1) };
    let failed = say(&model, &request).await.0.expect_err("nobody speaks for it");
    assert_eq!(failed.class, FailureClass::ScriptMissing);
    assert!(
        failed.text.contains("no reply for shipping (message 2, turn 3, round 1)"),
        "{}",
        failed.text
    );
}

#[tokio::test]
async fn a_condition_decides_what_is_called() {
    let when = Condition::compile("results.size() == 0").expect("a condition");
    let rows = vec![
        ScriptRow { when: Some(when), calls: calls(&[("lookup", "{}")]), ..row("") },
        row("Done."),
    ];
    let model = model(rows, true);
    for (results, calls) in [(0, 1), (1, 0)] {
        let mut shown = CelBindings::default();
        shown.bind("results", &vec![serde_json::Value::Null; results].into());
        let request = ChatRequest { shown: Arc::new(shown), ..asked("billing", 1, 1) };
        assert_eq!(say(&model, &request).await.0.expect("a reply").tool_calls.len(), calls);
    }
}

#[tokio::test]
async fn call_ids_repeat_with_draw() {
    let three =
        calls(&[("lookup", r#"{"order": "A 17"}"#), ("lookup", ""), ("refund", "not json")]);
    let model = model(vec![ScriptRow { calls: three, ..row("I look it up.") }], true);
    let request = asked("billing", 1, 1);
    let (reply, heard) = say(&model, &request).await;
    let reply = reply.expect("a reply");
    let told = reply.tool_calls.iter().map(|call| [&*call.id, &*call.name, &*call.arguments]);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ["call_1_000000000000feed_1", "lookup", r#"{"order": "A 17"}"#],
            ["call_1_000000000000feed_2", "lookup", ""],
            ["call_1_000000000000feed_3", "refund", "not json"],
        ]
    );
    assert_eq!(heard, ["I look it up."]);
    assert_eq!((&*reply.text, reply.finish.as_deref()), ("I look it up.", Some("tool_calls")));
    // Four words, three names, and three, none and two words of arguments.
    assert_eq!(reply.usage, Some(Usage::new(3, 4 + 3 + 3 + 2)));
    // What it is then shown counts the same.
    let said = ChatMessage::assistant(Arc::clone(&reply.text), Arc::clone(&reply.tool_calls));
    assert_eq!(Conversation::from(Arc::from([said])).words(), 12);

    assert_eq!(say(&model, &request).await.0.expect("a reply"), reply, "the same draw, the same");
    let later = [
        ChatRequest { draw: 7, ..request.clone() },
        // Of a session's next run the same place draws the same.
        ChatRequest { message: 2, ..request },
    ];
    for other in later {
        let other = say(&model, &other).await.0.expect("a reply");
        for (a, b) in other.tool_calls.iter().zip(&*reply.tool_calls) {
            assert_ne!(a.id, b.id);
        }
    }
}

/// A reply that is all calls takes its time in silence.
#[tokio::test(start_paused = true)]
async fn calls_follow_finished_text() {
    let takes = Duration::from_millis(900);
    let late = |text: &str, fault| ScriptRow {
        latency: Latency { min: takes, max: takes },
        calls: calls(&[("lookup", "{}")]),
        fault,
        ..row(text)
    };
    let began = Instant::now();
    let (reply, heard) = say(&model(vec![late("", None)], false), &asked("billing", 1, 1)).await;
    let reply = reply.expect("a reply");
    assert_eq!((began.elapsed(), heard.len(), reply.tool_calls.len()), (takes, 0, 1));
    assert_eq!((reply.first_token_ms, reply.finish.as_deref()), (Some(300), Some("tool_calls")));

    let model_of_text = model(vec![late("I look it up.", None)], false);
    let (reply, heard) = say(&model_of_text, &asked("billing", 1, 1)).await;
    assert_eq!(
        (heard.concat().as_str(), reply.expect("a reply").tool_calls.len()),
        ("I look it up.", 1)
    );
    assert!(heard.len() > 1, "it is streamed: {heard:?}");

    let breaks = Some(ScriptFault::new(ScriptFaultKind::Reset, 1));
    let model = model(vec![late("", breaks)], false);
    let began = Instant::now();
    let (failed, heard) = say(&model, &asked("billing", 1, 1)).await;
    assert_eq!(failed.expect_err("a failure").class, FailureClass::Reset);
    assert_eq!((began.elapsed(), heard.len()), (takes, 0));
    let (reply, _) = say(&model, &ChatRequest { attempt: 2, ..asked("billing", 1, 1) }).await;
    assert_eq!(reply.expect("a reply").tool_calls.len(), 1);
}
