//! Coordinator teams (docs/rules/patterns.md, *Coordinator team*): each option by what the agents are
//! shown, the results, and how long it takes under paused time.

use std::time::Duration;

use crate::log::event::FailureClass;
use crate::log::world::agents::{HopKind, HopState, LineKind};
use crate::scenario::patterns::agents::{HistoryScope, InnerText};
use crate::support::team;
use crate::support::team::{
    Cast, Heard, agent, answer, calls, consults, fails, outcome, play, reason, says, scenario,
    swarm, team, with_tools,
};
use serde_json::json;

/// A lead with two members `a` and `b`, that consults `a`, then `b`, then answers.
fn in_turn(heard: &Heard) -> team::Line {
    match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("a", "first").saying("I ask a."),
        ("lead", 2) => consults("b", "second"),
        ("lead", _) => says("Both have spoken."),
        (name, _) => says(&format!("{name} was asked.")).after(1_000),
    }
}

#[tokio::test(start_paused = true)]
async fn members_are_tools_with_one_argument() {
    let scenario = scenario(vec![team("lead", &["a", "b"], |_| {}), agent("a"), agent("b")], "");
    let cast = Cast::new(|_| says("Done."));
    play(&scenario, &cast).await;
    let offers = cast.heard()[0].request.tools.clone();
    let offers: Vec<_> = offers.iter().map(|it| (&*it.name, &*it.description)).collect();
    assert_eq!(offers, [("a", "What a does."), ("b", "What b does.")]);
    let parameters = json!({
        "type": "object",
        "properties": { "request": { "type": "string" } },
        "required": ["request"],
    });
    assert_eq!(*cast.heard()[0].request.tools[0].parameters, parameters);
}

#[tokio::test(start_paused = true)]
async fn final_reply_is_member_result() {
    let scenario = scenario(
        vec![
            team("lead", &["a"], |team| team.member_tools.history_scope = HistoryScope::Isolated),
            with_tools("a", &["look"]),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("a", "look twice"),
        ("lead", _) => says("So it is."),
        (_, 1) => calls("look", json!({})).saying("Let me look."),
        _ => says("I saw 3."),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(answer(&world), "So it is.");
    assert_eq!(cast.shown("a", 1), ["system: I am a.", "user: look twice"]);
    assert_eq!(
        cast.shown("a", 2)[2..],
        ["assistant: Let me look. [look {}]", "tool: {\"seen\":3}"]
    );
    assert_eq!(
        cast.shown("lead", 2),
        [
            "system: I am lead.",
            "user: The goal.",
            "assistant:  [a {\"request\":\"look twice\"}]",
            "tool: I saw 3.",
        ]
    );
    let told = outcome(&world);
    assert_eq!((&told["final_agent"], &told["owner"]), (&json!("lead"), &json!("lead")));
    assert_eq!((&told["pattern"], &told["status"]), (&json!("team"), &json!("ok")));
}

#[tokio::test(start_paused = true)]
async fn parent_branch_shows_coordinator_history() {
    let members = |scope| {
        vec![
            team("lead", &["a", "b"], move |team| team.member_tools.history_scope = scope),
            agent("a"),
            agent("b"),
        ]
    };
    let cast = Cast::new(in_turn);
    play(&scenario(members(HistoryScope::ParentBranch), ""), &cast).await;
    assert_eq!(
        cast.shown("a", 1),
        ["system: I am a.", "user: The goal.", "user: [lead] I ask a.", "user: first"]
    );
    assert_eq!(
        cast.shown("b", 1),
        [
            "system: I am b.",
            "user: The goal.",
            "user: [lead] I ask a.",
            "user: [lead] called a with {\"request\":\"first\"}\n[a] a was asked.",
            "user: second",
        ]
    );
    let cast = Cast::new(in_turn);
    play(&scenario(members(HistoryScope::Isolated), ""), &cast).await;
    assert_eq!(cast.shown("b", 1), ["system: I am b.", "user: second"]);
}

#[tokio::test(start_paused = true)]
async fn member_starts_afresh_on_own_branch() {
    let scenario = scenario(
        vec![
            team("lead", &["a"], |team| team.member_tools.history_scope = HistoryScope::Isolated),
            agent("a"),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", round @ 1..=2) => consults("a", &format!("request {round}")),
        ("lead", _) => says("Enough."),
        _ => says(&format!("turn {}", heard.turn)),
    });
    play(&scenario, &cast).await;
    assert_eq!(cast.shown("a", 2), ["system: I am a.", "user: request 2"]);
    assert_eq!(cast.shown("lead", 3)[5..], ["tool: turn 2"]);
}

#[tokio::test(start_paused = true)]
async fn call_results_keep_order() {
    for (parallel, seconds) in [(false, 6), (true, 3)] {
        let scenario = scenario(
            vec![
                team("lead", &["a", "b", "c"], |team| team.parallel_tools = parallel),
                agent("a"),
                agent("b"),
                agent("c"),
            ],
            "",
        );
        let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
            ("lead", 1) => consults("c", "x")
                .and("a", json!({"request": "y"}))
                .and("b", json!({"request": "z"})),
            ("lead", _) => says("All."),
            ("a", _) => says("a").after(1_000),
            ("b", _) => says("b").after(2_000),
            _ => says("c").after(3_000),
        });
        let world = play(&scenario, &cast).await;
        assert_eq!(world.progress.at.duration().as_secs(), seconds, "parallel_tools = {parallel}");
        assert_eq!(cast.shown("lead", 2)[3..], ["tool: c", "tool: a", "tool: b"]);
        // In parallel, no agent sees the replies of the others; one after another, each does.
        let before = cast.shown("b", 1).len();
        assert_eq!(before, if parallel { 3 } else { 5 });
    }
}

