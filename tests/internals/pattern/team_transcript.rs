//! The transcript of a team by runs of it: it says of every call what the model was told.

use crate::log::event::{FailureClass, World};
use crate::log::world::agents::{HopState, LineKind, ResultEnd};
use crate::scenario::patterns::agents::InnerText;
use crate::support::team::{
    Cast, agent, answer, calls, consults, fails, hands, outcome, play, says, scenario, swarm, team,
};
use serde_json::json;

/// The results that stand so deep, as they stand, each with whether it is an answer.
fn results(world: &World, depth: u16) -> Vec<(String, bool)> {
    let team = world.agents().expect("a team");
    let lines = team.lines.iter().filter(|line| line.depth == depth);
    let results = lines.filter_map(|line| match &line.what {
        LineKind::Result { text, end, .. } => Some((text.to_string(), *end == ResultEnd::Answered)),
        _ => None,
    });
    results.collect()
}

const TOOLS: &str = r#"
[tools.gone]
retries = { max_attempts = 2, backoff_ms = [10], jitter = false }
[[tools.gone.fixture.rows]]
fault = { status = 503, times = 9 }
result = {}
[tools.kept]
retries = { max_attempts = 1 }
safe_mode = { enabled = true, fallback = { text = "as ever" } }
[tools.table]
retries = { max_attempts = 1 }
safe_mode = { enabled = true, fallback = { rows = [1, 2] } }
[tools.left]
retries = { max_attempts = 1 }
safe_mode = { enabled = true }
[tools.shut]
retries = { max_attempts = 1 }
breaker = { fail_threshold = 1, open_for_s = 60 }
"#;

#[tokio::test(start_paused = true)]
async fn transcript_shows_results_as_told() {
    let members = ["fine", "kept", "table", "left", "shut", "loops"];
    let mut agents = vec![team("lead", &members, |team| {
        team.coordinator.tools = vec!["look".into(), "gone".into()];
    })];
    agents.extend(members.iter().map(|name| agent(name)));
    agents.retain(|agent| agent.name.as_str() != "loops");
    agents.push(team("loops", &["fine"], |team| team.coordinator.max_tool_rounds = 1));
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("lead", 1) => calls("look", json!({})).and("gone", json!({})),
        ("lead", 2) => ["kept", "table", "left", "shut", "loops"]
            .iter()
            .fold(consults("fine", "x"), |line, name| line.and(name, json!({"request": "x"}))),
        ("lead", 3) => consults("shut", "once more"),
        ("lead", _) => says("Done."),
        ("fine", _) => says("All well."),
        ("loops", round) => consults("fine", &round.to_string()),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(agents, TOOLS), &cast).await;
    assert_eq!(answer(&world), "Done.");
    let told: Vec<String> = cast
        .shown("lead", 4)
        .iter()
        .filter_map(|message| message.strip_prefix("tool: ").map(str::to_owned))
        .collect();
    let stands = results(&world, 0);
    let texts: Vec<&String> = stands.iter().map(|(text, _)| text).collect();
    assert_eq!(texts, told.iter().collect::<Vec<_>>());
    let ok: Vec<bool> = stands.iter().map(|(_, ok)| *ok).collect();
    let expected: Vec<bool> = told.iter().map(|text| !text.starts_with("error: ")).collect();
    assert_eq!(ok, expected);
    for text in [
        "All well.",
        r#"{"text":"as ever"}"#,
        r#"{"rows":[1,2]}"#,
        "error: circuit_open:shut. shut takes no calls for now: go on without it.",
    ] {
        assert!(told.iter().any(|it| it == text), "{text:?} in {told:?}");
    }
    assert!(told[1].starts_with("error: tool_error:gone:status: HTTP 503"), "{told:?}");
    assert_eq!((told.len(), told[7].as_str()), (9, "error: max_tool_rounds"));
}

#[tokio::test(start_paused = true)]
async fn hidden_inner_text_shows_member_answered() {
    let quiet = |team: &mut crate::scenario::patterns::agents::CoordinatorTeam| {
        team.member_tools.stream_inner = true;
        team.member_tools.inner_text = InnerText::Exclude;
    };
    let agents = vec![
        team("pm", &["dev"], quiet),
        team("dev", &["a", "b"], move |team| {
            quiet(team);
            team.coordinator.tools = vec!["look".into()];
        }),
        agent("a"),
        agent("b"),
    ];
    let cast = Cast::new(|heard| match (heard.agent.as_str(), heard.round) {
        ("pm", 1) => consults("dev", "build"),
        ("pm", _) => says("Built."),
        ("dev", 1) => consults("a", "x").and("b", json!({"request": "y"})).and("look", json!({})),
        ("dev", _) => says("Dev's prose."),
        ("a", _) => says("A's prose."),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(agents, ""), &cast).await;
    assert_eq!(results(&world, 0), [("Dev's prose.".to_owned(), true)]);
    let inner = [
        (String::new(), true),
        ("error: llm_error:connection".to_owned(), false),
        (r#"{"seen":3}"#.to_owned(), true),
    ];
    assert_eq!(results(&world, 1), inner);
}

#[tokio::test(start_paused = true)]
async fn swarm_fallback_degrades_run() {
    let policy = "[tools.b]\nretries = { max_attempts = 1 }\nsafe_mode = { enabled = true, fallback = { text = \"Call us.\" } }\n";
    let agents = vec![swarm("s", &["a", "b"], |_| {}), agent("a"), agent("b")];
    let cast = Cast::new(|heard| match heard.agent.as_str() {
        "a" => hands("b", None),
        _ => fails(FailureClass::Reset),
    });
    let world = play(&scenario(agents, policy), &cast).await;
    let text = r#"{"text":"Call us."}"#;
    assert_eq!(answer(&world), text);
    let team = world.agents().expect("a team");
    let said: Vec<_> = team
        .lines
        .iter()
        .filter_map(|line| match &line.what {
            LineKind::Said(text) => Some((line.author.as_ref()?.as_str(), &**text)),
            _ => None,
        })
        .collect();
    assert_eq!(said, [("b", text)]);
    assert!(matches!(team.hops.last().expect("a hop").state, HopState::Degraded { .. }));
    let told = outcome(&world);
    let trace = &told["trace"][1];
    assert_eq!((&trace["agent"], &trace["status"]), (&json!("b"), &json!("degraded")));
    assert_eq!(trace["fallback"], "default");
    assert_eq!(trace["stop_reason"], "llm_error:connection");
    assert_eq!(told["degraded"], true);
    assert_eq!(told["replaced"], json!([{ "tool": "b", "fallback": "default", "times": 1 }]));
}
