//! Teams within teams that are stopped, paused and stepped in the middle: nothing is left over.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Launch, Schedule};
use crate::log::event::{AttemptFailed, Command, EventKind, FailureClass, Initiator};
use crate::log::world::SpanState;
use crate::log::world::agents::HopState;
use crate::scenario::Scenario;
use crate::support::team::{
    Cast, Heard, Line, agent, answer, calls, consults, ended, engine, hands, launch, outcome,
    reason, says, scenario, swarm, team as coordinator, until, with_tools, world,
};
use serde_json::json;

/// Three levels: a lead over two teams at once, one of them over a swarm whose member asks a tool.
fn deep(more: &str) -> Arc<Scenario> {
    scenario(
        vec![
            coordinator("lead", &["left", "right"], |team| team.parallel_tools = true),
            coordinator("left", &["desk"], |_| {}),
            coordinator("right", &["x", "y"], |team| team.parallel_tools = true),
            swarm("desk", &["one", "two"], |_| {}),
            agent("one"),
            with_tools("two", &["look"]),
            agent("x"),
            agent("y"),
        ],
        more,
    )
}

fn script(heard: &Heard) -> Line {
    match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("left", "l").and("right", json!({ "request": "r" })),
        ("left", 1) => consults("desk", "d"),
        ("right", 1) => consults("x", "x").and("y", json!({ "request": "y" })),
        ("one", _) => hands("two", None).after(100),
        ("two", 1) => calls("look", json!({})).after(100),
        ("x" | "y", _) => says("here").after(2_000),
        (name, _) => says(&format!("{name} done")).after(10_000),
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_children_releases_permits() {
    // In the middle of a nested tool call, a nested hop, calls at once.
    for after in [50, 150, 250, 1_000, 5_000] {
        let cast = Cast::new(script);
        let run = engine().start(launch(&deep(""), &cast));
        tokio::time::sleep(Duration::from_millis(after)).await;
        let out: u32 = run.tool_snapshots().iter().map(|tool| tool.fill.in_flight).sum();
        assert!(out >= 4, "{out} permits are out after {after} ms");
        run.send(Command::Cancel);
        // Every span closed, every permit back: `world` looks.
        let world = world(&run).await;
        assert_eq!(reason(&world), "cancelled");
        assert_eq!(world.progress.closed.as_ref().map(|closed| closed.in_flight), Some(0));
        let team = world.agents().expect("a team");
        assert!(team.running().next().is_none());
        let facts = ended(&run).await;
        assert!(matches!(facts.last().map(|it| &it.kind), Some(EventKind::RunClosed(_))));
        // The call in the middle says that it was stopped, not that it failed.
        for event in &facts {
            if let EventKind::AttemptFailed(failed) = &event.kind {
                let AttemptFailed { class, .. } = &**failed;
                assert_eq!(*class, FailureClass::Cancelled);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_nested_team() {
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "x" => says("slow").after(50_000),
        // No agent fails, and it is never enough.
        "right" => consults("x", &format!("again {}", heard.round)),
        _ => script(heard),
    });
    let world = world(&engine().start(launch(&deep(""), &cast))).await;
    assert_eq!(reason(&world), "max_seconds");
    assert_eq!(world.progress.at.duration(), Duration::from_secs(600));
}

#[tokio::test(start_paused = true)]
async fn pause_stops_all_branches_and_clocks() {
    let cast = Cast::new(script);
    let more = "[tools.right]\ntimeout_s = 14\n[tools.desk]\ntimeout_s = 14\n";
    let run = engine().start(launch(&deep(more), &cast));
    tokio::time::sleep(Duration::from_millis(50)).await;
    run.send(Command::Pause { by: Initiator::You });
    let rest = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    let EventKind::Paused { at } = &rest.kind else { panic!("{rest:?}") };
    let at: Vec<&str> = at.iter().map(|id| id.as_str()).collect();
    assert_eq!(at, ["handoff:1:lead/left.1/desk.1/two", "ask:2:lead/right.1"]);
    // The members' time-outs of 14 s would have passed many times.
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    assert_eq!(answer(&world), "lead done");
    let team = world.agents().expect("a team");
    assert!(team.hops.iter().all(|hop| !matches!(hop.state, HopState::Failed(_))));
    let told = outcome(&world);
    assert!(told["paused_ms"].as_u64().expect("a number") >= 7_200_000);
    assert!(told["elapsed_ms"].as_u64().expect("a number") < 60_000);
}

#[tokio::test(start_paused = true)]
async fn member_timeout_excludes_pauses() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("right", 1) => consults("x", "x"),
        ("right", _) => says("right done").after(8_000),
        _ => script(heard),
    });
    let run = engine().start(launch(&deep("[tools.right]\ntimeout_s = 9\n"), &cast));
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    run.send(Command::Pause { by: Initiator::You });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    // 2 s for x and 8 s of its own are more than 9 s, whatever the pause.
    let team = world.agents().expect("a team");
    let right = team.hops.iter().find(|hop| hop.to.as_str() == "right").expect("right");
    assert!(
        matches!(&right.state, HopState::Failed(why) if why.to_string() == "tool_error:right:timeout")
    );
    let x = team.hops.iter().find(|hop| hop.to.as_str() == "x").expect("x");
    assert_eq!(x.state, HopState::Done);
}

