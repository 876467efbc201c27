//! Swarms (docs/rules/patterns.md, *Swarm*): handoffs, limits, what each member is shown, time.

use std::sync::Arc;
use std::time::Duration;

use crate::log::event::{Command, EventKind, FailureClass, Initiator, SpanId, World};
use crate::log::facts::PatternFact;
use crate::log::facts::agents::{AgentFact, RosterChange, RosterCommand};
use crate::log::world::agents::{HopKind, HopState};
use crate::scenario::Scenario;
use crate::scenario::patterns::agents::{Swarm, SwarmLimits};
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::support::team;
use crate::support::team::{
    Cast, Heard, Line, agent, answer, calls, consults, ended, engine, fails, hands, launch,
    outcome, play, reason, says, scenario, swarm, team, until, with_tools, world,
};
use serde_json::{Value, json};

/// A swarm of model agents that starts at the first.
fn of(members: &[&str], change: impl FnOnce(&mut Swarm)) -> Arc<Scenario> {
    let agents = members.iter().map(|name| agent(name));
    scenario([swarm("swarm", members, change)].into_iter().chain(agents).collect(), "")
}

/// `a` hands over to `b` with a message, which answers.
fn once(heard: &Heard) -> Line {
    match heard.agent.as_str() {
        "a" => hands("b", Some("your turn")).saying("Not mine."),
        _ => says("b answers."),
    }
}

#[tokio::test(start_paused = true)]
async fn entry_starts_last_reply_wins() {
    let cast = Cast::new(once);
    let world = play(&of(&["a", "b", "c"], |_| {}), &cast).await;
    assert_eq!(cast.speakers(), ["a", "b"], "no summary, and who handed over does not go on");
    let told = outcome(&world);
    assert_eq!(told["answer"], "b answers.");
    assert_eq!((&told["final_agent"], &told["owner"]), (&json!("b"), &json!("b")));
    assert_eq!((&told["pattern"], &told["status"]), (&json!("swarm"), &json!("ok")));
    assert_eq!(
        told["handoffs"],
        json!([{ "from": "a", "to": "b", "message": "your turn", "at_ms": 0 }])
    );
    let team = world.agents().expect("a team");
    let hops: Vec<_> = team.hops.iter().map(|hop| (hop.kind, hop.state.clone())).collect();
    assert_eq!(hops, [(HopKind::Start, HopState::HandedOver), (HopKind::Handoff, HopState::Done)]);
}

