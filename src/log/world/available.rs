//! Whether a command can change a run now, and if not, why: one answer for the keys and drawers of the dashboard, the
//! words of plain mode and `roundtable ctl`.

use std::fmt::{self, Display, Formatter};

use super::{Projection, RunState, World};
use crate::log::event::{Command, LimitChange, ToolLimits};
use crate::log::facts::agents::RosterChange;
use crate::scenario::patterns::has_boundary;

/// Why a command changes nothing now, as the part of a sentence; [`Unavailable::sentence`] is a whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Another program plays the run.
    Watched,
    /// The run has ended, and with it this part of it.
    Ended(RunPart),
    /// The run is not so, or does not have what the command names.
    Missing(String),
}

/// A part of a run that commands change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPart {
    /// How it continues: pause, step, breakpoints, questions.
    Course,
    Flags,
    Tools,
    Swarms,
    Tasks,
}

impl RunPart {
    /// The part that a command changes; `None`: one that can also follow the end of the run.
    fn of(command: &Command) -> Option<Self> {
        Some(match command {
            Command::SetFlag { .. } => Self::Flags,
            Command::Inject { .. }
            | Command::RemoveFault { .. }
            | Command::Breaker { .. }
            | Command::SetLimit { .. } => Self::Tools,
            Command::Roster(_) => Self::Swarms,
            Command::SetParallel { .. } => Self::Tasks,
            Command::Message { .. } => return None,
            _ => Self::Course,
        })
    }
}

impl Display for Unavailable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let part = match self {
            Self::Watched => {
                return f.write_str("another program plays this run: it is only watched");
            }
            Self::Missing(what) => return f.write_str(what),
            Self::Ended(RunPart::Course) => return f.write_str("the run has ended"),
            Self::Ended(RunPart::Flags) => "flags",
            Self::Ended(RunPart::Tools) => "tools",
            Self::Ended(RunPart::Swarms) => "swarms",
            Self::Ended(RunPart::Tasks) => "tasks",
        };
        write!(f, "the run has ended: its {part} can no longer change")
    }
}

impl Unavailable {
    /// The reason as a sentence of its own.
    pub fn sentence(&self) -> String {
        let mut text = format!("{self}.");
        // What is missing may begin with a name.
        if !matches!(self, Self::Missing(_)) {
            text[..1].make_ascii_uppercase();
        }
        text
    }
}

/// Whether a part of a run can still change.
///
/// # Errors
/// The run has ended.
pub fn can_change(part: RunPart, world: &World) -> Result<(), Unavailable> {
    match world.progress.stage {
        RunState::Closed => Err(Unavailable::Ended(part)),
        _ => Ok(()),
    }
}

/// Whether a command can have an effect in this run.
///
/// # Errors
/// Why it has none.
pub fn available(command: &Command, world: &World) -> Result<(), Unavailable> {
    let is_steered = world.head.as_ref().is_none_or(|head| head.model.is_steered());
    if !is_steered && !matches!(command, Command::Cancel) {
        return Err(Unavailable::Watched);
    }
    if let Some(part) = RunPart::of(command) {
        can_change(part, world)?;
    }
    match missing(command, world) {
        Some(what) => Err(Unavailable::Missing(what)),
        None => Ok(()),
    }
}

/// What the run lacks for a command.
fn missing(command: &Command, world: &World) -> Option<String> {
    let pattern = world.head.as_ref().map_or("", |head| head.plan.name());
    match command {
        Command::SetFlag { flag, .. } => {
            let flags = &world.settings.flags;
            let names: Vec<&str> = flags.iter().map(|known| known.name.as_str()).collect();
            match names[..] {
                [] => Some("the run has no flags".to_owned()),
                _ if names.contains(&flag.as_str()) => None,
                _ => Some(format!("no flag {flag}: it has {}", names.join(", "))),
            }
        }
        Command::Message { .. } => {
            let takes_none = world.session().is_none();
            takes_none.then(|| "only teams and swarms take messages".to_owned())
        }
        Command::SetParallel { .. } => {
            let has_tasks = world.projection().is_some_and(Projection::limits_tasks);
            (!has_tasks)
                .then(|| format!("{pattern}: only an orchestrator has a number of tasks at a time"))
        }
        Command::StepRound => {
            let is_load = world.projection().is_some_and(|it| it.tool_load().is_some());
            is_load.then(|| format!("{pattern}: it has no rounds; step passes one boundary"))
        }
        Command::Break { at, .. } => (!has_boundary(pattern, at.as_str()))
            .then(|| format!("{pattern}: it has no boundary {}", at.as_str())),
        Command::WithdrawApproval { id, .. } => {
            let is_remembered = world.questions.remembered().iter().any(|it| it.id == *id);
            (!is_remembered).then(|| format!("the run remembers no approval of {id}"))
        }
        Command::Roster(command) => {
            let swarm = world.agents().and_then(|agents| agents.plan.swarm(&command.swarm));
            match (swarm, &command.change) {
                (None, _) => Some(format!("no swarm {}", command.swarm)),
                (Some(swarm), RosterChange::Remove { agent }) if swarm.entry == *agent => {
                    Some(format!("{} starts with {agent}: it cannot leave", command.swarm))
                }
                _ => None,
            }
        }
        Command::Inject { tool, .. }
        | Command::RemoveFault { tool, .. }
        | Command::Breaker { tool, .. }
        | Command::SetLimit { tool, .. } => missing_of_tool(command, tool.as_str(), world),
        _ => None,
    }
}

