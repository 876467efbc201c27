//! The model field of the launch form: which model is asked live, and what is known of those that could
//! be. Nothing is asked for before the form's choice is live.

use std::sync::Arc;

use super::picker::{ModelPicker, PickerParts};
use super::{FieldId, FieldValue, Form};
use crate::app::action::Action;
use crate::app::effect::{Effect, ModelWanted, RequestId};
use crate::app::live::{FoundLive, LiveOffer, LiveQuery, ModelPlace, NameList, ProviderOffer};
use crate::app::state::Size;

/// What is known of live models while the form is open.
#[derive(Clone, Debug)]
pub struct FormModels {
    form: RequestId,
    /// Whether the run can be live, with the model of `offer_of`.
    pub offer: LiveOffer,
    offer_of: Option<Arc<str>>,
    /// Who gave the model that the form begins with, where it begins with one.
    pub given: String,
    /// The same without a chosen model: as the scenario and the environment say.
    pub base: LiveOffer,
    /// The providers that have a key.
    pub providers: Vec<ProviderOffer>,
    /// The lists that were asked for, in that order.
    pub lists: Vec<(ModelPlace, NameList)>,
    /// The model that the shell was asked about last.
    asked: Option<Option<Arc<str>>>,
    /// Whether it has answered since.
    answered: bool,
}

impl FormModels {
    pub(super) fn new(form: RequestId, offer: LiveOffer, given: String) -> Self {
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

    /// The lists with their places among [`lists`](Self::lists): first those of whom the run would ask.
    pub(super) fn lists_in_order(&self) -> Vec<(usize, &ModelPlace, &NameList)> {
        let asked = |place: &ModelPlace| match &self.offer {
            LiveOffer::Ready { places, .. } => places.contains(place),
            _ => false,
        };
        let lists = self.lists.iter().enumerate();
        let mut lists: Vec<_> = lists.map(|(at, (place, list))| (at, place, list)).collect();
        lists.sort_by_key(|(_, place, _)| !asked(place));
        lists
    }

    /// A name of a list.
    pub fn name(&self, list: usize, at: usize) -> Option<&str> {
        match self.lists.get(list) {
            Some((_, NameList::Listed { names, .. })) => names.get(at).map(String::as_str),
            _ => None,
        }
    }
}

impl Form {
    /// The model that was chosen in place of those that the scenario and the environment name.
    pub fn chosen_model(&self) -> Option<Arc<str>> {
        let text = self.field(&FieldId::ModelName)?.text();
        let text = text.trim();
        (!text.is_empty()).then(|| text.into())
    }

    /// Whether the shell has yet to say whether the chosen model can be asked.
    pub fn is_looking(&self) -> bool {
        self.models.offer_of != self.chosen_model()
    }

    /// Whether live models answer.
    pub fn is_live(&self) -> bool {
        matches!(self.model(), ModelWanted::Live(_))
    }

    /// What the shell is to find out now: whom a live run would ask, and what they list.
    pub(in crate::app) fn ask(&mut self) -> Vec<Effect> {
        if !self.is_live() {
            return Vec::new();
        }
        let model = self.chosen_model();
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
        let new = |place: &&ModelPlace| self.models.lists.iter().all(|(known, _)| known != *place);
        let new: Vec<ModelPlace> = places.iter().filter(new).cloned().collect();
        for place in new {
            let query = Box::new(query.clone());
            effects.push(Effect::ListModels { query, place: place.clone() });
            self.learn(|models| models.lists.push((place, NameList::Loading)));
        }
        effects
    }

    /// Takes what the shell found; whether that is news to this form.
    pub(in crate::app) fn found(
        &mut self,
        form: RequestId,
        model: Option<&str>,
        found: FoundLive,
    ) -> bool {
        let asked = self.models.asked.as_ref().is_some_and(|asked| asked.as_deref() == model);
        if form != self.models.form || !asked || self.models.answered {
            return false;
        }
        self.learn(|models| {
            models.answered = true;
            if model.is_none() {
                models.base = found.offer.clone();
            }
            models.offer_of = model.map(Arc::from);
            models.offer = found.offer;
            models.providers = found.providers;
        });
        self.judge();
        true
    }

    /// Takes the models that a place lists; whether that is news to this form.
    pub(in crate::app) fn listed(
        &mut self,
        form: RequestId,
        place: ModelPlace,
        list: NameList,
    ) -> bool {
        if form != self.models.form {
            return false;
        }
        self.learn(|models| match models.lists.iter_mut().find(|(known, _)| *known == place) {
            Some((_, known)) => *known = list,
            None => models.lists.push((place, list)),
        });
        true
    }

    /// Changes what is known of models, and the window that shows it.
    fn learn(&mut self, change: impl FnOnce(&mut FormModels)) {
        let before = self.picker.is_some().then(|| self.models.clone());
        change(&mut self.models);
        if let (Some(picker), Some(before)) = (&mut self.picker, before) {
            picker.refresh(&before, &self.models);
        }
    }

    /// Opens the window in which a model is chosen. Lists that could not be had are asked for again.
    pub(in crate::app) fn open_picker(&mut self) {
        self.models.lists.retain(|(_, list)| !matches!(list, NameList::Failed { .. }));
        let model = self.chosen_model();
        self.picker = Some(ModelPicker::open(&self.models, model.as_deref()));
    }

    /// Answers an action in the window; whether it meant something there.
    pub(in crate::app) fn on_picker(&mut self, action: Action, size: Size) -> bool {
        let page = usize::from(PickerParts::of(size).list.height);
        let Some(picker) = &mut self.picker else { return false };
        match action {
            Action::Cancel => self.picker = None,
            Action::Take => {
                let Some(row) = picker.chosen() else { return false };
                let value = picker.value(row, &self.models).unwrap_or_default();
                self.picker = None;
                self.set_model(value);
            }
            action => {
                let taken = picker.on_move(action, page);
                picker.arrange(page);
                return taken;
            }
        }
        true
    }

    fn set_model(&mut self, to: String) {
        let field = self.fields.iter_mut().find(|field| field.id == FieldId::ModelName);
        if let Some(FieldValue::Model { text, .. }) = field.map(|field| &mut field.value) {
            *text = to;
        }
        self.judge();
    }

    /// A click in the window, or beside it; `None`: there is nothing to take.
    pub(in crate::app) fn click_picker(&mut self, line: usize) -> Option<bool> {
        self.picker.as_mut()?.select_line(line)
    }
}