#[tokio::test(start_paused = true)]
async fn members_offer_handoff_to_others() {
    let cast = Cast::new(once);
    play(&of(&["a", "b", "c"], |_| {}), &cast).await;
    let offer = cast.heard()[1].request.tools[0].clone();
    assert_eq!(&*offer.name, "transfer_to_agent");
    assert!(
        offer.description.ends_with("\n- a: What a does.\n- c: What c does."),
        "{}",
        offer.description
    );
    assert_eq!(offer.parameters["properties"]["agent_name"]["enum"], json!(["a", "c"]));
    assert_eq!(offer.parameters["properties"]["message"]["type"], "string");
    assert_eq!(offer.parameters["required"], json!(["agent_name"]));
    // A swarm of one has no agent to hand over to.
    let cast = Cast::new(|_| says("Alone."));
    play(&of(&["a"], |_| {}), &cast).await;
    assert_eq!(cast.offered("a", 1), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn target_receives_message_or_default_input() {
    for (message, input) in [(Some("look here"), "look here"), (None, "The goal.")] {
        let cast = Cast::new(move |heard| match heard.agent.as_str() {
            "a" => hands("b", message),
            _ => says("done"),
        });
        play(&of(&["a", "b"], |swarm| swarm.independent_history = true), &cast).await;
        assert_eq!(cast.shown("b", 1)[1..], [format!("user: {input}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn shared_history_names_other_members() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.turn, heard.round) {
        ("a", 1, 1) => calls("look", json!({"at": 1})).saying("First I look."),
        ("a", 1, _) => hands("b", Some("see for yourself")),
        ("b", ..) => hands("a", Some("I saw it")).saying("Indeed."),
        _ => says("Then it is so."),
    });
    let members = vec![swarm("s", &["a", "b"], |_| {}), with_tools("a", &["look"]), agent("b")];
    play(&scenario(members, ""), &cast).await;
    assert_eq!(
        cast.shown("b", 1),
        [
            "system: I am b.",
            "user: The goal.",
            "user: [a] First I look.",
            "user: [a] called look with {\"at\":1}\n[look] {\"seen\":3}",
            "user: see for yourself",
        ]
    );
    assert_eq!(
        cast.shown("a", 3),
        [
            "system: I am a.",
            "user: The goal.",
            "assistant: First I look. [look {\"at\":1}]",
            "tool: {\"seen\":3}",
            "assistant:  [transfer_to_agent {\"agent_name\":\"b\",\"message\":\"see for yourself\"}]",
            "tool: handed over to b",
            "user: [a] handed over to b: see for yourself",
            "user: [b] Indeed.",
            "user: I saw it",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn independent_history_shows_own_turns() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.turn) {
        ("a", 1) => hands("b", Some("one")).saying("I begin."),
        ("b", 1) => hands("c", Some("two")).saying("b's own."),
        ("c", 1) => hands("b", Some("three")).saying("c's own."),
        ("b", 2) => hands("a", Some("four")),
        _ => says("The end."),
    });
    play(&of(&["a", "b", "c"], |swarm| swarm.independent_history = true), &cast).await;
    assert_eq!(
        cast.shown("b", 2),
        [
            "system: I am b.",
            "user: one",
            "assistant: b's own. [transfer_to_agent {\"agent_name\":\"c\",\"message\":\"two\"}]",
            "tool: handed over to c",
            "user: three",
        ]
    );
    assert_eq!(cast.shown("c", 1), ["system: I am c.", "user: two"]);
    let entry = cast.shown("a", 2);
    for said in ["user: [b] b's own.", "user: [c] c's own.", "user: four"] {
        assert!(entry.iter().any(|message| message == said), "{said} in {entry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn handoff_input_rewrites_target_input() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.turn) {
        ("a", 1) => hands("b", Some("m")),
        ("b", _) => hands("c", None),
        _ => says("done"),
    });
    let template = "{from}>{to}: {message} ({root_input}; {parent_input})";
    let swarm = of(&["a", "b", "c"], |swarm| {
        swarm.handoff_input = Some(HandoffTemplate::parse_template(template));
        swarm.independent_history = true;
    });
    play(&swarm, &cast).await;
    let first = "a>b: m (The goal.; The goal.)";
    assert_eq!(cast.shown("b", 1)[1], format!("user: {first}"));
    assert_eq!(cast.shown("c", 1)[1], format!("user: b>c:  (The goal.; {first})"));
}

#[tokio::test(start_paused = true)]
async fn target_input_is_bounded() {
    let cast = Cast::new(|heard| {
        let next = match heard.agent.as_str() {
            "a" => "b",
            "b" => "c",
            _ => "a",
        };
        if heard.turn > 6 { says("done") } else { hands(next, None) }
    });
    let swarm = of(&["a", "b", "c"], |swarm| {
        swarm.handoff_input = Some(HandoffTemplate::parse_template("{parent_input}{parent_input}"));
        swarm.independent_history = true;
    });
    play(&swarm, &cast).await;
    let longest = cast.heard().iter().map(|heard| heard.last.len()).max();
    assert!(longest.is_some_and(|longest| (60_000..70_000).contains(&longest)), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn invalid_target_does_not_count() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("a", 1) => hands("z", None),
        ("a", 2) => hands("a", None),
        ("a", 3) => calls("transfer_to_agent", json!({})),
        ("a", _) => hands("b", None),
        _ => says("done"),
    });
    let world = play(&of(&["a", "b", "c"], |_| {}), &cast).await;
    let shown = cast.shown("a", 4);
    let told: Vec<&String> = shown.iter().filter(|it| it.starts_with("tool: ")).collect();
    assert_eq!(
        told,
        [
            "tool: error: there is no agent \"z\"; there are: b, c",
            "tool: error: a cannot hand over to itself; there are: b, c",
            "tool: error: `agent_name` of transfer_to_agent is not a text; there are: b, c",
        ]
    );
    let team = world.agents().expect("a team");
    assert_eq!(team.swarms[0].guard.handoffs, 1);
    assert_eq!(outcome(&world)["handoffs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn first_handoff_wins_after_other_calls() {
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", Some("first"))
            .and("look", json!({}))
            .and("transfer_to_agent", json!({"agent_name": "c"})),
        name => says(&format!("{name} has it")),
    });
    let members = vec![
        swarm("s", &["a", "b", "c"], |_| {}),
        with_tools("a", &["look"]),
        agent("b"),
        agent("c"),
    ];
    let world = play(&scenario(members, ""), &cast).await;
    assert_eq!(answer(&world), "b has it");
    assert_eq!(cast.speakers(), ["a", "b"]);
    // The tool was asked before the hand-off, and its result is in the history.
    let looked = "user: [a] called look with {}\n[look] {\"seen\":3}";
    assert!(cast.shown("b", 1).iter().any(|message| message == looked));
    assert_eq!(outcome(&world)["handoffs"][0]["at_ms"], 1_000);
    let kinds: Vec<_> = outcome(&world)["history"]
        .as_array()
        .expect("history")
        .iter()
        .filter_map(|line| line.get("refused_call"))
        .cloned()
        .collect();
    let text = "error: only the first handoff of a reply counts; hand over to one agent at a time";
    assert_eq!(kinds, [json!({ "tool": "transfer_to_agent", "text": text })]);
}

fn insists(heard: &Heard) -> Line {
    match heard.agent.as_str() {
        "a" => hands("b", None).saying("Over to b."),
        _ => hands("a", None).saying("Back to a."),
    }
}

#[tokio::test(start_paused = true)]
async fn max_rejections_stops_with_best_text() {
    let cast = Cast::new(insists);
    let world = play(&of(&["a", "b", "c"], |_| {}), &cast).await;
    let told = outcome(&world);
    assert_eq!(told["stop_reason"], "repetitive_handoff");
    assert_eq!(told["partial_answer"], "Back to a.");
    // b a b a b a b pass, the eighth (to a) is refused, and so are two more.
    assert_eq!(told["handoffs"].as_array().map(Vec::len), Some(7));
    assert_eq!(cast.speakers().len(), 8 + 2);
    let last = cast.heard().pop().expect("asked").last;
    assert_eq!(
        last,
        "tool: error: repetitive handoff detected. Answer yourself now, or hand over to c."
    );
    let team = world.agents().expect("a team");
    assert_eq!((team.swarms[0].guard.handoffs, team.swarms[0].rejections), (10, 3));
    assert_eq!((told["owner"].clone(), told["phase"].clone()), (json!(null), json!("b")));
}

#[tokio::test(start_paused = true)]
async fn refusal_lists_next_options() {
    // (who is in the swarm, its limits, the tools of `a`, what the member of the last hop is told)
    let limits = |most, window, unique| SwarmLimits {
        max_handoffs: most,
        repetitive_handoff_window: window,
        repetitive_handoff_min_unique: unique,
    };
    let table: [(&[&str], SwarmLimits, &[&str], &str); 5] = [
        (&["a", "b"], limits(1, 0, 0), &[], "max handoffs exceeded: 1. Answer yourself now."),
        (
            &["a", "b", "c"],
            limits(1, 0, 0),
            &["look"],
            "max handoffs exceeded: 1. Answer yourself now, or call look.",
        ),
        (&["a", "b"], limits(0, 2, 3), &[], "repetitive handoff detected. Answer yourself now."),
        (
            &["a", "b", "c", "d"],
            limits(0, 4, 3),
            &[],
            "repetitive handoff detected. Answer yourself now, or hand over to one of c, d.",
        ),
        (
            &["a", "b", "c"],
            limits(0, 4, 3),
            &["look"],
            "repetitive handoff detected. Answer yourself now, or call look, or hand over to c.",
        ),
    ];
    for (members, limits, tools, wanted) in table {
        let mut agents = vec![swarm("s", members, |swarm| swarm.limits = limits)];
        agents.extend(members.iter().map(|name| with_tools(name, tools)));
        let cast = Cast::new(|heard| {
            if heard.last.starts_with("tool: error:") {
                return says("I answer.");
            }
            insists(heard)
        });
        let world = play(&scenario(agents, ""), &cast).await;
        let told = cast.heard().pop().expect("asked").last;
        assert_eq!(told, format!("tool: error: {wanted}"));
        assert_eq!(answer(&world), "I answer.");
    }
}

/// It works on without a word, for longer than a run may take.
fn working(heard: &Heard) -> Line {
    calls("look", json!({ "n": heard.round })).after(50_000)
}

#[tokio::test(start_paused = true)]
async fn stopped_swarm_keeps_best_text() {
    let slow = |heard: &Heard| match heard.agent.as_str() {
        "a" => hands("b", None).saying("The first half."),
        _ => working(heard),
    };
    let two = || of(&["a", "b"], |_| {});
    // The deadline.
    let timed = play(&two(), &Cast::new(slow)).await;
    assert_eq!(reason(&timed), "max_seconds");
    assert_eq!(timed.progress.at.duration(), Duration::from_secs(600));
    assert_eq!(outcome(&timed)["partial_answer"], "The first half.");
    // A person.
    let run = engine().start(launch(&two(), &Cast::new(slow)));
    until(&run, |kind| {
        matches!(kind, EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade { .. })))
    })
    .await;
    run.send(Command::Cancel);
    let cancelled = world(&run).await;
    assert_eq!(reason(&cancelled), "cancelled");
    assert_eq!(outcome(&cancelled)["partial_answer"], "The first half.");
    let told = |kind: &EventKind| {
        matches!(kind, EventKind::Pattern(PatternFact::Agents(AgentFact::AnswerPartial { .. })))
    };
    assert_eq!(ended(&run).await.iter().filter(|event| told(&event.kind)).count(), 1);
    // Where nothing was said there is nothing to keep.
    let silent = play(&two(), &Cast::new(working)).await;
    assert_eq!(reason(&silent), "max_seconds");
    assert!(outcome(&silent).get("partial_answer").is_none());
    // A swarm within a team receives its place in the team; the run's answer is the team's.
    let cast = Cast::new(move |heard| match heard.agent.as_str() {
        "lead" => consults("s", "do it"),
        _ => slow(heard),
    });
    let agents =
        vec![team("lead", &["s"], |_| {}), swarm("s", &["a", "b"], |_| {}), agent("a"), agent("b")];
    let run = engine().start(launch(&scenario(agents, ""), &cast));
    let nested = world(&run).await;
    assert_eq!(reason(&nested), "max_seconds");
    assert!(outcome(&nested).get("partial_answer").is_none());
    let facts = ended(&run).await;
    let partial = facts.iter().find(|event| told(&event.kind)).expect("it is told");
    assert_ne!(partial.span, SpanId::RUN);
}

#[tokio::test(start_paused = true)]
async fn circular_twenty_first_handoff_is_refused() {
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", None).saying("on"),
        "b" => hands("c", None),
        _ => hands("a", None),
    });
    let world = play(&of(&["a", "b", "c"], |_| {}), &cast).await;
    assert_eq!(reason(&world), "max_handoffs");
    assert_eq!(outcome(&world)["handoffs"].as_array().map(Vec::len), Some(20));
    assert_eq!(
        cast.heard().pop().expect("asked").last,
        "tool: error: max handoffs exceeded: 20. Answer yourself now."
    );
    let class = world.progress.closed.as_ref().map(|closed| closed.reason.class());
    assert_eq!(class, Some(crate::log::event::stop::StopClass::Budget));
}