#[tokio::test(start_paused = true)]
async fn failed_call_spares_siblings() {
    for parallel in [false, true] {
        let scenario = scenario(
            vec![
                team("lead", &["a", "b"], |team| team.parallel_tools = parallel),
                agent("a"),
                agent("b"),
            ],
            "",
        );
        let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
            ("lead", 1) => consults("a", "x").and("b", json!({"request": "y"})),
            ("lead", _) => says("One of them."),
            ("a", _) => fails(FailureClass::Connect),
            _ => says("b is there").after(500),
        });
        let world = play(&scenario, &cast).await;
        assert_eq!(answer(&world), "One of them.");
        assert_eq!(
            cast.shown("lead", 2)[3..],
            ["tool: error: llm_error:connection", "tool: b is there"]
        );
        let states: Vec<_> = outcome(&world)["trace"]
            .as_array()
            .expect("a trace")
            .iter()
            .map(|row| (row["agent"].clone(), row["status"].clone()))
            .collect();
        assert_eq!(states, [(json!("a"), json!("failed")), (json!("b"), json!("done"))]);
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_call_error_lists_members() {
    let scenario = scenario(vec![team("lead", &["a", "b"], |_| {}), agent("a"), agent("b")], "");
    let cast = Cast::new(|heard| match heard.round {
        1 => consults("z", "x").and("a", json!({"ask": 1})).and_raw("b", "{oops"),
        _ => says("I see."),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(cast.speakers(), ["lead", "lead"]);
    let shown = cast.shown("lead", 2);
    assert_eq!(shown[3], "tool: error: there is no tool \"z\"; members: a, b");
    assert_eq!(shown[4], "tool: error: `request` of a is missing; members: a, b");
    assert!(shown[5].starts_with("tool: error: the arguments of b are not JSON: "), "{}", shown[5]);
    assert!(shown[5].ends_with("; members: a, b"));
    let team = world.agents().expect("a team");
    let refused = team.lines.iter().filter(|line| matches!(line.what, LineKind::NotCalled { .. }));
    assert_eq!(refused.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn max_tool_rounds_bounds_loop() {
    for most in [16, 3, 1] {
        let scenario = scenario(
            vec![team("lead", &["a"], |team| team.coordinator.max_tool_rounds = most), agent("a")],
            "",
        );
        let cast = Cast::new(|heard| match heard.agent.as_str() {
            "lead" => consults("a", &format!("once more, {}", heard.round)),
            _ => says("no"),
        });
        let world = play(&scenario, &cast).await;
        assert_eq!(reason(&world), "max_tool_rounds");
        let asked = cast.speakers().iter().filter(|name| *name == "a").count();
        assert_eq!(asked, most as usize, "so many batches are carried out");
    }
}

#[tokio::test(start_paused = true)]
async fn third_identical_call_is_stuck() {
    let scenario = scenario(vec![team("lead", &["a"], |_| {}), agent("a")], "");
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "lead" => consults("a", "again"),
        _ => says("no"),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(reason(&world), "stuck:lead");
    assert_eq!(cast.speakers(), ["lead", "a", "lead", "a", "lead"]);
    assert_eq!(outcome(&world)["phase"], "lead");
}

#[tokio::test(start_paused = true)]
async fn skip_summarization_returns_member_replies() {
    let skip = |members: &[&str]| {
        team("lead", members, |team| {
            team.member_tools.skip_summarization = true;
        })
    };
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "lead" => consults("a", "x").and("b", json!({"request": "y"})).and("z", json!({})),
        name => says(&format!("{name} says so.")),
    });
    let agents = vec![skip(&["a", "b"]), agent("a"), agent("b")];
    let world = play(&scenario(agents, ""), &cast).await;
    assert_eq!(answer(&world), "a says so.\n\nb says so.");
    let missing = json!([{ "of": "z", "text": "error: there is no tool \"z\"; members: a, b" }]);
    assert_eq!(
        (&outcome(&world)["missing"], &outcome(&world)["degraded"]),
        (&missing, &json!(true))
    );
    assert_eq!(cast.speakers(), ["lead", "a", "b"]);
    assert_eq!(outcome(&world)["final_agent"], "lead");
    // One reply alone is the member's own; where no member replied, the coordinator goes on.
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("z", "x"),
        ("lead", _) => consults("a", "x"),
        _ => says("Only me."),
    });
    let world = play(&scenario(vec![skip(&["a"]), agent("a")], ""), &cast).await;
    assert_eq!((answer(&world).as_str(), cast.speakers().len()), ("Only me.", 3));
    assert_eq!(outcome(&world)["final_agent"], "a");
}

