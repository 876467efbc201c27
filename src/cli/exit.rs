//! The exit codes.

use std::process::ExitCode;

use crate::event::StopClass;

/// How a command ended. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Ok,
    /// 1: the policy stopped the run, or the run met a `--fail-on` condition, or the doctor found
    /// something to fix.
    Stopped,
    /// 2: the command line or the scenario is invalid; nothing was started.
    Usage,
    /// 4: a budget or the deadline stopped the run.
    Budget,
    /// 6: the model or a tool could not be reached.
    Unreachable,
    /// 130: the operator cancelled the run.
    Cancelled,
    /// 141: the reader of standard output closed the pipe before the run had ended. Shells report
    /// the same code for a program that SIGPIPE ends.
    CutOff,
    /// The dashboard's code: 0, or 128 plus the number of the signal that ended it.
    Other(u8),
}

impl Exit {
    /// The code as a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Stopped => 1,
            Self::Usage => 2,
            Self::Budget => 4,
            Self::Unreachable => 6,
            Self::Cancelled => 130,
            Self::CutOff => 141,
            Self::Other(code) => code,
        }
    }
}

impl From<StopClass> for Exit {
    fn from(class: StopClass) -> Self {
        match class {
            StopClass::Ok => Self::Ok,
            StopClass::Stopped => Self::Stopped,
            StopClass::Budget => Self::Budget,
            StopClass::Unreachable => Self::Unreachable,
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
    fn the_time_limit_has_an_exit_code_of_its_own() {
        assert_eq!(Exit::from(crate::event::StopReason::MaxSeconds.class()).code(), 4);
    }
}
