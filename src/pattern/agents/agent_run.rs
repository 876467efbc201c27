//! One run of an agent: call its model, carry out the requested tool calls, return their results,
//! until it answers without a call or hands over.
//!
//! The tools that an agent's model is offered: members, tools, the handoff.

use std::sync::Arc;

use serde_json::{Value, json};

use super::agent_call::Halt;
use super::policy::{RepeatDetector, TRANSFER};
use super::tool_calls::ToolCallResults;
use super::{AgentReply, AgentRole, AgentRun, AgentRunner, ModelReply, policy};
use crate::base::name::{AgentName, PersonName};
use crate::base::visible::visible_within;
use crate::log::event::result_text::marked_text;
use crate::log::event::{Boundary, Prompt, Purpose, Reply, SpanId, StopReason};
use crate::log::facts::agents::AgentFact;
use crate::model::{Conversation, ReplyForm};
use crate::pattern::{prompting, reply};
use crate::run::ModelRequest;
use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::agents::{AgentSpec, AgentsSpec};
use crate::scenario::people::{ASK, Person};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// The most characters of a written call in its event.
const PREVIEW_CHARS: usize = 200;

/// The message to a model that wrote a call as text.
const WRITTEN_CALL: &str = "Your last reply is a tool call written as text, so nothing was called. \
     To call a tool, make a tool call, not a text. Otherwise answer without one.";

/// The last offers to an agent, and the members that they name.
struct CurrentOffers {
    members: Arc<[AgentName]>,
    offers: Arc<[ToolOffer]>,
}