#[tokio::test(start_paused = true)]
async fn inner_output_setting_keeps_result() {
    let said = |stream: bool, text: InnerText| {
        let scenario = scenario(
            vec![
                team("lead", &["a"], move |team| {
                    team.member_tools.stream_inner = stream;
                    team.member_tools.inner_text = text;
                }),
                with_tools("a", &["look"]),
            ],
            "",
        );
        async move {
            let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
                ("lead", 1) => consults("a", "look").saying("Asking."),
                ("lead", _) => says("Done."),
                (_, 1) => calls("look", json!({})).saying("Looking."),
                _ => says("Seen."),
            });
            let world = play(&scenario, &cast).await;
            assert_eq!(cast.shown("lead", 2)[3..], ["tool: Seen."]);
            let team = world.agents().expect("a team");
            let told: Vec<String> = team
                .lines
                .iter()
                .map(|line| {
                    let author = line.author.as_ref().map_or("you", |author| author.as_str());
                    let what = match &line.what {
                        LineKind::Message(text) | LineKind::Said(text) => text.to_string(),
                        LineKind::Called(call) => format!("calls {}", call.name),
                        LineKind::Result { of, .. } => format!("has {of}"),
                        other => format!("{other:?}"),
                    };
                    format!("{} {author}: {what}", line.depth)
                })
                .collect();
            told
        }
    };
    let outer = ["0 you: The goal.", "0 lead: Asking.", "0 lead: calls a"];
    let end = ["0 lead: has a", "0 lead: Done."];
    assert_eq!(said(false, InnerText::Include).await, [&outer[..], &end].concat());
    let progress = ["1 a: calls look", "1 a: has look"];
    assert_eq!(said(true, InnerText::Exclude).await, [&outer[..], &progress, &end].concat());
    let all = ["1 a: Looking.", "1 a: calls look", "1 a: has look", "1 a: Seen."];
    assert_eq!(said(true, InnerText::Include).await, [&outer[..], &all, &end].concat());
}