#[tokio::test(start_paused = true)]
async fn refused_member_may_still_answer() {
    let cast = Cast::new(|heard| {
        if heard.last.starts_with("tool: error:") { says("Then I answer.") } else { insists(heard) }
    });
    let world = play(&of(&["a", "b"], |_| {}), &cast).await;
    assert_eq!(answer(&world), "Then I answer.");
    assert_eq!(outcome(&world)["final_agent"], "b");
    assert!(outcome(&world).get("partial_answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn node_timeout_does_not_bound_entry() {
    let slow = |heard: &Heard| match heard.agent.as_str() {
        "a" => hands("b", None).saying("I take my time.").after(30_000),
        "b" => hands("c", None).after(4_000),
        _ => says("c").after(30_000),
    };
    let swarm = || of(&["a", "b", "c"], |swarm| swarm.node_timeout = Some(Duration::from_secs(5)));
    let cast = Cast::new(slow);
    let run = play(&swarm(), &cast).await;
    assert_eq!(reason(&run), "node_timeout:c");
    assert_eq!(run.progress.at.duration(), Duration::from_secs(39), "each by its own clock");
    assert_eq!(outcome(&run)["partial_answer"], "I take my time.");
    // A pause does not count.
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("a", _) => hands("b", None),
        ("b", 1) => calls("nothing", json!({})).after(4_000),
        _ => says("in time").after(500),
    });
    let run = engine().start(launch(&swarm(), &cast));
    until(&run, |kind| {
        matches!(kind, EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade { .. })))
    })
    .await;
    run.send(Command::Pause { by: Initiator::You });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(answer(&world(&run).await), "in time");
}

