//! The launch form: a scenario and the operator's changes. After every change the scenario is
//! loaded again with all of them, so a form without errors is a run that starts.

mod command_line;
pub(crate) mod field;
mod launch_form;
mod layout;
mod model_field;
pub mod models;
pub mod picker;
mod scenario_fields;
pub(crate) mod shown_value;
mod text_input;

use std::sync::Arc;

pub use command_line::quoted;
pub use field::{Field, FieldId, FieldValue};
pub use launch_form::{FormProblem, FormSection, LaunchForm, MODEL_CHOICES};
pub use layout::{CANCEL_AT, FormParts, FormSlot, LABEL, is_long};
pub use text_input::KeyOutcome;

use self::models::FormModels;
use self::scenario_fields::{fields_of, override_of, path_of};
use super::action::Action;
use super::effect::LaunchRequest;
use super::request::RequestId;
use crate::base::name::FlagName;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::scenario::{self, Override, ProblemPosition, Scenario, Severity};

/// Problem text where several providers have a key and none is chosen.
const CHOOSE_PROVIDER: &str = "several providers have a key: press Enter on Model and choose one";

impl LaunchForm {
    /// A form with the scenario's values; `None` for a broken scenario. `model` is the live model
    /// that replaces the scenario's, and where it came from; `id` marks the shell's answers to this
    /// form.
    pub fn new(
        entry: &ScenarioEntry,
        id: RequestId,
        model: Option<(&str, String)>,
    ) -> Option<Self> {
        let scenario = Arc::clone(entry.scenario()?);
        let (model, given) = model.unwrap_or_default();
        let fields = fields_of(&scenario, model);
        let mut form = Self {
            entry: entry.clone(),
            fields,
            focus: FieldId::Start,
            problems: Vec::new(),
            top: 0,
            refused: false,
            models: FormModels::new(id, entry.live.clone(), given),
            picker: None,
            typing: false,
            scenario,
            loads: true,
        };
        form.revalidate();
        Some(form)
    }

    /// Whether characters are typed into the focused field.
    pub fn is_editing(&self) -> bool {
        self.typing && self.is_on_text()
    }

    /// Whether the focused field is a text, edited or not.
    pub fn is_on_text(&self) -> bool {
        matches!(self.field(&self.focus).map(|field| &field.value), Some(FieldValue::Text(_)))
    }

