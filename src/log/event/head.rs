//! The first and the last event of a log: the whole setup of the run with its models, prices and
//! launch, enough to continue or repeat it from its log alone; and how it ended.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::kind::Usage;
use super::stop::StopReason;
use super::tool::ToolHead;
use super::{BoundaryId, RunId, Seq};
use crate::base::name::{FlagName, PersonName, ScenarioName};
use crate::log::facts::PatternPlan;
use crate::scenario::spec::{AlertLimits, Price, SourceText, SpendingLimits};

/// The whole setup of a run: the head of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunStarted {
    /// Id of the run.
    pub run: RunId,
    /// Wall clock time at the start, as Unix time in milliseconds.
    pub wall_ms: u64,
    /// Name of the scenario.
    pub scenario: ScenarioName,
    /// Title of the scenario.
    pub title: String,
    /// The goal: what the run has to answer.
    pub goal: String,
    /// What answers the model calls.
    pub model: ModelLabel,
    /// The inputs with their values, in the scenario's order.
    pub inputs: Map<String, Value>,
    /// The flags and their positions at the start, in the scenario's order.
    pub flags: Vec<FlagAt>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The scenario's own price, which overrides the prices of the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricesHead>,
    /// Prices of the models that a live run may call, each model once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_prices: Vec<ModelPriceHead>,
    /// The tools behind the gateway, the model first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolHead>,
    /// The people whom the run may ask, besides the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<PersonName>,
    /// How often a model is asked again after a refused JSON reply; 0 in logs of earlier versions,
    /// whose scenario may say more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ask_again: u32,
    /// Whether requests have the positions of the flags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_flags: bool,
    /// Thresholds at which the operator is alerted.
    #[serde(default)]
    pub alerts: AlertLimits,
    /// Limits of what the run may spend on its models.
    #[serde(default, skip_serializing_if = "SpendingLimits::is_none")]
    pub spending: SpendingLimits,
    /// What the run was started with; `None` in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchRecord>,
    /// Whether the texts of this log were replaced by their lengths and digests: a run cannot be
    /// continued from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The setup of the pattern.
    pub plan: PatternPlan,
}

fn is_zero(times: &u32) -> bool {
    *times == 0
}

impl RunStarted {
    /// Price of a model in this run: the scenario's, or else the model's own. `model` is the name
    /// in a call ([`CallStarted::model`](crate::log::event::CallStarted::model)); it is `None` in a run
    /// that uses only one model. Returns `None` if there is no price.
    pub fn price_of(&self, model: Option<&str>) -> Option<Price> {
        if let Some(prices) = self.prices {
            return Some(prices.into());
        }
        match model {
            Some(model) => self.model_prices.iter().find(|it| it.model == model)?.price,
            None => match &self.model_prices[..] {
                [only] => only.price,
                _ => None,
            },
        }
    }
}

impl RunStarted {
    /// The people whom the run may ask, besides the operator. A log of an earlier version names only those
    /// who are called as a tool.
    pub(crate) fn people(&self) -> Vec<PersonName> {
        match &self.people[..] {
            [] => {
                let tools = self.tools.iter().filter(|tool| tool.is_person());
                tools.map(|tool| tool.name.as_str().into()).collect()
            }
            people => people.to_vec(),
        }
    }

    /// Prices of the models that the first events of the log are about: if the run is a fork, of a fork,
    /// those of the first run.
    pub(crate) fn first_prices(&self) -> &[ModelPriceHead] {
        let forked = self.launch.as_ref().and_then(|launch| launch.forked.as_ref());
        forked.map_or(&self.model_prices, |forked| &forked.prices)
    }

    /// SHA-256 of the scenario's file and its prompt files, in hexadecimal; empty if the log does not
    /// have the file.
    pub(crate) fn scenario_hash(&self) -> String {
        let source = self.launch.as_ref().map(|launch| &launch.source);
        source.map(|source| source.digest()).unwrap_or_default()
    }
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PricesHead {
    /// Price of prompt tokens.
    pub prompt_usd_per_million: f64,
    /// Price of reply tokens.
    pub completion_usd_per_million: f64,
}

impl From<PricesHead> for Price {
    fn from(prices: PricesHead) -> Self {
        Self::new(prices.prompt_usd_per_million, prices.completion_usd_per_million)
    }
}

/// A flag and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlagAt {
    /// Name of the flag.
    pub name: FlagName,
    /// What the flag does, for display.
    pub label: String,
    /// The position.
    pub on: bool,
}

/// What answers the model calls of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum ModelLabel {
    /// The scenario's script.
    Scripted,
    /// An endpoint.
    Live {
        /// Name of the model.
        name: String,
        /// Host of the endpoint, without the rest of its address.
        host: String,
    },
    /// Models of another program.
    Observed {
        /// Whether their calls go through the proxy; otherwise the program is only watched.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guarded: bool,
    },
}

impl ModelLabel {
    /// Whether another program plays the run.
    pub(crate) fn is_observed(&self) -> bool {
        matches!(self, Self::Observed { .. })
    }

