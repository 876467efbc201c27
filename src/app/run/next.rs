//! What a run's session goes on with: what the run was started with, and the person's next message.

use std::sync::Arc;

use super::RunPage;
use crate::app::effect::LaunchRequest;

/// The next message of a run's session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// None yet.
    #[default]
    None,
    /// It was typed, and not sent.
    Draft(String),
    /// It is sent once the run has ended.
    Waiting(Arc<str>),
}

impl RunPage {
    /// What the run was started with is known.
    pub(in crate::app) fn launched(&mut self, launch: Option<Box<LaunchRequest>>) {
        self.launch = launch.or(self.launch.take());
    }

    /// What the run was started with, where it is known.
    pub fn launch(&self) -> Option<&LaunchRequest> {
        self.launch.as_deref()
    }

    /// The next message of its session.
    pub fn next_message(&self) -> &Next {
        &self.next
    }

    /// Keeps the next message of its session; gives what was there before.
    pub(in crate::app) fn keep_message(&mut self, next: Next) -> Next {
        std::mem::replace(&mut self.next, next)
    }
}
