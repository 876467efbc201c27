//! The first and the last event of a log: the setup of the run, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::{BoundaryId, RunId};
use super::launch::LaunchRecord;
use super::model_price::ModelPriceHead;
use super::patterns::PatternPlan;
use super::stop::StopReason;
use super::tool::ToolHead;
use crate::base::name::{FlagName, ScenarioName};
use crate::scenario::spec::alert::AlertLimits;
use crate::scenario::spec::price::Price;
use crate::scenario::spec::spending_limits::SpendingLimits;

/// The whole setup of a run: the head of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
    /// in a call ([`CallStarted::model`](super::kind::CallStarted::model)); it is `None` in a run
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
    /// Prices of the models that the first events of the log are about: if the run is a fork, of a fork,
    /// those of the first run.
    pub(crate) fn first_prices(&self) -> &[ModelPriceHead] {
        let forked = self.launch.as_ref().and_then(|launch| launch.forked.as_ref());
        forked.map_or(&self.model_prices, |forked| &forked.prices)
    }

    /// SHA-256 of the scenario's file and its prompt files, in hexadecimal; empty if the log does not have the file.
    #[cfg(feature = "store")]
    pub(crate) fn scenario_hash(&self) -> String {
        let source = self.launch.as_ref().map(|launch| &launch.source);
        source.map(|source| source.digest()).unwrap_or_default()
    }
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct FlagAt {
    /// Name of the flag.
    pub name: FlagName,
    /// What the flag does, for display.
    pub label: String,
    /// The position.
    pub on: bool,
}

/// What answers the model calls of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
}

/// How a run ended. Its results are in the outcome, which the fold of its events gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
