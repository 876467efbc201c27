//! One run of an agent: call its model, carry out the requested tool calls, return their results,
//! until it answers without a call or hands over.

use std::sync::Arc;

use serde_json::{Value, json};

use super::carry::Carried;
use super::floor::Floor;
use super::gate::Halt;
use super::handover::Handed;
use super::offers;
use super::play::Play;
use super::policy::{self, Repeats, TRANSFER};
use crate::event::kind::{Purpose, ToolCall, ToolOffer};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::llm::Form;
use crate::pattern::{asked, reply};
use crate::run::Ask;
use crate::scenario::agent::{AgentSpec, CoordinatorTeam, ModelAgent, Swarm};
use crate::scenario::condition::Shown;
use crate::scenario::name::AgentName;

/// The position of a running agent in the run.
pub(super) struct Place<'p> {
    /// The parent span of its calls.
    pub span: SpanId,
    /// Its path: `pm`, `pm/dev_team.1`.
    pub path: &'p str,
    /// The path with the attempts around it; seeds the random numbers.
    pub draws: &'p str,
    /// Whether the user talks to this agent directly.
    pub outer: bool,
}

/// The position of a team in the run.
#[derive(Clone, Copy)]
pub(super) struct TeamPlace<'p> {
    /// The span of the team's own events.
    pub span: SpanId,
    /// Path of the team.
    pub path: &'p str,
}

/// One run of an agent.
pub(super) struct Talk<'t> {
    pub name: &'t AgentName,
    pub model: &'t ModelAgent,
    pub role: Role<'t>,
    pub place: Place<'t>,
    /// Position of its team.
    pub team: TeamPlace<'t>,
    pub floor: &'t Floor,
    /// Turn number of the agent in its team, from 1.
    pub turn: u32,
    /// The input of this run.
    pub input: &'t Arc<str>,
    /// The agent that gave the input; `None` for the user or the team.
    pub from: Option<&'t AgentName>,
    /// A boundary (a handoff) was already passed before the first call.
    pub begun: bool,
}

/// What an agent can do besides calling its tools.
#[derive(Clone, Copy)]
pub(super) enum Role<'t> {
    /// Nothing more.
    Alone,
    /// Consult members.
    Coordinator(&'t CoordinatorTeam),
    /// Hand over to other members.
    Member(&'t AgentName, &'t Swarm),
}

/// The last offers to an agent, and the members that they name.
struct Offered {
    members: Arc<[AgentName]>,
    offers: Arc<[ToolOffer]>,
}

/// How an agent's run ended without an error.
pub(super) enum Turned {
    /// The agent answered. `by`: the member whose reply became the answer, if it was one.
    Answered { text: Arc<str>, by: Option<AgentName> },
    /// The agent handed over.
    HandedOver { handed: Handed, said: SpanId },
}

/// A reply of an agent's model.
#[derive(Clone, Copy)]
pub(super) struct Said {
    /// Span of the model call.
    pub call: SpanId,
    /// Number of the model call in this run of the agent, from 1.
    pub round: u32,
}