    /// The field with this id.
    pub fn field(&self, id: &FieldId) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == *id)
    }

    /// The scenario with every change applied.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    /// Whether a field is shown now: the name of a model only for a live run.
    pub fn is_shown(&self, id: &FieldId) -> bool {
        *id != FieldId::ModelName || self.is_live()
    }

    fn focused(&mut self) -> Option<&mut Field> {
        self.fields.iter_mut().find(|field| field.id == self.focus)
    }

    /// Whether the operator has changed anything.
    pub fn changed(&self) -> bool {
        self.fields.iter().any(Field::changed)
    }

    /// The first problem of a field.
    pub fn problem_of(&self, id: &FieldId) -> Option<&FormProblem> {
        self.problems.iter().find(|fault| fault.field.as_ref() == Some(id))
    }

    /// Whether the run can be started.
    pub fn is_startable(&self) -> bool {
        self.loads && !self.problems.iter().any(|fault| fault.error)
    }

    /// What answers the model calls.
    pub fn model(&self) -> RequestedModel {
        match self.field(&FieldId::Model).map(|field| &field.value) {
            Some(FieldValue::Choice { at: 1, .. }) => RequestedModel::Scripted { instant: true },
            Some(FieldValue::Choice { at: 2, .. }) => RequestedModel::Live(self.chosen_model()),
            _ => RequestedModel::Scripted { instant: false },
        }
    }

    /// Flags whose start position differs from the scenario's.
    pub fn flags(&self) -> Vec<(FlagName, bool)> {
        let flag = |field: &Field| match (&field.id, &field.value) {
            (FieldId::Flag(name), FieldValue::Switch { on, first }) if on != first => {
                Some((name.clone(), *on))
            }
            _ => None,
        };
        self.fields.iter().filter_map(flag).collect()
    }

    /// The overrides of the file, each with its field and the text that `--set` takes.
    fn overrides(&self) -> Vec<(FieldId, Override, String)> {
        self.fields.iter().filter(|field| field.changed()).filter_map(override_of).collect()
    }

    /// The request for the run that the form describes; `None` while it has an error.
    pub fn request(&self, id: RequestId) -> Option<LaunchRequest> {
        self.is_startable().then(|| LaunchRequest {
            id,
            scenario: Arc::clone(&self.scenario),
            model: self.model(),
            flags: self.flags(),
            seed: None,
            follows: None,
        })
    }

    /// Loads the scenario with the changes applied, and collects its problems.
    fn revalidate(&mut self) {
        self.refused = false;
        let overrides = self.overrides();
        let laid: Vec<_> = overrides.iter().map(|(_, laid, _)| laid.clone()).collect();
        let checked = scenario::check(&self.entry.text, self.entry.origin.clone(), &laid);
        let field_of = |place: &ProblemPosition, path: &str| match place {
            ProblemPosition::Override { index, .. } => {
                overrides.get(*index).map(|(id, ..)| id.clone())
            }
            ProblemPosition::File { .. } => self.fields.iter().find_map(|field| {
                let own = path_of(&field.id)?;
                let under = path.strip_prefix(&own)?;
                (under.is_empty() || under.starts_with('.')).then(|| field.id.clone())
            }),
        };
        // A gap in the script is an error only as long as the run is scripted.
        let live = matches!(self.model(), RequestedModel::Live(_));
        let faults = checked
            .problems
            .for_run(live)
            .iter()
            .map(|problem| FormProblem {
                field: field_of(&problem.place, &problem.path),
                error: problem.severity == Severity::Error,
                text: match &problem.help {
                    Some(help) => format!("{} ({help})", problem.what),
                    None => problem.what.clone(),
                },
            })
            .collect();
        self.problems = faults;
        self.loads = checked.scenario.is_some();
        if let Some(scenario) = checked.scenario {
            self.scenario = Arc::new(scenario);
            self.refill_goal();
        }
        for field in &self.fields {
            let FieldValue::Text(text) = &field.value else { continue };
            let unseen = text.invisible_chars();
            if unseen > 0 {
                let plural = if unseen == 1 { "" } else { "s" };
                self.problems.push(FormProblem {
                    field: Some(field.id.clone()),
                    error: false,
                    text: format!("contains {unseen} invisible character{plural}"),
                });
            }
        }
        let about_it = self.is_live() && !self.is_checking_model();
        let fault = match &self.models.offer {
            LiveOffer::Missing { why } if about_it => {
                let named = self.chosen_model().is_some();
                Some((if named { FieldId::ModelName } else { FieldId::Model }, why.clone()))
            }
            LiveOffer::Choose { .. } if about_it => {
                Some((FieldId::ModelName, CHOOSE_PROVIDER.to_owned()))
            }
            _ => None,
        };
        if let Some((field, text)) = fault {
            self.problems.push(FormProblem { field: Some(field), error: true, text });
        }
    }

    /// Updates a goal that was not edited, since it may mention changed inputs.
    fn refill_goal(&mut self) {
        let goal = self.scenario.goal.clone();
        if let Some(Field { value: FieldValue::Text(text), .. }) =
            self.fields.iter_mut().find(|field| field.id == FieldId::Goal)
            && !text.changed()
        {
            text.reset(&goal);
        }
    }

    /// Handles an action; returns whether it had an effect here.
    pub fn on_action(&mut self, action: Action) -> bool {
        if action == Action::Press && self.is_on_text() {
            self.typing = true;
            return true;
        }
        if action == Action::Press && self.focus == FieldId::ModelName {
            self.open_picker();
            return true;
        }
        // Tab starts editing a text; every other movement only focuses it.
        self.typing = matches!(action, Action::NextPane | Action::PrevPane);
        match action {
            Action::NextPane | Action::Down => self.move_focus(true),
            Action::PrevPane | Action::Up => self.move_focus(false),
            Action::Left | Action::Right => {
                let forward = action == Action::Right;
                match FormSection::of_field(&self.focus) {
                    FormSection::Buttons => self.move_focus(forward),
                    _ => self.change_focused(forward),
                }
            }
            Action::Press => self.change_focused(true),
            Action::Top => self.focus_at(0),
            Action::Bottom => self.focus = FieldId::Start,
            Action::PageDown => (0..5).for_each(|_| self.move_focus(true)),
            Action::PageUp => (0..5).for_each(|_| self.move_focus(false)),
            _ => return false,
        }
        true
    }

    /// Stops editing; the text keeps the focus.
    pub fn leave_text(&mut self) {
        self.typing = false;
    }

    /// Focuses a field; a text is then being edited.
    pub fn focus(&mut self, id: FieldId) {
        if self.field(&id).is_some() {
            self.focus = id;
            self.typing = true;
        }
    }

    /// Focuses the first field with an error.
    pub fn focus_first_error(&mut self) {
        let first = self.problems.iter().find(|fault| fault.error);
        if let Some(id) = first.and_then(|fault| fault.field.clone()) {
            self.focus(id);
        }
    }

    /// Changes the focused choice or switch.
    pub fn change_focused(&mut self, forward: bool) {
        if self.focused().is_some_and(|field| field.cycle(forward)) {
            self.revalidate();
        }
    }

    fn focus_at(&mut self, at: usize) {
        if let Some(field) = self.fields.get(at) {
            self.focus = field.id.clone();
        }
    }

    fn move_focus(&mut self, forward: bool) {
        let len = self.fields.len();
        let mut at = self.fields.iter().position(|field| field.id == self.focus).unwrap_or(0);
        for _ in 0..len {
            at = if forward { (at + 1) % len } else { (at + len - 1) % len };
            if self.fields.get(at).is_some_and(|field| self.is_shown(&field.id)) {
                return self.focus_at(at);
            }
        }
    }
}
