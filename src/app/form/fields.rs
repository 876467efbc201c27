//! The fields of the launch form: their values, and which of them has the focus.

use std::sync::Arc;

use super::field::{Field, FieldId, FieldValue};
use super::scenario_fields::override_of;
use crate::base::name::FlagName;
use crate::scenario::Override;
use crate::scenario::catalogue::RequestedModel;

/// The fields of the form, and the focus.
#[derive(Debug)]
pub struct FormFields {
    /// The fields in order.
    pub list: Vec<Field>,
    /// The focused field.
    pub focus: FieldId,
    /// Whether the focused text is being edited: Tab, Enter and a click start that, other moves do
    /// not.
    pub(super) typing: bool,
}

impl FormFields {
    /// These fields, with the focus on the button that starts the run.
    pub(super) fn new(list: Vec<Field>) -> Self {
        Self { list, focus: FieldId::Start, typing: false }
    }

    /// The field with this id.
    pub fn get(&self, id: &FieldId) -> Option<&Field> {
        self.list.iter().find(|field| field.id == *id)
    }

    /// The field with this id, to change it.
    pub(super) fn get_mut(&mut self, id: &FieldId) -> Option<&mut Field> {
        self.list.iter_mut().find(|field| field.id == *id)
    }

    /// The focused field, to change it.
    pub(super) fn focused(&mut self) -> Option<&mut Field> {
        self.list.iter_mut().find(|field| field.id == self.focus)
    }

    /// Whether characters are typed into the focused field.
    pub fn is_editing(&self) -> bool {
        self.typing && self.is_on_text()
    }

    /// Whether the focused field is a text, edited or not.
    pub fn is_on_text(&self) -> bool {
        matches!(self.get(&self.focus).map(|field| &field.value), Some(FieldValue::Text(_)))
    }

    /// Whether a field is shown now: the name of a model only for a live run.
    pub fn is_shown(&self, id: &FieldId) -> bool {
        *id != FieldId::ModelName || self.is_live()
    }

    /// Whether the operator has changed anything.
    pub fn changed(&self) -> bool {
        self.list.iter().any(Field::changed)
    }

    /// What answers the model calls.
    pub fn model(&self) -> RequestedModel {
        match self.get(&FieldId::Model).map(|field| &field.value) {
            Some(FieldValue::Choice { at: 1, .. }) => RequestedModel::Scripted { instant: true },
            Some(FieldValue::Choice { at: 2, .. }) => RequestedModel::Live(self.chosen_model()),
            _ => RequestedModel::Scripted { instant: false },
        }
    }

    /// Sets what answers the model calls at first.
    pub(super) fn set_model(&mut self, model: &RequestedModel) {
        let place = match model {
            RequestedModel::Scripted { instant: false } => 0,
            RequestedModel::Scripted { instant: true } => 1,
            RequestedModel::Live(_) => 2,
        };
        if let Some(Field { value: FieldValue::Choice { at, first, .. }, .. }) =
            self.get_mut(&FieldId::Model)
        {
            (*at, *first) = (place, place);
        }
    }

    /// Whether live models answer the calls.
    pub fn is_live(&self) -> bool {
        matches!(self.model(), RequestedModel::Live(_))
    }

    /// The model that the operator chose instead of those of the scenario and the environment.
    pub fn chosen_model(&self) -> Option<Arc<str>> {
        let text = self.get(&FieldId::ModelName)?.text();
        let text = text.trim();
        (!text.is_empty()).then(|| text.into())
    }

    /// Flags that start in another position than the scenario says.
    pub fn flags(&self) -> Vec<(FlagName, bool)> {
        let flag = |field: &Field| match (&field.id, &field.value) {
            (FieldId::Flag(name), FieldValue::Switch { on, first }) if on != first => {
                Some((name.clone(), *on))
            }
            _ => None,
        };
        self.list.iter().filter_map(flag).collect()
    }

    /// The overrides of the file, each with its field and the text that `--set` takes.
    pub(super) fn overrides(&self) -> Vec<(FieldId, Override, String)> {
        self.list.iter().filter(|field| field.changed()).filter_map(override_of).collect()
    }

    /// Stops editing; the text keeps the focus.
    pub fn leave_text(&mut self) {
        self.typing = false;
    }

    /// Focuses a field; a text is then being edited.
    pub fn focus(&mut self, id: FieldId) {
        if self.get(&id).is_some() {
            self.focus = id;
            self.typing = true;
        }
    }

    /// Focuses the field at this index, shown or not.
    pub(super) fn focus_at(&mut self, at: usize) {
        if let Some(field) = self.list.get(at) {
            self.focus = field.id.clone();
        }
    }

    /// Focuses the next or previous field that is shown.
    pub(super) fn move_focus(&mut self, forward: bool) {
        let len = self.list.len();
        let mut at = self.list.iter().position(|field| field.id == self.focus).unwrap_or(0);
        for _ in 0..len {
            at = if forward { (at + 1) % len } else { (at + len - 1) % len };
            if self.list.get(at).is_some_and(|field| self.is_shown(&field.id)) {
                return self.focus_at(at);
            }
        }
    }
}
