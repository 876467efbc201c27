//! Builds `run.started`, the head of a run's log: the whole setup of the run.

use crate::event::RunId;
use crate::event::kind::{FlagAt, ModelLabel, ModelPriceHead, PricesHead, RunStarted, ToolHead};
use crate::event::launch::LaunchRecord;
use crate::event::patterns::PatternPlan;
use crate::run::AskingRules;
use crate::scenario::Scenario;

/// What the scenario does not know about the start of a run.
pub(super) struct RunSetup<'a> {
    pub run: &'a RunId,
    pub model: ModelLabel,
    pub model_prices: Vec<ModelPriceHead>,
    pub flags: Vec<FlagAt>,
    pub tools: Vec<ToolHead>,
    pub seed: u64,
    pub launch: LaunchRecord,
    /// Unix time in milliseconds.
    pub wall_ms: u64,
    pub plan: PatternPlan,
    pub asking: AskingRules,
}

pub(super) fn build_head(scenario: &Scenario, begun: RunSetup<'_>) -> RunStarted {
    let RunSetup { run, model, model_prices, flags, tools, seed, launch, wall_ms, plan, asking } =
        begun;
    RunStarted {
        run: run.clone(),
        wall_ms,
        model,
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        goal: scenario.goal.to_string(),
        inputs: scenario
            .inputs
            .iter()
            .map(|input| (input.name.to_string(), input.value.clone()))
            .collect(),
        flags,
        seed,
        prices: scenario.model.prices.map(|prices| PricesHead {
            prompt_usd_per_million: prices.prompt_usd_per_million,
            completion_usd_per_million: prices.completion_usd_per_million,
        }),
        model_prices,
        tools,
        ask_again: asking.ask_again,
        shows_flags: asking.shows_flags,
        alerts: scenario.alerts,
        spending: scenario.spending,
        launch: Some(launch),
        redacted: false,
        plan,
    }
}
