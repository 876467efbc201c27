//! Calls that were in flight when their run stopped, and calls whose answers are stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::stored;
use crate::engine::{Launch, ModelChoice, Resumption, RunHandle, Toolbox};
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{
    Answer, AnsweredBy, AttemptFailed, Command, Event, EventKind, Initiator, ModelLabel,
    QuestionAnswered, Reply, Seq, World,
};
use crate::model::script::ScriptedModel;
use crate::model::{ChatModel, ChatRequest, Listener};
use crate::run::questions::PeopleMode;
use crate::scenario::spec::InDoubt;
use crate::scenario::{Scenario, load, shipped};
use crate::support::table::{engine, facts, until};

/// The script of a scenario as a model that costs tokens, and how often it was called.
struct Counting {
    script: ScriptedModel,
    calls: Arc<AtomicU32>,
}

impl ChatModel for Counting {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.script.chat(request, listener)
    }

    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "counting".to_owned(), host: "localhost".to_owned() }
    }

    fn reads_conditions(&self) -> bool {
        self.script.reads_conditions()
    }
}

/// A tool that answers after a second, and how often it was called.
struct Slow {
    calls: Arc<AtomicU32>,
    result: Value,
}

impl Tool for Slow {
    fn ask<'a>(
        &'a self,
        _: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(async {
            self.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Arc::new(self.result.clone()))
        })
    }
}

fn scenario(name: &str, sets: &[&str]) -> Arc<Scenario> {
    let sets: Vec<_> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    let shipped = shipped().iter().find(|it| it.name == name).expect("a shipped scenario");
    Arc::new(load(shipped.text, shipped.origin(), &sets).expect("a good scenario"))
}

fn live(scenario: &Arc<Scenario>, calls: &Arc<AtomicU32>) -> Launch {
    let script = ScriptedModel::new(Arc::clone(scenario), false);
    let model: Arc<dyn ChatModel> = Arc::new(Counting { script, calls: Arc::clone(calls) });
    let model = ModelChoice::Live(model.into(), Duration::from_secs(60));
    Launch { model, ..Launch::scripted(Arc::clone(scenario), false) }
}

#[tokio::test(start_paused = true)]
async fn resume_never_repeats_stored_model_calls() {
    let scenario = scenario("checkout-launch", &[]);
    let calls = Arc::<AtomicU32>::default();
    let full = facts(&engine().start(live(&scenario, &calls))).await;
    let all = calls.swap(0, Ordering::SeqCst);
    let used = |events: &[Arc<Event>]| {
        World::from_events(events.iter().map(|event| &**event)).tally.usage.total()
    };
    for cut in 1..full.len() {
        let count = |name: &str| {
            let mut named = full[..cut].iter().filter(|event| event.kind.name() == name);
            named.by_ref().count() as u32
        };
        let begun = count("attempt.started");
        let answered = count("attempt.answered") + count("attempt.failed");
        let recording = stored(&full[..cut]);
        let resumption = Resumption { recording, by: Initiator::You, in_doubt: InDoubt::Stop };
        let run = engine().resume(live(&scenario, &calls), resumption).expect("a run");
        run.wait_until_live().await.expect("it goes on");
        let continued = facts(&run).await;
        assert_eq!(calls.swap(0, Ordering::SeqCst), all - answered, "cut after {cut}");
        let doubts: Vec<&Arc<Event>> =
            continued.iter().filter(|it| it.kind.name() == "call.in_doubt").collect();
        assert_eq!(doubts.len() as u32, begun - answered, "cut after {cut}");
        assert_eq!(used(&continued) > used(&full), begun > answered, "cut after {cut}");
        let ended = continued.last().map(|event| event.kind.name().to_owned());
        assert_eq!(ended.as_deref(), Some("run.closed"), "cut after {cut}");
    }
}

