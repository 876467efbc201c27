//! The launch form: a scenario and the operator's changes. After every change the scenario is
//! loaded again with all of them, so a form without errors is a run that starts. Its command line
//! starts the same run.

pub mod drawing;
pub mod fields;
pub mod fork;
pub mod models;

use std::sync::Arc;

use self::fields::{FormFields, MAX_TEXT_BYTES, fields_of, path_of};
use self::fork::FormFork;
use self::models::FormModels;
use super::action::Action;
use super::effect::{LaunchRequest, RequestId, RunBeginning};
use super::key::{KeyCode, KeyPress};
use super::keymap::key_of;
use super::windows::picker::ModelPicker;
use crate::scenario;
use crate::scenario::catalogue::{LiveOffer, RequestedModel, ScenarioEntry};
use crate::scenario::{ProblemPosition, Scenario, Severity};

pub use self::fields::{Field, FieldId, FieldValue};
pub use crate::base::visible::shell_word as quoted;

/// A section of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormSection {
    /// Where a fork begins.
    Fork,
    /// Goal and inputs.
    Task,
    /// What answers the model calls.
    Model,
    /// Positions of flags at the start.
    Flags,
    Limits,
    Prompts,
    Buttons,
}

impl FormSection {
    /// The section of a field.
    pub fn of_field(id: &FieldId) -> Self {
        match id {
            FieldId::Boundary => Self::Fork,
            FieldId::Goal | FieldId::Input(_) => Self::Task,
            FieldId::Flag(_) => Self::Flags,
            FieldId::Limit(_) => Self::Limits,
            FieldId::Prompt(_) => Self::Prompts,
            FieldId::Model | FieldId::ModelName | FieldId::Seed => Self::Model,
            FieldId::Start | FieldId::Cancel => Self::Buttons,
        }
    }

    /// Its heading; in the form of a fork, the settings hold from its boundary on.
    pub fn title(self, is_fork: bool) -> &'static str {
        match self {
            Self::Fork => "Continue from",
            Self::Flags if is_fork => "Flags from there on",
            Self::Task => "Task",
            Self::Flags => "Flags at the start",
            Self::Limits => "Limits",
            Self::Prompts => "Prompts from there on",
            Self::Model => "Model",
            Self::Buttons => "",
        }
    }
}

/// A problem of the form: an error keeps it from being started, a warning does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormProblem {
    /// The field it belongs to; `None` for the file as a whole.
    pub field: Option<FieldId>,
    pub error: bool,
    /// What is wrong and how to fix it.
    pub text: String,
}

/// The launch form.
#[derive(Debug)]
pub struct LaunchForm {
    /// The scenario that it starts from.
    pub entry: ScenarioEntry,
    /// Its fields, and the focus.
    pub fields: FormFields,
    /// Its errors and warnings.
    pub problems: Vec<FormProblem>,
    /// The first row in view.
    pub top: u16,
    /// Whether an attempt to start it as it is now was refused.
    pub refused: bool,
    pub models: FormModels,
    /// The list of models, while it is open.
    pub picker: Option<ModelPicker>,
    /// The run that is forked; `None` for a new run.
    pub fork: Option<FormFork>,
    pub(crate) scenario: Arc<Scenario>,
    loads: bool,
}

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

    /// Gives a field this value: a text, one of its choices or its number, on or off.
    pub(crate) fn set(&mut self, id: &FieldId, text: &str) -> Result<(), String> {
        let Some(field) = self.fields.get_mut(id) else { return Err("no such field".to_owned()) };
        field.set(text)?;
        if *id == FieldId::Boundary {
            self.take_boundary();
        }
        self.revalidate();
        Ok(())
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
                    FormSection::Buttons => self.fields.switch_button(),
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

/// The effect of a key on the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The form used it.
    Taken,
    /// It has no meaning here.
    Ignored,
    /// It is text, but the focused field is not being edited.
    NotEditing,
}

