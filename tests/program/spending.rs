//! What bounds the spending of the real binary.

use serde_json::json;

use crate::support::binary::{Home, end};
use crate::support::server;

#[test]
fn exhausted_budget_exits_4() {
    let home = Home::new();
    let args = ["run", "checkout-launch", "--headless", "--instant", "--format", "json"];
    let sets = ["--set", "budget.max_total_tokens=100"];
    let ended = end(&mut home.command(&[&args[..], &sets].concat()));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.json()["stop_reason"], json!("max_tokens_budget"));
}

#[test]
fn cost_limit_refuses_unpriced_model_first() {
    let home = Home::new();
    let run = |model: &str, sets: &[&str]| {
        let args = ["run", "checkout-launch", "--headless", "--live", "--model", model];
        let limit = ["--set", "budget.max_cost_usd=0.5"];
        let mut command = home.command(&[&args[..], &limit, sets].concat());
        // No server listens there: any call fails otherwise.
        command.env("OPENAI_API_KEY", server::KEY).env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        end(&mut command)
    };
    let refused = run("openai/nobody-knows-it", &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("the price of openai/nobody-knows-it at 127.0.0.1:1 is unknown"),
        "{refused:?}"
    );
    assert!(refused.err.contains("[prices."), "{refused:?}");
    // List prices hold at the provider's own address alone.
    assert_eq!(run("openai/gpt-4.1-mini", &[]).code, Some(2));
    // A price, from the configuration or from the scenario, lets it start.
    home.write("config/roundtable/config.toml", "[prices.known]\ninput = 1\noutput = 2\n");
    let priced = run("openai/known", &[]);
    assert_eq!(priced.code, Some(6), "{priced:?}");
    let prices = [
        "--set",
        "model.prices.prompt_usd_per_million=1",
        "--set",
        "model.prices.completion_usd_per_million=1",
    ];
    assert_eq!(run("openai/nobody-knows-it", &prices).code, Some(6));
}
