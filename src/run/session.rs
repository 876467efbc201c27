//! A session: messages that one team answers, a run each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::event::RunId;
use crate::event::kind::Entry;
use crate::scenario::name::AgentName;

/// Where a run stands in its session, and what it leaves to the next.
#[derive(Clone, Debug)]
pub struct Session {
    /// Which of the session's messages the run answers, from 1.
    pub message: u32,
    /// The message.
    pub text: Arc<str>,
    /// The run that answered the message before.
    pub after: Option<RunId>,
    /// What was there at its start.
    pub before: Memory,
    left: Arc<Mutex<Option<Memory>>>,
}

/// What a team remembers from one message of a session to the next.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What was said in the root's own branch.
    pub history: Arc<[Entry]>,
    /// Who owned the last reply.
    pub owner: Option<AgentName>,
    /// The members of swarms whose members are not those of the scenario any more.
    pub rosters: BTreeMap<AgentName, Arc<[AgentName]>>,
}

impl Session {
    /// A session that begins with this message.
    pub fn first(text: impl Into<Arc<str>>) -> Self {
        let (before, left) = (Memory::default(), Arc::default());
        Self { message: 1, text: text.into(), after: None, before, left }
    }

    /// The same session's next message, after this run; `None` while it has left nothing yet.
    pub fn next(&self, run: RunId, text: impl Into<Arc<str>>) -> Option<Self> {
        let before = self.left.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let message = self.message.saturating_add(1);
        Some(Self { message, text: text.into(), after: Some(run), before, left: Arc::default() })
    }

    /// Leaves this to the next message, in place of what was left before.
    pub fn leave(&self, memory: Memory) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }
}
