//! Tokens by the model that was asked, in a run whose models have prices.

use std::collections::BTreeMap;

use crate::event::SpanId;
use crate::event::kind::{ModelPriceHead, Usage};
use crate::scenario::price::Price;

/// What a run has used of a limit on its spending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpendingUsed {
    /// Tokens, of prompts and replies together.
    Tokens {
        /// Used.
        used: u64,
        /// Allowed.
        limit: u64,
    },
    /// US dollars, estimated.
    Cost {
        /// Used.
        used: f64,
        /// Allowed.
        limit: f64,
    },
}

impl SpendingUsed {
    /// The share of the limit, from 0; 1 is all of it.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Tokens { limit: 0, .. } => 1.0,
            Self::Tokens { used, limit } => used as f64 / limit as f64,
            Self::Cost { limit, .. } if limit <= 0.0 => 1.0,
            Self::Cost { used, limit } => used / limit,
        }
    }
}

/// Tokens of the models of a run, each at its price. Sums are of whole tokens, so the cost does not
/// depend on the order in which replies came.
#[derive(Clone, Debug, Default)]
pub(super) struct Spending {
    models: Vec<ModelSpending>,
    /// The open calls that name their model, by its place in `models`; `None`: it is not there.
    open: BTreeMap<SpanId, Option<usize>>,
    /// Tokens were used that no model of the head accounts for.
    unknown: bool,
}

/// What one model has used.
#[derive(Clone, Debug)]
struct ModelSpending {
    model: String,
    price: Option<Price>,
    usage: Usage,
}

impl Spending {
    /// The run may ask these models.
    pub fn begin(&mut self, models: &[ModelPriceHead]) {
        let spent = |it: &ModelPriceHead| ModelSpending {
            model: it.model.clone(),
            price: it.price,
            usage: Usage::default(),
        };
        self.models = models.iter().map(spent).collect();
    }

    /// A call begins; it names its model where the run asks several.
    pub fn asked(&mut self, call: SpanId, model: Option<&str>) {
        if let Some(model) = model.filter(|_| !self.models.is_empty()) {
            let at = self.models.iter().position(|spent| spent.model == model);
            self.open.insert(call, at);
        }
    }

    /// A reply to this call used so many tokens.
    pub fn used(&mut self, call: Option<SpanId>, usage: Usage) {
        let named = call.and_then(|call| self.open.get(&call).copied());
        let at = match named {
            Some(at) => at,
            // The only model there is need not be named.
            None if self.models.len() == 1 => Some(0),
            None => None,
        };
        match at.and_then(|at| self.models.get_mut(at)) {
            Some(spent) => spent.usage.add(usage),
            None => self.unknown = true,
        }
    }

    /// A span ended.
    pub fn ended(&mut self, span: SpanId) {
        self.open.remove(&span);
    }

    /// US dollars; `None` where there are no prices, or a model has none.
    pub fn cost(&self) -> Option<f64> {
        if self.models.is_empty() || self.unknown {
            return None;
        }
        self.models.iter().map(|spent| Some(spent.price?.cost(&spent.usage))).sum()
    }
}
