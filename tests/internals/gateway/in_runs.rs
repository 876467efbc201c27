//! Model calls through the gateway: time-outs, retries, panics and cancellation, with models that
//! misbehave, under paused time. After every case nothing is in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::engine::{Launch, ModelChoice};
use crate::log::event::{Command, EventKind, FailureClass, ModelLabel, Reply, World};
use crate::model::{ChatModel, ChatRequest, Failure, Listener, failure};
use crate::support::gateway_call::Unfinished;
use crate::support::table::{BRIEF, engine, facts, scenario, until};
use futures::FutureExt;
use futures::future::BoxFuture;

type Said = Result<Reply, Box<Failure>>;
type Behaviour = dyn Fn(u32) -> BoxFuture<'static, Said> + Send + Sync;

/// A model that behaves as told, by the number of the attempt.
struct Odd {
    asked: AtomicU32,
    given_up: Arc<AtomicU32>,
    behave: Box<Behaviour>,
}

impl ChatModel for Odd {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "odd".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Said> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        async move {
            let unfinished = Unfinished::new(&self.given_up);
            listener.piece("par");
            listener.piece("tial");
            let said = (self.behave)(request.attempt).await;
            unfinished.end();
            said
        }
        .boxed()
    }
}

fn odd(behave: impl Fn(u32) -> BoxFuture<'static, Said> + Send + Sync + 'static) -> Arc<Odd> {
    Arc::new(Odd { asked: AtomicU32::new(0), given_up: Arc::default(), behave: Box::new(behave) })
}

fn reply() -> Reply {
    let text = r#"{"agent":"a","stance":"go","summary":"s","confidence":1,"actions":["x"]}"#;
    Reply::from_agent_text(text.into())
}

fn launch(model: &Arc<Odd>, sets: &[&str]) -> Launch {
    let sets: Vec<&str> = ["collaboration.sequence=['a']", "budget.min_go_votes=1"]
        .into_iter()
        .chain(sets.iter().copied())
        .collect();
    let scenario = scenario(BRIEF, &sets);
    let model: Arc<dyn ChatModel> = Arc::clone(model) as _;
    Launch {
        model: ModelChoice::Live(model.into(), Duration::from_secs(60)),
        ..Launch::scripted(scenario, true)
    }
}

async fn play(model: &Arc<Odd>, sets: &[&str]) -> World {
    let run = engine().start(launch(model, sets));
    let facts = facts(&run).await;
    assert_eq!(run.in_flight(), 0);
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.progress.closed.as_ref().map(|closed| closed.in_flight), Some(0));
    let attempts = world.tally.attempts;
    assert_eq!(u64::from(model.asked.load(Ordering::SeqCst)), attempts, "no hidden attempt");
    world
}

fn reason(world: &World) -> String {
    world.outcome().expect("an outcome").stop_reason.to_string()
}

#[tokio::test(start_paused = true)]
async fn silent_endpoint_times_out_and_retries() {
    let model = odd(|attempt| match attempt {
        1 => futures::future::pending().boxed(),
        _ => async { Ok(reply()) }.boxed(),
    });
    let world = play(&model, &["tools.llm.timeout_s=7"]).await;
    assert_eq!(reason(&world), "success");
    // Twice: the contribution and the brief, 7 s and a wait of 250 ms each.
    assert_eq!(world.tally.retries, 2);
    assert_eq!(world.run.progress.closed.map(|closed| closed.elapsed_ms), Some(14_500));
    assert_eq!(model.given_up.load(Ordering::SeqCst), 2, "the first attempts were cancelled");
}

#[tokio::test(start_paused = true)]
async fn timeout_ends_slow_drip() {
    let model = odd(|_| {
        async {
            loop {
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
        }
        .boxed()
    });
    let world = play(&model, &["tools.llm.timeout_s=2"]).await;
    assert_eq!(reason(&world), "llm_timeout");
    assert_eq!(world.run.progress.closed.map(|closed| closed.elapsed_ms), Some(4250));
}

#[tokio::test(start_paused = true)]
async fn timed_out_attempt_keeps_partial_text() {
    let model = odd(|_| futures::future::pending().boxed());
    let run = engine().start(launch(&model, &["tools.llm.timeout_s=2"]));
    let failed = until(&run, |kind| matches!(kind, EventKind::AttemptFailed(_))).await;
    let EventKind::AttemptFailed(failed) = &failed.kind else { unreachable!() };
    assert_eq!(failed.class, FailureClass::Timeout);
    assert_eq!(failed.partial.as_deref(), Some("partial"));
    facts(&run).await;
}

#[tokio::test(start_paused = true)]
async fn model_panic_spares_next_run() {
    let model = odd(|_| async { panic!("the model fell over") }.boxed());
    let world = play(&model, &[]).await;
    assert_eq!(reason(&world), "internal_error");
    assert_eq!(world.tally.attempts, 1, "a panic is not retried");
    let model = odd(|_| async { Ok(reply()) }.boxed());
    assert_eq!(reason(&play(&model, &[]).await), "success");
}

#[tokio::test(start_paused = true)]
async fn cancelled_attempt_releases_everything() {
    let model = odd(|_| futures::future::pending().boxed());
    let run = engine().start(launch(&model, &[]));
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(Command::Cancel);
    let world = World::from_events(facts(&run).await.iter().map(|fact| &**fact));
    assert_eq!(reason(&world), "cancelled");
    assert_eq!((run.in_flight(), model.given_up.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn cancelled_backoff_stops_retry() {
    let model = odd(|_| async { Err(failure(FailureClass::Connect, "refused")) }.boxed());
    let run = engine().start(launch(&model, &[]));
    until(&run, |kind| matches!(kind, EventKind::CallRetried { .. })).await;
    assert_eq!(run.in_flight(), 0, "nothing is held while waiting");
    run.send(Command::Cancel);
    let world = World::from_events(facts(&run).await.iter().map(|fact| &**fact));
    assert_eq!((reason(&world).as_str(), world.tally.attempts), ("cancelled", 1));
}

#[tokio::test(start_paused = true)]
async fn non_idempotent_call_runs_once() {
    let model = odd(|_| async { Err(failure(FailureClass::Connect, "refused")) }.boxed());
    let world = play(&model, &["tools.llm.idempotent=false"]).await;
    assert_eq!((reason(&world).as_str(), world.tally.attempts), ("llm_error:connection", 1));
}
