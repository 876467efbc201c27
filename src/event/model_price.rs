//! The price of a model, as the head of a log has it.

use serde::{Deserialize, Serialize};

use crate::scenario::spec::price::Price;

/// Price of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