#[tokio::test(start_paused = true)]
async fn nested_team_facts_use_agent_spans() {
    let stream = |team: &mut crate::scenario::patterns::agents::CoordinatorTeam| {
        team.member_tools.stream_inner = true;
    };
    let scenario = scenario(
        vec![
            team("pm", &["dev", "desk", "writer"], stream),
            team("dev", &["back", "front"], move |team| {
                stream(team);
                team.parallel_tools = true;
            }),
            swarm("desk", &["one", "two"], |_| {}),
            agent("back"),
            agent("front"),
            agent("writer"),
            agent("one"),
            agent("two"),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("dev", "build"),
        ("pm", 2) => consults("desk", "sell"),
        ("pm", 3) => consults("writer", "write"),
        ("dev", 1) => consults("back", "api").and("front", json!({"request": "page"})),
        ("one", _) => team::hands("two", Some("yours")),
        (name, _) => says(&format!("{name} is done.")).after(100),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(answer(&world), "pm is done.");
    let team = world.agents().expect("a team");
    let rows: Vec<_> = team
        .hops
        .iter()
        .map(|hop| (hop.depth, hop.team.as_str(), hop.to.as_str(), hop.kind, hop.state.clone()))
        .collect();
    use HopKind::{Consult, Handoff, Start};
    assert_eq!(
        rows,
        [
            (0, "pm", "dev", Consult, HopState::Done),
            (1, "dev", "back", Consult, HopState::Done),
            (1, "dev", "front", Consult, HopState::Done),
            (0, "pm", "desk", Consult, HopState::Done),
            (1, "desk", "one", Start, HopState::HandedOver),
            (1, "desk", "two", Handoff, HopState::Done),
            (0, "pm", "writer", Consult, HopState::Done),
        ]
    );
    // The authors of the transcript, by depth; calls at once keep theirs apart.
    let said: Vec<_> = team
        .lines
        .iter()
        .filter(|line| matches!(line.what, LineKind::Said(_)))
        .map(|line| (line.depth, line.author.as_ref().expect("an author").as_str()))
        .collect();
    assert_eq!(said, [(2, "back"), (2, "front"), (1, "dev"), (1, "two"), (1, "writer"), (0, "pm")]);
    for hop in team.hops.iter() {
        // Each agent's words stand in its own attempt, and that in its own call.
        let attempt = world.spans.last_child(hop.span).expect("an attempt");
        for said in team.lines.iter().filter(|line| line.author.as_ref() == Some(&hop.to)) {
            let call = world.spans.get(said.span).expect("its call");
            assert_eq!(call.parent, attempt.id, "{:?}", said.what);
        }
    }
    // What a nested member is let see goes down through the teams.
    assert_eq!(
        cast.shown("back", 1),
        ["system: I am back.", "user: The goal.", "user: build", "user: api"]
    );
}

#[tokio::test(start_paused = true)]
async fn member_calls_use_gateway() {
    // Time-out, and a second attempt as the table says: the first is cancelled, nothing runs twice.
    let members = || vec![team("lead", &["a"], |_| {}), agent("a")];
    let policy = "[tools.a]\ntimeout_s = 2\nretries = { max_attempts = 2, backoff_ms = [500], jitter = false }\n";
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("a", "hurry"),
        ("lead", _) => says("Late."),
        _ => says("At last.").after(9_000),
    });
    let world = play(&scenario(members(), policy), &cast).await;
    let told = cast.shown("lead", 2).pop().expect("a result");
    assert!(told.starts_with("tool: error: tool_error:a:timeout: no reply within 2.0 s"), "{told}");
    assert_eq!(world.progress.at.duration(), Duration::from_millis(4_500));
    assert_eq!(cast.speakers(), ["lead", "a", "a", "lead"]);
    // Breaker: after two failures it is not called any more.
    let policy = "[tools.a]\nretries = { max_attempts = 1 }\nbreaker = { fail_threshold = 2, open_for_s = 60 }\n";
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", round @ 1..=3) => consults("a", &format!("try {round}")),
        ("lead", _) => says("It is down."),
        _ => fails(FailureClass::Reset),
    });
    play(&scenario(members(), policy), &cast).await;
    assert_eq!(cast.speakers(), ["lead", "a", "lead", "a", "lead", "lead"]);
    assert_eq!(
        cast.shown("lead", 4).pop().as_deref(),
        Some("tool: error: circuit_open:a. a takes no calls for now: go on without it.")
    );
    // Bulkhead: one at a time, the other of the two is refused.
    let policy = "[tools.a]\nbulkhead = { max_in_flight = 1 }\n";
    let mut agents = members();
    agents[0] = team("lead", &["a"], |team| team.parallel_tools = true);
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("a", "x").and("a", json!({"request": "y"})),
        ("lead", _) => says("One."),
        _ => says("Here.").after(1_000),
    });
    play(&scenario(agents, policy), &cast).await;
    assert_eq!(
        cast.shown("lead", 2)[3..],
        [
            "tool: Here.",
            "tool: error: bulkhead_full:a. a takes no more calls at once: call it later, or go on without it."
        ]
    );
    // Safe mode: the scenario's declared value is the fallback for it.
    let policy = "[tools.a]\nretries = { max_attempts = 1 }\nsafe_mode = { enabled = true, fallback = { plan = \"as last year\" } }\n";
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => consults("a", "x"),
        ("lead", _) => says("So be it."),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(members(), policy), &cast).await;
    assert_eq!(cast.shown("lead", 2)[3..], ["tool: {\"plan\":\"as last year\"}"]);
    assert_eq!(outcome(&world)["degraded"], true);
}

