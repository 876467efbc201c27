//! How a run's session continues: the request that started it, and the operator's next message.

use std::sync::Arc;

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

/// How a run's session continues.
#[derive(Debug, Default)]
pub struct RunSession {
    /// The request that started the run, if known.
    pub launch: Option<Box<LaunchRequest>>,
    /// The next message of the session.
    pub next: NextMessage,
}
