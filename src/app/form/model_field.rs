//! The model field of the launch form: the live model to call. Nothing is requested before the form
//! is set to live.

use super::models::FormModels;
use super::picker::{ModelPicker, PickerParts};
use super::{FieldId, FieldValue, LaunchForm};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::layout::Size;
use crate::app::live::{LiveQuery, LiveQueryResult, OfferedModels};
use crate::app::request::RequestId;
use crate::scenario::catalogue::{LiveOffer, ProviderHost};
use std::sync::Arc;

impl LaunchForm {
    /// Whether the shell has not answered yet whether the chosen model can be called.
    pub fn is_checking_model(&self) -> bool {
        self.models.offer_of != self.fields.chosen_model()
    }

    /// The pending questions to the shell: which models a live run would call, and which ones a
    /// provider lists.
    pub(in crate::app) fn pending_queries(&mut self) -> Vec<Effect> {
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
    pub(in crate::app) fn on_live_found(
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
    pub(in crate::app) fn on_models_listed(
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

    /// Changes what is known of models, and refreshes the window that shows it.
    fn update_models(&mut self, change: impl FnOnce(&mut FormModels)) {
        let before = self.picker.is_some().then(|| self.models.clone());
        change(&mut self.models);
        if let (Some(picker), Some(before)) = (&mut self.picker, before) {
            picker.refresh(&before, &self.models);
        }
    }

    /// Opens the list of models. Lists that failed to load are requested again.
    pub(in crate::app) fn open_picker(&mut self) {
        self.models.lists.retain(|(_, list)| !matches!(list, OfferedModels::Failed { .. }));
        let model = self.fields.chosen_model();
        self.picker = Some(ModelPicker::open(&self.models, model.as_deref()));
    }

    /// Handles an action in the list of models; returns whether it had an effect.
    pub(in crate::app) fn on_picker(&mut self, action: Action, size: Size) -> bool {
        let page = usize::from(PickerParts::split(size).list.height);
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
        let field = self.fields.get_mut(&FieldId::ModelName);
        if let Some(FieldValue::Model { text, .. }) = field.map(|field| &mut field.value) {
            *text = to;
        }
        self.revalidate();
    }

    /// Handles a click in the list; returns whether the row was selected before, `None` if the
    /// line is not a choice.
    pub(in crate::app) fn click_picker(&mut self, line: usize) -> Option<bool> {
        self.picker.as_mut()?.select_line(line)
    }
}