impl Play<'_> {
    /// Runs an agent until it answers or hands over.
    pub async fn talk(&self, talk: &Talk<'_>) -> Result<Turned, Box<Halt>> {
        let mut repeats = Repeats::default();
        let mut results: Vec<Value> = Vec::new();
        let mut offered: Option<Offered> = None;
        let mut round = 0_u32;
        loop {
            round += 1;
            if round > 1 || !talk.begun {
                self.rest(Boundary::Ask {
                    path: talk.place.path.into(),
                    round,
                    outer: talk.place.outer,
                })
                .await;
            }
            let members = self.members(talk);
            let offered = match &mut offered {
                // An agent that joins or leaves changes the offers at once.
                Some(offered) if offered.members == members => offered,
                stale => stale.insert(Offered { offers: self.offers(talk, &members), members }),
            };
            let ask = self.ask(talk, round, offered, &results);
            let (said, reply) = self.cx.ask(ask).await.map_err(|failed| Halt::of_call(&failed))?;
            talk.floor.said(talk.name, said, &reply);
            let calls = &reply.tool_calls;
            if calls.is_empty() {
                if reply.text.trim().is_empty() {
                    return Err(Halt::of(reply::empty(self.cx, said, &reply)));
                }
                return Ok(Turned::Answered { text: Arc::clone(&reply.text), by: None });
            }
            if round > talk.model.max_tool_rounds {
                return Err(Halt::of(StopReason::MaxToolRounds));
            }
            if calls.iter().any(|call| self.is_stuck(talk, call, &mut repeats)) {
                return Err(Halt::of(StopReason::Stuck(talk.name.clone())));
            }
            let Carried { told, handed_over, replies, missing } =
                self.carry_out(talk, Said { call: said, round }, calls).await?;
            if self.cx.reads_conditions() {
                results.extend(told);
            }
            if let Some(handed) = handed_over {
                return Ok(Turned::HandedOver { handed, said });
            }
            if let Role::Coordinator(team) = talk.role
                && team.member_tools.skip_summarization
                && !replies.is_empty()
            {
                if !missing.is_empty() {
                    let missing = missing.into();
                    self.cx.publish(talk.team.span, EventKind::AnswerIncomplete { missing });
                }
                let texts: Vec<&str> = replies.iter().map(|(_, reply)| &**reply).collect();
                let text = texts.join("\n\n").into();
                let by = match &replies[..] {
                    [(one, _)] => Some(one.clone()),
                    _ => None,
                };
                return Ok(Turned::Answered { text, by });
            }
        }
    }

    /// Whether a call repeats the calls before it. Valid handoffs have limits of their own and
    /// reset the repetition.
    fn is_stuck(&self, talk: &Talk<'_>, call: &ToolCall, repeats: &mut Repeats) -> bool {
        if let Role::Member(swarm, _) = talk.role
            && &*call.name == TRANSFER
            && policy::transfer(call).is_ok_and(|transfer| {
                transfer.to != *talk.name && self.cx.rosters().members(swarm).contains(&transfer.to)
            })
        {
            *repeats = Repeats::default();
            return false;
        }
        repeats.is_stuck(call)
    }

    /// Waits at a boundary. A run that is over is ended from outside, so this never returns then
    /// and no agent reports a failure.
    pub async fn rest(&self, at: Boundary) {
        if self.cx.boundary(at).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The members that the agent may consult or hand over to now.
    fn members(&self, talk: &Talk<'_>) -> Arc<[AgentName]> {
        match talk.role {
            Role::Alone => [].into(),
            Role::Coordinator(team) => team.members.as_slice().into(),
            Role::Member(swarm, _) => self.cx.rosters().members(swarm),
        }
    }

    fn offers(&self, talk: &Talk<'_>, members: &[AgentName]) -> Arc<[ToolOffer]> {
        let tools = offers::tools(self.scenario, &talk.model.tools);
        match talk.role {
            Role::Alone => tools.collect(),
            Role::Coordinator(_) => {
                let members = members.iter().filter_map(|name| self.spec.agent(name));
                members.map(offers::member).chain(tools).collect()
            }
            Role::Member(..) => {
                let transfer = offers::transfer(self.spec, members, talk.name);
                transfer.into_iter().chain(tools).collect()
            }
        }
    }

    fn ask(&self, talk: &Talk<'_>, round: u32, offered: &Offered, results: &[Value]) -> Ask {
        let Offered { members, offers } = offered;
        let alone = match talk.role {
            Role::Member(_, swarm) => swarm.independent_history && *talk.name != swarm.entry,
            Role::Alone | Role::Coordinator(_) => false,
        };
        let (messages, prompt) =
            talk.floor.prompt(talk.name, &talk.model.instruction, alone, offers);
        Ask {
            parent: talk.place.span,
            purpose: Purpose::Say { agent: talk.name.clone(), turn: talk.turn, round },
            path: format!("ask:{}:{round}", talk.place.draws),
            messages,
            prompt,
            tools: Arc::clone(offers),
            form: Form::Text,
            shown: self.shown(talk, round, members, results).map(Arc::new),
            again: 0,
        }
    }

    /// The values that the conditions of the script can read.
    fn shown(
        &self,
        talk: &Talk<'_>,
        round: u32,
        members: &[AgentName],
        results: &[Value],
    ) -> Option<Shown> {
        let mut shown = self.base.clone()?;
        let others = members.iter().filter(|member| *member != talk.name);
        shown.set("agent", &talk.name.as_str().into());
        shown.set("input", &Value::from(&**talk.input));
        shown.set("message", &self.cx.session().message.into());
        shown.set("turn", &talk.turn.into());
        shown.set("round", &round.into());
        shown.set("results", &Value::from(results));
        shown.set("handoffs", &talk.floor.handoffs().into());
        shown.set("from", &talk.from.map_or("", AgentName::as_str).into());
        shown.set("members", &json!(others.map(AgentName::as_str).collect::<Vec<_>>()));
        shown.set("flags", &asked::value(&self.cx.gate().flags()));
        Some(shown)
    }
}

/// The model part of an agent; for a team, that of its coordinator.
pub(super) fn model_of(agent: &AgentSpec) -> Option<&ModelAgent> {
    use crate::scenario::agent::AgentKind;
    match &agent.kind {
        AgentKind::Model(model) => Some(model),
        AgentKind::Team(team) => Some(&team.coordinator),
        AgentKind::Swarm(_) => None,
    }
}
