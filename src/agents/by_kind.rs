//! Runs an agent of any kind to its answer: a model agent, a coordinator team or a swarm.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::agents::agent_call::Halt;
use crate::agents::runner::{AgentAnswer, AgentRunner};
use crate::agents::shared_history::SharedHistory;
use crate::agents::spec::{AgentKind, AgentSpec, SwarmLimits};
use crate::agents::swarm::RunningSwarm;
use crate::agents::turn::{AgentPosition, AgentReply, AgentRole, AgentRun, TeamPosition};
use crate::base::name::AgentName;
use crate::event::StopReason;
use crate::event::kind::ChatMessage;

impl AgentRunner<'_> {
    /// Runs an agent that another agent or the pattern calls, until it answers. It has its own
    /// history.
    pub(crate) fn run_consulted<'r>(
        &'r self,
        agent: &'r AgentSpec,
        place: AgentPosition<'r>,
        request: &'r Arc<str>,
        from: Option<&'r AgentName>,
        turn: u32,
        inherited: Arc<[ChatMessage]>,
    ) -> BoxFuture<'r, Result<AgentAnswer, Box<Halt>>> {
        Box::pin(async move {
            let (limits, start) = match &agent.kind {
                AgentKind::Swarm(swarm) => (swarm.limits, &swarm.entry),
                AgentKind::Model(_) | AgentKind::Team(_) => (SwarmLimits::default(), &agent.name),
            };
            let floor = SharedHistory::new(inherited, &[], limits);
            self.run_agent_on(&floor, agent, place, request, from, turn, start).await
        })
    }

    /// Runs an agent to its answer on this history.
    #[expect(clippy::too_many_arguments, reason = "an agent with its position and its input")]
    pub(crate) async fn run_agent_on(
        &self,
        floor: &SharedHistory,
        agent: &AgentSpec,
        place: AgentPosition<'_>,
        input: &Arc<str>,
        from: Option<&AgentName>,
        turn: u32,
        start: &AgentName,
    ) -> Result<AgentAnswer, Box<Halt>> {
        let (model, role) = match &agent.kind {
            AgentKind::Model(model) => (model, AgentRole::Alone),
            AgentKind::Team(team) => (&team.coordinator, AgentRole::Coordinator(team)),
            AgentKind::Swarm(swarm) => {
                let running = RunningSwarm { name: &agent.name, swarm, place, floor };
                return self.run_swarm(&running, start, input).await;
            }
        };
        floor.record_input(&agent.name, None, input);
        let team = TeamPosition { span: place.span, path: place.path };
        let (name, begun) = (&agent.name, false);
        let talk = AgentRun {
            name,
            model,
            role,
            place,
            team,
            team_history: floor,
            turn,
            input,
            from,
            begun,
        };
        match self.run_agent_turn(&talk).await? {
            AgentReply::Answered { text, by, end } => {
                Ok(AgentAnswer { text, by: by.unwrap_or_else(|| agent.name.clone()), end })
            }
            AgentReply::HandedOver { .. } => Err(Halt::by_limit(StopReason::InternalError)),
        }
    }
}
