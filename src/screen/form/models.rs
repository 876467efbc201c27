//! What the launch form knows of live models: whether a run can be live, which hosts and models it
//! would call, and the models that a provider lists. The shell finds all of it, but nothing before
//! the form is set to live; no key is ever here.

use std::sync::Arc;

use super::{FieldId, FieldValue, LaunchForm};
use crate::scenario::Scenario;
use crate::scenario::catalogue::{LiveOffer, ProviderHost, ProviderOffer};
use crate::screen::action::Action;
use crate::screen::effect::{Effect, RequestId};
use crate::screen::windows::picker::ModelPicker;

/// The data about live models while the form is open.
#[derive(Clone, Debug)]
pub struct FormModels {
    pub(crate) form: RequestId,
    /// Whether the run can be live with the model `offer_of`.
    pub offer: LiveOffer,
    offer_of: Option<Arc<str>>,
    /// Where the form's first model came from; empty if it had none.
    pub given: String,
    /// The offer without a chosen model: with that of the scenario or the environment.
    pub base: LiveOffer,
    /// The providers that have a key.
    pub providers: Vec<ProviderOffer>,
    /// The lists that were requested, in order of the requests.
    pub lists: Vec<(ProviderHost, OfferedModels)>,
    /// The model of the latest question to the shell.
    pub(crate) asked: Option<Option<Arc<str>>>,
    /// Whether the shell has answered that question.
    pub(crate) answered: bool,
}

impl FormModels {
    pub(crate) fn new(form: RequestId, offer: LiveOffer, given: String) -> Self {
        Self {
            form,
            given,
            base: offer.clone(),
            offer,
            offer_of: None,
            providers: Vec::new(),
            lists: Vec::new(),
            asked: None,
            answered: false,
        }
    }

    /// The lists with their indices in [`lists`](Self::lists), those of the run's own providers
    /// first.
    pub(crate) fn lists_in_order(&self) -> Vec<(usize, &ProviderHost, &OfferedModels)> {
        let asked = |place: &ProviderHost| match &self.offer {
            LiveOffer::Ready { places, .. } => places.contains(place),
            _ => false,
        };
        let lists = self.lists.iter().enumerate();
        let mut lists: Vec<_> = lists.map(|(at, (place, list))| (at, place, list)).collect();
        lists.sort_by_key(|(_, place, _)| !asked(place));
        lists
    }

    /// A name from a list, by the indices of list and name.
    pub fn name(&self, list: usize, at: usize) -> Option<&str> {
        match self.lists.get(list) {
            Some((_, OfferedModels::Listed { names, .. })) => names.get(at).map(String::as_str),
            _ => None,
        }
    }
}

/// The launch form's question to the shell about live models.
#[derive(Clone, Debug)]
pub struct LiveQuery {
    pub form: RequestId,
    /// The scenario with the changes of the form.
    pub scenario: Arc<Scenario>,
    /// The model that replaces those of the scenario, where one is chosen.
    pub model: Option<Arc<str>>,
}

/// The shell's answer to a [`LiveQuery`]; no host was called for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveQueryResult {
    /// Whether the run can be live.
    pub offer: LiveOffer,
    /// Every provider that has a key.
    pub providers: Vec<ProviderOffer>,
}

/// The models that a provider lists, or the state of the request for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedModels {
    /// It was requested.
    Loading,
    /// It has arrived.
    Listed {
        /// The names that can be chosen, sorted.
        names: Arc<[String]>,
        /// Number of models that the provider lists, those left out of `names` included.
        all: usize,
    },
    /// The provider gives no list. This is not an error: a name can be typed.
    NotGiven {
        /// HTTP status of its answer.
        status: u16,
    },
    /// The request for the list failed.
    Failed {
        /// Why, and what to do.
        why: String,
    },
}

impl LaunchForm {
    /// Whether the shell has not answered yet whether the chosen model can be called.
    pub fn is_checking_model(&self) -> bool {
        self.models.offer_of != self.fields.chosen_model()
    }

