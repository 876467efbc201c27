//! Carries out the tool calls of one reply: consults members, calls tools, judges handoffs. The
//! model receives all results in the order of the calls, each in the same form.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::agent_call::Halt;
use super::policy::{AskedPerson, TRANSFER};
use super::{AcceptedHandoff, AgentRole, AgentRun, AgentRunner, ModelReply, policy};
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::gateway::CallFailed;
use crate::log::event::result_text;
use crate::log::event::{Purpose, Subject};
use crate::log::facts::agents::{AgentFact, CallFault, MissingResult};
use crate::pattern::people::{PersonRequest, answer_text, call_person};
use crate::run::{CallerPolicy, OrderedJoinSet, ToolCallRequest};
use crate::scenario::patterns::agents::{AgentSpec, CoordinatorTeam};
use crate::scenario::people::ASK;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

/// The results of the calls of one reply.
pub(crate) struct ToolCallResults {
    /// The results, as the conditions of a script read them.
    pub condition_results: Vec<Value>,
    /// The handoff, if control changes.
    pub handed_over: Option<AcceptedHandoff>,
    /// The replies of the consulted members, each with the member's name and how it ended.
    pub replies: Vec<(AgentName, Arc<str>, ReplyEnd)>,
    /// The calls that failed or were refused.
    pub missing: Vec<MissingResult>,
}

/// A request to a member.
pub(crate) struct Consultation<'w> {
    pub team: &'w CoordinatorTeam,
    pub member: &'w AgentSpec,
    pub request: Arc<str>,
    /// Turn number of the member in its team, from 1.
    pub turn: u32,
}

/// A call that can be carried out.
enum CallAction<'w> {
    Consult(Consultation<'w>),
    Tool { tool: ToolName, args: Arc<Map<String, Value>> },
    Ask { person: PersonName, text: Arc<str>, choices: Arc<[Arc<str>]> },
}

/// The most characters of the error text in the event that an answer lacks a result.
const MISSING_CHARS: usize = 300;

/// A caller with no stop reasons of its own.
struct AgentToolCaller;

impl CallerPolicy for AgentToolCaller {}