#[tokio::test(start_paused = true)]
async fn nested_swarm_limits_reset_per_call() {
    let limits = SwarmLimits { max_handoffs: 2, ..SwarmLimits::default() };
    let members = vec![
        team::team("lead", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |swarm| swarm.limits = limits),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.turn, heard.round) {
        ("lead", _, round @ 1..=2) => consults("desk", &format!("case {round}")),
        ("lead", ..) => says("Both cases."),
        ("a", 1, _) => hands("b", None),
        ("b", 1, _) => hands("a", None),
        _ => says("solved"),
    });
    let world = play(&scenario(members, ""), &cast).await;
    assert_eq!(answer(&world), "Both cases.");
    assert_eq!(cast.speakers(), ["lead", "a", "b", "a", "lead", "a", "b", "a", "lead"]);
    let handoffs = outcome(&world)["handoffs"].clone();
    assert_eq!(handoffs.as_array().map(Vec::len), Some(4));
    assert_eq!(handoffs[0]["swarm"], "desk");
}

#[tokio::test(start_paused = true)]
async fn stopped_nested_swarm_is_call_result() {
    let members = vec![
        team::team("lead", &["desk"], |_| {}),
        swarm("desk", &["a", "b"], |_| {}),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("desk", "help"),
        ("lead", _) => says("They went in circles."),
        _ => insists(heard),
    });
    let world = play(&scenario(members, ""), &cast).await;
    assert_eq!(answer(&world), "They went in circles.");
    let told = cast.shown("lead", 2).pop().expect("a result");
    assert_eq!(told, "tool: error: repetitive_handoff; b had said: Back to a.");
}

