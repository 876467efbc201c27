//! Agents behind the gateway when calls fail (docs/rules/patterns.md, *Coordinator team*, *Swarm* and
//! *Tool gateway*): retries, faults, safe mode, breakers, permits, and changes by the operator meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::log::event::command::BreakerOverride;
use crate::log::event::{BoundaryId, Command, EventKind, FailureClass, Initiator};
use crate::log::facts::PatternFact;
use crate::log::facts::agents::{AgentFact, RosterChange, RosterCommand};
use crate::scenario::Scenario;
use crate::scenario::patterns::agents::AgentSpec;
use crate::scenario::spec::tool::InjectedFault;
use crate::support::team;
use crate::support::team::{
    Cast, agent, answer, calls, consults, ended, engine, fails, hands, launch, outcome, play,
    reason, says, scenario, swarm, team as coordinator, until, with_tools, world,
};
use serde_json::json;

const NEEDED: &str =
    "retries = { max_attempts = 1 }\nsafe_mode = { enabled = true, allow_partial = false }\n";
const TWICE: &str =
    "timeout_s = 5\nretries = { max_attempts = 2, backoff_ms = [100], jitter = false }\n";

fn table(agent: &str, rest: &str) -> String {
    format!("[tools.{agent}]\n{rest}")
}

fn pair(
    change: impl FnOnce(&mut crate::scenario::patterns::agents::Swarm),
    more: &str,
) -> Arc<Scenario> {
    scenario(vec![swarm("s", &["a", "b"], change), agent("a"), agent("b")], more)
}