impl AgentRunner<'_> {
    pub(super) async fn run_tool_calls(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        calls: &[ToolCall],
    ) -> Result<ToolCallResults, Box<Halt>> {
        let mut results: Vec<Option<ToolCallResult>> = calls.iter().map(|_| None).collect();
        let mut work: Vec<Option<CallAction<'_>>> = calls.iter().map(|_| None).collect();
        for (index, call) in calls.iter().enumerate() {
            if is_transfer(run, call) {
                continue;
            }
            match self.call_action(run, call) {
                Ok(found) => work[index] = Some(found),
                Err((why, text)) => {
                    results[index] = Some(self.refuse(run, said, index, call, why, &text));
                }
            }
        }
        // With sequential calls, the next member also receives what earlier members said.
        let in_turn = matches!(run.role, AgentRole::Coordinator(team) if !team.parallel_tools);
        if matches!(run.role, AgentRole::Coordinator(team) if team.parallel_tools) {
            self.run_calls_in_parallel(run, said, work, &mut results).await?;
        } else {
            for (index, work) in work.into_iter().enumerate() {
                if let Some(work) = work {
                    results[index] = Some(self.run_call(run, said, index, work).await?);
                }
                if let Some(result) = results[index].as_ref().filter(|_| in_turn) {
                    run.team_history.record_result(run.name, &calls[index], result.shown());
                }
            }
        }
        let handed_over = match run.role {
            AgentRole::Member(name, swarm) => {
                self.judge_handoffs(run, name, swarm, said, calls, &mut results).await
            }
            AgentRole::Alone | AgentRole::Coordinator(_) => Ok(None),
        };
        let (condition_results, replies, missing) = (Vec::new(), Vec::new(), Vec::new());
        let mut carried =
            ToolCallResults { condition_results, handed_over: None, replies, missing };
        for (call, result) in calls.iter().zip(results) {
            let Some(result) = result else { continue };
            let shown = result.shown();
            carried
                .condition_results
                .push(json!({ "tool": &*call.name, "ok": result.ok, "text": &*shown }));
            if result.member && result.ok {
                let (member, text) = (AgentName::from(&*call.name), Arc::clone(&result.text));
                carried.replies.push((member, text, result.end));
            }
            if !result.ok {
                let (of, text) =
                    (visible_name(&call.name), visible_within(&result.text, MISSING_CHARS));
                carried.missing.push(MissingResult { name: of, text });
            }
            if !in_turn {
                run.team_history.record_result(run.name, call, shown);
            }
        }
        carried.handed_over = handed_over?;
        Ok(carried)
    }

    /// The work that a call requests, or why it cannot be carried out.
    fn call_action<'w>(
        &'w self,
        run: &AgentRun<'w>,
        call: &ToolCall,
    ) -> Result<CallAction<'w>, (CallFault, String)> {
        let name = &*call.name;
        if let AgentRole::Coordinator(team) = run.role
            && let Some(member) = team.members.iter().find(|member| member.as_str() == name)
            && let Some(member) = self.agents.get(member)
        {
            let request = policy::member_request(call).map_err(|wrong| {
                let there = self.available_calls(run, &team.members);
                (CallFault::BadArguments, format!("{wrong}; {there}"))
            })?;
            let turn = run.team_history.next_turn(&member.name);
            return Ok(CallAction::Consult(Consultation { team, member, request, turn }));
        }
        let mut tools = self.cx.agent_tools(self.scenario, &run.model.tools);
        if let Some((tool, _)) = tools.find(|(_, offer)| *offer.name == *name) {
            let args = policy::arguments(call).map_err(|wrong| {
                let there = self.available_calls(run, consultable_members(run));
                (CallFault::BadArguments, format!("{wrong}; {there}"))
            })?;
            return Ok(CallAction::Tool { tool: tool.clone(), args: Arc::new(args) });
        }
        let person = name
            .strip_prefix(ASK)
            .and_then(|name| run.model.people.iter().find(|person| person.as_str() == name));
        if let Some(person) = person {
            let AskedPerson { text, choices } = policy::person_request(call).map_err(|wrong| {
                let there = self.available_calls(run, consultable_members(run));
                (CallFault::BadArguments, format!("{wrong}; {there}"))
            })?;
            return Ok(CallAction::Ask { person: person.clone(), text, choices });
        }
        let (name, there) =
            (visible_name(name), self.available_calls(run, consultable_members(run)));
        Err((CallFault::UnknownTool, format!("there is no tool {name:?}; {there}")))
    }

    /// The list of what an agent can call, for the reply to an invalid call. `members`: the members
    /// that it may consult.
    fn available_calls(&self, run: &AgentRun<'_>, members: &[AgentName]) -> String {
        let roster = match run.role {
            AgentRole::Member(swarm, _) => self.rosters.members(swarm),
            AgentRole::Alone | AgentRole::Coordinator(_) => [].into(),
        };
        let others = roster.iter().filter(|member| *member != run.name);
        let asks: Vec<String> =
            run.model.people.iter().map(|person| format!("{ASK}{person}")).collect();
        let parts = [
            ("members", members.iter().map(AgentName::as_str).collect::<Vec<_>>()),
            (
                "tools",
                self.cx
                    .agent_tools(self.scenario, &run.model.tools)
                    .map(|(_, offer)| &*offer.name)
                    .collect(),
            ),
            ("people", asks.iter().map(String::as_str).collect()),
            ("transfer_to_agent hands over to", others.map(AgentName::as_str).collect()),
        ];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = parts.map(|(what, names)| listed(what, names)).collect();
        if parts.is_empty() {
            return "you have no tools: answer yourself".to_owned();
        }
        parts.join("; ")
    }

    /// Carries out all calls at once; their results are collected in the order of the calls.
    async fn run_calls_in_parallel(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        work: Vec<Option<CallAction<'_>>>,
        results: &mut [Option<ToolCallResult>],
    ) -> Result<(), Box<Halt>> {
        let branches = u32::try_from(work.iter().flatten().count()).unwrap_or(u32::MAX);
        let fork = self.cx.control().fork(branches);
        // A halt of the run does not wait for the calls that are still in flight.
        let stops = Notify::new();
        let mut calls = OrderedJoinSet::default();
        for (index, work) in work.into_iter().enumerate() {
            let Some(work) = work else { continue };
            let (fork, stops) = (&fork, &stops);
            calls.spawn(index, async move {
                let came = self.run_call(run, said, index, work).await;
                fork.done();
                if came.is_err() {
                    stops.notify_one();
                }
                came
            });
        }
        let mut next = 0;
        while next < results.len() {
            tokio::select! {
                biased;
                came = calls.take(next) => {
                    if let Some(came) = came {
                        results[next] = Some(came?);
                    }
                    next += 1;
                }
                () = stops.notified() => break,
            }
        }
        // If several calls halt the run, the first in the order of the calls counts.
        for place in next..results.len() {
            if let Some(Err(halt)) = calls.try_take(place) {
                return Err(halt);
            }
        }
        Ok(())
    }

    async fn run_call(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        index: usize,
        work: CallAction<'_>,
    ) -> Result<ToolCallResult, Box<Halt>> {
        match work {
            CallAction::Consult(asked) => self.consult(run, said, index, &asked).await,
            CallAction::Tool { tool, args } => self.call_tool(run, said, index, &tool, args).await,
            CallAction::Ask { person, text, choices } => {
                self.ask_person(run, said, index, &person, (text, choices)).await
            }
        }
    }

    /// Asks a person for an agent; the answer is the result of its call.
    async fn ask_person(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        index: usize,
        person: &PersonName,
        (text, choices): (Arc<str>, Arc<[Arc<str>]>),
    ) -> Result<ToolCallResult, Box<Halt>> {
        let tool = ToolName::from(format!("{ASK}{person}"));
        let (agent, index) = (run.name.clone(), call_index(index));
        let request = PersonRequest {
            who: person,
            parent: run.place.span,
            purpose: Purpose::Tool { agent, tool, requested_by: said.call, index },
            args: Some(Arc::new(json!({ "question": text, "choices": choices }))),
            by: Some(run.name.as_str().into()),
            why: Some(Arc::clone(said.text)).filter(|text| !text.trim().is_empty()),
            subject: Subject::Agent { text, choices },
        };
        match call_person(self.cx, request).await {
            Ok(reply) => Ok(ToolCallResult::of_tool(answer_text(&reply.answered.answer))),
            Err(failed) => Err(Halt::by_failed_call(&failed)),
        }
    }

    async fn call_tool(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        index: usize,
        tool: &ToolName,
        args: Arc<Map<String, Value>>,
    ) -> Result<ToolCallResult, Box<Halt>> {
        let (agent, index) = (run.name.clone(), call_index(index));
        let purpose = Purpose::Tool { agent, tool: tool.clone(), requested_by: said.call, index };
        let ask = ToolCallRequest {
            parent: run.place.span,
            of_program: None,
            tool,
            purpose,
            path: format!("tool:{}:{}:{index}", run.place.seed_path, said.round),
            args,
            request_id: None,
            why: Some(Arc::clone(said.text)).filter(|text| !text.trim().is_empty()),
            caller: &AgentToolCaller,
            client_retries: 0,
        };
        match self.cx.call_tool(ask).await {
            Ok(answered) => {
                let text = result_text::reply_text(&answered.reply);
                let text = result_text::noted_text(&text, answered.changed.as_deref());
                Ok(ToolCallResult::of_tool(text))
            }
            Err(failed) => self.failed_call_result(tool, &failed),
        }
    }
}