#[tokio::test(start_paused = true)]
async fn step_moves_one_branch() {
    let cast = Cast::new(script);
    let launch = Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..launch(&deep(""), &cast)
    };
    let run = engine().start(launch);
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut log = Vec::new();
    let mut stepped = Vec::new();
    for _ in 0..4 {
        loop {
            let seen = log.len();
            assert!(reader.next_batch(&mut log, 1).await > 0, "the run ended");
            if matches!(log[seen].kind, EventKind::Paused { .. }) {
                break;
            }
        }
        run.send(Command::Step);
        until(&run, |kind| matches!(kind, EventKind::Stepped { .. })).await;
    }
    run.send(Command::Resume { by: Initiator::You });
    world(&run).await;
    for event in &ended(&run).await {
        if let EventKind::Stepped { boundary, .. } = &event.kind {
            stepped.push(boundary.to_string());
        }
    }
    assert_eq!(
        stepped,
        ["ask:1:lead", "ask:1:lead/left.1", "ask:1:lead/right.1", "ask:1:lead/left.1/desk.1/one.1"]
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_log_same_order() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let cast = Cast::new(script);
        let run = engine().start(launch(&deep(""), &cast));
        let facts = ended(&run).await;
        // Beside the head, which has the run's id and the wall clock.
        let told = facts[1..]
            .iter()
            .map(|event| format!("{:?} {:?} {:?}", event.at, event.span, event.kind));
        logs.push(told.collect::<Vec<_>>());
    }
    assert_eq!(logs[0], logs[1]);
}

#[tokio::test(start_paused = true)]
async fn nested_run_closes_every_span() {
    let cast = Cast::new(script);
    let run = engine().start(launch(&deep(""), &cast));
    let facts = ended(&run).await;
    let world = crate::log::event::World::from_events(facts.iter().map(|event| &**event));
    for event in &facts {
        let Some((parent, _)) = event.kind.opens() else { continue };
        let span = world.spans.get(event.span).expect("a span");
        assert_eq!((span.parent, span.state), (parent, SpanState::Done), "{:?}", span.kind);
        let above = world.spans.get(parent).expect("its parent");
        assert!(above.opened <= span.opened && span.closed <= above.closed);
    }
}

#[tokio::test(start_paused = true)]
async fn pause_works_after_sibling_finished() {
    let scenario = scenario(
        vec![
            coordinator("lead", &["quick", "slow"], |team| team.parallel_tools = true),
            agent("quick"),
            with_tools("slow", &["look"]),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("quick", "q").and("slow", json!({ "request": "s" })),
        ("slow", 1) => calls("look", json!({})).after(5_000),
        (name, _) => says(&format!("{name} done")).after(500),
    });
    let run = engine().start(launch(&scenario, &cast));
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.send(Command::Pause { by: Initiator::You });
    let rest = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    let EventKind::Paused { at } = &rest.kind else { panic!("{rest:?}") };
    assert_eq!(at[0].as_str(), "ask:2:lead/slow.1");
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(answer(&world(&run).await), "lead done");
}
