//! The head of a team's log: all that its agents are, so that a log can be read, and its run be
//! played again, without the file.

use std::sync::Arc;

use crate::log::event::{Event, EventKind, RunStarted};
use crate::log::facts::PatternPlan;
use crate::scenario::patterns::agents::{HistoryScope, InnerText, MemberTools};
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::support::team::{
    Cast, agent, ended, engine, launch, says, scenario, swarm, team, with_tools,
};
use serde_json::{Value, json};

const TEMPLATE: &str = "From {from}: {message}";

/// The first fact of a run of a coordinator, a swarm within it and its members.
async fn first() -> Event {
    let lead = team("lead", &["desk", "a"], |team| {
        team.coordinator.max_tool_rounds = 4;
        team.member_tools = MemberTools {
            stream_inner: true,
            inner_text: InnerText::Exclude,
            history_scope: HistoryScope::Isolated,
            skip_summarization: true,
        };
    });
    let desk = swarm("desk", &["b", "c"], |swarm| {
        swarm.cross_request_transfer = true;
        swarm.independent_history = true;
        swarm.handoff_input = Some(HandoffTemplate::parse_template(TEMPLATE));
    });
    let agents = vec![lead, desk, with_tools("a", &["look"]), agent("b"), agent("c")];
    let cast = Cast::new(|_| says("Done."));
    let run = engine().start(launch(&scenario(agents, ""), &cast));
    Event::clone(&ended(&run).await[0])
}

fn line(event: &Event) -> String {
    event.to_line().expect("a line")
}

fn head(event: &Event) -> RunStarted {
    let EventKind::RunStarted(head) = &event.kind else { panic!("no head") };
    RunStarted::clone(head)
}

#[tokio::test(start_paused = true)]
async fn head_describes_agents() {
    let first = first().await;
    let told: Value = serde_json::from_str(&line(&first)).expect("JSON");
    let agents = &told["plan"]["agents"];
    let named = |name: &str| {
        let all = agents.as_array().expect("agents").iter();
        all.clone().find(|agent| agent["name"] == name).expect("an agent").clone()
    };
    let lead = named("lead");
    assert_eq!((&lead["instruction"], &lead["max_tool_rounds"]), (&json!("I am lead."), &json!(4)));
    let shown = json!({
        "stream_inner": true,
        "inner_text": "exclude",
        "history_scope": "isolated",
        "skip_summarization": true,
    });
    assert_eq!(lead["member_tools"], shown);
    let desk = named("desk");
    assert_eq!(desk["swarm"]["cross_request_transfer"], true);
    assert_eq!(desk["swarm"]["independent_history"], true);
    let pieces = json!([{ "literal": "From " }, "from", { "literal": ": " }, "message"]);
    assert_eq!(desk["swarm"]["handoff_input"], pieces);
    assert_eq!(desk.get("instruction"), None, "a swarm does not speak");
    assert_eq!(
        (&named("a")["instruction"], &named("a")["tools"]),
        (&json!("I am a."), &json!(["look"]))
    );
    let read = Event::from_line(&line(&first)).expect("a line of ours");
    assert_eq!(read, first);
}

#[tokio::test(start_paused = true)]
async fn reads_head_without_agent_details() {
    let mut told: Value = serde_json::from_str(&line(&first().await)).expect("JSON");
    for agent in told["plan"]["agents"].as_array_mut().expect("agents") {
        let agent = agent.as_object_mut().expect("an agent");
        for key in ["instruction", "max_tool_rounds", "member_tools"] {
            agent.remove(key);
        }
        if let Some(swarm) = agent.get_mut("swarm").and_then(Value::as_object_mut) {
            for key in ["cross_request_transfer", "independent_history", "handoff_input"] {
                swarm.remove(key);
            }
        }
    }
    let read = Event::from_line(&told.to_string()).expect("a line of ours");
    let PatternPlan::Team(plan) = head(&read).plan else { panic!("a team") };
    let plan = plan.agents_plan();
    let lead = plan.agent(&"lead".into()).expect("the lead");
    assert_eq!((&*lead.instruction, lead.max_tool_rounds, lead.member_tools), ("", None, None));
    let desk = plan.swarm(&"desk".into()).expect("the swarm");
    assert!(!desk.cross_request_transfer && desk.handoff_input.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_agents_are_told_weighs() {
    let head = head(&first().await);
    let weight = |text: &str, place: usize| {
        let mut head = head.clone();
        let PatternPlan::Team(plan) = &mut head.plan else { panic!("a team") };
        let agent = &mut Arc::make_mut(&mut Arc::make_mut(plan).agents)[place];
        match &mut agent.swarm {
            Some(swarm) => swarm.handoff_input = Some(HandoffTemplate::parse_template(text)),
            None => agent.instruction = text.into(),
        }
        EventKind::RunStarted(Arc::new(head)).weight()
    };
    for place in [0, 1] {
        let more = weight(&"x".repeat(10_001), place) - weight("x", place);
        assert!((10_000..10_100).contains(&more), "{place}: {more} bytes more");
    }
}