#[tokio::test(start_paused = true)]
async fn roster_changes_update_all_members() {
    let members = || {
        let all = ["a", "b", "c", "d"].into_iter().map(agent);
        [swarm("s", &["a", "b"], |_| {})].into_iter().chain(all).collect::<Vec<_>>()
    };
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("a", 1) => calls("none", json!({"n": 1})).after(1_000),
        ("a", 2) => calls("none", json!({"n": 2})).after(1_000),
        ("a", 3) => hands("b", None).after(1_000),
        ("a", _) => hands("c", None).after(1_000),
        _ => says("c is in"),
    });
    let run = engine().start(launch(&scenario(members(), ""), &cast));
    let change = |change| {
        run.send(Command::Roster(RosterCommand { swarm: "s".into(), change, by: Initiator::You }))
    };
    let sleep = |ms| tokio::time::sleep(Duration::from_millis(ms));
    let entry = crate::base::name::AgentName::from("a");
    sleep(500).await;
    change(RosterChange::Add { agent: "c".into() });
    change(RosterChange::Remove { agent: entry.clone() });
    change(RosterChange::Add { agent: "stranger".into() });
    change(RosterChange::Add { agent: "c".into() });
    sleep(1_000).await;
    change(RosterChange::Replace { members: vec!["c".into(), "d".into()] });
    change(RosterChange::Replace { members: vec!["d".into(), "c".into(), entry] });
    let world = world(&run).await;
    let names = |nth: usize| {
        cast.heard()[nth].request.tools[0].parameters["properties"]["agent_name"]["enum"].clone()
    };
    assert_eq!(
        [names(0), names(1), names(2)],
        [json!(["b"]), json!(["b", "c"]), json!(["d", "c"])]
    );
    assert!(
        cast.shown("a", 4)
            .last()
            .is_some_and(|it| it.ends_with("there is no agent \"b\"; there are: d, c"))
    );
    assert_eq!(answer(&world), "c is in");
    let changes = ended(&run)
        .await
        .iter()
        .filter(|event| matches!(AgentFact::of(&event.kind), Some(AgentFact::RosterChanged { .. })))
        .count();
    assert_eq!(changes, 2, "what cannot be changes nothing, and the entry cannot leave");
    let team = world.agents().expect("a team");
    let there: Vec<&str> = team.swarms[0].members.iter().map(|it| it.as_str()).collect();
    assert_eq!(there, ["d", "c", "a"]);
}