    /// The pending questions to the shell: which models a live run would call, and which ones a
    /// provider lists.
    pub(crate) fn pending_queries(&mut self) -> Vec<Effect> {
        if !self.fields.is_live() {
            return Vec::new();
        }
        let model = self.fields.chosen_model();
        let scenario = Arc::clone(self.scenario());
        let query = LiveQuery { form: self.models.form, scenario, model: model.clone() };
        if self.models.asked.as_ref() != Some(&model) {
            let mut effects = vec![Effect::FindLive(Box::new(query))];
            if self.models.asked.is_none() {
                effects.push(Effect::FindOllama { form: self.models.form });
            }
            (self.models.asked, self.models.answered) = (Some(model), false);
            return effects;
        }
        let mut effects = Vec::new();
        if !self.models.answered {
            return effects;
        }
        let LiveOffer::Ready { places, .. } = &self.models.offer else { return effects };
        let new =
            |place: &&ProviderHost| self.models.lists.iter().all(|(known, _)| known != *place);
        let new: Vec<ProviderHost> = places.iter().filter(new).cloned().collect();
        for place in new {
            let query = Box::new(query.clone());
            effects.push(Effect::ListModels { query, place: place.clone() });
            self.update_models(|models| models.lists.push((place, OfferedModels::Loading)));
        }
        effects
    }

    /// Stores what the shell found; returns whether that is news for this form.
    pub(crate) fn on_live_found(
        &mut self,
        form: RequestId,
        model: Option<&str>,
        found: LiveQueryResult,
    ) -> bool {
        let asked = self.models.asked.as_ref().is_some_and(|asked| asked.as_deref() == model);
        if form != self.models.form || !asked || self.models.answered {
            return false;
        }
        self.update_models(|models| {
            models.answered = true;
            if model.is_none() {
                models.base = found.offer.clone();
            }
            models.offer_of = model.map(Arc::from);
            models.offer = found.offer;
            models.providers = found.providers;
        });
        self.revalidate();
        true
    }

    /// Stores the models that a provider lists; returns whether that is news for this form.
    pub(crate) fn on_models_listed(
        &mut self,
        form: RequestId,
        place: ProviderHost,
        list: OfferedModels,
    ) -> bool {
        if form != self.models.form {
            return false;
        }
        self.update_models(|models| {
            match models.lists.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) => *known = list,
                None => models.lists.push((place, list)),
            }
        });
        true
    }

    /// Changes the data about models, and refreshes the window that shows it.
    fn update_models(&mut self, change: impl FnOnce(&mut FormModels)) {
        let before = self.picker.is_some().then(|| self.models.clone());
        change(&mut self.models);
        if let (Some(picker), Some(before)) = (&mut self.picker, before) {
            picker.refresh(&before, &self.models);
        }
    }

    /// Opens the list of models. Lists that failed to load are requested again.
    pub(super) fn open_picker(&mut self) {
        self.models.lists.retain(|(_, list)| !matches!(list, OfferedModels::Failed { .. }));
        let model = self.fields.chosen_model();
        self.picker = Some(ModelPicker::open(&self.models, model.as_deref()));
    }

    /// Handles an action in the list of models, except movements; returns whether it had an effect.
    pub(crate) fn on_picker(&mut self, action: Action) -> bool {
        let Some(picker) = &mut self.picker else { return false };
        match action {
            Action::Cancel => self.picker = None,
            Action::Take => {
                let Some(row) = picker.chosen() else { return false };
                let value = picker.value(row, &self.models).unwrap_or_default();
                self.picker = None;
                self.set_model(value);
            }
            _ => return false,
        }
        true
    }

    fn set_model(&mut self, to: String) {
        let field = self.fields.get_mut(&FieldId::ModelName);
        if let Some(FieldValue::Model { text, .. }) = field.map(|field| &mut field.value) {
            *text = to;
        }
        self.revalidate();
    }
}
