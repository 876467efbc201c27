//! Whole runs of collaboration under paused time: what comes out, how long it takes, and what a
//! person can do to one while it goes on.

use std::time::Duration;

use crate::engine::{Launch, RunHandle, Schedule};
use crate::log::event::{BoundaryId, Command, EventKind, Initiator, RunId, World};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::{CollaborationFact, SeatStatus};
use crate::log::world::collaboration::SeatState;
use crate::log::world::{RunState, SpanState};
use crate::scenario::patterns::collaboration::Decision;
use crate::support::table;
use crate::support::table::{BRIEF, facts, outcome, says, scenario, until, world};
use serde_json::{Value, json};
use tokio::time::Instant;

fn script(rows: &[String]) -> String {
    rows.concat() + BRIEF
}

fn agreed() -> String {
    script(&[says("a", "", "go"), says("b", "", "go"), says("c", "", "go")])
}

fn never() -> String {
    script(&[says("a", "", "caution"), says("b", "", "caution"), says("c", "", "caution")])
}

async fn instantly(script: &str, sets: &[&str]) -> Value {
    outcome(Launch::scripted(scenario(script, sets), true)).await
}

#[tokio::test(start_paused = true)]
async fn agreeing_round_matches_source() {
    let outcome = instantly(&agreed(), &[]).await;
    let own = ["status", "stop_reason", "answer", "final_decision", "rounds_used"];
    let picked: Vec<_> = own.iter().map(|key| outcome[*key].clone()).collect();
    assert_eq!(picked, [json!("ok"), json!("success"), json!("The brief."), json!("go"), json!(1)]);
    let stance = |agent| json!({"agent": agent, "stance": "go", "confidence": 0.8});
    assert_eq!(
        outcome["team_summary"],
        json!({"what": "lunch", "stances": [stance("a"), stance("b")], "conflicts": []})
    );
    let row = |agent| json!({"round": 1, "agent": agent, "stance": "go", "confidence": 0.8, "accepted": true});
    assert_eq!(
        outcome["trace"],
        json!([row("a"), row("b"), {"round": 1, "conflicts": [], "decision": "go"}])
    );
    let said = |agent: &str| json!({"agent": agent, "stance": "go", "summary": format!("{agent} says go"), "confidence": 0.8, "actions": ["act"]});
    assert_eq!(
        outcome["history"],
        json!([{"round": 1, "contributions": [said("a"), said("b")], "conflicts": [], "decision": "go"}])
    );
    assert_eq!(outcome["usage"]["calls"], 3);
    assert_eq!(outcome["usage"]["cost_usd"], Value::Null);
    assert!(outcome.get("phase").is_none());
    // The source's keys come first, in its order.
    let keys: Vec<_> = outcome.as_object().expect("an object").keys().take(8).collect();
    assert_eq!(
        keys,
        [
            "status",
            "stop_reason",
            "answer",
            "final_decision",
            "rounds_used",
            "team_summary",
            "trace",
            "history"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn rounds_continue_until_policy_decides() {
    let rows = script(&[
        says("a", "", "go"),
        says("b", "round = 1", "block"),
        says(
            "b",
            "when = \"open_conflicts == ['blocking_vs_non_block'] && recent_rounds[0].stances[1].stance == 'block'\"",
            "go",
        ),
        says("b", "", "caution"),
    ]);
    let outcome = instantly(&rows, &[]).await;
    assert_eq!(outcome["final_decision"], "go");
    assert_eq!(outcome["rounds_used"], 2);
    assert_eq!(outcome["history"][0]["conflicts"], json!(["blocking_vs_non_block"]));
    assert_eq!(outcome["history"][0]["decision"], Value::Null);
    assert_eq!(
        outcome["trace"][2],
        json!({"round": 1, "conflicts": ["blocking_vs_non_block"], "decision": "next_round"})
    );
}

#[tokio::test(start_paused = true)]
async fn each_stop_has_reason_and_phase() {
    let raw = |role: &str, text: &str| format!("\n[[script]]\nrole = \"{role}\"\nraw = {text:?}\n");
    // What b does after a has agreed, and what is said in the place of a.
    let then_b = |row: String| script(&[says("a", "", "go"), row]);
    let fails = |fault: &str| then_b(says("b", &format!("fault = {{ {fault}, times = 9 }}"), "go"));
    let named = |agent: &str| {
        let reply = json!({ "agent": agent, "stance": "go", "summary": "s", "confidence": 1, "actions": ["x"] });
        script(&[raw("a", &reply.to_string()), says("b", "", "go")])
    };
    let invalid = |fault: &str| format!("invalid_contribution:{fault}");
    let error = |error: &str| format!("llm_error:{error}");
    let empty_brief = then_b(says("b", "", "go")).replacen("The brief.", "  ", 1);
    // script, override, reason, phase, rows of trace
    let table: [(String, &str, String, &str, usize); 16] = [
        (never(), "", "max_rounds_reached".into(), "round_3", 9),
        (never(), "budget.max_messages=3", "max_messages".into(), "round_2:b", 4),
        (agreed(), "roles.c.when_off=deny", "agent_denied:c".into(), "round_1:c", 2),
        (then_b(raw("b", "not JSON")), "", invalid("missing_keys"), "round_1:b", 1),
        (then_b(raw("b", "")), "", invalid("missing_keys"), "round_1:b", 1),
        (then_b(raw("b", "[1]")), "", invalid("not_object"), "round_1:b", 1),
        (named("b"), "", invalid("agent_mismatch:a"), "round_1:a", 0),
        (named("c"), "", invalid("agent_not_allowed:c"), "round_1:a", 0),
        (fails("status = 500"), "", error("http_500"), "round_1:b", 1),
        (fails("status = 401"), "", error("auth"), "round_1:b", 1),
        (fails("status = 429"), "", error("rate_limited"), "round_1:b", 1),
        (fails("kind = \"refused\""), "", error("connection"), "round_1:b", 1),
        (fails("kind = \"bad_response\""), "", error("bad_response"), "round_1:b", 1),
        (fails("kind = \"hang\""), "", "llm_timeout".into(), "round_1:b", 1),
        (fails("kind = \"hang\""), "budget.max_seconds=5", "max_seconds".into(), "round_1:b", 1),
        (empty_brief, "", "llm_empty".into(), "finalize", 3),
    ];
    for concurrency in ["parallel", "sequential"] {
        for (script, also, reason, phase, rows) in &table {
            let set = format!("collaboration.concurrency={concurrency}");
            let sets = [&*set, *also];
            let sets = if also.is_empty() { &sets[..1] } else { &sets[..] };
            let outcome = instantly(script, sets).await;
            assert_eq!(outcome["status"], "stopped", "{reason}");
            assert_eq!(outcome["stop_reason"], *reason, "{concurrency}");
            assert_eq!(outcome["phase"], *phase, "{concurrency} {reason}");
            assert_eq!(
                outcome["trace"].as_array().map(Vec::len),
                Some(*rows),
                "{concurrency} {reason}"
            );
            assert!(outcome["history"].is_array());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn outcome_keeps_refused_reply() {
    let rows = |raw: &str| {
        says("a", "", "go") + &format!("\n[[script]]\nrole = \"b\"\nraw = '{raw}'\n") + BRIEF
    };
    let outcome = instantly(&rows("Sure! Here it is"), &[]).await;
    assert_eq!(outcome["raw_contribution"], json!({"invalid": true, "raw": "Sure! Here it is"}));
    let outcome = instantly(&rows("{\"stance\": \"go\"}"), &[]).await;
    assert_eq!(outcome["raw_contribution"], json!({"stance": "go"}));
    let outcome = instantly(&agreed(), &["roles.c.when_off=deny"]).await;
    assert_eq!(outcome["raw_contribution"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn removes_code_fences_only_when_configured() {
    let fenced = r#"```json
{"agent":"b","stance":"go","summary":"s","confidence":1,"actions":["x"]}
```"#;
    let rows = says("a", "", "go")
        + &format!("\n[[script]]\nrole = \"b\"\nraw = '''{fenced}'''\n")
        + BRIEF;
    let refused = instantly(&rows, &[]).await;
    assert_eq!(refused["stop_reason"], "invalid_contribution:missing_keys");
    let launch = Launch::scripted(scenario(&rows, &["model.repair=fences"]), true);
    let run = table::engine().start(launch);
    let facts = facts(&run).await;
    assert!(facts.iter().any(|fact| matches!(fact.kind, EventKind::ReplyRepaired { .. })));
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.collaboration().and_then(|it| it.decision()), Some(Decision::Go));
}

#[tokio::test(start_paused = true)]
async fn script_answers_repeated_request() {
    let broken = "\n[[script]]\nrole = \"b\"\nagain = 0\nraw = '{\"stance\": \"go\"}'\n";
    let rows = says("a", "", "go") + broken + &says("b", "again = 1", "go") + BRIEF;
    let refused = instantly(&rows, &[]).await;
    assert_eq!(refused["stop_reason"], "invalid_contribution:missing_keys");
    assert_eq!(refused["detail"], "keys missing: agent, summary, confidence, actions");
    let decided = instantly(&rows, &["model.ask_again=1"]).await;
    assert_eq!(decided["final_decision"], "go");
    assert_eq!(decided["usage"]["calls"], 4);
}

#[tokio::test(start_paused = true)]
async fn skips_calls_that_must_stop_run() {
    let outcome = instantly(&agreed(), &["roles.c.when_off=deny"]).await;
    assert_eq!(outcome["usage"]["calls"], 2);
    let outcome = instantly(&never(), &["budget.max_messages=1"]).await;
    assert_eq!(outcome["usage"]["calls"], 1);
    assert_eq!(outcome["stop_reason"], "max_messages");
}

#[tokio::test(start_paused = true)]
async fn parallel_round_takes_slowest_seat_time() {
    let rows =
        script(&[says("a", "latency = \"700ms\"", "go"), says("b", "latency = \"1900ms\"", "go")]);
    let outcome_of = async |concurrency: &str| {
        let set = format!("collaboration.concurrency={concurrency}");
        outcome(Launch::scripted(scenario(&rows, &[&set]), false)).await
    };
    let (parallel, sequential) = (outcome_of("parallel").await, outcome_of("sequential").await);
    let took = |outcome: &Value| outcome["elapsed_ms"].as_u64().expect("a time");
    assert!((1900..=1995).contains(&took(&parallel)), "{}", took(&parallel));
    assert!((2600..=2730).contains(&took(&sequential)), "{}", took(&sequential));
    for key in ["status", "final_decision", "trace", "history", "team_summary"] {
        assert_eq!(parallel[key], sequential[key]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateway_retries_and_says_so() {
    let rows =
        script(&[says("a", "", "go"), says("b", "fault = { status = 503, times = 1 }", "go")]);
    let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), true));
    let facts = facts(&run).await;
    let retried: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::CallRetried { attempt, wait_ms, status, .. } => {
                Some((*attempt, *wait_ms, *status))
            }
            _ => None,
        })
        .collect();
    assert_eq!(retried, [(2, 250, Some(503))]);
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.tally.retries, 1);
    assert_eq!(world.tally.retrying, 0);
    assert_eq!(world.spans.open(), 0);
    assert_eq!(world.outcome().map(|outcome| outcome.status), Some("ok"));
}

#[tokio::test(start_paused = true)]
async fn deadline_cancels_running_keeps_accepted() {
    let rows = script(&[says("a", "", "go"), says("b", "latency = \"9s\"", "go")]);
    let started = Instant::now();
    let launch = Launch::scripted(scenario(&rows, &["budget.max_seconds=3"]), false);
    let run = table::engine().start(launch);
    let facts = facts(&run).await;
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.spans.open(), 1, "only the round was cut short");
    let it = world.collaboration().expect("a collaboration");
    let states: Vec<_> = it.rounds[0].seats.iter().map(|seat| seat.state).collect();
    assert_eq!(states, [SeatState::Accepted, SeatState::Cancelled, SeatState::Off]);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.stop_reason.to_string(), "max_seconds");
    assert_eq!(outcome.fields.get("history"), Some(json!([])));
    assert_eq!(
        outcome.fields.get("trace").map(|trace| trace.as_array().map_or(0, Vec::len)),
        Some(1)
    );
}

#[tokio::test(start_paused = true)]
async fn fails_fast_without_time_to_retry() {
    let rows =
        script(&[says("a", "fault = { status = 429, retry_after_s = 60, times = 9 }", "go")]);
    let outcome =
        instantly(&rows, &["collaboration.sequence=['a']", "budget.min_go_votes=1"]).await;
    assert_eq!(outcome["stop_reason"], "llm_error:rate_limited");
    assert_eq!(outcome["usage"]["attempts"], 1);
    assert!(outcome["elapsed_ms"].as_u64() < Some(100));
}

#[tokio::test(start_paused = true)]
async fn pause_stops_run_clock() {
    let rows = script(&[
        says("a", "latency = \"1s\"", "caution"),
        says("b", "latency = \"2s\"", "caution"),
    ]);
    let launch = Launch::scripted(scenario(&rows, &["budget.max_seconds=7"]), false);
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(Command::Pause { by: Initiator::You });
    let pausing = until(&run, |kind| matches!(kind, EventKind::Pausing { .. })).await;
    let paused = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    assert_eq!(paused.at.since(pausing.at), Duration::from_secs(2), "both seats finish first");
    assert_eq!(paused.kind, EventKind::Paused { at: vec![BoundaryId::new("round:2")] });
    tokio::time::advance(Duration::from_secs(3600)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    let closed = world.run.progress.closed.expect("closed");
    assert_eq!(closed.reason.to_string(), "max_rounds_reached");
    assert_eq!((closed.elapsed_ms, closed.paused_ms), (6000, 3_600_000));
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_can_be_cancelled() {
    let launch = Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..Launch::scripted(scenario(&agreed(), &[]), true)
    };
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run.send(Command::Cancel);
    let world = world(&run).await;
    assert_eq!(world.outcome().map(|it| it.stop_reason.to_string()), Some("cancelled".into()));
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(world.tally.calls, 0);
}

#[tokio::test(start_paused = true)]
async fn step_moves_seat_or_round() {
    let launch = Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..Launch::scripted(scenario(&never(), &["budget.max_rounds=2"]), true)
    };
    let run = table::engine().start(launch);
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut log = Vec::new();
    let mut rests = async || loop {
        let seen = log.len();
        assert!(reader.next_batch(&mut log, 1).await > 0, "the run ended before it rested");
        if let EventKind::Paused { at } = &log[seen].kind {
            break at.iter().map(ToString::to_string).collect::<Vec<_>>();
        }
    };
    assert_eq!(rests().await, ["round:1"]);
    for expected in ["message:1:a", "message:1:b", "round:2", "message:2:a"] {
        run.send(Command::Step);
        assert_eq!(rests().await, [expected]);
    }
    let calls = World::from_events(facts_now(&run).iter().map(|fact| &**fact)).tally.calls;
    assert_eq!(calls, 2, "the second round has asked nobody yet");
    run.send(Command::StepRound);
    let world = world(&run).await;
    assert_eq!(
        world.outcome().map(|it| it.stop_reason.to_string()),
        Some("max_rounds_reached".into())
    );
}

fn facts_now(run: &crate::engine::RunHandle) -> Vec<std::sync::Arc<crate::log::event::Event>> {
    let mut facts = Vec::new();
    run.bus().reader(crate::log::event::Seq(0)).take(&mut facts, usize::MAX);
    facts
}

#[tokio::test(start_paused = true)]
async fn flag_change_applies_next_round() {
    let rows = script(&[
        says("a", "latency = \"1s\"", "caution"),
        says("b", "latency = \"1s\"", "caution"),
        says("c", "latency = \"1s\"", "caution"),
    ]);
    let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), false));
    let flag = |on| Command::SetFlag { flag: "third".into(), on, by: Initiator::You };
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(flag(true));
    let changed = until(&run, |kind| matches!(kind, EventKind::FlagChanged { .. })).await;
    let EventKind::FlagChanged { boundary, on, by, .. } = &changed.kind else { unreachable!() };
    assert_eq!((boundary.as_str(), on, by), ("round:2", &true, &Initiator::You));
    until(&run, |kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
                round: 2,
                ..
            }))
        )
    })
    .await;
    run.send(flag(false));
    let world = world(&run).await;
    let it = world.collaboration().expect("a collaboration");
    let third: Vec<_> = it.rounds.iter().map(|round| round.seats[2].asked).collect();
    assert_eq!(third, [SeatStatus::Skipped, SeatStatus::Asked, SeatStatus::Skipped]);
    assert_eq!(it.rounds[1].seats[2].state, SeatState::Accepted);
}

#[tokio::test(start_paused = true)]
async fn reverted_flag_leaves_no_trace() {
    let rows = script(&[says("a", "latency = \"1s\"", "go"), says("b", "latency = \"1s\"", "go")]);
    let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), false));
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    for on in [true, false] {
        run.send(Command::SetFlag { flag: "third".into(), on, by: Initiator::You });
    }
    run.send(Command::SetFlag { flag: "unheard_of".into(), on: true, by: Initiator::You });
    let facts = facts(&run).await;
    assert!(!facts.iter().any(|fact| matches!(fact.kind, EventKind::FlagChanged { .. })));
}

#[tokio::test(start_paused = true)]
async fn launch_sets_flags_and_breakpoints() {
    let launch = Launch {
        flags: vec![("third".into(), true)],
        schedule: Schedule {
            flags: vec![(BoundaryId::new("round:3"), "third".into(), false)],
            breaks: vec![BoundaryId::new("message:2:b")],
            start_paused: false,
        },
        ..Launch::scripted(scenario(&never(), &[]), true)
    };
    let run = table::engine().start(launch);
    let paused = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    assert_eq!(paused.kind, EventKind::Paused { at: vec![BoundaryId::new("message:2:b")] });
    run.send(Command::Resume { by: Initiator::Schedule });
    let world = world(&run).await;
    let it = world.collaboration().expect("a collaboration");
    let third: Vec<_> = it.rounds.iter().map(|round| round.seats[2].asked).collect();
    assert_eq!(third, [SeatStatus::Asked, SeatStatus::Asked, SeatStatus::Skipped]);
    assert_eq!(
        world.settings.flags[0].changed.as_ref().map(|(_, at, by)| (at.as_str(), *by)),
        Some(("round:3", Initiator::Schedule))
    );
}

#[tokio::test(start_paused = true)]
async fn early_resume_cancels_pause() {
    let rows = script(&[says("a", "latency = \"1s\"", "go"), says("b", "latency = \"1s\"", "go")]);
    let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), false));
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(Command::Pause { by: Initiator::You });
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    assert_eq!(world.outcome().map(|it| (it.status, it.paused_ms)), Some(("ok", 0)));
    assert_eq!(world.progress.stage, RunState::Closed);
}

#[tokio::test(start_paused = true)]
async fn cancel_closes_calls_keeps_partial_text() {
    let rows = script(&[says("a", "latency = \"4s\"", "go"), says("b", "latency = \"4s\"", "go")]);
    let engine = table::engine();
    let run = engine.start(Launch::scripted(scenario(&rows, &[]), false));
    let spoke = until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await.span;
    let mut seen = 0;
    while run.bus().with_live(spoke, |live| live.pieces).unwrap_or_default() < 3 {
        seen = run.bus().live_changed(seen).await;
    }
    assert_eq!(engine.in_flight(), 2);
    engine.shutdown().await;
    assert_eq!(engine.in_flight(), 0);
    let facts = facts(&run).await;
    let partial = facts.iter().find_map(|fact| match &fact.kind {
        EventKind::AttemptFailed(failed) if fact.span == spoke => failed.partial.clone(),
        _ => None,
    });
    assert!(
        partial.is_some_and(|text| !text.is_empty()),
        "what it had said stays with its attempt"
    );
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.spans.get(spoke).map(|span| span.state == SpanState::Open), Some(false));
    assert!(run.bus().with_live(spoke, |_| ()).is_none(), "the live slot is gone");
}

#[tokio::test(start_paused = true)]
async fn failed_condition_is_recorded_as_false() {
    let rows = script(&[
        says("a", "when = \"facts.missing > 1\"", "block"),
        says("a", "", "go"),
        says("b", "", "go"),
    ]);
    let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), true));
    let facts = facts(&run).await;
    let places: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::ConditionFailed { place, .. } => Some(place.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(places, ["script[0].when"]);
    assert_eq!(
        World::from_events(facts.iter().map(|fact| &**fact)).outcome().map(|it| it.status),
        Some("ok")
    );
}

#[tokio::test(start_paused = true)]
async fn seed_determines_run() {
    let rows =
        script(&[says("a", "latency = \"1s..9s\"", "go"), says("b", "latency = \"1s..9s\"", "go")]);
    let took = async |seed| {
        let launch = Launch { seed: Some(seed), ..Launch::scripted(scenario(&rows, &[]), false) };
        outcome(launch).await["elapsed_ms"].as_u64()
    };
    assert_eq!(took(1).await, took(1).await);
    assert_ne!(took(1).await, took(2).await);
}

#[tokio::test(start_paused = true)]
async fn session_lists_runs_with_own_ids() {
    let engine = table::engine();
    let scenario = scenario(&agreed(), &[]);
    let runs: Vec<_> =
        (0..50).map(|_| engine.start(Launch::scripted(scenario.clone(), true))).collect();
    for run in &runs {
        run.wait_until_finished().await;
    }
    let ids: std::collections::BTreeSet<_> = runs.iter().map(|run| run.id().clone()).collect();
    assert_eq!(ids.len(), 50);
    assert_eq!(engine.log().len(), 100, "started and closed, once each");
}

#[tokio::test(start_paused = true)]
async fn forgets_oldest_finished_logs() {
    let settings = crate::engine::EngineSettings { finished_bytes: 200_000, ..Default::default() };
    let engine = crate::engine::Engine::new(settings);
    let scenario = scenario(&agreed(), &[]);
    let mut ids = Vec::new();
    for nth in 0..40 {
        // An id that the engine makes may be that of a run it has forgotten.
        let id = RunId::new(format!("r-{nth}"));
        let run = engine.start_as(id.clone(), Launch::scripted(scenario.clone(), true));
        run.wait_until_finished().await;
        ids.push(id);
    }
    let kept: Vec<bool> = ids.iter().map(|id| engine.run(id).is_some()).collect();
    assert!(!kept[0] && kept[39]);
    assert!(kept.is_sorted(), "the oldest go first");
    let mut facts = Vec::new();
    engine.log().reader(crate::log::event::Seq(0)).take(&mut facts, usize::MAX);
    let forgotten = facts
        .iter()
        .filter(|fact| matches!(fact.kind, EventKind::SessionRunDropped { .. }))
        .count();
    assert_eq!(forgotten, kept.iter().filter(|kept| !**kept).count(), "and the log says so");
}

#[tokio::test(start_paused = true)]
async fn endless_run_log_is_bounded() {
    let settings = crate::engine::EngineSettings { finished_bytes: 1, ..Default::default() };
    let engine = crate::engine::Engine::new(settings);
    let mut reader = engine.log().reader(crate::log::event::Seq(0));
    let scenario = scenario(&agreed(), &[]);
    let mut read = 0;
    while engine.log().first_seq().0 == 0 {
        let run = engine.start(Launch::scripted(scenario.clone(), true));
        run.wait_until_finished().await;
        assert!(engine.log().weight() < 2 << 20, "{} bytes", engine.log().weight());
        let mut events = Vec::new();
        reader.take(&mut events, usize::MAX);
        read += events.len() as u64;
    }
    assert_eq!(read, engine.log().len(), "a reader that follows misses none");
}

#[tokio::test(start_paused = true)]
async fn suspension_stops_clock_during_call() {
    let rows = script(&[says("a", "latency = \"2s\"", "go"), says("b", "latency = \"2s\"", "go")]);
    let launch = Launch::scripted(scenario(&rows, &["budget.max_seconds=5"]), false);
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(Command::Pause { by: Initiator::Suspend });
    // A suspended process runs nothing: only its clock goes on. The calls come in afterwards.
    tokio::time::advance(Duration::from_secs(3600)).await;
    run.send(Command::Resume { by: Initiator::Suspend });
    let world = world(&run).await;
    let closed = world.run.progress.closed.expect("closed");
    assert_eq!(closed.reason.to_string(), "success");
    assert!(closed.paused_ms >= 3_600_000 && closed.elapsed_ms < 5_000);
}

#[tokio::test(start_paused = true)]
async fn user_pause_outlasts_suspension() {
    let launch = Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..Launch::scripted(scenario(&agreed(), &[]), true)
    };
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run.send(Command::Pause { by: Initiator::Suspend });
    run.send(Command::Resume { by: Initiator::Suspend });
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(matches!(stage(&run), RunState::Paused { .. }));
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(world(&run).await.outcome().map(|it| it.status), Some("ok"));
}

/// A run whose first calls take two seconds, and that was paused by these while they are out.
async fn held(held_by: &[Initiator], breaks: &[&str]) -> RunHandle {
    let rows = script(&[says("a", "latency = \"2s\"", "go"), says("b", "latency = \"2s\"", "go")]);
    let breaks = breaks.iter().map(|at| BoundaryId::new(*at)).collect();
    let launch = Launch {
        schedule: Schedule { breaks, ..Schedule::default() },
        ..Launch::scripted(scenario(&rows, &[]), false)
    };
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    for by in held_by {
        run.send(Command::Pause { by: *by });
    }
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run
}

fn stage(run: &RunHandle) -> RunState {
    World::from_events(facts_now(run).iter().map(|fact| &**fact)).progress.stage.clone()
}

#[tokio::test(start_paused = true)]
async fn two_holds_need_two_releases() {
    use Initiator::{Runner, Store};
    for (first, second) in [(Store, Runner), (Runner, Store)] {
        for ends in [[first, second], [second, first]] {
            let run = held(&[first, second, first], &[]).await;
            run.send(Command::Resume { by: ends[0] });
            assert!(matches!(stage(&run), RunState::Paused { .. }), "{ends:?}");
            run.send(Command::Resume { by: ends[1] });
            assert_eq!(stage(&run), RunState::Running, "{ends:?}");
            let by: Vec<Initiator> = facts_now(&run)
                .iter()
                .filter_map(|fact| match &fact.kind {
                    EventKind::Pausing { by, .. } | EventKind::Resumed { by, .. } => Some(*by),
                    _ => None,
                })
                .collect();
            assert_eq!(by, [first, first], "the events are those of one pause");
            assert_eq!(world(&run).await.outcome().map(|it| it.status), Some("ok"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn user_pause_and_breakpoint_outlast_hold() {
    let by_person = held(&[Initiator::Runner, Initiator::You], &[]).await;
    // The boundary after the calls that are out.
    let at_break = held(&[Initiator::Runner], &["finalize"]).await;
    for run in [by_person, at_break] {
        run.send(Command::Resume { by: Initiator::Runner });
        assert!(matches!(stage(&run), RunState::Paused { .. }), "{:?}", stage(&run));
        run.send(Command::Resume { by: Initiator::You });
        assert_eq!(world(&run).await.outcome().map(|it| it.status), Some("ok"));
    }
}

/// Between `paused` and the event that resumes the run, no call starts: an open call would cost money
/// while the run's time is stopped.
fn nothing_moves_while_paused(facts: &[std::sync::Arc<crate::log::event::Event>]) {
    let mut paused = false;
    for fact in facts {
        match &fact.kind {
            EventKind::Paused { .. } => paused = true,
            EventKind::Resumed { .. } | EventKind::Stepped { .. } | EventKind::RunClosed(_) => {
                paused = false;
            }
            kind => {
                let moves = kind.name().starts_with("call.") || kind.name().starts_with("attempt.");
                assert!(!(paused && moves), "{} while paused", kind.name());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pause_between_seats_waits_for_call() {
    let rows = script(&[says("a", "latency = \"2s\"", "go"), says("b", "latency = \"1s\"", "go")]);
    let launch = Launch {
        schedule: Schedule { breaks: vec![BoundaryId::new("message:1:b")], ..Schedule::default() },
        ..Launch::scripted(scenario(&rows, &[]), false)
    };
    let run = table::engine().start(launch);
    let paused = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    assert_eq!(paused.at.duration(), Duration::from_secs(2), "the call of a comes back first");
    run.send(Command::Resume { by: Initiator::You });
    nothing_moves_while_paused(&facts(&run).await);
}

/// A pause before the next round can be taken back, and outlasts a suspension.
#[tokio::test(start_paused = true)]
async fn only_the_user_ends_round_pauses() {
    let rows = script(&[
        says("a", "latency = \"1s\"", "caution"),
        says("b", "latency = \"1s\"", "caution"),
    ]);
    for suspended in [false, true] {
        let run = table::engine().start(Launch::scripted(scenario(&rows, &[]), false));
        until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
        run.send(Command::StepRound);
        if suspended {
            run.send(Command::Pause { by: Initiator::Suspend });
            run.send(Command::Resume { by: Initiator::Suspend });
        } else {
            run.send(Command::Resume { by: Initiator::You });
            assert_eq!(stage(&run), RunState::Running, "the screen does not go on saying pausing");
            run.send(Command::StepRound);
        }
        let paused = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
        assert_eq!(paused.kind, EventKind::Paused { at: vec![BoundaryId::new("round:2")] });
        run.send(Command::Cancel);
        facts(&run).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pausing_run_spends_no_suspended_time() {
    let rows = script(&[says("a", "latency = \"2s\"", "go"), says("b", "latency = \"2s\"", "go")]);
    let launch = Launch::scripted(scenario(&rows, &["budget.max_seconds=5"]), false);
    let run = table::engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    run.send(Command::Pause { by: Initiator::You });
    run.send(Command::Pause { by: Initiator::Suspend });
    tokio::time::advance(Duration::from_secs(3600)).await;
    run.send(Command::Resume { by: Initiator::Suspend });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(world(&run).await.outcome().map(|it| it.status), Some("ok"));
}