impl AgentRunner<'_> {
    /// Runs an agent until it answers or hands over.
    pub async fn run_agent_turn(&self, run: &AgentRun<'_>) -> Result<AgentReply, Box<Halt>> {
        let mut repeats = RepeatDetector::default();
        let mut results: Vec<Value> = Vec::new();
        let mut offered: Option<CurrentOffers> = None;
        let mut round = 0_u32;
        // Whether the model has had that message in this turn.
        let mut is_told = false;
        loop {
            round += 1;
            if round > 1 || !run.begun {
                self.wait_at_boundary(Boundary::Ask {
                    path: run.place.path.into(),
                    round,
                    outer: run.place.outer,
                })
                .await;
            }
            let members = self.members(run);
            let offered = match &mut offered {
                // An agent that joins or leaves changes the offers at once.
                Some(offered) if offered.members == members => offered,
                stale => {
                    stale.insert(CurrentOffers { offers: self.offers(run, &members), members })
                }
            };
            let (messages, prompt) = self.next_prompt(run, offered);
            let ask = self.ask(run, round, offered, &results, messages, prompt);
            let (mut said, mut reply) =
                self.cx.call_model(&ask).await.map_err(|failed| Halt::by_failed_call(&failed))?;
            let is_written = |reply: &Reply| {
                let is_text = reply.end.is_whole() && reply.tool_calls.is_empty();
                is_text && policy::is_written_call(&reply.text, &offered.offers)
            };
            if is_written(&reply) && !is_told && self.cx.has_live_replies(&self.purpose(run, round))
            {
                is_told = true;
                self.report_written_call(run, said, &reply, true);
                let (messages, prompt) =
                    run.team_history.correct_reply(run.name, said, &reply, WRITTEN_CALL);
                let mut ask = self.ask(run, round, offered, &results, messages, prompt);
                ask.again = 1;
                // Boxed because it is rare: otherwise the future of every turn would be larger.
                let called = Box::pin(self.cx.call_model(&ask)).await;
                (said, reply) = called.map_err(|failed| Halt::by_failed_call(&failed))?;
            }
            run.team_history.record_reply(run.name, said, &reply);
            let calls = reply.calls_to_make();
            if calls.is_empty() {
                let text = reply::final_text(self.cx, &self.scenario.model, said, &reply.text);
                if text.trim().is_empty() {
                    return Err(Halt::by_limit(reply::report_empty_reply(self.cx, said, &reply)));
                }
                if is_written(&reply) {
                    self.report_written_call(run, said, &reply, false);
                }
                return Ok(AgentReply::Answered { text, by: None, end: reply.end });
            }
            if round > run.model.max_tool_rounds {
                return Err(Halt::by_limit(StopReason::MaxToolRounds));
            }
            if calls.iter().any(|call| self.is_stuck(run, call, &mut repeats)) {
                return Err(Halt::by_limit(StopReason::Stuck(run.name.clone())));
            }
            let said_with = ModelReply { call: said, round, text: &reply.text };
            let ToolCallResults { condition_results, handed_over, replies, missing } =
                self.run_tool_calls(run, said_with, calls).await?;
            if self.cx.reads_conditions() {
                results.extend(condition_results);
            }
            if let Some(handed) = handed_over {
                return Ok(AgentReply::HandedOver { handed, said });
            }
            if let AgentRole::Coordinator(team) = run.role
                && team.member_tools.skip_summarization
                && !replies.is_empty()
            {
                if !missing.is_empty() {
                    let missing = missing.into();
                    self.cx.publish(run.team.span, AgentFact::AnswerIncomplete { missing });
                }
                return Ok(match &replies[..] {
                    [(one, text, end)] => AgentReply::Answered {
                        text: Arc::clone(text),
                        by: Some(one.clone()),
                        end: *end,
                    },
                    replies => {
                        let marked = replies.iter().map(|(_, text, end)| marked_text(text, *end));
                        let text = marked.collect::<Vec<_>>().join("\n\n").into();
                        let mut ends = replies.iter().map(|(.., end)| *end);
                        let end = ends.find(|end| !end.is_whole()).unwrap_or_default();
                        AgentReply::Answered { text, by: None, end }
                    }
                });
            }
        }
    }

    /// Whether a call repeats the calls before it. Valid handoffs have limits of their own and
    /// reset the repetition.
    fn is_stuck(&self, run: &AgentRun<'_>, call: &ToolCall, repeats: &mut RepeatDetector) -> bool {
        if let AgentRole::Member(swarm, _) = run.role
            && &*call.name == TRANSFER
            && policy::parse_transfer(call).is_ok_and(|transfer| {
                transfer.to != *run.name && self.rosters.members(swarm).contains(&transfer.to)
            })
        {
            *repeats = RepeatDetector::default();
            return false;
        }
        repeats.is_stuck(call)
    }

    /// The members that the agent may consult or hand over to now.
    fn members(&self, run: &AgentRun<'_>) -> Arc<[AgentName]> {
        match run.role {
            AgentRole::Alone => [].into(),
            AgentRole::Coordinator(team) => team.members.as_slice().into(),
            AgentRole::Member(swarm, _) => self.rosters.members(swarm),
        }
    }

    fn offers(&self, run: &AgentRun<'_>, members: &[AgentName]) -> Arc<[ToolOffer]> {
        let people = run
            .model
            .people
            .iter()
            .filter_map(|name| Some(person_offer(name, self.scenario.people.named.get(name)?)));
        let tools = self.cx.agent_tools(self.scenario, &run.model.tools);
        let tools = tools.map(|(_, offer)| offer.clone()).chain(people);
        match run.role {
            AgentRole::Alone => tools.collect(),
            AgentRole::Coordinator(_) => {
                let members = members.iter().filter_map(|name| self.agents.get(name));
                members.map(member_offer).chain(tools).collect()
            }
            AgentRole::Member(..) => {
                let transfer = transfer_offer(self.agents, members, run.name);
                transfer.into_iter().chain(tools).collect()
            }
        }
    }

    /// Reports that a reply is a tool call written as text.
    fn report_written_call(&self, run: &AgentRun<'_>, said: SpanId, reply: &Reply, told: bool) {
        let preview = visible_within(reply.text.trim(), PREVIEW_CHARS);
        let agent = run.name.clone();
        self.cx.publish(said, AgentFact::ToolCallWritten { agent, preview, told });
    }

    fn next_prompt(&self, run: &AgentRun<'_>, offered: &CurrentOffers) -> (Conversation, Prompt) {
        let alone = match run.role {
            AgentRole::Member(_, swarm) => swarm.independent_history && *run.name != swarm.entry,
            AgentRole::Alone | AgentRole::Coordinator(_) => false,
        };
        // The log has the beginning of a conversation once: a flag that changes later is not in it.
        let instruction = run.model.instruction.filled(&self.cx.control().flags());
        run.team_history.next_prompt(run.name, &instruction, alone, &offered.offers)
    }

    fn purpose(&self, run: &AgentRun<'_>, round: u32) -> Purpose {
        Purpose::ModelCall { agent: run.name.clone(), turn: run.turn, round }
    }

    fn ask(
        &self,
        run: &AgentRun<'_>,
        round: u32,
        offered: &CurrentOffers,
        results: &[Value],
        messages: Conversation,
        prompt: Prompt,
    ) -> ModelRequest {
        let CurrentOffers { members, offers } = offered;
        ModelRequest {
            parent: run.place.span,
            purpose: self.purpose(run, round),
            path: format!("ask:{}:{round}", run.place.seed_path),
            messages,
            prompt,
            tools: Arc::clone(offers),
            form: ReplyForm::Text,
            shown: self.turn_conditions(run, round, members, results).map(Arc::new),
            again: 0,
            pauses: 0,
        }
    }

    /// The values that the conditions of the script can read.
    fn turn_conditions(
        &self,
        run: &AgentRun<'_>,
        round: u32,
        members: &[AgentName],
        results: &[Value],
    ) -> Option<CelBindings> {
        let mut shown = self.base.clone()?;
        let others = members.iter().filter(|member| *member != run.name);
        shown.bind("agent", &run.name.as_str().into());
        shown.bind("input", &Value::from(&**run.input));
        shown.bind("message", &self.cx.session().message.into());
        shown.bind("turn", &run.turn.into());
        shown.bind("round", &round.into());
        shown.bind("results", &Value::from(results));
        let transfer = results.iter().rev().find(|result| result["tool"] == TRANSFER);
        shown.bind("refused", &transfer.is_some_and(|result| result["ok"] == false).into());
        shown.bind("handoffs", &run.team_history.handoffs().into());
        shown.bind("from", &run.from.map_or("", AgentName::as_str).into());
        shown.bind("members", &json!(others.map(AgentName::as_str).collect::<Vec<_>>()));
        shown.bind("flags", &prompting::to_json(&self.cx.control().flags()));
        Some(shown)
    }
}

