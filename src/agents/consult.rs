//! A coordinator consults a member. The member's run is a call through the gateway; each attempt is
//! a new run of the member.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::json;

use super::agent_call::{AgentCall, AttemptId, Halt};
use super::call_result::{ToolCallResult, call_index};
use super::runner::{AgentAnswer, AgentRunner};
use super::spec::{AgentSpec, HistoryScope, InnerText, MemberTools};
use super::tool_calls::Consultation;
use super::turn::{AgentPosition, AgentRun, ModelReply};
use crate::agents::facts::MemberOutput;
use crate::base::name::{AgentName, ToolName};
use crate::event::kind::{CallStarted, ChatMessage, Prompt, Purpose, Reply};
use crate::event::{SpanId, result_text};
use crate::gateway::{CallFailed, CallSuccess};

/// A request to an agent: who asks, and with what.
pub(crate) struct AgentRequest<'a> {
    /// The agent that asks; its span, its path and the path of its random numbers.
    pub by: &'a AgentName,
    pub parent: SpanId,
    pub path: &'a str,
    pub seed_path: &'a str,
    /// Number of this turn of the agent that is asked, from 1.
    pub turn: u32,
    /// The model call that requested it, and the index among its tool calls.
    pub requested_by: SpanId,
    pub index: usize,
    pub request: &'a Arc<str>,
    /// The messages that the agent sees before its request.
    pub inherited: Arc<[ChatMessage]>,
    /// How much of its output is shown while it works.
    pub output: MemberOutput,
}

impl AgentRunner<'_> {
    /// Calls an agent through the gateway: each attempt is one run of it. With the reply comes the
    /// agent that wrote it, unless it is a fallback.
    ///
    /// # Errors
    /// Why the agent gave no answer.
    pub(crate) async fn call_agent(
        &self,
        agent: &AgentSpec,
        asked: AgentRequest<'_>,
    ) -> Result<(CallSuccess, Option<AgentName>), (Box<CallFailed>, Box<Halt>)> {
        let AgentRequest { turn, request, inherited, .. } = asked;
        let path = format!("{}/{}.{turn}", asked.path, agent.name);
        let draws = format!("{}/{}.{turn}", asked.seed_path, agent.name);
        let written_by = Mutex::new(None);
        let attempt = |it: AttemptId| {
            let (path, inherited, written_by) = (&path, Arc::clone(&inherited), &written_by);
            let draws = it.attempt_seed_path(&draws);
            let run = async move {
                let place = AgentPosition { span: it.span, path, seed_path: &draws, outer: false };
                let by = Some(asked.by);
                let AgentAnswer { text, by, end } =
                    self.run_consulted(agent, place, request, by, turn, inherited).await?;
                *written_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(by);
                Ok(Reply { end, ..Reply::from_agent_text(text) })
            };
            Box::pin(run) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let behind = AgentCall::new(self.cx, &agent.name, format!("member:{draws}"), None, attempt);
        let started = CallStarted {
            parent: asked.parent,
            tool: ToolName::from(agent.name.as_str()),
            purpose: Purpose::Member {
                agent: agent.name.clone(),
                turn,
                by: asked.by.clone(),
                requested_by: asked.requested_by,
                index: call_index(asked.index),
                member_output: asked.output,
            },
            prompt: Prompt::default(),
            args: Some(Arc::new(json!({ "request": &**request }))),
            model: None,
            repeat: 0,
        };
        let answered = behind.make(started).await?;
        drop(behind);
        let written_by = written_by.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((answered, written_by))
    }

    /// Consults a member for a coordinator.
    pub(super) async fn consult(
        &self,
        talk: &AgentRun<'_>,
        said: ModelReply,
        index: usize,
        asked: &Consultation<'_>,
    ) -> Result<ToolCallResult, Box<Halt>> {
        let Consultation { team, member, request, turn } = asked;
        let tools = team.member_tools;
        let asked = AgentRequest {
            by: talk.name,
            parent: talk.place.span,
            path: talk.place.path,
            seed_path: talk.place.seed_path,
            turn: *turn,
            requested_by: said.call,
            index,
            request,
            inherited: match tools.history_scope {
                HistoryScope::ParentBranch => talk.team_history.inheritable(),
                HistoryScope::Isolated => [].into(),
            },
            output: inner_visibility(tools),
        };
        match self.call_agent(member, asked).await {
            Ok((answered, _)) => Ok(ToolCallResult {
                text: result_text::reply_text(&answered.reply),
                ok: true,
                member: true,
                end: answered.reply.end,
            }),
            Err((_, halt)) if halt.fatal => Err(halt),
            Err((failed, _)) => {
                self.failed_call_result(&ToolName::from(member.name.as_str()), &failed)
            }
        }
    }
}

/// How much of a member's own output is shown.
fn inner_visibility(tools: MemberTools) -> MemberOutput {
    match (tools.stream_inner, tools.inner_text) {
        (false, _) => MemberOutput::Hidden,
        (true, InnerText::Exclude) => MemberOutput::Progress,
        (true, InnerText::Include) => MemberOutput::Text,
    }
}
