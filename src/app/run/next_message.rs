//! How a run's session continues: the request that started it, and the operator's next message.

use std::sync::Arc;

use super::RunPage;
use crate::app::effect::LaunchRequest;

/// The next message of a run's session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextMessage {
    /// There is none.
    #[default]
    None,
    /// Typed and not sent.
    Draft(String),
    /// Sent once the run has ended.
    Waiting(Arc<str>),
}

impl RunPage {
    /// Stores the request that started the run, if it is known.
    pub(in crate::app) fn set_launch(&mut self, launch: Option<Box<LaunchRequest>>) {
        self.launch = launch.or(self.launch.take());
    }

    /// The request that started the run, if known.
    pub fn launch(&self) -> Option<&LaunchRequest> {
        self.launch.as_deref()
    }

    /// The next message of the session.
    pub fn next_message(&self) -> &NextMessage {
        &self.next
    }

    /// Replaces the next message of the session; returns the previous one.
    pub(in crate::app) fn replace_message(&mut self, next: NextMessage) -> NextMessage {
        std::mem::replace(&mut self.next, next)
    }
}
