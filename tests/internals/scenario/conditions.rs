//! Every name that a condition may use is shown to it when a run comes to it.
use std::sync::Arc;

use crate::engine::{Engine, EngineSettings, Launch};
use crate::log::event::{EventKind, Seq, World};
use crate::scenario::patterns::collaboration::check::{CONTRIBUTION_NAMES, FINALIZE_NAMES};
use crate::scenario::{ScenarioOrigin, load};

const HEAD: &str = r#"
title = "Names"
pattern = "collaboration"
goal = "Meet {{who}}."
inputs.who = { value = "Ann" }
flags.late = { default = true }
budget = { max_rounds = 2, min_go_votes = 1 }
facts.n = 3
collaboration = { sequence = ["ann"], finalize_prompt = "Sum up." }
roles.ann.prompt = "You are Ann."
tools.llm.retries = { max_attempts = 2, backoff_ms = [] }
"#;

const CONTRIBUTION: &str = "facts.n == 3 && inputs.who == 'Ann' && goal == 'Meet Ann.' && \
    role == 'ann' && round == 2 && attempt == 2 && flags.late && \
    recent_rounds[0].stances[0].stance == 'caution' && recent_rounds[0].decision == null && \
    open_conflicts == []";

const FINALIZE: &str = "facts.n == 3 && inputs.who == 'Ann' && goal == 'Meet Ann.' && attempt == 1 \
    && flags.late && final_decision == 'go' && history[1].contributions[0].agent == 'ann'";

#[tokio::test(start_paused = true)]
async fn every_name_is_shown() {
    let uses = |text: &str, name: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
    };
    assert!(CONTRIBUTION_NAMES.iter().all(|name| uses(CONTRIBUTION, name)));
    assert!(FINALIZE_NAMES.iter().all(|name| uses(FINALIZE, name)));
    let reply = |stance: &str| {
        format!(
            "reply = {{ stance = \"{stance}\", summary = \"s\", confidence = 1, actions = [\"a\"] }}"
        )
    };
    let text = format!(
        "{HEAD}\n[[script]]\nwhen = \"{CONTRIBUTION}\"\n{}\n\
         [[script]]\nround = 2\nfault = {{ status = 503 }}\n{}\n\
         [[script]]\n{}\n\
         [[script]]\nstep = \"finalize\"\nwhen = \"{FINALIZE}\"\ntext = \"All shown.\"\n",
        reply("go"),
        reply("block"),
        reply("caution"),
    );
    let scenario = load(&text, ScenarioOrigin::File("names.toml".into()), &[])
        .unwrap_or_else(|problems| panic!("{}", problems.pretty(false)));
    assert_eq!(scenario.warnings.every_run, Vec::<String>::new());
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(Launch::scripted(Arc::new(scenario), true));
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 1024).await > 0 {}
    for fact in &facts {
        assert!(!matches!(fact.kind, EventKind::ConditionFailed { .. }), "{:?}", fact.kind);
    }
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    let outcome = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["answer"], "All shown.", "{outcome}");
    assert_eq!(outcome["rounds_used"], 2);
}
