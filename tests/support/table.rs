//! A table for tests: a small collaboration scenario whose script each test writes, and a run of
//! it that is read to its end.

use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::base::time::WallClock;
use roundtable::engine::{Engine, EngineSettings, Launch, RunHandle};
use roundtable::log::event::{AttemptFailed, Event, EventKind, ModelLabel, Reply, Seq, World};
use roundtable::model::{ChatModel, ChatRequest, Listener};
use roundtable::scenario;
use roundtable::scenario::{Override, Scenario, ScenarioOrigin};
use serde_json::Value;

/// Three roles, of which `c` sits behind the flag `third`.
pub const HEAD: &str = r#"
title = "A table"
pattern = "collaboration"
about = "For tests."
goal = "Decide on {{what}}."
[inputs]
what = { value = "lunch", label = "What" }
[flags.third]
default = false
label = "The third seat"
[budget]
max_rounds = 3
max_messages = 12
max_seconds = 40
min_go_votes = 2
[facts]
price = 12
[collaboration]
sequence = ["a", "b", "c"]
concurrency = "parallel"
summary = ["what"]
finalize_prompt = "Write the brief."
[roles.a]
prompt = "You are a."
[roles.b]
prompt = "You are b."
[roles.c]
prompt = "You are c."
flag = "third"
when_off = "skip"
[tools.llm]
timeout_s = 10
retries = { max_attempts = 2, backoff_ms = [250, 750], jitter = false }
"#;

/// A row of a script that gives a contribution.
pub fn says(role: &str, extra: &str, stance: &str) -> String {
    format!(
        "\n[[script]]\nrole = \"{role}\"\n{extra}\nreply = {{ stance = \"{stance}\", summary = \"{role} says {stance}\", confidence = 0.8, actions = [\"act\"] }}\n"
    )
}

/// The row of the final step.
pub const BRIEF: &str = "\n[[script]]\nstep = \"finalize\"\ntext = \"The brief.\"\n";

/// A scenario of this script with overrides such as `budget.max_rounds=1`.
pub fn scenario(script: &str, sets: &[&str]) -> Arc<Scenario> {
    read(&format!("{HEAD}{script}"), sets)
}

/// A scenario of this text with overrides.
pub fn read(text: &str, sets: &[&str]) -> Arc<Scenario> {
    let overrides: Vec<Override> = sets
        .iter()
        .map(|set| {
            let (path, value) = set.split_once('=').expect("path=value");
            Override::new(path, value).expect("an override")
        })
        .collect();
    match scenario::load(text, ScenarioOrigin::File("table.toml".into()), &overrides) {
        Ok(scenario) => Arc::new(scenario),
        Err(problems) => panic!("{}", problems.pretty(false)),
    }
}

/// An engine with default settings. Its wall clock goes with the time of tokio, so that deadlines come in
/// simulated time.
pub fn engine() -> Engine {
    engine_at(tokio_wall())
}

/// An engine whose deadlines go by this clock.
pub fn engine_at(wall: WallClock) -> Engine {
    let engine = Engine::new(EngineSettings::default());
    engine.set_wall(wall);
    engine
}

/// A wall clock that goes with the time of tokio.
pub fn tokio_wall() -> WallClock {
    let (wall, start) = (SystemTime::now(), tokio::time::Instant::now());
    Arc::new(move || wall + start.elapsed())
}

type Said = Result<Reply, Box<AttemptFailed>>;

struct Memory<F>(F);

impl<F: Fn(&ChatRequest) -> Said + Send + Sync> ChatModel for Memory<F> {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "memory".to_owned(), host: "nowhere".to_owned() }
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest, _: &'a dyn Listener) -> BoxFuture<'a, Said> {
        async move { (self.0)(request) }.boxed()
    }
}

/// A model in memory that says what a test makes of each attempt.
pub fn memory(say: impl Fn(&ChatRequest) -> Said + Send + Sync + 'static) -> Arc<dyn ChatModel> {
    Arc::new(Memory(say))
}

/// Every fact of a run, once it has ended.
pub async fn facts(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 1024).await > 0 {}
    run.wait_until_finished().await;
    facts
}

/// A runtime with a stopped time that moves to the next timer when nothing else is left to do.
pub fn paused_runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime")
}

/// What keeps the log of a long scenario short.
pub fn shortened(name: &str) -> Vec<Override> {
    let set = |path, to| Override::new(path, to).expect("an override");
    match name {
        "vendor-brownout" => vec![set("resilience.turns", "8"), set("budget.max_seconds", "60")],
        _ => Vec::new(),
    }
}

/// The events of a shipped scenario with its script, without delays.
pub fn shipped_log(name: &str) -> Vec<Arc<Event>> {
    let found = scenario::shipped().iter().find(|it| it.name == name).expect("shipped");
    let scenario = scenario::load(found.text, found.origin(), &shortened(name));
    let scenario = scenario.expect("a good scenario");
    let runtime = paused_runtime();
    runtime.block_on(async {
        facts(&engine().start(Launch::scripted(Arc::new(scenario), true))).await
    })
}

/// The shipped scenarios that need neither a folder nor a network.
pub fn offline_scenarios() -> impl Iterator<Item = &'static str> {
    let names = scenario::shipped().iter().map(|found| found.name);
    names.filter(|name| !["real-services", "own-notes", "web-status"].contains(name))
}

/// The world of a run, once it has ended.
pub async fn world(run: &RunHandle) -> World {
    World::from_events(facts(run).await.iter().map(|fact| &**fact))
}

/// Plays a launch to its end and gives the outcome as JSON.
pub async fn outcome(launch: Launch) -> Value {
    let run = engine().start(launch);
    let world = world(&run).await;
    assert_eq!(world.progress.closed.as_ref().map(|closed| closed.in_flight), Some(0));
    assert_eq!(run.in_flight(), 0);
    serde_json::to_value(world.outcome().expect("an outcome")).expect("json")
}

/// Waits for the first fact that `wanted` picks.
pub async fn until(run: &RunHandle, wanted: impl Fn(&EventKind) -> bool) -> Arc<Event> {
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    loop {
        let seen = facts.len();
        assert!(reader.next_batch(&mut facts, 64).await > 0, "the run ended before that");
        if let Some(fact) = facts[seen..].iter().find(|fact| wanted(&fact.kind)) {
            return Arc::clone(fact);
        }
    }
}
