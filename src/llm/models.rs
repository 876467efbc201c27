//! The models of a run, and which caller uses which one.

use std::sync::Arc;

use super::ChatModel;
use super::prices::Price;
use crate::event::kind::{ModelLabel, ModelPriceHead, Purpose};
use crate::scenario::spec::model_assignment::ModelCaller;

/// The models of a run: some callers have their own, all others use the default one. Cheap to
/// clone.
#[derive(Clone)]
pub struct Models {
    default_model: Arc<dyn ChatModel>,
    own: Arc<[(ModelCaller, Arc<dyn ChatModel>)]>,
    /// The price of each model, by name.
    prices: Arc<[ModelPriceHead]>,
    /// One price for all models, which overrides `prices`.
    one_price: Option<Price>,
    /// Whether the run uses several models or hosts.
    several: bool,
    /// Whether an endpoint answers the default model's calls.
    is_live: bool,
}

impl Models {
    /// The default model, and the models of callers that have their own.
    pub fn new(
        default_model: Arc<dyn ChatModel>,
        own: Vec<(ModelCaller, Arc<dyn ChatModel>)>,
    ) -> Self {
        let label = default_model.label();
        let several = own.iter().any(|(_, model)| model.label() != label);
        let is_live = matches!(label, ModelLabel::Live { .. });
        let (own, prices) = (own.into(), Arc::default());
        Self { default_model, own, prices, one_price: None, several, is_live }
    }

    /// The same models with these prices.
    pub fn with_prices(self, prices: Vec<ModelPriceHead>) -> Self {
        Self { prices: prices.into(), ..self }
    }

    /// The same models, all at this price if it is set; a scenario can set it.
    pub fn at_one_price(self, price: Option<Price>) -> Self {
        Self { one_price: price, ..self }
    }

    /// The price of each model, once per name; empty for scripted models.
    pub fn prices(&self) -> &[ModelPriceHead] {
        &self.prices
    }

    /// The token prices of a call for this purpose; `None` if they are unknown.
    pub fn price_for(&self, purpose: &Purpose) -> Option<Price> {
        self.one_price.or_else(|| match self.model_for(purpose).label() {
            ModelLabel::Live { name, .. } => self.prices.iter().find(|it| it.model == name)?.price,
            ModelLabel::Scripted => None,
        })
    }

    /// The model for this purpose.
    pub fn model_for(&self, purpose: &Purpose) -> &Arc<dyn ChatModel> {
        let own = self.own.iter().find(|(caller, _)| purpose.is_called_by(caller));
        own.map_or(&self.default_model, |(_, model)| model)
    }

    /// The default model.
    pub fn default_model(&self) -> &Arc<dyn ChatModel> {
        &self.default_model
    }

    /// Whether an endpoint answers the calls of the default model, not a script.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// The label for the run's header: the distinct names and hosts of all models.
    pub fn label(&self) -> ModelLabel {
        if self.own.is_empty() {
            return self.default_model.label();
        }
        let (mut names, mut hosts) = (Vec::new(), Vec::new());
        let once = |list: &mut Vec<String>, word: String| {
            if !list.contains(&word) {
                list.push(word);
            }
        };
        for model in
            std::iter::once(&self.default_model).chain(self.own.iter().map(|(_, model)| model))
        {
            match model.label() {
                ModelLabel::Scripted => return ModelLabel::Scripted,
                ModelLabel::Live { name, host } => {
                    once(&mut names, name);
                    once(&mut hosts, host);
                }
            }
        }
        ModelLabel::Live { name: names.join(", "), host: hosts.join(", ") }
    }

    /// The name of the model for this purpose; `None` if the run uses one model only.
    pub fn name_for(&self, purpose: &Purpose) -> Option<Arc<str>> {
        if !self.several {
            return None;
        }
        match self.model_for(purpose).label() {
            ModelLabel::Live { name, .. } => Some(name.into()),
            ModelLabel::Scripted => None,
        }
    }
}

impl<M: ChatModel + 'static> From<Arc<M>> for Models {
    fn from(model: Arc<M>) -> Self {
        Self::new(model, Vec::new())
    }
}

impl From<Arc<dyn ChatModel>> for Models {
    fn from(model: Arc<dyn ChatModel>) -> Self {
        Self::new(model, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;

    use super::*;
    use crate::event::kind::Reply;
    use crate::llm::{ChatRequest, Failure, Listener};
    use crate::scenario::spec::script::ScriptStep;

    /// A model that has a name and is never called.
    struct NamedModel(&'static str);

    impl ChatModel for NamedModel {
        fn label(&self) -> ModelLabel {
            ModelLabel::Live { name: self.0.to_owned(), host: "models.example".to_owned() }
        }
        fn chat<'a>(
            &'a self,
            _: &'a ChatRequest,
            _: &'a dyn Listener,
        ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
            unreachable!("nobody asks it")
        }
    }

    #[test]
    fn a_call_costs_what_its_model_does() {
        let own: Vec<(ModelCaller, Arc<dyn ChatModel>)> = vec![
            (ModelCaller::Step(ScriptStep::Plan), Arc::new(NamedModel("dear"))),
            (ModelCaller::Step(ScriptStep::Finalize), Arc::new(NamedModel("unknown"))),
        ];
        let price = |model: &str, input| ModelPriceHead {
            model: model.to_owned(),
            price: Some(Price::new(input, 1.0)),
        };
        let models = Models::new(Arc::new(NamedModel("usual")), own)
            .with_prices(vec![price("usual", 1.0), price("dear", 9.0)]);
        let input = |models: &Models, purpose| models.price_for(&purpose).map(|it| it.input);
        assert_eq!(input(&models, Purpose::Synthesize), Some(1.0));
        assert_eq!(input(&models, Purpose::Plan), Some(9.0));
        assert_eq!(input(&models, Purpose::Finalize), None);
        let models = models.at_one_price(Some(Price::new(5.0, 1.0)));
        for purpose in [Purpose::Synthesize, Purpose::Plan, Purpose::Finalize] {
            assert_eq!(input(&models, purpose), Some(5.0));
        }
    }
}
