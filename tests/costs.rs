//! What a run costs: folded from its log, and of live runs with the real binary.

mod binary;
mod facts;
mod scene;
mod screen;
mod wire;

use std::sync::Arc;

use facts::{Facts, Start};
use roundtable::event::contribution::Stance;
use roundtable::event::kind::{ModelLabel, ModelPriceHead, PricesHead};
use roundtable::event::{Event, EventKind, World};
use roundtable::scenario::spec::price::Price;
use scene::{Scene, agreeing, ended};
use screen::Dash;

/// A live run of two seats whose calls ask these models, each with a reply of 812 and 96 tokens.
fn run(asked: [Option<&str>; 2], prices: &[(&str, Option<Price>)]) -> Vec<Arc<Event>> {
    let model = ModelLabel::Live { name: "a, b".to_owned(), host: "models.example".to_owned() };
    let mut facts = Facts::start(Start { model, ..Start::default() });
    facts.round(&[2, 3]).ask(0).ask(1);
    facts.says(1, Stance::Go, 0.9, "Fine.").says(0, Stance::Go, 0.9, "Fine.");
    let mut seats = asked.into_iter();
    for event in &mut facts.log {
        let event = Arc::make_mut(event);
        match &mut event.kind {
            EventKind::RunStarted(head) => {
                let head = Arc::make_mut(head);
                let price = |(model, price): &(&str, Option<Price>)| ModelPriceHead {
                    model: (*model).to_owned(),
                    price: *price,
                };
                head.model_prices = prices.iter().map(price).collect();
            }
            EventKind::CallStarted(call) => {
                call.model = seats.next().flatten().map(Arc::from);
            }
            _ => {}
        }
    }
    facts.log
}

fn world(log: &[Arc<Event>]) -> World {
    World::from_events(log.iter().map(|event| &**event))
}

fn cost(log: &[Arc<Event>]) -> Option<i64> {
    world(log).cost_usd().map(|dollars| (dollars * 1e6).round() as i64)
}

/// A price for each token of a prompt, none for those of the reply: 812 tokens at a time.
const ONE: Option<Price> = Some(Price::new(1.0, 0.0));
const TEN: Option<Price> = Some(Price::new(10.0, 100.0));

#[test]
fn each_call_costs_what_its_model_does() {
    for (asked, prices, expected) in [
        ([Some("a"), Some("b")], vec![("a", ONE), ("b", TEN)], Some(812 + 8_120 + 9_600)),
        ([Some("b"), Some("a")], vec![("a", ONE), ("b", TEN)], Some(812 + 8_120 + 9_600)),
        ([Some("a"), Some("a")], vec![("a", ONE), ("b", TEN)], Some(1_624)),
        // The only model there is need not be named.
        ([None, None], vec![("a", ONE)], Some(1_624)),
        // One without a price, whether it was asked or not yet: nothing is known of the whole.
        ([Some("a"), Some("b")], vec![("a", ONE), ("b", None)], None),
        ([Some("a"), Some("a")], vec![("a", ONE), ("b", None)], None),
        // A name that the head does not have, or none where there are several.
        ([Some("a"), Some("c")], vec![("a", ONE)], None),
        ([Some("a"), None], vec![("a", ONE), ("b", ONE)], None),
        ([None, None], vec![], None),
    ] {
        assert_eq!(cost(&run(asked, &prices)), expected, "{asked:?} {prices:?}");
    }
}

#[test]
fn a_price_of_the_scenario_goes_before_those_of_the_models() {
    let mut log = run([Some("a"), Some("c")], &[("a", TEN)]);
    let EventKind::RunStarted(head) = &mut Arc::make_mut(&mut log[0]).kind else {
        panic!("a head")
    };
    let head = Arc::make_mut(head);
    assert_eq!((head.price_of(Some("a")), head.price_of(None)), (TEN, TEN));
    assert_eq!(head.price_of(Some("c")), None);
    head.prices = Some(PricesHead { prompt_usd_per_million: 1.0, completion_usd_per_million: 2.0 });
    assert_eq!(head.price_of(Some("c")), Some(Price::new(1.0, 2.0)));
    assert_eq!(cost(&log), Some(2 * (812 + 2 * 96)));
}

