//! Faults of an orchestrator's plan and of its workers, in the words of the orchestrator source
//! document.

use std::fmt;

use crate::base::visible::{REASON_CHARS, visible_within};

/// What is wrong with a plan (`validate_orchestration_plan` in the orchestrator source document).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanFault {
    /// `non_json`
    NonJson,
    /// `kind`
    Kind,
    /// `tasks`
    Tasks,
    /// `max_tasks`
    MaxTasks,
    /// `task_shape`
    TaskShape,
    /// `missing_keys`
    MissingKeys,
    /// `task_id`
    TaskId,
    /// `duplicate_task_id`
    DuplicateTaskId,
    /// `worker`
    Worker,
    /// `worker_not_allowed:<name>`, the name made visible and limited in length
    WorkerNotAllowed(Box<str>),
    /// `args`
    Args,
    /// `critical`
    Critical,
    /// `args_integer`, added by roundtable: a whole number in the arguments does not fit into 64
    /// bits, so the worker would get a different one
    ArgsInteger,
    /// `steps`, in research
    Steps,
    /// `too_many_steps`, in research
    TooManySteps,
    /// `step_sequence`, in research
    StepSequence,
}

impl PlanFault {
    /// `worker_not_allowed`, for a name that a model gave.
    pub fn worker_not_allowed(name: &str) -> Self {
        Self::WorkerNotAllowed(visible_within(name, REASON_CHARS).into())
    }

    const PLAIN: [(Self, &'static str); 15] = [
        (Self::NonJson, "non_json"),
        (Self::Kind, "kind"),
        (Self::Tasks, "tasks"),
        (Self::MaxTasks, "max_tasks"),
        (Self::TaskShape, "task_shape"),
        (Self::MissingKeys, "missing_keys"),
        (Self::TaskId, "task_id"),
        (Self::DuplicateTaskId, "duplicate_task_id"),
        (Self::Worker, "worker"),
        (Self::Args, "args"),
        (Self::Critical, "critical"),
        (Self::ArgsInteger, "args_integer"),
        (Self::Steps, "steps"),
        (Self::TooManySteps, "too_many_steps"),
        (Self::StepSequence, "step_sequence"),
    ];

    pub(crate) fn from_word(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("worker_not_allowed:") {
            return Some(Self::WorkerNotAllowed(name.into()));
        }
        Self::PLAIN.into_iter().find(|(_, word)| *word == text).map(|(fault, _)| fault)
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::WorkerNotAllowed(name) = self {
            return write!(f, "worker_not_allowed:{name}");
        }
        let word = Self::PLAIN.iter().find(|(fault, _)| fault == self).map_or("", |(_, word)| word);
        f.write_str(word)
    }
}

/// Why a worker did not do its task (`_call_once` in the orchestrator source document).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerFault {
    /// `worker_denied`: it is not on the execution list
    Denied,
    /// `worker_missing`: it has no implementation
    Missing,
    /// `worker_bad_args`: it does not take these arguments
    BadArgs,
    /// `worker_bad_result`: its result does not match its contract
    BadResult,
    /// `worker_error`: any other failure
    Error,
}

impl WorkerFault {
    /// The word that stop reasons begin with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Denied => "worker_denied",
            Self::Missing => "worker_missing",
            Self::BadArgs => "worker_bad_args",
            Self::BadResult => "worker_bad_result",
            Self::Error => "worker_error",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Denied, Self::Missing, Self::BadArgs, Self::BadResult, Self::Error]
            .into_iter()
            .find(|trouble| trouble.word() == word)
    }
}
