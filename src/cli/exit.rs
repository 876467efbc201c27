//! The exit codes.

use std::io;
use std::process::ExitCode;

use crate::log::event::StopClass;

/// How a command ended. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Ok,
    /// 1: the policy stopped the run, or the run met a `--fail-on` condition, or the doctor found
    /// something to fix.
    Stopped,
    /// 2: the command line or the scenario is invalid, and nothing was started; or two runs could not be
    /// compared.
    Usage,
    /// 3: a person was asked and did not answer, so the run stopped.
    Waiting,
    /// 4: a budget or the deadline stopped the run.
    Budget,
    /// 6: the model or a tool could not be reached.
    Unreachable,
    /// 130: the operator cancelled the run.
    Cancelled,
    /// 141: the reader of standard output closed the pipe before all was written. Shells report
    /// the same code for a program that SIGPIPE ends.
    CutOff,
    /// The dashboard's code: 0, or 128 plus the number of the signal that ended it.
    Other(u8),
}

/// How a command ended. An error has ended it before its work was done; its message has been printed.
pub type Done = Result<Exit, Exit>;

impl From<Done> for Exit {
    fn from(done: Done) -> Self {
        done.unwrap_or_else(|exit| exit)
    }
}

impl Exit {
    /// The code of a program that cannot be started, as shells have it: 127 if it is not found, 126 if it
    /// cannot be executed.
    pub fn of_unstarted(error: &io::Error) -> Self {
        Self::Other(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    /// The code as a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Stopped => 1,
            Self::Usage => 2,
            Self::Waiting => 3,
            Self::Budget => 4,
            Self::Unreachable => 6,
            Self::Cancelled => 130,
            Self::CutOff => 141,
            Self::Other(code) => code,
        }
    }
}

/// What each exit code means, in Markdown: for the manual page and the documents.
pub const EXIT_CODES: &[(Exit, &str)] = &[
    (Exit::Ok, "the run ended with success, or the command did what it should"),
    (
        Exit::Stopped,
        "the run was stopped by its policy (`critical_task_failed`, whatever made the task fail), or \
         its script has no reply (`script_missing:<step>`); `--fail-on` names its result; a row of \
         `[[expect]]` failed; two runs differ; the doctor found something to fix; the store or a run in \
         it could not be read or written; the output could not be written",
    ),
    (
        Exit::Usage,
        "the command line, the scenario or the configuration is wrong, a key is missing, or the \
         script of an offline run has no reply to its first request: nothing was started; or two runs \
         could not be compared",
    ),
    (
        Exit::Waiting,
        "a person was asked and did not answer, and the question says `otherwise = \"stop\"` \
         (`no_answer:<person>`)",
    ),
    (
        Exit::Budget,
        "a budget or the deadline ended the run; the run's `stop_reason` decides, not that of a task",
    ),
    (Exit::Unreachable, "the model could not be reached"),
    (
        Exit::Cancelled,
        "the run was cancelled: Ctrl-C or SIGTERM, and the outcome is still written; a second one \
         ends the program at once",
    ),
    (
        Exit::CutOff,
        "the reader of the output closed the pipe before all was written; a run that had not ended was \
         ended",
    ),
    (Exit::Other(126), "the program to be watched, or `nats-server`, cannot be executed"),
    (Exit::Other(127), "the program to be watched, or `nats-server`, is not found"),
    (Exit::Other(129), "a hang-up ended the dashboard: its terminal was closed"),
    (Exit::Other(131), "SIGQUIT ended the dashboard"),
    (Exit::Other(143), "SIGTERM ended the dashboard"),
];

impl From<StopClass> for Exit {
    fn from(class: StopClass) -> Self {
        match class {
            StopClass::Ok => Self::Ok,
            StopClass::Stopped => Self::Stopped,
            StopClass::Budget => Self::Budget,
            StopClass::Unreachable => Self::Unreachable,
            StopClass::Waiting => Self::Waiting,
            StopClass::Cancelled => Self::Cancelled,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_code_has_a_row() {
        let codes: Vec<u8> = EXIT_CODES.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 6, 130, 141, 126, 127, 129, 131, 143]);
    }

    #[test]
    fn time_limit_has_own_exit_code() {
        assert_eq!(Exit::from(crate::log::event::StopReason::MaxSeconds.class()).code(), 4);
    }
}
