//! A command in words, after who sent it: "ann pauses the run".

use crate::event::Command;
use crate::event::command::BreakerOverride;

/// What somebody does who sends this command.
pub fn command_words(command: &Command) -> String {
    match command {
        Command::Pause { .. } => "pauses the run".to_owned(),
        Command::Resume { .. } => "resumes the run".to_owned(),
        Command::Step => "steps to the next boundary".to_owned(),
        Command::StepRound => "steps to the next round".to_owned(),
        Command::SetFlag { flag, on, .. } => {
            format!("switches {flag} {}", if *on { "on" } else { "off" })
        }
        Command::Break { at, set: true } => format!("sets a breakpoint at {}", at.display_name()),
        Command::Break { at, set: false } => {
            format!("removes the breakpoint at {}", at.display_name())
        }
        Command::SetParallel { max_parallel, .. } => {
            format!("limits the run to {max_parallel} tasks at a time")
        }
        Command::SetLimit { tool, .. } => format!("changes a limit of {tool}"),
        Command::Breaker { tool, hand, .. } => {
            let does = match hand {
                BreakerOverride::Trip => "opens",
                BreakerOverride::Hold => "holds open",
                BreakerOverride::Disable => "disables",
                BreakerOverride::Reset => "resets",
            };
            format!("{does} the breaker of {tool}")
        }
        Command::Inject { tool, fault, .. } => {
            format!("injects {} into {tool}", fault.kind().word())
        }
        Command::RemoveFault { tool, kind, .. } => {
            format!("removes {} from {tool}", kind.word())
        }
        Command::Roster(roster) => roster.in_words(),
        Command::Cancel => "cancels the run".to_owned(),
    }
}