/// The outcomes of two messages of one session.
async fn two(swarm: &Arc<Scenario>, cast: &Arc<Cast>) -> (Value, Value) {
    let engine = engine();
    let first = engine.start(launch(swarm, cast));
    let said = outcome(&world(&first).await);
    let mut second = launch(swarm, cast);
    second.session = first.follow_up("And then?");
    let second = engine.start(second);
    (said, outcome(&world(&second).await))
}

/// `a` hands the first message over to `b`; the agent with the second message answers it.
fn hands_the_first(heard: &Heard) -> Line {
    match (heard.agent.as_str(), heard.request.message) {
        ("a", 1) => hands("b", Some("yours")).saying("Not mine."),
        (name, message) => says(&format!("{name} answers {message}.")).after(1_000),
    }
}

#[tokio::test(start_paused = true)]
async fn follow_up_starts_at_entry() {
    let cast = Cast::new(hands_the_first);
    let (first, second) = two(&of(&["a", "b"], |_| {}), &cast).await;
    assert_eq!(first["answer"], "b answers 1.");
    assert_eq!(second["answer"], "a answers 2.");
    assert_eq!((&second["message"], &second["after"]), (&json!(2), &first["run_id"]));
    assert_eq!(
        cast.shown("a", 2),
        [
            "system: I am a.",
            "user: The goal.",
            "assistant: Not mine. [transfer_to_agent {\"agent_name\":\"b\",\"message\":\"yours\"}]",
            "tool: handed over to b",
            "user: [a] handed over to b: yours",
            "user: [b] b answers 1.",
            "user: And then?",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn cross_request_transfer_starts_at_owner() {
    let cross = of(&["a", "b"], |swarm| swarm.cross_request_transfer = true);
    let cast = Cast::new(hands_the_first);
    let (_, second) = two(&cross, &cast).await;
    assert_eq!((&second["answer"], &second["handoffs"]), (&json!("b answers 2."), &json!([])));
    // What the person says next is the owner's own turn, also where it sees no others.
    let alone = of(&["a", "b"], |swarm| {
        swarm.cross_request_transfer = true;
        swarm.independent_history = true;
    });
    let cast = Cast::new(hands_the_first);
    two(&alone, &cast).await;
    assert_eq!(
        cast.shown("b", 2),
        ["system: I am b.", "user: yours", "assistant: b answers 1.", "user: And then?"]
    );
}

#[tokio::test(start_paused = true)]
async fn departed_owner_leaves_start_to_entry() {
    let swarm = of(&["a", "b", "c"], |swarm| swarm.cross_request_transfer = true);
    let cast = Cast::new(hands_the_first);
    let engine = engine();
    let first = engine.start(launch(&swarm, &cast));
    until(&first, |kind| {
        matches!(kind, EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade { .. })))
    })
    .await;
    let change = RosterChange::Remove { agent: "b".into() };
    first.send(Command::Roster(RosterCommand {
        swarm: "swarm".into(),
        change,
        by: Initiator::You,
    }));
    assert_eq!(answer(&world(&first).await), "b answers 1.", "who is in control ends its turn");
    let mut second = launch(&swarm, &cast);
    second.session = first.follow_up("And then?");
    assert_eq!(answer(&world(&engine.start(second)).await), "a answers 2.");
    // Who is in the swarm is the session's.
    let offer = cast.heard().pop().expect("asked").request.tools[0].clone();
    assert_eq!(offer.parameters["properties"]["agent_name"]["enum"], json!(["c"]));
}

#[tokio::test(start_paused = true)]
async fn stopped_message_completes_every_call() {
    let swarm = of(&["a", "b"], |_| {});
    let cast = Cast::new(|heard| match heard.request.message {
        1 => calls("look", json!({"n": heard.round})).and("look", json!({})),
        _ => says("Again."),
    });
    let engine = engine();
    let first = engine.start(launch(&swarm, &cast));
    until(&first, |kind| {
        matches!(kind, EventKind::Pattern(PatternFact::Agents(AgentFact::ToolCallRefused { .. })))
    })
    .await;
    let stopped = world(&first).await;
    assert_eq!(reason(&stopped), "max_tool_rounds");
    let mut second = launch(&swarm, &cast);
    second.session = first.follow_up("Again?");
    assert_eq!(answer(&world(&engine.start(second)).await), "Again.");
    let shown = cast.heard().pop().expect("asked").messages;
    let calls = shown.iter().filter(|it| it.contains("[look")).count();
    let results = shown.iter().filter(|it| it.starts_with("tool: ")).count();
    assert_eq!((calls * 2, shown.last().map(String::as_str)), (results, Some("user: Again?")));
}

#[tokio::test(start_paused = true)]
async fn member_failure_ends_swarm_with_reason() {
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", None).saying("Best so far."),
        _ => fails(FailureClass::Auth),
    });
    let world = play(&of(&["a", "b"], |_| {}), &cast).await;
    assert_eq!(reason(&world), "llm_error:auth");
    assert_eq!(outcome(&world)["partial_answer"], "Best so far.");
    let team = world.agents().expect("a team");
    assert!(
        matches!(&team.hops.last().expect("a hop").state, HopState::Failed(why) if why.to_string() == "llm_error:auth")
    );
}

