//! A coordinator consults a member. The member's run is a call through the gateway; each attempt is
//! a new run of the member.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;

use super::agent_call::{AgentCall, AttemptId, Halt};
use super::agent_run::{AgentPosition, AgentRun, ModelReply};
use super::tool_calls::{Consultation, ToolCallResult, call_index};
use crate::agents::runner::{AgentAnswer, AgentRunner};
use crate::agents::spec::{HistoryScope, InnerText, MemberTools};
use crate::base::name::ToolName;
use crate::event::kind::{CallStarted, MemberOutput, Prompt, Purpose, Reply};
use crate::event::result_text;

impl AgentRunner<'_> {
    /// Consults a member: each attempt of the call through the gateway is one run of it.
    pub(super) async fn consult(
        &self,
        talk: &AgentRun<'_>,
        said: ModelReply,
        index: usize,
        asked: &Consultation<'_>,
    ) -> Result<ToolCallResult, Box<Halt>> {
        let Consultation { team, member, request, turn } = asked;
        let turn = *turn;
        let tools = team.member_tools;
        let inherited = match tools.history_scope {
            HistoryScope::ParentBranch => talk.team_history.inheritable(),
            HistoryScope::Isolated => [].into(),
        };
        let path = format!("{}/{}.{turn}", talk.place.path, member.name);
        let draws = format!("{}/{}.{turn}", talk.place.seed_path, member.name);
        let attempt = |it: AttemptId| {
            let (path, inherited) = (&path, Arc::clone(&inherited));
            let draws = it.attempt_seed_path(&draws);
            let run = async move {
                let place = AgentPosition { span: it.span, path, seed_path: &draws, outer: false };
                let asked = Some(talk.name);
                let AgentAnswer { text, .. } =
                    self.run_consulted(member, place, request, asked, turn, inherited).await?;
                Ok(Reply::from_agent_text(text))
            };
            Box::pin(run) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let behind =
            AgentCall::new(self.cx, &member.name, format!("member:{draws}"), None, attempt);
        let started = CallStarted {
            parent: talk.place.span,
            tool: ToolName::from(member.name.as_str()),
            purpose: Purpose::Member {
                agent: member.name.clone(),
                turn,
                by: talk.name.clone(),
                requested_by: said.call,
                index: call_index(index),
                member_output: inner_visibility(tools),
            },
            prompt: Prompt::default(),
            args: Some(Arc::new(json!({ "request": &**request }))),
            model: None,
            repeat: 0,
        };
        match behind.make(started).await {
            Ok(answered) => Ok(ToolCallResult {
                text: result_text::reply_text(&answered.reply),
                ok: true,
                member: true,
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
