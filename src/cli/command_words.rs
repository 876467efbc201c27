//! The commands to a run as words: `roundtable ctl` takes them as arguments, plain mode as typed lines.

use clap::Subcommand;
use serde_json::{Value, json};

use super::args::{FlagArg, boundary};
use crate::log::event::command::BreakerOverride;
use crate::log::event::{BoundaryId, Command, Initiator, LimitChange, QuestionId, World};
use crate::log::world::available::{Unavailable, available};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::screen::form::fields::MAX_TEXT_BYTES;

/// A command to a run.
#[derive(Debug, Clone, Subcommand)]
pub enum CtlAction {
    /// Pause at the next boundary
    Pause,
    /// Resume
    Resume,
    /// Pass one boundary, then pause
    Step,
    /// Continue to the next round, then pause
    StepRound,
    /// Switch a flag at the next boundary
    Flag {
        /// The flag and its position
        #[arg(value_name = "NAME=on|off", value_parser = flag)]
        flag: FlagArg,
    },
    /// Pause at a boundary
    Break {
        /// The boundary, as for `run --pause-at`
        #[arg(value_name = "BOUNDARY", value_parser = boundary)]
        at: BoundaryId,
        /// Do not pause there any more
        #[arg(long)]
        remove: bool,
    },
    /// Inject a fault into a tool, or remove one
    Fault {
        /// The tool; llm is the model
        #[arg(value_name = "TOOL")]
        tool: String,
        /// latency or latency=800 (milliseconds), errors, errors=20 or errors=20:503 (percent and status), hang,
        /// malformed or reset
        #[arg(value_name = "FAULT", value_parser = fault)]
        fault: InjectedFault,
        /// Remove the fault of this kind
        #[arg(long)]
        remove: bool,
    },
    /// Trip, hold, disable or reset the breaker of a tool
    Breaker {
        /// The tool; llm is the model
        #[arg(value_name = "TOOL")]
        tool: String,
        /// trip, hold, disable or reset
        #[arg(value_name = "ACTION", value_parser = breaker)]
        action: BreakerOverride,
    },
    /// Change a limit of a tool
    Limit {
        /// The tool; llm is the model
        #[arg(value_name = "TOOL")]
        tool: String,
        /// The limit, as `limits.changed` names it: timeout_ms=800, max_attempts=2, max_in_flight=4, …
        #[arg(value_name = "LIMIT=VALUE", value_parser = limit)]
        change: LimitChange,
    },
    /// Change how many tasks run at a time
    Parallel {
        /// How many
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        max: u32,
    },
    /// Forget an approval that the run remembers
    Forget {
        /// The question that was answered, such as q1
        #[arg(value_name = "ID")]
        id: QuestionId,
    },
    /// Queue a message of the session of a team or swarm: a new run answers it when this one has ended
    Message {
        /// The message
        #[arg(value_name = "TEXT", value_parser = message)]
        text: String,
    },
    /// End the run now
    Cancel,
}

fn flag(text: &str) -> Result<FlagArg, String> {
    let flag = FlagArg::parse(text)?;
    match flag.at {
        None => Ok(flag),
        Some(_) => Err("leave out the boundary: it is switched at the next one".to_owned()),
    }
}

fn message(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the text is empty".to_owned()),
        text if text.len() > MAX_TEXT_BYTES => {
            Err(format!("it has {} bytes, and a message at most {MAX_TEXT_BYTES}", text.len()))
        }
        text => Ok(text.to_owned()),
    }
}

/// A fault as `latency=800`, `errors=20:503` or `errors=100:529x2` (the next 2) has it.
pub(super) fn fault(text: &str) -> Result<InjectedFault, String> {
    let (word, value) = text.split_once('=').map_or((text, None), |(word, it)| (word, Some(it)));
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.word() == word);
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
    match (kind, value) {
        (Some(FaultKind::Latency), Some(ms)) => {
            Ok(InjectedFault::Latency { ms: number(ms.trim_end_matches("ms"))? })
        }
        (Some(FaultKind::Errors), Some(value)) => {
            let (percent, status) = value.split_once(':').unwrap_or((value, "503"));
            let (status, times) = match status.split_once('x') {
                Some((status, times)) => (status, Some(times)),
                None => (status, None),
            };
            let times = times.map(number).transpose()?.map(u32::try_from).transpose();
            let times = times.map_err(|_| "that is too often")?;
            let percent = u8::try_from(number(percent.trim_end_matches('%'))?)
                .ok()
                .filter(|percent| (1..=100).contains(percent))
                .ok_or("the share is from 1 to 100 percent")?;
            let status = u16::try_from(number(status)?)
                .ok()
                .filter(|status| (400..=599).contains(status))
                .ok_or("the status is from 400 to 599")?;
            Ok(InjectedFault::Errors { percent, status, times })
        }
        (Some(kind), None) => Ok(InjectedFault::of(kind)),
        (Some(kind), Some(_)) => Err(format!("{} takes no value", kind.word())),
        (None, _) => {
            let words = FaultKind::ALL.map(|kind| kind.word()).join(", ");
            Err(format!("`{word}` is no fault: use {words}"))
        }
    }
}

