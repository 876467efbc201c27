//! Tokens and cost by model. The cost is a fold: whole tokens times the prices in the head, so the
//! order of replies changes no digit. Calls of another program bring their cost. With one model without a price, or one reply without a token
//! count, it is unknown. Also which caller uses which model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::event::{CallStarted, ModelPriceHead, Purpose, SpanId, Usage};
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::{ModelCaller, Price};

/// How much of a spending limit a run has used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpendingUsed {
    /// Tokens of prompts and replies together.
    Tokens {
        /// Tokens used.
        used: u64,
        limit: u64,
    },
    /// US dollars, estimated.
    Cost {
        /// US dollars spent.
        used: f64,
        limit: f64,
    },
}

impl SpendingUsed {
    /// Used share of the limit; 1 is all of it.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Tokens { limit: 0, .. } => 1.0,
            Self::Tokens { used, limit } => used as f64 / limit as f64,
            Self::Cost { limit, .. } if limit <= 0.0 => 1.0,
            Self::Cost { used, limit } => used / limit,
        }
    }
}

/// Tokens of the models of a run, each with its price. It adds up whole tokens, so the cost does
/// not depend on the order of the replies.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpendingTally {
    models: Vec<ModelSpending>,
    /// Index in `models` of the one that calls do not name; `None`: calls name theirs.
    only: Option<usize>,
    /// Index in `models` of the model of each open call; `None`: the head does not name it.
    open: BTreeMap<SpanId, Option<usize>>,
    /// Whether tokens were used by a model that the head does not name.
    unknown: bool,
    /// What the calls of other programs cost.
    observed: Option<f64>,
}

/// Tokens of one model.
#[derive(Clone, Debug)]
struct ModelSpending {
    model: String,
    price: Option<Price>,
    usage: Usage,
}

impl SpendingTally {
    /// Sets the models that the run may use.
    pub fn set_models(&mut self, models: &[ModelPriceHead]) {
        self.models.clear();
        self.add_models(models);
    }

    /// The run is a fork: from here on it uses these models; the calls so far used other ones.
    pub fn fork(&mut self, models: &[ModelPriceHead]) {
        // Scripted replies cost nothing, and their calls name no model.
        let scripted = [ModelPriceHead::scripted()];
        if self.models.is_empty() && !models.is_empty() {
            self.add_models(&scripted);
            self.open.values_mut().for_each(|of_call| *of_call = Some(0));
        }
        match models {
            [] if !self.models.is_empty() => self.add_models(&scripted),
            models => self.add_models(models),
        }
    }

    /// A guarded program begins to use this model.
    pub fn add_model(&mut self, model: &str, price: Option<Price>) {
        self.add_models(&[ModelPriceHead { model: model.to_owned(), price }]);
    }

    fn add_models(&mut self, models: &[ModelPriceHead]) {
        self.only = (models.len() == 1).then_some(self.models.len());
        self.models.extend(models.iter().map(|it| ModelSpending {
            model: it.model.clone(),
            price: it.price,
            usage: Usage::default(),
        }));
    }

    /// A call begins; it names its model if the run uses several.
    pub fn call_started(&mut self, call: SpanId, model: Option<&str>) {
        let at = match model {
            Some(model) => self.models.iter().rposition(|spent| spent.model == model),
            None => self.only,
        };
        self.open.insert(call, at);
    }

    /// A reply to this call used these tokens.
    pub fn add_usage(&mut self, call: Option<SpanId>, usage: Usage) {
        let named = call.and_then(|call| self.open.get(&call).copied());
        match named.unwrap_or(self.only).and_then(|at| self.models.get_mut(at)) {
            Some(spent) => spent.usage.add(usage),
            // Without any price there is no cost anyway.
            None => self.unknown |= !self.models.is_empty(),
        }
    }

    /// A call of another program cost this much; `None`: that is not known.
    pub fn add_cost(&mut self, cost_usd: Option<f64>) {
        match cost_usd {
            Some(cost) => self.observed = Some(self.observed.unwrap_or(0.0) + cost),
            None => self.unknown = true,
        }
    }

    /// A span ended.
    pub fn span_ended(&mut self, span: SpanId) {
        self.open.remove(&span);
    }

    /// Estimated US dollars; `None` if there are no prices, or a model has none.
    pub fn cost(&self) -> Option<f64> {
        if self.unknown {
            return None;
        }
        if self.models.is_empty() {
            return self.observed;
        }
        let of_models = self.models.iter().map(|spent| Some(spent.price?.cost(&spent.usage)));
        let of_models = of_models.sum::<Option<f64>>()?;
        Some(of_models + self.observed.unwrap_or_default())
    }

    /// The part of the cost that is known, in US dollars.
    pub fn known_part(&self) -> f64 {
        let priced = self.models.iter().filter_map(|spent| Some(spent.price?.cost(&spent.usage)));
        priced.sum::<f64>() + self.observed.unwrap_or_default()
    }
}

/// The model of each caller, and what the models have used.
#[derive(Clone, Debug, Default)]
pub struct ModelsByCaller {
    /// Empty in a run that uses one model: its head names it.
    of: Vec<(ModelCaller, Arc<str>)>,
    pub(crate) spending: SpendingTally,
}

impl ModelsByCaller {
    /// Records the model of a call.
    pub(crate) fn record(&mut self, call: &CallStarted) {
        let Some((caller, model)) = call.purpose.caller().zip(call.model.as_ref()) else { return };
        match self.of.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, known)) => known.clone_from(model),
            None => self.of.push((caller, Arc::clone(model))),
        }
    }

    /// Whether no call has named its model: the run uses only one.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The model for calls with this purpose; for a member or a hop, that of the agent.
    pub fn for_purpose(&self, purpose: &Purpose) -> Option<&str> {
        match purpose.called_agent() {
            Some(agent) => self.for_agent(agent.as_str()),
            None => self.find(|caller| purpose.is_called_by(caller)),
        }
    }

    /// The model of an agent.
    pub fn for_agent(&self, agent: &str) -> Option<&str> {
        self.find(|caller| matches!(caller, ModelCaller::Agent(name) if name.as_str() == agent))
    }

    /// The model of a step.
    pub fn for_step(&self, step: ScriptStep) -> Option<&str> {
        self.find(|caller| *caller == ModelCaller::Step(step))
    }

    fn find(&self, is: impl Fn(&ModelCaller) -> bool) -> Option<&str> {
        self.of.iter().find(|(caller, _)| is(caller)).map(|(_, model)| &**model)
    }
}
