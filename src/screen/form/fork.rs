//! The launch form of a fork: the run, the boundary to continue from, and the changes from there on.

use super::LaunchForm;
use super::fields::{Field, FieldId, FieldValue, prompt_fields};
use super::models::FormModels;
use crate::log::event::head::ForkPlace;
use crate::log::event::{RunId, Seq};
use crate::scenario::Override;
use crate::scenario::catalogue::{RequestedModel, ScenarioEntry};
use crate::scenario::read::prompts::prompts;
use crate::screen::effect::{ForkRequest, RequestId};
use crate::words::format::time_in_run;

/// A recorded run that can be forked.
#[derive(Debug)]
pub struct ForkOffer {
    pub run: RunId,
    /// Its scenario, as it was then.
    pub entry: ScenarioEntry,
    /// The overrides that the run was started with.
    pub set: Vec<Override>,
    /// What answered its model calls.
    pub model: RequestedModel,
    /// The boundaries where it can be forked, in their order; never empty.
    pub places: Vec<ForkPlace>,
}

/// What the form knows of the run that is forked.
#[derive(Debug)]
pub struct FormFork {
    pub run: RunId,
    pub(crate) set: Vec<Override>,
    pub(crate) model: RequestedModel,
    pub(crate) places: Vec<ForkPlace>,
    /// Whether no store has the run: only this form can fork it, and no command line.
    pub(crate) is_unkept: bool,
}

impl LaunchForm {
    /// A form for a fork at the last boundary before this event; `None` for a broken scenario. `id`
    /// marks the shell's answers to this form.
    pub fn of_fork(offer: ForkOffer, before: Seq, id: RequestId) -> Option<Self> {
        let ForkOffer { run, entry, set, model, places } = offer;
        let name = model.name();
        let given = name.as_deref().map(|name| (name, format!("as in {run}")));
        let mut form = Self::new(&entry, id, given)?;
        let at = places.iter().rposition(|place| place.next <= before).unwrap_or(0);
        let choices = places.iter().map(ForkPlace::label).collect();
        let fields = &mut form.fields;
        // The numbers of a fork are those of the run.
        fields.list.retain(|field| field.id != FieldId::Seed);
        let value = FieldValue::Choice { choices, at, first: at };
        let hint = "h l chooses another boundary".to_owned();
        let label = "Boundary".to_owned();
        fields.list.insert(0, Field { id: FieldId::Boundary, label, hint, literal: false, value });
        let end = fields.list.iter().position(|field| field.id == FieldId::Start);
        let files = entry.scenario().map(|it| it.source.prompt_files.clone()).unwrap_or_default();
        let prompts = prompt_fields(prompts(&entry.text, &set, &files));
        let end = end.unwrap_or(fields.list.len());
        fields.list.splice(end..end, prompts);
        fields.set_model(&model);
        // The operator has to choose the boundary first.
        fields.focus = FieldId::Boundary;
        form.fork = Some(FormFork { run, set, model, places, is_unkept: false });
        form.models = FormModels::new(id, entry.live.clone(), form.models.given.clone());
        form.take_boundary();
        form.revalidate();
        Some(form)
    }

    /// The flags begin as they were at the chosen boundary.
    pub(super) fn take_boundary(&mut self) {
        let Some(place) = self.boundary().cloned() else { return };
        for field in &mut self.fields.list {
            let FieldId::Flag(name) = &field.id else { continue };
            let then = place.flags.iter().find(|(flag, _)| flag == name).map(|(_, on)| *on);
            if let (FieldValue::Switch { on, first }, Some(then)) = (&mut field.value, then) {
                if on == first {
                    *on = then;
                }
                *first = then;
            }
        }
    }

    /// The chosen boundary; `None` if the form is not for a fork.
    pub fn boundary(&self) -> Option<&ForkPlace> {
        let places = &self.fork.as_ref()?.places;
        match self.fields.get(&FieldId::Boundary).map(|field| &field.value) {
            Some(FieldValue::Choice { at, .. }) => places.get(*at),
            _ => None,
        }
    }

    /// The request for the fork; `None` if the form is for a new run.
    pub(super) fn fork_request(&self) -> Option<ForkRequest> {
        let (fork, at) = (self.fork.as_ref()?, self.boundary()?.id.clone());
        let set = self.fields.overrides().into_iter().map(|(_, _, text)| text).collect();
        Some(ForkRequest { run: fork.run.clone(), at, set, flags: self.fields.flags() })
    }
}

impl ForkPlace {
    /// The boundary and the time of the run there, as a text.
    fn label(&self) -> String {
        format!("{}, at {}", self.id.display_name(), time_in_run(self.at))
    }
}