/// What is done to a breaker, by its word.
pub(super) fn breaker(text: &str) -> Result<BreakerOverride, String> {
    let action = serde_json::from_value(Value::from(text));
    action.map_err(|_| format!("`{text}` is unknown: use trip, hold, disable or reset"))
}

/// The names and values of limits are those of the log.
pub(super) fn limit(text: &str) -> Result<LimitChange, String> {
    let (name, value) = text.split_once('=').ok_or("expected LIMIT=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    let change = serde_json::from_value::<LimitChange>(json!({ "limit": name, "value": value }));
    change.map(LimitChange::clamped).map_err(|error| format!("{name}: {error}"))
}

impl CtlAction {
    pub(super) fn command(self) -> Command {
        let by = Initiator::Remote;
        match self {
            Self::Pause => Command::Pause { by },
            Self::Resume => Command::Resume { by },
            Self::Step => Command::Step,
            Self::StepRound => Command::StepRound,
            Self::Flag { flag } => Command::SetFlag { flag: flag.name, on: flag.on, by },
            Self::Break { at, remove } => Command::Break { at, set: !remove },
            Self::Fault { tool, fault, remove: true } => {
                Command::RemoveFault { tool: tool.as_str().into(), kind: fault.kind(), by }
            }
            Self::Fault { tool, fault, remove: false } => {
                Command::Inject { tool: tool.as_str().into(), fault, by }
            }
            Self::Breaker { tool, action } => {
                Command::Breaker { tool: tool.as_str().into(), action, by }
            }
            Self::Limit { tool, change } => {
                Command::SetLimit { tool: tool.as_str().into(), change, by }
            }
            Self::Parallel { max } => Command::SetParallel { max_parallel: max, by },
            Self::Forget { id } => Command::WithdrawApproval { id, by },
            Self::Message { text } => Command::Message { text: text.into(), by },
            Self::Cancel => Command::Cancel,
        }
    }
}

/// Checks that a command can have an effect in this run. That the run has ended says who plays it: with its reason.
pub(super) fn check(command: &Command, world: &World) -> Result<(), String> {
    match available(command, world) {
        Ok(()) | Err(Unavailable::Ended(_)) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_limits_use_log_names() {
        for (text, expected) in [
            ("latency=800", InjectedFault::Latency { ms: 800 }),
            ("latency=800ms", InjectedFault::Latency { ms: 800 }),
            ("errors=20", InjectedFault::Errors { percent: 20, status: 503, times: None }),
            ("errors=20%:500", InjectedFault::Errors { percent: 20, status: 500, times: None }),
            (
                "errors=100:529x2",
                InjectedFault::Errors { percent: 100, status: 529, times: Some(2) },
            ),
            ("hang", InjectedFault::Hang),
        ] {
            assert_eq!(fault(text), Ok(expected), "{text}");
        }
        for kind in FaultKind::ALL {
            assert_eq!(fault(kind.word()), Ok(InjectedFault::of(kind)));
        }
        for wrong in [
            "",
            "slow",
            "hang=1",
            "errors=0",
            "errors=101",
            "errors=5:x",
            "errors=5:200",
            "latency=-1",
        ] {
            assert!(fault(wrong).is_err(), "{wrong}");
        }
        assert_eq!(limit("max_in_flight=4"), Ok(LimitChange::MaxInFlight(4)));
        assert_eq!(limit("jitter=true"), Ok(LimitChange::Jitter(true)));
        for wrong in ["", "max_in_flight", "max_in_flight=x", "nothing=1"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
        assert_eq!(breaker("trip"), Ok(BreakerOverride::Trip));
        assert!(breaker("open").is_err());
        assert!(flag("legal_analyst=on@round:2").is_err());
    }
}
