//! What a swarm costs: a hand-off with a model that answers at once, and the memory of a run of ten
//! thousand of them.

mod paired;

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use futures::FutureExt;
use futures::future::BoxFuture;
use paired::{cpu, held, report};
use roundtable::bench::Failure;
use roundtable::{
    ChatModel, ChatRequest, Engine, EngineSettings, Launch, Listener, ModelChoice, ModelLabel,
    Purpose, Reply, RunHandle, Scenario, ScenarioOrigin, ToolCall, Usage, load,
};

const SCENARIO: &str = r#"
title = "A relay"
pattern = "swarm"
goal = "Carry the baton round."
[budget]
max_seconds = 600
[swarm]
root = "relay"
[agents.relay]
description = "Runs."
entry = "ann"
members = ["ann", "ben", "cleo"]
max_handoffs = 0
repetitive_handoff_window = 0
[agents.ann]
description = "Runs first."
instruction = "Run, then hand over."
[agents.ben]
description = "Runs second."
instruction = "Run, then hand over."
[agents.cleo]
description = "Runs third."
instruction = "Run, then hand over."
[[script]]
text = "Nobody asks offline."
"#;

/// Hands over so often, then answers.
struct Relay(u32);

impl ChatModel for Relay {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "relay".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        let Purpose::ModelCall { agent, turn, .. } = &request.purpose else { unreachable!() };
        let (place, next) = match agent.as_str() {
            "ann" => (0, "ben"),
            "ben" => (1, "cleo"),
            _ => (2, "ann"),
        };
        let hop = 3 * (turn - 1) + place;
        let mut reply = Reply::from_agent_text("I have run my part.".into());
        reply.usage = Some(Usage::new(request.messages.words(), 5));
        if hop < self.0 {
            let arguments =
                format!("{{\"agent_name\":\"{next}\",\"message\":\"Go, part {hop}.\"}}");
            reply.tool_calls = [ToolCall {
                id: format!("call_{hop}").into(),
                name: "transfer_to_agent".into(),
                arguments: arguments.into(),
            }]
            .into();
        }
        async move { Ok(reply) }.boxed()
    }
}

fn run(scenario: &Arc<Scenario>, handoffs: u32) -> RunHandle {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let run = Engine::new(EngineSettings::default()).start(Launch {
            model: ModelChoice::Live(Arc::new(Relay(handoffs)).into(), Duration::from_secs(60)),
            ..Launch::scripted(Arc::clone(scenario), true)
        });
        run.wait_until_finished().await;
        run
    })
}

/// CPU seconds of many runs of so many hand-offs.
fn runs(scenario: &Arc<Scenario>, handoffs: u32, times: u32) -> f64 {
    let before = cpu();
    for _ in 0..times {
        run(scenario, handoffs);
    }
    (cpu() - before).as_secs_f64()
}

/// What a run of so many hand-offs takes of memory while it goes, and what is left of it: its log.
fn memory(scenario: &Arc<Scenario>, handoffs: u32) -> AllocationInfo {
    let mut kept = None;
    let info = measure(|| kept = Some(run(scenario, handoffs)));
    assert!(kept.is_some_and(|run| run.bus().len() > u64::from(handoffs) * 9));
    info
}

fn main() -> std::process::ExitCode {
    let scenario = load(SCENARIO, ScenarioOrigin::Shipped("relay.toml"), &[]);
    let scenario = Arc::new(scenario.expect("a scenario"));
    // The difference of runs with and without hand-offs leaves out what a run costs by itself.
    let (times, handoffs) = (400, 20);
    let mut each: Vec<f64> = (0..9)
        .map(|_| {
            let with = runs(&scenario, handoffs, times);
            let without = runs(&scenario, 0, times);
            (with - without) * 1e6 / f64::from(times * handoffs)
        })
        .collect();
    each.sort_by(f64::total_cmp);
    let hand_off = each[each.len() / 2];
    let told = format!("{hand_off:.1} us");
    report("a hand-off with a model that answers at once, CPU", &told, "20 us");

    let (short, long) = (memory(&scenario, 1_000), memory(&scenario, 10_000));
    let a_hop = |info: &AllocationInfo, hops: f64| info.bytes_max as f64 / hops;
    let (few, many) = (a_hop(&short, 1e3), a_hop(&long, 1e4));
    report(
        "memory of a hop at its most, 10 000 hops / 1 000",
        &format!("{:.2}x ({many:.0} / {few:.0} bytes)", many / few),
        "1.20x",
    );
    held(&[("us of a hand-off", hand_off, 20.0), ("memory of a hop", many / few, 1.2)])
}
