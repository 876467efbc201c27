//! Identifiers in a log: sequence numbers, spans, runs, boundaries, times.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::base::name::{AgentName, RoleName, TaskId, read_name};

/// Sequence number of an event in its log: 0, 1, 2, … without gaps. It has no meaning across logs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Id of a span of a run: run > round / task / member > call > attempt. The root
/// is 0.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct SpanId(pub u32);

impl SpanId {
    /// The span of the run itself.
    pub const RUN: SpanId = SpanId(0);
}

/// Time since the start of the run in microseconds, pauses included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// From a duration, rounded down to microseconds.
    pub fn from_duration(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
    /// Time from `earlier` until this; zero if `earlier` is later.
    pub fn since(self, earlier: Elapsed) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Number of a source in the search results of a research run, from 1: the same in every run with the
/// same results.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct SourceNo(pub u32);

impl SourceNo {
    /// The number of the source at this index, from 0.
    pub fn from_index(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// The index, from 0.
    pub fn index(self) -> Option<usize> {
        usize::try_from(self.0).ok()?.checked_sub(1)
    }
}

impl fmt::Display for SourceNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Id of a run, such as `r-7f3a`: at most 64 bytes in a log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

impl RunId {
    /// An id with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_name(from, "a run", 64).map(Self)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place where a run can pause, step or take a flag change: what a pattern is about to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Before a round; its number, from 1.
    Round(u32),
    /// Before a role is asked. `nth` distinguishes the seats of a role that has several, from 1.
    Message {
        /// Number of the round, from 1.
        round: u32,
        role: RoleName,
        /// Number of the seat among this role's seats, from 1.
        nth: u32,
    },
    /// Before an orchestrator's planner, or that of research, is called.
    Plan,
    /// Before an attempt of a task is dispatched.
    Dispatch {
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Before a turn of an agent in a resilience run.
    Turn {
        /// Number of the agent, from 1.
        agent: u32,
        /// Number of its turn, from 1.
        turn: u32,
    },
    /// Before an agent's model is called.
    Ask {
        /// Path of the agent: `pm`, or `pm/dev_team.1` for the first time that `pm` consults
        /// `dev_team`.
        path: Arc<str>,
        /// Number of the model call within this turn of the agent, from 1.
        round: u32,
        /// Whether it is the agent that the user talks to.
        outer: bool,
    },
    /// Before a handoff is carried out.
    Handoff {
        /// Path of the swarm.
        path: Arc<str>,
        /// Number of the handoff, from 1; refused ones count.
        handoff: u32,
        /// The agent that is handed over to.
        to: AgentName,
        /// Whether it is in the swarm that the user talks to.
        outer: bool,
    },
    /// Before a step that the pattern takes once; its word.
    Step(&'static str),
    /// Before a source is checked and read; its number among the kept ones, from 1.
    Source(u32),
    /// After a question with this number was answered, before the branch that asked continues.
    Answer(u32),
    /// Before an attempt of a guarded program is sent; its number, from 1.
    Call(u64),
    /// Before a tool of a guarded program is executed; its name.
    Tool(Arc<str>),
    /// Before the answer is composed.
    Finalize,
}

impl Boundary {
    /// The id: the same in every run of one scenario.
    pub fn id(&self) -> BoundaryId {
        BoundaryId::new(self.text())
    }

    /// The text of the id.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(48);
        // Writing into a string cannot fail.
        let _ = write!(text, "{self}");
        text
    }

    /// Whether `S` (run to the next round) pauses here.
    pub fn ends_round(&self) -> bool {
        match self {
            Self::Round(_) | Self::Plan | Self::Step(_) | Self::Finalize => true,
            Self::Ask { outer, .. } | Self::Handoff { outer, .. } => *outer,
            Self::Message { .. }
            | Self::Dispatch { .. }
            | Self::Turn { .. }
            | Self::Source(_)
            | Self::Call(_)
            | Self::Tool(_)
            | Self::Answer(_) => false,
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Round(round) => write!(f, "round:{round}"),
            Self::Message { round, role, nth: 1 } => write!(f, "message:{round}:{role}"),
            Self::Message { round, role, nth } => write!(f, "message:{round}:{role}#{nth}"),
            Self::Plan => f.write_str("plan"),
            Self::Dispatch { task, attempt } => write!(f, "dispatch:{attempt}:{task}"),
            Self::Turn { agent, turn } => write!(f, "turn:{turn}:{agent}"),
            Self::Ask { path, round, .. } => write!(f, "ask:{round}:{path}"),
            Self::Handoff { handoff, to, outer: true, .. } => write!(f, "handoff:{handoff}:{to}"),
            Self::Handoff { path, handoff, to, outer: false } => {
                write!(f, "handoff:{handoff}:{path}/{to}")
            }
            Self::Step(word) => f.write_str(word),
            Self::Source(place) => write!(f, "source:{place}"),
            Self::Answer(question) => write!(f, "answer:{question}"),
            Self::Call(number) => write!(f, "call:{number}"),
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Finalize => f.write_str("finalize"),
        }
    }
}

/// The id of a boundary: `round:2`, `message:2:risk_analyst`, `finalize`. Unlike [`Seq`] it is
/// the same in every run, so pauses, flag changes and stops refer to it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct BoundaryId(Arc<str>);

impl BoundaryId {
    /// An id with this text. It may name a boundary that the run never reaches.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// For display: `round 2`, `risk_analyst in round 2`, `finalize`.
    pub fn display_name(&self) -> String {
        let mut parts = self.0.splitn(3, ':');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("round"), Some(round), None) => format!("round {round}"),
            (Some("source"), Some(place), None) => format!("source {place}"),
            (Some("read_extract"), None, None) => "reading".to_owned(),
            (Some("finalize"), None, None) => "the final answer".to_owned(),
            (Some("in_doubt"), None, None) => "the call in doubt".to_owned(),
            (Some("message"), Some(round), Some(role)) => format!("{role} in round {round}"),
            (Some("dispatch"), Some(attempt), Some(task)) => format!("{task}, attempt {attempt}"),
            (Some("turn"), Some(turn), Some(agent)) => format!("turn {turn} of agent {agent}"),
            (Some("ask"), Some(round), Some(path)) => {
                format!("call {round} of {}", last_name(path))
            }
            (Some("handoff"), Some(handoff), Some(to)) => {
                format!("handoff {handoff} to {}", last_name(to))
            }
            _ => self.0.to_string(),
        }
    }
}

/// The last name of a path of agents, with its number if it is not the first visit.
fn last_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".1").unwrap_or(name)
}

impl fmt::Display for BoundaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundary_names_agent_not_path() {
        for (id, name) in [
            ("finalize", "the final answer"),
            ("ask:1:pm", "call 1 of pm"),
            ("ask:2:router/billing.1/invoice_clerk.1", "call 2 of invoice_clerk"),
            ("ask:1:pm/devs.1/coder.2", "call 1 of coder.2"),
            ("handoff:1:pm/devs.1/writer", "handoff 1 to writer"),
        ] {
            assert_eq!(BoundaryId::new(id).display_name(), name);
        }
    }
}
