//! What the agents of a run share, and what they answer. The methods in the other files of this folder
//! call one another: an agent that consults a member runs that member in the same way.

use std::sync::Arc;

use super::rosters::Rosters;
use super::spec::AgentsSpec;
use crate::base::name::AgentName;
use crate::event::Boundary;
use crate::event::kind::ReplyEnd;
use crate::run::RunContext;
use crate::scenario::Scenario;
use crate::scenario::condition::CelBindings;

/// What the agents of a run share.
pub(crate) struct AgentRunner<'p> {
    pub cx: &'p RunContext,
    pub scenario: &'p Scenario,
    pub agents: &'p AgentsSpec,
    /// The members of each swarm now.
    pub rosters: &'p Rosters,
    /// The values that conditions can read during the whole run.
    pub base: Option<CelBindings>,
}

/// The answer of an agent.
pub(crate) struct AgentAnswer {
    pub text: Arc<str>,
    /// The agent that wrote the text.
    pub by: AgentName,
    /// How the reply ended that the text is from.
    pub end: ReplyEnd,
}

impl AgentRunner<'_> {
    /// Waits at a boundary. A run that is over is ended from outside, so this never returns then
    /// and no agent reports a failure.
    pub async fn wait_at_boundary(&self, at: Boundary) {
        if self.cx.boundary(at).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
