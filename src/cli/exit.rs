//! What the exit code tells a script.

use std::process::ExitCode;

use crate::event::StopClass;

/// How a command ended. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it did what was asked.
    Ok,
    /// 1: the run was stopped by its policy, or decided what `--fail-on` names, or the doctor
    /// found what must be mended.
    Stopped,
    /// 2: the command line or the scenario is wrong; nothing was started.
    Usage,
    /// 4: a budget or the deadline ended the run.
    Budget,
    /// 6: the model or a tool could not be reached.
    Unreachable,
    /// 130: a person cancelled it.
    Cancelled,
    /// 141: who read its output went away before the run had ended, as the shell says it of programs
    /// that SIGPIPE ends.
    CutOff,
    /// What the dashboard says: 0, or 128 and the number of the signal that ended it.
    Other(u8),
}

impl Exit {
    /// Its number.
    ///
    /// ```
    /// use roundtable::cli::exit::Exit;
    /// use roundtable::event::StopReason;
    /// assert_eq!(Exit::from(StopReason::MaxSeconds.class()).code(), 4);
    /// ```
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
