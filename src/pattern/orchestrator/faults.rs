//! Faults of an orchestrator's workers, in the words of the orchestrator source document.

use crate::base::name::ToolName;

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
    pub(crate) const ALL: [Self; 5] =
        [Self::Denied, Self::Missing, Self::BadArgs, Self::BadResult, Self::Error];

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
        Self::ALL.into_iter().find(|fault| fault.word() == word)
    }

    /// The fault in words, with the worker's name.
    pub(crate) fn phrase(self, worker: &ToolName) -> String {
        match self {
            Self::Denied => format!("{worker} switched off"),
            Self::Missing => format!("{worker} not implemented"),
            Self::BadArgs => format!("bad args for {worker}"),
            Self::BadResult => format!("bad result of {worker}"),
            Self::Error => format!("{worker} failed"),
        }
    }

    /// What to do about it.
    pub(crate) fn advice(self) -> Option<&'static str> {
        Some(match self {
            Self::Denied => {
                "The worker's flag is off: switch it on, or keep the worker out of the plan."
            }
            Self::Missing => {
                "The worker has no implementation: give it a fixture, http or command table."
            }
            Self::BadArgs => {
                "The planner gave arguments that the worker does not accept: fix its prompt."
            }
            Self::BadResult => {
                "The worker's result does not match its contract: the attempt says where."
            }
            Self::Error => "The tool failed: the attempt has the error.",
        })
    }
}