/// What a tool lacks for a command.
fn missing_of_tool(command: &Command, tool: &str, world: &World) -> Option<String> {
    let Some(row) = world.tools.get(tool) else {
        let names: Vec<&str> = world.tools.rows().iter().map(|row| row.name().as_str()).collect();
        return Some(format!("no tool {tool}: it has {}", names.join(", ")));
    };
    match command {
        Command::Inject { .. } if row.head.is_person() => {
            Some(format!("{tool} is a person: a fault has no effect"))
        }
        Command::RemoveFault { kind, .. } if row.faults.iter().all(|it| it.kind() != *kind) => {
            Some(format!("{tool} has no fault {}", kind.word()))
        }
        Command::Breaker { .. } if row.head.limits.breaker.is_none() => {
            Some(format!("{tool} has no breaker"))
        }
        Command::SetLimit { change, .. } => {
            let missing = missing_for(*change, &row.head.limits)?;
            Some(format!("{tool} has no {missing}: the limit has no effect"))
        }
        _ => None,
    }
}

/// What a tool would need for this limit and does not have.
fn missing_for(change: LimitChange, limits: &ToolLimits) -> Option<&'static str> {
    let window = limits.breaker.map(|breaker| breaker.window);
    match change {
        LimitChange::RetryPercent(_) | LimitChange::RetryMin(_) => {
            limits.retry_budget.is_none().then_some("retry budget")
        }
        LimitChange::OpenForMs(_) | LimitChange::ProbePermits(_) => {
            window.is_none().then_some("breaker")
        }
        LimitChange::FailThreshold(_) | LimitChange::BreakerMode(_) => {
            (!matches!(window, Some(None))).then_some("breaker that counts failures in a row")
        }
        LimitChange::WindowSize(_) | LimitChange::MinCalls(_) | LimitChange::FailureRate(_) => {
            (!matches!(window, Some(Some(_)))).then_some("breaker with a window")
        }
        LimitChange::SlowCallMs(_) | LimitChange::SlowRate(_) => {
            let slow = window.flatten().and_then(|window| window.slow_call_ms);
            slow.is_none().then_some("breaker with slow_call_ms")
        }
        LimitChange::MaxWaitMs(_) => limits.bulkhead.is_none().then_some("bulkhead"),
        LimitChange::TimeoutMs(_)
        | LimitChange::MaxAttempts(_)
        | LimitChange::WaitMs(_)
        | LimitChange::Jitter(_)
        | LimitChange::Idempotent(_)
        | LimitChange::MaxInFlight(_)
        | LimitChange::Rate(_)
        | LimitChange::SafeMode(_)
        | LimitChange::AllowPartial(_)
        | LimitChange::CacheTtlMs(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::Initiator;

    #[test]
    fn reasons_are_sentences() {
        let ended = Unavailable::Ended(RunPart::Flags);
        assert_eq!(ended.sentence(), "The run has ended: its flags can no longer change.");
        assert_eq!(Unavailable::Ended(RunPart::Course).sentence(), "The run has ended.");
        let missing = Unavailable::Missing("llm has no breaker".to_owned());
        assert_eq!(missing.sentence(), "llm has no breaker.");
    }

    #[test]
    fn command_needs_what_it_names() {
        let world = World::new();
        let by = Initiator::You;
        let flag = Command::SetFlag { flag: "late".into(), on: true, by };
        let missing = |text: &str| Err(Unavailable::Missing(text.to_owned()));
        assert_eq!(available(&flag, &world), missing("the run has no flags"));
        assert_eq!(available(&Command::Pause { by }, &world), Ok(()));
    }
}