impl LaunchForm {
    /// Takes a key without a binding: text for the focused field.
    pub fn on_key(&mut self, key: KeyPress) -> KeyOutcome {
        let edge = match key.code {
            KeyCode::Up => Some(false),
            KeyCode::Down => Some(true),
            _ => None,
        };
        if let Some(picker) = &mut self.picker {
            let taken = picker.on_key(key, &self.models);
            return if taken { KeyOutcome::Taken } else { KeyOutcome::Ignored };
        }
        if !self.fields.is_editing() {
            let typable = self.fields.is_on_text() || self.fields.focus == FieldId::ModelName;
            let would = typable && key.typed_char().is_some();
            return if would { KeyOutcome::NotEditing } else { KeyOutcome::Ignored };
        }
        let Some(Field { value: FieldValue::Text(text), .. }) = self.fields.focused() else {
            return KeyOutcome::Ignored;
        };
        if key.code == KeyCode::Enter && !text.lines {
            self.fields.move_focus(true);
            return KeyOutcome::Taken;
        }
        let before = text.area.cursor();
        let full =
            text.free_bytes() == 0 && (key.typed_char().is_some() || key.code == KeyCode::Enter);
        if full || !text.on_key(key) {
            return KeyOutcome::Ignored;
        }
        match edge {
            Some(forward) if text.area.cursor() == before => {
                self.fields.move_focus(forward);
                self.fields.typing = false;
            }
            Some(_) => {}
            None => self.revalidate(),
        }
        KeyOutcome::Taken
    }

    /// Inserts pasted text into the focused text field.
    ///
    /// # Errors
    /// Why it was not inserted, or how it was changed, for the status row.
    pub fn on_paste(&mut self, pasted: &str) -> Result<(), String> {
        if self.fields.focus == FieldId::ModelName && self.picker.is_none() {
            self.open_picker();
        }
        if let Some(picker) = &mut self.picker {
            picker.on_paste(pasted, &self.models);
            return Ok(());
        }
        let Some(Field { value: FieldValue::Text(text), .. }) = self.fields.focused() else {
            let key = key_of(Action::NextPane);
            return Err(format!("Pasting needs a text field: press {key} to reach one."));
        };
        if pasted.len() > text.free_bytes() {
            return Err(format!(
                "The paste has {} bytes, more than the field takes ({MAX_TEXT_BYTES} in all): nothing was \
                 inserted.",
                pasted.len()
            ));
        }
        let (taken, left_out) = text.accepted_paste(pasted);
        let signs = text.on_paste(taken);
        self.fields.typing = true;
        self.revalidate();
        let mut said = Vec::new();
        if left_out > 0 {
            let plural = if left_out == 1 { "" } else { "s" };
            said.push(format!(
                "This field has one line: {left_out} more pasted line{plural} left out."
            ));
        }
        if signs > 0 {
            said.push(format!("{signs} control characters of the paste are shown as symbols."));
        }
        if said.is_empty() { Ok(()) } else { Err(said.join(" ")) }
    }
}

impl LaunchForm {
    /// Why no command line starts the same run; `None`: one does.
    pub(crate) fn no_command(&self) -> Option<&'static str> {
        let is_unkept = self.fork.as_ref().is_some_and(|fork| fork.is_unkept);
        is_unkept.then_some("The run of the tour is not kept; its fork is.")
    }

    /// The words of the command line that starts the same run, not quoted.
    pub fn command_words(&self) -> Vec<String> {
        let mut words = vec!["roundtable".to_owned()];
        match (&self.fork, self.boundary()) {
            (Some(fork), Some(place)) => {
                words.extend(["fork".to_owned(), format!("{}@{}", fork.run, place.id)]);
            }
            _ => words.extend(["run".to_owned(), self.entry.path.clone()]),
        }
        for (_, _, text) in self.fields.overrides() {
            words.extend(["--set".to_owned(), text]);
        }
        for (name, on) in self.fields.flags() {
            words
                .extend(["--flag".to_owned(), format!("{name}={}", if on { "on" } else { "off" })]);
        }
        let model = self.fields.model();
        match model {
            // A fork has the model of its parent.
            model if self.fork.as_ref().is_some_and(|fork| fork.model == model) => {}
            RequestedModel::Scripted { instant: false } if self.fork.is_some() => {
                words.push("--scripted".to_owned());
            }
            RequestedModel::Scripted { instant: false } => {}
            RequestedModel::Scripted { instant: true } => words.push("--instant".to_owned()),
            RequestedModel::Live(model) => {
                words.push("--live".to_owned());
                match model {
                    Some(model) if model.starts_with('-') => words.push(format!("--model={model}")),
                    Some(model) => words.extend(["--model".to_owned(), model.to_string()]),
                    None => {}
                }
            }
        }
        words
    }

    /// The same command as one line for a shell.
    pub fn command_line(&self) -> String {
        let words: Vec<_> = self.command_words().iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}