#[test]
fn a_log_from_before_prices_were_kept_by_model_reads_as_it_did() {
    let mut log = run([None, None], &[]);
    let line = log[0].to_line().expect("a line");
    assert!(!line.contains("model_prices"), "nothing is written of none: {line}");
    let old = line.replacen(
        "\"seed\":7",
        "\"seed\":7,\"prices\":{\"prompt_usd_per_million\":1.0,\"completion_usd_per_million\":2.0}",
        1,
    );
    assert_ne!(old, line);
    log[0] = Arc::new(Event::from_line(&old).expect("it reads"));
    assert_eq!(cost(&log), Some(2 * (812 + 2 * 96)));
    // And the new form comes back as it was.
    let new = run([Some("a"), Some("b")], &[("a", ONE), ("b", None)]);
    let line = new[0].to_line().expect("a line");
    assert_eq!(Event::from_line(&line).expect("it reads"), *new[0], "{line}");
}

#[test]
fn the_cost_stands_in_the_headers_and_at_the_gateway() {
    let log = run([Some("a"), Some("b")], &[("a", ONE), ("b", TEN)]);
    let mut dash = Dash::new(200, 50);
    dash.run("r-7f3a", &log);
    let screen = dash.screen();
    let first = screen.lines().next().expect("a header");
    assert!(first.contains("≈ $0.0185"), "{first}");
    assert!(screen.contains("cost ≈ $0.0185"), "{screen}");
    dash.text("q");
    let screen = dash.screen();
    assert!(screen.contains("2 calls, 1.8k tok, ≈ $0.0185"), "{screen}");
    // Nothing is said of a cost that is not known.
    let mut dash = Dash::new(200, 50);
    dash.run("r-7f3a", &run([Some("a"), Some("b")], &[("a", ONE), ("b", None)]));
    assert!(!dash.screen().contains('$'), "{}", dash.screen());
}

const TABLE: &str = r#"
title = "A mixed table"
pattern = "collaboration"
goal = "Start?"
[budget]
max_rounds = 1
min_go_votes = 2
[collaboration]
sequence = ["first", "second"]
finalize_prompt = "Write the brief."
[roles.first]
prompt = "You judge."
[roles.second]
prompt = "You judge too."
model = "openai/dear"
[model]
name = "openai/gpt-4.1-mini"
stream = false
"#;

/// The person's own prices. Those of the table hold at OpenAI's own address, not at that of the tests.
const CONFIG: &str = "[prices.\"openai/dear\"]\ninput = 100\noutput = 1000\n\
     [prices.\"gpt-4.1-mini\"]\ninput = 0.4\noutput = 1.6\n";
const ARGS: [&str; 5] = ["run", "table.toml", "--headless", "--live", "--trust"];

async fn usage(scene: &Scene, more: &[&str]) -> serde_json::Value {
    let args = [&ARGS[..], &["--format", "json"], more].concat();
    let ended = ended(scene.command(&args)).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()["usage"].clone()
}