#[tokio::test(start_paused = true)]
async fn required_member_stops_run_despite_fallback() {
    let more = table(
        "dev",
        "retries = { max_attempts = 3 }\nsafe_mode = { enabled = true, fallback = { stub = 1 } }\n",
    ) + &table("back", NEEDED);
    let agents = vec![
        coordinator("pm", &["dev"], |_| {}),
        coordinator("dev", &["back"], |_| {}),
        agent("back"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("dev", "x"),
        ("dev", 1) => consults("back", "y"),
        ("back", _) => fails(FailureClass::Reset),
        _ => says("went on"),
    });
    let world = play(&scenario(agents, &more), &cast).await;
    assert_eq!(reason(&world), "llm_error:connection");
    assert_eq!(cast.speakers(), ["pm", "dev", "back"], "nobody is told, and nothing tried again");
    // The same of a member of a nested swarm.
    let agents = vec![
        coordinator("pm", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |_| {}),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "pm" => consults("desk", "x"),
        "a" => hands("b", None),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(agents, &table("b", NEEDED)), &cast).await;
    assert_eq!(reason(&world), "llm_error:connection");
    assert_eq!(cast.speakers(), ["pm", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn required_failure_does_not_await_sibling() {
    let agents = vec![
        coordinator("pm", &["a", "b"], |team| team.parallel_tools = true),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "pm" => consults("a", "x").and("b", json!({ "request": "y" })),
        "a" => says("slow").after(50_000),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(agents, &table("b", NEEDED)), &cast).await;
    assert_eq!(
        (reason(&world).as_str(), world.progress.at.duration()),
        ("llm_error:connection", Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn open_model_breaker_ends_run() {
    let agents = vec![coordinator("pm", &["a"], |_| {}), agent("a")];
    let more = "";
    let mut scenario = Arc::try_unwrap(scenario(agents, more)).expect("nobody else has it");
    let breaker = Arc::make_mut(&mut scenario.llm).breaker.as_mut().expect("a breaker");
    breaker.fail_threshold = 1;
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("a", "x"),
        ("pm", _) => says("went on"),
        ("a", 1) => calls("none", json!({})),
        _ => fails(FailureClass::Reset),
    });
    // The member's failure opens the breaker of `llm`; the coordinator's next call is refused.
    let world = play(&Arc::new(scenario), &cast).await;
    assert_eq!(reason(&world), "circuit_open:llm");
    let error = outcome(&world)["error"].as_str().expect("what lies behind it").to_owned();
    assert_eq!(error, "The breaker of llm was open, so it was not called. Opened by: as told");
    let advice = world.stop_advice().expect("advice");
    assert!(!advice.contains("wait") && advice.contains("what opened it"), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn retried_hop_resets_limit_counts() {
    // The hand-off of attempt 1 is lost with its reply; the same of attempt 2 is the first.
    let scenario = pair(|swarm| swarm.limits.max_handoffs = 1, &table("a", TWICE));
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", None).after(1_000),
        _ => says("b answers"),
    });
    let run = engine().start(launch(&scenario, &cast));
    let by = Initiator::You;
    run.send(Command::Inject { tool: "a".into(), fault: InjectedFault::Reset, by });
    until(&run, |kind| matches!(kind, EventKind::CallRetried { .. })).await;
    run.send(Command::RemoveFault { tool: "a".into(), kind: InjectedFault::Reset.kind(), by });
    assert_eq!(answer(&world(&run).await), "b answers");
    // Nor is a text that was undone the best one, nor a refusal that was.
    let scenario = pair(
        |swarm| {
            swarm.limits.max_handoffs = 1;
            swarm.max_rejections = 2;
        },
        &table("b", TWICE),
    );
    let asked = AtomicU32::new(0);
    let cast = Cast::new(move |heard| match heard.agent.as_str() {
        "a" => hands("b", None).saying("a's text"),
        _ => match asked.fetch_add(1, Ordering::SeqCst) {
            0 => hands("a", None).saying("undone"),
            1 => says("late").after(60_000),
            _ => hands("a", None),
        },
    });
    let told = outcome(&play(&scenario, &cast).await);
    assert_eq!(
        (&told["stop_reason"], &told["partial_answer"]),
        (&json!("max_handoffs"), &json!("a's text"))
    );
    assert_eq!(told["degraded"], false, "a swarm's own limits are no failure of its member");
    assert_eq!(cast.speakers().len(), 1 + 2 + 2);
}

#[tokio::test(start_paused = true)]
async fn node_timeout_overrides_table_and_faults() {
    let bound = |swarm: &mut crate::scenario::patterns::agents::Swarm| {
        swarm.node_timeout = Some(Duration::from_secs(5));
    };
    let late = || {
        Cast::new(|heard| match heard.agent.as_str() {
            "a" => hands("b", None),
            _ => says("late").after(20_000),
        })
    };
    for more in [
        "",
        "timeout_s = 30\nretries = { max_attempts = 3 }\n",
        "safe_mode = { enabled = true, fallback = { x = 1 } }\n",
    ] {
        let cast = late();
        let more = if more.is_empty() { String::new() } else { table("b", more) };
        let world = play(&pair(bound, &more), &cast).await;
        assert_eq!(reason(&world), "node_timeout:b");
        assert_eq!(world.progress.at.duration(), Duration::from_secs(5));
        assert_eq!(cast.speakers(), ["a", "b"]);
    }
    for fault in [InjectedFault::Hang, InjectedFault::Latency { ms: 60_000 }] {
        let run = engine().start(launch(&pair(bound, ""), &late()));
        run.send(Command::Inject { tool: "b".into(), fault, by: Initiator::You });
        let world = world(&run).await;
        assert_eq!(reason(&world), "node_timeout:b", "{fault:?}");
        assert_eq!(world.progress.at.duration(), Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn swarm_stop_reports_last_failure() {
    let more = table(
        "b",
        "timeout_s = 2\nretries = { max_attempts = 2, backoff_ms = [10000], jitter = false }\n",
    );
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", None),
        _ => fails(FailureClass::Reset),
    });
    let run = engine().start(launch(&pair(|_| {}, &more), &cast));
    until(&run, |kind| matches!(kind, EventKind::CallRetried { .. })).await;
    let action = BreakerOverride::Trip;
    run.send(Command::Breaker { tool: "b".into(), action, by: Initiator::You });
    assert_eq!(reason(&world(&run).await), "circuit_open:b");
}

/// The results that a coordinator receives if it consults `a` this often and `a`'s model fails in this
/// way.
async fn told(class: FailureClass, times: u32, more: &str) -> (Vec<String>, usize) {
    let agents: Vec<AgentSpec> = vec![coordinator("pm", &["a"], |_| {}), agent("a")];
    let cast = Cast::new(move |heard| match (heard.agent.as_str(), heard.round) {
        ("pm", round) if round <= times => consults("a", &format!("{round}")),
        ("pm", _) => says("done"),
        _ => fails(class),
    });
    play(&scenario(agents, more), &cast).await;
    let shown = cast.heard().pop().expect("asked").messages;
    let results = shown.into_iter().filter(|it| it.starts_with("tool: ")).collect();
    (results, cast.speakers().iter().filter(|name| *name == "a").count())
}

#[tokio::test(start_paused = true)]
async fn member_failure_keeps_its_class() {
    let breaker = table(
        "a",
        "retries = { max_attempts = 1 }\nbreaker = { fail_threshold = 2, open_for_s = 60 }\n",
    );
    let (limited, _) = told(FailureClass::RateLimited, 3, &breaker).await;
    assert_eq!(limited.last().map(String::as_str), Some("tool: error: llm_error:rate_limited"));
    let (reset, asked) = told(FailureClass::Reset, 3, &breaker).await;
    assert_eq!(
        (reset.last().map(String::as_str), asked),
        (Some("tool: error: circuit_open:a. a takes no calls for now: go on without it."), 2)
    );
    let again = table("a", "retries = { max_attempts = 3, backoff_ms = [100], jitter = false }\n");
    assert_eq!(told(FailureClass::Reset, 1, &again).await.1, 3);
    assert_eq!(told(FailureClass::Auth, 1, &again).await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn agents_have_no_last_good_fallback() {
    let more = table(
        "a",
        "retries = { max_attempts = 1 }\nsafe_mode = { enabled = true, cache_ttl_s = 600 }\n",
    );
    let agents = vec![
        coordinator("pm", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |_| {}),
        agent("a"),
        agent("b"),
    ];
    let asked = AtomicU32::new(0);
    let cast = Cast::new(move |heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("desk", "refund order 1"),
        ("pm", 2) => consults("desk", "what is 2+2"),
        ("pm", _) => says("done"),
        _ if asked.fetch_add(1, Ordering::SeqCst) == 0 => says("order 1 is refunded"),
        _ => fails(FailureClass::Reset),
    });
    play(&scenario(agents, &more), &cast).await;
    let told = cast.heard().pop().expect("asked").last;
    assert_eq!(told, "tool: error: llm_error:connection");
}

#[tokio::test(start_paused = true)]
async fn session_shows_hop_fallback_in_place() {
    let more = table(
        "b",
        "retries = { max_attempts = 1 }\nsafe_mode = { enabled = true, fallback = { say = \"call us\" } }\n",
    );
    let scenario = scenario(
        vec![swarm("s", &["a", "b"], |_| {}), agent("a"), with_tools("b", &["look"])],
        &more,
    );
    let cast =
        Cast::new(|heard| match (heard.agent.as_str(), heard.request.message, heard.round) {
            ("a", 1, _) => hands("b", Some("m")),
            ("b", 1, 1) => calls("look", json!({})),
            ("b", 1, _) => fails(FailureClass::Reset),
            _ => says("second"),
        });
    let engine = engine();
    let first = engine.start(launch(&scenario, &cast));
    let told = outcome(&world(&first).await);
    assert_eq!(
        (&told["answer"], &told["degraded"]),
        (&json!("{\"say\":\"call us\"}"), &json!(true))
    );
    let mut next = launch(&scenario, &cast);
    next.session = first.follow_up("What did you say?");
    world(&engine.start(next)).await;
    let shown = cast.heard().pop().expect("asked").messages;
    assert_eq!(
        shown[shown.len() - 2..],
        ["user: [b] {\"say\":\"call us\"}", "user: What did you say?"]
    );
    assert!(!shown.iter().any(|it| it.contains("look")), "what was undone is not told: {shown:?}");
}

#[tokio::test(start_paused = true)]
async fn departed_target_gets_no_handoff() {
    let scenario = scenario(
        vec![swarm("s", &["a", "b", "c"], |_| {}), agent("a"), agent("b"), agent("c")],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("a", 1) => hands("b", None),
        (name, _) => says(&format!("{name} answers")),
    });
    let mut launch = launch(&scenario, &cast);
    launch.schedule.breaks.push(BoundaryId::new("handoff:1:b"));
    let run = engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    let change = RosterChange::Remove { agent: "b".into() };
    run.send(Command::Roster(RosterCommand { swarm: "s".into(), change, by: Initiator::You }));
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    assert_eq!(
        (answer(&world).as_str(), cast.speakers()),
        ("a answers", vec!["a".to_owned(), "a".to_owned()])
    );
    assert_eq!(cast.heard()[1].last, "tool: error: there is no agent \"b\"; there are: c");
}

#[tokio::test(start_paused = true)]
async fn pause_does_not_wait_for_queue() {
    let more = table("a", "bulkhead = { max_in_flight = 1, max_wait_ms = 86400000 }\n");
    let scenario = scenario(
        vec![
            coordinator("pm", &["a"], |team| team.parallel_tools = true),
            with_tools("a", &["look"]),
        ],
        &more,
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("a", "x").and("a", json!({ "request": "y" })),
        ("a", 1) => calls("look", json!({})).after(1_000),
        _ => says("ok").after(1_000),
    });
    let run = engine().start(launch(&scenario, &cast));
    tokio::time::sleep(Duration::from_millis(500)).await;
    run.send(Command::Pause { by: Initiator::You });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    assert_eq!(answer(&world), "ok");
    assert_eq!(cast.shown("pm", 2)[3..], ["tool: ok", "tool: ok"]);
}

#[tokio::test(start_paused = true)]
async fn nested_independent_history_shows_own_turns() {
    let agents = vec![
        coordinator("pm", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |swarm| swarm.independent_history = true),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("desk", "x").saying("the plan"),
        ("a", _) => hands("b", Some("m")),
        _ => says("done"),
    });
    play(&scenario(agents, ""), &cast).await;
    assert_eq!(cast.shown("b", 1), ["system: I am b.", "user: m"]);
    assert!(cast.shown("a", 1).contains(&"user: [pm] the plan".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn stuck_check_counts_consecutive_calls() {
    let agents = || vec![swarm("s", &["a", "b"], |_| {}), with_tools("a", &["look"]), agent("b")];
    let asked = async |script: fn(&team::Heard) -> team::Line, agents: Vec<AgentSpec>| {
        let cast = Cast::new(script);
        let world = play(&scenario(agents, ""), &cast).await;
        (reason(&world), cast.heard().len())
    };
    let team = || vec![coordinator("pm", &["a"], |_| {}), agent("a")];
    // A call that is nobody's tool, the name of the hand-off's among them, repeats as any other.
    assert_eq!(asked(|_| hands("zz", None), team()).await, ("stuck:pm".into(), 3));
    assert_eq!(asked(|_| hands("zz", None), agents()).await, ("stuck:a".into(), 3));
    // Something else in between is no row; three in one reply are, and none is carried out.
    let between: fn(&team::Heard) -> team::Line = |heard| match heard.round {
        1 | 3 | 5 => calls("look", json!({})),
        2 | 4 => hands("zz", None),
        _ => says("ok"),
    };
    assert_eq!(asked(between, agents()).await, ("success".into(), 6));
    let at_once: fn(&team::Heard) -> team::Line =
        |_| calls("look", json!({})).and("look", json!({})).and("look", json!({}));
    assert_eq!(asked(at_once, agents()).await, ("stuck:a".into(), 1));
}

#[tokio::test(start_paused = true)]
async fn handoff_past_tool_rounds_is_dropped() {
    let mut looks = with_tools("a", &["look"]);
    if let crate::scenario::patterns::agents::AgentKind::Model(model) = &mut looks.kind {
        model.max_tool_rounds = 1;
    }
    let cast = Cast::new(|heard| match heard.round {
        1 => calls("look", json!({})),
        _ => hands("b", None),
    });
    let world =
        play(&scenario(vec![swarm("s", &["a", "b"], |_| {}), looks, agent("b")], ""), &cast).await;
    assert_eq!(
        (reason(&world).as_str(), outcome(&world)["handoffs"].clone()),
        ("max_tool_rounds", json!([]))
    );
}

#[tokio::test(start_paused = true)]
async fn last_replier_stays_owner() {
    let scenario = scenario(
        vec![
            swarm("s", &["a", "b", "c"], |swarm| swarm.cross_request_transfer = true),
            agent("a"),
            agent("b"),
            agent("c"),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.request.message) {
        ("a", 1) => hands("b", None),
        ("b", 2) => hands("c", None),
        ("c", 2) => says("never").after(50_000),
        (name, message) => says(&format!("{name} answers {message}")),
    });
    let engine = engine();
    let first = engine.start(launch(&scenario, &cast));
    world(&first).await;
    let mut next = launch(&scenario, &cast);
    next.session = first.follow_up("2");
    let second = engine.start(next);
    assert!(second.follow_up("too early").is_none(), "it has left nothing yet");
    tokio::time::sleep(Duration::from_secs(1)).await;
    second.send(Command::Cancel);
    world(&second).await;
    let mut next = launch(&scenario, &cast);
    next.session = second.follow_up("3");
    assert_eq!(answer(&world(&engine.start(next)).await), "b answers 3");
}

#[tokio::test(start_paused = true)]
async fn session_skips_empty_reply() {
    let scenario = pair(|_| {}, "");
    let cast = Cast::new(|heard| if heard.request.message == 1 { says(" ") } else { says("ok") });
    let engine = engine();
    let first = engine.start(launch(&scenario, &cast));
    assert_eq!(reason(&world(&first).await), "llm_empty");
    let mut next = launch(&scenario, &cast);
    next.session = first.follow_up("2");
    world(&engine.start(next)).await;
    let shown = cast.heard().pop().expect("asked").messages;
    assert_eq!(shown, ["system: I am a.", "user: The goal.", "user: 2"]);
}

#[tokio::test(start_paused = true)]
async fn fabricated_names_are_bounded() {
    let cast = Cast::new(|heard| match heard.round {
        1 => hands(&"x".repeat(100_000), None).and(&"y".repeat(50_000), json!({})),
        _ => says("ok"),
    });
    let run = engine().start(launch(&pair(|_| {}, ""), &cast));
    world(&run).await;
    let mut seen = 0;
    for event in ended(&run).await {
        if let EventKind::Pattern(PatternFact::Agents(AgentFact::ToolCallRefused {
            tool,
            text,
            ..
        })) = &event.kind
        {
            assert!(tool.len() < 100 && text.len() < 200, "{tool} {text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
    let shown = cast.heard().swap_remove(1).messages;
    let mut results = shown.iter().filter(|it| it.starts_with("tool: "));
    assert!(results.all(|it| it.len() < 200));
    // The best text so far, in the failure of a nested swarm.
    let agents = vec![
        coordinator("pm", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |swarm| {
            swarm.limits.max_handoffs = 1;
            swarm.max_rejections = 1;
        }),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("desk", "q"),
        ("a", _) => hands("b", None),
        ("b", _) => hands("a", None).saying(&"z".repeat(100_000)),
        _ => says("done"),
    });
    play(&scenario(agents, ""), &cast).await;
    assert!(cast.heard().pop().expect("asked").last.len() < 400);
}

#[tokio::test(start_paused = true)]
async fn member_attempts_use_own_random_numbers() {
    let more = table(
        "a",
        "timeout_s = 5\nretries = { max_attempts = 8, backoff_ms = [100], jitter = false }\n",
    );
    let agents = vec![coordinator("pm", &["a"], |_| {}), with_tools("a", &["look"])];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("a", "x"),
        ("a", 1) => calls("look", json!({})),
        ("a", _) => says("x").after(60_000),
        _ => says("done"),
    });
    let run = engine().start(launch(&scenario(agents, &more), &cast));
    let fault = InjectedFault::Errors { percent: 50, status: 404, times: None };
    run.send(Command::Inject { tool: "look".into(), fault, by: Initiator::You });
    world(&run).await;
    let seen = cast.heard().into_iter().filter(|heard| heard.agent == "a" && heard.round == 2);
    let seen: std::collections::BTreeSet<String> = seen.map(|heard| heard.last).collect();
    assert_eq!(seen.len(), 2, "half of eight fail, and the others do not: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn agent_without_table_uses_default_policy() {
    let (told, asked) = told(FailureClass::Reset, 7, "").await;
    assert_eq!(asked, 5, "once each, until the breaker of section 5 opens");
    assert_eq!(
        told[4..],
        [
            "tool: error: llm_error:connection",
            "tool: error: circuit_open:a. a takes no calls for now: go on without it.",
            "tool: error: circuit_open:a. a takes no calls for now: go on without it."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn oversized_integer_returns_to_model() {
    let big = r#"{"id": 12345678901234567890123}"#;
    let cast = Cast::new(move |heard| match heard.round {
        1 => says("").and_raw("look", big),
        2 => calls("look", json!({ "id": u64::MAX })),
        _ => says("Done."),
    });
    let world = play(&scenario(vec![with_tools("a", &["look"])], ""), &cast).await;
    assert_eq!(answer(&world), "Done.");
    let told = "tool: error: 12345678901234567890123 in the arguments of look is a whole number \
                beyond 64 bits and would be changed; give it as a text; tools: look";
    let heard = cast.heard();
    assert_eq!(heard[1].last, told);
    assert_eq!(heard[2].last, r#"tool: {"seen":3}"#);
    // Two such numbers are not the same call, though they read as the same.
    let cast = Cast::new(|heard| match heard.round {
        round @ 1..=4 => {
            says("").and_raw("look", &format!(r#"{{"id": 1234567890123456789012{round}}}"#))
        }
        _ => says("Done."),
    });
    let world = play(&scenario(vec![with_tools("a", &["look"])], ""), &cast).await;
    assert_eq!(answer(&world), "Done.");
}
