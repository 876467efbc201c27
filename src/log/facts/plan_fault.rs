//! Faults of a plan that a model made: of tasks in the orchestrator source document, of steps in the
//! research source document.

use std::borrow::Cow;
use std::fmt;

use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::stop::ReasonPart;

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

    /// The faults without a name, each with its word and its phrase.
    const PLAIN: [(Self, &'static str, &'static str); 15] = [
        (Self::NonJson, "non_json", "not JSON"),
        (Self::Kind, "kind", "bad kind"),
        (Self::Tasks, "tasks", "bad tasks"),
        (Self::MaxTasks, "max_tasks", "too many tasks"),
        (Self::TaskShape, "task_shape", "bad task"),
        (Self::MissingKeys, "missing_keys", "keys missing"),
        (Self::TaskId, "task_id", "bad task id"),
        (Self::DuplicateTaskId, "duplicate_task_id", "duplicate task id"),
        (Self::Worker, "worker", "bad worker"),
        (Self::Args, "args", "bad arguments"),
        (Self::Critical, "critical", "bad value of critical"),
        (Self::ArgsInteger, "args_integer", "whole number beyond 64 bits"),
        (Self::Steps, "steps", "bad steps"),
        (Self::TooManySteps, "too_many_steps", "too many steps"),
        (Self::StepSequence, "step_sequence", "wrong order of steps"),
    ];

    fn plain(&self) -> (&'static str, &'static str) {
        let row = Self::PLAIN.iter().find(|(fault, ..)| fault == self);
        row.map_or(("", ""), |(_, word, phrase)| (word, phrase))
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerNotAllowed(name) => write!(f, "worker_not_allowed:{name}"),
            plain => f.write_str(plain.plain().0),
        }
    }
}

impl ReasonPart for PlanFault {
    fn from_text(text: &str) -> Option<Self> {
        match text.strip_prefix("worker_not_allowed:") {
            Some(name) => Some(Self::WorkerNotAllowed(name.into())),
            None => Self::PLAIN.into_iter().find(|(_, word, _)| *word == text).map(|row| row.0),
        }
    }

    fn phrase(&self) -> Cow<'_, str> {
        match self {
            Self::WorkerNotAllowed(name) => format!("unknown worker {name}").into(),
            plain => plain.plain().1.into(),
        }
    }

    fn advice(&self) -> Option<&'static str> {
        (*self == Self::ArgsInteger).then_some(
            "A whole number does not fit into 64 bits: have the planner give it to the worker as a string.",
        )
    }
}
