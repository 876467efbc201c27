//! A storm: agents that ask a tool turn after turn without a pause, four facts for each call.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

use roundtable::{Override, Scenario, ScenarioOrigin, World, load};
use serde_json::Value;

/// Its file.
pub fn text(agents: u32, turns: u32) -> String {
    format!(
        r#"
title = "A storm"
pattern = "resilience"
goal = "Ask without end."

[budget]
max_seconds = 3600

[resilience]
agents = {agents}
turns = {turns}
steps = ["search"]
pool = {agents}
pace = "0ms"
guarded = true
naive = {{ client_retries = 1, tool_retries = 1, agent_retries = 1 }}

[tools.search]
timeout_s = 5

[[tools.search.fixture.rows]]
result = {{ hits = 7 }}
"#
    )
}

/// The scenario, with these overrides.
pub fn scenario_of(agents: u32, turns: u32, sets: &[&str]) -> Scenario {
    let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    let text = text(agents, turns);
    load(&text, ScenarioOrigin::File("storm.toml".into()), &sets).expect("a good scenario")
}

/// The outcome without what differs from run to run.
pub fn shown(world: &World) -> Value {
    let outcome = world.outcome().expect("an outcome");
    let mut outcome = serde_json::to_value(&outcome).expect("JSON");
    outcome["run_id"] = Value::Null;
    outcome
}
