//! What a run of a few calls allocates: a short run has to stay small, since a machine plays
//! thousands of them.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Engine, EngineSettings, Launch, ModelChoice};
use crate::log::event::{Event, EventKind, ModelLabel, Purpose, Reply, Seq, World};
use crate::model::{ChatModel, ChatRequest, Failure, Listener};
use crate::scenario;
use crate::scenario::{Scenario, ScenarioOrigin};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Three contributions, one after another, and the brief.
const CALLS: u64 = 4;

const TABLE: &str = r#"
title = "A table"
pattern = "collaboration"
about = "Three contributions and a brief."
goal = "Decide whether the campaign may start."
[budget]
max_rounds = 1
max_messages = 3
max_seconds = 60
min_go_votes = 3
[facts.demand_signals]
projected_orders = 15200
conversion_lift_pct = 12.4
traffic_risk = "medium"
[collaboration]
sequence = ["risk_analyst", "risk_analyst", "risk_analyst"]
concurrency = "sequential"
finalize_prompt = "Write the brief."
[roles.risk_analyst]
prompt = "You judge payment safety: failures, chargebacks, incidents."
"#;

const CONTRIBUTION: &str = r#"{"agent":"risk_analyst","stance":"go","summary":"Within limits.","confidence":0.8,"actions":["Watch chargebacks"]}"#;

/// A model that answers after the runtime has had one turn.
struct Prompt;

impl ChatModel for Prompt {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "prompt".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        let text = match request.purpose {
            Purpose::Finalize => "The brief.",
            _ => CONTRIBUTION,
        };
        async move {
            tokio::task::yield_now().await;
            Ok(Reply::from_agent_text(text.into()))
        }
        .boxed()
    }
}

async fn played(engine: &Engine, scenario: &Arc<Scenario>) -> crate::log::bus::Bus {
    let run = engine.start(Launch {
        model: ModelChoice::Live(Arc::new(Prompt).into(), Duration::from_secs(60)),
        ..Launch::scripted(Arc::clone(scenario), false)
    });
    run.wait_until_finished().await;
    run.bus().clone()
}

#[test]
fn four_call_run_allocates_little() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let origin = ScenarioOrigin::File("table.toml".into());
    let scenario = Arc::new(scenario::load(TABLE, origin, &[]).expect("a good scenario"));
    let engine = Engine::new(EngineSettings { finished_bytes: 1, ..EngineSettings::default() });
    for _ in 0..20 {
        runtime.block_on(played(&engine, &scenario));
    }
    let mut log = None;
    let counted = allocation_counter::measure(|| {
        log = Some(runtime.block_on(played(&engine, &scenario)));
    });
    let mut facts = Vec::new();
    log.expect("a log").reader(Seq(0)).take(&mut facts, usize::MAX);
    assert!(counted.count_total <= 66 * CALLS, "{counted:?}");
    assert!(counted.bytes_total <= 35_000, "{counted:?}");
    let mut outcome = None;
    let folded = allocation_counter::measure(|| {
        outcome = World::from_events(facts.iter().map(|fact| &**fact)).outcome();
    });
    assert!(folded.bytes_total <= 15_000, "{folded:?}");
    assert!(outcome.expect("an outcome").stop_reason.is_success());
}

#[test]
fn event_stays_small() {
    let sizes = (size_of::<EventKind>(), size_of::<Event>());
    assert!(sizes.0 <= 88 && sizes.1 <= 112, "{sizes:?}");
}
