//! The public interface, as a program that embeds the library uses it.

use std::sync::Arc;

use roundtable::{
    Engine, EngineSettings, Event, EventKind, Launch, ScenarioOrigin, Seq, World, load,
};

const SCENARIO: &str = include_str!("../../scenarios/checkout-unanimous.toml");

/// Load a scenario, play it, read its events, get its outcome.
#[tokio::test]
async fn loads_and_plays_scenario_to_outcome() {
    let origin = ScenarioOrigin::File("checkout-unanimous.toml".into());
    let scenario = load(SCENARIO, origin, &[]).expect("a good scenario");
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(Launch::scripted(Arc::new(scenario), true));

    let mut reader = run.bus().reader(Seq(0));
    let mut events: Vec<Arc<Event>> = Vec::new();
    while reader.next_batch(&mut events, 64).await > 0 {}

    assert!(matches!(events[0].kind, EventKind::RunStarted(_)));
    let world = World::from_events(events.iter().map(|event| &**event));
    let outcome = world.outcome().expect("an outcome");
    assert!(outcome.stop_reason.is_success(), "{:?}", outcome.stop_reason);
}
