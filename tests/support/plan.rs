//! An orchestrator for tests: three workers, a planner whose plan each test writes, and a run of it
//! that is read to its end.

#[allow(unused_imports, reason = "each test binary uses a part")]
pub use super::table::{engine, read, until};

use super::gateway_call::Unfinished;
use super::table;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::engine::{Launch, RunHandle, Toolbox};
use roundtable::gateway::{Tool, ToolRequest};
use roundtable::log::event::{AttemptFailed, Event, Seq, World};
use roundtable::scenario::Scenario;
use serde_json::{Value, json};

/// Three workers, of which `stock` depends on the flag `stock_on`. Each takes one second.
pub const HEAD: &str = r#"
title = "A plan"
pattern = "orchestrator"
about = "For tests."
goal = "Report on {{day}}."
[inputs]
day = { value = "Monday", label = "Day" }
[flags.stock_on]
default = true
label = "Stock"
[budget]
max_tasks = 8
max_parallel = 3
max_retries_per_task = 1
max_dispatches = 16
task_timeout_seconds = 2.0
max_seconds = 60
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Report."
echo = ["day"]
[orchestrator.sections]
sales = "sales"
money = "money"
stock = "stock"
[orchestrator.level]
name = "health"
otherwise = "green"
rules = [{ level = "red", when = "has(money.incident) && money.incident != 'none'" }]
[workers.sales]
description = "Sales."
args = { day = "a day" }
[[workers.sales.fixture.rows]]
latency = "1s"
result = { orders = 1 }
[workers.money]
description = "Money."
args = { day = "a day" }
[[workers.money.fixture.rows]]
latency = "1s"
result = { incident = "none" }
[workers.stock]
description = "Stock."
args = { day = "a day" }
flag = "stock_on"
[[workers.stock.fixture.rows]]
latency = "1s"
result = { skus = [] }
[[script]]
step = "finalize"
text = "The report."
"#;

/// The planner's row: these tasks, as `(id, worker, critical)`.
pub fn plans(tasks: &[(&str, &str, bool)]) -> String {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, worker, critical)| {
            json!({ "id": id, "worker": worker, "args": { "day": "Monday" }, "critical": critical })
        })
        .collect();
    says(&json!({ "kind": "plan", "tasks": tasks }).to_string())
}

/// The planner's row: this text.
pub fn says(text: &str) -> String {
    format!("\n[[script]]\nstep = \"plan\"\nraw = '''{text}'''\n")
}

/// All three workers, each once, none of them critical.
pub fn three() -> String {
    plans(&[("t1", "sales", false), ("t2", "money", false), ("t3", "stock", false)])
}

/// A scenario of this script with overrides such as `budget.max_parallel=1`.
pub fn scenario(script: &str, sets: &[&str]) -> Arc<Scenario> {
    table::read(&format!("{HEAD}{script}"), sets)
}

/// What a tool does, by the number of its request.
type Does = dyn Fn(u32) -> Answer + Send + Sync;
type Answer = BoxFuture<'static, Result<Value, Box<AttemptFailed>>>;

/// A tool that does as told by the number of its request, and knows how many attempts were dropped
/// before their end.
pub struct Told {
    asked: AtomicU32,
    dropped: Arc<AtomicU32>,
    does: Box<Does>,
}

/// A tool that does as told, and the count of its dropped attempts.
pub fn told(does: impl Fn(u32) -> Answer + Send + Sync + 'static) -> (Box<Told>, Arc<AtomicU32>) {
    let dropped = Arc::new(AtomicU32::new(0));
    let tool = Told { asked: AtomicU32::new(0), dropped: dropped.clone(), does: Box::new(does) };
    (Box::new(tool), dropped)
}

impl Tool for Told {
    fn ask<'a>(
        &'a self,
        _: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            let unfinished = Unfinished::new(&self.dropped);
            let answered = (self.does)(number).await;
            unfinished.end();
            answered.map(Arc::new)
        }
        .boxed()
    }
}

/// A launch with these tools in place of what the scenario says.
pub fn with(scenario: &Arc<Scenario>, tools: Vec<(&str, Box<Told>)>) -> Launch {
    let mut toolbox = Toolbox::offline(scenario, false);
    for (name, tool) in tools {
        toolbox.replace(name, tool);
    }
    Launch { tools: Some(toolbox), ..Launch::scripted(Arc::clone(scenario), true) }
}

/// Every fact of a run, once it has ended; nothing of it is left then.
pub async fn facts(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 1024).await > 0 {}
    run.wait_until_finished().await;
    assert_eq!(run.in_flight(), 0);
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    for row in world.tools.rows() {
        assert_eq!((row.in_flight, row.queued), (0, 0), "{}", row.name());
        let live = run.tool_snapshots().into_iter().find(|tool| tool.tool == *row.name());
        let live = live.expect("a guard").fill.in_flight;
        assert!(row.head.shared || live == 0, "{}: {live} in flight", row.name());
    }
    facts
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
    assert_eq!(world.spans.open(), 0, "every span is closed");
    serde_json::to_value(world.outcome().expect("an outcome")).expect("json")
}

/// The outcome of a scenario, unchanged, with its latencies.
pub async fn played(scenario: &Arc<Scenario>) -> Value {
    outcome(Launch::scripted(Arc::clone(scenario), false)).await
}