#[tokio::test(start_paused = true)]
async fn retried_member_restarts_turn() {
    let more = "[tools.b]\ntimeout_s = 5\nretries = { max_attempts = 2, backoff_ms = [100], jitter = false }\n";
    let members = vec![swarm("s", &["a", "b"], |_| {}), agent("a"), agent("b")];
    let asked = std::sync::atomic::AtomicU32::new(0);
    let cast = Cast::new(move |heard| match (heard.agent.as_str(), heard.round) {
        ("a", _) => hands("b", Some("go")),
        ("b", 1) => calls("none", json!({})).saying("Trying."),
        _ if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => {
            says("late").after(60_000)
        }
        _ => says("at once"),
    });
    let world = play(&scenario(members, more), &cast).await;
    assert_eq!(answer(&world), "at once");
    // The second attempt is shown what the first was, and nothing that the first did.
    assert_eq!(cast.shown("b", 1), cast.shown("b", 3));
    assert_eq!(cast.shown("b", 2), cast.shown("b", 4));
}

#[tokio::test(start_paused = true)]
async fn log_keeps_prompts_as_sent() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.turn) {
        ("a", 1) => hands("b", Some("one")).saying("I begin."),
        ("b", 1) => hands("a", Some("two")).saying("b's own."),
        ("a", 2) => hands("b", Some("three")).and("x", json!({})),
        _ => says("The end."),
    });
    let run = engine().start(launch(&of(&["a", "b"], |_| {}), &cast));
    let facts = ended(&run).await;
    let world = World::from_events(facts.iter().map(|event| &**event));
    let mut heard = cast.heard().into_iter();
    for event in &facts {
        let EventKind::CallStarted(call) = &event.kind else { continue };
        if call.tool.as_str() != "llm" {
            continue;
        }
        let sent = heard.next().expect("asked").request;
        // Put together from the log alone, as a reader of it would.
        let mut parts = vec![call.prompt.messages.to_vec()];
        let mut after = call.prompt.after;
        while let Some(before) = after {
            let attempt = world.spans.last_child(before).expect("an attempt");
            let closing = &facts[attempt.closed_by.expect("closed").0 as usize].kind;
            let EventKind::AttemptAnswered(reply) = closing else { panic!("{closing:?}") };
            let said = crate::log::event::ChatMessage::from_reply(reply);
            parts.push(vec![said]);
            let opening = world.spans.get(before).expect("a call").opened_by;
            let EventKind::CallStarted(call) = &facts[opening.0 as usize].kind else { panic!() };
            parts.push(call.prompt.messages.to_vec());
            after = call.prompt.after;
        }
        let whole: Vec<_> = parts.into_iter().rev().flatten().collect();
        assert_eq!(whole, sent.messages.iter().cloned().collect::<Vec<_>>());
    }
    assert!(heard.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn handoff_is_boundary() {
    let cast = Cast::new(once);
    let launch = launch(&of(&["a", "b"], |_| {}), &cast);
    let launch = crate::engine::Launch {
        schedule: crate::engine::Schedule {
            breaks: vec![crate::log::event::BoundaryId::new("handoff:1:b")],
            ..Default::default()
        },
        ..launch
    };
    let run = engine().start(launch);
    let rest = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    let EventKind::Paused { at } = &rest.kind else { panic!("{rest:?}") };
    assert_eq!(at[0].as_str(), "handoff:1:b");
    assert_eq!(cast.speakers(), ["a"], "nobody is asked while it rests");
    run.send(Command::Resume { by: Initiator::You });
    assert_eq!(answer(&world(&run).await), "b answers.");
}

#[tokio::test(start_paused = true)]
async fn step_covers_handoff_and_first_call() {
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("a", _) => hands("b", None),
        ("b", 1) => calls("none", json!({})),
        _ => says("done"),
    });
    let launch = crate::engine::Launch {
        schedule: crate::engine::Schedule { start_paused: true, ..Default::default() },
        ..launch(&of(&["a", "b"], |_| {}), &cast)
    };
    let run = engine().start(launch);
    for steps in 1..=3 {
        until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
        run.send(Command::Step);
        tokio::time::sleep(Duration::from_millis(steps)).await;
    }
    world(&run).await;
    let stepped: Vec<String> = ended(&run)
        .await
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Stepped { boundary, .. } => Some(boundary.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(stepped, ["ask:1:swarm/a.1", "handoff:1:b", "ask:2:swarm/b.1"]);
}

#[tokio::test(start_paused = true)]
async fn hop_time_excludes_pauses() {
    let cast = Cast::new(|_| says("done").after(2_000));
    let run = engine().start(launch(&of(&["a"], |_| {}), &cast));
    run.send(Command::Pause { by: Initiator::You });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    let team = world.agents().expect("a team");
    let hop = team.hops.get(0).expect("a hop");
    assert_eq!(hop.until.expect("it has ended").since(hop.at), Duration::from_secs(62));
    let told = outcome(&world);
    assert_eq!(told["trace"][0]["elapsed_ms"], 2_000);
    assert_eq!((&told["elapsed_ms"], &told["paused_ms"]), (&json!(2_000), &json!(60_000)));
}
