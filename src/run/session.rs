//! Sessions: a team answers one message after another, each in a run of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::base::name::AgentName;
use crate::log::event::RunId;
use crate::log::facts::agents::{HistoryEntry, SessionHead};

/// The place of a run in its session, and what it leaves to the next run.
#[derive(Clone, Debug)]
pub struct Session {
    /// Number of the message that the run answers, from 1.
    pub message: u32,
    /// The message.
    pub text: Arc<str>,
    /// The run that answered the previous message.
    pub after: Option<RunId>,
    /// The run that answered the first message; `None`: this is the first message, or the log of the
    /// previous run is of an earlier version.
    pub first_run: Option<RunId>,
    /// What the team remembered at the start of the run.
    pub memory: SessionMemory,
    saved: Arc<Mutex<Option<SessionMemory>>>,
}

/// What a team remembers from one message of a session to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionMemory {
    /// The root agent's history.
    pub history: Arc<[HistoryEntry]>,
    /// The agent that owned the last reply.
    pub owner: Option<AgentName>,
    /// The members of the swarms that differ from the scenario.
    pub rosters: BTreeMap<AgentName, Arc<[AgentName]>>,
}

/// What a run leaves to the next message of its session, for another process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftSession {
    /// Number of the message that the run answered.
    pub message: u32,
    /// As in [`Session`].
    pub first_run: Option<RunId>,
    /// What the team remembers.
    #[serde(flatten)]
    pub memory: SessionMemory,
}

impl LeftSession {
    /// The next message, after this run.
    pub fn next(self, run: RunId, text: impl Into<Arc<str>>) -> Session {
        let is_first = self.message <= 1;
        let first_run = self.first_run.or_else(|| is_first.then(|| run.clone()));
        Session {
            message: self.message.saturating_add(1),
            text: text.into(),
            after: Some(run),
            first_run,
            memory: self.memory,
            saved: Arc::default(),
        }
    }
}

impl Session {
    /// A session that begins with this message.
    pub fn first(text: impl Into<Arc<str>>) -> Self {
        let (memory, saved) = (SessionMemory::default(), Arc::default());
        Self { message: 1, text: text.into(), after: None, first_run: None, memory, saved }
    }

    /// The message that a recorded run answers, with the session of its head.
    pub fn of_head(head: &SessionHead) -> Self {
        let (history, owner) = (Arc::clone(&head.history), head.owner.clone());
        Self {
            message: head.message,
            text: Arc::clone(&head.text),
            after: head.previous_run.clone(),
            first_run: head.first_run.clone(),
            memory: SessionMemory { history, owner, rosters: BTreeMap::new() },
            saved: Arc::default(),
        }
    }

    /// The next message of the same session, after this run; `None` if the run has left nothing
    /// yet.
    pub fn next(&self, run: RunId, text: impl Into<Arc<str>>) -> Option<Self> {
        Some(self.left()?.next(run, text))
    }

    /// What the run leaves to the next message; `None`: nothing yet.
    pub fn left(&self) -> Option<LeftSession> {
        let memory = self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(LeftSession { message: self.message, first_run: self.first_run.clone(), memory })
    }

    /// Stores the memory for the next message; replaces an earlier one.
    pub fn save(&self, memory: SessionMemory) {
        *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }
}