/// The offer to ask a person.
fn person_offer(name: &PersonName, person: &Person) -> ToolOffer {
    ToolOffer {
        name: format!("{ASK}{name}").into(),
        description: format!(
            "Asks a person, {name}, and waits for the answer. {}",
            person.description
        )
        .into(),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "question": { "type": "string" },
                "choices": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The answers to choose from; without them any text is one.",
                },
            },
            "required": ["question"],
        })),
    }
}

/// The offer to consult a member, for a coordinator.
fn member_offer(agent: &AgentSpec) -> ToolOffer {
    ToolOffer {
        name: agent.name.as_str().into(),
        description: Arc::clone(&agent.description),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": { "request": { "type": "string" } },
            "required": ["request"],
        })),
    }
}

/// The offer to hand over to another member; `None` if there are no other members.
fn transfer_offer(
    spec: &AgentsSpec,
    members: &[AgentName],
    agent: &AgentName,
) -> Option<ToolOffer> {
    let others = || members.iter().filter(|member| *member != agent);
    others().next()?;
    let mut description =
        "Hands over to another agent, who goes on in your place. There are:".to_owned();
    for other in others() {
        let what = spec.get(other).map_or("", |other| &other.description);
        description.push_str(&format!("\n- {other}: {what}"));
    }
    let names: Vec<&str> = others().map(AgentName::as_str).collect();
    Some(ToolOffer {
        name: TRANSFER.into(),
        description: description.into(),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "agent_name": { "type": "string", "enum": names },
                "message": { "type": "string", "description": "What it should know or do." },
            },
            "required": ["agent_name"],
        })),
    })
}