/// The members that a coordinator may consult.
fn consultable_members<'t>(run: &AgentRun<'t>) -> &'t [AgentName] {
    match run.role {
        AgentRole::Coordinator(team) => &team.members,
        AgentRole::Alone | AgentRole::Member(..) => &[],
    }
}

/// The result of one call.
pub(crate) struct ToolCallResult {
    pub text: Arc<str>,
    pub ok: bool,
    /// The text is the reply of a member.
    pub member: bool,
    pub end: ReplyEnd,
}

impl ToolCallResult {
    pub fn error(why: impl std::fmt::Display) -> Self {
        Self::without_result(result_text::error_text(why))
    }

    /// A call without a result; `text` says why.
    fn without_result(text: Arc<str>) -> Self {
        Self { ok: false, ..Self::of_tool(text) }
    }

    /// The result of a tool or of a handoff.
    pub fn of_tool(text: Arc<str>) -> Self {
        Self { text, ok: true, member: false, end: ReplyEnd::Stop }
    }

    /// The text that the calling agent reads: it says when the reply of a member is not whole.
    pub fn shown(&self) -> Arc<str> {
        result_text::marked_text(&self.text, self.end)
    }
}

pub(super) fn is_transfer(run: &AgentRun<'_>, call: &ToolCall) -> bool {
    matches!(run.role, AgentRole::Member(..)) && &*call.name == TRANSFER
}

/// A name from a model, shortened and with control characters made visible.
pub(super) fn visible_name(name: &str) -> String {
    visible_within(name, REASON_CHARS)
}

pub(crate) fn listed(what: &str, names: &[&str]) -> String {
    format!("{what}: {}", names.join(", "))
}

pub(super) fn call_index(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

impl AgentRunner<'_> {
    /// Refuses a call: reports it to the log and to the model.
    pub(crate) fn refuse(
        &self,
        run: &AgentRun<'_>,
        said: ModelReply<'_>,
        index: usize,
        call: &ToolCall,
        why: CallFault,
        text: &str,
    ) -> ToolCallResult {
        let result = ToolCallResult::error(text);
        let fact = AgentFact::ToolCallRefused {
            agent: run.name.clone(),
            index: call_index(index),
            tool: visible_name(&call.name),
            reason: why,
            text: result.text.to_string(),
        };
        self.cx.publish(said.call, fact);
        result
    }

    /// The result that the calling agent receives for a call that failed for good; an error if the
    /// run requires the tool.
    pub(super) fn failed_call_result(
        &self,
        tool: &ToolName,
        failed: &CallFailed,
    ) -> Result<ToolCallResult, Box<Halt>> {
        if failed.unavailable && self.cx.requires(tool) {
            return Err(Halt::by_failed_call(failed).fatal());
        }
        let last = failed.last.as_ref().map(|last| &*last.text).or(failed.denied.as_deref());
        Ok(ToolCallResult::without_result(result_text::failure_text(&failed.reason, last)))
    }
}
