//! The launch form: a scenario and the operator's changes. After every change the scenario is
//! loaded again with all of them, so a form without errors is a run that starts.

mod command_line;
pub(crate) mod field;
mod fields;
mod fork;
pub mod fork_offer;
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
pub use launch_form::{FormProblem, FormSection, LaunchForm};
pub use layout::{CANCEL_AT, FormLayout, FormParts, FormSlot, LABEL, PROBLEM_MARK};
pub use text_input::KeyOutcome;

use self::fields::FormFields;
use self::models::FormModels;
use self::scenario_fields::{fields_of, path_of};
use super::action::Action;
use super::effect::{LaunchRequest, RunBeginning};
use super::request::RequestId;
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::scenario::{self, ProblemPosition, Scenario, Severity};

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
        let mut form = Self {
            entry: entry.clone(),
            fields: FormFields::new(fields_of(&scenario, model)),
            problems: Vec::new(),
            top: 0,
            refused: false,
            models: FormModels::new(id, entry.live.clone(), given),
            picker: None,
            fork: None,
            scenario,
            loads: true,
        };
        form.revalidate();
        Some(form)
    }

    /// The scenario with every change applied.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    /// The first problem of a field.
    pub fn problem_of(&self, id: &FieldId) -> Option<&FormProblem> {
        self.problems.iter().find(|fault| fault.field.as_ref() == Some(id))
    }

    /// Whether the run can be started.
    pub fn is_startable(&self) -> bool {
        self.loads && !self.problems.iter().any(|fault| fault.error)
    }

    /// The request for the run that the form describes; `None` while it has an error.
    pub fn request(&self, id: RequestId) -> Option<LaunchRequest> {
        self.is_startable().then(|| LaunchRequest {
            id,
            scenario: Arc::clone(&self.scenario),
            model: self.fields.model(),
            flags: self.fields.flags(),
            seed: None,
            begins: self.fork_request().map_or(RunBeginning::New, RunBeginning::Fork),
        })
    }

    /// Loads the scenario with the changes applied, and collects its problems.
    fn revalidate(&mut self) {
        self.refused = false;
        let overrides = self.fields.overrides();
        // A fork has the changes of its parent first.
        let before = self.fork.as_ref().map_or(&[][..], |fork| &fork.set);
        let own = overrides.iter().map(|(_, laid, _)| laid);
        let laid: Vec<_> = before.iter().chain(own).cloned().collect();
        let before = before.len();
        // Its prompt files were read with it.
        let source = self.entry.scenario().unwrap_or(&self.scenario).source.clone();
        let checked = scenario::check_again(&source, self.entry.origin.clone(), &laid);
        let field_of = |place: &ProblemPosition, path: &str| match place {
            ProblemPosition::Override { index, .. } => {
                let own = index.checked_sub(before);
                own.and_then(|own| overrides.get(own)).map(|(id, ..)| id.clone())
            }
            ProblemPosition::File { .. } => self.fields.list.iter().find_map(|field| {
                let own = path_of(&field.id)?;
                let under = path.strip_prefix(&own)?;
                (under.is_empty() || under.starts_with('.')).then(|| field.id.clone())
            }),
        };
        // A gap in the script is an error only as long as the run is scripted.
        let live = self.fields.is_live();
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
        for field in &self.fields.list {
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
        let about_it = self.fields.is_live() && !self.is_checking_model();
        let fault = match &self.models.offer {
            LiveOffer::Missing { why } if about_it => {
                let named = self.fields.chosen_model().is_some();
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
            self.fields.get_mut(&FieldId::Goal)
            && !text.changed()
        {
            text.reset(&goal);
        }
    }

    /// Handles an action; returns whether it had an effect here.
    pub fn on_action(&mut self, action: Action) -> bool {
        if action == Action::Press && self.fields.is_on_text() {
            self.fields.typing = true;
            return true;
        }
        if action == Action::Press && self.fields.focus == FieldId::ModelName {
            self.open_picker();
            return true;
        }
        // Tab starts editing a text; every other movement only focuses it.
        self.fields.typing = matches!(action, Action::NextPane | Action::PrevPane);
        match action {
            Action::NextPane | Action::Down => self.fields.move_focus(true),
            Action::PrevPane | Action::Up => self.fields.move_focus(false),
            Action::Left | Action::Right => {
                let forward = action == Action::Right;
                match FormSection::of_field(&self.fields.focus) {
                    FormSection::Buttons => self.fields.move_focus(forward),
                    _ => self.change_focused(forward),
                }
            }
            Action::Press => self.change_focused(true),
            Action::Top => self.fields.focus_at(0),
            Action::Bottom => self.fields.focus = FieldId::Start,
            Action::PageDown => (0..5).for_each(|_| self.fields.move_focus(true)),
            Action::PageUp => (0..5).for_each(|_| self.fields.move_focus(false)),
            _ => return false,
        }
        true
    }

    /// Focuses the first field with an error.
    pub fn focus_first_error(&mut self) {
        let first = self.problems.iter().find(|fault| fault.error);
        if let Some(id) = first.and_then(|fault| fault.field.clone()) {
            self.fields.focus(id);
        }
    }

    /// Changes the focused choice or switch.
    pub fn change_focused(&mut self, forward: bool) {
        if self.fields.focused().is_some_and(|field| field.cycle(forward)) {
            self.take_boundary();
            self.revalidate();
        }
    }
}
