//! What the launch form consists of.

use std::sync::Arc;

use super::field::FieldId;
use super::fields::FormFields;
use super::fork_offer::FormFork;
use super::models::FormModels;
use super::picker::ModelPicker;
use crate::scenario::Scenario;
use crate::scenario::catalogue::ScenarioEntry;

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
    /// Limits.
    Limits,
    /// Prompts.
    Prompts,
    /// Buttons.
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
    /// Whether it is an error.
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
    /// What is known of live models.
    pub models: FormModels,
    /// The list of models, while it is open.
    pub picker: Option<ModelPicker>,
    /// The run that is forked; `None` for a new run.
    pub fork: Option<FormFork>,
    pub(super) scenario: Arc<Scenario>,
    pub(super) loads: bool,
}