    /// Whether commands can change the run: a program that is only watched plays by itself.
    pub(crate) fn is_steered(&self) -> bool {
        *self != Self::Observed { guarded: false }
    }
}

/// How a run ended. Its results are in the outcome, which the fold of its events gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunClosed {
    /// The stop reason.
    pub reason: StopReason,
    /// The phase in the source document's words (`round_2:risk_analyst`, `finalize`); `None` for a
    /// success.
    pub phase: Option<String>,
    /// The last boundary that was passed.
    pub boundary: Option<BoundaryId>,
    /// Milliseconds since the start, pauses not counted.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Number of attempts in flight: always 0.
    pub in_flight: u32,
}

/// What a run was started with, beyond what its scenario says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchRecord {
    /// The scenario as it was then, whatever its file says today.
    pub source: Arc<SourceText>,
    /// Whether the delays of scripted replies were skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instant: bool,
    /// The model that was requested (`--model`), in place of those that the scenario names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The flags that were to be switched at boundaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(BoundaryId, FlagName, bool)>,
    /// The boundaries that were to be paused at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<BoundaryId>,
    /// Who answers the questions of the run; `None` in logs of earlier versions, and where a recorded run
    /// answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerers: Option<PeopleChoice>,
    /// The recorded run whose replies answered the model calls (`--replay`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<RunId>,
    /// Where the run was forked from another one; `None`: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkOrigin>,
}

/// Who answers the questions of a run (`--people`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PeopleChoice {
    /// The script of the scenario.
    Script,
    /// People, one of them with lines on the standard input of the process that plays the run.
    Ask,
    /// People, from anywhere.
    #[default]
    Wait,
    /// Nobody.
    Nobody,
}

/// A boundary that a recorded run reached, where it can be forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkPlace {
    pub id: BoundaryId,
    /// The first event of the run after it.
    pub next: Seq,
    /// The run's own time then, without its pauses.
    pub at: Duration,
    /// The positions of the flags then.
    pub flags: Vec<(FlagName, bool)>,
}

/// Where a run was forked from another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ForkOrigin {
    /// The other run.
    pub parent: RunId,
    /// The boundary that the run continues from.
    #[serde(rename = "boundary")]
    pub at: BoundaryId,
    /// When it was forked, as Unix time in milliseconds. The run's own time continues that of its
    /// parent.
    pub wall_ms: u64,
    /// The flags that were switched there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(FlagName, bool)>,
    /// Prices of the models that the first events of the log are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<ModelPriceHead>,
}

/// Price of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelPriceHead {
    /// Name of the model, as in its calls.
    pub model: String,
    /// The price; `None`: unknown, so the cost of the run is unknown too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelPriceHead {
    /// The script of a scenario, which costs nothing.
    pub(crate) fn scripted() -> Self {
        Self { model: "scripted".to_owned(), price: Some(Price::new(0.0, 0.0)) }
    }
}

impl Price {
    /// Cost of these tokens in US dollars. Prompt tokens that were read from or written to the
    /// provider's cache have their own prices.
    pub fn cost(&self, usage: &Usage) -> f64 {
        // Both are part of the prompt; an endpoint may report more than the prompt has.
        let cached = usage.cached_tokens.min(usage.prompt_tokens);
        let written = usage.cache_write_tokens.min(usage.prompt_tokens - cached);
        let plain = usage.prompt_tokens - cached - written;
        let of = |tokens: u64, price: f64| tokens as f64 * price;
        (of(plain, self.input)
            + of(cached, self.cached.unwrap_or(self.input))
            + of(written, self.cache_write.unwrap_or(self.input))
            + of(usage.completion_tokens, self.output))
            / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_kind_has_its_price() {
        let whole = Price { input: 1.0, output: 10.0, cached: Some(0.1), cache_write: Some(1.25) };
        let usage = |prompt, completion, cached, written| Usage {
            cached_tokens: cached,
            cache_write_tokens: written,
            ..Usage::new(prompt, completion)
        };
        let bare = Price::new(1.0, 10.0);
        for (price, usage, micros) in [
            (whole, usage(0, 0, 0, 0), 0.0),
            (whole, usage(100, 0, 0, 0), 100.0),
            (whole, usage(0, 100, 0, 0), 1_000.0),
            (whole, usage(100, 0, 100, 0), 10.0),
            (whole, usage(100, 0, 0, 100), 125.0),
            (whole, usage(100, 10, 60, 20), 20.0 + 6.0 + 25.0 + 100.0),
            // Without prices of their own, they cost as much as other tokens.
            (bare, usage(100, 10, 60, 20), 200.0),
            // A count above the prompt's is limited to the prompt.
            (whole, usage(100, 0, 500, 500), 10.0),
        ] {
            let cost = price.cost(&usage) * 1e6;
            assert!((cost - micros).abs() < 1e-6, "{usage:?}: {cost}");
        }
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { cached: Some(0.1), ..Price::new(1.0, 4.0) };
        let usage = Usage { cached_tokens: 600_000, ..Usage::new(1_000_000, 500_000) };
        assert!((price.cost(&usage) - (0.4 + 0.06 + 2.0)).abs() < 1e-9);
    }
}