#[tokio::test(start_paused = true)]
async fn nested_agent_failure_fails_only_call() {
    let scenario = scenario(
        vec![
            team("pm", &["dev"], |_| {}),
            team("dev", &["back"], |team| team.coordinator.max_tool_rounds = 1),
            agent("back"),
        ],
        "",
    );
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("dev", "build"),
        ("pm", _) => says("Without dev."),
        ("dev", round) => consults("back", &format!("{round}")),
        _ => says("ok"),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(answer(&world), "Without dev.");
    assert_eq!(cast.shown("pm", 2)[3..], ["tool: error: max_tool_rounds"]);
    // An empty reply of the outermost is the run's own end.
    let cast = Cast::new(|_| says("  "));
    assert_eq!(reason(&play(&scenario, &cast).await), "llm_empty");
}

#[tokio::test(start_paused = true)]
async fn tool_results_and_failures_reach_model() {
    let more = "[tools.gone]\nretries = { max_attempts = 1 }\n[[tools.gone.fixture.rows]]\nfault = { status = 404, times = 9 }\nresult = {}\n";
    let scenario = scenario(
        vec![
            team("lead", &["a"], |team| {
                team.coordinator.tools = vec!["look".into(), "gone".into()];
            }),
            agent("a"),
        ],
        more,
    );
    let cast = Cast::new(|heard| match heard.round {
        1 => calls("look", json!({"where": "here"})).and("gone", json!({})).and_raw("look", "[]"),
        _ => says("Well."),
    });
    let world = play(&scenario, &cast).await;
    assert_eq!(cast.offered("lead", 1), ["a", "look", "gone"]);
    let shown = cast.shown("lead", 2);
    assert_eq!(shown[3], "tool: {\"seen\":3}");
    assert!(shown[4].starts_with("tool: error: tool_error:gone:status"), "{}", shown[4]);
    assert_eq!(
        shown[5],
        "tool: error: the arguments of look are not a JSON object; members: a; tools: look, gone"
    );
    assert_eq!(answer(&world), "Well.");
}