#[tokio::test]
async fn a_live_run_tells_an_estimate_of_its_cost() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    scene.home.write("config/roundtable/config.toml", CONFIG);
    // Each reply is 100 tokens and 10: two of one model, one of the other.
    let found = usage(&scene, &[]).await;
    let dollars = 2.0 * (100.0 * 0.4 + 10.0 * 1.6) / 1e6 + (100.0 * 100.0 + 10.0 * 1_000.0) / 1e6;
    assert!((found["cost_usd"].as_f64().expect("a cost") - dollars).abs() < 1e-9, "{found}");
    assert_eq!(found["cost_note"], "estimate");
    for (option, sign) in [(&[][..], "≈ $0.0201"), (&["--ascii"], "~ $0.0201")] {
        let args = [&ARGS[..], &["--format", "text"], option].concat();
        let text = ended(scene.command(&args)).await.out;
        let done = text.lines().find(|line| line.contains("DONE")).expect("its last line");
        assert!(done.contains(sign), "{done}");
    }
    // The scenario's own price goes before both.
    let own = "model.prices={ prompt_usd_per_million = 1000, completion_usd_per_million = 0 }";
    let found = usage(&scene, &["--set", own]).await;
    assert!((found["cost_usd"].as_f64().expect("a cost") - 0.3).abs() < 1e-9, "{found}");
}

#[tokio::test]
async fn a_model_without_a_price_leaves_the_cost_unknown() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let found = usage(&scene, &[]).await;
    assert_eq!(
        (&found["cost_usd"], &found["prompt_tokens"]),
        (&serde_json::Value::Null, &300.into())
    );
    assert_eq!(found.get("cost_note"), None);
    let args = [&ARGS[..], &["--format", "text"]].concat();
    let text = ended(scene.command(&args)).await.out;
    assert!(text.contains(", tokens 300 in, 30 out") && !text.contains('$'), "{text}");
}

/// A server on this machine has no bill, whatever its model is called.
#[tokio::test]
async fn a_server_of_ones_own_has_no_list_price() {
    let scene = Scene::with(agreeing).await;
    let args = ["run", "checkout-unanimous", "--live", "--format", "json"];
    let mut command = scene.home.command(&args);
    command.env("OPENAI_BASE_URL", format!("http://{}/v1", scene.host));
    let found = ended(command).await.json()["usage"].clone();
    assert_eq!(
        (&found["cost_usd"], &found["prompt_tokens"]),
        (&serde_json::Value::Null, &400.into())
    );
    // A limit on money is refused before anything is asked, with what to set.
    let before = scene.asked().len();
    let limited = [&args[..], &["--set", "budget.max_cost_usd=1"]].concat();
    let refused = scene.run(&limited).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = format!("the price of openai/gpt-4.1-mini at {} is unknown", scene.host);
    assert!(refused.err.contains(&said), "{}", refused.err);
    assert_eq!((before, scene.asked().len()), (4, 0));
}

#[tokio::test]
async fn the_head_of_a_live_run_has_the_price_of_each_model() {
    let scene = Scene::with(agreeing).await;
    scene.home.write("table.toml", TABLE);
    let args = [&ARGS[..], &["--format", "jsonl"]].concat();
    let own = "[prices.\"gpt-4.1-mini\"]\ninput = 0.4\noutput = 1.6\ncached = 0.1\n";
    let price = serde_json::json!({ "input": 0.4, "output": 1.6, "cached": 0.1 });
    let mut priced = serde_json::json!([{ "model": "gpt-4.1-mini" }, { "model": "dear" }]);
    // The table's price does not hold at an address that is not the provider's own.
    let lines = ended(scene.command(&args)).await.lines();
    assert_eq!(lines[0]["model_prices"], priced, "{}", lines[0]);
    scene.home.write("config/roundtable/config.toml", own);
    let lines = ended(scene.command(&args)).await.lines();
    priced[0]["price"] = price;
    assert_eq!(lines[0]["model_prices"], priced, "{}", lines[0]);
    // A scripted run asks none of them.
    let args = ["run", "table.toml", "--instant", "--format", "jsonl", "--set"];
    let script = "script=[{ step = \"finalize\", text = \"Done.\" }, { reply = { stance = \"go\", summary = \"s\", confidence = 1, actions = [\"a\"] } }]";
    let lines = scene.home.run(&[&args[..], &[script]].concat()).lines();
    assert_eq!(lines[0].get("model_prices"), None);
    assert_eq!(lines.last().expect("an outcome")["usage"]["cost_usd"], serde_json::Value::Null);
}
