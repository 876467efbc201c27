//! What the gateway costs: the policies around one attempt, and ten thousand tasks of an
//! orchestrator beside a bare `JoinSet` with a semaphore that does the same.

mod paired;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use paired::{cpu, held, pairs, report, timed};
use roundtable::bench::{AttemptVerdict, CallGuard, CallPolicy, Failure, args_hash, run_within};
use roundtable::{
    AttemptFailed, ChatModel, ChatRequest, Engine, EngineSettings, Launch, Listener, ModelChoice,
    ModelLabel, Purpose, Reply, Scenario, ScenarioOrigin, Seq, Tool, ToolRequest, Toolbox, load,
};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CALLS: u32 = 200_000;
const LIMIT: Duration = Duration::from_secs(10);

fn one_core() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn work(number: u32) -> Result<u32, Box<AttemptFailed>> {
    Ok(black_box(number))
}

/// All policies around an attempt that is answered at once; facts aside.
async fn guarded(guard: &CallGuard, number: u32) -> u32 {
    let (policy, limit) = guard.policy();
    let pass = guard.enter(|| LIMIT, Default::default(), |_| None).await.expect("let through");
    let faults = guard.faults();
    let answered = run_within(limit, work(number)).await.expect("in time").expect("answered");
    pass.settle(AttemptVerdict::Success);
    black_box((policy, faults));
    answered
}

const TASKS: u32 = 10_000;
const AT_ONCE: u32 = 256;

/// A worker that takes two milliseconds and answers with a small table.
struct Worker;

async fn answer(args: &Map<String, Value>) -> Arc<Value> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    Arc::new(json!({ "orders": 4_820, "day": args.get("day"), "skus": ["SKU-4411", "SKU-8820"] }))
}

impl Tool for Worker {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        async move { Ok(answer(request.args).await) }.boxed()
    }
}

/// A planner that plans them all, and a writer of the report.
struct Planner;

fn tasks() -> impl Iterator<Item = Value> {
    (1..=TASKS).map(|nth| {
        json!({ "id": format!("t{nth}"), "worker": "worker", "args": { "day": "Monday" }, "critical": false })
    })
}

impl ChatModel for Planner {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "planner".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        let text = match request.purpose {
            Purpose::Plan => {
                json!({ "kind": "plan", "tasks": tasks().collect::<Vec<_>>() }).to_string()
            }
            _ => "The report.".to_owned(),
        };
        let reply = Reply::from_agent_text(text.into());
        async move { Ok(reply) }.boxed()
    }
}

const SCENARIO: &str = r#"
title = "Ten thousand tasks"
pattern = "orchestrator"
goal = "Report."
[budget]
max_tasks = 10000
max_parallel = 256
max_dispatches = 20000
task_timeout_seconds = 2.0
max_seconds = 600
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Report."
[orchestrator.sections]
orders = "worker"
[orchestrator.level]
name = "health"
otherwise = "green"
[workers.worker]
description = "Works."
args = { day = "a day" }
[[workers.worker.fixture.rows]]
result = { orders = 1 }
"#;

/// The orchestrator: plan, dispatch with every fact, aggregate, report. CPU time.
fn orchestrated(scenario: &Arc<Scenario>) -> Duration {
    let runtime = one_core();
    let before = cpu();
    runtime.block_on(async {
        let mut tools = Toolbox::offline(scenario, false);
        tools.replace("worker", Box::new(Worker));
        let run = Engine::new(EngineSettings::default()).start(Launch {
            model: ModelChoice::Live(Arc::new(Planner).into(), Duration::from_secs(60)),
            tools: Some(tools),
            ..Launch::scripted(Arc::clone(scenario), false)
        });
        run.wait_until_finished().await;
        let mut facts = Vec::new();
        run.bus().reader(Seq(0)).take(&mut facts, usize::MAX);
        assert!(facts.len() as u32 > 6 * TASKS);
    });
    cpu() - before
}

/// The same work without any of it: the plan read, each task spawned, bounded, its arguments
/// hashed, its result kept in plan order.
fn bare() -> Duration {
    let runtime = one_core();
    let before = cpu();
    runtime.block_on(async {
        let text = json!({ "kind": "plan", "tasks": tasks().collect::<Vec<_>>() }).to_string();
        let plan: Value = serde_json::from_str(&text).expect("a plan");
        let semaphore = Arc::new(Semaphore::new(AT_ONCE as usize));
        let mut set = JoinSet::new();
        for (place, task) in plan["tasks"].as_array().expect("tasks").iter().enumerate() {
            let args = task["args"].as_object().expect("arguments").clone();
            let semaphore = Arc::clone(&semaphore);
            set.spawn(async move {
                let _permit = semaphore.acquire().await.expect("open");
                let hash = args_hash(&args);
                let limit = Duration::from_secs(2);
                let result = tokio::time::timeout(limit, answer(&args)).await.expect("in time");
                (place, hash, result)
            });
        }
        let mut results = BTreeMap::new();
        while let Some(done) = set.join_next().await {
            let (place, hash, result) = done.expect("joined");
            results.insert(place, (hash, result));
        }
        assert_eq!(black_box(results).len() as u32, TASKS);
    });
    cpu() - before
}

fn main() -> std::process::ExitCode {
    let runtime = one_core();
    let guard = CallGuard::new("tool".into(), CallPolicy::default(), LIMIT, &[]);
    let all = pairs(
        9,
        || {
            timed(|| {
                runtime.block_on(async {
                    for number in 0..CALLS {
                        black_box(guarded(&guard, number).await);
                    }
                });
            })
        },
        || {
            timed(|| {
                runtime.block_on(async {
                    for number in 0..CALLS {
                        let _ = black_box(work(number).await);
                    }
                });
            })
        },
    );
    let (with, without) = all.medians();
    let each = (with - without) / f64::from(CALLS) * 1e9;
    report("all policies around one attempt", &format!("{each:.0} ns"), "1,000 ns");
    let scenario = load(SCENARIO, ScenarioOrigin::File("tasks.toml".into()), &[]);
    let scenario = Arc::new(scenario.expect("a good scenario"));
    let tasks = pairs(5, || orchestrated(&scenario), bare);
    let ratio = tasks.ratio();
    let (ours, theirs) = tasks.medians();
    report(
        "10,000 tasks, 256 at once / JoinSet with a semaphore, CPU",
        &format!("{ratio:.2}x ({:.0} / {:.0} ms)", ours * 1e3, theirs * 1e3),
        "2x",
    );
    held(&[("10,000 tasks", ratio, 2.0)])
}