#[tokio::test(start_paused = true)]
async fn session_continues_with_coordinator_history() {
    let scenario = scenario(vec![team("lead", &["a"], |_| {}), agent("a")], "");
    let cast =
        Cast::new(|heard| match (heard.agent.as_str(), heard.request.message, heard.round) {
            ("lead", 1, 1) => consults("a", "look"),
            ("lead", message, _) => says(&format!("Answer {message}.")),
            _ => says("a's own"),
        });
    let engine = team::engine();
    let first = engine.start(team::launch(&scenario, &cast));
    assert_eq!(answer(&team::world(&first).await), "Answer 1.");
    let mut next = team::launch(&scenario, &cast);
    next.session = first.follow_up("And now?");
    let second = engine.start(next);
    let world = team::world(&second).await;
    assert_eq!(answer(&world), "Answer 2.");
    assert_eq!(
        cast.shown("lead", 3),
        [
            "system: I am lead.",
            "user: The goal.",
            "assistant:  [a {\"request\":\"look\"}]",
            "tool: a's own",
            "assistant: Answer 1.",
            "user: And now?",
        ]
    );
    // The log of the second run is whole: its head has the remembered session.
    let session = world.session().expect("a session");
    assert_eq!((session.message, session.history.len()), (2, 4));
    assert_eq!(session.previous_run.as_ref(), Some(first.id()));
    assert_eq!(&*session.text, "And now?");
}

#[tokio::test(start_paused = true)]
async fn answer_names_failed_members() {
    let agents = || {
        let skip = team("lead", &["a", "b"], |team| {
            team.member_tools.skip_summarization = true;
        });
        vec![skip, agent("a"), agent("b")]
    };
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "lead" => consults("a", "x").and("b", json!({"request": "y"})),
        "a" => says("a says so."),
        _ => fails(FailureClass::Auth),
    });
    let run = play(&scenario(agents(), ""), &cast).await;
    let told = outcome(&run);
    assert_eq!((&told["answer"], &told["status"]), (&json!("a says so."), &json!("ok")));
    assert_eq!(told["degraded"], true);
    let missing = json!([{ "of": "b", "text": "error: llm_error:auth" }]);
    assert_eq!(told["missing"], missing);
    // Where all replied nothing is missing, and nothing is told.
    let whole = Cast::new(|heard| match heard.agent.as_str() {
        "lead" => consults("a", "x").and("b", json!({"request": "y"})),
        name => says(&format!("{name} says so.")),
    });
    let told = outcome(&play(&scenario(agents(), ""), &whole).await);
    assert_eq!((&told["degraded"], told.get("missing")), (&json!(false), None));
    // In a team within, the run is degraded as well; its own answer is whole.
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("top", 1) => consults("lead", "do it"),
        ("top", _) => says("Done."),
        ("lead", _) => consults("a", "x").and("b", json!({"request": "y"})),
        ("a", _) => says("a says so."),
        _ => fails(FailureClass::Auth),
    });
    let nested = [team("top", &["lead"], |_| {})].into_iter().chain(agents()).collect();
    let told = outcome(&play(&scenario(nested, ""), &cast).await);
    assert_eq!((&told["answer"], &told["degraded"]), (&json!("Done."), &json!(true)));
    assert_eq!(told.get("missing"), None);
}