/// A swarm whose tool that changes something was in flight when the run stopped; the log until then,
/// and what continues it.
async fn stopped_in_flight(
    idempotent: bool,
    in_doubt: InDoubt,
) -> (RunHandle, Arc<AtomicU32>, usize) {
    let sets = [format!("tools.start_refund.idempotent={idempotent}")];
    let scenario = scenario("support-swarm", &[&sets[0]]);
    let calls = Arc::<AtomicU32>::default();
    let launch = || {
        let mut tools = Toolbox::offline(&scenario, false);
        let result = json!({ "refund": "re_905", "usd": 49.9, "status": "started" });
        tools.replace("start_refund", Box::new(Slow { calls: Arc::clone(&calls), result }));
        let people = PeopleMode::Wait;
        Launch { tools: Some(tools), people, ..Launch::scripted(Arc::clone(&scenario), false) }
    };
    let full = facts(&engine().start(launch())).await;
    assert_eq!(calls.swap(0, Ordering::SeqCst), 1, "the scenario calls it");
    let call = full.iter().find(|event| {
        matches!(&event.kind, EventKind::CallStarted(call) if call.tool.as_str() == "start_refund")
    });
    let call = call.expect("a call").span;
    let is_attempt = |event: &Arc<Event>| matches!(event.kind, EventKind::AttemptStarted { parent, .. } if parent == call);
    let cut = full.iter().position(is_attempt).expect("an attempt") + 1;
    let resumption = Resumption { recording: stored(&full[..cut]), by: Initiator::You, in_doubt };
    let run = engine().resume(launch(), resumption).expect("a run");
    run.wait_until_live().await.expect("it goes on");
    (run, calls, cut)
}

#[tokio::test(start_paused = true)]
async fn calls_idempotent_tool_again() {
    let (run, calls, _) = stopped_in_flight(true, InDoubt::Stop).await;
    let log = facts(&run).await;
    let decided = |event: &Arc<Event>| {
        matches!(event.kind, EventKind::CallInDoubt { decision: InDoubt::Retry, .. })
    };
    assert!(log.iter().any(decided));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn non_idempotent_tool_stops_run() {
    let (run, calls, _) = stopped_in_flight(false, InDoubt::Stop).await;
    let log = facts(&run).await;
    let Some(EventKind::RunClosed(closed)) = log.last().map(|event| &event.kind) else {
        panic!("the run ends")
    };
    assert_eq!(closed.reason.to_string(), "in_doubt:start_refund");
    assert_eq!((closed.in_flight, calls.load(Ordering::SeqCst)), (0, 0));
    let world = World::from_events(log.iter().map(|event| &**event));
    let cause = world.stop_cause().expect("a cause");
    assert!(cause.starts_with("The call start_refund {\"charge\":"), "{cause}");
    assert!(cause.ends_with("it may have been made, or not."), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn ask_mode_asks_before_call() {
    let (run, calls, cut) = stopped_in_flight(false, InDoubt::Ask).await;
    let asked = until(&run, |kind| matches!(kind, EventKind::QuestionAsked(_))).await;
    let EventKind::QuestionAsked(asked) = &asked.kind else { panic!("a question") };
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    let by = AnsweredBy::Person { name: "ann".into(), host: "laptop".into() };
    let again = Answer::Choose { choice: "again".into(), text: "".into() };
    let answered = QuestionAnswered::new(asked.id, Arc::clone(&asked.digest), by, again);
    run.send(Command::Answer(Box::new(answered)));
    let log = facts(&run).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert!(
        matches!(&log.last().expect("an end").kind, EventKind::RunClosed(closed) if closed.reason.is_success())
    );
    // The continued run stops as well, at any place, and is continued once more.
    let scenario = scenario("support-swarm", &["tools.start_refund.idempotent=false"]);
    for second in cut + 1..log.len() {
        let resumption = Resumption {
            recording: stored(&log[..second]),
            by: Initiator::You,
            in_doubt: InDoubt::Retry,
        };
        let launch = Launch::scripted(Arc::clone(&scenario), false);
        let run = engine().resume(launch, resumption).expect("a run");
        if let Err(divergence) = run.wait_until_live().await {
            panic!("cut after {second}: {divergence}");
        }
        let first = run.bus().event(Seq(second as u64)).expect("an event");
        assert_eq!(first.kind.name(), "run.resumed", "cut after {second}");
        let again = facts(&run).await;
        assert!(matches!(again.last().expect("an end").kind, EventKind::RunClosed(_)), "{second}");
    }
}
