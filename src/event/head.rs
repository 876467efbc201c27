//! The first and the last fact of a log: what was asked, whole, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::{BoundaryId, RunId};
use super::plan::PatternPlan;
use super::stop::StopReason;
use super::tool::ToolHead;
use crate::scenario::alert::AlertLimits;
use crate::scenario::model::SpendingLimits;
use crate::scenario::name::{FlagName, ScenarioName};
use crate::scenario::price::Price;

/// What was asked, whole: the head of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run: RunId,
    /// Wall clock at the start, Unix time in milliseconds.
    pub wall_ms: u64,
    /// The scenario's name.
    pub scenario: ScenarioName,
    /// Its title.
    pub title: String,
    /// What the run is asked.
    pub goal: String,
    /// Who answers.
    pub model: ModelLabel,
    /// The inputs with their values, in the scenario's order.
    pub inputs: Map<String, Value>,
    /// The flags at the start, in the scenario's order.
    pub flags: Vec<FlagAt>,
    /// Start of every random number.
    pub seed: u64,
    /// One price for all models: the scenario's own, which goes before those of the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricesHead>,
    /// What the models cost that a live run may ask, each model once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_prices: Vec<ModelPriceHead>,
    /// The tools behind the gateway, the model first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolHead>,
    /// When a person is alerted.
    #[serde(default)]
    pub alerts: AlertLimits,
    /// What the run may spend on its models.
    #[serde(default, skip_serializing_if = "SpendingLimits::is_none")]
    pub spending: SpendingLimits,
    /// What the pattern alone needs.
    pub plan: PatternPlan,
}

impl RunStarted {
    /// What a model costs in this run: the scenario's price, else that of the model. The model is the
    /// one that a call names ([`CallStarted::model`](super::kind::CallStarted::model)); a call of a
    /// run that asks only one names none. `None`: it has no price.
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

/// What a model costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelPriceHead {
    /// The model's name, as its calls have it.
    pub model: String,
    /// Its price; `None`: it is not known, and so is not what the run costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricesHead {
    /// Tokens of the prompt.
    pub prompt_usd_per_million: f64,
    /// Tokens of the reply.
    pub completion_usd_per_million: f64,
}

impl From<PricesHead> for Price {
    fn from(prices: PricesHead) -> Self {
        Self::new(prices.prompt_usd_per_million, prices.completion_usd_per_million)
    }
}

/// A flag and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagAt {
    /// Which.
    pub name: FlagName,
    /// What it does, for people.
    pub label: String,
    /// Its position.
    pub on: bool,
}

/// Who answers a run's model calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum ModelLabel {
    /// The scenario's script.
    Scripted,
    /// An endpoint.
    Live {
        /// The model's name.
        name: String,
        /// The endpoint's host, never more of its address.
        host: String,
    },
}

/// How a run ended. What it came to is a fold of the log
/// ([`World::outcome`](super::world::World::outcome)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunClosed {
    /// Why.
    pub reason: StopReason,
    /// Where, as the sources say it (`round_2:risk_analyst`, `finalize`); `None` for a success.
    pub phase: Option<String>,
    /// The last boundary that was passed.
    pub boundary: Option<BoundaryId>,
    /// Milliseconds since the start, pauses left out.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Calls still in flight: always 0.
    pub in_flight: u32,
}
