//! What led to the turns of a watched program: by what its framework says, else by time.

use serde_json::{Value, json};

use super::watch::{Watched, otlp};
use crate::log::world::World;
use crate::log::world::turns::{Fork, Led, Shape, Turn};

/// A span that takes a stretch of time, in milliseconds.
struct Stretch {
    id: u8,
    parent: u8,
    name: &'static str,
    at: (u64, u64),
}

/// An agent, unless the name says that it is a tool or a handoff.
fn stretch(id: u8, parent: u8, name: &'static str, at: (u64, u64)) -> Stretch {
    Stretch { id, parent, name, at }
}

async fn world_of(stretches: &[Stretch]) -> World {
    let now = crate::base::time::now_ms();
    let id = |id: u8| if id == 0 { String::new() } else { format!("{id:016x}") };
    let span = |it: &Stretch| {
        let (key, value) = match it.name.split_once(' ') {
            Some(("tool", name)) => ("gen_ai.tool.name", name),
            Some(_) => ("other", it.name),
            None => ("gen_ai.agent.name", it.name),
        };
        let kind = match it.name.split_once(' ') {
            Some(("tool", _)) => "execute_tool",
            Some(_) => "task",
            None => "invoke_agent",
        };
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id(it.id), "parentSpanId": id(it.parent),
            "name": it.name, "startTimeUnixNano": format!("{}000000", now + it.at.0),
            "endTimeUnixNano": format!("{}000000", now + it.at.1),
            "attributes": [{"key": key, "value": {"stringValue": value}},
                           {"key": "gen_ai.operation.name", "value": {"stringValue": kind}}],
        })
    };
    let watched = Watched::start().await;
    let spans: Value = stretches.iter().map(span).collect();
    watched.post("/v1/traces", "application/json", &otlp(&spans)).await;
    watched.end(0).await.1.remove(0).0
}

/// Each turn in words, in the order of their starts: what led to it, and how.
fn told(world: &World) -> Vec<String> {
    let shape = Shape::of(world.observed().expect("observed"), world);
    let name = |at: usize| shape.lanes[shape.turns[at].lane].name.to_string();
    let of = |(at, turn): (usize, &Turn)| {
        let before: Vec<String> = turn.before.iter().map(|at| name(*at)).collect();
        let how = match turn.led {
            Led::Start => "",
            Led::Next => " after ",
            Led::Handoff => " from ",
            Led::Consult => " called by ",
        };
        let fork = if turn.fork == Fork::No { "" } else { "+" };
        let again = if turn.is_again { " again" } else { "" };
        let guess = if turn.by_time { "?" } else { "" };
        format!("{fork}{}{again}{how}{}{guess}", name(at), before.join("&"))
    };
    shape.turns.iter().enumerate().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_told_by_time() {
    for (stretches, expected) in [
        // One after another.
        (vec![stretch(1, 0, "a", (0, 10)), stretch(2, 0, "b", (10, 20))], vec!["a", "b after a?"]),
        // Two beside each other, and one when both have ended.
        (
            vec![
                stretch(1, 0, "a", (0, 10)),
                stretch(2, 0, "b", (12, 30)),
                stretch(3, 0, "c", (12, 20)),
                stretch(4, 0, "d", (31, 40)),
            ],
            vec!["a", "+b after a?", "+c after a?", "d after b&c?"],
        ),
        // Round and round.
        (
            vec![
                stretch(1, 0, "a", (0, 10)),
                stretch(2, 0, "b", (10, 20)),
                stretch(3, 0, "a", (20, 30)),
            ],
            vec!["a", "b after a?", "a again after b?"],
        ),
    ] {
        let world = world_of(&stretches).await;
        assert_eq!(told(&world), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frameworks_say_what_led() {
    // A tool of a coordinator calls another agent.
    let world = world_of(&[
        stretch(1, 0, "boss", (0, 50)),
        stretch(2, 1, "tool ask_clerk", (10, 40)),
        stretch(3, 2, "clerk", (11, 39)),
    ])
    .await;
    assert_eq!(told(&world), ["boss", "clerk called by boss"]);
    // A tool by which frameworks hand over; the name is in its arguments, or in its own.
    let world = world_of(&[
        stretch(1, 0, "Triage", (0, 20)),
        stretch(2, 1, "tool transfer_to_billing_desk", (10, 12)),
        stretch(3, 0, "BillingDesk", (21, 40)),
    ])
    .await;
    assert_eq!(told(&world), ["Triage", "BillingDesk from Triage"]);
    let shape = Shape::of(world.observed().expect("observed"), &world);
    assert!(shape.is_of_handoffs(), "the diagram of hops says it best");
    // What runs inside of an actor is not called by it.
    let world = world_of(&[
        stretch(1, 0, "both", (0, 50)),
        stretch(2, 1, "fr", (1, 40)),
        stretch(3, 1, "de", (2, 30)),
        stretch(4, 0, "merge", (51, 60)),
    ])
    .await;
    assert_eq!(told(&world), ["both", "+fr", "+de", "merge after both?"]);
    let shape = Shape::of(world.observed().expect("observed"), &world);
    let lanes: Vec<(u16, String)> =
        shape.lanes.iter().map(|lane| (lane.depth, lane.name.to_string())).collect();
    let expected = [(0, "both"), (1, "fr"), (1, "de"), (0, "merge")];
    assert_eq!(lanes, expected.map(|(depth, name)| (depth, name.to_owned())));
    assert!(!shape.is_of_handoffs());
}

/// Steps of a graph say what runs beside what, whatever the times are.
#[tokio::test(flavor = "multi_thread")]
async fn steps_of_graphs_are_waves() {
    let watched = Watched::start().await;
    let root = "018f6d2a-0000-7000-8000-000000000000";
    let node = |number: u32, name: &str, step: u32, (from, until): (u32, u32)| {
        json!({"id": format!("018f6d2a-0000-7000-8000-{number:012}"), "trace_id": root, "parent_run_id": root,
               "name": name, "run_type": "chain", "inputs": {}, "outputs": {"x": 1}, "tags": [format!("graph:step:{step}")],
               "start_time": format!("2026-01-01T00:00:{from:02}"), "end_time": format!("2026-01-01T00:00:{until:02}"),
               "extra": {"metadata": {"langgraph_node": name, "langgraph_step": step}}})
    };
    let graph = json!({"id": root, "trace_id": root, "name": "LangGraph", "run_type": "chain", "inputs": {}, "outputs": {"x": 1},
                       "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:30"});
    // The second worker waits for the first one: they are of one step all the same.
    let runs = json!({"post": [graph, node(1, "plan", 1, (0, 2)), node(2, "write", 2, (3, 5)), node(3, "write", 2, (6, 9)),
                               node(4, "collect", 3, (10, 12))]});
    watched.post("/runs/batch", "application/json", runs.to_string().as_bytes()).await;
    let (_, mut runs) = watched.end(0).await;
    let world = runs.remove(0).0;
    let expected =
        ["plan", "+write after plan", "+write again after plan", "collect after write&write"];
    assert_eq!(told(&world), expected);
}
